"""The parts of a scenario, and what it may ask of the lab.

A scenario is one value (`Scenario`) with the same parts each time; its module says what can go wrong and why each
check is sound. Scenarios do not know the lab: they drive it through the protocols below.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from pydantic import Field

from onceproof.faults import NONE, OF_DISK, Injection, refuse_fault, rolling_bounce
from onceproof.faults.base import Fault, FaultContext, Instance, Instances
from onceproof.faults.rolling_bounce import BACK, HEADERS_ON, STATIC, SWITCHED, StaticMembership
from onceproof.model.anomaly import Comparison
from onceproof.model.application import Value
from onceproof.model.capability import OF_CLAIMED, Capability
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import UsageError, choice
from onceproof.model.files import Declared, FaultOutcome, Later, StorePlan, TopicPlan
from onceproof.model.parameter import BaseParameters, Parameter
from onceproof.model.timeline import STALLED, Event, Return, find_proved_returns
from onceproof.processes.cpu import CpuTime
from onceproof.scenarios.assignment import PROMISE as ASSIGNMENT
from onceproof.scenarios.internal_topics import PROMISE as INTERNAL_TOPICS
from onceproof.scenarios.internal_topics import Kept
from onceproof.scenarios.liveness import PROMISE as LIVENESS

P = TypeVar("P", bound=BaseParameters)
FAULT = "fault"
Guarantee = Literal["exactly_once_v2", "at_least_once"]
StoreKind = Literal["rocksdb", "in-memory"]


class Bulk(Protocol):
    """Records that are being produced in the background."""

    delivered: int
    throttled: float  # the longest time in seconds for which brokers made its producer wait

    def full_speed(self) -> None:
        """Stop pacing: send the rest as fast as possible."""

    def make_last(self, seconds: float) -> None:
        """Slow down if need be, so that the records last for some more seconds."""

    def stop(self) -> None:
        """Send no more."""

    def is_done(self) -> bool:
        """Whether every record is delivered."""

    def await_delivered(self) -> None:
        """Wait until every record is delivered."""


class ScenarioInstances(Instances, Protocol):
    """The instances of the application, and what a scenario may ask of what they leave."""

    def has_recycled(self, proof: Return) -> bool:
        """Whether a log says that the thread then recycled its active task into a standby, and did not close it."""

    def on_disk(self, name: str, task: str) -> Mapping[str, Mapping[int, int]]:
        """The content on disk of a task of an instance that has ended or is frozen: by store, key to value."""

    def contents_folder(self) -> Path:
        """Where an instance may dump its stores (`contents.folder`)."""

    def cpu_times(self) -> Mapping[str, CpuTime]:
        """The CPU time of each thread of those that run since it was started."""


class Topics(Protocol):
    """The log in which groups keep their positions, `__consumer_offsets`."""

    def positions(self) -> Mapping[int, int]:
        """End offset of each of its partitions."""

    def compact_positions(self) -> None:
        """Have it compacted at once and from now on, so that of each of its keys the last record is left."""

    def group_records(self) -> Sequence[str]:
        """Its records of the application's group, in its order: `position`, `classic` or `streams` each.

        The last two are what groups of these protocols keep of themselves; tombstones count as what they end.
        """


class Limits(Protocol):
    """Limits that brokers enforce, until the end of the trial."""

    def alter_topic(self, role: str, **config: str) -> None:
        """Change the configuration of the topic that plays the role."""

    def set_producer_quota(self, client: str, bytes_per_second: int | None) -> None:
        """Limit what the producer of this client id may send; None lifts the limit."""


class ScenarioContext(FaultContext, Protocol):
    """The actions of a scenario in one trial, in addition to those of a fault."""

    workload: "Workload"

    @property
    def instances(self) -> ScenarioInstances:
        """The instances of the application."""

    @property
    def topics(self) -> Topics:
        """The log of groups' positions."""

    @property
    def limits(self) -> Limits:
        """The limits that brokers enforce."""

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Name what happens in a `with` block; its seconds are kept."""

    def measure(self, **facts: int) -> None:
        """Keep what the checks need to know about the drive, once it is known."""

    def produce(
        self,
        name: str,
        records: Sequence[tuple[int, int]],
        rate: float | None = None,
        timestamps: Sequence[int] | None = None,
        role: str = "input",
    ) -> Bulk:
        """Send (key, value) records in the background, `rate` a second, or at full speed.

        Their `timestamps` are in epoch milliseconds; if none are given, each is that of its sending. They go into the
        topic of the `role`.
        """

    def end(self, role: str) -> int:
        """End offset (high watermark) of the topic that plays the role, summed over its partitions."""

    def compact(self, *roles: str) -> AbstractContextManager[None]:
        """Have brokers compact these topics all the time for the time of a `with` block; they are read when it is over.

        Records go as soon as a later one has their key, and tombstones soon afterwards.
        """

    def keys_left(self, role: str) -> Set[int]:
        """The keys of the committed records that are left in a changelog, tombstones among them."""

    def await_(self, what: str, condition: Callable[[], object], timeout: float = 60.0) -> None:
        """Wait for a condition that the application must bring about: if it does not, it is stuck."""

    def await_drained(self) -> None:
        """Wait until everything produced is processed and committed."""

    def await_internal_drained(self) -> None:
        """Wait until what the application passes to itself through repartition topics is processed and committed."""

    def close_instances(self) -> None:
        """Have all instances dump their stores, then let them leave."""

    def close_and_compare_state(self) -> None:
        """Let all instances leave, and have the timeline show what their stores and their changelogs hold."""


@dataclass(frozen=True)
class Exercise:
    """Whether a trial met its scenario's precondition, in words a person can check against the timeline."""

    exercised: bool
    reason: str
    steps: int = 1  # that the driver took
    all_steps_tried: bool = False

    @classmethod
    def of(cls, fault_outcome: FaultOutcome) -> "Exercise":
        """For a trial with a fault instead of the scenario's own steps: it met what the fault brings about."""
        return cls(fault_outcome.bit, fault_outcome.summary, all_steps_tried=fault_outcome.bit)


