"""The fakes, plugged into the real driver."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from onceproof.faults.base import LinkFault, LostAnswer, Replicas
from onceproof.installation import Installation
from onceproof.lab.cluster import Cluster
from onceproof.lab.driver import Driver
from onceproof.lab.plan import plan_of
from onceproof.lab.world import World
from onceproof.model.capability import Capability
from onceproof.model.cell import MARK, Trial
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.model.segments import COORDINATOR, OFFSETS
from onceproof.model.timeline import Timeline
from onceproof.scenarios import scenario
from onceproof.scenarios.at_least_once import DELETE
from onceproof.scenarios.base import Workload
from onceproof.scenarios.prepared import PreparedTrial
from onceproof.scenarios.split_batch import TAKEN
from tests.fakes.clock import FakeClock
from tests.fakes.group import Group, Nature, Task
from tests.fakes.instance import TIMED_OUT, FakeInstance, stamped

FULL_SPEED = 50_000.0  # records/s of a producer that is not paced


class FakeCluster(Cluster):
    """Brokers that are always healthy."""

    # None of it is run.
    installation = Installation("java", Path(), "mvn", "toxiproxy-server", Path(), Path(), Path(), Path(), MARK)
    release = Release(3, 9, 1)
    bootstrap_servers = "nowhere"
    capabilities = frozenset(Capability)
    least_session_ms = 1_000


@dataclass
class FakeTopics:
    """The topics of a group, in which records are counted."""

    group: Group
    prefix: str

    def names(self) -> set[str]:
        """Those that somebody has written to."""
        return set(self.sizes())

    def sizes(self) -> dict[str, int]:
        """How many partitions each of them has."""
        return Counter(f"{self.prefix}-{role}" for role, _ in self.group.ends)

    def ends(self, sizes: Mapping[str, int], committed: bool = False) -> dict[tuple[str, int], int]:
        """End offsets by topic and partition; no transaction stays open."""
        return {(name, p): self.group.ends[self._role(name), p] for name, size in sizes.items() for p in range(size)}

    def internal(self) -> dict[str, dict[str, int | str]]:
        """Nobody makes internal topics."""
        return {}

    def positions(self) -> dict[int, int]:
        """Nobody writes positions into a log."""
        return {0: 0}

    def count_committed(self, topic: str, partitions: int) -> int:
        """Offsets that the group has committed."""
        role = self._role(topic)
        return sum(t.committed for t in self.group.tasks if t.source == role and t.partition < partitions)

    def offsets(self, topic: str, partitions: int) -> dict[int, int]:
        """The offset that the group has committed for each partition."""
        role = self._role(topic)
        return {t.partition: t.committed for t in self.group.tasks if t.source == role and t.partition < partitions}

    def last_offsets(self, topic: str, partitions: int, within: float) -> dict[int, int]:
        """The same: it always answers."""
        return self.offsets(topic, partitions)

    def compact_positions(self) -> None:
        """Nobody writes positions into a log, but what is told of it changes."""
        self.group.compacted = self.group.nature.forgets

    def compact(self, topics: Iterable[str]) -> None:
        """Have changelogs compacted."""
        self.group.compacted = self.group.nature.forgets

    def compact_no_more(self, topics: Iterable[str]) -> None:
        """Nothing changes any more."""

    def keys(self, topic: str) -> set[int]:
        """Of a log that is compacted none is left, and of any other all are."""
        return set() if self.group.compacted else set(range(100_000))

    def group_records(self) -> list[str]:
        """As if the group had come over from the classic protocol; the log forgets that when it is compacted."""
        return ["position", "streams"] if self.group.compacted else ["position", "classic", "streams"]

    def alter(self, name: str, config: Mapping[str, str]) -> None:
        """Let a topic refuse records, or take them again."""
        splits = int(config.get("max.message.bytes", TAKEN)) < TAKEN
        refuses = (splits or config.get("min.insync.replicas") == "2") and self.group.nature.refuses
        self.group.splits = splits and refuses
        (self.group.refusing.add if refuses else self.group.refusing.discard)(self._role(name))

    def are_processed(self, sizes: Mapping[str, int]) -> bool:
        """Whether the group has committed all of them."""
        return sum(self.ends(sizes).values()) == sum(self.count_committed(name, size) for name, size in sizes.items())

    def close(self) -> None:
        """Nothing to close."""

    def _role(self, topic: str) -> str:
        return topic.removeprefix(f"{self.prefix}-")


ALL = frozenset({1, 2, 3})


@dataclass
class FakeBrokers:
    """Brokers that each have every partition; node 1 leads them all as long as it lives."""

    group: Group
    names: Sequence[str]  # topics
    folder: Path  # of their logs
    note: Callable[..., None]
    nodes: int = 3
    leader: int | None = 1
    in_sync: frozenset[int] = ALL
    soon: tuple[float, int | None, frozenset[int]] | None = None  # when it changes, and who leads and is in sync then

    def replicas(self) -> Mapping[tuple[str, int], Replicas]:
        """All the same; what happens to a broker shows a second later."""
        if self.soon is not None and self.group.clock.now() >= self.soon[0]:
            _, self.leader, self.in_sync = self.soon
            self.soon = None
        return {place: Replicas(self.leader, self.in_sync) for place in self._places()}

    def _places(self) -> list[tuple[str, int]]:
        return [(name, partition) for name in self.names for partition in range(2)]

    def _change(self, leader: int | None, in_sync: frozenset[int]) -> None:
        self.soon = (self.group.clock.now() + 1.0, leader, in_sync)

    def log(self, node: int) -> Path:
        """A broker's log."""
        file = self.folder / f"node-{node}.log"
        file.touch()
        return file

    def kill(self, node: int, *, orderly: bool) -> None:
        """It no longer leads anything."""
        self._missed(node, "shut down" if orderly else "killed")

    def freeze(self, node: int) -> None:
        """The same."""
        self._missed(node, "frozen")

    def _missed(self, node: int, action: str) -> None:
        self.note("broker", node=node, action=action)
        self.leader, self.in_sync = None, self.in_sync - {node}
        self._change(2 if self.group.nature.elects else None, self.in_sync)

    def start(self, node: int) -> None:
        """It must catch up."""
        self._comes_back(node, "started")

    def thaw(self, node: int) -> None:
        """It stands down, and must catch up."""
        if self.group.nature.stands_down:
            lines = (f"Follower {topic}-{p} starts at leader epoch 1 from offset 0\n" for topic, p in self._places())
            self.log(node).write_text("".join(stamped(self.group.clock, line) for line in lines))
        self._comes_back(node, "thawed")

    def _comes_back(self, node: int, action: str) -> None:
        _, leader, _ = self.soon or (0, self.leader, None)
        self._change(leader, ALL if self.group.nature.catches_up else self.in_sync)
        self.note("broker", node=node, action=action)

    def lead(self, leaders: Mapping[tuple[str, int], int]) -> None:
        """One of them leads all."""
        leader = min(leaders.values())
        nature = self.group.nature
        self._change(leader if (nature.catches_up if leader == 1 else nature.elects) else self.leader, self.in_sync)
        self.note("leaders", leaders={leader: len(leaders)})


