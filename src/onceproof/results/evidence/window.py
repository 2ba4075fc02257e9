"""The time around the fault, to which logs are cut."""

from collections.abc import Iterable, Iterator, Sequence

from onceproof.model.timeline import Event, time_of_line
from onceproof.results.evidence.lines import Line

MARGIN = 5_000  # milliseconds before the first fault and after the end
FAULTS = {"step", "fault", "topic", "quota", "crash", "checkpoint", "exception"}
Window = tuple[int, int | None]  # begin and end in epoch milliseconds; no end if the log was not drained


def window_of(events: Sequence[Event]) -> Window | None:
    """Begin and end of what matters, epoch milliseconds; no end if the log was not drained; None without a fault."""
    faults, lesser, started = [], [], set()
    for event in events:
        action = event.get("action") if event["event"] == "instance" else None
        if event["event"] in FAULTS or action == "killed":
            faults.append(event["t"])
        elif action == "closed" or (action == "started" and event["name"] in started):
            lesser.append(event["t"])
        if action == "started":
            started.add(event["name"])
    begins = faults or lesser
    if not begins:
        return None
    drained = [event["t"] for event in events if event["event"] == "drained"]
    return min(begins) - MARGIN, max(drained) + MARGIN if drained else None


def cut(lines: Iterable[Line], begin: int, end: int | None) -> Iterator[Line]:
    """The lines of the window; one without a time belongs to the one before."""
    within = False
    for line in lines:
        at = time_of_line(line.text)
        if at is not None:
            within = begin <= at and (end is None or at <= end)
        if within:
            yield line
