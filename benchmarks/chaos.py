"""The pipeline under fire: in each run of a small matrix something is killed or frozen, the disk full, the clock set.

    .venv/bin/python benchmarks/chaos.py [--runs N] [--seed S] [--only VICTIM]... [--results FILE] [--keep FOLDER]

The matrix has a cell that must be red and one that must not. It first runs undisturbed, which shows how long each
victim is there. From the seed follow victim, blow and moment, so `--runs 1 --seed S` repeats the run of that seed (with
the same `--only`). A run that has ended before the moment comes is repeated, as it has shown how long runs take now. A
run that the blow ended without verdicts, with an error, or before they were stored is resumed, or, if it had not begun,
run again. Prints a row for each run, and a summary; one failed, and so does the benchmark, if

- a process was there 10 s after it had lost its owner, or after the command had ended;
- a verdict is another than undisturbed: `error` and `inconclusive` may be, but `error` not after a resumption;
- something is lost: a verdict of the database, or one that did not get there, or a finished trial of a resumed run;
- a command did not end, or ended without verdicts and could not be resumed;
- the moment never came.

With a file of results, what each run showed is appended to it, and the undisturbed run; called again, it continues with
the seeds that are not in it or failed, and sums up all of it, failures included.

Needs PostgreSQL for `postgresql`, root for `disk` (a tmpfs as home), Debian's package `faketime` and a C compiler for
`clock`.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from operator import methodcaller
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from onceproof.model.errors import ExitCode
from onceproof.model.verdict import Verdict
from onceproof.pipeline.supervisor import COMPONENTS
from onceproof.processes.orphans import is_reaper
from onceproof.processes.process import REAPER
from onceproof.settings import get_settings
from tests.homes import GONE_WITHIN, SHOWN, Home, Tree, described, left_after
from tests.specimens.postgresql import INITDB, postgresql

# The shortest trials there are. The control is DEFAULT_CONFIG.
MATRIX = ["--streams", "4.3.1", "--scenario", "at-least-once", "--variant", "DEFAULT_CONFIG"]
MATRIX += ["--variant", "EXACTLY_ONCE"]
ENDS_WITHIN = 900.0  # a command, on a machine that others use
FULL_FOR = 60.0  # the disk, unless the command ends before
HOUR = 3_600
# libfaketime 0.9.10 refuses Python's clock_nanosleep if the monotonic clock is left alone. What Airflow starts keeps
# the machine's clock: JVMs ask so often that libfaketime makes them many times slower.
CUSTOM = """import os, select, sys, time
time.sleep = lambda seconds: select.select([], [], [], seconds) and None
if "airflow" in sys.orig_argv:
    os.environ.pop("LD_PRELOAD", None)
