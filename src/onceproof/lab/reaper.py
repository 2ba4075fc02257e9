"""Reaps one process for its owner: nothing of the lab outlives the process that is responsible for it.

Run as a script: `python reaper.py OWNER_PID COMMAND...`. The command shares the reaper's standard streams. It
is killed when the owner is gone, when the reaper is told to stop (SIGTERM: passed on) and, by the kernel, when
the reaper itself is killed. The reaper ends with the command, with its exit code.

Standard library only, and started without site-packages: it must cost milliseconds.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys

PR_SET_PDEATHSIG = 1  # prctl(2)
CANNOT_START = 127


def _die_with_reaper(reaper: int) -> None:
    """In the child, before exec: ask the kernel for SIGKILL when the reaper dies."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != reaper:  # it died before we asked
        os._exit(CANNOT_START)


def _start(command: list[str]) -> int:
    reaper = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        _die_with_reaper(reaper)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        os.execvp(command[0], command)  # noqa: S606 - an argument list, no shell
    except OSError as error:
        os.write(2, f"{command[0]} could not be started: {error.strerror}\n".encode())
    os._exit(CANNOT_START)


def _send(child_fd: int, number: int) -> None:
    """Signal the child, unless it has ended; its number may be another's by then."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(child_fd, number)


def reap(owner: int, command: list[str]) -> int:
    """Start the command and return its exit code; kill it as soon as the owner is gone."""
    try:
        owner_fd = os.pidfd_open(owner)
    except ProcessLookupError:
        return CANNOT_START
    # Blocked until there is a child to pass it on to: an early SIGTERM is not lost, and does not end the reaper.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    child = _start(command)
    # Our copies of the pipes would keep them open after the child is gone.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)

    child_fd = os.pidfd_open(child)
    signal.signal(signal.SIGTERM, lambda *_: _send(child_fd, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the group; the owner decides what it means
    poll = select.poll()
    poll.register(owner_fd, select.POLLIN)
    poll.register(child_fd, select.POLLIN)
    if owner_fd in {fd for fd, _ in poll.poll()}:
        _send(child_fd, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(reap(int(sys.argv[1]), sys.argv[2:]))
