"""Whether a trial is being driven: its driver locks its folder, and the lock ends with the driver.

Marks on processes are no substitute: a user application that is run by its command bears none.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Keep others from sweeping a folder; waits for one who is at it.

    The kernel lets go of it with the process, which does not pass it on to those that it starts.
    """
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_SH)
        yield
    finally:
        os.close(held)


@contextmanager
def unless_in_use(folder: Path) -> Iterator[bool]:
    """Whether a folder is unused; if so, a driver that comes now waits for the end of the `with` block."""
    try:
        held = os.open(folder, os.O_RDONLY)
    except OSError:  # it is gone, or not ours to read, so not ours to sweep
        yield False
        return
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(held)
