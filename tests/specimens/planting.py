"""Mutated trials in the topics of a real broker, written by real transactional producers, as the lab would leave them.

A mutation refers to the offsets of the clean trial. Written anew, its records get others: what is expected is
translated to the offsets that the broker gave. The transactions are those of the clean trial, with neighbours joined so
that no partition has more than a few: each commits the positions in the input of what it writes. Where the clean trial
holds what a killed process had left, an aborted transaction is written, too. So the log also shows what was planted:
which transactions are torn follows from what each of them wrote.
"""

import io
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, pairwise, product
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.lab.load import PRODUCER_CONFIG
from onceproof.lab.log_dump import LogDump, Logs
from onceproof.lab.reader import Reader, TopicSource
from onceproof.lab.segments import SegmentDump, of_the_trial, segment_files, write_segments
from onceproof.lab.topics import ApplicationTopics
from onceproof.model.anomaly import Comparison, Findings, Witness
from onceproof.model.cell import Cell, Trial
from onceproof.model.files import Produced, write_observations
from onceproof.model.json_file import write_json
from onceproof.model.place import Place
from onceproof.model.promise import TRANSACTION_ATOMICITY, least_of, promises_of
from onceproof.model.record import Record
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder, read_contents
from onceproof.model.segments import ABORT, COMMIT, COORDINATOR, OFFSETS, LogEntry
from onceproof.model.timeline import Timeline, read_timeline
from onceproof.readers.checks import CHECKS
from onceproof.readers.segments import compare_segments
from onceproof.readers.stores import compare_stores
from onceproof.scenarios import SCENARIOS, at_least_once, quota
from onceproof.scenarios.base import Role, System
from onceproof.scenarios.liveness import PROMISE as LIVENESS
from onceproof.scenarios.liveness import compare_liveness
from tests.producers import transactional
from tests.specimens import directories, timelines
from tests.specimens.directories import Held, stores_of
from tests.specimens.files import a_plan, an_outcome
from tests.specimens.mutations import ANSWERS, UNLIMITED, Clean, Mutation
from tests.specimens.trials import EPOCH

RELEASE = Release(4, 3, 1)  # the one that the clean trials ran on
WRITERS = 4  # trials that are written at once
READ_AT_ONCE = 25  # trials
BATCHES = 3  # transactions that a partition keeps at least, if it had as many
LOOKS = 20  # at the log segments, until no marker is missing
# A role with one record for each input record, so that its records tell which of these a transaction processed.
GUIDES = {
    "as-of-join": "output",
    "copy": "output",
    "enumerator": "output",
    "counting": "output",
    "dead-letters": "input",
    "dedup": "output",
    "deleter": at_least_once.CHANGELOG,
    "foreign-key-join": "input",
    "global-join": "output",
    "grouped-table": "input",
    "interactive-queries": "output",
    "outbox": "input",
    "scans": at_least_once.CHANGELOG,
    "stream-join": "input",
    "table-join": "input",
    "two-topics": "input",
    "values": quota.ALL,
    "windows": "input",
}
JOINING = (
    "dead-letters",
    "foreign-key-join",
    "grouped-table",
    "outbox",
    "stream-join",
    "table-join",
    "two-topics",
    "windows",
)  # where no input record says what its transaction must write
# Changelogs of which the values count as effects, too; those of others are for other promises.
VALUED = ("last-changelog", "seen-changelog", "records-changelog", "versions-changelog", "values-changelog")
Effect = tuple[int | None, int | None]  # a key, and its value if that counts
OldPlace = tuple[str, int, int]  # role, partition, the offset that a mutation refers to


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
    offsets: dict[OldPlace, int] = field(default_factory=dict)  # those that the broker gave
    stores: list[Held] = field(default_factory=list)
    torn: list[Witness] = field(default_factory=list)  # transactions, by what was written in each

    @property
    def check(self) -> str:
        """The name of its check."""
        return self.mutation.clean.check

    @cached_property
    def system(self) -> System:
        """Its topology, topics and promises, without the comparison of stores as bytes: see `specimens.entries`."""
        system = SCENARIOS[self.trial.cell.scenario].system(self.trial)
        read = {name: role for name, role in system.roles.items() if role.store is None or role.store.has_integers}
        roles = {name: replace(role, store=None) for name, role in read.items()}
        return replace(system, roles=roles, promises=tuple(name for name in system.promises if name != "entries"))

    @property
    def inputs(self) -> list[str]:
        """The roles that only we write to."""
        return ["input", *(name for name, role in self.system.roles.items() if role.plays == "input")]

    @property
    def topics(self) -> set[str]:
        """Its topics."""
        return {self.trial.topic(role.topic or name) for name, role in self.system.roles.items()}

    @property
    def logs(self) -> Logs:
        """Its topics in the brokers' logs."""
        named = {self.trial.topic(r.topic or name): name for name, r in self.system.roles.items() if r.committed}
        return Logs(self.trial.application_id, named)

    @property
    def facts(self) -> dict[str, int]:
        """The clean trial's facts; where topics ended at a kill, in real offsets."""
        facts = {**self.mutation.clean.facts, "ended": 1}
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
        return [*map(self._translated, self.mutation.witnesses), *self._of_stores(), *self.torn]

    def _translated(self, witness: Witness) -> Witness:
        places = tuple(map(self.real, witness.offsets))
        return replace(
            witness, offsets=places, expected=self.real(witness.expected), observed=self.real(witness.observed)
        )

    def real(self, text: str) -> str:
        """The text with real offsets in its places."""

        def translated(found: re.Match[str]) -> str:
            role, partition, offset = found[1], int(found[2]), int(found[3])
            return str(Place(role, partition, self.offsets.get((role, partition, offset), offset)))

        return re.sub(r"([\w-]+)/(\d+)@(\d+)", translated, text)

    def _of_stores(self) -> Iterator[Witness]:
        for held in self.stores:
            changed = self.mutation.held.get((held.store, held.partition, held.task_type), {})
            for key, value in changed.items():
                last, expected = held.last.get(key), held.entries.get(key)
                place = str(Place(f"{held.store}-changelog", held.partition, last.offset)) if last else held.title
                texts = ["nothing" if number is None else str(number) for number in (expected, value)]
                anomaly = "wrong-standby" if held.task_type == "standby" else "wrong-store"
                yield Witness(anomaly, held.partition, key, (), (place,), texts[0], f"{texts[1]}: {held.title}")