@dataclass(frozen=True)
class Message:
    """A record for a topic of your own application."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int  # epoch milliseconds
    partition: int | None  # None: by the key, as Java's producer does
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Workload:
    """The (key, value) records of a trial: those that are preloaded, and those that flow while it is driven.

    Where there are `messages`, the value of a record is the index of the one that it stands for. Where there are
    `times`, those that flow have these, in ms from the first one on, and not those of their sending. Records that are
    `labelled` have a header each, which no other record has.
    """

    first: Sequence[tuple[int, int]]
    second: Sequence[tuple[int, int]]
    messages: Sequence[Message] = ()
    times: Sequence[int] = ()
    labelled: bool = False


class Stamped(NamedTuple):
    """A record with its time in ms, from the first one on, where it is not that of its sending."""

    key: int
    value: int
    at: int


@dataclass(frozen=True)
class Variant:
    """A named configuration: what it changes, for people and as values of parameters."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


JAVA = "java"


class Runtime(BaseParameters):
    """On which Java instances run."""

    java: int = Field(0, ge=0, description="feature version of the Java of instances; 0 is the installation's own")


JAVA_21 = Variant("JAVA_21", "As DEFAULT_CONFIG; instances run on Java 21.", {JAVA: 21})
JAVA_25 = Variant("JAVA_25", "As DEFAULT_CONFIG; instances run on Java 25.", {JAVA: 25})
PROTOCOL = "group.protocol"


class Membership(StaticMembership):
    """How instances are members of their group."""

    group_protocol: Literal["classic", "streams"] = Field(
        "classic", description="what assigns tasks: a member of the group, or a broker"
    )


class Group(Membership, Injection):
    """For a scenario whose application is a group of instances into which faults are injected."""


class StateUpdater(BaseParameters):
    """The way in which stores are restored."""

    state_updater: bool = Field(True, description="whether the state updater is left as the release has it")


TRANSACTIONAL = "transactional.stores"
HEADERS = "store.headers"
BY_COMMIT = "whether stores take writes when they are committed (KIP-892)"


class TransactionalStores(BaseParameters):
    """When writes reach the stores."""

    transactional_stores: bool = Field(False, description=BY_COMMIT)


class StoreHeaders(BaseParameters):
    """The form of the stores that the DSL chooses."""

    store_headers: bool = Field(False, description="whether stores on disk have the form that keeps headers (KIP-1271)")


class TransactionalOnRestart(BaseParameters):
    """When writes reach the stores, in a scenario with a restart."""

    transactional_stores: Literal["no", "yes", "from the restart on", "until the restart"] = Field(
        "no", description=BY_COMMIT
    )


