"""Your own application, under our faults: `onceproof app run`.

We do not know what its topology promises, so a trial without a fault is the oracle of the trial with one
(`readers.application`). The parameter `application` names its folder, where `onceproof.toml` says what it is: topics
and records of the scenario come from there.

The first records are processed by instances that are then closed cleanly, so that a fault meets stores which have a
checkpoint and were opened again (KAFKA-20685 needs it). The fault is injected while the others flow. A trial without a
fault is exercised. One of them runs without that restart: so it is seen if the restart alone breaks something.

On brokers of ours its topics are called as it calls them. On brokers of a user that might be a topic of theirs:
there all names begin as those of any trial do, and the application takes them from its properties.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from onceproof.faults import (
    FAULTS,
    NONE,
    OF_DISK,
    OF_GROUPS,
    Injection,
    bounce,
    fault_or_none,
    held_rebalance,
    instance_kill,
    pause,
    refuse_fault,
    thread_removed,
    topology_pause,
)
from onceproof.faults.base import Fault, count_processed, is_at_rest, run_fault
from onceproof.faults.directory import OF_USERS, ROCKSDB
from onceproof.model.anomaly import Comparison
from onceproof.model.cell import Cell, Trial
from onceproof.model.files import ANSWERS, CHANGELOG, Declared, Later
from onceproof.model.oracle import Oracle
from onceproof.model.parameter import OneOf
from onceproof.model.record import Token
from onceproof.model.timeline import Event
from onceproof.scenarios.base import (
    INSTANCE,
    Exercise,
    Message,
    Role,
    Scenario,
    ScenarioContext,
    System,
    Variant,
    Workload,
    refuse_restarts,
    refuse_rolling,
    rolls,
    values_in,
    variants_of,
)
from onceproof.scenarios.declared import (
    FILE,
    GUARANTEE,
    HEAP,
    PHASE,
    SERVER,
    Declaration,
    DeclaredApplication,
    InputTopic,
    OutputTopic,
    Query,
    application_of,
)
from onceproof.scenarios.routes import NOTICED, ROUTED_WITHIN, Owners, Routes, all_routes, compare_routes, wrong_routes

NAME = "app"
FIRST = 0.3  # share of the records that are processed before the instances are started again
WITHOUT_FAULT = "No fault was injected: its output is the oracle of trials with a fault."
RESTARTED = "No fault was injected: its instances were closed cleanly once, and started again."
REPLAYED = ("replay", "replay-newest")  # promises for which its input is replayed
AGAIN = 200  # records that show that a black box is at work again
AT_WORK_WITHIN = 60.0  # seconds without a record that is processed
# The same of a black box: it is not known when it is up, and members that closed without leaving are missed after 45 s.
AGAIN_WITHIN = 150.0
NOT_SEEN = {
    "stores": "a command's stores are only read on the class path of its release, which is its own",
    **dict.fromkeys(REPLAYED, "it takes the class of the topology, and a command has none that is known"),
}
LIKE = "fault.config"
RESTART, BESIDE = "restart", "beside"
# Faults that can be injected in addition to another one: they take brokers and links as they are.
SECOND = (
    pause.FAULT,
    instance_kill.FAULT,
    bounce.FAULT,
    thread_removed.FAULT,
    topology_pause.FAULT,
    *OF_DISK,
)
PUT_OUT_WITHIN = 120.0  # seconds


class Parameters(Injection):
    """The application that is run, and what its output is compared with."""

    application: str = Field("", description="folder of the application, which has an onceproof.toml")
    oracle: str = Field("", description="file that has its output without a fault")
    fault_config: str = Field(
        NONE, description="fault whose configuration a trial without a fault has, so that nothing else differs"
    )
    restart: bool = Field(
        True, description="whether all instances are closed cleanly and started again, before the fault"
    )
    beside: Annotated[str, OneOf((NONE, *(allowed.name for allowed in SECOND)))] = Field(
        NONE, description="a second fault, which hits another instance while the first one lasts"
    )


VARIANTS = variants_of(Variant("DEFAULT_CONFIG", "As its onceproof.toml says."))


values = values_in(Parameters, VARIANTS)


def _application(trial: Trial) -> DeclaredApplication:
    return application_of(values(trial).application)


def prefix(trial: Trial) -> str:
    """The prefix of the names of its topics."""
    return trial.topic("") if trial.cell.broker.is_claimed else ""


def workload(trial: Trial) -> Workload:
    """Its records: those of files as they are, generated ones drawn from the seed."""
    messages = _messages(values(trial).application, trial.seed, _begin(trial), prefix(trial))
    records = [(Token.of(m.key or b"", ""), place) for place, m in enumerate(messages)]
    first = _of_globals(trial, messages)
    first += round((len(records) - first) * FIRST)
    return Workload(records[:first], records[first:], messages)


def _of_globals(trial: Trial, messages: Sequence[Message]) -> int:
    """How many of the records, the first ones, are for global tables: no task processes or commits them."""
    topics = {prefix(trial) + topic.topic for topic in _application(trial).declares.input if topic.is_global}
    return sum(message.topic in topics for message in messages)


@lru_cache(maxsize=2)
def _messages(folder: str, seed: int, begin: int, prefix: str) -> list[Message]:
    return application_of(folder).messages(seed, begin, prefix)


def _begin(trial: Trial) -> int:
    """When the run began, by its id, in epoch milliseconds: all trials of a run get the same input."""
    return round(datetime.strptime(trial.run[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC).timestamp() * 1_000)


def system(trial: Trial) -> System:
    """Its topics, and what is promised about them."""
    declares = _application(trial).declares
    oracle = Oracle.read(Path(path)) if (path := values(trial).oracle) else None
    named = prefix(trial)
    roles = {topic.topic: Role(declared=_read(topic, named, declares)) for topic in declares.input}
    only = next(topic for topic in declares.input if not topic.is_global)
    roles |= {
        topic.topic: Role(declared=_declare_written(topic, named, only.topic, oracle, declares))
        for topic in declares.output
    }
    for query in declares.query:
        roles |= _declare_asked(trial, query, declares.partitions_of(query))
    made = {name for topic in declares.output for name in topic.promises}
    unseen = {}
    if declares.command:
        unseen = {name: why for name, why in NOT_SEEN.items() if name == "stores" or name in made}
    deliveries = ("deliveries",) if "each-input-once" in made else ()
    return System(NAME, roles, promises=deliveries, stores=0, not_looked_at=unseen, kept=None)


def _declare_asked(trial: Trial, query: Query, partitions: int) -> dict[str, Role]:
    """The topics by which the answers of a store are judged."""

    def declare(role: str, plays: str) -> Declared:
        return Declared(trial.topic(role), plays, query.key, query.value, partitions=partitions)

    answers, changelog = _answers_of(query), f"{query.store}-{CHANGELOG}"
    return {
        answers: Role(declared=declare(answers, ANSWERS)),
        changelog: Role(declared=declare(changelog, CHANGELOG)),
        f"{changelog}-all": Role(declared=declare(changelog, CHANGELOG), committed=False),
    }


def _answers_of(query: Query) -> str:
    return f"{ANSWERS}-{query.store}"


def _read(topic: InputTopic, named: str, declares: Declaration) -> Declared:
    plays = "global" if topic.is_global else "input"
    return Declared(
        named + topic.topic,
        plays,
        topic.key,
        topic.value,
        partitions=topic.partitions or declares.partitions,
        config=topic.written_config,
    )


def _declare_written(
    topic: OutputTopic, named: str, only: str, oracle: Oracle | None, declares: Declaration
) -> Declared:
    # A command has no topology that could be replayed.
    promises = tuple(name for name in topic.promises if not (declares.command and name in REPLAYED))
    return Declared(
        named + topic.topic,
        "output",
        topic.key,
        topic.value,
        promises,
        (topic.of or only) if "each-input-once" in topic.promises else None,
        oracle.agreed[topic.topic] if oracle else None,
        oracle.as_replayed.get(topic.topic) if oracle else None,
        tuple(oracle.ignored.get(topic.topic, ())) if oracle else (),
        topic.compare,
        tuple(oracle.compare_also.get(topic.topic, ())) if oracle else topic.compare_also,
        topic.partitions or declares.partitions,
        topic.written_config,
    )


def app(trial: Trial) -> Mapping[str, Any]:
    """The settings of the instances: where the application is, and its class or its command."""
    application = _application(trial)
    declares = application.declares
    what = {"command": list(declares.command)} if declares.command else {"class": declares.class_}
    asked = [
        {
            "store": query.store,
            "answers.topic": trial.topic(_answers_of(query)),
            "partitions": declares.partitions_of(query),
        }
        for query in declares.query
    ]
    return {"application": str(application.folder), **what, **({"queries": asked} if asked else {})}


def config(trial: Trial) -> Mapping[str, str]:
    """Its properties; exactly-once, unless they say otherwise."""
    parameters, application = values(trial), _application(trial)
    if application.declares.command:  # which has its own; its file says what may be expected
        return {GUARANTEE: "exactly_once_v2", **application.properties("")}
    like, second = fault_or_none(parameters.fault_config), beside(parameters)
    return {
        GUARANTEE: "exactly_once_v2",
        **_with_own_setter(application.properties(prefix(trial))),
        **_heap(application.declares),
        **(
            {SERVER: f"{INSTANCE}:1"} if application.declares.query else {}
        ),  # no client connects; it names the instance
        **(second.config(parameters.by_name) if second else {}),
        **(like.config(parameters.by_name) if like else {}),
    }


def _with_own_setter(properties: Mapping[str, str], *, is_ours: bool = False) -> dict[str, str]:
    """Properties with the setter of RocksDB's options under a second name: a fault puts one of ours in its place."""
    own = {OF_USERS: properties[ROCKSDB]} if ROCKSDB in properties else {}
    return {name: value for name, value in properties.items() if not (is_ours and name == ROCKSDB)} | own