def plant(folder: Path, cluster: EmbeddedCluster, mutations: Iterable[Mutation]) -> tuple[RunFolder, list[Planted]]:
    """A run folder and topics as a run of these trials would leave them."""
    run = RunFolder(folder)
    planted = [Planted(trial_of(run, number, mutation.clean), mutation) for number, mutation in enumerate(mutations, 1)]
    create_topics(cluster, planted)
    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(partial(write, cluster), planted))
    for trial in planted:
        trial.stores = list(chain.from_iterable(stores_of(_in_real_places(trial), p) for p in _partitions(trial)))
        write_folder(run, trial)
    write_stores(run, planted)
    write_json(run.run_file, {"trials": [trial.trial.to_dict() for trial in planted]})
    write_json(run.cluster_file(str(cluster.release)), {"bootstrap_servers": cluster.bootstrap_servers})
    return run, planted


def trial_of(run: RunFolder, number: int, clean: Clean) -> Trial:
    """A trial of the scenario and variant that the clean one had; its topics are its own."""
    scenario, _, variant = clean.name.rpartition("-")
    return Trial(run.run_id, Cell(scenario, variant, RELEASE, Release(3, 9, 1)), number, seed=number)


def create_topics(cluster: Cluster, planted: Iterable[Planted]) -> None:
    """Create the topics of the trials."""
    # The records are as old as their timestamps say.
    forever = {"retention.ms": "-1"}
    topics = [
        NewTopic(topic, len(_partitions(trial)), 1, config=forever) for trial in planted for topic in trial.topics
    ]
    admin = AdminClient(cluster.client())
    for future in admin.create_topics(topics).values():
        future.result(60)


def delete_topics(cluster: Cluster, planted: Iterable[Planted]) -> None:
    """Delete the topics of the trials."""
    admin = AdminClient(cluster.client())
    for future in admin.delete_topics([topic for trial in planted for topic in trial.topics]).values():
        future.result(60)


def _partitions(planted: Planted) -> range:
    return range(planted.mutation.clean.facts["partitions"])


# --- the folder of a trial -----------------------------------------------------------------------------------


