"""Reproduction 004: an answer and the change behind it are two records; without transactions either may come alone.

An input record asks the application to delete a key of its store; the answer says whether it was there (1, true) or not
(0, false). The deletion goes to the changelog, the answer to the output. The offset of the input is committed after
both, so if the process dies in between, the request is delivered again, and what it meets depends on which of the two
records had been published:

- the changelog without the output: the key is gone by now, the answer is false, and true was never answered;
- the output without the changelog: the key is still there, and the answer is true a second time.

Under `at_least_once` this is documented behaviour, so a trial must provoke it (its absence would mean that the trial
did not do what it says); under `exactly_once_v2` the same crash must leave no trace.

The crash is made deterministic at the brokers: both topics have a second replica on a broker that is down, and one of
them is configured to require two replicas in sync, so that its records are refused (NOT_ENOUGH_REPLICAS, which
producers retry) while those of the other are accepted. The process is killed when all changes of one kind are in and
none of the other, and the topic is healed. A trial is *exercised* when the ends of both topics at the kill say so.
Under exactly-once the store that was left on disk must hold deletions of the open transaction, too: its write buffer is
small, as in `crash`. All variants keep their store in RocksDB.

A rebalance does the same without a crash: the process is frozen instead of killed (SIGSTOP: a machine that pauses), its
group does without it after `session.timeout.ms`, and another instance takes the task over. When the first one wakes
up it still sends what it had not sent, and only then learns that the task is no longer its own.

A producer that gives up (`delivery.timeout.ms`; TIMED_OUT) takes the task from its thread without a crash, too: it is
corrupted, so it must be closed and its store restored from the changelog. There neither topic takes records, so
nothing of a request is published, and when both take them again each one must be answered with true. From 3.8.0 on the
store is kept, with deletions of which the changelog knows nothing (docs/findings/corrupted-task-keeps-its-store.md):
nothing of its changelog is restored, and it lacks keys that the changelog has, before any request is processed again.
If the producer gives up again, as on a slow machine, what it has sent again by then is published in addition to what it
sends the next time, and answers come twice, or are false: at-least-once allows that, so such a trial is not exercised.

What Kafka Streams does promise under either guarantee is looked at all the while: the offset of a request is committed
only after its change and its answer were flushed (`early-commit`). The ends of both topics are sampled after the
committed offset; where one topic refuses, the variants with a rebalance hold that for more than two commit intervals.

The remedy that the reproduction discusses, to delete in a second sub-topology when the answer has come back from the
output, is a variant. It has a race: the request that is delivered again may be processed before or after the deletion
that the first answer causes, so a key gets two answers, which may be true and true, or true and false.
"""

import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from onceproof.faults.base import Instance
from onceproof.faults.directory import small_write_buffer
from onceproof.model.anomaly import Comparison
from onceproof.model.cell import Trial
from onceproof.model.timeline import Event
from onceproof.scenarios.base import (
    Exercise,
    Guarantee,
    Role,
    Scenario,
    ScenarioContext,
    StateUpdater,
    StoreKind,
    System,
    Variant,
    Workload,
    refuse_no_state_updater,
    refuse_restarts,
    state_updater,
    values_in,
    variants_of,
)

PUT, DELETE = 1, 0  # values of the input
PARTITIONS = 1
COMMIT_INTERVAL = 1.0  # seconds: time for the kill
PROCESSED_WITHIN = 0.8  # commit intervals in which a process usually gets through its requests: a commit then waits
HELD = 2.2  # commit intervals for which a topic still refuses: the owner has tried to commit twice
SESSION = 4.0  # seconds after which a frozen process is missed
SETTLED = 0.2  # seconds without growth after which a topic is considered still
NAME, OTHER, KEPT = "instance-1", "instance-2", "instance-1-when-restored"  # the last one has a copy of its stores
TASK, STORE = "0_0", "records"
CHANGELOG, OUTPUT = "records-changelog", "output"
REFUSING = {"changelog": (OUTPUT,), "output": (CHANGELOG,), "neither": (CHANGELOG, OUTPUT)}  # by what is published

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(StateUpdater):
    """The requests to delete, and how the instance loses its task between answer and deletion."""

    keys: int = Field(3_000, ge=1, description="records that are put into the store, and then deleted")
    published: Literal["changelog", "output", "neither"] = Field(
        "changelog", description="which of the two is published when the process is killed, if any"
    )
    guarantee: Guarantee = Field("at_least_once", description="processing guarantee")
    delete: Literal["at-once", "downstream"] = Field(
        "at-once", description="where the record is deleted: with the answer, or in a second sub-topology after it"
    )
    stores: StoreKind = Field("rocksdb", description="kind of the store")
    write_buffer_bytes: int = Field(0, ge=0, description="RocksDB's write buffer; 0 is Kafka Streams' own, 16 MiB")
    caching: bool = Field(False, description="whether the store is cached")
    parted_by: Literal["crash", "rebalance", "timeout"] = Field(
        "crash",
        description="what takes the task from the process: SIGKILL, a rebalance while it is frozen, or that its "
        "producer gives up",
    )


