"""Mutated trials in the topics of a real broker, written by real transactional producers.

A mutation speaks of the offsets that the clean trial had. Written anew, its records get others: what is expected is
translated to the offsets that the broker gave. The transactions are those of the clean trial, of which neighbours are
joined so that no partition has more than a few: each commits the positions in the input of what it writes. Where the
clean trial holds what a killed process had left, an aborted transaction is written, too.
"""

import re
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from onceproof.lab.cluster import Cluster
from onceproof.lab.load import PRODUCER_CONFIG
from onceproof.lab.reader import Reader, Source
from onceproof.lab.topics import Topics
from onceproof.model.anomaly import Comparison, Findings, Witness, witnesses_of
from onceproof.model.cell import Cell, Trial
from onceproof.model.files import Produced
from onceproof.model.json_file import write_json
from onceproof.model.record import Record
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.readers.checks import CHECKS
from onceproof.scenarios import at_least_once, enumerator, multirunner, quota
from onceproof.scenarios.base import Role, System
from tests.specimens.files import a_plan, an_outcome
from tests.specimens.mutations import Clean, Mutation
from tests.specimens.trials import PROMISES

EPOCH = 1_795_000_000_000  # ms: when the first record of an input was made
WRITERS = 4  # trials that are written at once
READ_AT_ONCE = 25  # trials
BATCHES = 3  # transactions that a partition has at least, if it had as many
ROLES: dict[str, Mapping[str, Role]] = {
    "enumerator": enumerator.SYSTEM.roles,
    "counting": multirunner.SYSTEM.roles,
    "dedup": {role: Role() for role in ("input", "output", "seen-changelog")},
    "deleter": {"input": Role(), at_least_once.OUTPUT: Role(), at_least_once.CHANGELOG: Role()},
    "values": {
        "input": Role(),
        quota.CHANGELOG: Role(value_bytes=64),
        quota.ALL: Role(value_bytes=64, topic=quota.CHANGELOG, committed=False),
    },
}
# A role that has one record for each of the input, so that its records tell which of them a transaction processed.
GUIDES = {
    "enumerator": "output",
    "counting": "output",
    "dedup": "output",
    "deleter": at_least_once.CHANGELOG,
    "values": quota.ALL,
}
Place = tuple[str, int, int]  # role, partition, offset


@dataclass(frozen=True)
class Transaction:
    """What one transaction does to one partition: records by role, and the position in the input that it commits."""

    partition: int
    records: Mapping[str, Sequence[Record]]
    position: int
    committed: bool = True


@dataclass
class Planted:
    """A mutated trial as it stands on the broker."""

    trial: Trial
    mutation: Mutation
    offsets: dict[Place, int] = field(default_factory=dict)  # real ones, by the places that the mutation speaks of

    @property
    def check(self) -> str:
        """The name of its check."""
        return self.mutation.clean.check

    @property
    def facts(self) -> dict[str, int]:
        """The clean trial's facts; where topics ended at a kill, in real offsets."""
        facts = dict(self.mutation.clean.facts)
        for name, role in (
            ("seen_end", "seen-changelog"),
            ("changelog_end", at_least_once.CHANGELOG),
            ("output_end", at_least_once.OUTPUT),
        ):
            if name in facts:
                later = [real for (r, _, old), real in self.offsets.items() if r == role and old >= facts[name]]
                before = [real for (r, _, old), real in self.offsets.items() if r == role and old < facts[name]]
                facts[name] = min(later, default=max(before, default=-1) + 1)
        return facts

    @property
    def witnesses(self) -> list[Witness]:
        """What must be found, in real offsets."""
        return [
            replace(
                witness,
                offsets=tuple(map(self._real, witness.offsets)),
                expected=self._real(witness.expected),
                observed=self._real(witness.observed),
            )
            for witness in self.mutation.witnesses
        ]

    def _real(self, text: str) -> str:
        def translated(found: re.Match[str]) -> str:
            role, partition, offset = found[1], int(found[2]), int(found[3])
            return f"{role}/{partition}@{self.offsets.get((role, partition, offset), offset)}"

        return re.sub(r"([\w-]+)/(\d+)@(\d+)", translated, text)