def write_folder(run: RunFolder, planted: Planted) -> None:
    """What a trial leaves besides its topics: its plan, outcome and timeline, and what its store held at a restart."""
    trial, clean, folder = planted.trial, planted.mutation.clean, run.trial(planted.trial)
    system = planted.system
    atomicity = [promise.name for promise in promises_of(TRANSACTION_ATOMICITY)]
    plan = a_plan(
        trial,
        check=clean.check,
        roles=system.topics,
        promises=least_of([*system.promises, LIVENESS, *atomicity]),
        partitions=len(_partitions(planted)),
        stores=system.stores,
        partition_stores=system.stores * len(_partitions(planted)),
        preloaded=len(clean.topics.get("seen-contents", ())),
    )
    plan.write(folder.trial_file)
    produced = Produced(len(clean.topics["input"]), len(clean.by_key["input"]))
    an_outcome(trial, facts=planted.facts, produced=produced).write(folder.outcome_file)
    timeline = Timeline(folder.timeline)
    for event in timelines.events_of(trial.cell.scenario, planted.mutation.changed, planted.mutation.events):
        timeline.append(event)
    timeline.close()
    write_observations(folder.observations_file, observations(run, planted))
    folder.contents.mkdir()
    for role, entries in planted.mutation.topics.items():
        store, is_store, _ = role.partition("-contents")
        if is_store:
            lines = [f"{store},{r.partition},{r.offset},{r.key},{r.value}\n" for r in entries]
            (folder.contents / f"{store}.csv").write_text("".join(lines))


def observations(run: RunFolder, planted: Planted) -> list[Comparison]:
    """What the timeline of the trial shows."""
    events = read_timeline(run.trial(planted.trial).timeline)
    observed = SCENARIOS[planted.trial.cell.scenario].observe(planted.trial, events)
    return [*observed, *compare_liveness(events)]


def write_stores(run: RunFolder, planted: Sequence[Planted]) -> None:
    """What stores held at the end: if one store of a task is mutated, all of the task's come from its directory."""
    laid_out: dict[Path, Mapping[int, int | None]] = {}
    tasks: list[tuple[Path, list[Held], Planted]] = []
    for trial in planted:
        folder = run.trial(trial.trial)
        folder.dumps_folder.mkdir()
        for place in {(partition, role) for _, partition, role in trial.mutation.held}:
            stores = [held for held in trial.stores if (held.partition, held.task_type) == place]
            changes = {s: entries for (s, *of), entries in trial.mutation.held.items() if tuple(of) == place}
            task = folder.state / place[1] / f"0_{place[0]}"
            laid_out |= directories.lay_out(task, stores, changes, trial.trial.topic)
            tasks.append((task, stores, trial))
        read_back = {held.file for _, stores, of in tasks if of is trial for held in stores}
        for held in (held for held in trial.stores if held.file not in read_back):
            lines = (f"{key},{value}\n" for key, value in held.entries.items())
            (folder.dumps_folder / held.file).write_text("".join(lines))
    directories.alter(RELEASE, laid_out)
    with ThreadPoolExecutor(2) as readers:
        list(readers.map(lambda task: directories.dump(RELEASE, task[0], task[1], run.trial(task[2].trial)), tasks))


def _in_real_places(planted: Planted) -> dict[str, list[Record]]:
    """The records of the changelogs that can be decoded, with the offsets that the broker gave."""
    topics = planted.mutation.topics
    return {
        role: [r._replace(offset=planted.offsets[role, r.partition, r.offset]) for r in topics[role]]
        for role in planted.logs.roles.values()
        if role.endswith("-changelog")
    }


# --- transactions --------------------------------------------------------------------------------------------


def transactions_of(mutation: Mutation, roles: Mapping[str, Role]) -> Iterator[Transaction]:
    """The transactions of a mutated trial, partition by partition, each in its order."""
    # If all of a topic is read, a role with what is committed of it is not written separately.
    read_whole = {role.topic for role in roles.values()}
    written = [
        name
        for name, role in roles.items()
        if (role.plays or name) not in ("input", ANSWERS) and name not in read_whole
    ]
    for partition in range(mutation.clean.facts["partitions"]):
        yield from _of_partition(mutation, written, partition)


