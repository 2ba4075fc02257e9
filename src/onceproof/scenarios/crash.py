"""Reproduction 002, KAFKA-20685: an application is killed in a transaction, and must forget what it did there.

Under exactly-once a store may hold writes of the transaction that was open when the process died. Nothing distinguishes
them apart, so the next start must wipe the store and restore it from what was committed. Kafka Streams knows by the
checkpoint (where in the changelog the store stands): it is removed while a task runs and written when it closes, so a
store without a checkpoint is not to be trusted. A checkpoint that stays while the task runs defeats that.

A trial runs the application until 3,000 records are committed and closes it; starts it again, so that a store is
restored from a checkpoint; lets a burst flow into one transaction; kills the process in it; and starts it once more
over the same state directory. Three levels are checked, each with an anomaly of its own:

1. `stale-checkpoint`: the checkpoint is sampled while the burst flows. One that exists is wrong.
2. `skipped-wipe`: how the last start initialised each store, from its log and from where it restored. A store that is
   trusted is no anomaly where its directory, copied after the kill and opened, holds nothing of the open transaction.
   A store that the log does not call wiped must still have the databases that the killed process left; if they are
   new, the log is not understood, which is an error.
3. The damage. `lost-record`: a topology that drops what it has seen drops records that it has never emitted.
   `duplicate-id` and others: the enumerator, whose two stores were flushed at different points. And, whatever the
   topology does with it, `uncommitted-state`: the store, read before the first record, holds keys that no committed
   changelog record explains.

The first two test how Kafka Streams does it: they are reported, but turn a cell red only together with the third, or
where the registry expects them.

The writes of the open transaction must be on disk when the process dies, so RocksDB's write buffer is small, and so is
the cache of a cached store. A trial is *exercised* when the directory, copied after the kill and opened, holds records
of the transaction that was open then; with `during=restoration`, when restoration had not ended and the directory holds
restored records. An in-memory store leaves nothing on disk: it is a negative control, exercised when a transaction was
open, of which its changelog holds what must be skipped.

Where the group moves to another release instance by instance (`ROLLING`), the kill replaces the first bounce: the
process comes back on the other release, next to a second instance without a task, which is bounced afterwards.
"""

import math
import random
import re
import shutil
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from onceproof.faults import Injection, rolling_bounce
from onceproof.faults.base import Instance, run_fault
from onceproof.faults.directory import parse_checkpoint, small_write_buffer
from onceproof.faults.rolling_bounce import STATIC, bounces, make_config
from onceproof.model.anomaly import Comparison
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import NotUnderstoodError
from onceproof.model.phrases import NOT_EMPTY, TRUSTED, WIPED
from onceproof.model.release import Release
from onceproof.model.segments import OFFSETS
from onceproof.model.timeline import Event
from onceproof.scenarios import enumerator
from onceproof.scenarios.base import (
    INSTANCE,
    ROLLING,
    TRANSACTIONAL,
    Exercise,
    Role,
    Runtime,
    Scenario,
    ScenarioContext,
    StateUpdater,
    System,
    TransactionalOnRestart,
    Variant,
    Workload,
    refuse_no_state_updater,
    refuse_restart_pair,
    refuse_rolling,
    rolls,
    runs_its_task,
    runtime,
    state_updater,
    transactional_stores,
    values_in,
    variants_of,
)
from onceproof.scenarios.internal_topics import Kept, keep_versions, keep_windows

PARTITIONS = 1
TASK = "0_0"
NAME = "instance-1"
SECOND = "instance-2"  # of a group that moves to another release; it has no task
HELD_BACK = 1_000  # records of the burst that come only after the crash
COUNTER_KEY = 0  # at which the enumerator stores its counter
TRANSACTION_TIMEOUT = 120_000  # ms: no transaction may end by itself while it is observed
TIMES_OUT_AFTER = 10_000  # ms; of a process without a state directory, which has no successor, so that it must
RATE = 300.0  # records/s that are left for a group that moves to another release
KEPT_MINUTES = 60  # for which a store with times keeps them, see `StoreKind`
KEPT = 60_000 * KEPT_MINUTES  # ms
RESTORED_WITHIN = 30.0  # seconds that a restoration has until some of it is on disk

