"""KAFKA-18943: when an idle task is revoked, the open transaction of the tasks that stay must not be committed.

Under exactly-once v2 all tasks of a stream thread share one producer, and so one transaction. From 3.4.0 to 3.9.0 a
thread from which a task is revoked commits that transaction even if the task has nothing to commit; what the remaining
tasks have written is then committed without the offsets of their input. If the thread dies before its next commit, that
input is processed a second time.

A trial commits the first records, and starts the application again with one thread and an endless commit interval. Only
records of one partition flow, so that the task of the other one is idle, and when they are processed a second thread is
added, which takes over one task. Then the process is killed, started again, and gets the rest.

A trial is *exercised* when the idle task was the one that moved, the other stayed, and records of it were processed and
not committed when the process was killed. What must be emitted is what the enumerator's promise says: each ID once, for
each record of the input one of the output. Without the kill the next commit repairs the output, and only the log of the
transactions reports (`torn-transaction`).
"""

import random
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from onceproof.faults.base import Instance
from onceproof.model.cell import Trial
from onceproof.model.parameter import BaseParameters
from onceproof.scenarios import enumerator
from onceproof.scenarios.base import (
    Exercise,
    Scenario,
    ScenarioContext,
    Variant,
    Workload,
    behind,
    partition_of_key,
    refuse_restarts,
    values_in,
    variants_of,
)

PARTITIONS = enumerator.PARTITIONS
BUSY = 0  # the partition whose task has records; as tasks are assigned in their order, that of the other one moves
NAME = "instance-1"
LATER = 1_000  # records that come when the process is back
NEVER = 600_000  # ms: commit interval, and timeout of a transaction, that do not end within a trial

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(BaseParameters):
    """How much the busy task writes while another one of its thread is idle."""

    committed: int = Field(1_000, ge=1, description="records that are committed before")
    burst: int = Field(5_000, ge=1, description="records that flow into the open transaction")
    caching: bool = Field(False, description="whether the stores are cached")
    kill: bool = Field(True, description="whether the process is killed; else it is closed cleanly")
    idle: bool = Field(True, description="whether the task that is revoked has nothing to commit")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "An idle task is revoked while a transaction is open; then the process is killed."),
    Variant("CACHED", "As DEFAULT_CONFIG with cached stores.", {"caching": True}),
    Variant("CLOSED", "As DEFAULT_CONFIG; the process is closed cleanly.", {"kill": False}),
    Variant(
        "NOT_IDLE", "As DEFAULT_CONFIG; both tasks have something to commit, so offsets go with it.", {"idle": False}
    ),
)


values = values_in(Parameters, VARIANTS)


def workload(trial: Trial) -> Workload:
    """Distinct keys in an order drawn from the seed; key and value are equal. The burst is of the busy partition."""
    parameters = values(trial)
    first = list(range(parameters.committed))
    burst = [
        key
        for key in range(parameters.committed, parameters.committed + PARTITIONS * parameters.burst)
        if not parameters.idle or partition_of_key(key, PARTITIONS) == BUSY
    ][: parameters.burst]
    begin = parameters.committed + PARTITIONS * parameters.burst
    rng = random.Random(trial.seed)
    rng.shuffle(first)
    rng.shuffle(burst)
    return Workload([(key, key) for key in first], [(key, key) for key in [*burst, *range(begin, begin + LATER)]])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of `enumerator`, whose IDs show which input was processed twice."""
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "partitions": PARTITIONS,
        "caching": values(trial).caching,
    }


def config(_trial: Trial) -> Mapping[str, str]:
    """A transaction that never times out, so that only a commit of the idle task can end it."""
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        "producer.transaction.timeout.ms": str(NEVER),
        "main.consumer.session.timeout.ms": "4000",  # the killed member is missed after these
    }


def refusal(trial: Trial) -> str | None:
    """Refuses a restart."""
    return refuse_restarts(trial.cell)


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Fill an open transaction, let the idle task move, kill, start again, drain."""
    parameters, first = values(lab.trial), lab.workload.first
    burst, rest = lab.workload.second[: parameters.burst], lab.workload.second[parameters.burst :]
    with lab.phase("first records"):
        lab.instances.start(NAME)
        lab.await_(f"{len(first):,} records to be committed", lambda: lab.count_committed() >= len(first))
        lab.instances.stop(NAME)
    with lab.phase("revocation"):
        instance = lab.instances.start(NAME, config={"commit.interval.ms": str(NEVER)})
        lab.await_("one thread to run both tasks", lambda: _count_dealt(instance) == [PARTITIONS])
        (stays,) = instance.threads
        lab.produce("burst", burst)
        lab.await_(f"{len(burst):,} records to be processed", lambda: instance.processed >= len(burst))
        lab.instances.step("add-thread", NAME)
        lab.await_("two threads to run a task each", lambda: _count_dealt(instance) == [1] * PARTITIONS)
        kept = [task for thread in instance.threads if thread["thread"] == stays["thread"] for task in thread["active"]]
        committed = lab.count_committed() - len(first)
        lab.note("revoked", kept=kept, committed=committed, open={"input": behind(first, PARTITIONS)})
        if parameters.kill:
            lab.instances.kill(NAME)
        else:
            lab.instances.stop(NAME)
    with lab.phase("drain"):
        lab.instances.start(NAME)
        lab.produce("rest", rest)
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    return _exercise(parameters, kept, len(burst) - committed)


def _count_dealt(instance: Instance) -> list[int]:
    """How many active tasks each of its threads has; none while one of them does not run."""
    running = all(thread["state"] == "RUNNING" for thread in instance.threads)
    return [len(thread["active"]) for thread in instance.threads] if running else []


def _exercise(parameters: Parameters, kept: list[str], uncommitted: int) -> Exercise:
    stayed = kept == [f"0_{BUSY}"]
    idle = "idle" if parameters.idle else "busy"
    ended = "killed" if parameters.kill else "closed"
    reason = (
        f"The thread kept task {', '.join(kept)}; the other one, which was {idle}, was revoked. {uncommitted:,} "
        f"records of the burst were processed and not committed when the process was {ended}."
    )
    return Exercise(stayed and uncommitted > 0 and parameters.idle, reason, all_steps_tried=stayed)


# --- system --------------------------------------------------------------------------------------------------

SCENARIO = Scenario(
    name="idle-task",
    title="The revocation of an idle task commits nothing of another one (KAFKA-18943)",
    parameters=Parameters,
    variants=VARIANTS,
    system=lambda _: enumerator.SYSTEM,
    partitions=lambda _: PARTITIONS,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "3.8.1"),
    refusal=refusal,
    seconds=24,
)