def _of_partition(mutation: Mutation, written: Sequence[str], partition: int) -> Iterator[Transaction]:
    clean = mutation.clean
    begins = _begins(clean, partition)
    bounds = {role: _bounds(clean, role, partition, begins) for role in written}
    for n, position in enumerate([*begins[1:], len(clean.by_partition["input"][partition])]):
        first, last = ({role: of_role[n + k] for role, of_role in bounds.items()} for k in (0, 1))
        parts = {
            role: [r for r in _in_topic(mutation, role, partition) if first[role] <= r.offset < last[role]]
            for role in written
        }
        yield from _whole_or_aborted(mutation, Transaction(partition, parts, position))
        left = {role: _aborted(clean, role, partition, last[role]) for role in written}
        if any(left.values()):
            yield Transaction(partition, left, position, committed=False)
    tail = {role: [r for r in _in_topic(mutation, role, partition) if r.offset >= b[-1]] for role, b in bounds.items()}
    if any(tail.values()):
        yield Transaction(partition, tail, len(mutation.partition("input", partition)))


def _in_topic(mutation: Mutation, role: str, partition: int) -> list[Record]:
    """The records of a role; if all of its topic is read, the committed ones replace those at the same offsets."""
    found = {record.offset: record for record in mutation.written(role, partition)}
    if role == quota.ALL:
        found |= {record.offset: record for record in mutation.written(quota.CHANGELOG, partition)}
    return [record for _, record in sorted(found.items())]


