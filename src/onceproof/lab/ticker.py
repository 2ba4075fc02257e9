"""Notices that this process was not given any time: a machine that was paused, or has far too much to do."""

import threading
import time
from collections.abc import Callable

TICK = 0.1  # seconds
# Seconds without a tick that may be seen in what Kafka does: heartbeats go out each third of a session, and the
# shortest session of a scenario has 4 s, so after 2 s of nothing no member is missed yet.
MISSED = 2.0


def since_boot() -> float:
    """A monotonic time in seconds that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Ticker:
    """Ticks in the background until it is stopped."""

    def __init__(
        self,
        missed: Callable[[float], None],
        clock: Callable[[], float] = since_boot,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        """Start ticking.

        Args:
            missed: called with the seconds for which there was no tick.
            clock: a monotonic time in seconds.
            wait: waits for some seconds; whether to stop.
        """
        self._missed, self._clock = missed, clock
        self._stopped = threading.Event()
        self._wait = wait or self._stopped.wait
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Tick no more."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        last = self._clock()
        while not self._wait(TICK):
            now = self._clock()
            if now - last - TICK >= MISSED:
                self._missed(now - last)
            last = now