def _sets_rocksdb(parameters: Parameters) -> bool:
    """Whether a fault brings a setter of RocksDB's options."""
    faults = (parameters.injected, beside(parameters), fault_or_none(parameters.fault_config))
    return any(ROCKSDB in fault.config(parameters.by_name) for fault in faults if fault)


def _heap(declares: Declaration) -> dict[str, str]:
    return {HEAP: declares.heap} if declares.heap else {}


def later(trial: Trial) -> tuple[Later, ...]:
    """Its phases: another configuration or another program from a start of each instance on."""
    application = _application(trial)
    declares = application.declares
    made = []
    for phase in declares.phase:
        at = declares.at(phase.start)
        app = {"command": list(at.command)} if at.command else {"class": at.class_}
        properties = application.properties(prefix(trial), phase.start)
        changed = {name: properties[name] for name in phase.properties}
        config = _with_own_setter(changed, is_ours=_sets_rocksdb(values(trial))) | _heap(at) | {PHASE: str(phase.start)}
        made.append(Later(phase.start, app, {} if at.command else config))
    return tuple(made)


def beside(parameters: Parameters) -> Fault | None:
    """The second fault, if there is one."""
    return fault_or_none(parameters.beside)


def refusal(trial: Trial) -> str | None:
    """Refuses a trial that names no application."""
    cell, parameters = trial.cell, values(trial)
    if not parameters.application:
        return "it needs the folder of an application: onceproof app run DIR."
    declares = application_of(parameters.application).declares
    if declares.command and (reason := _refuse_command(cell, parameters)):
        return reason
    if declares.query and (reason := _refuse_queries(parameters)):
        return reason
    if (second := beside(parameters)) and declares.instances < 2:
        return (
            f"{second.name} hits another instance than the first fault does; its {FILE} has instances = "
            f"{declares.instances}."
        )
    if second and (reason := refuse_fault(cell.streams, parameters.model_copy(update={"fault": second.name}))):
        return reason
    if not rolls(parameters):
        return refuse_restarts(cell)
    if declares.instances < 2:
        return f"a rolling bounce takes two instances or more; its {FILE} has instances = {declares.instances}."
    return refuse_rolling(cell, parameters)