# The kinds of stores, and what the keys of their changelogs are.
KINDS = {
    "rocksdb": "integers",
    "rocksdb-timestamped": "integers",
    "versioned": "integers",
    "window": "windows",
    "session": "sessions",
    "in-memory": "integers",
}

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(StateUpdater, TransactionalOnRestart, Runtime, Injection):
    """Where the kill falls, and what the open transaction has written to which kind of store by then."""

    topology: Literal["dedup", "enumerator"] = Field("dedup", description="what the application does")
    committed: int = Field(3_000, ge=1, description="records that are committed before the crash")
    burst: int = Field(20_000, ge=HELD_BACK + 1, description="records that flow into the open transaction")
    commit_interval_ms: int = Field(30_000, ge=1, description="commit interval of the process that is killed")
    write_buffer_bytes: int = Field(65_536, ge=0, description="RocksDB's write buffer; 0 is Kafka Streams' own, 16 MiB")
    static_membership: bool = Field(True, description="whether the instance has a group.instance.id")
    during: Literal["running", "restoration"] = Field("running", description="where the crash falls")
    stores: Literal["rocksdb", "rocksdb-timestamped", "versioned", "window", "session", "in-memory"] = Field(
        "rocksdb", description="kind of the store `seen`"
    )
    caching: bool = Field(False, description="whether the stores are cached")
    cache_bytes: int = Field(
        65_536, ge=0, description="size of the cache, if they are; what falls out of it reaches RocksDB"
    )
    first_age: int = Field(
        0, ge=0, description="minutes by which the first records are older: a segment keeps half an hour"
    )
    punctuate_ms: int = Field(
        0, ge=0, description="how often a wall-clock punctuator writes to the store `seen`; 0 is never"
    )
    kills: int = Field(1, ge=1, description="how often the process is killed, each time in an open transaction")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "A topology that drops what it has seen, killed in an open transaction while RUNNING."),
    Variant(
        "ENUMERATOR",
        "The enumerator under the same kill: two stores, flushed at different points.",
        {"topology": "enumerator"},
    ),
    Variant("DURING_RESTORATION", "Killed while its store is restored; the wipe must fire.", {"during": "restoration"}),
    Variant(
        "STATE_UPDATER_DISABLED",
        "Negative control: without the state updater, where the release can do without.",
        {"state.updater": False},
    ),
    Variant(
        "SHORT_COMMIT_INTERVAL",
        "Committed every 500 ms, as in the reproduction: the open transaction holds what came since.",
        {"commit.interval.ms": 500},
    ),
    Variant(
        "ROCKSDB_OWN_MEMORY",
        "RocksDB's write buffer as Kafka Streams has it: nothing of the burst is on disk, so nothing can be lost.",
        {"write.buffer.bytes": 0},
    ),
    Variant("TIMESTAMPED", "The reproduction's kind of store: timestamped RocksDB.", {"stores": "rocksdb-timestamped"}),
    Variant(
        "VERSIONED",
        "A versioned store (KIP-889): a key has a value from the time of its record on.",
        {"stores": "versioned"},
    ),
    Variant("WINDOW", "A window store: a key is seen in the window of its record.", {"stores": "window"}),
    Variant("SESSION", "A session store: a key is seen in the session of its record.", {"stores": "session"}),
    Variant(
        "CACHED", "A cached store, of which most falls out of the cache within the transaction.", {"caching": True}
    ),
    Variant(
        "IN_MEMORY",
        "The negative control: a store in memory, of which nothing is left when its process is killed.",
        {"stores": "in-memory", "commit.interval.ms": 9_000},
    ),
    Variant(
        "PUNCTUATOR",
        "A wall-clock punctuator writes to the store, too: what no record that is delivered again writes again.",
        {"punctuate.ms": 10},
    ),
    Variant(
        "SEGMENTS",
        "As WINDOW; the open transaction is in another segment than what was committed.",
        {"stores": "window", "first.age": 40},
    ),
    Variant("TWO_KILLS", "Killed, started again, and killed again in the next open transaction.", {"kills": 2}),
    Variant("DYNAMIC_MEMBERSHIP", "Without a group.instance.id.", {STATIC: False}),
    Variant("TRANSACTIONAL", "Stores that take writes when they are committed (KIP-892).", {TRANSACTIONAL: "yes"}),
    Variant(
        "TRANSACTIONAL_SWITCHED_ON",
        "Transactional stores are switched on when the process that was killed starts again.",
        {TRANSACTIONAL: "from the restart on"},
    ),
    Variant(
        "TRANSACTIONAL_SWITCHED_OFF",
        "Transactional stores are switched off when the process that was killed starts again.",
        {TRANSACTIONAL: "until the restart"},
    ),
    replace(
        ROLLING,
        description="Killed, and started on another release next to a second instance, which is bounced to it then.",
    ),
)