"""
LOOK_EVERY = 0.2
TRIES = 3  # to inject the blow before the run has ended
NOTHING_TO_RESUME = "There is no interrupted run"
SAYS_NOTHING = {Verdict.ERROR, Verdict.INCONCLUSIVE}
HEAD = (
    "| run | seed | victim | blow | s after it was there | what happened | resumed | verdicts | orphans | s |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)
SUMMARY = (
    "| victim | blow | runs | ended by themselves | resumed | run again | orphans | failed | s (median) |\n"
    "|---|---|---|---|---|---|---|---|---|"
)

Verdicts = Mapping[str, str]  # by cell


VICTIMS: Mapping[str, Callable[[Tree], list[psutil.Process]]] = {
    "command": lambda tree: [tree.command],
    "reaper": lambda tree: tree.reapers("scheduler"),
    **{name: methodcaller("component", name) for name in COMPONENTS},
    "task": Tree.tasks,
    "driver": Tree.drivers,
    "spark": lambda tree: tree.running("org.apache.spark.deploy.SparkSubmit", "java"),
    "broker": lambda tree: tree.running("kafka.Kafka"),
    "instance": lambda tree: tree.running("onceproof.streams.Main"),
}
POSTGRESQL, DISK, CLOCK = "postgresql", "disk", "clock"
PLACES = (POSTGRESQL, DISK, CLOCK)  # what the others work with, each in a home of its own
KILL, STOP = "SIGKILL", "SIGSTOP"
BLOWS = [
    *((victim, blow) for victim in (*VICTIMS, POSTGRESQL) for blow in (KILL, STOP)),
    (DISK, "full"),
    (CLOCK, "+1 h"),
]


@dataclass
class Struck:
    """What became of a run."""

    victim: str
    blow: str
    moment: float | None = None  # seconds after the victim was first there; None: it was not, at that moment or later
    happened: str = "ran on"
    resumed: str = "no"
    verdicts: Verdicts = field(default_factory=dict)
    orphans: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def row(self, number: int, seed: int) -> str:
        """A row of the table."""
        moment = "too late" if self.moment is None else f"{self.moment:.1f}"
        text = ", ".join(f"{cell} {verdict}" for cell, verdict in sorted(self.verdicts.items())) or "none"
        happened = "; ".join([self.happened, *(f"**{sentence}**" for sentence in self.wrong)]).replace("|", "/")
        cells = [self.victim, self.blow, moment, happened, self.resumed, text, len(self.orphans), f"{self.seconds:.0f}"]
        return "".join(f"| {cell} " for cell in (number, seed, *cells)) + "|"


def differing(verdicts: Verdicts, undisturbed: Verdicts, *, resumed: bool) -> Iterator[str]:
    """What is wrong: a verdict that says something and is another; after a resumption one that is missing, too."""
    for cell in sorted({*verdicts, *undisturbed}):
        verdict, right = verdicts.get(cell), undisturbed.get(cell)
        if verdict is None or verdict == Verdict.ERROR:
            if resumed:
                yield f"{cell} is {verdict or 'missing'} although it was resumed"
        elif verdict != right and verdict not in SAYS_NOTHING:
            yield f"{cell} is {verdict}, undisturbed {right}"


def find_lost(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """What was stored, and is gone or another."""
    for name, verdict in before.items():
        if after.get(name) != verdict:
            yield f"{name} was {verdict} and is {after.get(name, 'gone')}"


def has_no_owner(words: Sequence[str], exists: Callable[[int], bool] = psutil.pid_exists) -> bool:
    """Whether a command is a reaper whose owner is gone."""
    return is_reaper(words) and not exists(int(words[words.index(str(REAPER)) + 1]))


def draw(seed: int, blows: Sequence[tuple[str, str]]) -> tuple[str, str, random.Random]:
    """Victim and blow of a seed, evenly over all, and what the rest is drawn from."""
    return *blows[seed % len(blows)], random.Random(f"chaos {seed}")


class Fire:
    """Deals one blow while a command runs, within the `lifetime` of its victim since that was there."""

    def __init__(self, home: Home, struck: Struck, rng: random.Random, lifetime: float) -> None:
        self._home, self._struck, self._rng = home, struck, rng
        self._delay = rng.uniform(0, lifetime)
        self._frozen_for = rng.uniform(2, 20)
        self._first: float | None = None
        self._at: float | None = None
        self._undo: Callable[[], None] | None = None
        self._strays: dict[psutil.Process, float] = {}  # since when
        self._next_look = 0.0
        self.orphans: dict[psutil.Process, str] = {}  # strays of 10 s, with the end of their commands

    def look(self, process: subprocess.Popen[str]) -> None:
        """FaultRun if the moment has come; later undo it, and look for orphans."""
        now = time.monotonic()
        if self._at is None:
            self._await_moment(now, process)
            return
        if self._undo and now > self._at + (FULL_FOR if self._struck.victim == DISK else self._frozen_for):
            self.undo()
        if now > self._next_look:
            self._next_look = now + 1
            self._strays = {stray: self._strays.get(stray, now) for stray in strays(self._home, _of(process))}
            self.orphans |= {
                stray: described(stray) for stray, since in self._strays.items() if now > since + GONE_WITHIN
            }

    def undo(self) -> None:
        """Thaw what is frozen, start what has to be up, empty the disk."""
        if self._undo:
            self._undo()
        self._undo = None

    def _await_moment(self, now: float, process: subprocess.Popen[str]) -> None:
        with suppress(psutil.NoSuchProcess):
            here = [] if self._struck.victim in PLACES else VICTIMS[self._struck.victim](Tree.of(_of(process)))
            if not here and self._struck.victim not in PLACES:
                return
            self._first = self._first or now
            if now < self._first + self._delay:
                return
            self._undo = self._strike(sorted(here, key=psutil.Process.create_time))
            self._struck.moment = now - self._first
            self._at = now

    def _strike(self, here: Sequence[psutil.Process]) -> Callable[[], None] | None:
        home, blow = self._home, self._struck.blow
        if self._struck.victim == DISK:
            return _fill_disk(home.path / "ballast")
        if self._struck.victim == CLOCK:
            offset = Path(home.environment["FAKETIME_TIMESTAMP_FILE"])
            offset.write_text(f"+{int(offset.read_text()) + HOUR}\n")
            return None
        if self._struck.victim == POSTGRESQL:
            assert home.server is not None
            if blow == KILL:
                home.server.process.kill()
                return home.server.start
            home.server.process.freeze()
            return home.server.process.thaw
        victim = self._rng.choice(here)
        victim.send_signal(signal.Signals[blow])
        return None if blow == KILL else lambda: _thaw(victim)


def strays(home: Home, command: psutil.Process) -> Iterator[psutil.Process]:
    """What runs for a home and does not belong to the command any longer, or to a task that is gone."""
    there = home.processes()
    tree = Tree.of(command)
    adopted: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        adopted = tree.adopted()
    for process in there:
        with suppress(psutil.NoSuchProcess):
            is_left = process in adopted or has_no_owner(process.cmdline())
            if is_left or (process != command and process not in tree.below):
                yield process


def _of(process: subprocess.Popen[str]) -> psutil.Process:
    return psutil.Process(process.pid)


def _thaw(victim: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        victim.resume()


def _fill_disk(ballast: Path) -> Callable[[], None]:
    """Fill the disk; returns how to empty it."""
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(ballast.parent).free)
        while file.write(bytes(4096)):
            pass
    return lambda: ballast.unlink(missing_ok=True)


def await_end(process: subprocess.Popen[str], look: Callable[[], None]) -> bool:
    """Wait until a command has ended; one that does not is killed. Returns whether it did."""
    deadline = time.monotonic() + ENDS_WITHIN
    while process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            return False
        look()
        time.sleep(LOOK_EVERY)
    return True


def run_once(
    home: Home,
    victim: str,
    blow: str,
    rng: random.Random,
    lifetime: float,
    undisturbed: Verdicts,
) -> Struck:
    """Run the matrix, deal the blow, resume what was interrupted, and compare."""
    struck, begin, stored = Struck(victim, blow), time.monotonic(), home.stored()
    fire, process = Fire(home, struck, rng, lifetime), home.start(*MATRIX)
    ended = await_end(process, lambda: fire.look(process))
    fire.undo()
    struck.orphans += [*fire.orphans.values(), *left_after(home)]
    struck.happened, struck.verdicts = _take_in(struck, home, process.returncode, ended)
    struck.wrong += differing(struck.verdicts, undisturbed, resumed=False)
    failed = any(struck.verdicts.get(cell, Verdict.ERROR) == Verdict.ERROR for cell in undisturbed)
    if failed or home.not_stored():
        _resume(struck, home, undisturbed)
    struck.wrong += [f"{name} is not stored" for name in home.not_stored()]
    struck.wrong += find_lost(stored, home.stored())
    if struck.orphans:
        struck.wrong.append(f"left: {'; '.join(struck.orphans)}")
    struck.seconds = time.monotonic() - begin
    return struck


def _resume(struck: Struck, home: Home, undisturbed: Verdicts) -> None:
    """Resume the run, or run again if it had not begun."""
    finished = home.finished()
    happened, verdicts = _again(struck, home, "--resume", "last")
    if NOTHING_TO_RESUME not in happened:
        struck.resumed = "yes"
        struck.wrong += find_lost(finished, home.finished())
    else:
        struck.resumed = "anew"
        if struck.verdicts:
            struck.wrong.append("ended with an error or without storing its verdicts, and cannot be resumed")
        happened, verdicts = _again(struck, home, *MATRIX)
    if not verdicts:
        struck.happened += f", then {happened}"
    struck.verdicts = verdicts
    struck.wrong += differing(verdicts, undisturbed, resumed=True)


def _again(struck: Struck, home: Home, *arguments: str) -> tuple[str, Verdicts]:
    process = home.start(*arguments)
    ended = await_end(process, lambda: None)
    struck.orphans += left_after(home)
    return _take_in(struck, home, process.returncode, ended)


def _take_in(struck: Struck, home: Home, code: int, ended: bool) -> tuple[str, Verdicts]:
    """What a command said, and its verdicts."""
    if not ended:
        struck.wrong.append(f"did not end within {ENDS_WITHIN:g} s")
    elif code not in {*ExitCode, -signal.SIGKILL}:
        struck.wrong.append(f"exit code {code}")
    text = home.said()
    said = next(filter(None, [text.get("error"), *text.get("failures", ())]), "").partition("\n")[0]
    verdicts = {verdict["variant"]: verdict["verdict"] for verdict in text.get("verdicts", ())}
    return f"exit {code}" + (f": {said[:SHOWN]}" if said else ""), verdicts


@dataclass(frozen=True)
class Undisturbed:
    """A run without a blow: its verdicts, for how many seconds each victim is there, and how long it takes."""

    verdicts: Verdicts
    lifetimes: Mapping[str, float]
    seconds: float


def run_undisturbed(home: Home) -> Undisturbed:
    """Run the matrix, and look at the victims."""
    begin, process, seen = time.monotonic(), home.start(*MATRIX), dict[str, tuple[float, float]]()

    def look() -> None:
        tree, now = Tree.of(_of(process)), time.monotonic()
        for name, here in VICTIMS.items():
            with suppress(psutil.NoSuchProcess):
                if here(tree):
                    seen[name] = (seen.get(name, (now,))[0], now)

    await_end(process, look)
    text, seconds = home.said(), time.monotonic() - begin
    verdicts = {cell["variant"]: cell["verdict"] for cell in text.get("verdicts", ())}
    if not verdicts or SAYS_NOTHING & {*verdicts.values()}:
        sys.exit(f"The undisturbed run has no verdicts: {text}\n{(home.output / 'stderr').read_text()[-1000:]}")
    lifetimes = {name: last - first for name, (first, last) in seen.items()} | dict.fromkeys(PLACES, seconds)
    return Undisturbed(verdicts, lifetimes, seconds)


def until_struck(
    home: Home,
    seed: int,
    blows: Sequence[tuple[str, str]],
    undisturbed: Undisturbed,
    run: Callable[..., Struck] = run_once,
    pace: float = 1.0,
) -> Iterator[Struck]:
    """Runs of a seed, until the moment comes in time; each shows how long runs take now, as `pace` does before."""
    for tries_left in reversed(range(TRIES)):
        victim, blow, rng = draw(seed, blows)
        lifetime = undisturbed.lifetimes.get(victim, undisturbed.seconds) * pace
        struck = run(home, victim, blow, rng, lifetime, undisturbed.verdicts)
        if struck.moment is None and not tries_left:
            struck.wrong.append("the moment never came")
        yield struck
        if struck.wrong or struck.moment is not None:
            return
        pace = struck.seconds / undisturbed.seconds


class Results:
    """What runs showed, in a file to which it is appended, if there is one; a line of JSON each."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._undisturbed: Undisturbed | None = None
        self.rows: list[tuple[int, Struck]] = []  # with their seeds
        for line in file.read_text().splitlines() if file and file.exists() else ():
            row = json.loads(line)
            seed = row.pop("seed", None)
            if seed is None:
                self._undisturbed = Undisturbed(**row)
            else:
                self.rows.append((seed, Struck(**row)))

    def get_undisturbed(self, run: Callable[[], Undisturbed]) -> Undisturbed:
        """That run, which is made if it is not known."""
        if self._undisturbed is None:
            self._undisturbed = run()
            self._append(asdict(self._undisturbed))
        return self._undisturbed

    def add(self, seed: int, struck: Struck) -> None:
        """What became of a run of a seed."""
        self.rows.append((seed, struck))
        self._append({"seed": seed, **asdict(struck)})

    def has_passed(self, seed: int, victim: str, blow: str) -> bool:
        """Whether the last run of a seed did."""
        of_seed = [struck for known, struck in self.rows if (known, struck.victim, struck.blow) == (seed, victim, blow)]
        return bool(of_seed) and of_seed[-1].moment is not None and not of_seed[-1].wrong

    def pace(self, undisturbed: Undisturbed) -> float:
        """How long a run takes now, by the last one that ended by itself, compared with the undisturbed one."""
        whole = [struck.seconds for _, struck in self.rows if struck.resumed == "no" and not struck.wrong]
        return whole[-1] / undisturbed.seconds if whole else 1.0

    def summary(self) -> Iterator[str]:
        """Rows by victim and blow, of the runs whose moment came or which failed."""
        groups: dict[tuple[str, str], list[Struck]] = defaultdict(list)
        for _, struck in self.rows:
            if struck.moment is not None or struck.wrong:
                groups[struck.victim, struck.blow].append(struck)
        everything = [struck for runs in groups.values() for struck in runs]
        for (victim, blow), runs in [*groups.items(), (("all", ""), everything)]:
            how = Counter(struck.resumed for struck in runs)
            orphans, failed = sum(len(struck.orphans) for struck in runs), sum(bool(struck.wrong) for struck in runs)
            seconds = f"{median(struck.seconds for struck in runs):.0f}" if runs else "-"
            cells = [victim, blow, len(runs), how["no"], how["yes"], how["anew"], orphans, failed, seconds]
            yield "".join(f"| {cell} " for cell in cells) + "|"

    def _append(self, row: Mapping[str, Any]) -> None:
        if self._file:
            with self._file.open("a") as out:
                out.write(json.dumps(row) + "\n")