def plant(folder: Path, cluster: Cluster, mutations: Iterable[Mutation]) -> tuple[RunFolder, list[Planted]]:
    """A run folder and topics as a run of these trials would leave them."""
    run = RunFolder(folder)
    planted = [Planted(trial_of(run, number, mutation.clean), mutation) for number, mutation in enumerate(mutations, 1)]
    create_topics(cluster, planted)
    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(partial(write, cluster), planted))
    for trial in planted:
        write_folder(run, trial)
    write_json(run.run_file, {"trials": [trial.trial.to_dict() for trial in planted]})
    write_json(run.cluster_file(str(cluster.release)), {"bootstrap_servers": cluster.bootstrap_servers})
    return run, planted


def trial_of(run: RunFolder, number: int, clean: Clean) -> Trial:
    """A trial of a scenario that there is not; its topics are its own."""
    return Trial(run.run_id, Cell("mutations", clean.check, Release(4, 3, 1), Release(3, 9, 1)), number, seed=number)


def create_topics(cluster: Cluster, planted: Iterable[Planted]) -> None:
    """Create the topics of the trials."""
    # The records are as old as their timestamps say.
    forever = {"retention.ms": "-1"}
    topics = [NewTopic(name, partitions, 1, config=forever) for name, partitions in topics_of(planted).items()]
    admin = AdminClient(cluster.client())
    for future in admin.create_topics(topics).values():
        future.result(60)


def topics_of(planted: Iterable[Planted]) -> dict[str, int]:
    """The topics of the trials, and the number of their partitions."""
    return {
        planting.trial.topic(name): planting.mutation.clean.facts["partitions"]
        for planting in planted
        for name, role in ROLES[planting.check].items()
        if role.topic is None
    }


def write_folder(run: RunFolder, planted: Planted) -> None:
    """What a trial leaves beside its topics: its plan, its outcome, and what its stores held."""
    clean, folder = planted.mutation.clean, run.trial(planted.trial)
    roles = System(clean.check, ROLES[planted.check], ()).topics
    stated = {"check": clean.check, "promises": PROMISES[clean.check], "partitions": clean.facts["partitions"]}
    a_plan(planted.trial, roles=roles, **stated).write(folder.trial_file)
    produced = Produced(len(clean.topics["input"]), len(clean.by_key["input"]))
    an_outcome(planted.trial, facts=planted.facts, produced=produced).write(folder.outcome_file)
    folder.contents.mkdir(parents=True, exist_ok=True)
    for role, records in planted.mutation.topics.items():
        store, is_store, _ = role.partition("-contents")
        if is_store:
            lines = [f"{store},{r.partition},{r.offset},{r.key},{r.value}\n" for r in records]
            (folder.contents / f"{store}.csv").write_text("".join(lines))


# --- timestamps ----------------------------------------------------------------------------------------------


def stamped(clean: Clean) -> Clean:
    """The trial with timestamps, which those that are kept lack."""
    return replace(clean, topics=dict(stamp(clean.check, clean.topics)))


def stamp(check: str, topics: Mapping[str, Sequence[Record]]) -> Iterator[tuple[str, list[Record]]]:
    """The topics with timestamps: a millisecond between the records of the input, and what they cause has theirs."""
    inputs = [record._replace(timestamp=EPOCH + record.offset) for record in topics["input"]]
    causes: dict[int | None, list[Record]] = defaultdict(list)
    new_keys: dict[int, list[Record]] = defaultdict(list)  # by partition
    for record in inputs:
        if not causes[record.key]:
            new_keys[record.partition].append(record)
        causes[record.key].append(record)
    for role, records in topics.items():
        seen: Counter[int | None] = Counter()
        stamped = []
        for record in records:
            of_key = causes[record.key]
            if role == "counter-changelog":
                cause = new_keys[record.partition][record.value or 0]
            elif role == "last-changelog":
                cause = of_key[(record.value or 0) - 1]
            elif (check, role) == ("deleter", "output"):  # only the deletion, which comes last, is answered
                cause = of_key[-1]
            else:
                cause = of_key[min(seen[record.key], len(of_key) - 1)]
            seen[record.key] += 1
            stamped.append(record._replace(timestamp=cause.timestamp))
        yield role, stamped


# --- transactions --------------------------------------------------------------------------------------------


def transactions_of(mutation: Mutation) -> Iterator[Transaction]:
    """The transactions of a mutated trial, partition by partition, each in its order."""
    for partition in range(mutation.clean.facts["partitions"]):
        yield from _of_partition(mutation, partition)