values = values_in(Parameters, VARIANTS)


def workload(trial: Trial) -> Workload:
    """Distinct keys in an order drawn from the seed; key and value are equal."""
    parameters = values(trial)
    keys = list(range(parameters.committed + parameters.burst))
    random.Random(trial.seed).shuffle(keys)
    records = [(key, key) for key in keys]
    preloaded = 0 if parameters.first_age else parameters.committed  # those have their own times
    return Workload(records[:preloaded], records[preloaded:])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "caching": parameters.caching,
        **({"partitions": PARTITIONS} if parameters.topology == "enumerator" else {"stores": parameters.stores}),
        **({"punctuate.ms": parameters.punctuate_ms} if parameters.punctuate_ms else {}),
    }


def config(trial: Trial) -> Mapping[str, str]:
    """A transaction timeout beyond the kill, and write buffers so small that its writes are on disk by then."""
    parameters = values(trial)
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        "producer.transaction.timeout.ms": str(TIMES_OUT_AFTER if _in_memory(parameters) else TRANSACTION_TIMEOUT),
        # A dynamic member that was killed holds up its group until then.
        "main.consumer.session.timeout.ms": "4000",
        **({"group.instance.id": INSTANCE} if parameters.static_membership else {}),
        **runtime(parameters),
        # The task stays where it is, whatever instance joins.
        **({"acceptable.recovery.lag": "0"} if rolls(parameters) else {}),
        **(small_write_buffer(parameters.write_buffer_bytes) if parameters.write_buffer_bytes else {}),
        **({trial.cell.running.cache_size_config: str(parameters.cache_bytes)} if parameters.caching else {}),
        **state_updater(parameters),
        **transactional_stores(parameters),
    }


def _in_memory(parameters: Parameters) -> bool:
    return parameters.stores == "in-memory"


def _takes_uncommitted(parameters: Parameters) -> bool:
    """Whether the killed process leaves entries of its open transaction on disk."""
    return not _in_memory(parameters) and parameters.transactional_stores in ("no", "from the restart on")


def refusal(trial: Trial) -> str | None:
    """Refuses parameters that do not go together, or that the releases cannot run with."""
    cell, parameters = trial.cell, values(trial)
    if parameters.topology == "enumerator" and (parameters.stores, parameters.punctuate_ms) != ("rocksdb", 0):
        return "stores and punctuate.ms are settings of topology=dedup; leave them out with the enumerator."
    if reason := _refuse_kind(cell, parameters):
        return reason
    if parameters.during == "restoration" and parameters.kills > 1:
        return "kills goes with during=running, since a restoration is interrupted once; leave one of them out."
    if rolls(parameters) and (
        parameters.during,
        parameters.kills,
        parameters.static_membership,
        rolling_bounce.Parameters.of(parameters).back,
    ) != (
        "running",
        1,
        True,
        False,
    ):
        return (
            "a rolling bounce goes with during=running, one kill, static membership, which gives the task back to the "
            "instance that was killed, and no way back; leave the others out."
        )
    if reason := refuse_no_state_updater(cell, parameters):
        return reason
    restart = cell.restart_on
    static = parameters.static_membership
    if restart and static and cell.streams.decodes_assignments_of_newest and not restart.decodes_assignments_of_newest:
        return (
            f"a static member gets its old assignment back, and {restart} cannot decode the one of {cell.streams}; "
            "restart on 3.2.0 or later."
        )
    return refuse_rolling(cell, parameters) if rolls(parameters) else refuse_restart_pair(cell)


