import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.timeline import Timeline, find_stayed_beside_revoked, read_timeline, returns, stall_text
from tests.present import present


def assignment(t, source, **threads):
    """`thread_1=("0_0", "0_1")` reads: thread_1 holds 0_0 active and 0_1 standby."""
    listed = [
        {"thread": name, "state": "RUNNING", "active": a.split(), "standby": s.split()}
        for name, (a, s) in threads.items()
    ]
    return {"t": t, "source": source, "event": "assignment", "threads": listed}


def progress(t, source, **counts):
    listed = [{"task": "0_1", "thread": name, "count": n} for name, n in counts.items()]
    return {"t": t, "source": source, "event": "progress", "processed": listed}


JOURNEY = [
    assignment(1, "i1", a=("0_0 0_1", "")),
    progress(2, "i1", a=10),
    assignment(3, "i1", a=("0_0", "0_1")),
    assignment(3, "i2", b=("0_1", "0_0")),
    progress(4, "i2", b=50),
    assignment(5, "i1", a=("0_0 0_1", "")),
    progress(6, "i1", a=25),
]


def test_a_task_that_comes_back_to_its_thread_is_a_return():
    [found] = returns(JOURNEY)
    assert (found.task, found.thread, found.left, found.back) == ("0_1", "a", 3, 5)
    assert (found.before, found.elsewhere, found.after) == (10, 50, 15)


def test_a_task_that_did_not_advance_counts_nothing_elsewhere():
    [found] = returns([e for e in JOURNEY if e["event"] == "assignment" or e["source"] == "i1"])
    assert found.elsewhere == 0


def test_a_task_stays_beside_one_that_is_revoked():
    assert find_stayed_beside_revoked(JOURNEY) == {"0_0"}
    alone = [assignment(1, "i1", a=("0_1", "")), assignment(3, "i1", a=("", "0_1"))]
    nothing_taken = [assignment(1, "i1", a=("0_0", "")), assignment(3, "i1", a=("0_0 0_1", ""))]
    between = [assignment(1, "i1", a=("0_0 0_1", "")), assignment(2, "i1", a=("", "")), JOURNEY[0]]
    for look_alike in (alone, nothing_taken, between):
        assert find_stayed_beside_revoked(look_alike) == set()


def test_look_alikes_are_no_returns():
    gone_without_standby = [
        assignment(1, "i1", a=("0_1", "")),
        assignment(2, "i1", a=("0_0", "")),
        assignment(3, "i1", a=("0_1", "")),
    ]
    standby_first = [assignment(1, "i1", a=("", "0_1")), assignment(2, "i1", a=("0_1", ""))]
    other_thread = [
        assignment(1, "i1", a=("0_1", "")),
        assignment(2, "i1", a=("", "0_1")),
        assignment(3, "i1", a=("0_0", ""), b=("0_1", "")),
    ]
    dropped_as_standby = [
        assignment(1, "i1", a=("0_0 0_1", "")),
        assignment(2, "i1", a=("0_0", "0_1")),
        assignment(3, "i1", a=("0_0", "")),  # the standby was closed, so its cache is gone
        assignment(4, "i1", a=("0_0 0_1", "")),
    ]
    new_thread_of_that_name = [
        assignment(1, "i1", a=("0_0 0_1", "")),
        assignment(2, "i1", a=("0_0", "0_1")),
        assignment(3, "i1"),
        assignment(4, "i1", a=("0_0 0_1", "")),
    ]
    assert returns(new_thread_of_that_name) == []
    for events in (gone_without_standby, standby_first, other_thread, dropped_as_standby):
        assert returns(events) == []
    came_back = [len(returns(events, closed=True)) for events in (gone_without_standby, dropped_as_standby)]
    assert came_back == [1, 1]
    for events in (standby_first, other_thread, new_thread_of_that_name):
        assert returns(events, closed=True) == []


def test_a_thread_of_a_restarted_instance_is_another_thread():
    def started(t):
        return {"t": t, "source": "driver", "event": "instance", "name": "i1", "action": "started"}

    assert returns([started(0), *JOURNEY[:5], started(4), *JOURNEY[5:]]) == []
    [found] = returns([started(0), started(0), *JOURNEY])
    assert (found.thread, found.before, found.after) == ("a (start 2)", 10, 15)


def test_a_thread_without_tasks_between_assignments_says_nothing():
    events = []
    for event in JOURNEY:
        events.append(event)
        if event["event"] == "assignment":
            events.append(assignment(event["t"], event["source"], a=("", "")))
    assert len(returns(events)) == 1


@given(st.lists(st.sampled_from([("0_1", ""), ("", "0_1"), ("0_0", "")]), max_size=12))
def test_there_is_a_return_for_each_active_standby_active(roles):
    """Against a reference that reads the sequence as a string."""
    events = [assignment(t, "i1", a=role) for t, role in enumerate(roles)]
    letters = "".join({("0_1", ""): "A", ("", "0_1"): "S"}.get(role, "-") for role in roles)
    runs = "".join(letter for letter, _ in itertools.groupby(letters))
    assert len([r for r in returns(events) if r.task == "0_1"]) == sum(
        runs.startswith("ASA", i) for i in range(len(runs))
    )


def test_a_timeline_is_read_in_order_of_time(tmp_path):
    timeline = Timeline(tmp_path / "deep" / "timeline.jsonl")
    timeline.add("driver", "phase", name="sync")
    timeline.append(JOURNEY[0])
    timeline.close()
    timeline.add("driver", "late")  # after the end: kept in memory, no error
    assert read_timeline(tmp_path / "deep" / "timeline.jsonl") == [JOURNEY[0], timeline.events[0]]


def stall(t, source, ms):
    return {"t": t, "source": source, "event": "stall", "ms": ms}


FROZEN = [
    {"t": t, "source": "driver", "event": "instance", "name": "i1", "action": action}
    for t, action in ((10_000, "frozen"), (17_000, "thawed"))
]


@pytest.mark.parametrize(
    ("stalled", "seconds"),
    [
        (stall(17_050, "i1", 7_150), None),  # all but a tick of it was our doing
        (stall(19_000, "i1", 9_000), "2.0"),  # the machine was slow to let it go on
        (stall(11_000, "i1", 3_000), "2.0"),  # it stood still before it was frozen
        (stall(30_000, "i1", 3_000), "3.0"),  # long after
        (stall(17_050, "i2", 7_150), "7.2"),  # nobody froze that one
        (stall(17_050, "driver", 2_500), "2.5"),
    ],
)
def test_only_the_frozen_time_of_an_instance_is_no_stall(stalled, seconds):
    reported = stall_text([*FROZEN, stalled])
    if seconds is None:
        assert reported is None
    else:
        assert f"stood still for {seconds} s ({stalled['source']})" in present(reported)


def test_an_instance_that_is_still_frozen_may_stand_still():
    assert stall_text([FROZEN[0], stall(12_000, "i1", 2_100)]) is None
