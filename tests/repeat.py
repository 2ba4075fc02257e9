"""Which tests fail by chance: repeats them beside other work of the machine: `make test-repeat`.

    python -m tests.repeat [--times 5] [--load 4] [--minutes 90] [--folder FOLDER] -- COMMAND

COMMAND is one of pytest, without `--junitxml`. `--load` is the number of processes that take all the CPU time that they
get. A repetition that takes longer than `--minutes` is interrupted and counts as failed. Prints a table of what failed
how often; exit code 0 if nothing did, else 1.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table

from onceproof.settings import get_settings

MOST_TIMES, MOST_LOAD = 50, 64
GRACE = 120  # seconds in which an interrupted pytest ends what it started
WHOLE = "the whole of it"
# It ends with whoever started it, also if that is killed.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"


@dataclass(frozen=True)
class Failed:
    """A test that failed, and the first line of what it said."""

    test: str
    said: str


def repeat(command: Sequence[str], folder: Path, *, times: int, load: int, minutes: float) -> list[list[Failed]]:
    """Run the command several times; what failed each time.

    Args:
        command: of pytest.
        folder: takes the output and the report of each.
        times: how often, 1 to `MOST_TIMES`.
        load: busy processes beside it, 0 to `MOST_LOAD`.
        minutes: that each may take.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a shell's background; pytest would inherit that
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with busy(load):
        return [_once(command, folder / str(number), minutes) for number in range(1, times + 1)]


@contextmanager
def busy(load: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes that take all the CPU time that they get."""
    with ExitStack() as stack:
        processes = []
        for _ in range(load):
            processes.append(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(processes[-1].wait)
            stack.callback(processes[-1].kill)
        yield processes


def _once(command: Sequence[str], path: Path, minutes: float) -> list[Failed]:
    report, log = path.with_suffix(".xml"), path.with_suffix(".log")
    report.unlink(missing_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, f"--junitxml={report}"], stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        late = False
        try:
            process.wait(60 * minutes)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            _end(process)
    found = failures(report) if report.exists() else []
    if late:
        return [*found, Failed(WHOLE, f"took longer than {minutes:g} minutes; see {log}")]
    if process.returncode and not found:
        return [Failed(WHOLE, f"ended with exit code {process.returncode}; see {log}")]
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt it as Ctrl-C does, and kill what does not end by that."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def failures(report: Path) -> list[Failed]:
    """What failed, in set-up and tear-down too, by a report in JUnit's format."""
    found = []
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - our own
        for fault in (*case.findall("failure"), *case.findall("error")):
            said = (fault.get("message") or fault.text or "").strip().partition("\n")[0]
            found.append(Failed(f"{case.get('classname')}::{case.get('name')}", said))
    return found


def table(repetitions: Sequence[Sequence[Failed]]) -> Table:
    """What failed how often, the most frequent first, with what it said last."""
    often: dict[str, int] = defaultdict(int)
    said: dict[str, str] = {}
    for failed in repetitions:
        said |= {one.test: one.said for one in failed}
        for test in {one.test for one in failed}:
            often[test] += 1
    shown = Table("test", f"failed in {len(repetitions)}", "said")
    for test in sorted(often, key=lambda one: (-often[one], one)):
        shown.add_row(test, str(often[test]), said[test])
    clean = sum(not failed for failed in repetitions)
    shown.caption = f"{clean} of {len(repetitions)} repetitions without a failure"
    return shown


def main(words: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="tests.repeat", description=__doc__)
    parser.add_argument("--times", type=int, default=5, choices=range(1, MOST_TIMES + 1), metavar="TIMES")
    parser.add_argument("--load", type=int, default=4, choices=range(MOST_LOAD + 1), metavar="LOAD")
    parser.add_argument("--minutes", type=float, default=90.0)
    parser.add_argument("--folder", type=Path, default=get_settings().home / "repeat")
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args(words)
    result = repeat(asked.command, asked.folder, times=asked.times, load=asked.load, minutes=asked.minutes)
    Console().print(table(result))
    return int(any(result))


if __name__ == "__main__":
    sys.exit(main())
