"""Locks of folders and files; each ends with the process that holds it, whatever ends that.

They are flocks of ordinary files that are open for writing. NFS passes these on to other machines (flock(2), since
Linux 2.6.12), which it does not for a folder.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onceproof.model.json_file import unwritable

IN_USE = ".in-use"  # in a folder: its driver shares the lock of this file, and a sweep has it alone


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Keep others from sweeping a folder; waits for a sweep that is in progress.

    Marks on processes are no substitute: a user application that is run by its command bears none. The kernel lets go
    of it with the process, which does not pass it on to those that it starts.

    Raises:
        HarnessError: the folder cannot be written.
    """
    try:
        held = _open(folder)
    except OSError as error:
        raise unwritable(error, folder) from error
    try:
        _lock(held, fcntl.LOCK_SH)
        yield
    finally:
        os.close(held)


@contextmanager
def unless_in_use(folder: Path) -> Iterator[bool]:
    """Whether a folder is unused; if so, a driver that comes now waits for the end of the `with` block."""
    try:
        held = _open(folder)
    except OSError:  # it is gone, or not ours to write, so not ours to sweep
        yield False
        return
    try:
        yield _lock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(held)


def _open(folder: Path) -> int:
    return os.open(folder / IN_USE, os.O_RDWR | os.O_CREAT, 0o666)


def _lock(file: int, kind: int) -> bool:
    """Whether the lock could be had: not if another process has it, nor where the file system has no locks."""
    try:
        fcntl.flock(file, kind)
    except OSError:
        return False
    return True