def _of_partition(mutation: Mutation, partition: int) -> Iterator[Transaction]:
    clean = mutation.clean
    written = [
        name for name, role in ROLES[clean.check].items() if name != "input" and _is_written(clean.check, name, role)
    ]
    bounds = {role: _bounds(clean, role, partition) for role in written}
    number = len(bounds[GUIDES[clean.check]]) - 1
    processed = 0
    for n in range(number):
        first, last = ({role: _bound(b, n + k, number) for role, b in bounds.items()} for k in (0, 1))
        parts = {
            role: [r for r in _in_topic(mutation, role, partition) if first[role] <= r[1] < last[role]]
            for role in written
        }
        guide = clean.by_partition[GUIDES[clean.check]][partition]
        processed += sum(first[GUIDES[clean.check]] <= r[1] < last[GUIDES[clean.check]] for r in guide)
        yield from _whole_or_aborted(mutation, Transaction(partition, parts, processed))
        left = {role: _aborted(clean, role, partition, last[role]) for role in written}
        if any(left.values()):
            yield Transaction(partition, left, processed, committed=False)
    tail = {role: [r for r in _in_topic(mutation, role, partition) if r[1] >= b[-1]] for role, b in bounds.items()}
    if any(tail.values()):
        yield Transaction(partition, tail, len(mutation.partition("input", partition)))


def _in_topic(mutation: Mutation, role: str, partition: int) -> list[Record]:
    """The records of a role; where all of a topic are read, those that are committed stand in the place of their like."""
    found = {record.offset: record for record in mutation.written(role, partition)}
    if role == quota.ALL:
        found |= {record.offset: record for record in mutation.written(quota.CHANGELOG, partition)}
    return [record for _, record in sorted(found.items())]


def _is_written(check: str, name: str, role: Role) -> bool:
    """Whether records of the role are written as such; the committed ones of a topic of which all are read are not."""
    return role.topic is not None or not any(other.topic == name for other in ROLES[check].values())


