"""KAFKA-16407 and KAFKA-16434: an inner join by a foreign key must follow a key that comes from null, or becomes null.

Both tables are made of the input; while it flows, records of the left table change the key by which they ask for one
of the right table, again and again, also from null and to null, and records of the right table change their value.
Releases with the bug ignore a change from null (no result, or that of an older key) and to null (the result stays).

The join asks and answers through topics of its own, so the order and the number of its results vary; but the table
that they make at the end is that of the join of both tables, and is compared key by key. All has been processed when
the last record of the left table has got its result: it is behind all others in each of those topics.

Every foreign key is one of the right table, if not null. Where some are not (parameter `absent`), there is a race, for
which there is no known issue: see the scenario's page.
"""

import random
from collections.abc import Mapping
from typing import Any

from onceproof.model.cell import Trial
from onceproof.model.errors import UsageError
from onceproof.model.parameter import Parameter
from onceproof.scenarios.base import (
    Exercise,
    Lab,
    Role,
    Scenario,
    System,
    Variant,
    Workload,
    values_of,
    variants_of,
)

NAME = "instance-1"
NULL = 0  # value of a record of the left table without a foreign key
PARTITIONS = 1  # so that the records of both tables meet, whatever their keys

# --- variants ------------------------------------------------------------------------------------------------

PARAMETERS = {
    "left": Parameter(1_000, "keys of the left table", least=1),
    "right": Parameter(300, "keys of the right table", least=1),
    "records": Parameter(6_000, "changes of the tables, six of seven of the left one", least=1),
    "no.key": Parameter(True, "whether foreign keys come from null and become null"),
    "absent": Parameter(0.0, "share of the right table's keys that have no record, from 0 to 1", least=0),
    "stores": Parameter("rocksdb", "kind of the stores", choices=("in-memory", "rocksdb")),
    "caching": Parameter(False, "whether the tables are cached"),
    "guarantee": Parameter("exactly_once_v2", "processing guarantee", choices=("exactly_once_v2", "at_least_once")),
}
VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "Three of ten records of the left table have no foreign key."),
    Variant("AT_LEAST_ONCE", "As DEFAULT_CONFIG without transactions.", {"guarantee": "at_least_once"}),
    Variant("CACHED", "As DEFAULT_CONFIG with cached tables.", {"caching": True}),
    Variant("NO_NULL_KEY", "Every record of the left table has a foreign key.", {"no.key": False}),
)


def values(trial: Trial) -> dict[str, Any]:
    """The trial's parameters."""
    return values_of(trial, PARAMETERS, VARIANTS)


def validate(trial: Trial) -> None:
    """Refuse a share that is none.

    Raises:
        UsageError: it is more than 1.
    """
    share = values(trial)["absent"]
    if share > 1:
        raise UsageError(f"absent is {share:g}, but must be a share from 0 to 1.")


def last_key(trial: Trial) -> int:
    """The key of the last record."""
    own = values(trial)
    return int(own["left"] + own["right"])


def workload(trial: Trial) -> Workload:
    """Both tables, the right one first; then changes, and a last record of the left table that asks for key 0."""
    own = values(trial)
    rng = random.Random(trial.seed)
    right, left = range(own["right"]), range(own["right"], own["right"] + own["left"])

    def of_right(key: int) -> tuple[int, int]:
        return key, -rng.randint(1, 1_000_000)

    def of_left(key: int) -> tuple[int, int]:
        return key, NULL if own["no.key"] and rng.random() < 0.3 else rng.choice(right) + 1

    there = right[: max(1, round(len(right) * (1 - own["absent"])))]
    first = [of_right(key) for key in there]
    first += [of_left(key) for key in left]
    second = [
        of_right(rng.choice(there)) if rng.random() < 1 / 7 else of_left(rng.choice(left))
        for _ in range(own["records"])
    ]
    return Workload(first, [*second, (last_key(trial), 1)])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `foreign-key-join`."""
    own = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "caching": own["caching"],
        "stores": own["stores"],
        "last.key": last_key(trial),
    }


def config(trial: Trial) -> Mapping[str, str]:
    """Kafka Streams configuration."""
    return {
        "processing.guarantee": values(trial)["guarantee"],
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: Lab) -> Exercise:
    """Make both tables, change them, wait for the last result."""
    first, second = lab.workload.first, lab.workload.second
    with lab.phase("tables"):
        instance = lab.start_instance(NAME)
        lab.await_(f"{len(first):,} records to be committed", lambda: lab.committed() >= len(first))
    with lab.phase("changes"):
        lab.produce("changes", second)
        lab.await_drained()
        lab.await_("the result of the last record", lambda: "joined" in instance.last)
    with lab.phase("leave"):
        lab.close_instances()
    of_left = [(key, value) for key, value in (*first, *second) if value >= NULL]
    from_null, to_null = changes(of_left)
    reason = f"{from_null:,} foreign keys came from null and {to_null:,} became null, before the last result came."
    return Exercise(from_null > 0 and to_null > 0, reason, all_steps_tried=True)


def changes(of_left: list[tuple[int, int]]) -> tuple[int, int]:
    """How many foreign keys of the left table came from null, and how many became null."""
    before: dict[int, int] = {}
    from_null = to_null = 0
    for key, value in of_left:
        old = before.get(key, value)
        from_null += old == NULL != value
        to_null += old != NULL == value
        before[key] = value
    return from_null, to_null


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="foreign-key-join",
    roles={"input": Role(), "output": Role(value_bytes=8), "left-changelog": Role(), "right-changelog": Role()},
    promises=("joined", "stores"),
    stores=2,
    joins=("foreign-key", "table-table"),
)
SCENARIO = Scenario(
    name="foreign-key-join",
    title="A join by a foreign key follows a key from null and to null (KAFKA-16407, KAFKA-16434)",
    parameters=PARAMETERS,
    variants=VARIANTS,
    system=lambda _: SYSTEM,
    partitions=lambda _: PARTITIONS,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    control=("DEFAULT_CONFIG", "3.9.0"),
    validate=validate,
)
