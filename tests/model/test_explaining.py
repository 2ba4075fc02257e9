"""Which witnesses a known issue explains: by what its mechanism can do, not by their name alone."""

import pytest

from onceproof.model.anomaly import Witness
from onceproof.model.explaining import Explanation, Scene, unexplained
from onceproof.model.known_issues import registry

CRASH = {
    "t": 5,
    "source": "driver",
    "event": "crash",
    "open": {
        "input": {"0": [3_000, 20_000]},
        "output": {"0": [3_010, None]},
        "ids-changelog": {"0": [3_010, None]},
        "__consumer_offsets": {"3": [13, None]},
    },
}
KEYS = {0: 7, 2_999: 8, 3_000: 9, 19_999: 10, 20_000: 11}  # by offset of the input


def scene(*events, **parameters):
    return Scene(events, lambda: [(0, offset, key, offset % 10) for offset, key in KEYS.items()], parameters)


def witness(anomaly, *places, key=None, partition=0, observed=""):
    return Witness(anomaly, partition, key, (), places, "", observed)


def explained(witness_, scene_, issue, variant="DEFAULT_CONFIG"):
    rows = [explanation for row in registry().issues if row.key == issue for explanation in row.explanations(variant)]
    return not unexplained([witness_], rows, scene_)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(witness("lost-record", "input/0@3000", key=9), True, id="of the open transaction"),
        pytest.param(witness("lost-record", "input/0@2999", key=8), False, id="committed before the kill"),
        pytest.param(witness("lost-record", "input/0@20000", key=11), False, id="delivered after the restart"),
        pytest.param(witness("uncommitted-state", "seen-contents/0@4", key=10), True, id="by its key"),
        pytest.param(witness("uncommitted-state", "seen-contents/0@4", key=8), False, id="a committed key"),
        pytest.param(witness("uncommitted-state", "counter-changelog/0@2999", key=0), True, id="the counter"),
        pytest.param(witness("duplicate-id", "output/0@70", "output/0@3010"), True, id="an ID that was given again"),
        pytest.param(witness("duplicate-id", "output/0@70", "output/0@3009"), False, id="both before the kill"),
        pytest.param(witness("stale-checkpoint", "task 0_0, .checkpoint"), True, id="the checkpoint"),
        pytest.param(
            witness("torn-transaction", "__consumer_offsets/3@13", key=0), True, id="positions behind the kill"
        ),
        pytest.param(witness("torn-transaction", "__consumer_offsets/3@12", key=0), False, id="positions before it"),
        pytest.param(witness("lost-state", "seen-changelog/0@3", key=9), False, id="another anomaly"),
        pytest.param(witness("lost-record", "input/1@3000", key=70, partition=1), False, id="another partition"),
    ],
)
def test_a_kill_explains_what_was_open_then(seen, expected):
    assert explained(seen, scene(CRASH), "KAFKA-20685") is expected


def test_without_a_kill_it_explains_nothing():
    for anomaly in ("lost-record", "stale-checkpoint", "uncommitted-state"):
        assert not explained(witness(anomaly, "input/0@3000", key=9), scene(), "KAFKA-20685")


def assigned(t, active, standby):
    thread = {"thread": "a-instance-1-StreamThread-1", "active": active, "standby": standby}
    return {"t": t, "source": "instance-1", "event": "assignment", "threads": [thread]}


RETURNED = [assigned(1, ["0_0", "0_1"], []), assigned(2, ["0_0"], ["0_1"]), assigned(3, ["0_0", "0_1"], [])]


def test_a_stale_cache_explains_only_the_task_that_came_back():
    assert explained(witness("stale-read", "output/1@5", key=1, partition=1), scene(*RETURNED), "KAFKA-14624")
    assert not explained(witness("stale-read", "output/0@5", key=1, partition=0), scene(*RETURNED), "KAFKA-14624")
    assert not explained(witness("stale-read", "output/1@5", key=1, partition=1), scene(), "KAFKA-14624")


def test_a_stale_counter_explains_that_it_ended_below_the_ids_and_not_that_an_id_did_not_reach_its_changelog():
    counter = ("changelog-output-mismatch", "counter-changelog/1@6", "output/1@5")
    assert explained(witness(*counter, key=0, partition=1), scene(*RETURNED), "KAFKA-14172")
    assert not explained(witness(*counter, key=0, partition=1), scene(), "KAFKA-14172")
    assert not explained(witness(*counter, key=0, partition=0), scene(*RETURNED), "KAFKA-14172")
    of_an_id = witness("changelog-output-mismatch", "ids-changelog/1@6", "output/1@5", key=2, partition=1)
    assert not explained(of_an_id, scene(*RETURNED), "KAFKA-14172")


