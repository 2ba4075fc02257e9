"""KAFKA-19208: when a stream is left-joined with a global table, every record must be emitted.

A record asks for a key of the table, or for none: then there is nothing to join it with, but it must still be emitted
(KIP-962, from 3.7.0 on; before, such records are dropped by contract). Releases with the bug drop it: nothing fails,
and the record is gone.

KAFKA-7663: a global store instead of the table has a processor of its own that puts what it receives, here with a
number added (parameter `added`). Releases with the bug bypass the processor when they restore the store, which happens
to an in-memory one at each start: it then holds what was sent, and not what the processor makes of it.

KAFKA-21034: under exactly-once a table that was not closed cleanly must be wiped and read again. The process that
made it is killed (parameter `killed`) when RocksDB has flushed some of it. Releases with the bug find that it cannot be
trusted, and leave it where it is: `KafkaStreams.start()` fails, again and again.

The table is made from the application's own output: the first records of the input are its entries, and are emitted as
they are. When they are committed, the application starts again and so reads the whole table before it joins anything.
The result of each record is a function of the input alone, and is compared record by record.

Where a fault is injected, it hits one of two instances while they join, each with a table of its own,
and the trial is exercised when it took effect. An instance that is back reads the table again before it joins, so
nothing else must be emitted, nor in another order; without transactions some of it may come again. What a kill does to
a global table, the variants KILLED show.
"""

import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from onceproof.faults import OF_GROUPS, instance_kill, pause
from onceproof.faults.directory import WRITE_BUFFER, small_write_buffer
from onceproof.model.cell import Trial
from onceproof.model.parameter import Share
from onceproof.model.release import Release
from onceproof.scenarios.base import (
    ROLLING,
    Exercise,
    Group,
    Guarantee,
    Role,
    Scenario,
    ScenarioContext,
    StoreKind,
    System,
    Variant,
    Workload,
    behind,
    find_restored_anew,
    membership,
    rejoining,
    runs_its_task,
    values_in,
    variants_of,
)
from onceproof.scenarios.two_instances import inject, refuse_group, start_other

NAME = "instance-1"
GLOBAL = "global"  # the folder of global stores
TABLE = "entries"
FLUSHED_WITHIN = 20.0  # seconds that a table has until some of it is on disk
NO_KEY = 0  # value of a record that asks for none
PROMISED_FROM = Release(3, 7, 0)  # KIP-962
FLOWING = 20_000  # records while a fault is active

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(Group):
    """The table that every instance has as a whole, and what is added to it while an instance is away."""

    keys: int = Field(2_000, ge=1, description="keys that the table may have, and records that put them there")
    records: int = Field(6_000, ge=1, description="records that are joined with it")
    no_key: Share = Field(0.3, description="share of these that ask for no key")
    table: Literal["global-table", "global-store"] = Field("global-table", description="what they are joined with")
    added: int = Field(0, ge=0, description="what a global store's processor adds to the number of an entry")
    killed: bool = Field(False, description="whether the process that made the table is killed, and not closed")
    partitions: int = Field(2, ge=1, description="partitions of the input")
    stores: StoreKind = Field("rocksdb", description="kind of the table's store")
    guarantee: Guarantee = Field("exactly_once_v2", description="processing guarantee")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "Three of ten records ask for no key of the table."),
    Variant("AT_LEAST_ONCE", "As DEFAULT_CONFIG without transactions.", {"guarantee": "at_least_once"}),
    Variant("NO_NULL_KEY", "Every record asks for a key, though the table does not have all of them.", {"no.key": 0.0}),
    Variant(
        "GLOBAL_STORE",
        "A global store in memory, whose processor adds to what it puts, is restored at a start (KAFKA-7663).",
        {"table": "global-store", "added": 1_000_000, "stores": "in-memory", "no.key": 0.0},
    ),
    Variant(
        "GLOBAL_STORE_AS_IT_IS",
        "As GLOBAL_STORE; the processor puts what comes as it is.",
        {"table": "global-store", "stores": "in-memory", "no.key": 0.0},
    ),
    Variant(
        "KILLED",
        "The process that made the table is killed, and starts again over what is on disk (KAFKA-21034).",
        {"killed": True, "no.key": 0.0},
    ),
    Variant(
        "KILLED_AT_LEAST_ONCE",
        "As KILLED without transactions, under which the table may be trusted.",
        {"killed": True, "no.key": 0.0, "guarantee": "at_least_once"},
    ),
    Variant(
        "BOUNCED",
        "Every record asks for a key; one of two instances is closed and started again while they join.",
        {"fault": "bounce", "records": FLOWING, "no.key": 0.0},
    ),
    replace(ROLLING, parameters={**ROLLING.parameters, "records": FLOWING, "no.key": 0.0}),
)


values = values_in(Parameters, VARIANTS)


def workload(trial: Trial) -> Workload:
    """Entries of keys drawn from the seed, with values below 0; then records, each of its own key, that ask for one."""
    parameters = values(trial)
    rng = random.Random(trial.seed)
    keys = range(parameters.keys)
    entries = [(key, -rng.randint(1, 1_000_000)) for key in rng.choices(keys, k=len(keys))]
    asking = [
        (len(keys) + number, NO_KEY if rng.random() < parameters.no_key else rng.choice(keys) + 1)
        for number in range(parameters.records)
    ]
    return Workload(entries, asking)


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `global-join`."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "caching": False,
        "stores": parameters.stores,
        "table": parameters.table,
        **({"added": parameters.added} if parameters.added else {}),
    }


