"""Reproduction 001, KAFKA-14624: instances start and stop according to a program, and a store must never return an old
value.

Each record of a key carries the number after the one before it. The application keeps the last number of each key in
a cached store with a standby replica, and so knows what it must find there: a smaller number is a *stale read*.

A program is a list of instances; each of its steps toggles one: starts it if it does not run, else stops it. `1 2 3` is
the reproduction's. Where the reproduction waits 15 seconds, a step here waits until the group is stable and has
processed a number of records since.

What can go wrong is what goes wrong with the enumerator (a thread that held a task active, standby, active again
finds its old record cache), so the precondition is the same: a task came back to its thread; and a key that the thread
had cached was advanced elsewhere meanwhile, and read again.
Where a fault is injected, it is injected when the program is over, and the trial is exercised when it took effect.
The check needs no counter: the numbers of a key's records in the order of the input say what each must find. It is
made twice, by the application while it runs (event `stale-read`) and from the topics alone.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import Field

from onceproof.faults import OF_GROUPS
from onceproof.faults.base import Instance, run_fault
from onceproof.model.anomaly import Comparison
from onceproof.model.cell import Trial
from onceproof.model.timeline import Event, Return, return_text
from onceproof.scenarios.base import (
    ROLLING,
    ROLLING_BACK,
    STATIC_MEMBERSHIP,
    STREAMS_PROTOCOL,
    Bulk,
    Exercise,
    Group,
    Guarantee,
    Role,
    Runtime,
    Scenario,
    ScenarioContext,
    StoreKind,
    System,
    Variant,
    Workload,
    find_recycled_returns,
    membership,
    partition_of_key,
    runtime,
    values_in,
    variants_of,
)
from onceproof.scenarios.two_instances import refuse_at_least_once, refuse_group

STABLE_WITHIN = 60.0  # seconds that the group has to become stable after a step
LASTS = 8.0  # seconds for which records last once the group has become stable
PROCESSED_WITHIN = 20.0  # seconds that it has to process what the next step waits for
TOGETHER = 3  # instances that run at once at some time in a random program, if there are as many
STEPS = 6  # of a random program, at most

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(Group, Runtime):
    """The program by which instances start and stop, and the store whose old values it may bring back."""

    program: str = Field(
        "random", description="instances to toggle one after the other, or `random`: drawn from the trial's seed"
    )
    instances: int = Field(3, ge=1, description="instances that a program may name")
    threads: int = Field(1, ge=1, description="threads of an instance")
    standbys: int = Field(1, ge=0, description="standby replicas")
    partitions: int = Field(12, ge=1, description="partitions of the input")
    keys: int = Field(100, ge=1, description="distinct keys")
    records: int = Field(30_000, ge=1, description="records that flow while the program runs, at most")
    rate: float = Field(1_500.0, ge=1, description="records a second")
    records_per_step: int = Field(1_500, ge=1, description="records to be processed before the next step")
    stores: StoreKind = Field("in-memory", description="kind of the store")
    caching: bool = Field(True, description="whether the store is cached")
    leave_group: bool = Field(True, description="whether an instance that stops leaves the group")
    guarantee: Guarantee = Field("exactly_once_v2", description="processing guarantee")


REPRODUCED = {"program": "1 2 3"}
VARIANTS = variants_of(
    Variant(
        "DEFAULT_CONFIG", f"A program of up to {STEPS} steps drawn from the trial's seed; a cached in-memory store."
    ),
    Variant("SEED_PROGRAM", "As DEFAULT_CONFIG with the reproduction's program, `1 2 3`.", REPRODUCED),
    Variant("ROCKSDB", "As SEED_PROGRAM with a persistent store.", {**REPRODUCED, "stores": "rocksdb"}),
    Variant("AT_LEAST_ONCE", "As SEED_PROGRAM without transactions.", {**REPRODUCED, "guarantee": "at_least_once"}),
    Variant("CACHING_DISABLED", "As SEED_PROGRAM; the store is not cached.", {**REPRODUCED, "caching": False}),
    Variant(
        "NO_STANDBY",
        "As SEED_PROGRAM without a standby replica, so no task is recycled.",
        {**REPRODUCED, "standbys": 0},
    ),
    Variant(
        "STAYING_IN_GROUP",
        "The program `1 2 3 2 2`: an instance stops without leaving the group, and comes back.",
        {"program": "1 2 3 2 2", "leave.group": False},
    ),
    Variant(
        "PAUSED",
        "The program `1 2 3`; then an instance stands still, loses its tasks, and wakes as a zombie.",
        {**REPRODUCED, "fault": "pause"},
    ),
    Variant(
        "TOPOLOGY_PAUSED",
        "The program `1 2 3`; then an instance pauses its processing and resumes it (KAFKA-20731).",
        {**REPRODUCED, "fault": "topology-pause"},
    ),
    Variant(
        "TOPOLOGY_PAUSED_NO_STANDBY",
        "As TOPOLOGY_PAUSED without a standby replica.",
        {**REPRODUCED, "fault": "topology-pause", "standbys": 0},
    ),
    *(replace(rolling, parameters={"program": "1 2", **rolling.parameters}) for rolling in (ROLLING, ROLLING_BACK)),
    replace(
        STREAMS_PROTOCOL,
        description="The program `1 2 2`; a broker assigns the tasks (KIP-1071).",
        parameters={"program": "1 2 2", **STREAMS_PROTOCOL.parameters},
    ),
    replace(
        STATIC_MEMBERSHIP,
        description="As SEED_PROGRAM; each instance has a group.instance.id.",
        parameters={**REPRODUCED, **STATIC_MEMBERSHIP.parameters},
    ),
)


values = values_in(Parameters, VARIANTS)


def program_of(trial: Trial) -> list[int]:
    """The instances to toggle, in order."""
    parameters = values(trial)
    if parameters.program == "random":
        return draw_program(random.Random(trial.seed), parameters.instances)
    return [int(word) for word in parameters.program.split()]


def refuse_program(text: str, instances: int) -> str | None:
    """Why a text is not a program: it is empty, or holds anything but numbers of existing instances."""
    words = text.split()
    if not words:
        return "the program is empty; name the instances to toggle, for example `1 2 3`."
    for word in words:
        if not (word.isascii() and word.isdigit() and 1 <= int(word) <= instances):
            return (
                f"the program {text!r} names the instance {word!r}; write whole numbers from 1 to {instances}, "
                "for example `1 2 3`, or raise the parameter `instances`."
            )
    return None


def draw_program(rng: random.Random, instances: int) -> list[int]:
    """A program of which at some time several instances run at once, as many as a task needs to come back.

    It never stops the last instance that runs.
    """
    together = min(TOGETHER, instances)
    while True:
        program: list[int] = []
        running: set[int] = set()
        most = 0
        for _ in range(STEPS):
            number = rng.choice([n for n in range(1, instances + 1) if running != {n} or instances == 1])
            program.append(number)
            running ^= {number}
            most = max(most, len(running))
            if most == together and rng.random() < 0.5:
                return program
        if most == together:
            return program


def refusal(trial: Trial) -> str | None:
    """Refuses an invalid program, a fault under which the promises cannot hold, and releases.

    The application moves to another release by rolling only.
    """
    cell, parameters = trial.cell, values(trial)
    if parameters.program != "random" and (reason := refuse_program(parameters.program, parameters.instances)):
        return reason
    return refuse_at_least_once(parameters.injected, parameters.guarantee) or refuse_group(
        cell, parameters, on_disk=parameters.stores == "rocksdb"
    )


def workload(trial: Trial) -> Workload:
    """Records of keys drawn from the seed; the n-th record of a key has the value n. None is preloaded."""
    parameters = values(trial)
    rng = random.Random(trial.seed)
    numbers: Counter[int] = Counter()
    second = []
    for key in rng.choices(range(parameters.keys), k=parameters.records):
        numbers[key] += 1
        second.append((key, numbers[key]))
    return Workload([], second)


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of `counting`: the cache is what KAFKA-14624 needs."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "caching": parameters.caching,
        "stores": parameters.stores,
    }


def config(trial: Trial) -> Mapping[str, str]:
    """Tasks that move soon: an instance that stops without leaving the group is missed after 4 s."""
    parameters = values(trial)
    leaves = parameters.leave_group and trial.cell.running.removed_threads_leave_group
    return {
        "processing.guarantee": parameters.guarantee,
        "num.standby.replicas": str(parameters.standbys),
        "num.stream.threads": str(parameters.threads),
        "commit.interval.ms": "100",
        # One that stopped without leaving is missed after this time, and only then its tasks move.
        **({} if leaves else {"main.consumer.session.timeout.ms": "4000"}),
        **membership(parameters),
        **runtime(parameters),
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Run the program while records flow, then drain."""
    program = program_of(lab.trial)
    running: dict[int, Instance] = {}
    parameters = values(lab.trial)
    all_tried = True
    with lab.phase("program"):
        bulk = lab.produce("flow", lab.workload.second, parameters.rate)
        for counter, number in enumerate(program):
            lab.note("step", action=f"[{counter}] {'stop' if number in running else 'start'}", instance=_name(number))
            if number in running:
                lab.instances.stop(running.pop(number).name, parameters.leave_group)
            else:
                running[number] = lab.instances.start(_name(number), log=f"{counter}.{_name(number)}")
            if running:
                _await_stable(lab, list(running.values()), parameters, bulk)
                before = _count_processed(running)
                enough = before + parameters.records_per_step
                lab.holds_within(PROCESSED_WITHIN, partial(_has_processed, running, enough, bulk))
                all_tried = all_tried and _count_processed(running) >= enough
    fault, fault_outcome = parameters.injected, None
    if fault:
        with lab.phase("fault"):
            fault_outcome = run_fault(fault, lab, lambda: bulk.make_last(fault.lasts))
    with lab.phase("drain"):
        bulk.stop()
        if not running:  # an instance must process what is left
            lab.instances.start(_name(1), log=f"{len(program)}.{_name(1)}")
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    return Exercise.of(fault_outcome) if fault_outcome else _exercise(lab, len(program), all_tried)


