"""KAFKA-16017: a task that is closed while it is restored must not claim more than it has restored.

Under exactly-once a task that is corrupted (`TaskCorruptedException`: a commit timed out, a checkpoint is missing) is
closed, its store is wiped and restored from the changelog. If the application is closed before that is done, the task
writes a checkpoint of how far its store is. Releases with the bug write the offset of what the task itself sent to the
changelog last, before it was corrupted: so its end. The next start trusts that, and the store lacks forever what had
not been restored.

The application corrupts its task itself, once, after `corrupt.after` records; until it is closed it restores only one
record at a time and pauses after each, so that it is not done before. Then it starts again over the same state, and
gets the rest. Each record of a key must find the number of the one before (as in `multirunner`), and at the end the
store must be what its changelog says. A trial is *exercised* when the restoration had begun and not ended when the
application was closed.

Without transactions (parameter `guarantee`) the store is not wiped, but read again over what it holds, and goes back to
old values meanwhile: the same bug. From 3.8.0 on nothing is restored then, and a trial is not exercised.
"""

import random
import shutil
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from onceproof.faults.base import Instance
from onceproof.model.cell import Trial
from onceproof.scenarios import multirunner
from onceproof.scenarios.base import (
    TRANSACTIONAL,
    Exercise,
    Guarantee,
    Scenario,
    ScenarioContext,
    TransactionalStores,
    Variant,
    Workload,
    behind,
    transactional_stores,
    values_in,
    variants_of,
)

PARTITIONS = 1
NAME = "instance-1"

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(TransactionalStores):
    """When the task corrupts itself, and how slowly it is then restored."""

    keys: int = Field(1_000, ge=1, description="distinct keys")
    records: int = Field(20_000, ge=1, description="records that come before the task is corrupted")
    corrupt: bool = Field(
        True, description="whether the task is corrupted; else it is restored from nothing at a start"
    )
    rest: int = Field(5_000, ge=1, description="records that come when the application is back")
    pause: int = Field(5, ge=1, description="ms after each record that is restored, until the application is closed")
    guarantee: Guarantee = Field("exactly_once_v2", description="processing guarantee")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "A task is corrupted; while it is restored the application is closed, and starts again."),
    Variant(
        "NOT_CORRUPTED",
        "As DEFAULT_CONFIG; the task is not corrupted, but its state is removed, so that it has sent nothing itself.",
        {"corrupt": False},
    ),
    Variant("TRANSACTIONAL", "As DEFAULT_CONFIG with transactional stores (KIP-892).", {TRANSACTIONAL: True}),
)


values = values_in(Parameters, VARIANTS)


def workload(trial: Trial) -> Workload:
    """Numbered records of drawn keys: those before the corruption, and the rest for after the restart."""
    parameters, rng = values(trial), random.Random(trial.seed)
    numbers: Counter[int] = Counter()
    made = []
    for key in rng.choices(range(parameters.keys), k=parameters.records + parameters.rest):
        numbers[key] += 1
        made.append((key, numbers[key]))
    return Workload(made[: parameters.records], made[parameters.records :])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `counting`."""
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "caching": False,
        "stores": "rocksdb",
    }


def config(trial: Trial) -> Mapping[str, str]:
    """A static member with one thread, so that the corrupted task comes back to it."""
    parameters = values(trial)
    return {
        "processing.guarantee": parameters.guarantee,
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        "group.instance.id": NAME,  # so that it rejoins the group at once
        **transactional_stores(parameters),
    }


SLOWLY = {"restore.consumer.max.poll.records": "1"}  # of a process that is closed before it has restored everything


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Fill the store, have the task restored, close in the middle of that, start again, drain."""
    parameters, first = values(lab.trial), lab.workload.first
    slowly = {"restore.pause.ms": parameters.pause}
    corrupted = {"corrupt.after": len(first)} if parameters.corrupt else {}
    with lab.phase("fill"):
        instance = lab.instances.start(NAME, config=SLOWLY, app=slowly | corrupted)
        lab.await_(f"{len(first):,} records to be committed", lambda: lab.count_committed() >= len(first))
        if parameters.corrupt:
            lab.produce("rest", lab.workload.second)
        else:
            lab.instances.stop(NAME)
            shutil.rmtree(lab.instances.state_directory(NAME))
            instance = lab.instances.start(NAME, config=SLOWLY, app=slowly)
    with lab.phase("restoration"):
        lab.await_("the store to be restored", lambda: _find_restoration(instance)["end"] > 0)
        lab.instances.stop(NAME)
        begun, ended = _find_restoration(instance), instance.last.get("restored")
        interrupted = _lacking(instance) > 0 and (ended is None or ended["t"] < begun["t"])
        if interrupted:
            lab.note("interrupted", store=begun["store"], end=begun["end"], open={"input": behind(first, PARTITIONS)})
    with lab.phase("drain"):
        lab.instances.start(NAME)
        if not parameters.corrupt:
            lab.produce("rest", lab.workload.second)
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    reason = (
        f"The application was closed {'while' if interrupted else 'after'} {_lacking(instance):,} records of a "
        f"store were restored{', its task having been corrupted' if parameters.corrupt else ' at a start'}."
    )
    return Exercise(interrupted and parameters.corrupt, reason, all_steps_tried=interrupted)


def _find_restoration(instance: Instance) -> Mapping[str, Any]:
    """Its report when it last began to restore its store; a release may report that of an empty one, too."""
    return instance.last.get("restore", {"from": 0, "end": 0})


def _lacking(instance: Instance) -> int:
    """How many records its store lacked then."""
    begun = _find_restoration(instance)
    return int(begun["end"]) - int(begun["from"])


# --- system --------------------------------------------------------------------------------------------------

SCENARIO = Scenario(
    name="corrupted-task",
    title="A task that is closed while it is restored claims no more than it has (KAFKA-16017)",
    parameters=Parameters,
    variants=VARIANTS,
    system=lambda _: multirunner.SYSTEM,
    partitions=lambda _: PARTITIONS,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "3.6.1"),
    observe=multirunner.observe,
    seconds=9,
    alike="records",
)
