"""Timelines of trials in which nothing is wrong, and what is planted into them.

The witnesses of these anomalies are events of the driver and of the instances, not records.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.specimens.mutations import Clean, Mutation

Fields = dict[str, Any]
STARTED = {"source": "driver", "event": "instance", "name": "instance-1", "action": "started", "release": "4.3.1"}
UNCAUGHT: Fields = {
    "source": "instance-1",
    "event": "uncaught",
    "thread": "onceproof-t-instance-1-StreamThread-1",
    "exception": "org.apache.kafka.streams.errors.StreamsException",
    "message": "bad luck",
    "causes": [],
    "frame": None,
    "response": "SHUTDOWN_CLIENT",
}
FAILURE = {"source": "driver", "event": "failure", "place": "instance-1", "expected": "an end", "observed": "none"}
EXCEPTION = {"source": "instance-1", "event": "exception", "exception": "TaskCorruptedException", "at": 4_500}
STALE = {
    "source": "instance-1",
    "event": "stale-read",
    "expected": 5,
    "found": 3,
    "partition": 1,
    "offset": 7,
    "key": 2,
}
# For each scenario, the events that its promises look at.
HEALTHY: dict[str, dict[str, Fields]] = {
    "enumerator": {},
    "multirunner": {"step": {"action": "[0] start"}},
    "crash": {
        "checkpoint": {
            "samples": 9,
            "present": 0,
            "distinct": 0,
            "milliseconds": 700,
            "age_ms": None,
            "offsets": {},
            "in_rocksdb": True,
        },
        "initialised": {"store": "seen", "how": "wiped", "on_disk": 12, "records": 701, "offset": None, "replayed": 0},
    },
    "quota": {
        "bulk": {"name": "load", "t": 1_000},
        "load": {"avg": 90.0, "max": 210.0, "lag": 40, "stall_ms": 300, "explained": 30},
    },
    "at-least-once": {"flushes": {"looks": 30, "committed": 300, "output": 300, "records-changelog": 600}},
    "global-join": {},
    "scan": {},
    "foreign-key-join": {},
    "stream-join": {},
    "split-batch": {},
    "grouped-table": {},
    "far-future": {},
    "table-join": {},
    "windows": {},
    "as-of-join": {},
    "punctuators": {},
    "dead-letters": {},
    "two-topics": {},
    "interactive-queries": {
        "routed": {"owners": {"instance-1": [0, 1]}, "routes": {"instance-1": dict.fromkeys("01", "instance-1")}}
    },
    "leaks": {},
    "migration": {},
}


def events_of(scenario: str, changed: dict[str, Fields], added: list[Fields]) -> list[Fields]:
    """The events of a trial's timeline, some of them with other fields, and more of them."""
    healthy = HEALTHY[scenario].items()
    events = [{"source": "driver", "event": event, **fields, **changed.get(event, {})} for event, fields in healthy]
    return [{"t": 1_000, **event} for event in (STARTED, *events, *added)]


def _planted(clean: Clean, _rng: random.Random, kind: str, **plant: Any) -> Mutation:
    mutation = Mutation(f"timeline: {kind}", clean, changed=plant.get("changed", {}), events=plant.get("added", []))
    mutation.found(kind.partition(",")[0], plant.get("partition", 0), None, [plant["place"]], *plant["told"])
    return mutation


RUNS_ON = "runs until it is asked to end"
DEATH = "StreamThread-1 died of org.apache.kafka.streams.errors.StreamsException: bad luck"
# For all scenarios: an event that is added, its place, what is expected and observed.
OF_ALL: dict[str, Fields] = {
    "thread-died": {"added": [UNCAUGHT], "place": "instance-1", "told": (RUNS_ON, DEATH)},
    **{
        anomaly: {"added": [{**FAILURE, "anomaly": anomaly}], "place": "instance-1", "told": ("an end", "none")}
        for anomaly in ("stuck", "unclean-close")
    },
}
LOOKS = "at least 300 published when 300 requests were committed"
OF_SCENARIO: dict[str, dict[str, Fields]] = {
    "enumerator": {},
    "multirunner": {
        "stale-read": {
            "added": [STALE],
            "partition": 1,
            "place": "the application",
            "told": (
                "no stale read",
                "The application saw 1 stale reads itself, the first at step [0] in instance-1: expected 5 but found "
                "3, partition 1, input offset 7, key 2.",
            ),
        }
    },
    "crash": {
        "stale-checkpoint": {
            "changed": {"checkpoint": {"present": 9, "distinct": 1, "age_ms": 900, "offsets": {"seen": 600}}},
            "place": "task 0_0, .checkpoint",
            "told": (
                "no checkpoint while RUNNING under exactly-once",
                "present in 9 of 9 samples over 700 ms, unchanged, 900 ms old at the kill; seen 600",
            ),
        },
        "skipped-wipe": {
            "changed": {"initialised": {"how": "trusted", "offset": 690, "replayed": 11}},
            "place": "task 0_0, store seen",
            "told": (
                "wiped and restored",
                "trusted from offset 690, 11 offsets replayed; on disk were 12 entries of the open transaction",
            ),
        },
    },
    "quota": {
        "aborted-by-throttle": {
            "added": [{**EXCEPTION, "message": "so it is"}],
            "place": "instance-1",
            "told": ("no TaskCorruptedException", "1 lines in the log, the first after 3.5 s: so it is"),
        },
        "long-throttle": {
            "changed": {"load": {"max": 5_000.0}},
            "place": "instance-1",
            "told": (
                "throttled for 1,468 ms at most, which the quota explains, or twice that",
                "5,000 ms at most, 90 on average",
            ),
        },
        "runaway-lag": {
            "changed": {"load": {"lag": 9_000}},
            "place": "instance-1",
            "told": ("a lag of about 30 records, which the quota explains, 169 at most", "9,000 records"),
        },
    },
    "at-least-once": {
        "early-commit, the answer": {
            "changed": {"flushes": {"output": 299}},
            "place": "the output, in 30 samples",
            "told": (LOOKS, "299 published"),
        },
        "early-commit, the change": {
            "changed": {"flushes": {"records-changelog": 250}},
            "place": "the changelog, in 30 samples",
            "told": (LOOKS, "250 published"),
        },
    },
    "global-join": {},
    "scan": {},
    "foreign-key-join": {},
    "stream-join": {},
    "split-batch": {},
    "grouped-table": {},
    "dead-letters": {},
    "two-topics": {},
    "far-future": {},
    "table-join": {},
    "windows": {},
    "as-of-join": {},
    "punctuators": {},
    "interactive-queries": {
        "wrong-route": {
            "changed": {"routed": {"routes": {"instance-1": {"0": "instance-1", "1": "instance-2"}}}},
            "partition": 1,
            "place": "instance-1",
            "told": ("instance-1", "instance-2"),
        }
    },
    "leaks": {},
    "migration": {},
}


def kinds(clean: Clean) -> list[Callable[[Clean, random.Random], Mutation]]:
    """The mutations of the timeline of a trial."""
    scenario = clean.name.rpartition("-")[0]
    return [partial(_planted, kind=kind, **plant) for kind, plant in {**OF_ALL, **OF_SCENARIO[scenario]}.items()]
