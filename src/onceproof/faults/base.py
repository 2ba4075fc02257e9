"""The parts of a fault, and what it may ask of the world.

A fault is one value (`Fault`) in a module of its own. What it does in one trial is a `FaultRun`: done on entry of a
`with` block, undone at its end whatever happened in it, and recorded in the timeline. Whether it took effect is
concluded from what was observed, not from what was done.
"""

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from onceproof.model.capability import Capability
from onceproof.model.cell import Trial
from onceproof.model.files import FaultOutcome
from onceproof.model.parameter import BaseParameters
from onceproof.model.release import Release
from onceproof.model.timeline import Event, time_of_line


class Instance(Protocol):
    """A running instance of the application under test."""

    name: str

    reports: bool  # false: a black box, of which only the process is seen, and what its group commits

    @property
    def state(self) -> str:
        """Its `KafkaStreams.State`."""

    @property
    def threads(self) -> list[dict[str, Any]]:
        """Its threads with their active and standby tasks."""

    @property
    def processed(self) -> int:
        """Records it has processed."""

    @property
    def last(self) -> Mapping[str, Event]:
        """Its last event of each kind."""

    @property
    def log(self) -> Path:
        """Its log."""

    def tasks(self, task_type: str) -> list[str]:
        """Tasks that it holds as `active` or `standby`."""


@dataclass(frozen=True)
class Replicas:
    """The replicas of a partition: node ids. `leader` is None while there is none."""

    leader: int | None
    in_sync: frozenset[int]


class Brokers(Protocol):
    """The brokers of a trial."""

    @property
    def nodes(self) -> int:
        """How many there are; 0 if they are not ours, so that they cannot be killed."""

    def replicas(self) -> Mapping[tuple[str, int], Replicas]:
        """The replicas of each partition of each topic, by the Admin API; nothing while no broker answers."""

    def log(self, node: int) -> Path:
        """A broker's log."""

    def kill(self, node: int, *, orderly: bool) -> None:
        """End a broker: by SIGKILL, as a crash of its machine would, or by a controlled shutdown (SIGTERM)."""

    def start(self, node: int) -> None:
        """Start a broker that was killed, over its data, and wait until it listens."""

    def freeze(self, node: int) -> None:
        """Freeze a broker (SIGSTOP) until it is thawed."""

    def thaw(self, node: int) -> None:
        """Thaw a frozen broker."""

    def lead(self, leaders: Mapping[tuple[str, int], int]) -> None:
        """Have an in-sync replica's node elected as leader of each of these partitions, by the Admin API."""


LinkFault = Literal["cut", "reset", "latency"]


@dataclass(frozen=True)
class LostAnswer:
    """An answer of a broker that was kept from an instance.

    Attributes:
        node: the broker's id.
        api: the key of the request's API.
        version: of the API.
        correlation: id of the request on its connection.
        client: id of the client that asked; None if it gave none.
        at: when the broker's answer came by, in epoch milliseconds.
        behind: answers to later requests of the connection that did not pass either.
        passed_ms: after how many milliseconds the client got it; None if it did not.
        ended_ms: after how many milliseconds the client ended the connection without it; None if it did not.
    """

    node: int
    api: int
    version: int
    correlation: int
    client: str | None
    at: int
    behind: int = 0
    passed_ms: int | None = None
    ended_ms: int | None = None

    @property
    def request(self) -> Mapping[str, Any]:
        """The part that says which one it was, as in events."""
        names = ("node", "api", "version", "correlation", "client", "at")
        return {name: getattr(self, name) for name in names}