# Only with a persistent store does a process keep the identity by which its next start aborts its open transaction;
# otherwise everybody waits until the transaction has timed out.
EXACTLY_ONCE = {"guarantee": "exactly_once_v2", "write.buffer.bytes": 65_536}
CRASHED = {"group.instance.id": NAME, "producer.transaction.timeout.ms": "120000"}
REBALANCED = {
    "main.consumer.session.timeout.ms": str(int(SESSION * 1_000)),
    # The next owner has to wait until the transaction of the frozen one is over.
    "producer.transaction.timeout.ms": "10000",
}
PATIENT = {"producer.delivery.timeout.ms": "120000"}  # does not give up on a topic that refuses
# Gives up after 6 s, on all at once: a batch that is given up later corrupts the task once more, when what it has sent
# again is not published yet, and so comes twice.
IMPATIENT = {
    "producer.delivery.timeout.ms": "6000",
    "producer.request.timeout.ms": "3000",
    "producer.linger.ms": "1000",
    "producer.batch.size": "1000000",
}
TAKEN = {"crash": "Killed", "rebalance": "Frozen", "timeout": "Its producer gave up"}
PARTED = {"crash": PATIENT | CRASHED, "rebalance": PATIENT | REBALANCED, "timeout": IMPATIENT | CRASHED}
VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "The changelog is published and the output is not: false, though it was there."),
    Variant("OUTPUT_FIRST", "The output is published and the changelog is not: true twice.", {"published": "output"}),
    Variant("EXACTLY_ONCE", "The crash of DEFAULT_CONFIG, with exactly_once_v2.", EXACTLY_ONCE),
    Variant(
        "EXACTLY_ONCE_OUTPUT_FIRST",
        "The crash of OUTPUT_FIRST, with exactly_once_v2.",
        {**EXACTLY_ONCE, "published": "output"},
    ),
    Variant(
        "REBALANCE",
        "The process of DEFAULT_CONFIG is not killed: frozen, it loses its task to another one, and comes back.",
        {"parted.by": "rebalance"},
    ),
    Variant(
        "EXACTLY_ONCE_REBALANCE",
        "The rebalance of REBALANCE, with exactly_once_v2.",
        {**EXACTLY_ONCE, "parted.by": "rebalance"},
    ),
    Variant(
        "DELETE_DOWNSTREAM",
        "The remedy: the answer is published first, and the record deleted in a second sub-topology.",
        {"delete": "downstream", "published": "output"},
    ),
    Variant(
        "TIMED_OUT",
        "Neither is published; the producer gives up, and the task continues with a store that is restored, or is not.",
        {"published": "neither", "parted.by": "timeout"},
    ),
    Variant(
        "TIMED_OUT_STATE_UPDATER_DISABLED",
        "Negative control: TIMED_OUT without the state updater, where the release can do without.",
        {"published": "neither", "parted.by": "timeout", "state.updater": False},
    ),
)


values = values_in(Parameters, VARIANTS)