STREAMS_PROTOCOL = Variant(
    "STREAMS_PROTOCOL", "As DEFAULT_CONFIG; a broker assigns the tasks (KIP-1071).", {PROTOCOL: "streams"}
)
STATIC_MEMBERSHIP = Variant(
    "STATIC_MEMBERSHIP", "As DEFAULT_CONFIG; each instance has a group.instance.id.", {STATIC: True}
)

STATIC_STREAMS_PROTOCOL = Variant(
    "STATIC_STREAMS_PROTOCOL",
    "As STREAMS_PROTOCOL; each instance has a group.instance.id.",
    {**STREAMS_PROTOCOL.parameters, **STATIC_MEMBERSHIP.parameters},
)

INSTANCE = "{instance}"  # in a value of the configuration: the name of the instance
HALTS = "onceproof.halts.in.deletion"  # configuration: whether an instance ends itself while it deletes a segment

# For scenarios whose group can move to another release while it works.
ROLLING = Variant(
    "ROLLING",
    "Goes over to another release instance by instance, while records flow.",
    {"fault": rolling_bounce.NAME},
)

ROLLING_TRANSACTIONAL = Variant(
    "ROLLING_TRANSACTIONAL",
    "As ROLLING, and all the way back; on the other release stores are transactional (KIP-892).",
    {"fault": rolling_bounce.NAME, BACK: True, SWITCHED: True},
)

ROLLING_HEADERS = Variant(
    "ROLLING_HEADERS",
    "As ROLLING; on the other release stores have the form that keeps headers (KIP-1271).",
    {"fault": rolling_bounce.NAME, HEADERS_ON: True},
)

ROLLING_BACK = Variant("ROLLING_BACK", "As ROLLING, and all the way back.", {"fault": rolling_bounce.NAME, BACK: True})


@dataclass(frozen=True)
class Role:
    """A topic as it is read, and what its records are: integers of 4 bytes, unless said otherwise.

    A value of 8 bytes is a long; a longer one begins with an integer of 4 bytes.
    """

    value_bytes: int = 4
    topic: str | None = None  # the role whose topic it is, if not its own
    may_refuse: bool = False  # created beforehand, so that `min.insync.replicas=2` makes it refuse records
    committed: bool = True  # false: with the records of aborted and open transactions
    declared: Declared | None = None  # of a user application
    keys: str = "integers"  # `windows`, `sessions`: of the changelog of such a store, followed by the record's time
    plays: str | None = None  # `input`: it is one more topic that only we write to; None: what its name says
    store: StorePlan | None = None  # of a changelog: the store whose entries are compared with it, as bytes


@dataclass(frozen=True)
class System:
    """A topology of the application under test, its topics, and how they are judged."""

    topology: str  # its name in the application's jar and among the checks of both readers
    roles: Mapping[str, Role]
    promises: tuple[str, ...]  # that are looked at, see `model.promise`
    stores: int = 1
    joins: tuple[str, ...] = ()  # the kinds of its joins, see `model.application`
    requires: frozenset[Capability] = frozenset()  # of the brokers, besides what its topics need
    not_looked_at: Mapping[str, str] = field(default_factory=dict)  # promises that cannot be, and why
    # What is due of changelogs that are no tables' (`internal_topics`), by a pattern of the name; None if that is not
    # known.
    kept: Mapping[str, Kept] | None = field(default_factory=dict)

    @property
    def all_promises(self) -> tuple[str, ...]:
        """Those that are looked at, with those that each topology makes."""
        return (*self.promises, LIVENESS, *((INTERNAL_TOPICS, ASSIGNMENT) if self.kept is not None else ()))

    @property
    def topics(self) -> dict[str, TopicPlan]:
        """How the topic of each role is read."""
        return {
            name: TopicPlan(
                role.topic or name,
                role.value_bytes,
                role.committed,
                role.may_refuse,
                role.declared,
                role.keys,
                role.plays,
                role.store,
            )
            for name, role in self.roles.items()
        }

    @property
    def needs(self) -> frozenset[Capability]:
        """The capabilities that brokers need."""
        refusing = any(role.may_refuse for role in self.roles.values())
        return self.requires | ({Capability.REFUSE_RECORDS} if refusing else set())


def refuse_restarts(cell: Cell) -> str | None:
    """For a scenario whose application is not restarted."""
    if cell.restart_on is None:
        return None
    return (
        f"the application of {cell.scenario} is not restarted; leave out the release {cell.restart_on} to restart on."
    )