@dataclass
class FakeLinks:
    """Links of the first instance; one that is cut takes it out of the group, as one that stands still."""

    group: Group
    note: Callable[..., None]
    instance: str | None = None
    how: LinkFault | None = None
    late: float = 0.0  # seconds
    lost: int = 0
    loses: tuple[int, int | None, float] | None = None  # the key of an API, the delay in ms, and since when
    is_noted: bool = False  # that it was lost

    def take(self, name: str, running: Collection[str]) -> Mapping[str, str]:
        """The first instance goes through them."""
        self.instance = self.instance or name
        return {}

    def disturb(self, node: int, how: LinkFault, ms: int = 0) -> Collection[str]:
        """The instance feels it, and a proxy that works reports it."""
        self.note("link", instance=self.instance, node=node, action=how)
        self.how, self.late = how, ms / 1_000
        instance, nature = self.group.running[self.instance or ""], self.group.nature
        if how == "cut":
            instance.cut_off()
            self.lost += 500 if nature.disturbs else 0
        if how != "latency" and nature.feels:
            instance.log_line(TIMED_OUT if how == "cut" else f"INFO [a] Node {node} disconnected. (a)")
        return [how] if nature.disturbs else []

    def clear(self, node: int) -> None:
        """The instance comes back."""
        if self.how == "cut" and self.group.nature.comes_back:
            self.group.running[self.instance or ""].come_back()
        self.how, self.late = None, 0.0
        self.note("link", instance=self.instance, node=node, action="cleared")

    def count_swallowed(self, node: int) -> int:
        """What was sent while it was cut."""
        return self.lost

    def time_answer(self, node: int, within: float) -> float | None:
        """Nothing passes a link that is cut; two requests pass a slow one."""
        if not self.group.nature.disturbs:
            return 0.01
        return None if self.how == "cut" else 2 * self.late

    def lose_answer(self, apis: Collection[int], delay_ms: int | None) -> None:
        """The first API is that which the instance asks, a second later."""
        self.loses, self.is_noted = (min(apis), delay_ms, self.group.clock.now() + 1.0), False

    def report_lost_answer(self) -> LostAnswer | None:
        """The client that feels it gives up after 3 s; else it gets what is late."""
        if self.loses is None or not self.group.nature.disturbs:
            return None
        api, delay, at = self.loses
        lasts = round((self.group.clock.now() - at) * 1_000)
        if lasts < 0:
            return None
        lost = LostAnswer(1, api, 4, 77, "a", round(at * 1_000))
        if not self.is_noted:
            self.is_noted = True
            self.note("answer", instance=self.instance, **lost.request)
        if delay is not None and lasts >= delay:
            return replace(lost, passed_ms=delay)
        gives_up = delay is None and self.group.nature.feels and lasts >= 3_000
        return replace(lost, ended_ms=3_000) if gives_up else lost

    def lose_no_more(self) -> None:
        """All answers pass."""
        self.loses = None


