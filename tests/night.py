"""All that takes long and is proven every night, step by step: `make test-night`.

    python -m tests.night [STEP]... [--list]

Called again, it goes on where it was: a step that passed with the code as it is now is not repeated, a run that was cut
short is resumed, and what failed is tried anew. Prints a table; exit code 0 if all steps have passed, else 1. What
became of each step is added to `nights.jsonl` in the home, which the page shows under *Sensitivity*.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from onceproof.model.errors import ExitCode
from onceproof.model.json_file import read_json, write_json
from onceproof.model.published import NEWEST
from onceproof.results.nights import NightStep, note_step
from onceproof.settings import get_settings
from tests.docker.inputs import PASSED
from tests.net import RECORD
from tests.tools import left_out, unavailable

ROOT = Path(__file__).parents[1]
PYTEST = (sys.executable, "-m", "pytest", "--durations=15")
ONCEPROOF = (sys.executable, "-m", "onceproof.cli")
INTERRUPTED = 130
RESULT, HOME = "step.json", "home"


@dataclass(frozen=True)
class Step:
    """A command, which passes if it returns 0."""

    name: str
    proves: str
    command: Callable[[Path], Sequence[str]]  # by the folder
    resumed: Sequence[str] = ()  # the command that goes on with a run that was cut short
    own_home: bool = False  # of Onceproof
    needs: str | None = None  # a tool of `tests.tools`


def _always(*words: str) -> Callable[[Path], Sequence[str]]:
    return lambda _folder: words


def _run(matrix: str, proves: str) -> Step:
    begin, resume = ((*ONCEPROOF, "run", *words) for words in (("--matrix", matrix), ("--resume", "last")))
    return Step(matrix, proves, _always(*begin), resume, own_home=True)


STEPS = (
    Step(
        "tests",
        "the tests that are marked `night`: whole runs under fire and on given brokers, and each scenario on both sides",
        _always(*PYTEST, "-n", "2", "--no-loadscope-reorder", "-m", "night and not docker"),
    ),
    Step(
        "containers",
        "the deployment: built, up, killed, with workers and a Spark cluster, down",
        _always(*PYTEST, "-m", "docker", "tests/docker"),
        needs="docker",
    ),
    _run("known", "each known issue is red where it is and green where it is not, by both readers"),
    Step(
        "planted",
        f"bugs that are planted into {NEWEST} are found as declared",
        _always(*ONCEPROOF, "check", "sensitivity", "--streams", NEWEST),
        own_home=True,
    ),
    Step(
        "chaos",
        "a run whose parts are killed, frozen or cut off loses nothing and leaves nothing",
        lambda folder: (
            *(sys.executable, str(ROOT / "benchmarks" / "chaos.py"), "--runs", "10"),
            *("--results", str(folder / "chaos.jsonl"), "--keep", str(folder / "failed")),
        ),
    ),
    Step(
        "mutants",
        "tests fail if the code of verdicts is altered: nine of ten mutants of each group are killed",
        lambda folder: (sys.executable, "-m", "tests.mutants", "--survivors", "--sessions", str(folder / "sessions")),
    ),
    _run("brokers", "each variant and release meets each line of brokers"),
)


def version_of(project: Path) -> str:
    """Which code this is: the commit, and a digest of what was changed since."""

    def git(*words: str) -> bytes:
        return subprocess.run(
            [shutil.which("git") or "git", *words], cwd=project, capture_output=True, check=True
        ).stdout

    but = ("--", ".", *(f":!{file.relative_to(ROOT)}" for file in (PASSED, RECORD)))  # which steps write
    added = git("ls-files", "-z", "--others", "--exclude-standard", *but).decode().split("\0")
    changed = git("diff", "HEAD", *but) + b"".join((project / name).read_bytes() for name in added if name)
    commit = git("rev-parse", "--short=12", "HEAD").decode().strip()
    return commit + (f"-{hashlib.sha256(changed).hexdigest()[:8]}" if changed else "")


class Night:
    """Steps with the folder of this version's results."""

    def __init__(self, steps: Sequence[Step], folder: Path, record: Path) -> None:
        self._steps = steps
        self._folder = folder
        self._record = record

    def run(self, wanted: Sequence[str], console: Console) -> int:
        """Run the steps that are wanted and have not passed; returns an exit code."""
        for step in self._steps:
            if step.name in wanted and self._code(step) != 0 and not self._why_not(step):
                console.print(f"{step.name}: {step.proves} …")
                if self._carry_out(step) == INTERRUPTED:
                    return INTERRUPTED
        asked = [step for step in self._steps if step.name in wanted and not self._why_not(step)]
        return 0 if all(self._code(step) == 0 for step in asked) else 1

    def table(self) -> Table:
        """What became of each step."""
        table = Table("step", "result", "seconds", "log", title=f"The night of {self._folder.name}")
        for step in self._steps:
            reported = self._result(step)
            seconds = f"{reported['seconds']:,.0f}" if "seconds" in reported else ""
            log = self._folder / step.name / "log"
            table.add_row(step.name, self._said(step), seconds, str(log) if log.exists() else "")
        return table

    def _said(self, step: Step) -> str:
        if reason := self._why_not(step):
            return reason
        if not (reported := self._result(step)):
            return "not yet"
        code = reported.get("code")
        return "cut short" if code is None else "passed" if code == 0 else f"failed (exit code {code})"

    def _why_not(self, step: Step) -> str | None:
        return unavailable(step.needs) if step.needs in left_out() else None

    def _carry_out(self, step: Step) -> int:
        folder = self._folder / step.name
        folder.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ)
        if step.own_home:
            environment["ONCEPROOF_HOME"] = str(_home(folder))
        was_cut_short = self._result(step).get("begun") and self._code(step) is None
        write_json(folder / RESULT, {"begun": True})
        begin, code = time.monotonic(), None
        if step.resumed and was_cut_short:
            code = _ended(step.resumed, folder, environment)
        if code in (None, ExitCode.USAGE):  # there is nothing to resume
            code = _ended(step.command(folder), folder, environment)
        if code != INTERRUPTED:
            seconds, ended = round(time.monotonic() - begin), datetime.now(UTC).isoformat(timespec="seconds")
            write_json(folder / RESULT, {"code": code, "seconds": seconds})
            note_step(self._record, NightStep(self._folder.name, step.name, step.proves, ended, code, seconds))
        return code

    def _code(self, step: Step) -> int | None:
        return self._result(step).get("code")

    def _result(self, step: Step) -> dict[str, Any]:
        file = self._folder / step.name / RESULT
        return dict(read_json(file)) if file.exists() else {}


def _home(folder: Path) -> Path:
    """A home in a folder, with what is already resolved."""
    home = folder / HOME
    home.mkdir(exist_ok=True)
    if not (home / "artifacts").is_symlink():
        (home / "artifacts").symlink_to(get_settings().artifacts.resolve())
    return home


def _ended(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> int:
    """The exit code of a command, whose output goes to a log."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            return process.wait()
        except KeyboardInterrupt:  # it got the signal, too
            process.wait()
            return INTERRUPTED


def main() -> int:
    """Run what is asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [step.name for step in STEPS]
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"only these of {', '.join(names)}")
    parser.add_argument("--list", action="store_true", help="only print what became of the steps")
    asked = parser.parse_args()
    if unknown := set(asked.steps) - set(names):
        parser.error(f"there is no step {', '.join(sorted(unknown))}: there are {', '.join(names)}.")
    settings, console = get_settings(), Console()
    night = Night(STEPS, settings.home / "night" / version_of(ROOT), settings.nights)
    code = 0 if asked.list else night.run(asked.steps or names, console)
    console.print(night.table())
    return code


if __name__ == "__main__":
    sys.exit(main())
