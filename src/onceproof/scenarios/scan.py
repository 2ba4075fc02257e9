"""KAFKA-18326: a scan of a store must not find a deleted key, whatever is still in the store's cache.

The keys are put and committed; then the application starts again, so that its cache is cold: what was put is in the
store and not in the cache. Each further record deletes a key and scans at once, before anything is committed: the
deletion is in the cache only, and the scan must merge both. Releases with the bug skip a deletion in the cache as soon
as they see it, even if the store has yet to reach the key: if an earlier key is in the store and not in the cache, the
deleted key is found, a *ghost*.

So a scan can show it if the process has not put such a key itself. What each scan must find is a function of the
input's order: the number of keys and their sum are compared, request by request.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from onceproof.model.cell import Trial
from onceproof.model.parameter import BaseParameters
from onceproof.scenarios.base import (
    Exercise,
    Guarantee,
    Role,
    Scenario,
    ScenarioContext,
    StoreKind,
    System,
    Variant,
    Workload,
    behind,
    values_in,
    variants_of,
)

NAME = "instance-1"
PUT, DELETE = 1, 0  # values of the input

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(BaseParameters):
    """The keys that are deleted, and the scans that must not find them."""

    keys: int = Field(3_000, ge=1, description="keys that are put into the store, and then deleted")
    reach: int = Field(16, ge=1, description="how far the keys of a range may be from the one that was deleted")
    all_every: int = Field(100, ge=1, description="of so many deletions, by their keys, one scans the whole store")
    partitions: int = Field(2, ge=1, description="partitions of the input")
    stores: StoreKind = Field("rocksdb", description="kind of the store")
    caching: bool = Field(True, description="whether the store is cached")
    restart: bool = Field(
        True, description="whether the application starts again before it scans, so that its cache is cold"
    )
    guarantee: Guarantee = Field("exactly_once_v2", description="processing guarantee")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "A cached persistent store is scanned after a start, so with a cold cache."),
    Variant(
        "IN_MEMORY", "As DEFAULT_CONFIG with a store in memory, restored from its changelog.", {"stores": "in-memory"}
    ),
    Variant("AT_LEAST_ONCE", "As DEFAULT_CONFIG without transactions.", {"guarantee": "at_least_once"}),
    Variant("CACHING_DISABLED", "As DEFAULT_CONFIG; the store is not cached.", {"caching": False}),
    Variant("WARM_CACHE", "As DEFAULT_CONFIG without a start between: all keys are in the cache.", {"restart": False}),
)


values = values_in(Parameters, VARIANTS)


def workload(trial: Trial) -> Workload:
    """Each key is put once, then deleted once; both in an order drawn from the seed."""
    rng = random.Random(trial.seed)
    keys = list(range(values(trial).keys))
    puts, deletes = rng.sample(keys, len(keys)), rng.sample(keys, len(keys))
    return Workload([(key, PUT) for key in puts], [(key, DELETE) for key in deletes])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `scans`."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "caching": parameters.caching,
        "stores": parameters.stores,
        "reach": parameters.reach,
        "all.every": parameters.all_every,
    }


def config(trial: Trial) -> Mapping[str, str]:
    """A static member, so that the restart between puts and scans takes no rebalance."""
    return {
        "processing.guarantee": values(trial).guarantee,
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        "group.instance.id": NAME,  # so that it rejoins the group at once
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Put, start again, delete and scan, drain."""
    parameters = values(lab.trial)
    puts, deletes = lab.workload.first, lab.workload.second
    with lab.phase("put"):
        instance = lab.instances.start(NAME)
        lab.await_(f"{len(puts):,} records to be committed", lambda: lab.count_committed() >= len(puts))
        if parameters.restart:
            lab.instances.stop(NAME)
    with lab.phase("scan"):
        if parameters.restart:
            instance = lab.instances.start(NAME)
            lab.note("cold", open={"input": behind(puts, parameters.partitions)})
        lab.produce("deletes", deletes)
        lab.await_drained()
        # What it reports about itself may come a little later.
        lab.await_(f"{len(deletes):,} scans to be reported", lambda: instance.processed >= len(deletes))
    with lab.phase("leave"):
        lab.close_instances()
    cold = parameters.caching and instance.processed == len(deletes)  # it put nothing itself
    scans = scans_behind_others(puts, deletes, parameters) if cold else 0
    reason = (
        f"The process deleted and scanned {len(deletes):,} times, {scans:,} times with a key in the store before the "
        "deleted one that was not in its cache."
    )
    return Exercise(scans > 0, reason, all_steps_tried=True)


def scans_behind_others(
    puts: Sequence[tuple[int, int]], deletes: Sequence[tuple[int, int]], parameters: Parameters
) -> int:
    """How many scans met an existing key before the one that had just been deleted."""
    there = {key for key, _ in puts}
    number = 0
    for key, _ in deletes:
        there.discard(key)
        begin = 0 if key % parameters.all_every == 0 else key - parameters.reach
        number += any(k in there and (key - k) % parameters.partitions == 0 for k in range(begin, key))
    return number


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="scans",
    roles={"input": Role(), "output": Role(value_bytes=8), "records-changelog": Role()},
    promises=("scans", "output-order", "changelog", "stores"),
)
SCENARIO = Scenario(
    name="scan",
    title="A scan of a cached store finds no key that was deleted (KAFKA-18326)",
    parameters=Parameters,
    variants=VARIANTS,
    system=lambda _: SYSTEM,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    facts=lambda trial: {"reach": values(trial).reach, "all_every": values(trial).all_every},
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "3.9.0"),
    seconds=7,
    alike="records",
)