def _name(number: int) -> str:
    return f"instance-{number}"


def _count_processed(running: Mapping[int, Instance]) -> int:
    return sum(instance.processed for instance in running.values())


def _has_processed(running: Mapping[int, Instance], records: int, bulk: Any) -> bool:
    return _count_processed(running) >= records or bulk.is_done()


def _await_stable(lab: ScenarioContext, running: Sequence[Instance], parameters: Parameters, bulk: Bulk) -> None:
    """Wait for the group; even on a slow machine there must be records left when it is stable."""
    tasks = {f"0_{p}" for p in range(parameters.partitions)}

    def stable() -> bool:
        bulk.make_last(LASTS)
        active = [task for instance in running for task in instance.tasks("active")]
        at_work = all(instance.state == "RUNNING" for instance in running)
        return at_work and len(active) == len(tasks) and set(active) == tasks

    lab.await_(f"a stable group of {len(running)} instances", stable, STABLE_WITHIN)


def _exercise(lab: ScenarioContext, steps: int, all_tried: bool) -> Exercise:
    proofs = find_recycled_returns(lab)
    again = [keys_read_again(lab.workload.second, values(lab.trial).partitions, proof) for proof in proofs]
    reason = f"No task came back to a thread that it had left, in {steps} steps."
    if proofs:
        number, proof = max(zip(map(len, again), proofs, strict=True), key=lambda pair: pair[0])
        read = f"{number:,} keys that the thread had cached were advanced meanwhile and read again."
        reason = f"{return_text(proof)} {read}"
    return Exercise(any(again), " ".join([reason, *describe_assertions(lab.events)]), steps, all_tried)