def faketime() -> Path | None:
    """The library of Debian's package, found by its command."""
    command = shutil.which("faketime")
    found = sorted(Path(command).parents[1].glob("lib/*/faketime/libfaketimeMT.so.1")) if command else []
    return found[0] if found else None


def compile_libfaketime(folder: Path) -> Path:
    """What libfaketime lacks for librdkafka."""
    library = folder / "cnd_timedwait.so"
    source = Path(__file__).with_name("cnd_timedwait.c")
    subprocess.run([shutil.which("cc") or "cc", "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    return library


def why_not(victim: str) -> str | None:
    """Why a victim is left out; None if it is not."""
    if victim == POSTGRESQL and not INITDB:
        return "there is no PostgreSQL in /usr/lib/postgresql: apt-get install postgresql"
    if victim == DISK and os.geteuid() != 0:
        return "only root may mount a tmpfs: run it as root, or with --only for another victim"
    if victim == CLOCK and faketime() is None:
        return "there is no `faketime` on the PATH: apt-get install faketime"
    if victim == CLOCK and not shutil.which("cc"):
        return "there is no C compiler `cc` on the PATH: apt-get install gcc libc6-dev"
    return None


@contextmanager
def home_for(victim: str) -> Iterator[Home]:
    """An empty home with the artifacts that are there, and what the victim needs."""
    with ExitStack() as stack:
        path, outputs = (
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"onceproof-chaos-{name}-")))
            for name in ("home", "output")
        )
        environment: dict[str, str] = {}
        server = None
        if victim == DISK:
            subprocess.run(
                [shutil.which("mount") or "mount", "-t", "tmpfs", "-o", "size=3g,mode=0700", "tmpfs", path], check=True
            )
            stack.callback(lambda: subprocess.run([shutil.which("umount") or "umount", "--lazy", path], check=True))
        if victim == CLOCK:
            offset = outputs / "offset"
            offset.write_text("+0\n")
            (outputs / "sitecustomize.py").write_text(CUSTOM)
            environment = {
                "LD_PRELOAD": f"{compile_libfaketime(outputs)}:{faketime()}",
                "FAKETIME_TIMESTAMP_FILE": str(offset),
                "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "PYTHONPATH": os.pathsep.join(filter(None, [str(outputs), os.environ.get("PYTHONPATH")])),
            }
        if victim == POSTGRESQL:
            server = stack.enter_context(postgresql())
            for name in ("airflow", "results"):
                server.create(name)
            airflow = {f"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN{way}": server.url("airflow") for way in ("", "_ASYNC")}
            environment = {"ONCEPROOF_DATABASE_URL": server.url("results"), **airflow}
        (path / "artifacts").symlink_to(get_settings().artifacts)
        yield Home(path, outputs, environment, server)


