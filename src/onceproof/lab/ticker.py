"""Notices that this process got no CPU time: the machine was paused, or is heavily overloaded."""

import threading
import time
from collections.abc import Callable

TICK = 0.1  # seconds
# Seconds without a tick that may affect what Kafka does: heartbeats go out every third of a session, and the shortest
# session of a scenario is 4 s, so after 2 s of nothing no member is missed yet.
MISSED = 2.0


def since_boot() -> float:
    """A monotonic time in seconds that advances while the machine sleeps."""
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
            missed: called with the seconds without a tick.
            clock: a monotonic time in seconds.
            wait: waits for some seconds; whether to stop.
        """
        self._missed, self._clock = missed, clock
        self._stopped = threading.Event()
        self._wait = wait or self._stopped.wait
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop ticking."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        last = self._clock()
        while not self._wait(TICK):
            now = self._clock()
            if now - last - TICK >= MISSED:
                self._missed(now - last)
            last = now
