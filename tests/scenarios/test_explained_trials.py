"""Which known issues explain a trial whose parameters are not its variant's."""

import pytest

from onceproof.model.anomaly import Witness
from onceproof.model.cell import Cell, Trial
from onceproof.model.release import Release
from onceproof.scenarios.explaining import count_unexplained_in, find_concerned_in

BROKER = Release.parse("3.9.1")


def trial(scenario, variant, streams, **parameters):
    named = {name.replace("_", "."): value for name, value in parameters.items()}
    return Trial("run", Cell(scenario, variant, Release.parse(streams), BROKER), 1, 0, named)


def struck(name):
    open_ = {"input": {"0": [2, None]}}
    return {"t": 5, "source": "driver", "event": "fault", "name": name, "action": "applied", "on": "a", "open": open_}


AS_OF = ("as-of-join", "RESTARTED", "4.3.1")
TIMED_OUT = ("at-least-once", "TIMED_OUT", "4.3.1")


@pytest.mark.parametrize(
    ("asked", "anomaly", "event", "known"),
    [
        pytest.param(trial(*AS_OF, fault="bounce"), "wrong-value", struck("bounce"), True, id="a versioned store"),
        pytest.param(
            trial(*AS_OF, fault="bounce", stores="rocksdb"), "wrong-value", struck("bounce"), False, id="none"
        ),
        pytest.param(trial(*TIMED_OUT), "false-after-true", {"t": 1, "event": "timeout"}, True, id="as found"),
        pytest.param(
            trial(*TIMED_OUT, stores="in-memory"),
            "false-after-true",
            {"t": 1, "event": "timeout"},
            False,
            id="in memory",
        ),
        pytest.param(
            trial("at-least-once", "TIMED_OUT", "4.2.2", state_updater=False),
            "false-after-true",
            {"t": 1, "event": "timeout"},
            False,
            id="no state updater",
        ),
        pytest.param(
            trial("windows", "DEFAULT_CONFIG", "4.1.2", fault="instance-kill", stores="in-memory"),
            "lost-record",
            struck("instance-kill"),
            False,
            id="nothing on disk",
        ),
        pytest.param(trial("app", "DEFAULT_CONFIG", "4.1.2"), "lost-record", struck("bounce"), False, id="your own"),
    ],
)
def test_an_issue_explains_only_what_has_what_it_needs(asked, anomaly, event, known):
    # A record asks within a version that had ended before it, and gets none.
    inputs = [(0, 0, 7, -1, 10), (0, 1, 7, -2, 20), (0, 2, 7, 3, 15)]
    witness = Witness(anomaly, 0, 7, (), ("output/0@1",), str((3 << 32) + 1), str(3 << 32))
    left = count_unexplained_in(asked, [witness], [event], lambda: inputs)
    assert left == ({} if known else {anomaly: 1})


def test_an_issue_is_named_only_if_it_explains_an_anomaly():
    asked = trial(*AS_OF, fault="bounce")
    assert [issue.key for issue in find_concerned_in(asked, ["wrong-value"])] == [
        "KIP-889 (no JIRA)",
        "KIP-889, restored (no JIRA)",
    ]
    assert find_concerned_in(asked, ["stuck"]) == ()
    assert find_concerned_in(trial(*AS_OF, fault="bounce", stores="rocksdb"), ["wrong-value"]) == ()


@pytest.mark.parametrize(
    ("streams", "variant", "left"),
    [
        *((streams, "SAME_KEY", {}) for streams in ("3.9.1", "3.9.2", "4.0.1", "4.1.0", "4.4.0")),
        *((streams, "SAME_KEY", {"unexpected-record": 1}) for streams in ("3.8.1", "3.9.0", "4.0.0")),
        ("4.4.0", "SAME_KEY_CACHED", {}),
        ("4.4.0", "REINSERTED", {"unexpected-record": 1}),
        ("4.4.0", "NO_NULL_KEY", {"unexpected-record": 1}),
    ],
)
def test_a_result_left_by_a_double_change_is_known(streams, variant, left):
    stale = Witness("unexpected-record", 0, 7, (), ("output/0@1",), "", "")
    came = [(0, 1, 7, 3, 0), (0, 2, 7, 150, 0), (0, 3, 7, 1_000_150, 0)]
    assert count_unexplained_in(trial("foreign-key-join", variant, streams), [stale], [], lambda: came) == left