def _refuse_kind(cell: Cell, parameters: Parameters) -> str | None:
    """Refuses a kind of store that the releases lack, or that does not go with the other parameters."""
    kind = parameters.stores
    if kind == "versioned":
        for release in sorted({cell.streams, cell.running}):
            if not release.has_versioned_stores:
                return f"Kafka Streams {release} has no versioned stores (KIP-889); take 3.5.0 or later."
        if parameters.caching:
            return "a versioned store cannot be cached; leave out caching, or take another kind of store."
    if parameters.first_age and kind not in ("window", "session"):
        return "first.age is for stores with segments; take stores=window or stores=session, or leave it out."
    if parameters.first_age >= KEPT_MINUTES:
        return f"the store keeps {KEPT_MINUTES} minutes; take a smaller first.age than {parameters.first_age}."
    if parameters.punctuate_ms and kind in ("versioned", "window", "session"):
        return f"the keys of the punctuator are below 0, where a {kind} store is not checked; leave punctuate.ms out."
    if _in_memory(parameters) and parameters.during == "restoration":
        return "of a store in memory nothing is left when its restoration is interrupted; take one on disk."
    if _in_memory(parameters) and parameters.commit_interval_ms >= TIMES_OUT_AFTER:
        return (
            f"of a store in memory the open transaction must time out, after {TIMES_OUT_AFTER:,} ms; set a shorter "
            "commit.interval.ms."
        )
    return None


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Commit, close, start again, burst, kill (start again, burst, kill), start again, drain."""
    restoring = values(lab.trial).during == "restoration"
    fault = values(lab.trial).injected
    # Some records come only after the crash, so that the task always has one, and reports what its store held before.
    first, burst, rest = _shares(lab)
    with lab.phase("commit"):
        if not lab.workload.first:
            at = int(lab.now() * 1_000) - 60_000 * values(lab.trial).first_age
            lab.produce("first", first, timestamps=[at] * len(first))
        lab.instances.start(NAME)
        known = len(first)
        if restoring:  # a changelog long enough for a kill during its restoration
            known += len(burst)
            lab.produce("before", burst)
        lab.await_(f"{known:,} records to be committed", lambda: lab.count_committed() >= known)
        lab.instances.stop(NAME)
    with lab.phase("burst"):
        crash = _crash_while_restoring(lab) if restoring else _crash_each_time(lab, burst)
        ends = {f"{store}_end": lab.end(f"{store}-changelog") for store in _stores(lab.trial)}
    if crash.exercised:
        lab.note("exercised")  # whatever becomes of the restart
    with lab.phase("restart"):
        bulk = lab.produce("rest", rest, RATE if fault else None)
        release, upgrade_from = _first_bounce(lab) if fault else (lab.trial.cell.restart_on, None)
        last = lab.instances.start(
            NAME,
            release=release,
            config={
                "commit.interval.ms": "100",
                **make_config(upgrade_from),
                **transactional_stores(values(lab.trial), restarted=True),
            },
            app={"contents.folder": str(lab.instances.contents_folder())},
        )
        lab.await_("the stores to be looked at", lambda: "contents" in last.last)
        lab.measure(**ends)
        _tell_how_initialised(lab, last)
        if fault:
            fault_outcome = run_fault(fault, lab, lambda: bulk.make_last(fault.lasts))
            crash = replace(
                crash, exercised=crash.exercised and fault_outcome.bit, reason=f"{crash.reason} {fault_outcome.summary}"
            )
        bulk.full_speed()
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    return crash


def _shares(
    lab: ScenarioContext,
) -> tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]], Sequence[tuple[int, int]]]:
    """The records committed before the crash, what flows into the open transaction, and what comes only after it."""
    records, committed = [*lab.workload.first, *lab.workload.second], values(lab.trial).committed
    return records[:committed], records[committed:-HELD_BACK], records[-HELD_BACK:]


def _first_bounce(lab: ScenarioContext) -> tuple[Release, str | None]:
    """The release of the first bounce, and its `upgrade.from`: the process that is killed comes back with these."""
    return bounces(lab.trial.cell.streams, lab.trial.cell.running, rolling_bounce.Parameters.of(lab.parameters))[0]


def _stores(trial: Trial) -> tuple[str, ...]:
    return STORES[values(trial).topology]


def _tell_how_initialised(lab: ScenarioContext, instance: Instance) -> None:
    for store in _stores(lab.trial):
        now = databases(lab.instances.state_directory(NAME) / TASK, store)
        lab.note("initialised", **describe_initialisation(store, instance.log.read_text(), lab.events, now))


def _crash_each_time(lab: ScenarioContext, burst: Sequence[tuple[int, int]]) -> Exercise:
    """Kill the process as often as requested, each time in its share of the burst."""
    kills = values(lab.trial).kills
    share = math.ceil(len(burst) / kills)
    crashes = [_crash_while_running(lab, burst[n * share : (n + 1) * share], n) for n in range(kills)]
    return replace(
        crashes[-1],
        exercised=all(crash.exercised for crash in crashes),
        reason=" ".join(crash.reason for crash in crashes),
    )


def _crash_while_running(lab: ScenarioContext, burst: Sequence[tuple[int, int]], before: int) -> Exercise:
    """Kill the process when it has processed the burst and not committed all of it.

    After kills `before`, it first processes again what they left in open transactions.
    """
    parameters = values(lab.trial)
    instance = lab.instances.start(NAME, config={"commit.interval.ms": str(parameters.commit_interval_ms)})
    lab.await_("the instance to run its task", lambda: runs_its_task(instance))
    if rolls(parameters):
        second = lab.instances.start(SECOND)
        lab.await_("both instances to run", lambda: runs_its_task(instance) and second.state == "RUNNING")
    known, again = lab.count_committed(), lab.end("input") - lab.count_committed()
    watch = StateWatch(lab.instances.state_directory(NAME) / TASK, lab.now)
    lab.produce(f"burst {before + 1}" if before else "burst", burst)
    # Nearly all: after the last record the application has time to commit.
    enough = int((again + len(burst)) * 0.9)

    def is_processed() -> bool:
        watch.look()
        return instance.processed >= enough

    lab.await_(f"{enough:,} records to be processed", is_processed)
    if before:
        _tell_how_initialised(lab, instance)
    watch.look()
    lab.instances.kill(NAME)
    left = _look_behind(lab)
    watch.tell(lab)
    committed = left.committed - known
    in_transaction = instance.processed - committed
    lab.note("crash", during="running", processed=instance.processed, committed=committed, **left.event_fields())
    reason = (
        f"Killed while RUNNING, with {in_transaction:,} processed records in the open transaction and {committed:,} of "
        f"the burst committed; {left.sentence}."
    )
    exercised = (left.uncommitted if _takes_uncommitted(parameters) else in_transaction) > 0
    return Exercise(exercised, reason, all_steps_tried=in_transaction > 0)


@dataclass(frozen=True)
class LeftBehind:
    """The state that a killed process left: `committed` records of the input, where each topic and each partition of
    `__consumer_offsets` ends; of each store the entries on disk, those that were not committed and all, and the
    identities of its databases.
    """

    committed: int
    ends: Mapping[str, int]
    positions: Mapping[int, int]
    on_disk: Mapping[str, int]
    held: Mapping[str, int]
    databases: Mapping[str, Sequence[str]]

    @property
    def uncommitted(self) -> int:
        """Entries on disk of the transaction that was open, of all stores."""
        return sum(self.on_disk.values())

    @property
    def sentence(self) -> str:
        """The part of the transaction on disk, as text."""
        return f"entries of it on disk: {_counts(self.on_disk)}"

    def event_fields(self) -> dict[str, object]:
        """The transaction open at the kill, by role and partition from its first offset on; and its part on disk."""
        open_ = {role: {"0": [end, None]} for role, end in self.ends.items()}
        open_[OFFSETS] = {str(partition): [end, None] for partition, end in self.positions.items()}
        return {
            "open": {**open_, "input": {"0": [self.committed, self.ends["input"]]}},
            "on_disk": dict(self.on_disk),
            "databases": dict(self.databases),
        }


def _look_behind(lab: ScenarioContext) -> LeftBehind:
    """Look at what is there after the kill, and open the directory."""
    committed = lab.count_committed()
    stores = _stores(lab.trial)
    ends = {role: lab.end(role) for role in ("input", "output", *(f"{store}-changelog" for store in stores))}
    records = [*lab.workload.first, *lab.workload.second]
    not_committed = {key for key, _ in records[committed:]}
    held = lab.instances.on_disk(NAME, TASK)
    on_disk = {store: _count_uncommitted(store, held.get(store, {}), committed, not_committed) for store in stores}
    entries = {store: len(held.get(store, {})) for store in stores}
    identities = {store: databases(lab.instances.state_directory(NAME) / TASK, store) for store in stores}
    return LeftBehind(committed, ends, lab.topics.positions(), on_disk, entries, identities)


def _counts(entries: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} in {store}" for store, count in entries.items())


def _count_uncommitted(store: str, held: Mapping[int, int], committed: int, keys: Set[int]) -> int:
    """Entries of a store that come from records beyond the committed ones.

    All keys are distinct, so that the counter of the enumerator is one less than the records that it counted.
    """
    if store == "counter":
        return int(held.get(COUNTER_KEY, 0) >= committed)
    return len(keys & held.keys())


def _crash_while_restoring(lab: ScenarioContext) -> Exercise:
    """Take the local state away, and kill the process that restores it when some of that is on disk."""
    directory = lab.instances.state_directory(NAME) / TASK
    shutil.rmtree(lab.instances.state_directory(NAME))
    ended = _count_ended_restorations(lab)
    slowly = {"restore.consumer.max.poll.records": "10", "restore.consumer.fetch.max.bytes": "1024"}
    instance = lab.instances.start(NAME, config={"commit.interval.ms": "30000", **slowly})
    lab.await_("the restoration to begin", lambda: "restore" in instance.last)
    flushes = Flushes(directory)
    lab.holds_within(RESTORED_WITHIN, lambda: flushes.several() or _count_ended_restorations(lab) > ended)
    watch = StateWatch(directory, lab.now)
    watch.look()
    lab.instances.kill(NAME)
    caught = _count_ended_restorations(lab) == ended
    left = _look_behind(lab)
    checkpoint = watch.seen[-1][1] is not None
    lab.note("crash", during="restoration", checkpoint=checkpoint, restored=left.held, **left.event_fields())
    reason = (
        f"Killed while the store was restored from {instance.last['restore']['from']:,} to "
        f"{instance.last['restore']['end']:,}, which had not ended; entries on disk: {_counts(left.held)}."
        if caught
        else "The restoration had ended before the process was killed."
    )
    return Exercise(caught and any(left.held.values()), reason, all_steps_tried=caught)


def _count_ended_restorations(lab: ScenarioContext) -> int:
    return sum(event["event"] == "restored" for event in lab.events)


class Flushes:
    """Sees from outside whether RocksDB flushes what is written to the stores of a task's directory."""

    def __init__(self, directory: Path) -> None:
        """Existing files do not count: from 4.3 on a store writes some when it is opened (KIP-1035)."""
        self._directory = directory
        self._before, self._since = self._files(), set[Path]()

    def several(self) -> bool:
        """Whether at least one flush is complete: one writes two files at most, and a third has been begun."""
        self._since |= self._files() - self._before  # a compaction takes files away again
        return len(self._since) > 2

    def _files(self) -> set[Path]:
        return set(self._directory.rglob("*.sst"))


