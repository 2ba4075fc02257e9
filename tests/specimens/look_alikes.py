"""For each explanation of the registry a witness that it explains, written by hand, and look-alikes that it does not.

A case says in words of its own what a trial must have been like. It shares nothing with `known_issues.toml`, so a row
that asks for less, for more or for something else than it did no longer agrees with its case. Each look-alike differs
from the case in one thing. Most follow from what the case says: an event that did not happen, a fault of another kind, a
parameter that is 0, a record that had been committed, the task of another partition, a key that came in with another
value. Those of texts and of times are written down with it (`unlike`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from onceproof.faults import FAULTS
from onceproof.model.anomaly import Witness
from onceproof.model.explaining import Scene
from onceproof.model.history import ENTRIES, Input
from onceproof.model.known_issues import registry
from onceproof.model.timeline import Event

OPEN, LATER = 3_000, 100_000  # the first offset that was not committed; and one behind all records
KILLS = "instance-kill disk-full read-only"
CLEAN = "rolling-bounce bounce thread-removed"  # after which a store is opened again that was left cleanly
Record = tuple[int, int]  # value, and time in ms


@dataclass(frozen=True)
class Case:
    """A witness of each of some anomalies in one trial, which the first of the issue's explanations that fits explains.

    `{p}` in a place stands for the partition.

    Attributes:
        issue: its key.
        anomalies: all that the explanation has, with blanks between.
        scenario: of the trial; None: the first of the issue's.
        variants: those of the issue's in which it holds, with blanks between; None: in all.
        elsewhere: scenarios of the issue in which it does not hold, with blanks between.
        after: an event of the timeline.
        opened: the event, or the name `fault`, at which the record of its key was not committed.
        faults: any one of these struck, with blanks between.
        given: parameters that are not 0, with blanks between.
        other: more parameters.
        task: what the timeline says of the task: `returned`, `stayed`, `restored` or `struck`.
        instance: whether the event is of the instance that its place names.
        place: where it was seen.
        observed: what was observed.
        expected: what should have been.
        entries: the same two of the entries of a store, where the anomaly is of these.
        came: the records that its key came in with, in order, from the first offset that was not committed on.
        first: the offset of the first of them.
        times: the times of these, if they matter.
        reached: the first offset that was not committed at the event.
        unlike: more look-alikes, each as the attributes in which it differs.
    """

    issue: str
    anomalies: str
    scenario: str | None = None
    variants: str | None = None
    elsewhere: str = ""
    after: str | None = None
    opened: str | None = None
    faults: str = ""
    given: str = ""
    other: Mapping[str, Any] = field(default_factory=dict)
    task: str | None = None
    instance: bool = True
    place: str = "output/{p}@70"
    observed: str = ""
    expected: str = ""
    entries: tuple[str, str] | None = None
    came: Sequence[int] = (7,)
    first: int = OPEN
    times: Sequence[int] = ()
    reached: int | None = None
    unlike: tuple[Mapping[str, Any], ...] = ()
    # In which a look-alike differs.
    fault: str | None = None
    at_home: bool = True  # the witness is of the partition of the task
    committed: bool = False
    variant: str | None = None
    anomaly: str | None = None

    @property
    def name(self) -> str:
        """For the names of tests."""
        return f"{self.issue}: {self.anomalies}, {self.scenario or ''} {self.after or self.faults}"

    @property
    def where(self) -> tuple[str, str | None]:
        """The scenario and the variant of its trial; None for one with parameters of its own."""
        [row] = [row for row in registry().issues if row.key == self.issue]
        scenario = self.scenario or next(iter(row.variants))
        named = [*row.variants[scenario], *row.sometimes.get(scenario, ())]
        return scenario, self.variant or (self.variants.split()[0] if self.variants else next(iter(named), None))

    def witnesses(self, partition: int = 0, key: int = 9) -> list[Witness]:
        """One of each anomaly."""
        at = partition if self.at_home else partition + 1
        names = [self.anomaly] if self.anomaly else self.anomalies.split()
        place = self.place.format(p=at)
        texts = dict.fromkeys(ENTRIES, self.entries or (self.expected, self.observed))
        return [
            Witness(name, at, key, (), (place,), *texts.get(name, (self.expected, self.observed))) for name in names
        ]

    def scene(
        self, partition: int = 0, key: int = 9, events: Sequence[Event] = (), noise: Sequence[Input] = ()
    ) -> Scene:
        """Its trial, with further events and records."""
        times = self.times or range(len(self.came))
        pairs = enumerate(zip(self.came, times, strict=True), self.first)
        records = [(partition, offset, key, value, time) for offset, (value, time) in pairs]
        parameters = {**dict.fromkeys(self.given.split(), 1), **self.other}
        return Scene([*events, *self._events(partition)], lambda: [*records, *noise], parameters)

    def _events(self, p: int) -> Iterator[Event]:
        first = self.reached if self.reached is not None else LATER if self.committed else OPEN
        open_ = {"input": {str(p): [first, None]}} if self.opened or self.reached is not None else {}
        yield from _of_task(self.task, p)
        fault = self.fault or next(iter(self.faults.split()), None)
        if fault is not None:
            at_fault = {"open": open_} if self.opened == "fault" or self.reached is not None else {}
            applied = {"event": "fault", "name": fault, "action": "applied", "on": "instance-1"}
            yield {"t": 5, "source": "driver", **applied, **at_fault}
        if self.after is not None:
            source = "instance-1" if self.instance else "instance-2"
            yield {"t": 6, "source": source, "event": self.after, "open": open_}

    def look_alikes(self) -> Iterator["Case"]:
        """Those that follow from what it says, and those that are written down."""
        [row] = [row for row in registry().issues if row.key == self.issue]
        if self.after:
            yield replace(self, after=None)
        if self.opened:
            yield replace(self, committed=True)
        if self.faults:
            yield from (replace(self, fault=name) for name in FAULTS if name not in self.faults.split())
        for name in self.given.split():
            yield replace(self, other={**self.other, name: 0})
        if self.task:
            yield replace(self, at_home=False)
            yield replace(self, task=None)
        if self.variants:
            scenario, _ = self.where
            all_ = (*row.variants[scenario], *row.sometimes.get(scenario, ()), "ANOTHER")
            yield from (replace(self, variant=name) for name in all_ if name not in self.variants.split())
        yield from (replace(self, scenario=name) for name in self.elsewhere.split())
        yield from (replace(self, **difference) for difference in self.unlike)


def _of_task(what: str | None, p: int) -> Iterator[Event]:
    mine, other = f"0_{p}", f"0_{p + 1}"

    def assigned(t: int, active: Sequence[str], standby: Sequence[str] = (), number: int = 1) -> Event:
        source = f"instance-{number}"
        thread = {"thread": f"a-{source}-StreamThread-1", "active": [*active], "standby": [*standby]}
        return {"t": t, "source": source, "event": "assignment", "threads": [thread]}

    match what:
        case "returned":
            yield from (assigned(1, [mine, other]), assigned(2, [other], [mine]), assigned(3, [mine, other]))
        case "stayed":
            yield from (assigned(1, [mine, other]), assigned(2, [mine]))
        case "restored":
            restore = {"t": 3, "source": "i", "event": "restore", "store": "s", "from": 0}
            yield from ({**restore, "partition": p, "end": 9}, {**restore, "partition": p + 1, "end": 0})
        case "struck":
            yield from (assigned(1, [mine]), assigned(1, [other], number=2))


def _died(of: str) -> str:
    return f"StreamThread-1 died of X: y, caused by {of}"


def _died_at_commit(of: str) -> str:
    return f"StreamThread-1 died of X: Error encountered trying to commit a transaction [t], caused by {of}"


def _of_window(start: int, end: int) -> str:
    return f"1 record of the window from {start} to {end}"


def _version(asks: int, number: int) -> str:
    return str(asks << 32 | number)


NULL_POINTER = {"observed": _died("java.lang.NullPointerException: null")}
OPENING = "KafkaStreams.start died of X: Error opening store sums.60000 at location /a"
GONE = f"{OPENING}, caused by Y: While opening a file: /a/MANIFEST-5: No such file or directory"
NOT_GONE: tuple[Mapping[str, Any], ...] = (
    {"observed": GONE.replace("KafkaStreams.start", "StreamThread-1")},
    {"observed": f"{OPENING}, caused by Y: lock hold by current process"},
    {"observed": "KafkaStreams.start died of X: base state directory /a: No such file or directory"},
)
RESTORING = _died("Z: Exception caught while trying to restore state from s-changelog-2, caused by ")
ADD_TO_BATCH = "at org.apache.kafka.streams.state.internals.RocksDBStore.addToBatch(RocksDBStore.java:650)"
HALF_RESTORED = f"{RESTORING}java.lang.NullPointerException: null, {ADD_TO_BATCH}"
CLOSED = "Store sums.1795562460000 is currently closed"
ABORTED = _died("InvalidProducerEpochException: old epoch")
TOO_LARGE = _died("java.lang.IllegalArgumentException: Timestamp is too large to be found in this segment.")
WHERE_IT_ABORTS = "DEFAULT_CONFIG SHORT_REQUEST_TIMEOUT SLEEP_25 SLEEP_30 COMMIT_EVERY_SECOND LARGE_RECORDS"
LEFT_BEHIND = "503: active store left of instance-1, partition 0, at offset 20010"
WRONG_JOIN = "lost-record unexpected-record wrong-value wrong-timestamp"
WRONG_VERSION = "wrong-value lost-entry wrong-entry"
# A table of versions: 1 at 100 ms, 2 at 200, 4 at 400; one that is too old; who asks at 250 gets 2.
VERSIONS: Mapping[str, Any] = {
    "came": (-1, -2, -4, -6, 7),
    "times": (100, 200, 400, -100, 250),
    "first": 0,
    "other": {"retention": 400},
    "reached": 3,
}
DUE = "01 at 100 and 02 at 200 and 04 at 400"
ENDED: Mapping[str, Any] = {
    **VERSIONS,
    "expected": _version(7, 2),
    "observed": _version(7, 0),
    "entries": (DUE, "01 at 100 and 04 at 400"),
    "unlike": (
        {"reached": 2},  # it ended afterwards
        {"observed": _version(7, 4), "entries": (DUE, "01 at 100 and 02 at 200")},  # another one came; the last is lost
    ),
}
TOO_OLD: Mapping[str, Any] = {
    **VERSIONS,
    "expected": _version(7, 2),
    "observed": _version(7, 6),
    "entries": (DUE, f"06 at -100 and {DUE}"),
    "unlike": (
        {"reached": 4},  # it came before, and was dropped
        {"observed": _version(7, 5), "entries": (DUE, f"05 at -100 and {DUE}")},  # it was never put
    ),
}
GROWN: Mapping[str, Any] = {
    "variants": "SESSION_KEPT",
    "given": "kept.longer",
    "other": {"size": 60, "grace": 10},
    "came": (5, 5, 5),
    "times": (1_000, 1_071, 1_050),  # the last one comes when a session that ended at 1,000 had closed
}

CASES = (
    # --- caches and tasks ---
    Case("KAFKA-14172", "counter-regression duplicate-id wrong-id wrong-store wrong-standby", task="returned"),
    Case(
        "KAFKA-14172",
        "changelog-output-mismatch",
        place="counter-changelog/{p}@6",
        task="returned",
        unlike=({"place": "ids-changelog/{p}@6"},),
    ),
    Case("KAFKA-14624", "stale-read wrong-store wrong-standby", task="returned"),
    Case(
        "KAFKA-19510",
        "stuck",
        after="locked",
        observed="instance-1 RUNNING, instance-2 REBALANCING",
        unlike=({"observed": "instance-1 RUNNING, instance-2 RUNNING"},),
    ),
    Case(
        "KAFKA-18943",
        "torn-transaction",
        task="stayed",
        observed="committed, 72 effects, 72 foreign",
        unlike=({"observed": "committed, 72 effects, 1 foreign"}, {"observed": "aborted"}),
    ),
    Case(
        "KAFKA-18943",
        "duplicate-output",
        scenario="idle-task",
        variants="DEFAULT_CONFIG CACHED",
        task="stayed",
        after="revoked",
        opened="revoked",
    ),
    Case(
        "KAFKA-20731",
        "thread-died",
        after="resumed",
        observed=_died("The changelog reader is not restoring active tasks (is STANDBY_UPDATING)"),
        unlike=(NULL_POINTER,),
    ),
    Case("KAFKA-16017", "stale-read wrong-store", after="interrupted", task="restored"),
    Case("KAFKA-18326", "ghost-key", after="cold", opened="cold"),
    Case(
        "KAFKA-13522",
        "wrong-timestamp",
        given="caching",
        place="records-changelog/{p}@6",
        unlike=({"place": "output/{p}@6"},),
    ),
    # --- kills ---
    Case("KAFKA-20685", "stale-checkpoint skipped-wipe", place="task 0_0, .checkpoint", after="crash"),
    Case(
        "KAFKA-20685",
        "lost-record uncommitted-state wrong-store changelog-output-mismatch counter-regression duplicate-id "
        "unstable-id wrong-id torn-transaction",
        after="crash",
        opened="crash",
    ),
    Case(
        "KAFKA-20685",
        "uncommitted-state",
        after="crash",
        place="counter-changelog/{p}@6",
        unlike=({"place": "ids-changelog/{p}@6"},),
    ),
    Case(
        "KAFKA-20685",
        "uncommitted-state wrong-store",
        variants="PUNCTUATOR",
        after="crash",
        came=(),
        unlike=({"came": (7,)},),
    ),
    Case(
        "KAFKA-20685",
        "duplicate-output lost-alone unreleased early-release wrong-store",
        scenario="punctuators",
        elsewhere="windows table-join enumerator",
        faults=KILLS,
        task="struck",
    ),
    Case(
        "KAFKA-20685",
        "lost-record unexpected-record wrong-value wrong-timestamp wrong-store",
        scenario="windows",
        elsewhere="stream-join punctuators enumerator multirunner",
        faults=KILLS,
        task="struck",
        opened="fault",
    ),
    Case(
        "KAFKA-20685",
        "lost-record unexpected-record wrong-value wrong-timestamp wrong-store wrong-entry",
        scenario="table-join",
        elsewhere="windows stream-join crash",
        faults=KILLS,
    ),
    Case(
        "KAFKA-20685",
        "lost-record uncommitted-state wrong-store changelog-output-mismatch counter-regression duplicate-id "
        "unstable-id wrong-id stale-read torn-transaction",
        scenario="enumerator",
        elsewhere="crash windows",
        faults=KILLS,
        task="struck",
    ),
    Case("KAFKA-20685", WRONG_JOIN, scenario="foreign-key-join", elsewhere="table-join crash", faults=KILLS),
    Case(
        "KAFKA-20808",
        "thread-died",
        after="crash",
        observed=_died(CLOSED),
        unlike=({"observed": _died("Store sums is currently closed")},),
    ),
    Case(
        "KAFKA-20808",
        "thread-died",
        scenario="windows",
        faults=KILLS,
        observed=_died(CLOSED),
        unlike=({"observed": _died("Store sums is currently closed")},),
    ),
    Case(
        "KAFKA-20808, other segments (no JIRA)",
        "thread-died",
        after="crash",
        observed=_died("While lock file: /a/LOCK: lock hold by current process"),
        unlike=({"observed": _died("While lock file: /a/LOCK: Resource temporarily unavailable")},),
    ),
    Case(
        "KAFKA-20808, other segments (no JIRA)",
        "thread-died",
        scenario="windows",
        faults=KILLS,
        observed=_died("While lock file: /a/LOCK: lock hold by current process"),
        unlike=({"observed": _died("While lock file: /a/LOCK: Resource temporarily unavailable")},),
    ),
    Case("KIP-1035, half-deleted store (no JIRA)", "thread-died", given="halted", observed=GONE, unlike=NOT_GONE),
    Case(
        "KIP-1035, half-deleted store (no JIRA)",
        "thread-died",
        faults="instance-kill",
        observed=GONE,
        unlike=NOT_GONE,
    ),
    Case(
        "half-deleted segment (no JIRA)",
        "thread-died",
        given="halted",
        observed=HALF_RESTORED,
        unlike=({"observed": HALF_RESTORED.replace("addToBatch", "put")}, {"observed": RESTORING}),
    ),
    Case("half-deleted segment (no JIRA)", "thread-died", given="halted", observed=GONE, unlike=NOT_GONE),
    Case("KIP-892 (no JIRA)", "stuck", variants="TRANSACTIONAL_SWITCHED_ON", after="unopened"),
    Case(
        "KAFKA-21034",
        "thread-died",
        after="crash",
        observed=_died("TaskCorruptedException: Tasks [-1_-1] are corrupted and hence need to be re-initialized"),
        unlike=({"observed": _died("TaskCorruptedException: Tasks [0_1] are corrupted")},),
    ),
    Case(
        "KAFKA-20827",
        "thread-died",
        observed=_died("IllegalStateException: Attempted to create an standby task that we already own: 0_1"),
        unlike=({"observed": _died("IllegalStateException: Attempted to create a task twice: 0_1")},),
    ),
    Case(
        "KAFKA-20764",
        "thread-died",
        faults="topology-pause",
        observed=_died("IllegalStateException: Duplicate key 0_1 (attempted merging values A and B)"),
        unlike=({"observed": _died("IllegalStateException: Duplicate key counts (attempted merging values 1 and 2)")},),
    ),
    Case(
        "KAFKA-16876",
        "thread-died",
        faults="pause partition",
        observed=_died("IllegalStateException: Illegal state RUNNING while closing active task 0_1"),
        unlike=({"observed": _died("IllegalStateException: Illegal state RESTORING while closing active task 0_1")},),
    ),
    # --- progress, answers, leaks, throttles ---
    Case("CVE-2026-111496", "stuck", after="spinning"),
    Case("KAFKA-17299", "stuck", after="standstill"),
    Case("KAFKA-19629", "stuck", after="deadlock", place="instance-1"),
    Case(
        "KAFKA-19629",
        "unclean-close",
        after="deadlock",
        place="instance-1",
        unlike=({"instance": False}, {"place": "instance-12"}),
    ),
    Case("KAFKA-19629, in memory", "stuck", after="deadlock", place="instance-1"),
    Case(
        "KAFKA-19629, in memory",
        "unclean-close",
        after="deadlock",
        place="instance-1",
        unlike=({"instance": False}, {"place": "instance-12"}),
    ),
    Case(
        "KIP-796, closed store (no JIRA)",
        "stale-answer",
        observed="0, instance-1 standby bounded",
        unlike=({"observed": "0, instance-1 standby stale"}, {"observed": "10, instance-1 standby bounded"}),
    ),
    Case("KAFKA-20254", "stuck", after="refused"),
    Case(
        "KAFKA-15770",
        "stale-answer",
        observed="4, instance-1 query",
        unlike=({"observed": "4, instance-1 store"}, {"observed": "4, instance-1 query stale"}),
    ),
    Case(
        "KIP-562 (no JIRA)",
        "stale-answer",
        observed="4, instance-1 store",
        unlike=({"observed": "4, instance-1 standby stale"}, {"observed": "4, instance-1 bounded"}),
    ),
    Case(
        "KAFKA-19748",
        "leak",
        observed="objects of org.apache.kafka.common.MetricName: 120, 240, 360",
        unlike=({"observed": "objects of org.apache.kafka.common.Metric: 120, 240, 360"},),
    ),
    Case(
        "KAFKA-14864",
        "leak",
        observed="open org.rocksdb.RocksIterator: 120, 240, 360",
        unlike=({"observed": "open org.rocksdb.ReadOptions: 120, 240, 360"},),
    ),
    Case(
        "KAFKA-20398",
        "leak",
        observed="objects of org.apache.kafka.streams.processor.internals.StreamThread: 3, 6, 9",
        unlike=({"observed": "threads: 3, 6, 9"}, {"observed": "open org.apache.kafka.streams.X: 3, 6, 9"}),
    ),
    Case(
        "KAFKA-20616",
        "leak",
        observed="open org.rocksdb.ColumnFamilyOptions: 3, 6, 9",
        unlike=({"observed": "open org.rocksdb.Options: 3, 6, 9"},),
    ),
    Case(
        "KAFKA-17455",
        "aborted-by-throttle",
        variants=WHERE_IT_ABORTS,
        after="held",
    ),
    Case(
        "KAFKA-17455",
        "thread-died",
        variants=WHERE_IT_ABORTS,
        after="held",
        observed=ABORTED,
        unlike=(NULL_POINTER, {"observed": _died("TimeoutException: Timeout expired after 3 ms while awaiting send")}),
    ),
    Case("KAFKA-17455", "long-throttle runaway-lag", after="held"),
    # --- joins ---
    Case("KAFKA-16407", "lost-record wrong-value wrong-timestamp", came=(3, 0, 4), unlike=({"came": (3, 5, 4)},)),
    Case("KAFKA-16434", "unexpected-record wrong-value", came=(3, 0), unlike=({"came": (3, 5)},)),
    Case("KAFKA-19208", "lost-record torn-transaction", came=(0,), unlike=({"came": (1,)}, {"came": ()})),
    Case("KAFKA-7663", "wrong-value", after="restored", opened="restored"),
    Case("KAFKA-18713", "wrong-value", came=(3, 4), unlike=({"came": (3, 3)},)),
    Case("KAFKA-14862", "lost-alone early-alone", after="ahead"),
    Case("KAFKA-15417", "early-alone", given="before"),
    Case(
        "KAFKA-19536",
        "early-alone",
        other={"window": 100},
        came=(5, 7),
        times=(1_000, 899),
        observed="7 with nothing",
        unlike=({"times": (1_000, 900)}, {"observed": "5 with nothing"}, {"observed": "nothing with 7"}),
    ),
    Case(
        "KAFKA-19536",
        "early-alone",
        other={"window": 300, "before": 20},
        came=(5, -7),
        times=(1_000, 979),
        observed="nothing with 7",
        unlike=({"times": (1_000, 980)}, {"observed": "7 with nothing"}, {"observed": "5 with 7"}),
    ),
    Case(
        "KIP-213, same key (no JIRA)",
        "unexpected-record",
        given="absent",
        came=(3, 150, 1_000_150),
        unlike=({"came": (3, 50, 1_000_150)}, {"came": (3, 150, 1_000_150, 4)}),
    ),
    Case(
        "KIP-213, insert (no JIRA)",
        "unexpected-record",
        given="absent",
        came=(3, 0, 150),
        unlike=({"came": (3, 150, 0)}, {"came": (3, 0, 150, 7)}),
    ),
    Case(
        "KIP-213 (no JIRA)",
        "unexpected-record",
        given="no.key absent caching",
        came=(3, 0),
        unlike=({"came": (3, 5)},),
    ),
    Case("KIP-213 (no JIRA)", "unexpected-record", given="no.key caching", came=(3, 0), unlike=({"came": (3, 5)},)),
    Case(
        "KAFKA-19943",
        "wrong-store wrong-entry",
        after="outdated",
        came=(503, -7, 1),
        observed=LEFT_BEHIND,
        unlike=({"came": (503, 1, 8, -7)}, {"observed": LEFT_BEHIND.replace("left", "groups")}),
    ),
    Case("KAFKA-19943", WRONG_JOIN, after="outdated", unlike=({"place": "groups-changelog/{p}@7"},)),
    Case("KAFKA-19668", "wrong-value", variants="PROCESSED", given="optimized"),
    Case("KIP-904 (documented)", "wrong-value", after="mixed"),
    Case("max.task.idle.ms=-1 (documented)", "wrong-time", given="unordered"),
    # --- tables with versions ---
    Case("KIP-889 (no JIRA)", WRONG_VERSION, after="reopened", **ENDED),
    Case("KIP-889 (no JIRA)", WRONG_VERSION, after="reopened", **TOO_OLD),
    Case("KIP-889 (no JIRA)", "thread-died", after="reopened", observed=TOO_LARGE, unlike=(NULL_POINTER,)),
    Case("KIP-889 (no JIRA)", WRONG_VERSION, faults=CLEAN, **ENDED),
    Case("KIP-889 (no JIRA)", WRONG_VERSION, faults=CLEAN, **TOO_OLD),
    Case("KIP-889 (no JIRA)", WRONG_VERSION, faults="instance-kill", given="transactional.stores", **ENDED),
    Case("KIP-889 (no JIRA)", WRONG_VERSION, faults="instance-kill", given="transactional.stores", **TOO_OLD),
    Case("KIP-889 (no JIRA)", "thread-died", faults=CLEAN, observed=TOO_LARGE, unlike=(NULL_POINTER,)),
    Case(
        "KIP-889, restored (no JIRA)",
        "wrong-value wrong-entry",
        given="ended",
        task="restored",
        came=(-2, 0, -3, -4, 8),
        times=(100, 200, 150, 900, 600),
        first=0,
        other={"retention": 400},
        expected=_version(8, 0),
        observed=_version(8, 2),
        entries=("04 at 900", "03 at 150 and 04 at 900"),
        unlike=(
            {"times": (100, 550, 150, 900, 600)},  # the deletion is within the history
            {"observed": _version(8, 9), "entries": ("04 at 900", "09 at 150 and 04 at 900")},  # it was never put
        ),
    ),
    Case("KIP-923, restored (no JIRA)", "lost-record", given="grace", task="restored"),
    Case("KIP-923 (no JIRA)", "lost-record", given="grace", after="reopened"),
    Case("KIP-923 (no JIRA)", "lost-record", given="grace", faults=CLEAN),
    # --- windows ---
    Case(
        "KAFKA-13499, out of order (no JIRA)",
        "lost-record unexpected-record early-result",
        given="extended",
        task="restored",
    ),
    Case("KIP-825, retention (no JIRA)", "lost-record", given="on.close", variants="ON_CLOSE_BRIEF"),
    Case(
        "KIP-825, segment (no JIRA)",
        "lost-record",
        variants="ON_CLOSE_SESSION_SEGMENTS",
        given="on.close",
        expected=_of_window(59_000, 59_999),
        times=(60_500,),
        unlike=({"expected": _of_window(59_000, 60_001)},),
    ),
    Case(
        "KIP-450 (no JIRA)",
        "duplicate-output",
        variants="SLIDING_UPDATES",
        expected=_of_window(1_001, 1_101),
        observed="2 records of the window from 1001 to 1101, the first one twice",
        came=(5, 5, 5),
        times=(900, 1_000, 1_101),
        unlike=(
            {"observed": "3 records of the window from 1001 to 1101"},
            {"times": (800, 1_000, 1_101)},  # no window shows the record before it
        ),
    ),
    Case(
        "KIP-954 (no JIRA)",
        "wrong-topic",
        variants="SUPPLIED",
        given="supplied",
        place="windowed-sums-changelog",
        observed="partitions=4, cleanup.policy=compact,delete, retention.ms=86400600",
        unlike=({"observed": "partitions=4, cleanup.policy=delete, retention.ms=86400600"},),
    ),
    Case(
        "KIP-825, sessions (no JIRA)",
        "lost-record unexpected-record wrong-value",
        variants="SESSION_KEPT",
        given="kept.longer",
    ),
    Case(
        "KIP-825, sessions (no JIRA)",
        "duplicate-output",
        **GROWN,
        expected=_of_window(900, 1_000),
        unlike=({"times": (1_000, 1_070, 1_050)}, {"expected": _of_window(900, 989)}),
    ),
    Case(
        "KIP-825, sessions up to 3.3 (no JIRA)",
        "lost-record unexpected-record duplicate-output",
        variants="SESSION SESSION_UPDATES ON_CLOSE_SESSION ON_CLOSE_SESSION_SEGMENTS",
        other={"size": 60, "grace": 100},
        came=(5, 5),
        times=(1_171, 1_000),
        expected=_of_window(1_040, 1_200),
        unlike=({"expected": _of_window(1_070, 1_200)}, {"times": (1_171, 1_020)}),
    ),
    Case(
        "KAFKA-19775",
        "thread-died",
        given="idle.topic",
        observed=_died("java.lang.IllegalStateException: Stream task 0_0 does not know the partition: idle-0"),
        unlike=({"observed": _died("java.lang.IllegalStateException: null")},),
    ),
    Case(
        "apache/kafka#23542 (no JIRA)",
        "thread-died",
        faults="lost-answer",
        observed=_died("org.apache.kafka.common.errors.UnreleasedInstanceIdException: the instance id is in use"),
        unlike=(NULL_POINTER,),
    ),
    Case(
        "KAFKA-20785",
        "thread-died",
        variants="REBALANCING_FENCED",
        given="held",
        observed=_died_at_commit("org.apache.kafka.common.errors.InvalidTxnStateException: in an invalid state"),
        unlike=(
            {"observed": _died("org.apache.kafka.common.errors.InvalidTxnStateException: in an invalid state")},
            {"observed": _died_at_commit("org.apache.kafka.common.errors.TimeoutException: null")},
        ),
    ),
    Case("KIP-328, held again (no JIRA)", "wrong-value duplicate-output", given="limit", task="restored"),
    Case("KAFKA-20099 (documented)", "duplicate-output unexpected-record", given="late", task="restored"),
    # --- endings ---
    Case(
        "KIP-1153 (no JIRA)",
        "wrong-membership",
        variants="REBALANCING_FENCED",
        given="held",
        observed="others have 0_1, 0_3",
        unlike=({"observed": "others have 0_0, 0_1, 0_2, 0_3"},),
    ),
    Case(
        "KAFKA-12738, again (no JIRA)",
        "idle-partition",
        variants="REPLACE_THREAD",
        after="answered",
        place="input/{p}@70",
        observed="they waited for 45,210 ms",
        unlike=({"observed": "they waited for 15,210 ms"}, {"observed": "they waited for 445,210 ms"}),
    ),
    Case(
        "KIP-1153 (no JIRA)",
        "idle-partition",
        variants="REBALANCING_FENCED",
        given="held",
        place="input/{p}@70",
        observed="they waited for 61,210 ms",
        unlike=({"observed": "they waited for 6,210 ms"}, {"observed": "they waited for 261,210 ms"}),
    ),
    Case(
        "close amid a rebalance (no JIRA)",
        "idle-partition",
        given="rebalancing",
        after="awaits-itself",
        place="input/{p}@70",
        observed="they waited for 61,210 ms",
        unlike=({"observed": "they waited for 6,210 ms"}, {"observed": "they waited for 261,210 ms"}),
    ),
    Case(
        "close amid a rebalance (no JIRA)",
        "wrong-end",
        given="rebalancing",
        after="awaits-itself",
        observed="ended not in time",
        unlike=({"observed": "ended in time"},),
    ),
    Case(
        "close amid a rebalance (no JIRA)",
        "unclean-close",
        given="rebalancing",
        after="awaits-itself",
        observed="exit code 0, its threads did not end in time; it was last PENDING_SHUTDOWN",
        unlike=({"observed": "exit code 1, it said nothing; it was last RUNNING"},),
    ),
    Case(
        "close amid a rebalance (no JIRA)",
        "wrong-membership",
        variants="REBALANCING_THREADS",
        given="rebalancing",
        after="awaits-itself",
        observed="others have none of its tasks",
        unlike=({"observed": "others have 0_0, 0_1, 0_2, 0_3"},),
    ),
    Case(
        "KAFKA-20167",
        "wrong-membership",
        variants="STREAMS_PROTOCOL_STAYING",
        given="group.protocol",
        observed="others have 0_1, 0_3",
        unlike=({"observed": "others have none of its tasks"},),
    ),
    # --- producers and dead letters ---
    Case(
        "KIP-1034 (no JIRA)",
        "torn-transaction",
        came=(-9,),
        observed="committed, 21 effects, 1 foreign",
        unlike=({"came": (9,)}, {"observed": "committed, 21 effects, 11 foreign"}, {"observed": "aborted"}),
    ),
    Case(
        "KIP-1034 (no JIRA)",
        "duplicate-output",
        variants="COMMITTED_AHEAD",
        after="crash",
        opened="crash",
        came=(-9,),
        place="dead-letters/{p}@6",
        observed="2 records",
        unlike=({"came": (9,)}, {"observed": "3 records"}, {"place": "output/{p}@6"}),
    ),
    Case(
        "KIP-1034 (no JIRA)",
        "duplicate-output",
        variants="KILLED ROLLING",
        faults=" ".join(FAULTS),
        opened="fault",
        came=(-9,),
        place="dead-letters/{p}@6",
        observed="2 records",
        unlike=({"came": (9,)}, {"observed": "3 records"}, {"place": "output/{p}@6"}),
    ),
    Case("KAFKA-19479", "lost-record", after="split", opened="split"),
    Case("KAFKA-10391, again (no JIRA)", "false-after-true", after="timeout"),
    Case("CVE-2026-35554", "corrupt-record unexpected-record wrong-value", after="timeout"),
    Case(
        "at_least_once (documented)",
        "false-after-true duplicate-output changelog-output-mismatch",
        after="crash",
        opened="crash",
    ),
    Case(
        "at_least_once (documented)",
        "false-after-true duplicate-output changelog-output-mismatch",
        after="timeout",
        opened="timeout",
    ),
    Case(
        "at_least_once, again (documented)",
        "false-after-true duplicate-output wrong-order",
        after="gave-up-again",
        opened="gave-up-again",
    ),
)
