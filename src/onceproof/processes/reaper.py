"""Reaps one process for its owner: nothing of ours outlives the process that is responsible for it.

Run as a script: `python reaper.py OWNER_PID COMMAND...`. The command shares the reaper's standard streams. It
is killed when the owner is gone, when the reaper is to stop (SIGTERM: passed on) and, by the kernel, when
the reaper itself is killed. The reaper ends with the command, with its exit code.

The command may be a script that waits for what it started, which it does not take along when it is killed. The reaper
adopts every orphan below it (a Linux "child subreaper") and kills what is left when the command has ended.

A tree, as Airflow's scheduler with its workers, their tasks and the JVMs of these, would outlive a reaper that is
killed. So there are two above it, one below the other (`python reaper.py OWNER_PID --twice COMMAND...`). If the lower
one is killed, the upper one adopts the tree and kills it; if the upper one is, the lower one does.

Standard library only, and started without site-packages: it must cost milliseconds.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # prctl(2)
CANNOT_START = 127
TWICE = "--twice"
BELOW = "--below"  # of the lower reaper; the process id of the upper one follows


def main(owner: str, *arguments: str) -> int:
    """Become a reaper, or the upper or the lower of two; returns the exit code, and leaves nothing behind."""
    match arguments:
        case (str(kind), *command) if kind == TWICE:
            lower = [sys.executable, "-I", "-S", __file__, owner, BELOW, str(os.getpid()), *command]
            return reap([int(owner)], lower, is_reaper=True)
        case (str(kind), upper, *command) if kind == BELOW:
            return reap([int(upper), int(owner)], command)
    return reap([int(owner)], [*arguments])


def reap(owners: list[int], command: list[str], *, is_reaper: bool = False) -> int:
    """Start the command and return its exit code; kill it, and all below it, as soon as one of its owners is gone.

    A command that is a reaper (`is_reaper`) notices by itself that this process is gone, and ends its tree then.
    """
    try:
        owner_fds = {os.pidfd_open(owner) for owner in owners}
    except ProcessLookupError:
        return CANNOT_START
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    # Blocked until there is a child to pass it on to: an early SIGTERM is not lost, and does not end the reaper.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    child = _start(command, is_reaper=is_reaper)
    # Our copies of the pipes would keep them open after the child is gone.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)

    child_fd = os.pidfd_open(child)
    signal.signal(signal.SIGTERM, lambda *_: _send(child_fd, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGCHLD, lambda *_: _bury_adopted(child))
    _bury_adopted(child)  # those that were quicker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the group; the owner decides what it means
    poll = select.poll()
    for fd in (*owner_fds, child_fd):
        poll.register(fd, select.POLLIN)
    if owner_fds & {fd for fd, _ in poll.poll()}:
        _send(child_fd, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # else one that comes while Python ends would become the exit code
    _kill_all()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _start(command: list[str], *, is_reaper: bool) -> int:
    reaper = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        if not is_reaper:  # it dies with us, and SIGTERM waits no longer
            ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.pthread_sigmask(signal.SIG_SETMASK, set())
        if os.getppid() == reaper:  # it has not died before we asked
            os.execvp(command[0], command)  # noqa: S606 - an argument list, no shell
    except OSError as error:
        os.write(2, f"{command[0]} could not be started: {error.strerror}\n".encode())
    os._exit(CANNOT_START)


def _send(child_fd: int, number: int) -> None:
    """Signal the child, unless it has ended; its number may be another's by then."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(child_fd, number)


def _bury_adopted(child: int) -> None:
    """Reap the orphans that have ended, until it is the child's turn."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and ended.si_pid != child:
            os.waitpid(ended.si_pid, 0)


def _kill_all() -> None:
    """Kill all descendants; orphans of the killed become our children, so look until there are none."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in _descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def _descendants(pid: int) -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - pathlib takes longer to load than all else
            with open(f"/proc/{pid}/task/{thread}/children") as file:  # noqa: PTH123 - likewise
                for child in map(int, file.read().split()):
                    found += [child, *_descendants(child)]
    return found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
