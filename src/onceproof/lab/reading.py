"""Reads what a trial left behind: its topics, what stores held, and the brokers' log segments."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onceproof.lab.context import TrialContext
from onceproof.lab.log_dump import Logs
from onceproof.lab.messages import read_messages
from onceproof.lab.plan import reads_segments
from onceproof.lab.reader import Decoder, Reader, TopicSource
from onceproof.lab.segments import SegmentDump, write_segments
from onceproof.model.anomaly import Comparison
from onceproof.model.files import TrialPlan, since
from onceproof.model.place import Place
from onceproof.model.record import Record
from onceproof.model.run_folder import TrialFolder, read_contents
from onceproof.model.segments import LogEntry
from onceproof.readers.ownership import PROMISE as OWNERSHIP
from onceproof.readers.ownership import longest_idle
from onceproof.readers.segments import compare_segments, select_committed

TIMEOUTS = ("producer.transaction.timeout.ms", "transaction.timeout.ms")  # the first of them counts
TIMES_OUT_AFTER = "10000"  # ms, what Kafka Streams takes if neither is set
ABORTED_WITHIN = 15.0  # seconds; brokers look every ten for transactions that have timed out
MARKED_WITHIN = 5.0  # seconds that the last markers have, once all is drained, closed and read


def open_for(plan: TrialPlan) -> float:
    """Seconds for which a transaction may stay open, once all is drained and closed.

    A process that was killed leaves one open until it times out, if its successor has another transactional ID. A task
    without stores gives it a new one.
    """
    configs = since(plan.streams_config, plan.later)
    timeouts = [next((config[name] for name in TIMEOUTS if name in config), TIMES_OUT_AFTER) for config in configs]
    return max(map(int, timeouts)) / 1_000 + ABORTED_WITHIN


@dataclass(frozen=True)
class Read:
    """The records of the topics."""

    records: Mapping[str, list[Record]]  # by role; what stores held is under `<store>-contents`
    corrupt: Sequence[Comparison]  # what cannot be decoded
    ends: Mapping[tuple[str, int], int]  # by topic and partition: up to where committed records were read


def list_sources(plan: TrialPlan, *, committed: bool) -> list[TopicSource]:
    """The topics of a trial of which committed records are read, or those of which all are."""
    return [
        TopicSource(
            plan.topic(role),
            role,
            planned.value_bytes,
            plan.partitions_of(role),
            planned.declared,
            planned.keys,
            planned.store,
        )
        for role, planned in plan.roles.items()
        if planned.committed == committed
    ]


def read_kept(plan: TrialPlan, folder: TrialFolder) -> Read:
    """The records of the topics, from the messages that were kept when they were read from brokers.

    Raises:
        HarnessError: they were not kept.
    """
    records: dict[str, list[Record]] = {role: [] for role in plan.roles}
    corrupt: list[Comparison] = []
    for committed in (True, False):
        if sources := list_sources(plan, committed=committed):
            decoder = Decoder(sources)
            for message in read_messages(folder.messages_file(committed=committed)):
                decoder.take(message)
            records |= decoder.records
            corrupt += decoder.corrupt
    return Read(_with_contents(records, folder), corrupt, {})


def _with_contents(records: dict[str, list[Record]], folder: TrialFolder) -> dict[str, list[Record]]:
    """Records, with what stores held when an instance began to work."""
    for role, partition, line, key, value in read_contents(folder.contents):
        records.setdefault(role, []).append(Record(partition, line, key, value))
    return records


class TopicReading:
    """Reads the topics of a trial, in the background once all of them exist."""

    def __init__(self, context: TrialContext) -> None:
        self._context = context
        self._readers: list[Reader] = []
        self._reads_along = True

    def at_the_end(self) -> None:
        """Read what is left at the end only, as what was read along may be gone by then."""
        self._reads_along = False
        self.stop()

    def follow(self) -> None:
        """Begin to read along, if all topics exist."""
        if (
            self._reads_along
            and not self._readers
            and self._context.wanted_topics <= (present := self._context.topics.names())
        ):
            self._start(present)

    def await_topics(self) -> None:
        """Wait for the topics that the application creates.

        Raises:
            HarnessError: one is missing.
        """
        wanted, context = self._context.wanted_topics, self._context
        context.await_(
            f"the topics {', '.join(sorted(wanted))}", lambda: wanted <= context.topics.names(), 30, check=context.check
        )

    def open_transaction(self) -> str | None:
        """Where a transaction stays open, which hides the records behind it; None as a rule."""

        def places() -> list[tuple[str, int]]:
            ends, stable = self._context.ends(), self._context.ends(committed=True)
            return [place for place, end in ends.items() if stable[place] < end]

        if self._context.holds_within(open_for(self._context.plan), lambda: not places()):
            return None
        [(topic, partition), *_] = places()
        return f"{topic}/{partition}"

    def read(self) -> Read:
        """Read all existing topics to their ends, once no producer writes any more.

        Raises:
            HarnessError: they cannot be read.
        """
        if not self._readers:
            self._start(self._context.present_topics())
        ends = {committed: self._context.ends(committed=committed) for committed in (True, False)}
        records: dict[str, list[Record]] = {role: [] for role in self._context.plan.roles}
        corrupt: list[Comparison] = []
        while self._readers:
            reader = self._readers.pop()
            found, faults = reader.finish(ends[reader.committed])
            reader.keep(self._context.folder.messages_file(committed=reader.committed))
            records |= found
            corrupt += faults
        return Read(_with_contents(records, self._context.folder), corrupt, ends[True])

    def _start(self, present: set[str]) -> None:
        """One for committed records, and one for all records, of the topics for which these are wanted."""
        context, plan = self._context, self._context.plan
        for committed in (True, False):
            sources = [source for source in list_sources(plan, committed=committed) if source.topic in present]
            if sources:
                reader = context.world.reader(context.cluster, plan.application_id, sources, committed)
                self._readers.append(reader)

    def stop(self) -> None:
        """Stop the readers of all topics."""
        while self._readers:
            self._readers.pop().stop()


class SegmentReading:
    """Reads the brokers' log segments, if these are to be examined."""

    def __init__(self, context: TrialContext) -> None:
        self._context = context
        self._dump: SegmentDump | None = None

    def begin(self) -> None:
        """Begin, in the background."""
        if reads_segments(self._context.plan):
            self._dump = SegmentDump(self._context.cluster, logs_of(self._context.plan), self._context.folder.path)

    def compare(self, read: Read) -> list[Comparison]:
        """The entries of the log segments, to be compared with what was read; written down as well.

        Markers come a little after the answer to a commit, so if one is missing, the segments are read once more.
        """
        plan, world = self._context.plan, self._context.world
        compared: list[Comparison] = []
        deadline = world.monotonic() + MARKED_WITHIN
        topics = select_logged(plan, read)
        positioned = self._context.failure is None and bool(topics.get("input"))
        while self._dump is not None:
            entries = self._dump.finish(topics, positioned=positioned)
            self._dump = None
            compared = list(compare_segments(entries, topics, plan.check, self._context.facts))
            write_segments(self._context.folder.segments_file, entries)
            is_open = any(comparison.anomaly == "hanging-transaction" for comparison in compared)
            if is_open and world.monotonic() < deadline:
                self.begin()
            elif OWNERSHIP in plan.promises:
                self._note_idle(entries, topics["input"])
        return compared

    def _note_idle(self, entries: Sequence[LogEntry], inputs: Sequence[Record]) -> None:
        """Write down for how long each partition was idle, whether that is too long or not."""
        for idle in longest_idle(select_committed(entries), inputs).values():
            fields = {"partition": idle.partition, "offset": idle.offset, "ms": idle.ms}
            self._context.timeline.append({"t": idle.begin, "source": "driver", "event": "idle", **fields})

    def stop(self) -> None:
        """Stop the dump of the log segments, if one runs."""
        if self._dump is not None:
            self._dump.stop()


def select_logged(plan: TrialPlan, read: Read) -> dict[str, list[Record]]:
    """By role the records of the topics whose log segments are read, those included that cannot be decoded."""
    undecoded: dict[str, list[Record]] = defaultdict(list)
    for place in filter(None, (Place.parse(comparison.place) for comparison in read.corrupt)):
        undecoded[place.role].append(Record(place.partition, place.offset, key=None, value=None))
    return {role: [*read.records[role], *undecoded[role]] for role in logs_of(plan).roles.values()}


def logs_of(plan: TrialPlan) -> Logs:
    """The logs of a trial's topics, by the roles that are read as committed."""
    # What is in the inputs of your own application is ours, and they are not called `input`.
    roles = {
        plan.topic(role): role
        for role, planned in plan.roles.items()
        if planned.committed and (planned.declared is None or planned.declared.plays == "output")
    }
    return Logs(plan.application_id, roles)
