"""Processes that cannot outlive their owner, and leftovers of those that tried."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from onceproof.lab.environment import without_credentials
from onceproof.model.cell import MARK
from onceproof.model.errors import HarnessError, OnceproofError, StoodStillError

WIDTH = 300  # of a log's line in an error; the log has the rest
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
REAPER = Path(__file__).with_name("reaper.py")


@dataclass(frozen=True)
class CpuTime:
    """Seconds that a thread ran, and that it was ready to run and waited for a CPU."""

    ran: float = 0.0
    waited: float = 0.0

    def is_starved(self, seconds: float) -> bool:
        """Whether it waited for a third of these seconds, and got less than a quarter of what it asked for.

        A thread that spins gets more than that on a machine that is merely busy.
        """
        return 3 * self.waited >= seconds and self.waited > 3 * self.ran


@dataclass
class Process:
    """A process below a reaper; `pid` and `started` (`started_at`) are the reaper's, the command's only parent.

    `boot` is the `boot_id` by which both count; None if an older version of ours wrote them down.
    """

    pid: int
    started: float
    log: Path
    popen: subprocess.Popen[str] | None = None
    boot: str | None = None

    @classmethod
    def attach(cls, pid: int, started: float, log: Path, boot: str | None = None) -> "Process":
        """A process that an earlier process of ours started."""
        return cls(pid, started, log, boot=boot)

    def alive(self) -> bool:
        """Whether it runs; a zombie, or another process under a reused id, does not count."""
        return self.popen.poll() is None if self.popen is not None else is_alive(self.pid, self.started, self.boot)

    def poll(self) -> int | None:
        """Exit code, or None while it runs; -1 if it ended and was not our child."""
        if self.popen is not None:
            return self.popen.poll()
        return None if self.alive() else -1

    def kill(self) -> None:
        """SIGKILL the command and all that it started, as a crash would; the reaper then ends by itself.

        Does nothing if it has ended, or if its id belongs to somebody else by now.
        """
        if not self.alive():
            return
        for process in self._command():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def has_command(self) -> bool:
        """Whether the reaper has started the command, and it has not ended."""
        return bool(self._command())

    def _command(self) -> list[psutil.Process]:
        """The command and all below it: it may be a script that waits for what it started. None if it has ended."""
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def cpu_times(self) -> dict[str, CpuTime]:
        """The CPU time of each thread of the command since it was started; none if it has ended.

        The kernel counts it in `/proc/PID/task/TID/schedstat` (Linux, Documentation/scheduler/sched-stats).
        """
        threads = [
            file for process in self._command() for file in Path(f"/proc/{process.pid}/task").glob("*/schedstat")
        ]
        return {str(thread): _cpu_time(thread) for thread in threads}

    def freeze(self) -> None:
        """SIGSTOP the command: it is frozen, and its connections stay open; does nothing if it has ended."""
        for process in self._command():
            with suppress(psutil.NoSuchProcess):
                process.suspend()

    def thaw(self) -> None:
        """SIGCONT the command; does nothing if it has ended."""
        for process in self._command():
            with suppress(psutil.NoSuchProcess):
                process.resume()

    def limit_files(self, size: int | None) -> None:
        """Keep the command from writing files beyond a size (RLIMIT_FSIZE); None lifts the limit.

        Only the soft limit is changed, so this takes no privilege and can be undone. Does nothing if it has ended.
        """
        for process in self._command():
            with suppress(psutil.NoSuchProcess):
                _, hard = process.rlimit(psutil.RLIMIT_FSIZE)
                process.rlimit(psutil.RLIMIT_FSIZE, (hard if size is None else size, hard))

    def ask_to_end(self) -> None:
        """SIGTERM the command; does nothing if it has ended."""
        if self.alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def terminate(self, timeout: float = 10) -> None:
        """Ask it to stop, and kill it if it has not after `timeout` seconds."""
        if not self.alive():
            return
        self.ask_to_end()
        if not self._ended_within(timeout):
            self.kill()
            self._ended_within(timeout)

    def _ended_within(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True


def spawn(
    argv: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    owner: int | None = None,
    piped: bool = False,
    folder: Path | None = None,
    user_code: bool = False,
) -> Process:
    """Start a command under a reaper; it dies with `owner` (default: this process).

    Output goes to `log`; with `piped`, stdin and stdout are pipes of `process.popen` and only stderr is logged.
    `env` is added to our environment without credentials; of that, user code (`user_code`) sees only what a
    program needs to run. It runs in `folder`, by default in ours.

    Raises:
        HarnessError: the log cannot be written or the process cannot be started.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as out:
            popen = subprocess.Popen(
                [sys.executable, "-I", "-S", str(REAPER), str(owner or os.getpid()), *argv],
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE if piped else out,
                stderr=out,
                env={**without_credentials(user_code=user_code), **(env or {})},
                cwd=folder,
                # Its own session: Ctrl-C reaches us, and we stop what we started in an orderly way.
                start_new_session=True,
                text=True,
            )
    except OSError as error:
        raise HarnessError(f"{argv[0]} could not be started, log {log}: {error.strerror}.") from error
    return Process(popen.pid, started_at(popen.pid), log, popen, boot_id())


