"""An instance is frozen until it is missed, and comes back as a zombie that does not know it.

It is stopped (SIGSTOP) in the middle of a transaction, for longer than its session and its transaction may last. The
group gives its tasks to another instance, and the transaction coordinator aborts what was open. When it wakes (SIGCONT)
it still believes that it owns its tasks, and continues with records that it had fetched: it must be fenced, give its
tasks up, and join again. A pause of the garbage collector or of a virtual machine does the same.

If the transaction timeout is longer than the pause, only the generation of the group stands between the zombie and its
commit. If the session is longer than the pause (`pause.session`), only the transaction coordinator stands there: no
other instance takes the tasks over, and what the instance does when it wakes races with the abort of its transaction.
So the pause can be swept around the transaction's timeout. It need not be fenced then, but must work again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from onceproof.faults.base import (
    AT_REST,
    SESSION,
    WORKS,
    Fault,
    FaultContext,
    FaultRun,
    Instance,
    draw_busy,
    is_at_rest,
    log_lines,
)
from onceproof.faults.takeover import Takeover
from onceproof.model.parameter import BaseParameters, name_parameters
from onceproof.model.phrases import FENCED

LEAST = 0.5  # seconds of a pause
UNSEEN = 0.5  # seconds of a pause that an instance may not notice
PATIENCE = 20.0  # seconds beyond the pause, or beyond the transaction's timeout, that the group is given

NAME = "pause"


class Parameters(BaseParameters):
    """For how long an instance is stopped, until it is missed, and for how long a transaction may be open."""

    model_config = name_parameters(NAME)
    seconds: float = Field(
        7.0, ge=LEAST, description=f"seconds for which the fault `{NAME}` stops an instance, at least"
    )
    session: float = Field(
        SESSION,
        ge=SESSION,
        examples=[30.0],
        description=f"seconds after which a member is missed under the fault `{NAME}`; a shorter pause is not missed",
    )
    transaction_timeout_ms: int = Field(
        4_000, ge=1_000, examples=[60_000], description=f"transaction timeout under the fault `{NAME}`"
    )


def config(values: Mapping[str, Any]) -> dict[str, str]:
    """Timeouts that a pause can outlast."""
    parameters = Parameters.of(values)
    return {
        "main.consumer.session.timeout.ms": str(int(parameters.session * 1_000)),
        "producer.transaction.timeout.ms": str(parameters.transaction_timeout_ms),
    }


class Pause(FaultRun):
    """An instance that holds an active task is frozen."""

    _takeover: Takeover  # from `apply` on

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._parameters = Parameters.of(lab.parameters)
        # An instance that is stopped in the middle of a commit blocks the next owners until its transaction times out.
        self.patience = max(self._parameters.seconds, self._parameters.transaction_timeout_ms / 1_000) + PATIENCE
        self._zombie: Instance | None = None
        self._log_end = 0
        self._before = 0  # records that it had processed when it woke
        self._is_missed = self._parameters.seconds > self._parameters.session
        self._stopped = self._woken = 0.0  # epoch seconds

    def is_ripe(self) -> bool:
        """Whether the group is at rest: in a rebalance an instance may just have given its tasks up cleanly."""
        return is_at_rest(self.lab)

    def apply(self) -> str:
        """Stop an instance drawn from those that hold active tasks, if there is another one."""
        zombie = self._zombie = draw_busy(self.lab, others=1)
        self._takeover = Takeover(self.lab, zombie)
        self._log_end = zombie.log.stat().st_size
        self.lab.instances.freeze(zombie.name)
        self._stopped = self.lab.now()
        return zombie.name

    def has_taken_effect(self) -> bool:
        """Whether it has been frozen for long enough, and, if it is missed, others process all of its tasks."""
        long_enough = self.lab.now() - self._stopped >= self._parameters.seconds
        return (self._takeover.is_complete() or not self._is_missed) and long_enough

    def heal(self) -> None:
        """Wake the zombie, and remember how much it had processed."""
        if self._zombie is not None:
            self._woken, self._before = self.lab.now(), self._zombie.processed
            self.lab.instances.thaw(self._zombie.name)

    def has_recovered(self) -> bool:
        """Whether it learned that it is fenced, and has joined again; if it was not missed, whether it works again."""
        return (self._find_fenced() is not None and self._has_rejoined()) if self._is_missed else self._works_again()

    def _works_again(self) -> bool:
        """Whether it has processed records since, and is at rest: by then it knows if it was fenced."""
        zombie, since = self._zombie, (self.lab.now() - AT_REST) * 1_000
        if zombie is None or zombie.state != "RUNNING" or max(self._woken * 1_000, zombie.last["state"]["t"]) > since:
            return False
        return zombie.processed >= self._before + WORKS

    def _find_fenced(self) -> tuple[int, str] | None:
        """When it reported being fenced, and how; its log is searched from where it was frozen."""
        if self._zombie is None:
            return None
        return next(log_lines(self._zombie.log, self._log_end, FENCED.pattern, round(self._woken * 1_000)), None)

    def _has_rejoined(self) -> bool:
        """Whether it went through a rebalance since, and runs; a member without tasks has joined, too."""
        if self._zombie is None:
            return False
        since = [event for event in self._own_events("state") if event["to"] == "REBALANCING"]
        return bool(since) and self._zombie.state == "RUNNING"

    def _own_events(self, kind: str) -> list[Mapping[str, Any]]:
        name = None if self._zombie is None else self._zombie.name
        since = self._woken * 1_000
        return [e for e in self.lab.events if e["source"] == name and e["event"] == kind and e["t"] >= since]

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """The instance, how long it was frozen by its own account, who took over what, and how it was fenced."""
        name = "" if self._zombie is None else self._zombie.name
        fenced, rejoined, takeover = self._find_fenced(), self._has_rejoined(), self._takeover
        still = max((int(event["ms"]) for event in self._own_events("stall")), default=0)
        proof = {
            "instance": name,
            "stopped_ms": round((self._woken - self._stopped) * 1_000),
            "stood_still_ms": still,
            "tasks": takeover.tasks,
            "taken_over": takeover.by,
            "fenced": None if fenced is None else fenced[1],
            "fenced_after_ms": None if fenced is None else fenced[0] - round(self._woken * 1_000),
            "rejoined": rejoined,
        }
        if not self._is_missed:
            return self._report_within(proof, name, still)
        missing = [
            sentence
            for sentence, is_missing in (
                (
                    f"{name} did not report that it stood still beyond its session",
                    still < self._parameters.session * 1_000,
                ),
                (f"no instance took over {', '.join(takeover.left)} while {name} stood still", bool(takeover.left)),
                (f"{name} did not report that it was fenced when it woke", fenced is None),
                (f"{name} did not join the group again", not rejoined),
            )
            if is_missing
        ]
        description = (
            f"{name} stood still for {still:,} ms, in which others processed {takeover.records:,} records of its tasks "
            f"({', '.join(takeover.tasks)}); it was fenced when it woke, and joined again."
        )
        return proof, missing, description

    def _report_within(
        self, proof: Mapping[str, Any], name: str, still: int
    ) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """The same of a pause within its session."""
        works = self._works_again()
        missing = [
            sentence
            for sentence, is_missing in (
                (f"{name} did not report that it stood still", still < (self._parameters.seconds - UNSEEN) * 1_000),
                (f"{name} did not work again", not works),
            )
            if is_missing
        ]
        timeout = self._parameters.transaction_timeout_ms
        description = (
            f"{name} stood still for {still:,} ms, within its session, where a transaction may take {timeout:,} ms; it "
            f"was {'fenced' if proof['fenced'] else 'not fenced'} when it woke, and works again."
        )
        return {**proof, "works_again": works}, missing, description


FAULT = Fault(
    name=NAME,
    effect="An instance stands still (SIGSTOP), beyond its session and its transaction, or as parameters say.",
    undone="It resumes (SIGCONT), as a zombie.",
    needs="it takes a second instance that takes the tasks over, and transactions to be fenced",
    new_run=Pause,
    parameters=Parameters,
    config=config,
)
