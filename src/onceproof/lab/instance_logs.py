"""The facts that the logs of instances have and their events do not."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from onceproof.model.phrases import (
    GOES_ON,
    LATE_POLL,
    NOT_LOCKED,
    NOT_OPENED,
    POSITIONED,
    RECYCLED,
    SKIPPED,
    THREAD_FENCED,
    UNKEYED,
    UNSENT,
    Phrase,
)
from onceproof.model.timeline import Return, time_of_line

RECYCLED_WITHIN = 10_000  # ms before an instance reports that a task became a standby
RETRIED_WITHIN = 20_000  # ms in which Kafka Streams retries what failed: its longest pause is some 15 s


def find_locked_tasks(log: Path, now: float) -> list[str]:
    """The tasks whose directories an instance has just failed to lock; `now` is in epoch milliseconds."""
    return _find_failed(NOT_LOCKED, "task", log, now)


def find_unopened_stores(log: Path, now: float) -> list[str]:
    """The stores that an instance has just failed to open; `now` is in epoch milliseconds."""
    return _find_failed(NOT_OPENED, "store", log, now)


def _find_failed(phrase: Phrase, group: str, log: Path, now: float) -> list[str]:
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


def read_logged(log: Path) -> Iterator[dict[str, Any]]:
    """The fields of the events `logged` (`model.timeline`): what an instance did to records, and said of it."""
    skipped: Counter[tuple[str, int]] = Counter()
    unkeyed: Counter[str] = Counter()
    dropped: Counter[tuple[str, str]] = Counter()
    back: Counter[tuple[str, int]] = Counter()
    fenced: list[int] = []
    late, unsent = 0, None
    for line in log.open(errors="replace"):
        if said := SKIPPED.pattern.search(line):
            skipped[said["topic"], int(said["partition"])] += 1
        elif said := UNKEYED.pattern.search(line):
            unkeyed[said["topic"]] += 1
        elif said := UNSENT.pattern.search(line):
            unsent = (said["topic"], said["task"])
        elif unsent and GOES_ON.pattern.search(line):
            dropped[unsent] += 1
        elif THREAD_FENCED.pattern.search(line):
            fenced.append(time_of_line(line) or 0)
        elif LATE_POLL.pattern.search(line):
            late += 1
        elif fenced and (said := POSITIONED.pattern.search(line)):
            back[said["place"], int(said["offset"])] += 1
    for (topic, partition), times in skipped.items():
        yield {"what": "skipped", "topic": topic, "partition": partition, "times": times}
    for topic, times in unkeyed.items():
        yield {"what": "unkeyed", "topic": topic, "times": times}
    for (topic, task), times in dropped.items():
        yield {"what": "dropped", "topic": topic, "task": task, "times": times}
    for (place, offset), times in back.items():
        apart = min((later - earlier for earlier, later in pairwise(fenced)), default=0)
        fields = {"place": place, "offset": offset, "times": times, "apart": apart, "late": late}
        yield {"what": "fenced", **fields}