def refuse_restart_pair(cell: Cell) -> str | None:
    """For a scenario whose application can be restarted: why it cannot be on this pair of releases, if so."""
    return cell.streams.refuse_restart_on(cell.restart_on) if cell.restart_on else None


def rolls(parameters: Injection) -> bool:
    """Whether, by these values of parameters, the application moves to the other release instance by instance."""
    return parameters.injected is rolling_bounce.FAULT


def switches_headers(parameters: Injection) -> bool:
    """Whether stores keep headers from the other release on, to which the application moves."""
    return rolls(parameters) and rolling_bounce.Parameters.of(parameters).headers


def refuse_rolling(cell: Cell, parameters: Injection, *, on_disk: bool = True) -> str | None:
    """Why instances cannot move one by one to the other release of a cell, or not back, if they cannot.

    Args:
        cell: what is asked for.
        parameters: their values, among them those of the fault.
        on_disk: whether the stores are, so that the other release must open them.
    """
    if cell.restart_on is None:
        return "a rolling bounce takes a second release; name it with --roll-to."
    rolling = rolling_bounce.Parameters.of(parameters)
    if rolling.transactional and not cell.restart_on.has_transactional_stores:
        return f"Kafka Streams {cell.restart_on} has no transactional stores (KIP-892); roll to 4.4.0 or later."
    if rolling.headers and not cell.restart_on.has_store_headers:
        return f"Kafka Streams {cell.restart_on} keeps no headers in stores (KIP-1271); roll to 4.3.0 or later."
    if rolling.headers and rolling.back:
        return "Kafka Streams opens no store that has kept headers as one that keeps none: leave out the way back."
    ways = [(cell.streams, cell.restart_on), (cell.restart_on, cell.streams)]
    for before, after in ways[: 1 + rolling.back]:
        if reason := before.refuse_roll_to(after, upgrade_from=rolling.upgrade_from) or (
            before.refuse_restart_on(after) if on_disk else None
        ):
            return reason
    return None


def refuse_fault_of_disk(parameters: Injection, *, on_disk: bool) -> str | None:
    """Refuses a fault of stores on disk, where these are in memory."""
    if on_disk or parameters.injected not in OF_DISK:
        return None
    return f"the fault {parameters.fault} is of stores on disk; take stores=rocksdb, or another fault."


def refuse_membership(cell: Cell, parameters: Membership) -> str | None:
    """Why the releases of a cell lack the membership that is asked for, if they do (`Membership`)."""
    if parameters.group_protocol == "classic":
        return None
    sides = (("Kafka Streams", cell.streams), ("Kafka Streams", cell.running), ("a broker of Kafka", cell.broker))
    for side, release in sides:
        if not release.has_streams_protocol:
            return (
                f"{side} {release} lacks group.protocol=streams (KIP-1071, early access in 4.1); take 4.2.0 or later."
            )
        if parameters.static_membership and not release.has_static_streams_members:
            return (
                f"{side} {release} lacks static membership with group.protocol=streams; take 4.4.0 or later, or leave "
                "one of them out."
            )
    return None


def refuse_stores(cell: Cell, asked: bool | str) -> str | None:
    """Why a release of a cell lacks the stores that are asked for (`TransactionalOnRestart`), if it does."""
    at = {"no": (), "from the restart on": (cell.running,), "until the restart": (cell.streams,)}
    for release in at.get(str(asked), (cell.streams, cell.running)) if asked else ():
        if not release.has_transactional_stores:
            return f"Kafka Streams {release} has no transactional stores (KIP-892); take 4.4.0 or later."
    return None


def refuse_headers(cell: Cell, parameters: StoreHeaders, *, on_disk: bool = True) -> str | None:
    """Why the stores of a cell cannot keep headers, if they are to and cannot."""
    if not parameters.store_headers:
        return None
    for release in (cell.streams, cell.running):
        if not release.has_store_headers:
            return f"Kafka Streams {release} keeps no headers in stores (KIP-1271); take 4.3.0 or later."
    return None if on_disk else "stores keep headers on disk only: take stores=rocksdb, or another variant."


