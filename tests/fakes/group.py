"""A simulated consumer group: threads that process the partitions of an input, and move them among themselves.

Records are counted, not kept. A task's records go into its sinks at once, and are committed with its instance's commit
interval, which puts a marker after them. The assignor is sticky: a task stays, unless its thread is gone or another
has two tasks fewer and a standby that has caught up; its previous active owner becomes its standby.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.clock import FakeClock

WARM_UP = 0.5  # seconds until a standby has caught up
TRANSACTION = 4.0  # seconds after which a transaction is aborted
SESSION = 45.0  # seconds after which a member that did not leave is missed; Kafka's own


@dataclass(frozen=True)
class Nature:
    """What this Kafka does. By default it is healthy, and every fault bites."""

    speed: float = 20_000.0  # records/s of a thread
    rebalance: float = 0.3  # seconds from a change of the group to the new assignment
    restoration: float = 1.0  # seconds that a store takes to be restored
    moves: bool = True  # tasks move to a thread that has less to do
    recycles: bool = True  # a task that becomes a standby keeps its store and is not closed
    wipes: bool = True  # the stores of a task that is corrupted
    flushes: bool = True  # RocksDB, if its write buffer is small
    keeps_checkpoint: bool = False  # while a task runs (KAFKA-20685)
    leaves_checkpoint: bool = True  # a task that is closed cleanly, of stores on disk
    refuses: bool = True  # a topic that lacks a replica in sync takes no record
    gives_up_again: bool = False  # a producer that gave up, soon after
    throttles: bool = True  # a producer beyond its quota
    meets_throttle: bool = True  # a request of a transaction of such a producer
    overloaded: bool = False  # a machine too slow for any pace
    fails_throttled: bool = False  # a transaction of such a producer (KAFKA-17455)
    fails_early: bool = False  # a transaction, before any throttle
    throws_after: int | None = None  # records; then the thread that processes them dies
    halts_after: int | None = None  # records; then everything stops
    leaks: bool = False  # a metric, whenever it is asked what it holds
    starves: bool = False  # as its threads wait for a CPU all the time
    keeps_lock: bool = False  # then: of a task's directory, which its owner cannot lock (KAFKA-19510)
    closes: bool = True  # cleanly
    misses: bool = True  # a member that is silent for longer than its session
    waits: bool = False  # a rebalance, for a member that is silent
    elects: bool = True  # another leader, when a broker dies
    catches_up: bool = True  # a broker that comes back
    stands_down: bool = True  # a broker that was missed and wakes
    disturbs: bool = True  # the proxy, what it is told to
    feels: bool = True  # an instance whose link is disturbed
    comes_back: bool = True  # when the link is healed
    fences: bool = True  # a member that was missed, when it comes back
    pauses: bool = True  # an instance that is told to
    resumes: bool = True  # the same
    forgets: bool = True  # a log, when it is compacted
    drops: int = 7  # answers of a foreign-key join that meet a row that has changed
    halts_in_deletion: bool = True  # an instance that is to end while it deletes a segment
    dies_of_disk: bool = True  # an instance that cannot write to its disk
    stands_still_after: float | None = None  # seconds; then the machine stands still
    stands_still_for: float = 3.2  # seconds


@dataclass(eq=False)
class Task:
    """The work on one partition of a topic, whoever holds it."""

    name: str
    source: str
    partition: int
    sinks: Sequence[str]
    position: int = 0
    committed: int = 0
    ready_at: float = 0.0  # its stores are restored


@dataclass(eq=False)
class Member:
    """A thread."""

    name: str
    instance: str
    session: float = SESSION
    static: bool = False  # it has a `group.instance.id`
    active: list[Task] = field(default_factory=list)
    standby: dict[Task, float] = field(default_factory=dict)  # and when it has caught up
    processed: Counter[str] = field(default_factory=Counter)
    paused: bool = False
    kept: list[Task] = field(default_factory=list)  # of the static member before it
    missed_at: float | None = None  # it is gone, and this is when the group will know
    frozen: bool = False


class Group:
    """The threads of all instances, and the topics that they read and write."""

    def __init__(self, clock: FakeClock, nature: Nature, tasks: Iterable[Task], standbys: int) -> None:
        """Without members at first."""
        self.clock, self.nature, self.tasks, self._standbys = clock, nature, list(tasks), standbys
        self.members: list[Member] = []
        self.ends: Counter[tuple[str, int]] = Counter()  # of each role and partition
        self.refusing: set[str] = set()  # roles
        self.compacted = False  # a log, which has forgotten what came first
        self.splits = False  # what is refused is too large, so producers split it
        self.speed = nature.speed
        self.quota: int | None = None  # of the producers, bytes/s
        self.processed = 0  # records, ever
        self.on_disk: Counter[str] = Counter()  # records of each task that its store has on disk
        self.assigned: list[Callable[[], None]] = []  # what is called after each assignment
        self.processes: dict[str, tuple[str, Callable[[str], None]]] = {}  # of instances: their id, and how they log
        self.recycled: dict[Member, list[str]] = {}  # tasks, by the last assignment
        self.running: dict[str, Any] = {}  # instances by name
        self._refused: Counter[tuple[Task, str]] = Counter()  # records that a topic did not take yet
        self._refused_since: dict[tuple[Task, str], float] = {}
        self._assign_at: float | None = None
        self._fenced: set[str] = set()  # instances
        clock.listeners.append(self._pass)

    # --- members ---------------------------------------------------------------------------------------------

    def join(self, member: Member) -> None:
        """A thread begins; a static one takes the place and the tasks of the one before it."""
        for old in [m for m in self.members if m.static and m.instance == member.instance and m.missed_at is not None]:
            member.kept += old.active
            self._forget(old)
        self.members.append(member)
        self._change_soon()

    def leave(self, member: Member) -> None:
        """A thread ends and says so: what it did is committed."""
        self.commit(member)
        self._forget(member)

    def vanish(self, member: Member) -> None:
        """A thread ends and does not say so; it keeps its tasks until it is missed."""
        member.missed_at = self.clock.now() + member.session

    def abort(self, member: Member) -> None:
        """Undo what a thread did and did not commit, except for the offsets that it took up in the topics."""
        for task in member.active:
            task.position = task.committed
            for place in [place for place in self._refused if place[0] is task]:
                del self._refused[place]

    def commit(self, member: Member) -> None:
        """Commit what a thread did, unless a topic did not take it."""
        for task in member.active:
            if task.position > task.committed and not any(place[0] is task for place in self._refused):
                task.committed = task.position
                for sink in task.sinks:
                    self.ends[sink, task.partition] += 1  # the marker

    def tried_for(self, member: Member) -> float:
        """Seconds since a topic refused the first record that a thread still tries to send; 0 if there is none."""
        since = [self._refused_since[place] for place in self._refused if place[0] in member.active]
        return self.clock.now() - min(since) if since else 0.0

    def living(self) -> list[Member]:
        """The threads that are there."""
        return [member for member in self.members if member.missed_at is None]

    def _forget(self, member: Member) -> None:
        self.members.remove(member)
        self._change_soon()

    def _change_soon(self) -> None:
        self._assign_at = self.clock.now() + self.nature.rebalance
        for instance in {member.instance for member in self.living()} & self.processes.keys():
            self.processes[instance][1]("INFO [a-StreamThread-1] [Consumer clientId=a] (Re-)joining group (a)")

    # --- time ------------------------------------------------------------------------------------------------

    def _pass(self, seconds: float) -> None:
        now = self.clock.now()
        silent = [m for m in self.members if m.missed_at is not None and m.missed_at <= now]
        for member in silent if self.nature.misses else ():
            self._forget(member)
        held = self.nature.waits and any(member.frozen for member in self.members)
        if held and self._assign_at is not None and now - self._assign_at >= TRANSACTION:
            self._fence_who_works()
        elif not held and self._assign_at is not None and self._assign_at <= now:
            self._assign_at = None
            self._assign()
            for listener in self.assigned:
                listener()
        for task, sink in [place for place in self._refused if place[1] not in self.refusing]:
            self.ends[sink, task.partition] += self._refused.pop((task, sink))
        for member in self.living():
            self._work(member, seconds)

    def _fence_who_works(self) -> None:
        """The transactions of all that have tasks are aborted, as nobody may commit in a rebalance."""
        working = {member.instance for member in self.living() if member.active}
        for instance in working - self._fenced if self.nature.fences else ():
            self.processes[instance][1](
                "INFO [a-StreamThread-1] org.apache.kafka.common.errors.ProducerFencedException (a)"
            )
        self._fenced |= working

    def _work(self, member: Member, seconds: float) -> None:
        ready = [task for task in member.active if task.ready_at <= self.clock.now() and not member.paused]
        for task in ready:
            there = self.ends[task.source, task.partition] - task.position
            records = min(there, int(self.speed * seconds / len(ready)))
            if self.nature.halts_after is not None:
                records = max(0, min(records, self.nature.halts_after - self.processed))
            task.position += records
            self.processed += records
            member.processed[task.name] += records
            for sink in task.sinks if records else ():
                if sink in self.refusing:
                    if (task, sink) not in self._refused:
                        self._refused_since[task, sink] = self.clock.now()
                    self._refused[task, sink] += records
                else:
                    self.ends[sink, task.partition] += records

    # --- assignor --------------------------------------------------------------------------------------------

    def _assign(self) -> None:
        living = self.living()
        if not living:
            return
        before = {task: member for member in self.members for task in member.active}
        for task in self.tasks:
            if task not in before:  # its last owner takes it, else its standby, else the least busy
                heir = min(living, key=lambda m: (task not in m.kept, task not in m.standby, len(m.active)))
                heir.active.append(task)
        while self.nature.moves and (move := self._next_move(living)):
            task, giver, taker = move
            if task.position > task.committed:  # all that its thread did goes with it
                self.commit(giver)
            giver.active.remove(task)
            taker.active.append(task)
        self._assign_standbys(living, before)

    def _next_move(self, living: Sequence[Member]) -> tuple[Task, Member, Member] | None:
        for taker in sorted(living, key=lambda m: len(m.active)):
            giver = max(living, key=lambda m: len(m.active))
            for task in reversed(giver.active):
                caught_up = not self._standbys or taker.standby.get(task, self.clock.now() + 1) <= self.clock.now()
                if len(giver.active) - len(taker.active) > 1 and caught_up:
                    return task, giver, taker
        return None

    def _assign_standbys(self, living: Sequence[Member], before: Mapping[Task, Member]) -> None:
        holders = {task: member for member in self.members for task in member.active}
        old = {member: dict(member.standby) for member in living}
        for member in living:
            member.standby.clear()
        for task, holder in holders.items():

            def preferred(member: Member, task: Task = task) -> tuple[bool, bool, int]:
                return member is not before.get(task), task not in old[member], len(member.standby)

            others = sorted((m for m in living if m.instance != holder.instance), key=preferred)
            for member in self._one_an_instance(others)[: self._standbys]:
                was_active = member is before.get(task)
                if was_active and self.nature.recycles:
                    self.recycled.setdefault(member, []).append(task.name)
                caught_up = self.clock.now() if was_active else self.clock.now() + WARM_UP
                member.standby[task] = old[member].get(task, caught_up)
        late = [at for member in living for at in member.standby.values() if at > self.clock.now()]
        if late and self._assign_at is None:  # a probing rebalance
            self._assign_at = max(late)

    @staticmethod
    def _one_an_instance(members: Iterable[Member]) -> list[Member]:
        first: dict[str, Member] = {}
        for member in members:
            first.setdefault(member.instance, member)
        return list(first.values())