@dataclass
class StateWatch:
    """Samples the checkpoint in a task's directory again and again."""

    directory: Path
    now: Callable[[], float]  # epoch seconds
    seen: list[tuple[float, tuple[int, str] | None]] = field(default_factory=list)

    def look(self) -> None:
        """Take a sample of the checkpoint: its time of modification in ns and its text, None if there is no file."""
        file = self.directory / ".checkpoint"
        try:
            checkpoint = (file.stat().st_mtime_ns, file.read_text())
        except FileNotFoundError:
            checkpoint = None
        self.seen.append((self.now(), checkpoint))

    def tell(self, lab: ScenarioContext) -> None:
        """Record in the timeline what the samples showed."""
        files = [checkpoint for _, checkpoint in self.seen if checkpoint]
        lab.note(
            "checkpoint",
            samples=len(self.seen),
            present=len(files),
            distinct=len(set(files)),
            milliseconds=int((self.seen[-1][0] - self.seen[0][0]) * 1000),
            age_ms=int(self.seen[-1][0] * 1000 - files[-1][0] / 1e6) if files else None,
            offsets=parse_checkpoint(files[-1][1]) if files else {},
            in_rocksdb=self._offsets_in_rocksdb(),
        )

    def _offsets_in_rocksdb(self) -> bool:
        """Whether the stores keep their offsets themselves, in a column family of their own (KIP-1035, 4.3)."""
        return any('[CFOptions "offsets"]' in file.read_text() for file in self.directory.rglob("OPTIONS-*"))


