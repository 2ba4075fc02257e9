"""A record that is joined with a versioned table gets what its key was at the time of the record, whatever happens.

A versioned store (KIP-889) keeps the history of each key for a while, the `retention`. A stream that is joined with
such a table (KIP-914) gets the version that was valid at the time of each record, and not the last one: so neither side
need be in order. A version that is older than the youngest one of the table by more than the retention is dropped, and
a record as old as that gets a version only if it is the last one of its key. A table without versions gives what was
put last. Both come from one topic, so the output is a function of the order of a partition.

What can go wrong: the last versions lie in one part of a RocksDB, older ones in segments by the time at which they end,
and all are restored from a changelog in which they are out of order. The new owner of a task must have the same
history as of the last commit, or records get another version, or none, long after.

A store that is opened again over what it left cleanly knows neither its segments nor its time, both of which it
keeps in memory and learns from what is restored or put: a record that asks for a version in a segment gets none
(variant `RESTARTED`), and what is too old is taken, and given, until the next version comes (`LATE`, in which alone any
comes after the fault). Both must be red on every release with versioned stores. Where all is restored neither is seen.

What is restored in one batch is put as of the time of its last record. A deletion that is older than that by more than
the retention is not kept; so a version that came late, and that the deletion had ended already, is taken for the last
one: what was deleted is back (variant `REVIVED`, in which alone such versions come). That must be red, too.

With a `grace` period (KIP-923) a record that asks waits in a buffer until its stream has advanced by that, so the time
of the stream must advance: changes are then records of it, too. The buffer has a changelog in which the keys are as
they are in RocksDB, the time first. A restoration takes them for keys of windows, so what waited is never emitted
(variant `GRACE`). A buffer that is opened again has forgotten how many wait, and since when, so after the restart some
are passed over (variant `GRACE_RESTARTED`). Both must be red on every release with such buffers. In these variants the
table is complete before anyone asks, and each key is asked for once, in order.

A trial is *exercised* when the fault took effect; without one, when the store was closed cleanly and opened again as it
was left, and records asked for versions of it. One in memory must have been restored instead.
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from onceproof.faults import OF_DISK, OF_GROUPS, instance_kill, pause
from onceproof.model.cell import Cell, Trial
from onceproof.model.files import StorePlan
from onceproof.model.parameter import Share
from onceproof.model.release import Release
from onceproof.scenarios.base import (
    ROLLING,
    TRANSACTIONAL,
    Exercise,
    Group,
    Role,
    Scenario,
    ScenarioContext,
    Stamped,
    System,
    TransactionalStores,
    Variant,
    Workload,
    behind,
    find_restored_anew,
    membership,
    refuse_fault_of_disk,
    rejoining,
    runs_its_task,
    transactional_stores,
    values_in,
    variants_of,
)
from onceproof.scenarios.internal_topics import keep_versions
from onceproof.scenarios.two_instances import inject, refuse_group, start_other

NAME = "instance-1"
VERSIONED = "versioned"
CHANGELOG = "versions-changelog"
INTEGER_SERDE = "org.apache.kafka.common.serialization.Serdes$IntegerSerde"
DELETION = 0  # value of a record that deletes its key
CHANGES = 0.3  # share of the records that change the table
OUT_OF_ORDER = 0.4  # share of the records, changes or not
JUST_DELETED = 50  # keys of which one gets a version that its deletion has ended already
TOO_OLD = 0.1  # share of the first records
WAITS_FROM = Release(3, 6, 0)  # KIP-923

# --- variants ------------------------------------------------------------------------------------------------

KILLED = {"fault": instance_kill.FAULT.name}
WAITING: dict[str, Any] = {"grace": 1_000, "retention": 120_000, "first": 20_000}


class Parameters(Group, TransactionalStores):
    """The versions in the table, for how long it keeps them, and how late records of the stream come."""

    stores: Literal["versioned", "rocksdb", "in-memory"] = Field("versioned", description="kind of the table's store")
    retention: int = Field(6_000, ge=2, description="ms of its history that a versioned table keeps")
    grace: int = Field(0, ge=0, description="ms for which a record waits for versions; 0: not at all")
    keys: int = Field(200, ge=1, description="keys of the table")
    deletions: Share = Field(0.1, description="share of the changes of the table that delete their key")
    ended: Share = Field(0.0, description="share of the versions out of order that a deletion has ended already")
    first: int = Field(
        14_000, ge=1, description="records before the fault, a millisecond apart, of which some are too old"
    )
    records: int = Field(20_000, ge=1, description="records that flow when the fault is injected, a millisecond apart")
    late: Share = Field(0.0, description="share of these that is too old")
    partitions: int = Field(4, ge=1, description="partitions of the input")
    standbys: int = Field(0, ge=0, description="standby replicas")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "A versioned table; an instance is killed.", KILLED),
    Variant("STANDBY", "As DEFAULT_CONFIG with a standby of each task to take it over.", {**KILLED, "standbys": 1}),
    Variant("UNVERSIONED", "As DEFAULT_CONFIG; the table has the last version only.", {**KILLED, "stores": "rocksdb"}),
    Variant("IN_MEMORY", "As UNVERSIONED with the table in memory.", {**KILLED, "stores": "in-memory"}),
    Variant("TRANSACTIONAL", "As DEFAULT_CONFIG with transactional stores (KIP-892).", {**KILLED, TRANSACTIONAL: True}),
    Variant(
        "PAUSED",
        "As DEFAULT_CONFIG; instead an instance stands still, loses its tasks, and wakes as a zombie.",
        {"fault": pause.FAULT.name},
    ),
    Variant("RESTARTED", "As DEFAULT_CONFIG; instead the only instance is closed cleanly and started again."),
    Variant(
        "LATE",
        "As RESTARTED; most records that follow are too old, so that one comes first to the store.",
        {"late": 0.9},
    ),
    Variant(
        "REVIVED",
        "As DEFAULT_CONFIG; half of the changes delete, and versions come late that a deletion has ended already.",
        {**KILLED, "ended": 0.5, "deletions": 0.5, "keys": 5_000},
    ),
    Variant(
        "GRACE", "A versioned table, for which records wait (KIP-923); an instance is killed.", {**KILLED, **WAITING}
    ),
    Variant(
        "GRACE_RESTARTED", "As GRACE; instead the only instance is closed cleanly and started again.", dict(WAITING)
    ),
    replace(
        ROLLING,
        description="As DEFAULT_CONFIG, with twice the history; instead the group goes over to another release.",
        parameters={**ROLLING.parameters, "retention": 12_000, "first": 26_000},
    ),
)


values = values_in(Parameters, VARIANTS)


def refusal(trial: Trial) -> str | None:
    """Refuses a release without versioned stores, or a fault of the disk where there is none."""
    cell, parameters = trial.cell, values(trial)
    if parameters.stores == VERSIONED:
        for release in (cell.streams, cell.running):
            if not release.has_versioned_stores:
                return f"Kafka Streams {release} has no versioned stores (KIP-889); take 3.5.0 or later."
    if parameters.grace and (reason := _refuse_waiting(cell, parameters)):
        return reason
    on_disk = parameters.stores != "in-memory"
    return refuse_fault_of_disk(parameters, on_disk=on_disk) or refuse_group(cell, parameters, on_disk=on_disk)


def _refuse_waiting(cell: Cell, parameters: Parameters) -> str | None:
    """Refuses a grace period that the release or the table does not have, and records that it would mix up."""
    oldest = min(cell.streams, cell.running)
    if not oldest.since(WAITS_FROM):
        return f"joins of Kafka Streams {oldest} do not wait (KIP-923); take {WAITS_FROM} or later, or grace=0."
    if parameters.stores != VERSIONED:
        return f"only a join with a versioned table waits (KIP-923); take stores={VERSIONED}, or grace=0."
    if parameters.late or parameters.ended:
        return "with a grace period all records come in order; take grace=0, or late=0 and ended=0."
    all_of_them = parameters.first + parameters.records + parameters.grace
    if parameters.records > parameters.first or parameters.retention <= all_of_them:
        return (
            f"with a grace period each key is asked for once, within the history: take first={parameters.first} "
            f"or fewer records than that, and a retention above {all_of_them:,} ms."
        )
    return None


def _waiting(parameters: Parameters, rng: random.Random) -> list[Stamped]:
    """First a version of each key, then one that asks for it, all in order; and of each partition one that is younger.

    When the last ones come all waits are over: they change the table, so that no wait depends on them.
    """
    first, all_of_them = parameters.first, parameters.first + parameters.records
    asked = rng.sample(range(first), parameters.records)
    end = all_of_them + parameters.grace + 1
    return [
        *(Stamped(key, -(key + 1), key) for key in range(first)),
        *(Stamped(key, now + 1, now) for now, key in enumerate(asked, first)),
        *(Stamped(first + place, -(end + place), end) for place in range(parameters.partitions)),
    ]


def generate(trial: Trial) -> list[Stamped]:
    """The records, drawn from the seed, each with a number of its own: versions below 0, deletions, those that ask.

    Most are in order, some out of it within the retention, some too old.
    """
    parameters, rng, made = values(trial), random.Random(trial.seed), list[Stamped]()
    if parameters.grace:
        return _waiting(parameters, rng)
    kept, deleted = parameters.retention, dict[int, int]()
    for now in range(parameters.first + parameters.records):
        at, value, late = now, now + 1, TOO_OLD if now < parameters.first else parameters.late
        is_change = rng.random() < CHANGES
        if is_change:
            value = DELETION if rng.random() < parameters.deletions else -value
        if now >= 2 * kept and rng.random() < late:
            at -= rng.randint(kept + kept // 4, 2 * kept)
        elif rng.random() < OUT_OF_ORDER:
            at -= rng.randrange(min(kept // 4 if is_change else kept, now) + 1)
        key = rng.randrange(parameters.keys)
        if value < 0 and now - kept <= at < now and parameters.ended and deleted and rng.random() < parameters.ended:
            key = rng.choice(list(deleted)[-JUST_DELETED:])
            at = max(deleted[key] - rng.randint(1, kept // 8), 0)
        elif is_change and not parameters.ended and now - kept <= at <= deleted.get(key, -1):
            at = now
        if value == DELETION:
            deleted[key] = max(at, deleted.pop(key, at))  # the last one comes last
        made.append(Stamped(key, value, at))
    return made


def workload(trial: Trial) -> Workload:
    """Keys and values of the records; none is preloaded, since they have their own times."""
    made = generate(trial)
    return Workload([], [(record.key, record.value) for record in made], times=[record.at for record in made])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `as-of-join`."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "stores": parameters.stores,
        "retention.ms": parameters.retention,
        "caching": False,
        **({"grace.ms": parameters.grace} if parameters.grace else {}),
    }


def config(trial: Trial) -> Mapping[str, str]:
    """A short commit interval, and an instance that is restarted is back in its group at once."""
    parameters = values(trial)
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": str(parameters.standbys),
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        **rejoining(parameters),
        **membership(parameters),
        **transactional_stores(parameters),
        # The buffer of records that wait takes these before 3.8.1 and 3.9.1 (KAFKA-18479).
        **(dict.fromkeys(("default.key.serde", "default.value.serde"), INTEGER_SERDE) if parameters.grace else {}),
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Make a history of the table, then inject the fault, or start again, while more of both sides flow."""
    parameters, made = values(lab.trial), lab.workload.times
    fault = parameters.injected
    begin = int(lab.now() * 1_000) - max(made) - 1  # the youngest record is made now
    times = [begin + at for at in made]
    first, flow = slice(parameters.first), slice(parameters.first, None)
    records = lab.workload.second
    with lab.phase("start"):
        lab.instances.start(NAME)
        if fault:  # before there is a history, so that no store is left cleanly on the way
            start_other(lab)
    with lab.phase("first"):
        lab.produce("first", records[first], timestamps=times[first])
        lab.await_(f"{parameters.first:,} records to be committed", lambda: lab.count_committed() >= parameters.first)
    if fault:
        fault_outcome = inject(lab, fault, "flow", records[flow], times[flow])
        with lab.phase("leave"):
            lab.close_instances()
        return Exercise.of(fault_outcome)
    with lab.phase("restart"):
        lab.instances.stop(NAME)
        before = len(lab.events)
        again = lab.instances.start(NAME)
        lab.await_("the instance to be back", lambda: runs_its_task(again))
        anew = find_restored_anew(lab.events[before:])
        if not anew:
            before_it = behind(records[first], parameters.partitions)
            lab.note("reopened", store="versions", committed=lab.count_committed(), open={"input": before_it})
    with lab.phase("flow"):
        lab.produce("flow", records[flow], timestamps=times[flow])
        lab.await_drained()
        # What it reports about itself may come a little later.
        following = len(records[flow])
        lab.await_(f"{following:,} records to be reported", lambda: again.processed >= following)
    with lab.phase("leave"):
        lab.close_instances()
    asked = sum(value > 0 for _, value in records[flow])
    late = sum(at < parameters.first + number - parameters.retention for number, at in enumerate(made[flow]))
    stores = f"restored from the beginning: {', '.join(anew)}" if anew else "its stores were opened as it had left them"
    reason = (
        f"{NAME} was closed cleanly with {parameters.first:,} records committed, and started again: {stores}. Of "
        f"{parameters.records:,} that followed, {asked:,} asked for a version, and {late:,} were too old."
    )
    as_it_should = bool(anew) == (parameters.stores == "in-memory")
    return Exercise(asked > 0 and as_it_should, reason, all_steps_tried=True)


