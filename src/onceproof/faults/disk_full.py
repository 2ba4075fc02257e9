"""The disk of an instance is full: files can be created there, and nothing can be written to them.

The kernel refuses each write of the process to a file (RLIMIT_FSIZE, set on the running process), as a full disk does.
That takes no privilege, affects the disk of one instance alone, and ends with the process, even if the lab is
killed. A small file system would say `No space left on device` instead of `File too large`, but needs root, must exist
before the instance does, and stays behind. The log of the instance is a file, too, so what it says meanwhile is known
by its events, which go through a pipe.
"""

from onceproof.faults.base import Fault
from onceproof.faults.directory import WritesRefused, config


class DiskFull(WritesRefused):
    """An instance that holds active tasks can write no file."""

    how = "RLIMIT_FSIZE"

    def _refuse(self) -> None:
        self.lab.instances.limit_files(self._name, 0)

    def _allow(self) -> None:
        if self._name in self.lab.instances.running:
            self.lab.instances.limit_files(self._name, None)


FAULT = Fault(
    name="disk-full",
    effect="An instance can write no file any more, as if its disk were full.",
    undone="It can write again, and is killed and started again over its state directory.",
    needs="it takes stores on disk",
    new_run=DiskFull,
    config=config,
    lasts=12.0,
)
