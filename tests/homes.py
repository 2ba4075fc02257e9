"""A home of Onceproof, and the processes that its commands have started."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import psutil
from sqlalchemy import select
from sqlalchemy.orm import Session

from onceproof.model.files import Outcome
from onceproof.processes.orphans import is_reaper, is_reaper_of_tree
from onceproof.processes.waiting import holds_within
from onceproof.results.database import CellRow, database, is_missing
from tests.specimens.postgresql import PostgreSQL

ONCEPROOF = [sys.executable, "-m", "onceproof.cli"]
GONE_WITHIN = 10.0
SHARED = Path("/dev/shm")  # noqa: S108 - where libfaketime shares what it knows
SHOWN = 120  # characters of a sentence or a command
Answer = TypeVar("Answer")


def ask_living(ask: Callable[[psutil.Process], Answer], processes: Iterable[psutil.Process]) -> list[Answer]:
    """The answers of the processes that still run: each may end between two lines of a test."""
    answers = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            answers.append(ask(process))
    return answers


def has_ended(process: psutil.Process) -> bool:
    """Whether it does not run any more, be it that its parent has not yet read how it ended."""
    return not process.is_running() or ask_living(psutil.Process.status, [process]) in ([], [psutil.STATUS_ZOMBIE])


@dataclass(frozen=True)
class Tree:
    """What a command has started, at one moment."""

    command: psutil.Process
    below: Mapping[psutil.Process, Sequence[str]]  # with its words

    @classmethod
    def of(cls, command: psutil.Process) -> "Tree":
        """All that is there now."""
        below = {}
        with suppress(psutil.NoSuchProcess):
            for process in command.children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    below[process] = process.cmdline()
        return cls(command, below)

    def running(self, *words: str) -> list[psutil.Process]:
        """Those whose command has all these words, but not their reapers."""
        return [
            process
            for process, arguments in self.below.items()
            if not is_reaper(arguments) and all(any(word in one for one in arguments) for word in words)
        ]

    def reapers(self, component: str) -> list[psutil.Process]:
        """The two above a component of Airflow."""
        return [reaper for reaper in self._reapers() if component in self.below[reaper]]

    def _reapers(self) -> list[psutil.Process]:
        return [process for process, words in self.below.items() if is_reaper_of_tree(words)]

    def component(self, component: str) -> list[psutil.Process]:
        """It itself: the first process below its lower reaper, which may have adopted others."""
        above = ask_living(lambda reaper: (reaper, reaper.ppid()), self.reapers(component))
        lower = [reaper for reaper, parent in above if parent != self.command.pid]
        below = ask_living(psutil.Process.children, lower)
        return [min(children, key=psutil.Process.create_time) for children in below if children]

    def adopted(self) -> list[psutil.Process]:
        """The processes that reapers have taken in, as those that started them are gone, and that have no owner."""
        found = []
        for children in ask_living(psutil.Process.children, self._reapers()):
            others = sorted(children, key=psutil.Process.create_time)[1:]
            commands = ask_living(lambda process: (process, process.cmdline()), others)
            found += [process for process, command in commands if not is_reaper(command)]
        return found

    def tasks(self) -> list[psutil.Process]:
        """Airflow's tasks: each is the child of a worker of the scheduler."""
        workers = chain.from_iterable(ask_living(psutil.Process.children, self.component("scheduler")))
        return list(chain.from_iterable(ask_living(psutil.Process.children, workers)))

    def drivers(self) -> list[psutil.Process]:
        """The tasks above an instance and its reaper."""
        instances = self.running("onceproof.streams.Main")
        above = {process.pid for parents in ask_living(psutil.Process.parents, instances) for process in parents}
        return [task for task in self.tasks() if task.pid in above]


@dataclass(frozen=True)
class Home:
    """A home of Onceproof, which several runs have one after the other."""

    path: Path
    output: Path  # folder of what commands say, elsewhere: the disk of the home may be full
    environment: Mapping[str, str]
    server: PostgreSQL | None = None

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command."""
        forget_dead_clocks()
        return subprocess.Popen(
            [*ONCEPROOF, "run", "--json", *arguments],
            env={**os.environ, "ONCEPROOF_HOME": str(self.path), **self.environment},
            stdout=(self.output / "stdout").open("w"),
            stderr=(self.output / "stderr").open("w"),
            start_new_session=True,
            text=True,
        )

    def said(self) -> dict[str, Any]:
        """What the last command told; nothing if it was killed."""
        try:
            answer: dict[str, Any] = json.loads((self.output / "stdout").read_text())
        except ValueError:
            return {}
        return answer

    def processes(self) -> list[psutil.Process]:
        """All that was started for this home and runs: it inherits the environment."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if process.environ().get("ONCEPROOF_HOME") == str(self.path):
                    found.append(process)
        return found

    def stored(self) -> dict[str, str]:
        """What the results database holds: run and cell, and its verdict."""
        url = self.environment.get("ONCEPROOF_DATABASE_URL", f"sqlite:///{self.path}/results.db")
        if is_missing(url):
            return {}
        with database(url) as engine, Session(engine) as session:
            rows = session.execute(select(CellRow.run_id, CellRow.variant, CellRow.verdict))
            return {f"{run} {variant}": verdict for run, variant, verdict in rows}

    def not_stored(self) -> list[str]:
        """What the last command told, and the results database does not hold."""
        output, stored = self.said(), self.stored()
        verdicts = {f"{output['run']} {one['variant']}": one["verdict"] for one in output.get("verdicts", ())}
        return [name for name, verdict in verdicts.items() if stored.get(name) != verdict]

    def finished(self) -> dict[str, str]:
        """Digests of the outcomes of trials that say something."""
        found = {}
        for file in self.path.glob("runs/*/trials/*/outcome.json"):
            if (outcome := Outcome.read_known(file)) and outcome.says_something:
                found[str(file)] = hashlib.sha256(file.read_bytes()).hexdigest()
        return found


def forget_dead_clocks() -> None:
    """Delete what killed processes shared through libfaketime: it refuses to start another one of the same number."""
    for file in [*SHARED.glob("faketime_shm_*"), *SHARED.glob("sem.faketime_sem_*")]:
        if not psutil.pid_exists(int(file.name.rpartition("_")[2])):
            file.unlink(missing_ok=True)


def described(process: psutil.Process) -> str:
    """The end of its command."""
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())[-SHOWN:]
    return "(gone)"


def left_after(home: Home) -> list[str]:
    """What still runs 10 s after the command has ended; it is ended, so that the next run is not disturbed."""
    if holds_within(GONE_WITHIN, lambda: not home.processes()):
        return []
    left = home.processes()
    reported = list(map(described, left))
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return reported