# --- forensics -----------------------------------------------------------------------------------------------


def databases(directory: Path, store: str) -> list[str]:
    """The identities of a store's databases in a task's directory, one for each segment; none if it is in memory.

    RocksDB writes the file `IDENTITY` once, when it creates a database.
    """
    files = sorted(directory.rglob("IDENTITY"))
    return [file.read_text().strip() for file in files if store in file.relative_to(directory).parts]


def describe_initialisation(store: str, log: str, events: Sequence[Event], now: Sequence[str]) -> dict[str, object]:
    """How a store was initialised by the process with this log, which was the last to run.

    Args:
        store: its name.
        log: of the process.
        events: of the trial.
        now: the identities of the store's databases after the start.

    Returns:
        store; how: `trusted` (from a checkpoint), `wiped`, or `kept` (restored from the beginning over what was there);
        offset: the checkpoint's, if it was trusted; replayed: changelog offsets that were gone through; records: of
        those, the committed ones that were restored; on_disk: entries of the open transaction that the directory held.

    Raises:
        NotUnderstoodError: neither the log nor a restoration says how, or the log does not say that the store was
            wiped, although its databases are new: the release words it differently.
    """
    crash = next((e for e in reversed(events) if e["event"] == "crash"), {})
    on_disk = crash.get("on_disk", {}).get(store, 0)
    starts = [n for n, e in enumerate(events) if e["event"] == "instance" and e["action"] == "started"]
    events_of_store = [e for e in events[starts[-1] if starts else 0 :] if e.get("store") == store]
    restores = [e for e in events_of_store if e["event"] == "restore"]
    restored = [e for e in events_of_store if e["event"] == "restored"]
    start = restores[-1]["from"] if restores else 0
    trusted = next((said for said in TRUSTED.pattern.finditer(log) if said["store"] == store), None)
    not_empty = (said for said in NOT_EMPTY.pattern.finditer(log) if said["store"] == store)
    corrupted = (said for said in WIPED.pattern.finditer(log) if TASK in said["tasks"].split(", "))
    wiped = min((*not_empty, *corrupted), key=re.Match.start, default=None)
    if wiped and not (trusted and trusted.start() < wiped.start()):  # a later corruption is another matter
        how = "wiped"
    elif trusted or start > 0:
        how = "trusted"
    elif restores:
        if on_disk and not set(now) & set(crash["databases"][store]):
            raise NotUnderstoodError(
                f"The databases of the store {store} are not those that the killed process left, but the log of {NAME} "
                f"does not say that the store was wiped ({NOT_EMPTY.name}, {WIPED.name}): the release words it "
                "differently. `onceproof release qualify` says what else has changed."
            )
        how = "kept"
    else:
        raise NotUnderstoodError(
            f"The log of {NAME} does not say that the store {store} was trusted or wiped ({TRUSTED.name}, "
            f"{WIPED.name}), and no restoration of it was reported: the release words it differently. "
            "`onceproof release qualify` says what else has changed."
        )
    return {
        "store": store,
        "how": how,
        "offset": int(trusted["offset"]) if trusted else start if how == "trusted" else None,
        "replayed": restores[-1]["end"] - restores[-1]["from"] if restores else 0,
        "records": restored[-1]["records"] if restored else 0,
        "on_disk": on_disk,
    }


