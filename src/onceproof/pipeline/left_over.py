"""What an Airflow left running whose supervisor is gone, recognised by the environment that all of it inherits."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from onceproof.lab.processes import is_alive
from onceproof.pipeline.environment import OWNER, OWNER_STARTED

ROUNDS = 5  # of killing: what is killed may have started others meanwhile


def end_left_over(home: Path) -> list[str]:
    """Kill what runs for a home without an owner; returns what was removed, in words."""
    removed = []
    for _ in range(ROUNDS):
        if not (found := list(_left_over(home))):
            break
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.kill()
                removed.append(f"process {process.pid}")
        psutil.wait_procs(found, timeout=1)
    return removed


def _left_over(home: Path) -> Iterator[psutil.Process]:
    """Never ourselves, nor what has started us."""
    me = psutil.Process()
    for process in set(psutil.process_iter()) - {me, *me.parents()}:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            told = process.environ()
            ours = told.get("ONCEPROOF_HOME") == str(home) and OWNER_STARTED in told
            if ours and not is_alive(int(told[OWNER]), float(told[OWNER_STARTED])):
                yield process
