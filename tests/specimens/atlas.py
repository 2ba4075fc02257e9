"""Measurements as an atlas has them."""

from typing import Any

from onceproof.atlas.measurement import ControlSeen, Measurement
from onceproof.model.anomaly import Witness
from onceproof.model.cell import Cell
from onceproof.model.release import Release
from onceproof.model.verdict import Standing, Verdict
from onceproof.scenarios import SCENARIOS

BROKER = Release(4, 4, 0)
HARNESS, EARLIER = "0.2.0+aaaaaaaa", "0.1.0+bbbbbbbb"
NOW, THEN = (dict.fromkeys(SCENARIOS, version) for version in (HARNESS, EARLIER))  # by scenario
WITNESS = Witness("duplicate-id", 0, 7, (14,), ("output/0@50",), "one key", "2 keys: 7, 9")

TIMELINE: tuple[dict[str, Any], ...] = (  # a task that leaves its thread and comes back, and a phase that is cut off
    {"t": 1000, "source": "driver", "event": "phase", "name": "first bulk"},
    {"t": 1000, "source": "driver", "event": "instance", "name": "i", "action": "started", "release": "3.4.0"},
    {"t": 2000, "source": "i", "event": "state", "from": "CREATED", "to": "RUNNING"},
    *(
        {
            "t": t,
            "source": "i",
            "event": "assignment",
            "threads": [{"thread": "x-i-StreamThread-1", "state": "", **held}],
        }
        for t, held in (
            (2000, {"active": ["0_0"], "standby": []}),
            (4000, {"active": [], "standby": ["0_0"]}),
            (7000, {"active": ["0_0"], "standby": []}),
        )
    ),
    {"t": 6000, "source": "driver", "event": "instance", "name": "i", "action": "killed"},
    {"t": 9000, "source": "driver", "event": "phase", "name": "drain"},
)


def a_cell(streams: str = "3.4.0", variant: str = "DEFAULT_CONFIG", scenario: str = "enumerator") -> Cell:
    """A cell on the newest brokers; `A → B` has a restart."""
    one, _, other = streams.partition(" → ")
    return Cell(scenario, variant, Release.parse(one), BROKER, Release.parse(other) if other else None)


def measured_as(verdict: str, cell: Cell | None = None, day: int = 1, **fields: Any) -> Measurement:
    """What a run of a day of November made of a cell."""
    judged = Verdict(verdict)
    is_red, is_green = judged in (Verdict.KNOWN, Verdict.REGRESSION), judged in (Verdict.CLEAN, Verdict.FIXED)
    said: dict[str, Any] = {
        "cell": cell or a_cell(),
        "run": f"202611{day:02}T021500-aaaa",
        "created": f"2026-11-{day:02}T02:15:00+00:00",
        "verdict": judged,
        "sentence": "14 duplicate-id: expected." if is_red else f"It is {verdict}.",
        "commit": "abc1234",
        "harness": HARNESS,
        "machine": "Linux 6.8 x86_64, 2 cores, 16 GiB or more, a CPU, Java 17",
        "trials": 3,
        "exercised": 3,
        "red": 3 if is_red else 0,
        "anomalies": {"duplicate-id": 14} if is_red else {},
        "issues": ("KAFKA-14172",) if judged is Verdict.KNOWN else (),
        "witnesses": (WITNESS,) if is_red else (),
        "controls": (ControlSeen("enumerator-DEFAULT_CONFIG-s3.3.1-b4.4.0", 3, 3),) if is_green else (),
        "plants": (Standing("put-lost", 3, 3, 0.02),) if is_green else (),
        "excluded_rate": 0.63 if is_green else None,
        "missed": 0.02 if is_green else None,
        "seeds": (1, 2, 3),
        "seconds": 9.5,
    }
    return Measurement(**{**said, **fields})