class Links(Protocol):
    """The links between an instance and each broker. No other traffic goes through them, not even the lab's."""

    @property
    def instance(self) -> str | None:
        """The instance that goes through them; None if there is none."""

    def disturb(self, node: int, how: LinkFault, ms: int = 0) -> Collection[str]:
        """Cut the link to a broker, reset its connections, or slow it down; returns what the proxy says about it."""

    def clear(self, node: int) -> None:
        """Let everything pass as before; connections that were cut end."""

    def count_swallowed(self, node: int) -> int:
        """Bytes for a broker that entered its link and never left it, on connections that have ended."""

    def time_answer(self, node: int, within: float) -> float | None:
        """Seconds until a new client that goes through a link has an answer; None if it has none."""

    def lose_answer(self, apis: Collection[int], delay_ms: int | None) -> None:
        """Drop (None) or delay the next answer to a request of these APIs, from whichever broker, and no other."""

    def report_lost_answer(self) -> LostAnswer | None:
        """The answer that was lost, and what became of it until now; None as long as none came by."""

    def lose_no_more(self) -> None:
        """Lose no answer any more; a connection that lacks one ends."""


class Instances(Protocol):
    """The instances of the application: starts them, ends them, and does something to one of them."""

    @property
    def running(self) -> Mapping[str, Instance]:
        """Those that run, by name."""

    def start(
        self,
        name: str,
        release: Release | None = None,
        config: Mapping[str, str] | None = None,
        app: Mapping[str, Any] | None = None,
        log: str | None = None,
    ) -> Instance:
        """Start an instance and wait until the right release has loaded.

        An instance whose name was used before finds the state directory of its predecessor.

        Args:
            name: of the instance.
            release: of Kafka Streams; the cell's if not given.
            config: Kafka Streams configuration in addition to the scenario's.
            app: settings of the topology in addition to the scenario's.
            log: name of its log; by default the instance's name and the count of its starts.
        """

    def step(self, command: str, instance: str, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Have an instance carry out a command of streams_app/README.md, as `add-thread` or `pause`, and record it.

        What is to be done `meanwhile` is done when it has been asked to.

        Raises:
            HarnessError: it did not.
        """

    def stop(self, name: str, leave_group: bool = False) -> None:
        """Close an instance cleanly and wait for its end."""

    def terminate(self, name: str) -> None:
        """Ask an instance to end by SIGTERM, as an orchestrator does, and wait until it has closed."""

    def kill(self, name: str) -> None:
        """End an instance with SIGKILL."""

    def await_halt(self, name: str, within: float) -> bool:
        """Whether an instance ends by itself within some seconds; if not, it is killed."""

    def freeze(self, name: str) -> None:
        """Freeze an instance (SIGSTOP) until it is thawed."""

    def thaw(self, name: str) -> None:
        """Thaw a frozen instance."""

    def limit_files(self, name: str, size: int | None) -> None:
        """Keep an instance from writing files beyond a size, its log among them; None lifts the limit."""

    def state_directory(self, name: str) -> Path:
        """Where an instance of this name keeps its stores: Kafka Streams' `state.dir` and application id."""


class FaultContext(Protocol):
    """The actions of a fault in one trial: on which parts of the world it may act, what it may ask and record."""

    trial: Trial
    rng: random.Random
    parameters: Mapping[str, Any]

    @property
    def events(self) -> Sequence[Event]:
        """The timeline so far."""

    @property
    def instances(self) -> Instances:
        """The instances of the application."""

    @property
    def brokers(self) -> Brokers:
        """The brokers."""

    @property
    def links(self) -> Links:
        """The links between an instance and each of them."""

    def without(self, names: frozenset[str]) -> "FaultContext":
        """The same, in which these instances are not among those that run, so that a second fault spares them."""

    def now(self) -> float:
        """The time in epoch seconds, on the clock of the timeline."""

    def note(self, event: str, **fields: Any) -> None:
        """Record something that the driver did or saw in the timeline."""

    def holds_within(self, seconds: float, condition: Callable[[], object]) -> bool:
        """Whether a condition becomes true within some time; if it does not, that is an answer, too."""

    def count_committed(self, role: str = "input") -> int:
        """Records of the topic, the input as a rule, whose processing is committed."""

    def open_input(self) -> Mapping[str, Mapping[str, tuple[int, None]]]:
        """The input that is not committed: by role and partition, from an offset on, as in events (`open`)."""


AT_WORK = (1_000, 5_000)  # records that are processed before a fault is injected; their number is drawn
AT_WORK_WITHIN = 5.0  # seconds
RIPE_WITHIN = 6.0  # seconds
SESSION = 4.0  # seconds after which a member that did not leave is missed
WORKS = 200  # records after which an instance, or its group, has been seen to work again
AT_REST = 1.0  # seconds without a change of state, after which a group counts as at rest


class NoTargetError(Exception):
    """There is nothing that the fault could be injected into; says why."""


class FaultRun(ABC):
    """A fault at work in one trial."""

    patience: float  # seconds to wait for the effect, and then for the recovery

    def __init__(self, lab: FaultContext) -> None:
        self.lab = lab

    def is_ripe(self) -> bool:
        """Whether it would take effect now; asked again and again for a while, then it is injected in any case.

        Raises:
            NoTargetError: as of `apply`.
        """
        return True

    @abstractmethod
    def apply(self) -> str:
        """Do it, and say in a few words to what.

        Raises:
            NoTargetError: there is nothing to do it to.
        """

    @abstractmethod
    def has_taken_effect(self) -> bool:
        """Whether its effect was seen and lasted long enough, so that it may be undone."""

    @abstractmethod
    def heal(self) -> None:
        """Undo it; also if `apply` did not complete, or the drive failed meanwhile."""

    @abstractmethod
    def has_recovered(self) -> bool:
        """Whether, since it was undone, the application has been seen to deal with it."""

    @abstractmethod
    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """The proof as JSON; what it lacks, if the fault did not take effect; what happened, in one sentence."""


@dataclass(frozen=True)
class Fault:
    """A fault that can be injected into a scenario's application, in addition to or instead of the scenario's own."""

    name: str
    effect: str  # what it does, in one sentence
    undone: str  # how, in one sentence
    needs: str  # what a scenario needs for it to take effect, in one clause
    new_run: Callable[[FaultContext], FaultRun]
    parameters: type[BaseParameters] = BaseParameters
    nodes: int = 1  # the least number of brokers
    since: Release | None = None  # the first Kafka Streams that can do it; None: all can
    lasts: float = 8.0  # seconds for which records must last, at any time
    requires: frozenset[Capability] = frozenset()  # of the brokers
    seen_outside: bool = False  # whether a black box shows that it took effect
    # Kafka Streams configuration without which a trial would wait for minutes, from the parameters' values.
    config: Callable[[Mapping[str, Any]], Mapping[str, str]] = lambda _: {}


@contextmanager
def at_work(fault: Fault, fault_run: FaultRun) -> Iterator[str]:
    """Inject a fault for the time of a `with` block; it is undone whatever happens there.

    Args:
        fault: that is injected.
        fault_run: the fault in the world of this trial; nothing is done yet.

    Raises:
        NoTargetError: there is nothing that it could be injected into.
    """
    lab = fault_run.lab
    try:
        open_ = lab.open_input()
        target = fault_run.apply()
        label = f"{fault.name} {target}"
        lab.note("fault", name=fault.name, action="applied", label=label, text=fault.effect, on=target, open=open_)
        yield target
    finally:
        fault_run.heal()
    lab.note("fault", name=fault.name, action="healed", label=f"{fault.name} over", text=fault.undone)


def run_fault(
    fault: Fault, lab: FaultContext, meanwhile: Callable[[], None], beside: Fault | None = None
) -> FaultOutcome:
    """Inject a fault in the middle of work, await its effect, undo it and await the recovery.

    The outcome is recorded in the timeline, too.

    Args:
        fault: that is injected.
        lab: the world of the trial.
        meanwhile: called again and again, so that records flow.
        beside: a second fault. It hits another instance after the first one has taken effect, and is over before it.
    """
    second = None

    def while_records_flow(condition: Callable[[], bool]) -> Callable[[], bool]:
        def holds() -> bool:
            meanwhile()
            return condition()

        return holds

    enough = count_processed(lab) + lab.rng.randint(*AT_WORK)
    lab.holds_within(AT_WORK_WITHIN, while_records_flow(lambda: count_processed(lab) >= enough))
    try:
        fault_run = fault.new_run(lab)
        lab.holds_within(RIPE_WITHIN, while_records_flow(fault_run.is_ripe))
        with at_work(fault, fault_run) as target:
            lab.holds_within(fault_run.patience, while_records_flow(fault_run.has_taken_effect))
            if beside is not None:
                second = run_fault(beside, lab.without(frozenset(target.split())), meanwhile)
        lab.holds_within(fault_run.patience, while_records_flow(fault_run.has_recovered))
        fault_outcome = _conclude(fault, *fault_run.report_observed())
    except NoTargetError as reason:
        fault_outcome = _conclude(fault, {}, [str(reason)])
    lab.note("fault", action="observed", open=lab.open_input(), **vars(fault_outcome))
    return fault_outcome if beside is None else together(fault_outcome, second)


def together(first: FaultOutcome, second: FaultOutcome | None) -> FaultOutcome:
    """The outcome of two faults at once; None if the second one had no chance."""
    if second is None:
        return replace(first, bit=False)
    observed = {outcome.name: outcome.observed for outcome in (first, second)}
    bit = first.bit and second.bit
    return FaultOutcome(f"{first.name} and {second.name}", bit, f"{first.summary} {second.summary}", observed)


def count_processed(lab: FaultContext) -> int:
    """Records that the running instances have processed; of black boxes, those whose processing is committed."""
    running = lab.instances.running.values()
    return (
        sum(instance.processed for instance in running)
        if all(instance.reports for instance in running)
        else lab.count_committed()
    )


def continues(lab: FaultContext, instance: Instance, by_all: int, by_it: int) -> bool:
    """Whether an instance runs, and more records are processed than these: by itself, if it has tasks."""
    works = instance.processed > by_it or not instance.tasks("active")
    return instance.state == "RUNNING" and works and count_processed(lab) > by_all


def draw_busy(lab: FaultContext, others: int = 0) -> Instance:
    """An instance drawn from those that hold active tasks, if enough others run besides it.

    Raises:
        NoTargetError: there is none, or there are too few others.
    """
    running = lab.instances.running
    busy = sorted(name for name, instance in running.items() if instance.tasks("active"))
    if not busy or len(running) <= others:
        beside = " and another one besides it" if others else ""
        raise NoTargetError(
            f"it takes an instance with an active task{beside}, but {len(running)} ran, of which {len(busy)} had a task"
        )
    return running[lab.rng.choice(busy)]


def is_at_rest(lab: FaultContext) -> bool:
    """Whether each instance has been RUNNING for a while: in a rebalance one may just have given its tasks up."""
    since = (lab.now() - AT_REST) * 1_000
    return all(
        instance.state == "RUNNING" and instance.last["state"]["t"] <= since
        for instance in lab.instances.running.values()
    )


def tasks_come_back(session: float = SESSION) -> dict[str, str]:
    """Configuration of a group that gives tasks at once to a member that comes back, and misses one after a session.

    `session` is in seconds; by default it is short.
    """
    return {
        "main.consumer.session.timeout.ms": str(int(session * 1_000)),
        # With less, an instance that was away or lost its state gets active tasks only with a probing rebalance,
        # in ten minutes.
        "acceptable.recovery.lag": "1000000",
    }


def log_lines(log: Path, since: int, pattern: re.Pattern[str], t: int = 0) -> Iterator[tuple[int, str]]:
    """The matches in a log from this position on: the time, in epoch milliseconds, and the text that matches.

    Args:
        log: of an instance or a broker.
        since: position of a byte.
        pattern: to be found in each line.
        t: the time of lines before the first one that has a time.
    """
    with log.open(errors="replace") as lines:
        lines.seek(since)
        for line in lines:
            t = time_of_line(line) or t
            if found := pattern.search(line):
                yield t, found[0]


def _conclude(fault: Fault, proof: Mapping[str, Any], missing: Sequence[str], message: str = "") -> FaultOutcome:
    if missing:
        message = f"The fault {fault.name} did not take effect: {'; '.join(missing)}."
    return FaultOutcome(fault.name, not missing, message, proof)