def _bounds(clean: Clean, role: str, partition: int) -> list[int]:
    """The offsets at which transactions of the clean trial begin, and where the last one ends, neighbours joined."""
    offsets = [r[1] for r in clean.by_partition[role][partition]]
    gaps = [(after, after - before) for before, after in pairwise(offsets) if after > before + 1]
    begins = [offsets[0], *(after for after, _ in gaps)]
    wide = {after for after, gap in gaps if gap > 2}
    step = max(1, len(begins) // BATCHES)
    kept = [begin for n, begin in enumerate(begins) if n % step == 0 or begin in wide]
    return [*kept, offsets[-1] + 2]


def _bound(bounds: Sequence[int], n: int, number: int) -> int:
    """A role that was not written to in the first transactions has fewer of them: they are the last ones."""
    return bounds[max(0, n - number - 1 + len(bounds))]


def _aborted(clean: Clean, role: str, partition: int, before: int) -> list[Record]:
    """Records that a killed process may have left before the offset: those that come after it, as many as fit."""
    log = clean.by_partition[role][partition]
    offsets = [r[1] for r in log if r[1] < before]
    room = before - offsets[-1] - 1 - 2 if offsets and any(r[1] == before for r in log) else 0
    return [r for r in log if r[1] >= before][: max(0, room)]


def _whole_or_aborted(mutation: Mutation, transaction: Transaction) -> Iterator[Transaction]:
    """Where all records are read, those among them that are not committed were aborted."""
    if mutation.clean.check != "values":
        yield transaction
        return
    committed = {record.offset for record in mutation.written(quota.CHANGELOG, transaction.partition)}
    runs: list[tuple[bool, list[Record]]] = []
    for record in transaction.records[quota.ALL]:
        if not runs or runs[-1][0] != (record.offset in committed):
            runs.append((record.offset in committed, []))
        runs[-1][1].append(record)
    guide = mutation.clean.by_partition[quota.ALL][transaction.partition]
    for whole, records in runs:
        processed = sum(record.offset <= records[-1].offset for record in guide)
        yield replace(transaction, records={quota.ALL: records}, committed=whole, position=processed)


# --- writing -------------------------------------------------------------------------------------------------


def write(cluster: Cluster, planted: Planted) -> None:
    """Write the input, then the transactions; keep the offsets that the broker gave."""
    trial, clean = planted.trial, planted.mutation.clean
    write_input(cluster, planted)
    group = Consumer({**cluster.client(), "group.id": trial.application_id})
    producer = Producer(
        {**cluster.client(), "transactional.id": f"{trial.application_id}-planter", "linger.ms": 5, "acks": "all"}
    )
    try:
        producer.init_transactions(30)
        for transaction in transactions_of(planted.mutation):
            producer.begin_transaction()
            for role, records in transaction.records.items():
                for record in records:
                    produce(producer, planted, role, record, keep=transaction.committed or role == quota.ALL)
            if transaction.committed:
                position = TopicPartition(trial.topic("input"), transaction.partition, transaction.position)
                producer.send_offsets_to_transaction([position], group.consumer_group_metadata(), 30)
                producer.commit_transaction(30)
            else:
                producer.flush(30)
                producer.abort_transaction(30)
    finally:
        group.close()
    if clean.check == "values":
        for (role, partition, old), real in list(planted.offsets.items()):
            if role == quota.ALL:
                planted.offsets[quota.CHANGELOG, partition, old] = real


def write_input(cluster: Cluster, planted: Planted) -> None:
    """Write the input as the lab does."""
    producer = Producer({**cluster.client(), **PRODUCER_CONFIG})
    for record in planted.mutation.topics["input"]:
        produce(producer, planted, "input", record)
    producer.flush(30)


def produce(producer: Producer, planted: Planted, role: str, record: Record, *, keep: bool = True) -> None:
    """Send one record; `keep` where it came to stand."""
    stated = ROLES[planted.check][role]

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            raise KafkaException(error)
        if keep:
            planted.offsets[role, record.partition, record.offset] = message.offset()

    whole = encode(record.key), encode(record.value, stated.value_bytes)
    key, value = planted.mutation.litter.get((role, record), whole)
    producer.produce(
        planted.trial.topic(stated.topic or role),
        value=value,
        key=key,
        partition=record.partition,
        timestamp=record.timestamp or EPOCH,  # 0 is now, and each of two records would have a time of its own
        headers=[(name, bytes.fromhex(data)) for name, data in (h.split("=") for h in record.headers.split())],
        on_delivery=delivered,
    )
    producer.poll(0)


def encode(number: int | None, size: int = 4) -> bytes | None:
    """As the application's serializers write it."""
    if number is None:
        return None
    return struct.pack(">q", number) if size == 8 else struct.pack(">i", number).ljust(size, b"\0")


# --- reading -------------------------------------------------------------------------------------------------


def read(cluster: Cluster, planted: Sequence[Planted]) -> list[Findings]:
    """What the independent reader finds in the trials."""
    found = []
    for first in range(0, len(planted), READ_AT_ONCE):
        some = planted[first : first + READ_AT_ONCE]
        readers = [list(_readers(cluster, trial)) for trial in some]  # each of them idles for a second when it begins
        found += [_finish(cluster, trial, of_trial) for trial, of_trial in zip(some, readers, strict=True)]
    return found


def _readers(cluster: Cluster, planted: Planted) -> Iterator[Reader]:
    roles = ROLES[planted.check]
    for committed in sorted({role.committed for role in roles.values()}):
        sources = [
            Source(planted.trial.topic(role.topic or name), name, role.value_bytes)
            for name, role in roles.items()
            if role.committed == committed
        ]
        partitions = planted.mutation.clean.facts["partitions"]
        yield Reader(cluster, planted.trial.application_id, sources, partitions, committed)


def _finish(cluster: Cluster, planted: Planted, readers: Iterable[Reader]) -> Findings:
    topics = Topics(cluster, planted.trial.application_id)
    ends = topics.ends(topics.names(), planted.mutation.clean.facts["partitions"])
    topics.close()
    records: dict[str, list[Record]] = defaultdict(list)
    corrupt: list[Comparison] = []
    for reader in readers:
        found, faults = reader.finish(ends)
        records |= found
        corrupt += faults
    for role, entries in planted.mutation.topics.items():
        if role.endswith("-contents"):
            records[role] = entries
    findings = CHECKS[planted.check](records, planted.facts)
    findings.witnesses += witnesses_of(corrupt)
    return findings
