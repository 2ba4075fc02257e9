"""The coverage of a trial: marks that its timeline and the logs of its instances leave, and which came before which.

Marks are few and have fixed names, so that trials of any scenario, on any release, can be compared. A pair `a > b` says
that some `a` came before some `b`: that a task was recycled and then fenced is another thing than the other way round.
What instances do while they leave, when all records are processed, does not count.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from onceproof.model import phrases
from onceproof.model.timeline import Event, time_of_line

Mark = tuple[int, str]  # when, in epoch milliseconds, and its name
Span = tuple[int, int]  # when it was left for the first and the last time, in milliseconds from the first event on

# The phrases that leave a mark, by its name.
_PHRASES: Mapping[str, phrases.Phrase] = {
    "aborted": phrases.ABORTED,
    "checkpoint": phrases.TRUSTED,
    "closed": phrases.CLOSED,
    "corrupted": phrases.CORRUPTED,
    "dirty": phrases.DIRTY,
    "epoch": phrases.EPOCH,
    "failed": phrases.DIED,
    "fenced": phrases.BEING_FENCED,
    "follow-up": phrases.FOLLOW_UP,
    "from-beginning": phrases.ANEW,
    "lost": phrases.LOST,
    "migrated": phrases.MIGRATED,
    "not-locked": phrases.NOT_LOCKED,
    "rebalance": phrases.REBALANCE,
    "recycled": phrases.RECYCLED,
    "restored": phrases.RESTORED,
    "revoked": phrases.REVOKED,
    "timed-out": phrases.REQUEST_TIMED_OUT,
}
LOGGED: Mapping[str, re.Pattern[str]] = {name: phrase.pattern for name, phrase in _PHRASES.items()}
_ANY = re.compile("|".join(f"(?:{re.sub('[(][?]P<[a-z]+>', '(?:', phrase.text)})" for phrase in _PHRASES.values()))


def read_logged(lines: Iterable[str]) -> Iterator[Mark]:
    """The marks in a log of an instance."""
    t = 0
    for line in lines:
        t = time_of_line(line) or t
        if _ANY.search(line):
            yield from ((t, name) for name, pattern in LOGGED.items() if pattern.search(line))


def read_timeline(events: Iterable[Event]) -> Iterator[Mark]:
    """The marks in a timeline: what was done to the application, how tasks moved, and how it failed."""
    roles: dict[tuple[str, str], dict[str, str]] = {}  # (instance, thread) -> task -> its role there
    started: set[str] = set()
    for event in events:
        t, kind = event["t"], event["event"]
        if kind == "fault" and event["action"] in ("applied", "healed"):
            yield t, event["name"] if event["action"] == "applied" else f"{event['name']}-over"
        elif kind == "step":
            yield t, event["action"]
        elif kind == "instance":
            again = event["action"] == "started" and event["name"] in started
            started.add(event["name"])
            yield t, f"instance-{'restarted' if again else event['action']}"
        elif kind in ("stale-read", "uncaught", "failure"):
            yield t, kind
        elif kind == "assignment":
            for thread in event["threads"]:
                now = dict.fromkeys(thread["standby"], "standby") | dict.fromkeys(thread["active"], "active")
                before = roles.setdefault((event["source"], thread["thread"]), {})
                yield from ((t, name) for name in sorted(_moves(before, now)))
                if now:  # between two assignments a thread shows no task at all: that says nothing
                    roles[event["source"], thread["thread"]] = now


def _moves(before: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    """The fate of the tasks of a thread."""
    if not now:
        return set()
    names = {("standby", "active"): "promoted", ("active", "standby"): "demoted", ("active", None): "taken-away"}
    return {name for task, role in before.items() if (name := names.get((role, now.get(task))))}


def spans(events: Sequence[Event], logs: Iterable[Iterable[str]]) -> dict[str, Span]:
    """The marks of a trial, by name.

    Args:
        events: its timeline, in order.
        logs: the lines of each log of an instance.
    """
    begin = events[0]["t"] if events else 0
    end = max((event["t"] for event in events if event["event"] == "drained"), default=None)
    found: dict[str, Span] = {}
    for t, name in sorted([*read_timeline(events), *(mark for lines in logs for mark in read_logged(lines))]):
        if end is None or t <= end:
            found[name] = (found.get(name, (t - begin,))[0], t - begin)
    return found


def name_reached(marks: Mapping[str, Span]) -> frozenset[str]:
    """The names of marks, and their ordered pairs."""
    pairs = {f"{a} > {b}" for a, (since, _) in marks.items() for b, (_, until) in marks.items() if since < until}
    return frozenset(marks) | pairs
