"""How an instance ends, and when it is ready: each anomaly in a timeline, and look-alikes that are none."""

import pytest

from onceproof.scenarios.endings import SCENARIO, awaits_itself, compare_endings, observe
from onceproof.scenarios.ownership import sum_allowed
from onceproof.scenarios.readiness import compare_readiness
from tests.conftest import a_trial

CLEANED = "cleaned"
REFUSED = "java.lang.IllegalStateException: Cannot clean up while running."
FILES = [".lock", "kafka-streams-process-metadata"]
HELD = [*FILES, "0_0", "0_1"]


def driver(event, **fields):
    return {"source": "driver", "event": event, **fields}


def started(name="instance-2"):
    return driver("instance", name=name, action="started")


def told(event, name="instance-2", **fields):
    return {"source": name, "event": event, **fields}


def restore(from_=0, end=900, partition=1, name="instance-2"):
    return told("restore", name, store="last", partition=partition, end=end, **{"from": from_})


def restored(records=890, batched=890, last=898, partition=1):
    return told("restored", store="last", partition=partition, records=records, batched=batched, last=last)


def suspended(last=50):
    return told("suspended", store="last", partition=1, records=50, last=last)


def to(state, name="instance-2"):
    return told("state", name, to=state, **{"from": "?"})


def has(*tasks):
    return told("assignment", threads=[{"thread": "t", "state": "RUNNING", "active": [*tasks], "standby": []}])


def absent(*taken, leaves, ended=True, rebalancing=False):
    tasks = ["0_0", "0_1"]
    return driver(
        "absent",
        instance="instance-2",
        leaves=leaves,
        ended=ended,
        tasks=tasks,
        taken=[*taken],
        rebalancing=rebalancing,
    )


def answered(answer, other, first, due):
    states = {"instance-2": other, "instance-1": first}
    return driver("answered", answer=answer, states=states, due=dict(zip(states, due, strict=True)))


def cleaned(answer, after, *, running):
    return driver("cleaned", instance="instance-2", running=running, answer=answer, before=HELD, after=after)


def standbys(*positions, end=900):
    stores = [{"store": "last", "partition": p, "position": at, "end": end} for p, at in enumerate(positions)]
    return driver("standbys", stores=[{"instance": "instance-2", **store} for store in stores])


ALL = ("ERROR", "ERROR")
ONE = ("ERROR", "RUNNING")
START, TERMINATED = driver("cleaned-start", instance="instance-2"), driver("terminated", instance="instance-2")
CUT_OFF = [started(), restore(), suspended(), started()]


@pytest.mark.parametrize(
    ("events", "anomalies"),
    [
        ([absent("0_0", "0_1", leaves=True)], [None, None]),
        ([absent("0_0", leaves=True)], ["wrong-membership", None]),
        ([absent(leaves=True)], ["wrong-membership", None]),
        ([absent(leaves=False)], [None, None]),
        ([absent("0_1", leaves=False)], ["wrong-membership", None]),
        ([absent("0_0", leaves=False, rebalancing=True)], [None, None]),
        ([absent("0_0", "0_1", leaves=False, rebalancing=True)], ["wrong-membership", None]),
        ([absent("0_0", leaves=True, rebalancing=True)], ["wrong-membership", None]),
        ([absent("0_0", "0_1", leaves=True, ended=False)], [None, "wrong-end"]),
        ([answered("SHUTDOWN_APPLICATION", *ALL, ALL)], [None, None]),
        ([answered("SHUTDOWN_APPLICATION", "ERROR", "RUNNING", ALL)], [None, "wrong-end"]),
        ([answered("SHUTDOWN_CLIENT", *ONE, ONE)], [None, None]),
        ([answered("SHUTDOWN_CLIENT", *ALL, ONE)], [None, "wrong-end"]),
        ([cleaned(REFUSED, HELD, running=True)], [None]),
        ([cleaned(REFUSED, [*HELD, "0_2"], running=True)], [None]),
        ([cleaned(REFUSED, FILES, running=True)], ["wrong-clean-up"]),
        ([cleaned(CLEANED, HELD, running=True)], ["wrong-clean-up"]),
        ([cleaned(CLEANED, FILES, running=False)], [None]),
        ([cleaned(CLEANED, [], running=False)], [None]),
        ([cleaned(CLEANED, [*FILES, "0_1"], running=False)], ["wrong-clean-up"]),
        ([cleaned(CLEANED, ["global"], running=False)], ["wrong-clean-up"]),
        ([cleaned(REFUSED, FILES, running=False)], ["wrong-clean-up"]),
        ([started(), restore(), has("0_1"), START], [None]),
        ([started(), restore(40), has("0_1"), START], ["wrong-clean-up"]),
        ([started(), restore(), has("0_0", "0_1"), START], ["wrong-clean-up", None]),
        ([restore(partition=0), started(), has("0_0"), START], ["wrong-clean-up"]),
        ([*CUT_OFF, restore(51), TERMINATED], [None]),
        ([*CUT_OFF, restore(0), TERMINATED], [None]),
        ([*CUT_OFF, restore(52), TERMINATED], ["skipped-restoration"]),
        ([*CUT_OFF, TERMINATED], ["skipped-restoration"]),
        ([*CUT_OFF, restore(51, name="instance-1"), TERMINATED], ["skipped-restoration"]),
        ([started(), restore(), restored(), started(), restore(899), TERMINATED], []),
    ],
)
def test_an_ending(events, anomalies):
    assert [comparison.anomaly for comparison in compare_endings(events)] == anomalies