def _refuse_queries(parameters: Parameters) -> str | None:
    """Why clients cannot ask stores under a fault, if so."""
    struck = (injected for injected in (parameters.injected, beside(parameters)) if injected)
    if fault := next((injected for injected in struck if injected not in NOTICED), None):
        others = ", ".join(allowed.name for allowed in NOTICED)
        return (
            f"under the fault {fault.name} an instance may not notice that others have its tasks, and Kafka Streams "
            f"promises nothing of its answers; leave out [[query]], or take one of {others}."
        )
    return None


def _refuse_command(cell: Cell, parameters: Parameters) -> str | None:
    """Why a trial of a black box cannot be run, if so."""
    if cell.broker.is_claimed:
        return "a command is not handed credentials, nor names for its topics; leave out --brokers."
    unseen = (
        injected for injected in (parameters.injected, beside(parameters)) if injected and not injected.seen_outside
    )
    if fault := next(unseen, None):
        others = [seen.name for seen in FAULTS.values() if seen.seen_outside]
        return (
            f"whether the fault {fault.name} takes effect is seen in instances of a class, and a command "
            f"reports nothing of what it does; take {', '.join(others)}."
        )
    return None


def drive(lab: ScenarioContext) -> Exercise:
    """Process the first records, close cleanly, start again, let the others flow, and inject the fault."""
    declares, parameters = _application(lab.trial).declares, values(lab.trial)
    fault, second = parameters.injected, beside(parameters)
    lasts = sum(injected.lasts for injected in (fault, second) if injected)
    names = [f"instance-{number}" for number in range(1, declares.instances + 1)]
    with lab.phase("first"):
        _start(lab, names)
        # What is processed is committed when the instances close.
        enough = len(lab.workload.first) - _of_globals(lab.trial, lab.workload.messages)
        while (done := _count_done(lab)) < enough:  # however slow the application is
            awaited = f"more than {done:,} of {enough:,} records to be processed"
            within = AGAIN_WITHIN if declares.command else AT_WORK_WITHIN
            lab.await_(awaited, partial(_is_beyond, lab, done), within)
    tried = _restart(lab, names, declares) if parameters.restart else 0
    with lab.phase("fault" if fault else "flow"):
        bulk = lab.produce("second", lab.workload.second[tried:], float(declares.rate))
        fault_outcome = run_fault(fault, lab, lambda: bulk.make_last(lasts), second) if fault else None
    with lab.phase("drain"):
        bulk.full_speed()
        lab.await_drained()
        lab.await_internal_drained()
        if declares.settle:  # what depends on the clock is emitted after its input was processed
            awaited = f"no output to come for {declares.settle:g} s"
            lab.await_(
                awaited, _Stillness(lab, [topic.topic for topic in declares.output], declares.settle), PUT_OUT_WITHIN
            )
    unasked = _not_asked(lab, declares)
    if declares.query:
        with lab.phase("routes"):
            _see_routes(lab, declares)
    with lab.phase("leave"):
        if declares.command:
            lab.close_instances()
        else:
            lab.close_and_compare_state()
    if parameters.oracle and (reason := phases_not_seen(declares, lab.events)):
        return Exercise(False, reason, all_steps_tried=True)
    if unasked:
        return Exercise(False, unasked)
    if fault_outcome:
        return Exercise.of(fault_outcome)
    return Exercise(True, RESTARTED if parameters.restart else WITHOUT_FAULT, all_steps_tried=True)