@dataclass
class FakeBulk:
    """Records that are counted into an input."""

    group: Group
    role: str
    partition: Callable[[int], int]
    name: str
    records: Sequence[tuple[int, int]]
    rate: float | None
    timeline: Timeline
    timestamps: Sequence[int] | None = None
    workload: Workload | None = None
    delivered: int = 0
    throttled: float = 0.0
    due: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Begin."""
        self.timeline.add("driver", "bulk", name=self.name, records=len(self.records), rate=self.rate)
        self.group.clock.listeners.append(self._pass)

    @property
    def sent(self) -> Sequence[tuple[int, int]]:
        """What was delivered."""
        return self.records[: self.delivered]

    def full_speed(self) -> None:
        """Stop pacing."""
        self.rate = None

    def make_last(self, seconds: float) -> None:
        """Slow down if need be."""
        if self.rate is not None:
            self.rate = min(self.rate, (len(self.records) - self.delivered) / seconds)

    def stop(self) -> None:
        """Send no more."""
        self.records = self.records[: self.delivered]

    def is_done(self) -> bool:
        """Whether every record is delivered."""
        return self.delivered == len(self.records)

    def check(self) -> None:
        """Every delivery succeeds."""

    def await_sent(self) -> None:
        """Nothing is under way between two ticks."""

    def await_delivered(self) -> None:
        """Let time pass until every record is delivered."""
        while not self.is_done():
            self.group.clock.sleep(0)

    def _pass(self, seconds: float) -> None:
        if self.is_done():
            return
        self.due += seconds * (self.rate or FULL_SPEED) * (0.9 if self.group.nature.overloaded else 1.0)
        for key, _ in self.records[self.delivered : int(self.due)]:
            self.group.ends[self.role, self.partition(key)] += 1
            self.delivered += 1
        self.due = max(self.due, float(self.delivered))
        self.timeline.add("driver", "produced", name=self.name, records=self.delivered)


class FakeReader:
    """Nothing is read where records are only counted."""

    def stop(self) -> None:
        """Nothing to stop."""


class FakeTicker:
    """Misses a tick, if that is in the nature of the machine."""

    def __init__(self, missed: Callable[[float], None], clock: FakeClock, nature: Nature) -> None:
        """Tick with the clock."""
        self._missed, self._left = missed, nature.stands_still_after
        self._still = nature.stands_still_for
        clock.listeners.append(self._pass)

    def _pass(self, seconds: float) -> None:
        if self._left is not None:
            self._left -= seconds
            if self._left <= 0:
                self._left = None
                self._missed(self._still)

    def stop(self) -> None:
        """Nothing to stop."""


def tasks_of(trial: Trial) -> list[Task]:
    """The tasks of the trial's topology: one sub-topology, unless it reads what it writes."""
    scenario_ = scenario(trial.cell.scenario)
    roles = scenario_.system(trial).roles
    inputs = [name for name, role in roles.items() if (role.plays or name) == "input"]
    sinks = [name for name, role in roles.items() if name not in inputs and role.topic is None]
    # A task of each input: none waits for the other.
    parts: list[tuple[str, list[str]]] = [("input", sinks), *((name, []) for name in inputs if name != "input")]
    if scenario_.values(trial).get("delete") == "downstream":
        parts = [("input", ["output"]), ("output", ["records-changelog"])]
    if trial.cell.scenario == "grouped-table":
        parts = [
            ("input", ["groups-repartition", "table-changelog"]),
            ("groups-repartition", ["output", "sums-changelog"]),
        ]
    return [
        Task(f"{number}_{partition}", source, partition, written)
        for number, (source, written) in enumerate(parts)
        for partition in range(scenario_.partitions(trial))
    ]


