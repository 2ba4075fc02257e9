"""The state directory of an instance is lost: it is killed, and started again over nothing, as on a new machine.

There is no checkpoint, no store and no process id, so it is another process to the group, and all its stores must come
from their changelogs.
"""

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from onceproof.faults.base import Fault
from onceproof.faults.directory import DirectoryFaultRun, config, describe_content


class StateLost(DirectoryFaultRun):
    """An instance that holds active tasks is started over no state."""

    def apply(self) -> str:
        """Kill an instance that holds active tasks, and remove what it had."""
        victim = self._choose()
        self.lab.instances.kill(victim.name)
        self._lost = describe_content(self._directory(victim.name))
        shutil.rmtree(self._directory(victim.name))
        return victim.name

    def has_taken_effect(self) -> bool:
        """It is gone at once."""
        return True

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """The stores that were lost, and from where they were restored.

        Raises:
            NotUnderstoodError: its log does not say how its stores were initialised.
        """
        proof = {"instance": self._name, "lost": self._lost, **self._afterwards()}
        missing = self._missing_work()
        if self._lost.get("tasks"):
            self._require_logged()
        else:
            missing.append(f"the directory of {self._name} held no task")
        if not proof["from_the_beginning"]:
            missing.append(
                f"{self._name} did not report that it restored stores from the beginning of their changelogs"
            )
        description = (
            f"{self._name} was killed and lost its state of {', '.join(self._lost.get('tasks', ()))}; "
            f"{self._afterwards_text()}"
        )
        return proof, missing, description


FAULT = Fault(
    name="state-lost",
    effect="An instance is killed, and its state directory is lost.",
    undone="It is started again over nothing.",
    needs="it takes stores on disk",
    new_run=StateLost,
    config=config,
    lasts=12.0,
)
