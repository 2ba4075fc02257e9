"""A promise of every scenario: at rest, each task has one owner, and its standbys are on other instances.

A task without an owner is not processed. If it has two owners, one was not fenced. A standby on the instance of its
active, or none at all, saves nothing when the instance dies, and nothing fails until then.

Sources: KIP-429, KIP-441, KIP-1071; Kafka Streams' developer guide, `num.standby.replicas`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onceproof.model.anomaly import Comparison
from onceproof.model.timeline import Event

PROMISE = "assignment"
AT_REST = "at-rest"  # the event with `instances`, `partitions` and `standbys`
SETTLES = 60.0  # seconds after which the tasks of a drained application must be where they belong
GONE = ("DEAD", "PENDING_SHUTDOWN")  # states of a thread
Threads = Mapping[str, Sequence[Mapping[str, Any]]]  # by instance: `thread`, `state`, `active`, `standby`


@dataclass(frozen=True)
class Assigned:
    """The instances that have a task.

    Attributes:
        active: an instance for each thread that has it as active.
        standby: the same of standbys; warmups are among them.
        standbys: how many other instances must have it as standby.
    """

    task: str
    active: tuple[str, ...]
    standby: tuple[str, ...]
    standbys: int

    @property
    def is_right(self) -> bool:
        """Whether it has one owner, and enough standbys that are elsewhere."""
        elsewhere = set(self.standby) - set(self.active)
        return len(self.active) == 1 and elsewhere == set(self.standby) and len(elsewhere) >= self.standbys


def list_assigned(event: Mapping[str, Any], with_standbys: frozenset[str]) -> list[Assigned]:
    """Each task of the sub-topologies of which an instance has a task, from an event `at-rest`.

    Args:
        event: `instances` as `Threads`, `partitions` of each sub-topology, `standbys` as num.standby.replicas.
        with_standbys: the sub-topologies that had a standby before; if there are none, all must have them.
    """
    alive: Threads = {
        name: [thread for thread in threads if thread["state"] not in GONE]
        for name, threads in event["instances"].items()
    }
    holders = sum(bool(threads) for threads in alive.values())
    seen = {_subtopology(task) for threads in alive.values() for thread in threads for task in _tasks(thread)}
    stateful = (with_standbys or seen) if event["standbys"] else frozenset[str]()
    return [
        Assigned(
            task,
            tuple(_having(alive, task, "active")),
            tuple(_having(alive, task, "standby")),
            max(0, min(event["standbys"], holders - 1)) if subtopology in stateful else 0,
        )
        for subtopology in sorted(seen, key=int)
        for task in (f"{subtopology}_{partition}" for partition in range(event["partitions"]))
    ]


def had_standbys(events: Sequence[Event]) -> frozenset[str]:
    """The sub-topologies of which some thread reported a standby."""
    return frozenset(
        _subtopology(task)
        for event in events
        if event["event"] == "assignment"
        for thread in event["threads"]
        for task in thread["standby"]
    )


def compare_assignment(events: Sequence[Event]) -> Iterator[Comparison]:
    """One comparison for each task, whenever the application was at rest before it closed.

    Raises:
        KeyError: an event lacks a field of the protocol.
    """
    with_standbys = had_standbys(events)
    for event in events:
        if event["event"] == AT_REST:
            tasks = list_assigned(event, with_standbys)
            if not tasks:
                due, found = "each task active on one instance", "no instance with a task"
                yield Comparison(PROMISE, "wrong-assignment", 0, None, "the application", due, found)
            for task in tasks:
                anomaly = None if task.is_right else "wrong-assignment"
                due = f"active on one instance, standby on {task.standbys} or more others"
                found = f"active on {_join_names(task.active)}, standby on {_join_names(task.standby)}"
                partition = int(task.task.partition("_")[2])
                yield Comparison(PROMISE, anomaly, partition, None, task.task, due, found)


def _tasks(thread: Mapping[str, Any]) -> list[str]:
    return [*thread["active"], *thread["standby"]]


def _subtopology(task: str) -> str:
    return task.partition("_")[0]


def _having(alive: Threads, task: str, role: str) -> Iterator[str]:
    return (name for name, threads in alive.items() for thread in threads if task in thread[role])


def _join_names(instances: Sequence[str]) -> str:
    return " and ".join(instances) or "none"