def config(trial: Trial) -> Mapping[str, str]:
    """Small write buffers if an instance is killed, so that the global store has something on disk."""
    parameters = values(trial)
    return {
        "processing.guarantee": parameters.guarantee,
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        **rejoining(parameters),
        **membership(parameters),
        **(small_write_buffer(WRITE_BUFFER) if parameters.killed else {}),
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Make the table, start again with all of it, join, drain."""
    entries, asking = lab.workload.first, lab.workload.second
    with lab.phase("table"):
        lab.instances.start(NAME)
        lab.await_(f"{len(entries):,} entries to be committed", lambda: lab.count_committed() >= len(entries))
        if values(lab.trial).killed:
            flushed = _kill_with_its_table(lab)
        else:
            lab.instances.stop(NAME, leave_group=values(lab.trial).injected is not None)
    fault, fault_outcome = values(lab.trial).injected, None
    before = len(lab.events)
    with lab.phase("join"):
        instance = lab.instances.start(NAME)
        lab.note("restored", open={"input": behind(entries, values(lab.trial).partitions)})
        lab.await_("the table to be read", lambda: runs_its_task(instance))
        if fault:
            start_other(lab)
        else:
            lab.produce("asking", asking)
            lab.await_drained()
            # What it reports about itself may come a little later.
            lab.await_(f"{len(asking):,} records to be reported", lambda: instance.processed >= len(asking))
    if fault:
        fault_outcome = inject(lab, fault, "asking", asking)
    with lab.phase("leave"):
        lab.close_instances()
    if fault_outcome:
        return Exercise.of(fault_outcome)
    there = {key for key, _ in entries}
    no_key = sum(value == NO_KEY for _, value in asking)
    found = sum(value - 1 in there for _, value in asking)
    reason = (
        f"Of {instance.processed:,} records that were processed with the whole table, {no_key:,} asked for no key and "
        f"{found:,} for one that it had."
    )
    if values(lab.trial).table == "global-store":
        anew = find_restored_anew(lab.events[before:])
        stores = f"restored from the beginning: {', '.join(anew)}" if anew else "it was not restored"
        reason += f" Its processor adds {values(lab.trial).added:,}; {stores}."
        return Exercise(found > 0 and values(lab.trial).added > 0 and bool(anew), reason, all_steps_tried=True)
    if values(lab.trial).killed:
        reason += f" The process that made the table was killed when {flushed:,} of its entries were on disk."
        wiped = values(lab.trial).guarantee == "exactly_once_v2"
        return Exercise(flushed > 0 and wiped, reason, all_steps_tried=True)
    return Exercise(no_key > 0, reason, all_steps_tried=True)


def _kill_with_its_table(lab: ScenarioContext) -> int:
    """Kill the process when RocksDB has flushed some of its table; the entries that are on disk then."""
    directory = lab.instances.state_directory(NAME) / GLOBAL
    lab.holds_within(FLUSHED_WITHIN, lambda: _is_flushed(directory))
    lab.instances.kill(NAME)
    on_disk = len(lab.instances.on_disk(NAME, GLOBAL).get(TABLE, ()))
    lab.note("crash", during="running", on_disk=on_disk)
    return on_disk


def _is_flushed(directory: Path) -> bool:
    """Whether a file of RocksDB's is done: its manifest is written after that."""
    with suppress(FileNotFoundError):  # RocksDB removes files, too
        flushed = [file.stat().st_mtime_ns for file in directory.rglob("*.sst")]
        manifests = [file.stat().st_mtime_ns for file in directory.rglob("MANIFEST-*")]
        return bool(flushed) and max(manifests, default=0) >= min(flushed)
    return False


def refusal(trial: Trial) -> str | None:
    """Refuses a release that promises nothing about these records, a processor that a table does
    not have, a zombie without transactions that would fence it, or a restart.
    """
    cell, parameters = trial.cell, values(trial)
    oldest = min(cell.streams, cell.running)
    if parameters.table != "global-store" and oldest < PROMISED_FROM:
        return (
            f"Kafka Streams {oldest} drops records that ask for no key by contract (KIP-962); choose "
            f"{PROMISED_FROM} or later."
        )
    if parameters.added and parameters.table != "global-store":
        return (
            f"added={parameters.added} is what a global store's processor adds; set table=global-store, or leave it "
            "out."
        )
    if parameters.killed and parameters.injected:
        return f"its only instance is killed before there is another one; leave out fault={parameters.fault}."
    if parameters.injected is pause.FAULT and parameters.guarantee == "at_least_once":
        return "the fault pause takes transactions to be fenced; leave it out, or guarantee=at_least_once."
    return refuse_group(cell, parameters, on_disk=parameters.stores == "rocksdb")


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="global-join",
    roles={"input": Role(), "output": Role(value_bytes=8)},
    promises=("deliveries", "output-order"),
    stores=0,  # a global store has no changelog of its own
    joins=("stream-global-table",),
)
STORE = replace(SYSTEM, joins=())  # a processor looks into a global store
SCENARIO = Scenario(
    name="global-join",
    title="A left join with a global table loses no record (KAFKA-19208)",
    parameters=Parameters,
    faults=tuple(fault for fault in OF_GROUPS if fault is not instance_kill.FAULT),
    variants=VARIANTS,
    system=lambda trial: STORE if values(trial).table == "global-store" else SYSTEM,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    facts=lambda trial: {"added": values(trial).added},
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "4.0.0"),
    refusal=refusal,
    seconds=8,
    alike="records",
    features=frozenset({"global_tables"}),
)
