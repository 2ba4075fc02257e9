"""A rebalance is held up by a member that does not answer, while another one continues to process its tasks.

An instance is stopped (SIGSTOP), well within its session, and a new one joins. The group waits for the one that is
stopped, and no member may commit meanwhile. Those that still have their tasks continue to process, until their
transaction times out and the coordinator aborts it. Nothing that they did since may stay: neither in output, nor in
stores, nor may their input be deleted (KAFKA-17635: records of repartition topics were purged up to where they had been
read).

A pause of the garbage collector during a deployment does the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from onceproof.faults.base import WORKS, Fault, FaultContext, FaultRun, Instance, draw_busy, is_at_rest, log_lines
from onceproof.model.parameter import BaseParameters, name_parameters
from onceproof.model.phrases import FENCED

NAME = "held-rebalance"
SESSION = 120.0  # seconds after which a member is missed: longer than the rebalance is held up
TRANSACTION = 4.0  # seconds after which a transaction is aborted
PURGE = 0.1  # seconds between two purges of repartition topics
PATIENCE = 60.0  # seconds beyond the time for which it is held up, for the new instance to ask to join, too


class Parameters(BaseParameters):
    """For how long a rebalance is held up."""

    model_config = name_parameters(NAME)
    seconds: float = Field(
        10.0, ge=TRANSACTION + 1, description=f"seconds for which the fault `{NAME}` holds a rebalance up, at least"
    )


def config(_: Mapping[str, Any]) -> dict[str, str]:
    """A rebalance that outlasts a transaction, within a session."""
    return {
        "main.consumer.session.timeout.ms": str(int(SESSION * 1_000)),
        "producer.transaction.timeout.ms": str(int(TRANSACTION * 1_000)),
        "repartition.purge.interval.ms": str(int(PURGE * 1_000)),
    }


class HeldRebalance(FaultRun):
    """An instance is frozen, and another one joins."""

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._seconds = Parameters.of(lab.parameters).seconds
        self.patience = self._seconds + PATIENCE
        self._frozen: Instance | None = None
        self._joined: Instance | None = None
        self._others: list[Instance] = []
        self._ends: dict[str, int] = {}  # of logs, when it began
        self._before = 0
        self._thawed = 0.0  # epoch seconds

    def is_ripe(self) -> bool:
        """Whether the group is at rest, so that the rebalance is that of the instance that joins."""
        return is_at_rest(self.lab)

    def apply(self) -> str:
        """Freeze an instance drawn from those that hold active tasks, and have another one join."""
        frozen = self._frozen = draw_busy(self.lab, others=1)
        running = self.lab.instances.running
        self._others = [instance for name, instance in running.items() if name != frozen.name]
        self._ends = {instance.name: instance.log.stat().st_size for instance in self._others}
        self.lab.instances.freeze(frozen.name)
        name = next(free for number in range(1, 99) if (free := f"instance-{number}") not in running)
        self._joined = self.lab.instances.start(name, self.lab.trial.cell.running)
        self._before = self._count_processed()
        return frozen.name

    def _count_processed(self) -> int:
        return sum(instance.processed for instance in self._others)

    def has_taken_effect(self) -> bool:
        """Whether the rebalance has been held up for long enough, and an instance that continued was fenced."""
        asked = self._time_state("REBALANCING")
        long_enough = asked is not None and self.lab.now() - asked >= self._seconds
        return long_enough and bool(self._find_fenced())

    def heal(self) -> None:
        """Thaw it; the one that joined stays."""
        if self._frozen is not None:
            self._thawed = self.lab.now()
            self.lab.instances.thaw(self._frozen.name)

    def has_recovered(self) -> bool:
        """Whether the new one has joined, and the group has settled."""
        return self._time_state("RUNNING") is not None and is_at_rest(self.lab)

    def _time_state(self, state: str) -> float | None:
        """When the new instance was in a state for the first time, in epoch seconds."""
        name = None if self._joined is None else self._joined.name
        states = (e for e in self.lab.events if e["source"] == name and e["event"] == "state")
        return next((e["t"] / 1_000 for e in states if e["to"] == state), None)

    def _find_fenced(self) -> dict[str, str]:
        """Those of the others that reported being fenced since, and how."""
        found = {}
        for instance in self._others:
            if line := next(log_lines(instance.log, self._ends[instance.name], FENCED.pattern), None):
                found[instance.name] = line[1]
        return found

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """The instances, for how long the rebalance was held up, and what others processed meanwhile and since."""
        frozen, joined = ("" if instance is None else instance.name for instance in (self._frozen, self._joined))
        joined_at, fenced, processed = (
            self._time_state("RUNNING"),
            self._find_fenced(),
            self._count_processed() - self._before,
        )
        held = round(((joined_at or self._thawed) - (self._time_state("REBALANCING") or self._thawed)) * 1_000)
        proof = {
            "instance": frozen,
            "joined": joined,
            "held_ms": held,
            "processed": processed,
            "fenced": fenced,
        }
        missing = [
            sentence
            for sentence, is_missing in (
                (
                    f"{joined} was RUNNING while {frozen} stood still",
                    joined_at is not None and joined_at < self._thawed,
                ),
                (f"{joined} did not join after {frozen} resumed", joined_at is None),
                (f"others processed fewer than {WORKS} records since {joined} joined", processed < WORKS),
                ("none of the others was fenced, so no transaction was aborted", not fenced),
            )
            if is_missing
        ]
        description = (
            f"{frozen} stood still, so that {joined} waited {held:,} ms for its tasks; meanwhile "
            f"{', '.join(fenced)} continued and was fenced."
        )
        return proof, missing, description


FAULT = Fault(
    name=NAME,
    effect="An instance stands still (SIGSTOP) within its session, and another one joins: the rebalance waits for it.",
    undone="It resumes (SIGCONT), and the rebalance ends.",
    needs="it takes a second instance that continues to process meanwhile, and transactions to be fenced",
    new_run=HeldRebalance,
    parameters=Parameters,
    config=config,
    lasts=25.0,
)