def test_a_throttle_explains_only_what_a_request_that_was_held_up_can_do():
    aborted = witness("aborted-by-throttle", "values-changelog/0@5")
    held = {"t": 1, "source": "driver", "event": "held", "request": "AddOffsetsToTxn", "ms": 30_000}
    assert explained(aborted, scene(held), "KAFKA-17455")
    assert not explained(aborted, scene({"t": 1, "source": "i", "event": "throttle", "producers": []}), "KAFKA-17455")


def test_a_lock_that_is_never_released_explains_why_a_trial_is_stuck():
    stuck = witness("stuck", "instance-1, instance-2")
    locked = {"t": 1, "source": "driver", "event": "locked", "instance": "instance-2", "task": "0_0"}
    assert explained(stuck, scene(locked), "KAFKA-19510", "NO_LAG_ACCEPTABLE")
    assert not explained(stuck, scene(), "KAFKA-19510", "NO_LAG_ACCEPTABLE")


def test_a_revocation_explains_torn_transactions_of_the_tasks_that_stay():
    torn = witness("torn-transaction", "ids-changelog/0@15928", key=27)
    assert explained(torn, scene(*RETURNED), "KAFKA-18943", "CACHING_DISABLED")
    of_the_revoked = witness("torn-transaction", "ids-changelog/1@15928", key=27, partition=1)
    assert not explained(of_the_revoked, scene(*RETURNED), "KAFKA-18943", "CACHING_DISABLED")
    assert not explained(torn, scene(RETURNED[0]), "KAFKA-18943", "CACHING_DISABLED")
    lost = witness("lost-record", "input/0@15928", key=27)
    assert not explained(lost, scene(*RETURNED), "KAFKA-18943", "CACHING_DISABLED")


def struck(name):
    return {"t": 5, "source": "driver", "event": "fault", "name": name, "action": "applied"}


def test_a_fault_explains_only_what_it_can_do():
    given_twice = witness("duplicate-id", "output/0@70", "output/0@3010")
    explained_by = {
        fault: explained(given_twice, scene(struck(fault)), "KAFKA-20685", None)
        for fault in ("instance-kill", "disk-full", "bounce", "pause")
    }
    assert explained_by == {"instance-kill": True, "disk-full": True, "bounce": False, "pause": False}
    assert not explained(given_twice, scene({**struck("instance-kill"), "action": "healed"}), "KAFKA-20685", None)


def test_a_window_comes_out_again_only_where_records_came_too_late():
    again = witness("duplicate-output", "output/0@70", key=7)
    assert explained(again, scene(late=0.9), "KAFKA-20099 (documented)", "LATE")
    assert not explained(again, scene(late=0.0), "KAFKA-20099 (documented)", "LATE")
    assert not explained(again, scene(struck("instance-kill")), "KAFKA-20099 (documented)", None)


@pytest.mark.parametrize(
    ("issue", "variant", "event", "message"),
    [
        (
            "KAFKA-20731",
            "TOPOLOGY_PAUSED",
            "resumed",
            "The changelog reader is not restoring active tasks (is STANDBY_",
        ),
        ("KAFKA-20808", "SESSION", "crash", "Store seen.1795415400000 is currently closed"),
        ("KAFKA-21034", "KILLED", "crash", "Tasks [-1_-1] are corrupted and hence need to be re-initialized"),
        ("KIP-889 (no JIRA)", "RESTARTED", "reopened", "Timestamp is too large to be found in this segment."),
    ],
)
def test_a_thread_that_dies_of_something_else_is_not_explained(issue, variant, event, message):
    there = scene({"t": 1, "source": "driver", "event": event})
    assert explained(witness("thread-died", "instance-1", observed=f"T-1 died of X: {message}"), there, issue, variant)
    other = witness("thread-died", "instance-1", observed="T-1 died of java.lang.NullPointerException: null")
    assert not explained(other, there, issue, variant)


def restore(partition, end):
    return {"t": 3, "source": "i", "event": "restore", "store": "s", "partition": partition, "from": 0, "end": end}


def test_a_version_that_was_deleted_comes_back_only_where_a_store_was_restored():
    key, wrong = "KIP-889, restored (no JIRA)", witness("wrong-value", "output/1@5", key=1, partition=1)
    assert explained(wrong, scene(restore(1, 1_757), ended=0.5), key, "REVIVED")
    assert not explained(wrong, scene(restore(1, 0), restore(0, 1_757), ended=0.5), key, "REVIVED")
    assert not explained(wrong, scene(restore(1, 1_757), ended=0), key, "REVIVED")