def _begins(clean: Clean, partition: int) -> list[int]:
    """The input records with which transactions of the clean trial begin, neighbours joined."""
    offsets = [r.offset for r in clean.by_partition[GUIDES[clean.check]][partition]]
    gaps = [(n, after - before) for n, (before, after) in enumerate(pairwise(offsets), 1) if after > before + 1]
    step = max(1, (len(gaps) + 1) // BATCHES)
    return [0, *(begin for n, (begin, gap) in enumerate(gaps, 1) if n % step == 0 or gap > 2)]


def _bounds(clean: Clean, role: str, partition: int, begins: Sequence[int]) -> list[int]:
    """The offsets at which the parts of transactions begin in a role, and where the last one ends."""
    numbers = {record.offset: n for n, record in enumerate(clean.by_partition["input"][partition])}
    caused = [(r.offset, numbers[cause.offset]) for r, cause in clean.caused[role] if r.partition == partition]
    end = max((offset for offset, _ in caused), default=-2) + 2
    return [*(min((o for o, n in caused if n >= begin), default=end) for begin in begins), end]


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
    for whole, of_run in runs:
        processed = sum(record.offset <= of_run[-1].offset for record in guide)
        yield replace(transaction, records={quota.ALL: of_run}, committed=whole, position=processed)


# --- what is torn --------------------------------------------------------------------------------------------


def torn(planted: Planted, transactions: Iterable[Transaction]) -> Iterator[Witness]:
    """The committed transactions that do not hold what the clean trial wrote for the inputs they commit."""
    reached: Counter[int] = Counter()
    for transaction in transactions if planted.check not in JOINING else ():
        partition = transaction.partition
        if transaction.committed:
            due = _due(planted, partition, reached[partition], transaction.position)
            reached[partition] = max(reached[partition], transaction.position)
            yield from _compare(planted, transaction, due)


def _due(planted: Planted, partition: int, first: int, last: int) -> dict[str, Counter[Effect]]:
    """The effects that the clean trial wrote to each role for these records of the input, and what more input gives."""
    clean = planted.mutation.clean
    inputs = planted.mutation.partition("input", partition)
    more = [record.key for record in inputs[max(first, len(clean.by_partition["input"][partition])) : last]]
    offsets = {record.offset for record in inputs[first:last]}
    due = {}
    for role in planted.logs.roles.values():
        if role not in ("input", ANSWERS):
            caused = ((r, cause) for r, cause in clean.caused[role] if r.partition == partition)
            due[role] = _counted(role, [r for r, cause in caused if cause.offset in offsets])
    if "output" in due:
        due["output"] += Counter((key, None) for key in more)
    return due


def _counted(role: str, records: Sequence[Record]) -> Counter[Effect]:
    """Effects with their counts; a store may be cached, so of its entries only the last of each key counts."""
    effects = [(record.key, record.value if role in VALUED else None) for record in records]
    return Counter(dict(effects).items() if role.endswith("-changelog") else effects)


def _compare(planted: Planted, transaction: Transaction, due: Mapping[str, Counter[Effect]]) -> Iterator[Witness]:
    """The first role in which something is missing or foreign, except where it has a record that nobody can read."""
    partition = transaction.partition
    for role in sorted(due):
        part = transaction.records.get(quota.ALL if role == quota.CHANGELOG else role, ())
        written = _counted(role, part)
        missing, foreign = due[role] - written, written - due[role]
        if (missing or foreign) and not any((role, record) in planted.mutation.litter for record in part):
            expected, found = (f"{n.total()} effect{'' if n.total() == 1 else 's'}" for n in (due[role], written))
            amiss = [f"{n.total()} {what}" for n, what in ((missing, "missing"), (foreign, "foreign")) if n]
            key = min(key for key, _ in missing | foreign if key is not None)
            place = planted.real(str(Place(role, partition, part[0].offset))) if part else OFFSETS
            observed = ", ".join(["committed", found, *amiss]) if part else "nothing"
            yield Witness("torn-transaction", partition, key, (), (place,), f"committed, {expected}", observed)
            return


# --- writing -------------------------------------------------------------------------------------------------


def write(cluster: Cluster, planted: Planted) -> None:
    """Write the input, then the transactions; keep the offsets that the broker gave."""
    trial, clean = planted.trial, planted.mutation.clean
    write_input(cluster, planted)
    group = Consumer({**cluster.client(), "group.id": trial.application_id})
    producer = transactional(cluster, f"{trial.application_id}-planter")
    try:
        transactions = list(transactions_of(planted.mutation, planted.system.roles))
        for transaction in transactions:
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
    if ANSWERS in clean.topics:
        write_answers(cluster, planted)
    if clean.check == "values":
        for (role, partition, old), real in list(planted.offsets.items()):
            if role == quota.ALL:
                planted.offsets[quota.CHANGELOG, partition, old] = real
    planted.torn = list(torn(planted, transactions))


def write_input(cluster: Cluster, planted: Planted) -> None:
    """Write the inputs as the lab does."""
    producer = Producer({**cluster.client(), **PRODUCER_CONFIG})
    for role, partition in product(planted.inputs, _partitions(planted)):
        for record in planted.mutation.written(role, partition):
            produce(producer, planted, role, record)
    producer.flush(30)


def write_answers(cluster: Cluster, planted: Planted) -> None:
    """Write the answers to interactive queries as the client does, with the offsets that the broker gave to others."""
    producer = Producer({**cluster.client(), **PRODUCER_CONFIG})
    for partition in _partitions(planted):
        for record in planted.mutation.written(ANSWERS, partition):
            produce(producer, planted, ANSWERS, record._replace(headers=_in_real_offsets(planted, record)))
    producer.flush(30)


def _in_real_offsets(planted: Planted, answer: Record) -> str:
    """The headers of an answer; one that cannot be decoded has none."""
    headers = dict(header.split("=") for header in answer.headers.split())
    for name, role in (("floor", "last-changelog"), ("ceiling", "last-changelog"), ("read", "input")):
        limit = int(headers.get(name, "0"), 16)
        if 0 < limit < UNLIMITED:
            real = {old: to for (r, p, old), to in planted.offsets.items() if (r, p) == (role, answer.partition)}
            behind = max(real.values(), default=0) + 1
            headers[name] = f"{min((to for old, to in real.items() if old >= limit), default=behind):016x}"
    return " ".join(f"{name}={digits}" for name, digits in headers.items())


def produce(producer: Producer, planted: Planted, role: str, record: Record, *, keep: bool = True) -> None:
    """Send one record; `keep` the place that it got."""
    stated = planted.system.roles[role]

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
        timestamp=record.timestamp or EPOCH,  # 0 is now, and two records would have different times
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


def read(run: RunFolder, cluster: EmbeddedCluster, planted: Sequence[Planted]) -> list[Findings]:
    """What the independent reader finds in the trials; what the log segments hold is written down as well."""
    found = []
    logs = read_logs(run, cluster, planted)
    for first in range(0, len(planted), READ_AT_ONCE):
        some = planted[first : first + READ_AT_ONCE]
        readers = [list(_readers(cluster, trial)) for trial in some]  # each of them idles for a second at its start
        for trial, of_trial in zip(some, readers, strict=True):
            found.append(_finish(run, cluster, trial, of_trial, logs[trial.trial.key]))
    return found


def _readers(cluster: Cluster, planted: Planted) -> Iterator[Reader]:
    roles = planted.system.roles
    for committed in sorted({role.committed for role in roles.values()}):
        sources = [
            TopicSource(planted.trial.topic(role.topic or name), name, role.value_bytes, len(_partitions(planted)))
            for name, role in roles.items()
            if role.committed == committed
        ]
        yield Reader(cluster, planted.trial.application_id, sources, committed)


def _finish(
    run: RunFolder, cluster: Cluster, planted: Planted, readers: Iterable[Reader], entries: Sequence[LogEntry]
) -> Findings:
    topics, folder = ApplicationTopics(cluster, planted.trial.application_id), run.trial(planted.trial)
    ends = topics.ends(topics.sizes())
    topics.close()
    read: dict[str, list[Record]] = defaultdict(list)
    corrupt: list[Comparison] = []
    for reader in readers:
        found, faults = reader.finish(ends)
        read |= found
        corrupt += faults
    for role, partition, offset, key, value in read_contents(folder.contents):
        read[role].append(Record(partition, offset, key, value))
    findings = CHECKS[planted.check](read, planted.facts)
    findings.add([*corrupt, *compare_stores(folder.dumps(), read), *observations(run, planted)])
    seen = {role: list(read[role]) for role in planted.logs.roles.values()}
    for place in filter(None, (Place.parse(comparison.place) for comparison in corrupt)):
        if place.role in seen:
            seen[place.role].append(Record(place.partition, place.offset, key=None, value=None))
    findings.add(list(compare_segments(entries, seen, planted.check, planted.facts)))
    return findings


class Segments(SegmentDump):
    """The log segments of many trials, read by one program."""

    def __init__(self, cluster: EmbeddedCluster, planted: Sequence[Planted], folder: Path) -> None:
        """Start it."""
        self.planted = planted
        self._folder = cluster.folder
        super().__init__(cluster, planted[0].logs, folder)

    def _runs(self) -> Iterator[str]:
        files = dict.fromkeys(place for trial in self.planted for place in segment_files(self._folder, trial.logs))
        for options, wanted in (
            ((), lambda role: role == "input"),
            (("--print-data-log",), lambda role: role not in ("input", OFFSETS, COORDINATOR)),
            (("--print-data-log", "--offsets-decoder"), lambda role: role == OFFSETS),
            (("--print-data-log", "--transaction-log-decoder"), lambda role: role == COORDINATOR),
        ):
            yield from ("--run", "--files", ",".join(str(file) for role, file in files if wanted(role)), *options)

    def of_trials(self) -> Iterator[list[LogEntry]]:
        """What they hold for each trial."""
        self.await_printed()
        parts: dict[str, list[bytes]] = defaultdict(list)  # by topic
        for line in io.BytesIO(self.printed.read_bytes()):  # lines as a file has them: keys hold other ends of lines
            if line.startswith(b"Dumping "):
                topic = Path(line.decode().removeprefix("Dumping ").strip()).parent.name.rpartition("-")[0]
            parts[topic].append(line)
        for trial in self.planted:
            logs = trial.logs
            lines = (parts[topic] for topic in (*logs.roles, OFFSETS, COORDINATOR))
            yield of_the_trial(list(LogDump(logs).entries(chain.from_iterable(lines))))


def read_logs(run: RunFolder, cluster: EmbeddedCluster, planted: Sequence[Planted]) -> dict[str, list[LogEntry]]:
    """The log segments of the trials, by trial; markers come a little after the answer to a commit."""
    for _ in range(LOOKS):
        segments = Segments(cluster, planted, run.path)
        try:
            found = dict(zip((trial.trial.key for trial in planted), segments.of_trials(), strict=True))
        finally:
            segments.stop()
        if not any(map(_lacks_marker, found.values())):
            break
    for trial, entries in found.items():
        write_segments(run.trial(trial).segments_file, entries)
    return found


def _lacks_marker(entries: Sequence[LogEntry]) -> bool:
    """Whether a log that belongs to a transaction has no marker of it yet."""
    decided = Counter[tuple[str | None, int | None, int]](
        (e.of_role, e.of_partition, e.producer) for e in entries if e.role == COORDINATOR
    )
    marked = Counter[tuple[str | None, int | None, int]](
        (e.role, e.partition, e.producer) for e in entries if e.kind in (COMMIT, ABORT)
    )
    return bool(decided - marked)