def refuse_no_state_updater(cell: Cell, parameters: StateUpdater) -> str | None:
    """Why a release of a cell cannot do without its state updater, if it has to (`StateUpdater`)."""
    for release in () if parameters.state_updater else (cell.streams, cell.running):
        if not release.can_do_without_state_updater:
            return f"Kafka Streams {release} has no switch for its state updater; take another release or variant."
    return None


# All records, in any order; the last value, where what comes in between depends on how two tasks or a record cache
# take turns; that there is one, where the output depends on when a punctuation came.
Alike = Literal["records", "final", "keys"]


@dataclass(frozen=True)
class Scenario:
    """One system under test. Its functions of a trial find the parameters with `values`."""

    name: str
    title: str
    parameters: type[BaseParameters]  # its own, as a class
    variants: Mapping[str, Variant]
    system: Callable[[Trial], System]
    partitions: Callable[[Trial], int]
    workload: Callable[[Trial], Workload]
    app: Callable[[Trial], Mapping[str, Any]]  # what the topology needs to know
    config: Callable[[Trial], Mapping[str, str]]  # Kafka Streams configuration, the lab adds what is its own
    drive: Callable[[ScenarioContext], Exercise]
    # What the checks need to know of it besides the records, as `scenarios.built` has it.
    facts: Callable[[Trial], Mapping[str, int]] = field(default=lambda _trial: {}, kw_only=True)
    # What is different from a later start of each instance on.
    later: Callable[[Trial], tuple[Later, ...]] = field(default=lambda _trial: (), kw_only=True)
    # Variant and release that show the anomaly, without which a green says nothing; and, if that takes another release,
    # the one that it goes over to.
    positive_control: tuple[str, str] | tuple[str, str, str]
    # The release of the brokers that shows it, if they are to blame.
    control_broker: str | None = None
    # What the timeline says about promises that do not show in the topics.
    observe: Callable[[Trial, Sequence[Event]], Sequence[Comparison]] = lambda _trial, _events: ()
    # Why a trial cannot be run with its values, if it cannot.
    refusal: Callable[[Trial], str | None] = lambda trial: refuse_restarts(trial.cell)
    # The faults that it allows: its promises stay true under each of them.
    faults: tuple[Fault, ...] = ()
    # Whether its trials mostly wait for time to pass, so that one can be driven in parallel to another trial.
    mostly_waits: bool = False
    # Ms for which the machine may stand still; if it does so for longer, a trial says nothing.
    stalled: int = STALLED
    # Whether each of its trials has brokers of its own, as it does to them what other trials would feel.
    own_brokers: bool = False
    # Seconds of a trial on 2 cores (docs/figures.md), until an installation has measured its own.
    seconds: float = 15.0
    # How much of each key's output must be what Kafka's TopologyTestDriver emits (`lab.witness`); None where it
    # cannot be asked.
    alike: Alike | None = None
    # What its application uses in each trial (`model.application`), in addition to what `uses` sees in its settings.
    features: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Check that variants set nothing but parameters.

        Raises:
            UsageError: one sets another name.
        """
        for variant in self.variants.values():
            for name in variant.parameters.keys() - self.settable.keys():
                raise UsageError(
                    f"The variant {variant.name} of {self.name} sets no parameter with {name!r}; "
                    f"{choice(name, self.settable)}"
                )

    @cached_property
    def settable(self) -> Mapping[str, Parameter]:
        """By name what can be set in a trial: its parameters, and those of the faults that it allows."""
        own = self.parameters.describe()
        names = (NONE, *(fault.name for fault in self.faults))
        allowed = {FAULT: own[FAULT].among(names)} if FAULT in own else {}
        of_faults = (fault.parameters.describe() for fault in self.faults)
        return {**own, **allowed, **{name: parameter for each in of_faults for name, parameter in each.items()}}

    def values(self, trial: Trial) -> dict[str, Any]:
        """By name the value of each parameter in a trial, those of faults among them."""
        defaults = {name: parameter.default for name, parameter in self.settable.items()}
        return {**defaults, **_choose_values(trial, self.variants)}

    def refuse(self, cell: Cell) -> str | None:
        """Why a cell cannot be run as its variant is, if it cannot."""
        return self.refuse_trial(Trial("", cell, 1, 0))

    def validate(self, trial: Trial) -> None:
        """Check, before anything is started, that a trial can be run with its own values.

        Raises:
            UsageError: it cannot; says why.
        """
        if reason := self.refuse_trial(trial):
            raise UsageError(f"{trial.cell.title} cannot be run: {reason}")

    def refuse_trial(self, trial: Trial) -> str | None:
        """Why a trial cannot be run with its own values, if it cannot."""
        try:
            self._check(_choose_values(trial, self.variants))
        except UsageError as error:
            return str(error)
        values = self.values(trial)
        return (
            refuse_stores(trial.cell, values.get(TRANSACTIONAL, False))
            or self.refusal(trial)
            or self._refuse_claimed(trial)
            or refuse_fault(trial.cell.streams, Injection.of(values))
        )

    def _check(self, values: Mapping[str, Any]) -> None:
        """Check that each parameter can have its value.

        Raises:
            UsageError: one cannot; says what it can be.
        """
        for name, value in values.items():
            if name in self.settable:
                self.settable[name].check(value)

    def _refuse_claimed(self, trial: Trial) -> str | None:
        lacking = self.needs(trial) - OF_CLAIMED if trial.cell.broker.is_claimed else ()
        if not lacking:
            return None
        needed = " and ".join(sorted(capability.value for capability in lacking))
        return f"it needs {needed}, which only brokers that Onceproof starts allow: leave out --brokers."

    def needs(self, trial: Trial) -> frozenset[Capability]:
        """The capabilities that brokers need for the trial to be driven; what promises need is not among it."""
        fault = Injection.of(self.values(trial)).injected
        by_protocol = {Capability.CONFIGURE_GROUPS} if self.config(trial).get(PROTOCOL) == "streams" else set()
        return self.system(trial).needs | by_protocol | (fault.requires if fault else frozenset())

    def uses(self, trial: Trial) -> dict[str, tuple[Value, ...]]:
        """The features that its application uses in a trial: by feature (`model.application`) the values that apply."""
        config, app, system, parameters = self.config(trial), self.app(trial), self.system(trial), self.values(trial)
        is_cached = bool(app.get("caching")) and config.get(trial.cell.running.cache_size_config) != "0"
        return {
            "guarantee": (config["processing.guarantee"],),
            "stores": _stores_of(app),
            "caching": (is_cached,),
            "standbys": (config["num.standby.replicas"] != "0",),
            "static_membership": ("group.instance.id" in config,),
            "transactional_stores": (
                parameters.get(TRANSACTIONAL, False) not in (False, "no") or bool(parameters.get(SWITCHED)),
            ),
            "state_updater": ("__state.updater.enabled__" not in config,),
            "protocol": (config.get(PROTOCOL, "classic"),),
            "quotas": ("quotas" in self.features,),
            "joins": system.joins,
            "global_tables": ("global_tables" in self.features,),
            "grouped_tables": ("grouped" in system.promises and "table-changelog" in system.roles,),
            "optimization": (
                config.get("topology.optimization", "none") != "none" or app.get("read.as") == "optimized-source",
            ),
            "windows": ("windows" in system.promises,),
            "window_stores": (
                "windows" in system.promises
                or "stream-stream" in system.joins
                or app.get("stores") in ("window", "session"),
            ),
            "punctuators": ("punctuate.ms" in app,),
            "queries": (bool(app.get("by.query")),),
            "skipped_records": (any(name.endswith("exception.handler") for name in config),),
        }

    def variant(self, name: str) -> Variant:
        """The variant of this name.

        Raises:
            UsageError: there is none.
        """
        try:
            return self.variants[name]
        except KeyError:
            raise UsageError(f"Scenario {self.name} has no variant {name!r}; {choice(name, self.variants)}") from None

    def parse(self, settings: Iterable[str]) -> dict[str, Any]:
        """Parameters from texts `name=value`.

        Raises:
            UsageError: a text has another form, or names no parameter, or no value that it can have.
        """
        values = {}
        for text in settings:
            name, equals, value = text.partition("=")
            if name not in self.settable:
                raise UsageError(f"{text!r} sets no parameter of {self.name}; {choice(name, self.settable)}")
            if not equals:
                raise UsageError(f"{name} has no value: write {name}=VALUE. It is {self.settable[name].description}.")
            values[name] = self.settable[name].parse(value)
        return values


def _stores_of(app: Mapping[str, Any]) -> tuple[Value, ...]:
    if "caching" not in app:  # which every topology with a store gets
        return ()
    kind = app.get("stores")
    if kind == "versioned":
        return ("rocksdb", kind)
    return ("in-memory" if kind == "in-memory" else "rocksdb",)


def values_in(parameters: type[P], variants: Mapping[str, Variant]) -> Callable[[Trial], P]:
    """The function that says the value of each of these parameters in a trial: its own, its variant's, or the default.

    It raises `UsageError` if one cannot have its value.
    """
    return lambda trial: parameters.of(_choose_values(trial, variants))


def _choose_values(trial: Trial, variants: Mapping[str, Variant]) -> dict[str, Any]:
    return {**variants[trial.cell.variant].parameters, **trial.parameters}


def variants_of(*variants: Variant) -> dict[str, Variant]:
    """Variants by their names."""
    return {variant.name: variant for variant in variants}


def number_records(seed: int, keys: int, number: int) -> list[tuple[int, int]]:
    """So many records, key and value, of keys that are drawn from a seed; the n-th record of a key has the value n."""
    numbers, made = Counter[int](), []
    for key in random.Random(seed).choices(range(keys), k=number):
        numbers[key] += 1
        made.append((key, numbers[key]))
    return made


def partition_of_key(key: int, partitions: int) -> int:
    """The reproduction's partitioning of the input, which the application uses for its output, too."""
    return (key + 1) % partitions


