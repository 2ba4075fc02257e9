"""The faults that can be injected into an application, one module each."""

from pydantic import Field

from onceproof.faults import (
    bounce,
    broker_kill,
    broker_pause,
    disk_full,
    held_rebalance,
    instance_kill,
    leader_election,
    lost_answer,
    partition,
    pause,
    read_only,
    rolling_bounce,
    state_copied,
    state_lost,
    state_restored,
    thread_removed,
    topology_pause,
)
from onceproof.faults.base import Fault
from onceproof.model.entry_points import Registry
from onceproof.model.errors import UsageError
from onceproof.model.parameter import BaseParameters
from onceproof.model.release import Release

_MODULES = (
    pause,
    partition,
    lost_answer,
    broker_kill,
    broker_pause,
    leader_election,
    instance_kill,
    bounce,
    thread_removed,
    topology_pause,
    state_lost,
    state_restored,
    state_copied,
    disk_full,
    read_only,
    rolling_bounce,
    held_rebalance,
)
# Ours, and those of packages that name a module as an entry point of this group (docs/adding-a-fault.md).
FAULTS = Registry("onceproof.faults", "FAULT", Fault, _MODULES)
NONE = "none"
# Those that hit one of several brokers: others can do its work, so under exactly-once every promise still holds.
OF_BROKERS = (broker_kill.FAULT, broker_pause.FAULT, leader_election.FAULT)
# Those that hit the disk of one instance: what cannot be trusted must be restored, so every promise still holds.
OF_DISK = (disk_full.FAULT, read_only.FAULT, state_lost.FAULT, state_restored.FAULT, state_copied.FAULT)
# Those that can be injected into a scenario whose group has several instances.
OF_GROUPS = (
    pause.FAULT,
    partition.FAULT,
    lost_answer.FAULT,
    instance_kill.FAULT,
    bounce.FAULT,
    thread_removed.FAULT,
    topology_pause.FAULT,
    *OF_BROKERS,
    rolling_bounce.FAULT,
)


def fault(name: str) -> Fault:
    """The fault of this name.

    Raises:
        UsageError: there is none.
    """
    try:
        return FAULTS[name]
    except KeyError:
        raise UsageError(f"There is no fault {name!r}; choose from {', '.join(FAULTS)}.") from None


def fault_or_none(name: str) -> Fault | None:
    """The fault of this name; None for `none`.

    Raises:
        UsageError: there is none.
    """
    return None if name == NONE else fault(name)


class Injection(BaseParameters):
    """For a scenario that allows faults: which of them is injected. Its `faults` say what there is to choose from."""

    fault: str = Field(NONE, description="the fault that is injected instead of the scenario's own steps")
    nodes: int = Field(1, ge=1, description="brokers, of a trial that has brokers of its own")

    @property
    def injected(self) -> Fault | None:
        """The fault that is injected, if one is."""
        return fault_or_none(self.fault)


def refuse_fault(streams: Release, values: Injection) -> str | None:
    """Why the fault cannot be injected on this release, or that it needs more brokers; None if neither holds."""
    injected = values.injected
    if injected is None:
        return None
    if injected.since and streams < injected.since:
        return f"the fault {injected.name} needs Kafka Streams {injected.since} or later, and not {streams}."
    if values.nodes < injected.nodes:
        lacks = f"needs {injected.nodes} brokers, and not {values.nodes}"
        return f"the fault {injected.name} {lacks}: add --nodes {injected.nodes}."
    return None
