"""SIGTERM as Ctrl-C."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C would, so that `finally` clauses run.

    When somebody marks a task failed, Airflow sends SIGTERM, calls `on_kill` and, 5 s later, kills.
    """

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