def behind(records: Sequence[tuple[int, int]], partitions: int) -> dict[str, tuple[int, None]]:
    """The input that follows these first records: by partition from an offset on, as in events (`open`)."""
    sizes = Counter(partition_of_key(key, partitions) for key, _ in records)
    return {str(partition): (sizes[partition], None) for partition in range(partitions)}


def find_restored_anew(events: Iterable[Event]) -> list[str]:
    """The stores, each with its partition, that were restored from the beginning of a changelog that is not empty.

    One that is opened as it was left has at most the end of the last transaction to go through.
    """
    restores = [event for event in events if event["event"] == "restore" and event["from"] == 0 < event["end"]]
    return sorted({f"{event['store']}-{event['partition']}" for event in restores})


def runs_its_task(instance: Instance) -> bool:
    """Whether an instance that is alone has begun to work."""
    return instance.state == "RUNNING" and bool(instance.tasks("active"))


def runtime(parameters: Runtime) -> dict[str, str]:
    """The configuration for the requested Java."""
    return {"onceproof.java": str(parameters.java)} if parameters.java else {}


def membership(parameters: Membership) -> dict[str, str]:
    """The configuration for the requested membership."""
    static = {"group.instance.id": INSTANCE} if parameters.static_membership else {}
    return static | ({PROTOCOL: parameters.group_protocol} if parameters.group_protocol != "classic" else {})


