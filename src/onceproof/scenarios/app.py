"""Your own application, under our faults: `onceproof app run`.

We do not know what its topology promises, so a trial without a fault is the oracle of the trial with one
(`readers.application`). The parameter `application` names its folder, where `onceproof.toml` says what it is: topics
and records of the scenario come from there.

The first records are processed by instances that are then closed cleanly, so that a fault meets stores which have a
checkpoint and were opened again (KAFKA-20685 needs it). The fault strikes while the others flow. A trial without a
fault makes the same journey, and is exercised.

On brokers of ours its topics are called as it calls them. On those of somebody else that might be a topic of theirs:
there all names begin as those of any trial do, and the application takes them from its properties.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from onceproof.faults import NONE, OF_DISK, OF_GROUPS, chosen, parameters_of
from onceproof.faults.base import processed, suffer
from onceproof.model.anomaly import Comparison
from onceproof.model.cell import Cell, Trial
from onceproof.model.files import Declared
from onceproof.model.oracle import Oracle
from onceproof.model.parameter import Parameter
from onceproof.model.record import Token
from onceproof.model.timeline import Event
from onceproof.scenarios.base import (
    Exercise,
    Lab,
    Message,
    Role,
    Scenario,
    System,
    Variant,
    Workload,
    refuse_restarts,
    refuse_rolling,
    rolls,
    values_of,
    variants_of,
)
from onceproof.scenarios.declared import FILE, Application, InputTopic, OutputTopic, application_of

NAME = "app"
FIRST = 0.3  # share of the records that are processed before the instances are started again
WITHOUT_FAULT = "No fault was to befall it: what it puts out is the oracle of trials in which one does."
GUARANTEE = "processing.guarantee"
LIKE = "fault.config"

PARAMETERS = {
    "application": Parameter("", "folder of the application, which has an onceproof.toml"),
    "oracle": Parameter("", "file that has what it puts out without a fault"),
    LIKE: Parameter(NONE, "fault whose configuration a trial without a fault has, so that nothing else differs"),
    **parameters_of(*OF_GROUPS, *OF_DISK),
}
VARIANTS = variants_of(Variant("DEFAULT_CONFIG", "As its onceproof.toml says."))


def values(trial: Trial) -> dict[str, Any]:
    """The trial's parameters."""
    return values_of(trial, PARAMETERS, VARIANTS)


def _application(trial: Trial) -> Application:
    return application_of(values(trial)["application"])


def prefix(trial: Trial) -> str:
    """What the names of its topics begin with."""
    return trial.topic("") if trial.cell.broker.is_claimed else ""


def workload(trial: Trial) -> Workload:
    """Its records: those of files as they are, generated ones drawn from the seed."""
    messages = _messages(values(trial)["application"], trial.seed, _begin(trial), prefix(trial))
    records = [(Token.of(m.key or b"", ""), place) for place, m in enumerate(messages)]
    first = _of_globals(trial, messages)
    first += round((len(records) - first) * FIRST)
    return Workload(records[:first], records[first:], messages)


def _of_globals(trial: Trial, messages: Sequence[Message]) -> int:
    """How many of the records, the first ones, are for global tables: no task processes or commits them."""
    topics = {prefix(trial) + one.topic for one in _application(trial).declares.input if one.is_global}
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
    oracle = Oracle.read(Path(path)) if (path := values(trial)["oracle"]) else None
    named = prefix(trial)
    roles = {one.topic: Role(declared=_read(one, named)) for one in declares.input}
    only = next(one for one in declares.input if not one.is_global)
    roles |= {one.topic: Role(declared=_written(one, named, only.topic, oracle)) for one in declares.output}
    made = {name for one in declares.output for name in one.promises}
    return System(NAME, roles, promises=("deliveries",) if "each-input-once" in made else (), stores=0)


def _read(one: InputTopic, named: str) -> Declared:
    return Declared(named + one.topic, "global" if one.is_global else "input", one.key, one.value)


def _written(one: OutputTopic, named: str, only: str, oracle: Oracle | None) -> Declared:
    return Declared(
        named + one.topic,
        "output",
        one.key,
        one.value,
        one.promises,
        (one.of or only) if "each-input-once" in one.promises else None,
        oracle.agreed[one.topic] if oracle else None,
        tuple(oracle.ignored.get(one.topic, ())) if oracle else (),
        one.compare,
    )


def app(trial: Trial) -> Mapping[str, Any]:
    """What the instances are told: where the application is, and its class."""
    application = _application(trial)
    return {"application": str(application.folder), "class": application.declares.class_}


def config(trial: Trial) -> Mapping[str, str]:
    """Its properties; exactly-once, unless they say otherwise."""
    own = values(trial)
    like = chosen({"fault": own[LIKE]})
    return {
        GUARANTEE: "exactly_once_v2",
        **_application(trial).properties(prefix(trial)),
        **(like.config(own) if like else {}),
    }


def refusal(cell: Cell, own: Mapping[str, Any]) -> str | None:
    """Of a trial that names no application."""
    if not own["application"]:
        return "it needs the folder of an application: onceproof app run DIR."
    if not rolls(own):
        return refuse_restarts(cell)
    if (instances := application_of(own["application"]).declares.instances) < 2:
        return f"a rolling bounce takes two instances or more; its {FILE} has instances = {instances}."
    return refuse_rolling(cell, own)


def drive(lab: Lab) -> Exercise:
    """Process the first records, close cleanly, start again, let the others flow, and the fault strike."""
    declares, fault = _application(lab.trial).declares, chosen(lab.parameters)
    names = [f"instance-{number}" for number in range(1, declares.instances + 1)]
    with lab.phase("first"):
        _start(lab, names)
        # What is processed is committed when the instances close.
        enough = len(lab.workload.first) - _of_globals(lab.trial, lab.workload.messages)
        while (done := processed(lab)) < enough:  # however slow the application is
            lab.await_(f"more than {done:,} of {enough:,} records to be processed", partial(_is_beyond, lab, done))
    with lab.phase("restart"):
        for name in names:
            lab.stop_instance(name, leave_group=True)
        _start(lab, names)
    with lab.phase("fault" if fault else "flow"):
        bulk = lab.produce("second", lab.workload.second, float(declares.rate))
        suffered = suffer(fault, lab, lambda: bulk.make_last(fault.lasts)) if fault else None
    with lab.phase("drain"):
        bulk.full_speed()
        lab.await_drained()
        lab.await_internal_drained()
    with lab.phase("leave"):
        lab.close_and_compare_state()
    return Exercise.of(suffered) if suffered else Exercise(True, WITHOUT_FAULT, all_steps_tried=True)


def _is_beyond(lab: Lab, records: int) -> bool:
    return processed(lab) > records


def _start(lab: Lab, names: list[str]) -> None:
    instances = [lab.start_instance(name) for name in names]
    lab.await_("its instances to run", lambda: all(one.state == "RUNNING" for one in instances))


def observe(_trial: Trial, events: Sequence[Event]) -> Sequence[Comparison]:
    """The promise `stores`: what each store holds at the end is what its changelog says."""
    return [_compared(event) for event in events if event["event"] == "store"]


def _compared(store: Event) -> Comparison:
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
    title="An application of people's own, beside what it does without a fault",
    parameters=PARAMETERS,
    variants=VARIANTS,
    system=system,
    partitions=lambda trial: _application(trial).declares.partitions,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    observe=observe,
    positive_control=("DEFAULT_CONFIG", "4.1.2"),
    refusal=refusal,
)