def observe(trial: Trial, events: Sequence[Event]) -> list[Comparison]:
    """The facts of the timeline about the checkpoint, which an in-memory store lacks, and about the wipe."""
    has_checkpoint = not _in_memory(values(trial))
    return [
        *(_compare_checkpoint(e) for e in events if has_checkpoint and e["event"] == "checkpoint"),
        *(_compare_wipe(e) for e in events if e["event"] == "initialised"),
    ]


def _compare_checkpoint(event: Event) -> Comparison:
    samples = f"in {event['present']} of {event['samples']} samples over {event['milliseconds']:,} ms"
    if event["present"]:
        same = "unchanged" if event["distinct"] == 1 else f"{event['distinct']} versions"
        offsets = ", ".join(f"{name} {offset:,}" for name, offset in event["offsets"].items())
        observed = f"present {samples}, {same}, {event['age_ms']:,} ms old at the kill; {offsets or 'no offset'}"
    else:
        instead = "; offsets are in RocksDB's column family `offsets` (KIP-1035)" if event["in_rocksdb"] else ""
        observed = f"absent from {event['samples']} samples over {event['milliseconds']:,} ms{instead}"
    return Comparison(
        "checkpoint",
        "stale-checkpoint" if event["present"] else None,
        0,
        None,
        f"task {TASK}, .checkpoint",
        "no checkpoint while RUNNING under exactly-once",
        observed,
    )