def transactional_stores(
    parameters: TransactionalStores | TransactionalOnRestart, *, restarted: bool = False
) -> dict[str, str]:
    """The configuration for the requested stores, before the restart of a scenario or after it.

    It is empty for a trial that never has them, as older releases do not know it.
    """
    asked = parameters.transactional_stores
    if asked in (False, "no"):
        return {}
    has = asked in (True, "yes", "from the restart on" if restarted else "until the restart")
    return {"enable.transactional.statestores": str(has).lower()}


def store_headers(parameters: StoreHeaders) -> dict[str, str]:
    """The configuration for the requested stores; empty for a trial without headers, as older releases lack it."""
    return rolling_bounce.STORE_HEADERS if parameters.store_headers else {}


def state_updater(parameters: StateUpdater) -> dict[str, str]:
    """The configuration for the requested way of restoring."""
    return {} if parameters.state_updater else {"__state.updater.enabled__": "false"}


def rejoining(parameters: Group) -> dict[str, str]:
    """The configuration for an instance that has its tasks at once when it is started again.

    Under a fault there is another one, which takes them over. Under the streams protocol a member leaves its group when
    it is closed, so nothing waits for it.
    """
    alone = parameters.injected is None and parameters.group_protocol == "classic"
    return {"group.instance.id": INSTANCE} if alone else {}


def find_recycled_returns(lab: ScenarioContext) -> list[Return]:
    """Returns that count (the precondition of KAFKA-14172), of tasks that were recycled and not closed.

    Under the streams protocol a task that is taken from a thread is closed first, whatever follows: there they count.
    """
    if Membership.of(lab.parameters).group_protocol == "streams":
        return find_proved_returns(lab.events, closed=True)
    return [proof for proof in find_proved_returns(lab.events) if lab.instances.has_recycled(proof)]
