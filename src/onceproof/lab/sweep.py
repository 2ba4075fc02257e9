"""Removes what a run that was torn away left behind. Only what bears our mark is touched."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil

from onceproof.lab.processes import leftovers


def sweep(runs: Path) -> Iterator[str]:
    """Kill processes without an owner, then delete brokers' data and instances' state that nobody uses.

    Yields:
        What was removed, in words.
    """
    for process in leftovers():
        yield f"process {process.pid}"
        process.kill()
    in_use = _marked_folders()
    for data in [
        *runs.glob("*/clusters/*/data-*"),
        *runs.glob("*/trials/*/cluster/data-*"),
        *runs.glob("*/trials/*/state"),
    ]:
        if not any(data.is_relative_to(folder) or folder.is_relative_to(data.parent) for folder in in_use):
            shutil.rmtree(data, ignore_errors=True)
            yield str(data)


def _marked_folders() -> list[Path]:
    """Folders that running processes of ours bear as their mark."""
    prefix = "-Donceproof.mark="
    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return [Path(word.removeprefix(prefix)) for command in commands for word in command if word.startswith(prefix)]
