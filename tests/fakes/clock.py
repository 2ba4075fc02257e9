"""Time that passes only when somebody waits."""

from collections.abc import Callable

TICK = 0.1  # seconds: what happens in between happens at once


class FakeClock:
    """Epoch seconds. Listeners are told of each step of time, and so let their world go on."""

    def __init__(self) -> None:
        """Start in November 2026."""
        self._now = 1_795_000_000.0
        self.listeners: list[Callable[[float], None]] = []

    def now(self) -> float:
        """The time."""
        return self._now

    def milliseconds(self) -> int:
        """The time, as in events."""
        return int(self._now * 1_000)

    def sleep(self, _seconds: float) -> None:
        """Let a tick pass, however little was asked for."""
        self._now = round(self._now + TICK, 3)
        for listener in self.listeners:
            listener(TICK)
