"""The instances that take over the tasks of one that is away."""

from typing import Any

from onceproof.faults.base import FaultContext, Instance


class Takeover:
    """The tasks that an instance has when it goes away, and what the others do with them until it is back."""

    def __init__(self, lab: FaultContext, instance: Instance) -> None:
        """It is about to go."""
        self.tasks = instance.tasks("active")
        self.by: dict[str, dict[str, Any]] = {}  # task -> which other took it over (`by`), and how many `records`
        self._others = [other for name, other in lab.instances.running.items() if name != instance.name]
        self._before: dict[tuple[str, str], int] = {}  # (task, other) -> records when it was first seen to have it

    def is_complete(self) -> bool:
        """Whether others were seen to process all of its tasks; looks at what they report now."""
        for task in self.tasks:
            for other in self._others:
                if task in other.tasks("active"):
                    records = _count_processed(other, task)
                    if records > (before := self._before.setdefault((task, other.name), records)):
                        self.by[task] = {"by": other.name, "records": records - before}
        return not self.left

    @property
    def left(self) -> list[str]:
        """The tasks that no instance was seen to take over."""
        return sorted(set(self.tasks) - self.by.keys())

    @property
    def records(self) -> int:
        """Records of these tasks that others were seen to process."""
        return sum(taken["records"] for taken in self.by.values())


def _count_processed(instance: Instance, task: str) -> int:
    """Records of a task that an instance has processed; of all its tasks, if it does not count them one by one."""
    rows = instance.last.get("progress", {}).get("processed", [])
    return sum(row["count"] for row in rows if row["task"] in (task, "all"))
