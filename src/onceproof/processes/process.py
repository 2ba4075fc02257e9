"""Processes that cannot outlive their owner."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from onceproof.model.errors import HarnessError
from onceproof.processes.cpu import CpuTime, cpu_time
from onceproof.processes.environment import without_credentials
from onceproof.processes.identity import boot_id, is_alive, read_start
from onceproof.processes.reaper import TWICE

WIDTH = 300  # of a log's line in an error; the log has the rest
REAPER = Path(__file__).with_name("reaper.py")


@dataclass
class Process:
    """A process below a reaper; `pid` and `started` (`read_start`) are the reaper's, the command's only parent.

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

        Does nothing if it has ended, or if its id belongs to another process by now.
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
        return {str(thread): cpu_time(thread) for thread in threads}

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

    def describe_end(self) -> str:
        """How the command ended, and what its log says last, as the end of a sentence."""
        return f"ended (exit code {self.poll()}); its log {self.log} ends with:\n{tail(self.log)}"

    def terminate(self, timeout: float = 10) -> None:
        """Ask it to stop, and kill it if it has not after `timeout` seconds."""
        if not self.alive():
            return
        self.ask_to_end()
        if not self._await_end(timeout):
            self.kill()
            self._await_end(timeout)

    def _await_end(self, timeout: float) -> bool:
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
                below_reaper(argv, owner or os.getpid()),
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE if piped else out,
                stderr=out,
                env={**without_credentials(user_code=user_code), **(env or {})},
                cwd=folder,
                # Its own session: Ctrl-C reaches us, and we stop what we started in an orderly way.
                start_new_session=True,
                text=True,
                errors="replace",  # a byte that is no UTF-8 would end the thread that listens
            )
    except OSError as error:
        raise HarnessError(f"{argv[0]} could not be started, log {log}: {error.strerror}.") from error
    return Process(popen.pid, read_start(popen.pid), log, popen, boot_id())


def tail(log: Path, lines: int = 5) -> str:
    """The last lines of a log, for error sentences."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            last = file.read().decode(errors="replace").splitlines()[-lines:]
            return "\n".join(line[:WIDTH] for line in last)
    except OSError:
        return "(no log)"


def open_pipes(process: Process) -> tuple[IO[str], IO[str]]:
    """Stdin and stdout of a process that was spawned `piped`."""
    if process.popen is None or process.popen.stdin is None or process.popen.stdout is None:
        raise HarnessError(f"process {process.pid} has no pipes")
    return process.popen.stdin, process.popen.stdout


def below_reaper(command: Sequence[str], owner: int, *, twice: bool = False) -> list[str]:
    """The command line that runs a command for its owner below a reaper, or below two of them (`reaper`)."""
    return [sys.executable, "-I", "-S", str(REAPER), str(owner), *([TWICE] if twice else []), *command]
