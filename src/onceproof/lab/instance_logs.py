"""The facts that the logs of instances have and their events do not."""

from collections.abc import Iterable
from pathlib import Path

from onceproof.model.phrases import NOT_LOCKED, NOT_OPENED, RECYCLED, Phrase
from onceproof.model.timeline import Return, time_of_line

RECYCLED_WITHIN = 10_000  # ms before an instance reports that a task became a standby
RETRIED_WITHIN = 20_000  # ms in which Kafka Streams retries what failed: its longest pause is some 15 s


def locked_tasks(log: Path, now: float) -> list[str]:
    """The tasks whose directories an instance has just failed to lock; `now` is in epoch milliseconds."""
    return _failed(NOT_LOCKED, "task", log, now)


def unopened_stores(log: Path, now: float) -> list[str]:
    """The stores that an instance has just failed to open; `now` is in epoch milliseconds."""
    return _failed(NOT_OPENED, "store", log, now)


def _failed(phrase: Phrase, group: str, log: Path, now: float) -> list[str]:
    t, failed = 0, {}
    for line in log.open(errors="replace"):
        stamp = time_of_line(line)
        t = t if stamp is None else stamp
        if said := phrase.pattern.search(line):
            failed[said[group]] = t
    return sorted(name for name, at in failed.items() if now - at <= RETRIED_WITHIN)


def was_recycled(logs: Iterable[Path], proof: Return) -> bool:
    """Whether the thread that a task came back to had recycled it into a standby."""
    name = proof.thread.partition(" (")[0]  # the timeline marks later starts like this

    def is_of_it(line: str) -> bool:
        said = RECYCLED.pattern.search(line)
        return said is not None and (said["thread"], said["task"]) == (name, proof.task)

    times = (time_of_line(line) for log in logs for line in log.open(errors="replace") if is_of_it(line))
    # An assignment is reported a little later than it is made; before it leaves the thread cannot recycle a task.
    return any(t is not None and proof.left - RECYCLED_WITHIN <= t <= proof.back for t in times)
