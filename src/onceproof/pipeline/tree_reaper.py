"""Runs one command and ends everything that it started, with the command or with its owner.

Run as a script: `python tree_reaper.py OWNER_PID COMMAND...`. Airflow's scheduler forks workers, they fork tasks, and
tasks start JVMs: killing the scheduler alone would leave them. A reaper adopts every orphan below it (a Linux
"child subreaper"), so that it can kill the whole tree when the command has ended or the owner is gone.

There are two, one below the other. If the lower one is killed, the upper one adopts the tree and kills it; if the
upper one is, the lower one does.

Standard library only, and started without site-packages: it must cost milliseconds.
"""

import ctypes
import os
import select
import signal
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # prctl(2)
CANNOT_START = 127
BELOW = "--below"  # the first argument of the lower reaper; the process id of the upper one follows


def main(arguments: list[str]) -> int:
    """Become one of the reapers; returns the exit code of the command, and leaves nothing behind."""
    if arguments[0] == BELOW:
        upper, owner, *command = arguments[1:]
        return _keep([int(upper), int(owner)], command, dies=True)
    lower = [sys.executable, "-I", "-S", __file__, BELOW, str(os.getpid()), *arguments]
    return _keep([int(arguments[0])], lower, dies=False)


def _keep(owners: list[int], command: list[str], *, dies: bool) -> int:
    """Start a command, which `dies` with this process at once or sees to it by itself; kill it without an owner."""
    try:
        owner_fds = {os.pidfd_open(owner) for owner in owners}
    except ProcessLookupError:
        return CANNOT_START
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    child_ended, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner decides what Ctrl-C means
    # A SIGTERM that arrives before we can pass it on has to wait.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    child = _start(command, dies=dies)
    child_fd = os.pidfd_open(child)  # its number may be another's by the time a signal comes
    signal.signal(signal.SIGTERM, lambda *_: _pass_on(child_fd))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    poll = select.poll()
    for owner_fd in owner_fds:
        poll.register(owner_fd, select.POLLIN)
    poll.register(child_ended, select.POLLIN)
    code = None
    while code is None:
        if owner_fds & {fd for fd, _ in poll.poll()}:
            code = 128 + signal.SIGKILL
            break
        with suppress(BlockingIOError):
            os.read(child_ended, 512)
        code = _reap(child)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _kill_all()
    return code


def _pass_on(child_fd: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(child_fd, signal.SIGTERM)


def _start(command: list[str], *, dies: bool) -> int:
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if dies:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        if os.getppid() == parent:
            os.execvp(command[0], command)  # noqa: S606 - an argument list, no shell
    except OSError as error:
        os.write(2, f"{command[0]} could not be started: {error.strerror}\n".encode())
    os._exit(CANNOT_START)


def _reap(child: int) -> int | None:
    """Reap all that ended, adopted orphans too; returns the exit code if the command is among them."""
    code = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
    return code if code is None or code >= 0 else 128 - code


def _kill_all() -> None:
    """Kill all descendants; orphans of the killed become our children, so look until there are none."""
    with suppress(ChildProcessError):
        while True:
            for pid in _descendants(os.getpid()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def _descendants(pid: int) -> list[int]:
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, file.read_text().split()):
                found += [child, *_descendants(child)]
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