def started_at(pid: int) -> float:
    """When a process started, in seconds since the machine did: it stays the same if somebody sets the clock.

    Raises:
        psutil.NoSuchProcess: it does not run.
    """
    return round(psutil.Process(pid).create_time() - psutil.boot_time(), 2)  # in hundredths, as the kernel counts


def boot_id() -> str:
    """Since when the machine runs, as a name: with each start of it process ids and `started_at` begin anew."""
    return BOOT_ID.read_text().strip()


def is_alive(pid: int, started: float, boot: str | None = None) -> bool:
    """Whether the process that started then (`started_at`) runs: not a zombie, nor another one under a reused id.

    `boot` is the `boot_id` of then; None if it is not known.
    """
    if boot is not None and boot != boot_id():
        return False
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and abs(started_at(pid) - started) < 1
    except psutil.NoSuchProcess:
        return False


@contextmanager
def interruptible() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C: once, so that a second one does not interrupt the cleaning up."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(*_: object) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def tail(log: Path, lines: int = 5) -> str:
    """The last lines of a log, for error sentences."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            last = file.read().decode(errors="replace").splitlines()[-lines:]
            return "\n".join(line[:WIDTH] for line in last)
    except OSError:
        return "(no log)"


def _cpu_time(schedstat: Path) -> CpuTime:
    """The CPU time of a thread by the kernel; zero if the thread has ended, or if this kernel does not count."""
    try:
        ran, waited, _ = map(int, schedstat.read_text().split())
    except (OSError, ValueError):
        return CpuTime()
    return CpuTime(ran / 1e9, waited / 1e9)


def check_not_starved(seconds: float, before: Mapping[str, CpuTime], after: Mapping[str, CpuTime]) -> None:
    """Check that a delay of some seconds is the threads' own: they got CPUs, by the CPU times of each before and after.

    Raises:
        StoodStillError: the thread that waited longest for a CPU hardly got one.
    """
    since = {thread: before.get(thread, CpuTime()) for thread in after}
    times = [CpuTime(now.ran - since[t].ran, now.waited - since[t].waited) for t, now in after.items()]
    longest = max(times, key=lambda time: time.waited, default=CpuTime())
    if longest.is_starved(seconds):
        raise StoodStillError(
            f"The machine has too few CPUs for what runs on it: a thread of the trial waited {longest.waited:.0f} s "
            f"for one and ran for {longest.ran:.0f} s, so its delay says nothing about Kafka. Run less beside it."
        )


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
            raise late(f"Waited {timeout:g} s for {what}, without success. {last_seen()}".strip())
        sleep(interval)


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


def marked(folder: Path) -> Iterator[tuple[psutil.Process, Path]]:
    """Our processes that bear a mark below `folder`, with the marked folder, but not their reapers."""
    prefix = f"-D{MARK}.mark="
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if str(REAPER) in command:
            continue
        for word in command:
            place = Path(word.removeprefix(prefix))
            if word.startswith(prefix) and place.is_relative_to(folder):
                yield process, place


def has_reaper(process: psutil.Process) -> bool:
    """Whether a reaper stands above it; the reaper ends it with its owner."""
    try:
        parent = process.parent()
        return parent is not None and str(REAPER) in parent.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def open_pipes(process: Process) -> tuple[IO[str], IO[str]]:
    """Stdin and stdout of a process that was spawned `piped`."""
    if process.popen is None or process.popen.stdin is None or process.popen.stdout is None:
        raise HarnessError(f"process {process.pid} has no pipes")
    return process.popen.stdin, process.popen.stdout
