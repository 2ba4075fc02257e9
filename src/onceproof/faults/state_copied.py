"""An instance gets the state directory of another one, as when a volume is cloned.

The copy is taken while the other runs, as that of a disk would be (it is frozen meanwhile, SIGSTOP), or after it has
closed cleanly. Then the instance is killed, its directory is replaced by the copy, and it is started again.

A task that was active in the other when the copy was taken has no checkpoint under exactly-once, so its stores must be
wiped; a task that was closed cleanly has one and is trusted.

With the directory comes the id of the other's process, from which the transactional ids of a process are derived. So
both instances fence each other again and again, and make hardly any progress, until the operator removes the id
(`kafka-streams-process-metadata`) from the copy. Whatever they do until then, nothing may be lost or come twice.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from onceproof.faults.base import Fault, FaultContext, log_lines
from onceproof.faults.directory import PROCESS_FILE, DirectoryFaultRun, config
from onceproof.model.parameter import BaseParameters, name_parameters
from onceproof.model.phrases import FENCED

NAME = "state-copied"


class Parameters(BaseParameters):
    """Where the copy comes from."""

    model_config = name_parameters(NAME)
    source: Literal["running", "closed"] = Field(
        "running", description=f"the instance of which `{NAME}` takes the copy"
    )


class StateCopied(DirectoryFaultRun):
    """An instance is started over the state directory of another one."""

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._source = Parameters.of(lab.parameters).source
        self._other = ""
        self._log_end = 0  # of the other's log, when the instance was started

    def apply(self) -> str:
        """Copy the directory of another instance, and start one that holds active tasks over it."""
        victim = self._choose(others=1)
        self._other = self.lab.rng.choice(sorted(self.lab.instances.running.keys() - {victim.name}))
        if self._source == "closed":
            self.lab.instances.stop(self._other, leave_group=True)
            self._copy(self._other)
            self.lab.instances.start(self._other, self.lab.trial.cell.running)
        else:
            self._snapshot(self._other)
        self._log_end = self.lab.instances.running[self._other].log.stat().st_size
        self._kill_and_put_copy()
        return f"from {self._other} to {victim.name}"

    def has_taken_effect(self) -> bool:
        """Whether the instance has looked at what it found, and one of the two was fenced."""
        return self._has_judged() and bool(self._count_fenced())

    def _count_fenced(self) -> dict[str, int]:
        """How often each of the two has reported being fenced since they share an id."""
        other = self.lab.instances.running.get(self._other)
        logs = [(self._name, self._over, 0), (self._other, other, self._log_end)]
        found = {
            name: sum(1 for _ in log_lines(instance.log, since, FENCED.pattern))
            for name, instance, since in logs
            if instance is not None
        }
        return {name: count for name, count in found.items() if count}

    def has_recovered(self) -> bool:
        """Whether the instance works again with an id of its own; the first call gives it one."""
        if self._again is self._over:
            self.lab.instances.kill(self._name)
            (self._directory(self._name) / PROCESS_FILE).unlink()
            self._start_again()
        return self._works_again()

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """The content of the directory before and after, what the instance did with it, and who was fenced."""
        fenced = self._count_fenced()
        proof = {
            "instance": self._name,
            "of": self._other,
            "source": self._source,
            "lost": self._lost,
            "fenced": fenced,
            **self._afterwards(),
        }
        missing = [*self._missing_judgement(), *self._missing_work()]
        if proof["process"] != self._held["process"]:
            missing.append(f"{self._name} did not report that it has the id of {self._other}, and so its directory")
        if not fenced:
            missing.append(f"neither {self._name} nor {self._other} reported that it was fenced by the other")
        description = (
            f"{self._name} was killed and got the state of {self._other} ({proof['source']}) and the id of its "
            f"process, so that {' and '.join(sorted(fenced))} were fenced; {self._afterwards_text()}"
        )
        return proof, missing, description


FAULT = Fault(
    name=NAME,
    effect="An instance gets a copy of the state directory of another one.",
    undone="It continues with the copy, with an id of its own.",
    needs="it takes two instances, and stores on disk",
    new_run=StateCopied,
    parameters=Parameters,
    config=config,
    lasts=12.0,
)