def _compare_wipe(event: Event) -> Comparison:
    texts = {
        "trusted": f"trusted from offset {event['offset']}, {event['replayed']:,} offsets replayed",
        "wiped": f"wiped, {event['records']:,} records restored",
        "kept": f"not wiped, {event['records']:,} records restored over what was there",
    }[event["how"]]
    skipped = event["on_disk"] > 0 and event["how"] in ("trusted", "kept")
    return Comparison(
        "wipe",
        "skipped-wipe" if skipped else None,
        0,
        None,
        f"task {TASK}, store {event['store']}",
        "wiped and restored" if event["on_disk"] else "all that is on disk was committed",
        f"{texts}; on disk were {event['on_disk']:,} entries of the open transaction",
    )


# --- system --------------------------------------------------------------------------------------------------

STORES = {"dedup": ("seen",), "enumerator": ("counter", "ids")}


def system(trial: Trial) -> System:
    """The topology that is killed; its checkpoint is sampled if there can be one, and it is killed while RUNNING."""
    parameters = values(trial)
    sampled = parameters.during == "running" and not _in_memory(parameters)
    recovery = ("checkpoint", "wipe", "state") if sampled else ("wipe", "state")
    if parameters.topology == "enumerator":
        return replace(enumerator.SYSTEM, promises=(*enumerator.SYSTEM.promises, *recovery))
    return System(
        topology="dedup",
        roles={"input": Role(), "output": Role(), "seen-changelog": Role(keys=KINDS[parameters.stores])},
        promises=("deliveries", "output-order", "changelog", *recovery, "stores"),
        kept=_keep_due(parameters.stores),
    )


def _keep_due(kind: str) -> Mapping[str, Kept]:
    """The due records of the changelog of the store `seen`."""
    if kind in ("window", "session"):
        return {"seen-changelog": keep_windows(KEPT)}
    return {"seen-changelog": keep_versions(KEPT)} if kind == "versioned" else {}


SCENARIO = Scenario(
    name="crash",
    title="Writes of a killed process in an open transaction are forgotten (reproduction 002, KAFKA-20685)",
    parameters=Parameters,
    faults=(rolling_bounce.FAULT,),
    variants=VARIANTS,
    system=system,
    partitions=lambda _: PARTITIONS,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "4.1.2"),
    observe=observe,
    refusal=refusal,
    seconds=14,
    alike="records",
)
