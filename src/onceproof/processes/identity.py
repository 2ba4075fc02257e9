"""The identity of a process: its id, when it started, and since when the machine runs, as ids are used again."""

from pathlib import Path

import psutil

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def read_start(pid: int) -> float:
    """When a process started, in seconds since the machine did: it stays the same if the clock is set.

    Raises:
        psutil.NoSuchProcess: it does not run.
    """
    return round(psutil.Process(pid).create_time() - psutil.boot_time(), 2)  # in hundredths, as the kernel counts


def boot_id() -> str:
    """Since when the machine runs, as a name: with each start of it process ids and `read_start` begin again."""
    return BOOT_ID.read_text().strip()


def is_alive(pid: int, started: float, boot: str | None = None) -> bool:
    """Whether the process that started then (`read_start`) runs: not a zombie, nor another one under a reused id.

    `boot` is the `boot_id` of then; None if it is not known.
    """
    if boot is not None and boot != boot_id():
        return False
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and abs(read_start(pid) - started) < 1
    except psutil.NoSuchProcess:
        return False