def facts(parameters: Parameters) -> dict[str, int]:
    """How long a version is kept (0: forever), and whether results wait for their grace period."""
    waits = {"waits": 1} if parameters.grace else {}
    return {"retention": parameters.retention if parameters.stores == VERSIONED else 0, **waits}


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="as-of-join",
    roles={"input": Role(), "output": Role(value_bytes=8), CHANGELOG: Role(store=StorePlan("keys"))},
    promises=("deliveries", "output-order", "changelog", "entries"),
    stores=0,  # a table of versions, of which a key has many
    joins=("stream-table",),
)


def system(trial: Trial) -> System:
    """The topology; a versioned table keeps its history, and so does its changelog."""
    parameters = values(trial)
    if parameters.stores != VERSIONED:
        return SYSTEM
    history = Role(store=StorePlan("versions", parameters.retention))
    return replace(
        SYSTEM, roles={**SYSTEM.roles, CHANGELOG: history}, kept={CHANGELOG: keep_versions(parameters.retention)}
    )


SCENARIO = Scenario(
    name="as-of-join",
    title="A record gets the version of the table that was valid at its time (KIP-889, KIP-914)",
    parameters=Parameters,
    faults=(*OF_GROUPS, *OF_DISK),
    variants=VARIANTS,
    system=system,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    facts=lambda trial: facts(values(trial)),
    drive=drive,
    positive_control=("RESTARTED", "4.3.1"),
    refusal=refusal,
    seconds=20,
    alike="records",
)
