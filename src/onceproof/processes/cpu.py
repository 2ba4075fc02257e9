"""The CPU time of threads: whether a delay is theirs, or that of a machine with too few CPUs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from onceproof.model.errors import StoodStillError


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


def cpu_time(schedstat: Path) -> CpuTime:
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
    longest = _longest(before, after)
    if longest.is_starved(seconds):
        raise StoodStillError(
            f"The machine has too few CPUs for what runs on it: a thread of the trial waited {longest.waited:.0f} s "
            f"for one and ran for {longest.ran:.0f} s, so its delay says nothing about Kafka. "
            "Run less at the same time."
        )


def longest_wait(before: Mapping[str, CpuTime], after: Mapping[str, CpuTime]) -> float:
    """The seconds that a thread was ready to run and waited for a CPU: of the thread that waited longest."""
    return _longest(before, after).waited


def slowdown(before: Mapping[str, CpuTime], after: Mapping[str, CpuTime]) -> float:
    """How many times as long as on CPUs of its own the work of the thread took that waited longest for one."""
    longest = _longest(before, after)
    return 1 + longest.waited / longest.ran if longest.ran else 1.0


def _longest(before: Mapping[str, CpuTime], after: Mapping[str, CpuTime]) -> CpuTime:
    since = {thread: before.get(thread, CpuTime()) for thread in after}
    times = [CpuTime(now.ran - since[t].ran, now.waited - since[t].waited) for t, now in after.items()]
    return max(times, key=lambda time: time.waited, default=CpuTime())