def test_more_stale_results_than_a_cache_ever_left_are_something_else():
    key, given = "KIP-213 (no JIRA)", {"no.key": True, "caching": True}
    rows = [row for issue in registry().issues if issue.key == key for row in issue.explanations("CACHED")]
    stale = [witness("unexpected-record", f"output/0@{key}", key=key) for key in range(4)]

    def left(number, **more):
        inputs = [(0, offset, offset, 0) for offset in range(4)]
        return unexplained(stale[:number], rows, Scene([], lambda: inputs, {**given, **more}))

    assert left(3) == {}
    assert left(4) == {"unexpected-record": 4}
    assert left(4, absent=0.1) == {}


@pytest.mark.parametrize(
    ("issue", "values", "expected"),
    [
        pytest.param("same key", [3, 150, 1_000_150], True, id="another attribute with the same key"),
        pytest.param("same key", [3, 999_998, 1_999_998], True, id="the last key"),
        pytest.param("same key", [3, 50, 1_000_150], False, id="another key"),
        pytest.param("same key", [3, 50, 150], False, id="another key, that ends alike"),
        pytest.param("same key", [3, 150, 150], False, id="the same row"),
        pytest.param("same key", [3, 150, 1_000_150, 4], False, id="and then another key"),
        pytest.param("same key", [1_000_150], False, id="only once"),
        pytest.param("same key", [3, 0, 1_000_150], False, id="null in between"),
        pytest.param("same key", [150, 3, 1_000_150], False, id="not one after the other"),
        pytest.param("insert", [3, 0, 150], True, id="from null to a key"),
        pytest.param("insert", [3, 0, 150, 150], True, id="which was told twice"),
        pytest.param("insert", [3, 999_999, 1_000_150], True, id="deleted and inserted again"),
        pytest.param("insert", [3, 0, 150, 7], False, id="and then another key"),
        pytest.param("insert", [3, 0, 150, 15], False, id="and then one that begins alike"),
        pytest.param("insert", [3, 150, 0], False, id="to null"),
        pytest.param("insert", [3, 0, 999_999], False, id="null, then deleted"),
        pytest.param("insert", [3, 10, 150], False, id="no null"),
        pytest.param("insert", [3, 150, 1_000_150], False, id="the same key"),
    ],
)
def test_a_result_stays_where_the_changes_of_its_row_can_leave_it(issue, values, expected):
    key = f"KIP-213, {issue} (no JIRA)"
    stale = witness("unexpected-record", "output/0@70", key=9)

    def there(**given):
        return Scene([], lambda: [(0, 5 - place, 9, value) for place, value in enumerate(values[::-1])], given)

    assert explained(stale, there(absent=0.5), key, None) is expected
    assert not explained(stale, there(absent=0.0), key, None)
    assert not explained(witness("lost-record", "input/0@5", key=9), there(absent=0.5), key, None)
    assert not explained(witness("unexpected-record", "output/0@70", key=8), there(absent=0.5), key, None)


def test_of_each_anomaly_the_unexplained_are_counted():
    rows = [Explanation(("lost-record",), open_at="crash")]
    seen = [witness("lost-record", f"input/0@{offset}", key=key) for offset, key in KEYS.items()]
    assert unexplained(seen, rows, scene(CRASH)) == {"lost-record": 3}


def test_what_a_punctuator_writes_has_no_record_of_the_input():
    written = witness("uncommitted-state", "seen-contents/0@4", key=-7)
    assert explained(written, scene(CRASH), "KAFKA-20685", "PUNCTUATOR")
    assert not explained(written, scene(CRASH), "KAFKA-20685")


def test_a_key_that_came_in_with_several_values_explains_what_became_of_it():
    rows = [Explanation(("wrong-value",), changed=True)]
    inputs = [(0, 0, 5, 1), (0, 1, 6, 1), (0, 2, 5, 2), (0, 3, 6, 1)]
    seen = [witness("wrong-value", f"output/0@{key}", key=key) for key in (5, 6, 7)]
    assert unexplained(seen, rows, Scene([], lambda: inputs)) == {"wrong-value": 2}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param(7, True, id="it asked for no key"),
        pytest.param(8, False, id="it asked for one"),
        pytest.param(12, False, id="nobody sent it"),
        pytest.param(None, False, id="no key is told"),
    ],
)
def test_a_value_that_a_key_came_in_with_explains_what_became_of_that_key(key, expected):
    assert explained(witness("lost-record", "input/0@0", key=key), scene(), "KAFKA-19208") is expected