def keys_read_again(records: Sequence[tuple[int, int]], partitions: int, proof: Return) -> set[int]:
    """The keys that a thread had cached, that others advanced while it was away, and that it read after its return.

    Args:
        records: of the input, in the order in which they were sent.
        partitions: of the input.
        proof: when the task came back, and how many of its records each had processed.
    """
    partition = int(proof.task.partition("_")[2])
    keys = [key for key, _ in records if partition_of_key(key, partitions) == partition]
    back = proof.done + proof.elsewhere
    cached = keys[max(0, proof.done - proof.before) : proof.done]
    return {*cached} & {*keys[proof.done : back]} & {*keys[back : back + proof.after]}


def observe(_trial: Trial, events: Sequence[Event]) -> list[Comparison]:
    """The assertions of the application: it must not have seen a stale read either."""
    said = " ".join(describe_assertions(events))
    first = next((e for e in events if e["event"] == "stale-read"), None)
    partition = first["partition"] if first else 0
    anomaly = "stale-read" if first else None
    observed = said or "the application saw none"
    return [Comparison("assertions", anomaly, partition, None, "the application", "no stale read", observed)]


def describe_assertions(events: Sequence[Event]) -> Iterator[str]:
    """The observations of the application, in one sentence: how often, and where first; nothing if it saw nothing."""
    step = ""
    seen = []
    for event in events:
        if event["event"] == "step":
            step = event["action"].split()[0]
        elif event["event"] == "stale-read":
            seen.append((step, event))
    if seen:
        step, first = seen[0]
        yield (
            f"The application saw {len(seen):,} stale reads itself, the first at step {step} in {first['source']}: "
            f"expected {first['expected']} but found {first['found']}, partition {first['partition']}, input offset "
            f"{first['offset']}, key {first['key']}."
        )


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="counting",
    roles={"input": Role(), "output": Role(value_bytes=8), "last-changelog": Role()},
    promises=("reads", "assertions", "deliveries", "output-order", "changelog", "stores"),
)
# A cached store writes the last value of a key before each commit, and which one that is depends on when it commits. So
# a value that is missing in the store and its changelog looks like one that the cache replaced, as long as a later one
# follows before the task moves: `reads` and `changelog` see what is read, and what is last.
REPLACED = (
    "a cached store need not write each value, so it is not seen whether it lost one that a later value of its key "
    "replaced before the task moved; what is read, and what the store ends with, are compared"
)


def system(trial: Trial) -> System:
    """The topology; of a cached store not all that it held is known."""
    return replace(SYSTEM, not_looked_at={"state": REPLACED}) if values(trial).caching else SYSTEM


SCENARIO = Scenario(
    name="multirunner",
    title="A store never gives an old value while instances start and stop (reproduction 001, KAFKA-14624)",
    parameters=Parameters,
    faults=OF_GROUPS,
    variants=VARIANTS,
    system=system,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("SEED_PROGRAM", "3.3.1"),
    observe=observe,
    refusal=refusal,
    seconds=11,
    alike="records",
)
