"""The time around the fault, to which logs are cut."""

from collections.abc import Sequence

from onceproof.model.timeline import Event, time_of_line

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


def cut(log: str, begin: int, end: int | None) -> str:
    """The lines of the window; one without a time belongs to the one before."""
    within, kept = False, []
    for line in log.splitlines(keepends=True):
        at = time_of_line(line)
        if at is not None:
            within = begin <= at and (end is None or at <= end)
        if within:
            kept.append(line)
    return "".join(kept)
