"""Waiting for a condition: for some time, and only as long as it can still come true."""

import os
import time
from collections.abc import Callable

from onceproof.model.errors import HarnessError, OnceproofError

BUSY = 4  # processes that want a core, for each core


def await_condition(
    what: str,
    condition: Callable[[], object],
    *,
    timeout: float,
    last_seen: Callable[[], str] = lambda: "",
    check: Callable[[], None] = lambda: None,
    late: Callable[[str], OnceproofError] = HarnessError,
    interval: float = 0.02,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until the condition holds.

    `check` raises if waiting has become pointless, for example because a process died.

    Raises:
        HarnessError: it did not hold within `timeout` seconds; says what was seen last. Or what `late` turns that into.
    """
    deadline = clock() + timeout
    while not condition():
        check()
        if clock() > deadline:
            said = (f"Waited {timeout:g} s for {what}, without success.", last_seen(), _busy())
            raise late(" ".join(filter(None, said)))
        sleep(interval)


def _busy() -> str:
    """A hint for people, where the machine had more to do than it can."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    busy = f"The machine was busy (load {load:.0f} on {cores} cores): run less at the same time."
    return busy if load > BUSY * cores else ""


def holds_within(
    seconds: float,
    condition: Callable[[], object],
    check: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Whether a condition becomes true within some time; `check` is that of `await_condition`."""
    deadline = clock() + seconds
    while not condition():
        check()
        if clock() >= deadline:
            return False
        sleep(0.02)
    return True