def refusal(trial: Trial) -> str | None:
    """Refuses an in-memory store with transactions, a deletion downstream of an answer that is not published before
    it, or that nothing holds up, a producer that gives up a transaction, and a release that needs its state updater.
    """
    cell, parameters = trial.cell, values(trial)
    if parameters.guarantee == "exactly_once_v2" and parameters.stores != "rocksdb":
        return (
            "guarantee=exactly_once_v2 does not go with stores=in-memory, since without a state directory no process "
            "aborts the transaction of a process that was killed, until it times out; leave stores out."
        )
    if parameters.delete == "downstream" and parameters.published != "output":
        return (
            f"delete=downstream does not go with published={parameters.published}, since there the record is "
            "deleted after its answer is published; set published=output."
        )
    if parameters.parted_by == "timeout" and parameters.guarantee == "exactly_once_v2":
        return (
            "parted.by=timeout does not go with guarantee=exactly_once_v2, since a producer that gives up in a "
            "transaction takes its thread along; leave one of them out."
        )
    if parameters.parted_by != "crash" and parameters.delete == "downstream":
        return (
            f"parted.by={parameters.parted_by} does not go with delete=downstream, where no topic refuses and "
            "all is committed meanwhile; leave one of them out."
        )
    return refuse_no_state_updater(cell, parameters) or refuse_restarts(cell)


def workload(trial: Trial) -> Workload:
    """Each key is put once, then deleted once; both in an order drawn from the seed."""
    rng = random.Random(trial.seed)
    keys = list(range(values(trial).keys))
    puts, deletes = rng.sample(keys, len(keys)), rng.sample(keys, len(keys))
    return Workload([(key, PUT) for key in puts], [(key, DELETE) for key in deletes])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `deleter`."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "caching": parameters.caching,
        "stores": parameters.stores,
        "delete": parameters.delete,
    }