def keep(home: Home, folder: Path) -> None:
    """Copy what commands, Airflow and Spark said."""
    shutil.copytree(home.output, folder / "output", dirs_exist_ok=True)
    shutil.copytree(home.path / "airflow" / "logs", folder / "logs", dirs_exist_ok=True)


def main() -> None:
    """FaultRun, and print what became of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the first run; each has the next one")
    parser.add_argument("--only", action="append", choices=[*VICTIMS, *PLACES], metavar="VICTIM")
    parser.add_argument("--results", type=Path, metavar="FILE", help="to append to, and to continue from")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="of logs of failed runs, by seed")
    asked = parser.parse_args()
    left_out = {victim: reason for victim in asked.only or [*VICTIMS, *PLACES] if (reason := why_not(victim))}
    for victim, reason in left_out.items():
        print(f"{victim} is left out: {reason}.", flush=True)
    blows = [(v, blow) for v, blow in BLOWS if v in (asked.only or [v]) and v not in left_out]
    if not blows:
        sys.exit(ExitCode.USAGE)
    results, failed = Results(asked.results), False
    with ExitStack() as stack:
        plain = stack.enter_context(home_for("command"))
        homes: dict[str, Home] = {}
        undisturbed = results.get_undisturbed(lambda: run_undisturbed(plain))
        text = ", ".join(f"{cell} {verdict}" for cell, verdict in sorted(undisturbed.verdicts.items()))
        print(f"Undisturbed, in {undisturbed.seconds:.0f} s: {text}.\n\n{HEAD}", flush=True)
        for number, seed in enumerate(range(asked.seed, asked.seed + asked.runs), 1):
            victim, blow, _ = draw(seed, blows)
            if results.has_passed(seed, victim, blow):
                continue
            if victim in PLACES and victim not in homes:
                homes[victim] = stack.enter_context(home_for(victim))
            home = homes.get(victim, plain)
            for struck in until_struck(home, seed, blows, undisturbed, pace=results.pace(undisturbed)):
                results.add(seed, struck)
                print(struck.row(number, seed), flush=True)
            if struck.wrong:
                failed = True
                if asked.keep:
                    keep(home, asked.keep / str(seed))
    print("", SUMMARY, *results.summary(), sep="\n", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