def _restart(lab: ScenarioContext, names: list[str], declares: Declaration) -> int:
    """Close all cleanly and start them again; returns how many of the second records flowed to see them work."""
    with lab.phase("restart"):
        for name in names:
            lab.instances.stop(name, leave_group=True)
        _start(lab, names)
        if not declares.command:
            return 0
        done = lab.count_committed()  # it is not known when it has its tasks
        lab.produce("again", lab.workload.second[:AGAIN])
        lab.await_("the group to be at work again", lambda: lab.count_committed() > done, AGAIN_WITHIN)
        return AGAIN


def phases_not_seen(declares: Declaration, events: Sequence[Event]) -> str | None:
    """A sentence about the first phase that no instance was started for; None if there is none."""
    starts = Counter(event["name"] for event in events if event["event"] == "instance" and event["action"] == "started")
    most = max(starts.values(), default=0)
    left = next((phase.start for phase in declares.phase if phase.start > most), None)
    if left is None:
        return None
    return f"The phase of start {left} never began: no instance was started more than {most} times."


class _Stillness:
    """Whether no output has grown for some time, since it was first asked."""

    def __init__(self, lab: ScenarioContext, outputs: Sequence[str], seconds: float) -> None:
        """The time runs from the first question."""
        self._lab, self._outputs, self._seconds = lab, outputs, seconds
        self._seen: tuple[list[int], float] | None = None

    def __call__(self) -> bool:
        now, ends = self._lab.now(), list(map(self._lab.end, self._outputs))
        if self._seen is None or ends != self._seen[0]:
            self._seen = (ends, now)
        return now - self._seen[1] >= self._seconds


