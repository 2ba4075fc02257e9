"""An instance removes its stream threads, and later adds as many (KIP-663): it scales in and out.

A removed thread commits, closes its tasks and leaves the group; the instance lives on without tasks, and keeps what is
on its disk. The tasks go to other instances, as new active ones or by promoted standbys, and some come back to the new
threads. On the way a task that is not active any longer may stay as a standby in a thread that removes it last.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from onceproof.faults.base import WORKS, Fault, FaultContext, FaultRun, Instance, draw_busy, is_at_rest, tasks_come_back
from onceproof.faults.takeover import Takeover


def config(_values: Mapping[str, Any]) -> dict[str, str]:
    """A group that misses a thread soon, on 4.1 where it does not leave, and gives tasks to a new one at once."""
    return tasks_come_back()


class ThreadRemoved(FaultRun):
    """An instance that holds active tasks has no thread for a while."""

    patience = 40.0
    _takeover: Takeover  # from `apply` on

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._instance: Instance | None = None
        self._removed = self._added = 0  # threads
        self._before = 0  # records that the instance had processed when they were added
        self._tasks: list[str] = []  # that they were seen to have

    def is_ripe(self) -> bool:
        """Whether the group is at rest, so that the threads have tasks to lose."""
        return is_at_rest(self.lab)

    def apply(self) -> str:
        """Remove all threads of an instance that holds active tasks, if there is another one."""
        instance = self._instance = draw_busy(self.lab, others=1)
        self._takeover = Takeover(self.lab, instance)
        for _ in list(instance.threads):
            self.lab.instances.step("remove-thread", instance.name)
            self._removed += 1
        return instance.name

    def has_taken_effect(self) -> bool:
        """Whether others have taken over all of its tasks."""
        return self._takeover.is_complete()

    def heal(self) -> None:
        """Nothing yet: threads are added when the driver waits for the recovery, since an instance may refuse them."""

    def has_recovered(self) -> bool:
        """Whether new threads have tasks and process records; the first call adds as many as were removed."""
        instance = self._instance
        if instance is None:
            return False
        if not self._added:
            self._before = instance.processed
            for _ in range(self._removed):
                self.lab.instances.step("add-thread", instance.name)
                self._added += 1
        self._tasks = instance.tasks("active") or self._tasks
        return bool(self._tasks) and self._processed >= WORKS

    @property
    def _processed(self) -> int:
        """Records that the new threads have processed."""
        return 0 if self._instance is None else self._instance.processed - self._before

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """Which tasks the threads had, who took them over, and what the new threads did."""
        name, takeover = "" if self._instance is None else self._instance.name, self._takeover
        proof = {
            "instance": name,
            "threads": self._removed,
            "tasks": takeover.tasks,
            "taken_over": takeover.by,
            "tasks_afterwards": self._tasks,
            "processed_afterwards": self._processed,
        }
        missing = []
        if takeover.left:
            missing.append(f"no instance took over {', '.join(takeover.left)} while {name} had no thread")
        if self._processed < WORKS:
            missing.append(f"the threads that were added to {name} processed fewer than {WORKS} records")
        description = (
            f"{name} had no thread, and others processed {takeover.records:,} records of its tasks "
            f"({', '.join(takeover.tasks)}); then {self._added} added, with {', '.join(self._tasks)}, processed "
            f"{self._processed:,} records."
        )
        return proof, missing, description


FAULT = Fault(
    name="thread-removed",
    effect="An instance removes all its stream threads.",
    undone="It adds as many.",
    needs="it takes a second instance that takes the tasks over",
    new_run=ThreadRemoved,
    config=config,
    lasts=12.0,
)
