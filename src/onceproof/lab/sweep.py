"""Removes what a run that was torn away left behind. Only what bears our mark is touched."""

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import psutil

from onceproof.lab.processes import is_kept, marked

STARTING = 60.0  # seconds within which a process that uses new data may be about to start
# Data of brokers (shared by a run, of a trial, of a bisection, of plants), and state of instances.
PLACES = (
    "clusters/*/data-*",
    "trials/*/cluster/data-*",
    "cluster/data-*",
    "planted/clusters/*/data-*",
    "trials/*/state",
    "planted/trials/*/state",
)


def sweep(runs: Path) -> Iterator[str]:
    """Kill processes of these runs that have no keeper, then delete data of brokers and state that nobody uses.

    Yields:
        What was removed, in words.
    """
    in_use = []
    for process, folder in list(marked(runs)):
        if is_kept(process):
            in_use.append(folder)
        else:
            with suppress(psutil.NoSuchProcess):
                process.kill()
            yield f"process {process.pid}"
    for data in chain.from_iterable(runs.glob(f"*/{place}") for place in PLACES):
        young = time.time() - data.stat().st_mtime < STARTING
        if not young and not any(folder.is_relative_to(data.parent) for folder in in_use):
            shutil.rmtree(data, ignore_errors=True)
            yield str(data)