def fake_driver(trial: Trial, path: Path, nature: Nature | None = None) -> Driver:
    """The real driver of a trial in a fake world, preloaded, with its run folder below `path`."""
    scenario_, clock = scenario(trial.cell.scenario), FakeClock()
    first = scenario_.workload(trial).first
    group = Group(clock, nature or Nature(), tasks_of(trial), int(scenario_.config(trial)["num.standby.replicas"]))

    def bulk(_cluster: object, topic: str, partition: Callable[[int], int], *rest: Any) -> FakeBulk:
        return FakeBulk(group, topic.removeprefix(trial.topic("")), partition, *rest)

    def quota(_cluster: object, _release: object, _client: str, bytes_per_second: int | None, _log: Path) -> None:
        group.quota = bytes_per_second

    def on_disk(_installation: object, _release: object, directory: Path, *_: Path) -> dict[str, dict[int, int]]:
        """Those of a task's first records that its store has on disk; none of stores in memory."""
        if scenario_.values(trial).get("stores") == "in-memory":
            return {}
        records = [*first, *scenario_.workload(trial).second][: group.on_disk[directory.name]]
        kept = {key: value for key, value in dict(records).items() if value != DELETE}
        held = {"counter": {0: len(records) - 1}} if records else {}
        return {"seen": dict(records), "ids": dict(records), "entries": dict(records), "records": kept, **held}

    names = [*(trial.topic(role) for role in scenario_.system(trial).roles), OFFSETS, COORDINATOR]
    world = World(
        brokers=lambda _cluster, _release, log, note: FakeBrokers(group, names, log.parent, note),  # type: ignore[arg-type, return-value]
        links=lambda _proxy, note: FakeLinks(group, note),  # type: ignore[arg-type, return-value]
        topics=lambda _cluster, application_id, _named: FakeTopics(group, application_id),  # type: ignore[arg-type, return-value]
        instance=partial(FakeInstance, group=group, clock=clock),
        bulk=bulk,  # type: ignore[arg-type]
        reader=lambda *_: FakeReader(),  # type: ignore[arg-type]
        ticker=partial(FakeTicker, clock=clock, nature=group.nature),  # type: ignore[arg-type]
        machine=lambda _: "a machine",
        set_producer_quota=quota,
        read_task_directory=on_disk,  # type: ignore[arg-type]
        now=clock.now,
        monotonic=clock.now,
        sleep=clock.sleep,
    )
    prepared = PreparedTrial(trial)
    driver = Driver(prepared, plan_of(prepared, FakeCluster()), FakeCluster(), TrialFolder(path), lambda _: None, world)
    for key, _ in first:
        group.ends["input", (key + 1) % scenario_.partitions(trial)] += 1
    return driver