def config(trial: Trial) -> Mapping[str, str]:
    """The guarantee under trial, and write buffers so small that uncommitted writes reach the disk."""
    parameters = values(trial)
    return {
        "processing.guarantee": parameters.guarantee,
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": str(int(COMMIT_INTERVAL * 1_000)),
        **PARTED[parameters.parted_by],
        **state_updater(parameters),
        **(small_write_buffer(parameters.write_buffer_bytes) if parameters.write_buffer_bytes else {}),
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Put, let topics refuse, delete, take the task away, heal, let an instance continue, drain."""
    parameters = values(lab.trial)
    puts, deletes = lab.workload.first, lab.workload.second
    refusing = REFUSING[parameters.published]
    taking = [role for role in (CHANGELOG, OUTPUT) if role not in refusing]
    # Downstream of the answer nothing is deleted before it is published, so no topic needs to refuse.
    downstream = parameters.delete == "downstream"
    frozen, timed_out = parameters.parted_by == "rebalance", parameters.parted_by == "timeout"
    with lab.phase("put"):
        instance = lab.instances.start(NAME)
        lab.await_(f"{len(puts):,} records to be committed", lambda: lab.count_committed() >= len(puts))
        # What it reports about itself, and the last transaction's markers, may come a little later.
        lab.await_(f"{len(puts):,} records to be reported", lambda: instance.processed >= len(puts))
        before = _await_settled_ends(lab)
        processed, restorations = instance.processed, _restorations(lab)
    flushes = PublicationWatch(lab, len(puts), before)
    with lab.phase("delete"):
        for role in () if downstream else refusing:
            lab.limits.alter_topic(role, min_insync_replicas="2")
        lab.produce("deletes", deletes)

        def is_published() -> bool:
            flushes.look()
            if downstream:  # the race is on when the first answers have come back
                return lab.end(CHANGELOG) > before[CHANGELOG]
            done = instance.processed - processed
            return done > 0 and all(lab.end(role) - before[role] >= done for role in taking)

        if not downstream:
            lab.holds_within(PROCESSED_WITHIN * COMMIT_INTERVAL, lambda: instance.processed - processed == len(deletes))
        lab.await_(" and published in ".join(("requests to be processed", *map(_name_role, taking))), is_published)
        _take_task_away(lab, instance, flushes)
        ends = _ends(lab)
        grown = {role: end - before[role] for role, end in ends.items()}
        committed = lab.count_committed() - len(puts)
        on_disk = {STORE: _count_deleted_on_disk(lab, committed)} if parameters.guarantee == "exactly_once_v2" else {}
        lab.measure(changelog_end=ends[CHANGELOG], output_end=ends[OUTPUT])
        begin = len(puts) + committed
        trusted = timed_out and _is_trusted(instance)
        if trusted:
            _keep_directory(lab)
        # One that gave up sends again what was not published.
        open_ = {"input": {"0": [begin, begin + max(grown.values()) if timed_out else None]}}
        counts = {"published": grown, "committed": committed, "open": open_}
        lab.note("timeout" if timed_out else "crash", **counts, on_disk=on_disk)
        for role in refusing:
            lab.limits.alter_topic(role, min_insync_replicas="1")
    with lab.phase("restart"):
        if frozen:
            other = lab.instances.start(OTHER)
            lab.await_("the task to be taken over", lambda: other.processed > 0)
            lab.instances.thaw(NAME)
        elif not timed_out:
            lab.instances.start(NAME)
        lab.await_drained()
        flushes.look()
        if downstream:
            lab.await_("all answers to be processed", lambda: lab.count_committed(OUTPUT) >= lab.end(OUTPUT))
        flushes.tell()
    with lab.phase("leave"):
        lab.close_instances()
    lacking = _lacking(lab, grown[CHANGELOG]) if trusted else 0
    if trusted:
        lab.note("store-kept", records=before[CHANGELOG] + grown[CHANGELOG], lacking=lacking)
    gave_up = _restorations(lab) - restorations if timed_out else 0
    if gave_up > 1:
        lab.note("gave-up-again", times=gave_up, open={"input": {"0": [begin, None]}})
    refused = downstream or not any(grown[role] for role in refusing)
    parted = refused and all(grown[role] > committed for role in taking)
    ahead, behind = *taking, *refusing
    reason = (
        f"{TAKEN[parameters.parted_by]} when {grown[ahead]:,} records of {_name_role(ahead)} and {grown[behind]:,} of "
        f"{_name_role(behind)} were published, and {committed:,} of {len(deletes):,} requests committed."
    )
    if on_disk:
        reason += f" On disk were {on_disk[STORE]:,} deletions of the open transaction."
    if trusted:
        reason += f" Nothing of the changelog was restored, though the store on disk lacked {lacking:,} of its keys."
    if gave_up > 1:
        reason += (
            f" It gave up {gave_up} times in all, so what it had sent again may come in addition to what it sent later."
        )
    return Exercise(parted and all(on_disk.values()) and gave_up <= 1, reason)


def _restorations(lab: ScenarioContext) -> int:
    """How often the task was restored, or said to be, as it is each time its producer gives up."""
    return sum(event["event"] == "restore" for event in lab.events)


def _take_task_away(lab: ScenarioContext, instance: Instance, flushes: "PublicationWatch") -> None:
    """Kill its process, freeze it, or wait until its producer gives up and its store is restored, or said to be."""
    restored = instance.last.get("restore")

    def is_restored_again() -> bool:
        flushes.look()
        return instance.last.get("restore") is not restored

    match values(lab.trial).parted_by:
        case "rebalance":
            lab.holds_within(HELD * COMMIT_INTERVAL, flushes.look)
            lab.instances.freeze(NAME)
        case "timeout":
            lab.await_("the task to be restored", is_restored_again)
            # What it sent up to a commit later has another while to go, and would be published after all.
            lab.holds_within(HELD * COMMIT_INTERVAL, flushes.look)
        case _:
            lab.instances.kill(NAME)


def _is_trusted(instance: Instance) -> bool:
    """Whether the store of a corrupted task was not restored at all, but kept as it was."""
    restored = instance.last["restore"]
    return bool(restored["from"] == restored["end"])


def _keep_directory(lab: ScenarioContext) -> None:
    """Copy what the process has on disk of its task; its producer's patience runs on, so it is looked into later."""
    lab.instances.freeze(NAME)
    shutil.copytree(lab.instances.state_directory(NAME) / TASK, lab.instances.state_directory(KEPT) / TASK)
    lab.instances.thaw(NAME)


def _lacking(lab: ScenarioContext, published: int) -> int:
    """How many keys of its changelog, with this many deletions published, a store lacked that was kept.

    It was closed before, so on disk as a whole. Of a store that is restored the records are in memory at first, so what
    is on disk says nothing.
    """
    there = lab.instances.on_disk(KEPT, TASK).get(STORE, {}).keys()
    deleted = {key for key, _ in lab.workload.second[:published]}
    return len({key for key, _ in lab.workload.first} - deleted - there)


def _count_deleted_on_disk(lab: ScenarioContext, committed: int) -> int:
    """How many deletions beyond the first `committed` the directory of the process holds.

    RocksDB writes to disk in the order of the writes: if a key is there, all keys put before it had been.
    """
    there = lab.instances.on_disk(NAME, TASK).get(STORE, {}).keys()
    puts = [key for key, _ in lab.workload.first]
    last = max((place for place, key in enumerate(puts) if key in there), default=0)
    done = {key for key, _ in lab.workload.second[:committed]}
    return len({*puts[:last]} - there - done)


@dataclass
class PublicationWatch:
    """Checks, again and again, whether what committed requests produced has been published."""

    lab: ScenarioContext
    puts: int
    before: Mapping[str, int]  # ends of the topics before the first request
    looks: int = 0
    worst: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        """Sample the committed offset, and after it the ends: markers and repeats only add to these."""
        committed = max(self.lab.count_committed() - self.puts, 0)
        grown = {role: end - self.before[role] for role, end in _ends(self.lab).items()}
        self.looks += 1
        if not self.worst or _short(committed, grown) > _short(self.worst["committed"], self.worst):
            self.worst = {"committed": committed, **grown}

    def tell(self) -> None:
        """Record in the timeline the sample in which most was missing."""
        self.lab.note("flushes", looks=self.looks, **self.worst)


def _short(committed: int, grown: Mapping[str, int]) -> int:
    """How much less was published in one of the topics than was committed."""
    return committed - min(grown[CHANGELOG], grown[OUTPUT])


def observe(trial: Trial, events: Sequence[Event]) -> list[Comparison]:
    """The facts of the timeline about flushes: once a request is committed, its change and its answer are published.

    With a deletion downstream of its answer, only the answer belongs to the request.
    """
    looked_at = (OUTPUT,) if values(trial).delete == "downstream" else (CHANGELOG, OUTPUT)
    return [_compare_flush(event, role) for event in events if event["event"] == "flushes" for role in looked_at]


def _compare_flush(event: Event, role: str) -> Comparison:
    committed, published = event["committed"], event[role]
    return Comparison(
        "flush",
        "early-commit" if published < committed else None,
        0,
        None,
        f"{_name_role(role)}, in {event['looks']} samples",
        f"at least {committed:,} published when {committed:,} requests were committed",
        f"{published:,} published",
    )


def _ends(lab: ScenarioContext) -> dict[str, int]:
    return {role: lab.end(role) for role in (CHANGELOG, OUTPUT)}


def _await_settled_ends(lab: ScenarioContext) -> dict[str, int]:
    """Ends of the changelog and the output once they are stable for a while."""
    ends, since = _ends(lab), lab.now()

    def is_settled() -> bool:
        nonlocal ends, since
        now = _ends(lab)
        if now != ends:
            ends, since = now, lab.now()
        return lab.now() - since >= SETTLED

    lab.await_("the topics to be still", is_settled)
    return ends


def _name_role(role: str) -> str:
    return "the output" if role == OUTPUT else "the changelog"


# --- system --------------------------------------------------------------------------------------------------


def system(trial: Trial) -> System:
    """The topology `deleter`; with a deletion downstream of its answer, they are not compared at the kill."""
    published = () if values(trial).delete == "downstream" else ("published",)
    return System(
        topology="deleter",
        roles={"input": Role(), OUTPUT: Role(may_refuse=True), CHANGELOG: Role(may_refuse=True)},
        promises=("answers", "output-order", "changelog", *published, "flush", "stores"),
    )


SCENARIO = Scenario(
    name="at-least-once",
    title="Failures that at-least-once allows and exactly-once forbids (reproduction 004)",
    parameters=Parameters,
    variants=VARIANTS,
    system=system,
    partitions=lambda _: PARTITIONS,
    workload=workload,
    app=app,
    config=config,
    facts=lambda trial: {"downstream": int(values(trial).delete == "downstream")},
    drive=drive,
    observe=observe,
    positive_control=("DEFAULT_CONFIG", "4.3.1"),
    refusal=refusal,
    seconds=7,
    alike="records",
)
