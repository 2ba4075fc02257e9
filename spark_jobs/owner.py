"""Spark ends with the task that wants its tables, else it would write on together with the Spark of a resumed run."""

import os
import select
import signal
from contextlib import suppress
from threading import Thread

KILLED = 128 + signal.SIGKILL


def end_with(owner: int) -> None:
    """Kill the JVM above this driver, and the driver, as soon as a process is gone; at once, if it is."""
    jvm = os.getppid()
    try:
        fd = os.pidfd_open(owner)
    except ProcessLookupError:
        _end(jvm)
    Thread(target=_watch, args=(fd, jvm), daemon=True).start()


def _watch(fd: int, jvm: int) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.poll()
    _end(jvm)


def _end(jvm: int) -> None:
    if os.getppid() == jvm:  # else it is gone, too
        with suppress(ProcessLookupError):
            os.kill(jvm, signal.SIGKILL)
    os._exit(KILLED)
