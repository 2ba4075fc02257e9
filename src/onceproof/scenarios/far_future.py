"""CVE-2026-111496: a record of the far future must not keep a thread from its work.

A punctuator by stream time is due again an interval after the time at which it was called. Releases with the bug add
the two without looking: near the end of time (2^63 ms) the sum is below 0, so the punctuator is due again at once, and
again: the thread calls it forever. It processes nothing more and commits nothing, and since it does not poll either,
the next thread is given its tasks and the record.

A record has such a time if its producer says so, which brokers refuse by default since 4.0
(`message.timestamp.after.max.ms`, KIP-1030), or if the application takes it from what the record says, as
`valid until: forever`: no broker sees that. So does the application here (parameter `forever`); the output has the
time of the record itself, which tables can hold.

Records are committed; then one comes that is valid forever, and others after it. A trial is *exercised* when the
punctuator was called at its time and the next one would be due after the end of time.
"""

import random
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from onceproof.faults.base import Instance
from onceproof.model.cell import Trial
from onceproof.model.parameter import BaseParameters
from onceproof.scenarios.base import (
    Exercise,
    Role,
    Scenario,
    ScenarioContext,
    System,
    Variant,
    Workload,
    values_in,
    variants_of,
)

PARTITIONS = 1
NAME = "instance-1"
FOREVER = 2**31 - 1  # the value of a record that is valid forever; the application's own
END = 2**63 - 1  # of time, in ms
REACHED_WITHIN = 30.0  # seconds that the record has to be processed, or its thread to spin
GOES_ON_WITHIN = 10.0  # seconds that a healthy thread has for the rest

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(BaseParameters):
    """The records before and after the one of the far future, and the punctuator that it holds up."""

    committed: int = Field(500, ge=1, description="records that are committed before")
    later: int = Field(5_000, ge=1, description="records that come after the one that is valid forever")
    forever: int = Field(2**63 - 2, ge=1, description="ms since 1970 that are taken for the time of that one")
    punctuate_ms: int = Field(1_000, ge=1, description="ms of stream time between two punctuations")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "The punctuator would be called again after the end of time."),
    Variant("NEXT_CENTURY", "As DEFAULT_CONFIG; forever ends with the year 2100.", {"forever": 4_133_980_799_000}),
)


values = values_in(Parameters, VARIANTS)


def workload(trial: Trial) -> Workload:
    """Distinct keys with values drawn from the seed; the first record of the second part is valid forever."""
    parameters, rng = values(trial), random.Random(trial.seed)
    records = [(key, rng.randrange(1, FOREVER)) for key in range(parameters.committed + 1 + parameters.later)]
    first, (key, _), later = (
        records[: parameters.committed],
        records[parameters.committed],
        records[parameters.committed + 1 :],
    )
    return Workload(first, [(key, FOREVER), *later])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of `copy`, with the punctuator and the timestamp that means forever."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "punctuate.ms": parameters.punctuate_ms,
        "forever.ms": str(parameters.forever),
    }


def config(_trial: Trial) -> Mapping[str, str]:
    """A transaction timeout that ends soon, since the thread under trial may never commit."""
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        # Without a store nothing aborts the transaction of a thread that spins before it is over.
        "producer.transaction.timeout.ms": "5000",
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Commit some, have one come that is valid forever, and see whether its thread continues."""
    parameters, first, second = values(lab.trial), lab.workload.first, lab.workload.second
    with lab.phase("first records"):
        instance = lab.instances.start(NAME)
        lab.await_(f"{len(first):,} records to be committed", lambda: lab.count_committed() >= len(first))
    with lab.phase("forever"):
        everything = len(first) + len(second)
        lab.produce("forever", second)
        lab.holds_within(
            REACHED_WITHIN, lambda: _punctuations(instance, parameters) > 1 or lab.count_committed() >= everything
        )
        if (times := _punctuations(instance, parameters)) > 1:
            lab.note("spinning", instance=NAME, at=parameters.forever, times=times)
            lab.note("exercised")
        lab.await_(
            f"{len(second):,} records to be committed, the first of which is valid forever",
            lambda: lab.count_committed() >= everything,
            GOES_ON_WITHIN,
        )
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    after = parameters.forever + parameters.punctuate_ms - END
    due = f"{after:,} ms after the end of time" if after > 0 else f"{-after:,} ms before the end of time"
    times = _punctuations(instance, parameters)
    often = "once" if times == 1 else f"{times:,} times"
    reason = (
        f"The punctuator was called {often} at the time of the record that is valid forever; an interval later it is "
        f"{due}."
    )
    return Exercise(times > 0 and after > 0, reason, all_steps_tried=True)


def _punctuations(instance: Instance, parameters: Parameters) -> int:
    """How often the punctuator was called at the time of the record that is valid forever, as far as it is reported."""
    punctuated = instance.last.get("punctuated", {"at": None, "times": 0})
    return int(punctuated["times"]) if punctuated["at"] == parameters.forever else 0


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="copy",
    roles={"input": Role(), "output": Role()},
    promises=("deliveries", "output-order"),
    stores=0,
)
SCENARIO = Scenario(
    name="far-future",
    title="A record of the far future does not keep a thread from its work (CVE-2026-111496)",
    parameters=Parameters,
    variants=VARIANTS,
    system=lambda _: SYSTEM,
    partitions=lambda _: PARTITIONS,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "3.9.1"),
)