@pytest.mark.parametrize(
    ("events", "anomalies"),
    [
        ([], {None}),
        ([to("REBALANCING"), restore(), restored(), to("RUNNING")], {None}),
        ([to("REBALANCING"), restore(), to("RUNNING"), restored()], {None, "early-running"}),
        ([to("RUNNING"), restore(), restored()], {None, "early-running"}),
        ([to("RUNNING", "instance-1"), restore(), to("RUNNING", "instance-1"), restored()], {None}),
        ([restore(), to("RUNNING"), suspended()], {None}),
        ([restore(), to("RUNNING"), to("REBALANCING"), restore(), restored()], {None}),
        ([to("RUNNING"), started(), restore(), restored()], {None}),
        ([restore(), restored(records=1780)], {None, "wrong-progress"}),
        ([restore(), restored(batched=889)], {None, "wrong-progress"}),
        ([restore(), restored(records=901, batched=901)], {None, "wrong-progress"}),
        ([restore(), restored(last=900)], {None, "wrong-progress"}),
        ([restore(10), restored(last=9)], {None, "wrong-progress"}),
        ([restore(899), restored(records=0, batched=0, last=-1)], {None}),
        ([standbys(899, 900)], {None}),
        ([standbys(899, 898)], {None, "standby-behind"}),
        ([standbys()], {None}),
        ([standbys(0, end=0)], {None}),
    ],
)
def test_readiness(events, anomalies):
    assert {comparison.anomaly for comparison in compare_readiness(events)} == anomalies


def test_each_restoration_is_compared_twice():
    events = [restore(), restored(), restore(899), restored(records=0, batched=0, last=-1)]
    assert len([c for c in observe(a_trial("4.4.0", scenario="endings"), events) if c.promise == "readiness"]) == 4


def test_each_standby_is_compared():
    assert [c.anomaly for c in compare_readiness([standbys(899, 20, 30)])] == [None, "standby-behind", "standby-behind"]


def test_a_rebalance_is_for_those_that_leave_or_stay():
    trial = a_trial("4.4.0", "TERMINATED", scenario="endings", rebalancing=True)
    assert "rebalancing is for members that leave or stay" in (SCENARIO.refuse_trial(trial) or "")


def test_close_options_came_with_3_3():
    refused = "Kafka Streams 3.2.3 has no CloseOptions (KIP-812); take 3.3.0 or later."
    assert SCENARIO.refuse(a_trial("3.2.3", scenario="endings").cell) == refused
    assert SCENARIO.refuse(a_trial("3.2.3", "TERMINATED", scenario="endings").cell) is None


@pytest.mark.parametrize("variant", SCENARIO.variants)
def test_of_an_instance_that_is_killed_no_ending_is_promised(variant):
    promised = SCENARIO.system(a_trial("4.4.0", scenario="endings", variant=variant)).promises
    assert ("endings" in promised) == (variant != "KILLED")
    assert ("ownership" in promised) == (variant != "SHUTDOWN_APPLICATION")
    assert "readiness" in promised


def test_a_partition_may_be_idle_if_its_owners_fate_explains_it():
    def stood(t, action):
        return {"t": t, **driver("instance", name="instance-1", action=action)}

    assert sum_allowed([], slowed=1.0) == 5_400  # who left, or died
    assert sum_allowed([], slowed=1.0, missed_after=45.0) == 50_400  # who was killed
    assert sum_allowed([], slowed=2.5) == 13_500  # a machine with too few CPUs
    paused = [started(), stood(1_000, "frozen"), to("RUNNING"), stood(4_500, "thawed"), stood(9_000, "killed")]
    assert sum_allowed(paused, slowed=1.0) == 8_900  # one that the driver had stand still


@pytest.mark.parametrize(
    ("variant", "session"),
    [("REPLACE_THREAD", "45000"), ("SHUTDOWN_CLIENT", "6000"), ("KILLED", "6000"), ("STAYING", "120000")],
)
def test_the_session_of_a_member_that_ends(variant, session):
    config = SCENARIO.config(a_trial("4.4.0", scenario="endings", variant=variant))
    assert config["main.consumer.session.timeout.ms"] == session


ASKS = "[Consumer clientId=c, groupId=app] (Re-)joining group (org.apache.kafka.clients.consumer.internals.X)"
HAS = "[Consumer clientId=c, groupId=app] Successfully joined group with generation Generation{generationId=4}"
ENDS = "stream-thread [t] State transition from PENDING_SHUTDOWN to DEAD (org.apache.kafka.streams.StreamThread)"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([(1, ASKS), (2, ENDS)], True, id="one had not heard of the rebalance"),
        pytest.param([(1, ASKS), (2, ASKS), (2, HAS), (1, HAS), (1, ASKS), (2, ENDS)], True, id="it asks again"),
        pytest.param([(1, ASKS), (2, ASKS)], False, id="both wait for others"),
        pytest.param([(1, ASKS)], False, id="it is alone"),
        pytest.param([(1, ASKS), (1, HAS), (2, ENDS)], False, id="it has its answer"),
        pytest.param([(1, ASKS), (1, ENDS), (2, ENDS)], False, id="both have ended"),
    ],
)
def test_who_waits_for_a_thread_of_its_own(tmp_path, lines, expected):
    log = tmp_path / "instance-2.log"
    before = f"[2026-11-29T09:49:00.215+0000] INFO [app-instance-2-StreamThread-3] {ASKS}\n"
    log.write_text(
        before
        + "".join(
            f"[2026-11-29T09:49:00.{at:03}+0000] INFO [app-instance-2-StreamThread-{thread}] {text}\n"
            for at, (thread, text) in enumerate(lines)
        )
    )
    assert awaits_itself(log, len(before)) is expected
