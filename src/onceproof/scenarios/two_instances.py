"""Two instances; a fault is injected into one while records flow. For scenarios that have no group of their own."""

from collections.abc import Sequence

from onceproof.faults.base import Fault, is_at_rest, run_fault
from onceproof.model.cell import Cell
from onceproof.model.files import FaultOutcome
from onceproof.scenarios.base import (
    Bulk,
    Exercise,
    Group,
    Guarantee,
    ScenarioContext,
    refuse_membership,
    refuse_restarts,
    refuse_rolling,
    rolls,
    runs_its_task,
)

OTHER = "instance-2"
RATE = 1_500.0  # records/s until the fault is over
WITHIN = 30.0  # seconds
LASTS = 15.0  # seconds for which records flow that an instance must join meanwhile


def refuse_at_least_once(fault: Fault | None, guarantee: Guarantee) -> str | None:
    """Refuses a fault without transactions, under which a store may be ahead of the output."""
    if fault is None or guarantee != "at_least_once":
        return None
    return (
        f"the fault {fault.name} does not go with guarantee=at_least_once, under which what was not committed is "
        "processed again, so that a store may be ahead of its input; leave out one of them."
    )


def refuse_group(cell: Cell, parameters: Group, *, on_disk: bool = True) -> str | None:
    """Refuses a membership that the releases lack, and an application that moves to another release otherwise than
    instance by instance.
    """
    moving = refuse_rolling(cell, parameters, on_disk=on_disk) if rolls(parameters) else refuse_restarts(cell)
    return refuse_membership(cell, parameters) or moving


def start_other(lab: ScenarioContext) -> None:
    """Start a second instance and wait until the group is at rest; of a single task one of them has none."""
    lab.instances.start(OTHER)
    lab.await_("both instances to be at rest", lambda: is_at_rest(lab))


def inject(
    lab: ScenarioContext,
    fault: Fault,
    name: str,
    records: Sequence[tuple[int, int]],
    timestamps: Sequence[int] | None = None,
    rate: float = RATE,
    after: int = 0,
) -> FaultOutcome:
    """Inject the fault while these records flow, then drain.

    Args:
        lab: the world of the trial.
        fault: to inject.
        name: of the records.
        records: that flow.
        timestamps: of them, in epoch milliseconds; if none are given, each is that of its sending.
        rate: records a second.
        after: how many of them are committed before, if that takes no longer than `WITHIN`.
    """
    with lab.phase("fault"):
        enough = lab.count_committed() + after
        bulk = lab.produce(name, records, rate, timestamps)
        lab.holds_within(WITHIN, lambda: lab.count_committed() >= enough)
        fault_outcome = run_fault(fault, lab, lambda: bulk.make_last(fault.lasts))
    drain(lab, bulk)
    return fault_outcome


def drain(lab: ScenarioContext, bulk: Bulk) -> None:
    """Send the rest of the records at full speed, and wait until all is processed, in repartition topics, too."""
    with lab.phase("drain"):
        bulk.full_speed()
        lab.await_drained()
        lab.await_internal_drained()


def join_in(lab: ScenarioContext, name: str, records: Sequence[tuple[int, int]], rate: float = RATE) -> Exercise:
    """Have a second instance join and take tasks over while these records flow, then drain."""
    with lab.phase("rebalance"):
        begin = lab.count_committed()
        bulk = lab.produce(name, records, rate)
        lab.holds_within(WITHIN, lambda: lab.count_committed() > begin)
        bulk.make_last(LASTS)
        other = lab.instances.start(OTHER)
        took = lab.holds_within(LASTS, lambda: runs_its_task(other)) and not bulk.is_done()
        tasks = ", ".join(other.tasks("active"))
    drain(lab, bulk)
    summary = f"took over {tasks} while records flowed" if took else "took no task over while records flowed"
    return Exercise(took, f"{OTHER} joined and {summary}.", all_steps_tried=took)