def _count_done(lab: ScenarioContext) -> int:
    """Records that the application is done with: one that it skips is not processed, but its position is committed."""
    return max(count_processed(lab), lab.count_committed())


def _is_beyond(lab: ScenarioContext, records: int) -> bool:
    return _count_done(lab) > records


def _start(lab: ScenarioContext, names: list[str]) -> None:
    instances = [lab.instances.start(name) for name in names]
    lab.await_("its instances to run", lambda: all(instance.state == "RUNNING" for instance in instances))


def _not_asked(lab: ScenarioContext, declares: Declaration) -> str | None:
    """A sentence about the first store of which clients knew no key; None if there is none."""
    empty = next((query.store for query in declares.query if not lab.end(f"{query.store}-{CHANGELOG}")), None)
    return empty and f"No client asked for a key of the store {empty}: nothing was put into it."


def _see_routes(lab: ScenarioContext, declares: Declaration) -> None:
    """Note where each instance sends clients at rest, and which one answers."""

    def find_known(store: str) -> tuple[Owners, Routes]:
        return routes_of(lab.events, list(lab.instances.running), store)

    stores = [query.store for query in declares.query]
    lab.holds_within(
        ROUTED_WITHIN, lambda: is_at_rest(lab) and not any(wrong_routes(*find_known(store)) for store in stores)
    )
    for store in stores:
        owners, routes = find_known(store)
        lab.note("routed", store=store, owners=owners, routes=routes)


def routes_of(events: Sequence[Event], names: Sequence[str], store: str) -> tuple[Owners, Routes]:
    """By instance, as it reported last: the partitions for which it answers as active, and where it sends clients."""
    last = {
        event["source"]: event["routes"]
        for event in events
        if event["event"] == "routes" and event["store"] == store and event["source"] in names
    }
    owners = {name: [row["partition"] for row in rows if row["answers"]] for name, rows in last.items()}
    return owners, {name: {str(row["partition"]): row["active"] for row in last.get(name, ())} for name in names}


def observe(_trial: Trial, events: Sequence[Event]) -> Sequence[Comparison]:
    """The promises `stores`, what each store holds at the end is what its changelog says, and `routing`."""
    routed = [event for event in events if event["event"] == "routed"]
    return [
        *(_compare(event) for event in events if event["event"] == "store"),
        *(
            comparison
            for event in routed
            for comparison in compare_routes(all_routes(event["owners"], event["routes"]), event["store"])
        ),
    ]


def explain_unread_stores(events: Sequence[Event]) -> dict[str, str]:
    """The stores on disk that the promise `stores` says nothing of, and why."""
    return {f"store {event['store']}": event["unread"] for event in events if event["event"] == "unread-store"}


def _compare(store: Event) -> Comparison:
    entries, wrong = f"{store['entries']:,} entries", store["wrong"]
    place = (
        f"{store['type']} store {store['store']} of {store['instance']}, partition {store['partition']}, "
        f"at offset {store['position']}"
    )
    anomaly = {"active": "wrong-store", "standby": "wrong-standby"}[store["type"]] if wrong else None
    observed = f"{wrong:,} that differ: {'; '.join(store['first'])}" if wrong else entries
    return Comparison("stores", anomaly, store["partition"], None, place, entries, observed)


SCENARIO = Scenario(
    name=NAME,
    title="A user application, compared with what it does without a fault",
    parameters=Parameters,
    faults=(*OF_GROUPS, *OF_DISK, held_rebalance.FAULT, *FAULTS.added),
    variants=VARIANTS,
    system=system,
    partitions=lambda trial: _application(trial).declares.partitions,
    workload=workload,
    app=app,
    config=config,
    later=later,
    drive=drive,
    observe=observe,
    positive_control=("DEFAULT_CONFIG", "4.1.2"),
    refusal=refusal,
)
