"""The state directory of an instance becomes read-only: nothing can be created, renamed or removed in it.

The permissions of its directories are taken away. They do not bind root; for root the directories are made immutable
(`chattr +i`). Where neither keeps us from creating a file, the fault does not take effect, and says why. Files that are
open stay so: RocksDB is refused when it begins the next one, Kafka Streams when it writes or removes a checkpoint. A
read-only mount would do the same, but needs root, and stays behind if the lab is killed.
"""

import fcntl
import os
import struct
from contextlib import suppress
from pathlib import Path

from onceproof.faults.base import Fault, FaultContext, NoTargetError
from onceproof.faults.directory import WritesRefused, config

WRITABLE = 0o222
GET_FLAGS, SET_FLAGS, IMMUTABLE = 0x80086601, 0x40086602, 0x10  # ioctl_iflags(2)


class Seal:
    """Keeps everybody from creating, renaming or removing anything in a directory and those below it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._modes: dict[Path, int] = {}
        self._immutable: list[Path] = []

    def close(self) -> str:
        """Do it; returns how.

        Raises:
            OSError: there is no way.
        """
        directories = [Path(path) for path, _, _ in os.walk(self._directory)]
        for path in directories:
            self._modes[path] = path.stat().st_mode
            path.chmod(self._modes[path] & ~WRITABLE)
        if not self._lets_create():
            return "permissions"
        for path in directories:
            _set_immutable(path, immutable=True)
            self._immutable.append(path)
        if self._lets_create():
            raise PermissionError("neither permissions nor the immutable flag bind this user")
        return "immutable flag"

    def _lets_create(self) -> bool:
        probe = self._directory / "probe"
        try:
            probe.touch(exist_ok=False)
            probe.unlink()
        except OSError:
            return False
        return True

    def open(self) -> None:
        """Make all directories writable again, those that are gone by now left out."""
        while self._immutable:
            with suppress(FileNotFoundError):
                _set_immutable(self._immutable.pop(), immutable=False)
        while self._modes:
            path, mode = self._modes.popitem()
            with suppress(FileNotFoundError):
                path.chmod(mode)


def _set_immutable(path: Path, *, immutable: bool) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        (flags,) = struct.unpack("i", fcntl.ioctl(file, GET_FLAGS, bytes(4)))
        fcntl.ioctl(file, SET_FLAGS, struct.pack("i", flags | IMMUTABLE if immutable else flags & ~IMMUTABLE))
    finally:
        os.close(file)


class ReadOnly(WritesRefused):
    """The state directory of an instance that holds active tasks becomes read-only."""

    how = ""

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._seal: Seal | None = None

    def _refuse(self) -> None:
        self._seal = Seal(self._directory(self._name))
        try:
            self.how = self._seal.close()
        except OSError as error:
            raise NoTargetError(
                f"{self._directory(self._name)} cannot be made read-only ({error}): run as a user, whom permissions "
                "bind, or let root have CAP_LINUX_IMMUTABLE on a file system that knows the flag"
            ) from error

    def _allow(self) -> None:
        if self._seal is not None:
            self._seal.open()


FAULT = Fault(
    name="read-only",
    effect="The state directory of an instance becomes read-only.",
    undone="It can be written again, and the instance is killed and started again over it.",
    needs="it takes stores on disk",
    new_run=ReadOnly,
    config=config,
    lasts=12.0,
)
