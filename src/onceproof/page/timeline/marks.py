"""Marks: what was done and what failed at one moment, and where their labels have room."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onceproof.model.timeline import Event

LEVELS = 6  # of labels above each other
WIDTH, LETTER, MARGIN = 940, 6.4, 20  # pixels of a narrow plot, of a letter, and to the right of the plot


@dataclass(frozen=True)
class Mark:
    """A fault, or another thing that was done or happened at a moment: a short label, and a sentence about it."""

    t: int
    kind: str
    label: str
    text: str


def marks(events: Sequence[Event]) -> list[Mark]:
    """The events and failures of the application, in order of time."""
    found: list[Mark] = []
    releases: dict[str, str] = {}
    restores: dict[str, int] = {}
    throttled = False
    for event in events:
        match event["event"]:
            case "step":
                found.append(_step(event))
            case "instance" if event["action"] == "killed":
                found.append(Mark(event["t"], "kill", f"SIGKILL {event['name']}", f"{event['name']} was killed."))
            case "instance" if event["action"] == "started":
                before = releases.get(event["name"])
                releases[event["name"]] = event["release"]
                found += _start(event, before)
            case "restore":
                restores[event["store"]] = event["t"]
            case "timeout":
                found.append(Mark(event["t"], "crash", f"gave up, {_crash(event)}", _fields(event)))
            case "crash":
                found.append(Mark(event["t"], "crash", _crash(event), _fields(event)))
            case "checkpoint":
                label = f"checkpoint in {event['present']} of {event['samples']} samples"
                found.append(Mark(event["t"], "seen", label, _fields(event)))
            case "initialised":  # read from the log in the end, about the time when the store was opened
                t = restores.get(event["store"]) or event["t"]
                found.append(Mark(t, "seen", f"store {event['store']}: {event['how']}", _fields(event)))
            case "fault" if "label" in event:
                found.append(Mark(event["t"], "fault", event["label"], event["text"]))
            case "topic":
                config = ", ".join(f"{k.replace('_', '.')}={v}" for k, v in event["config"].items())
                found.append(Mark(event["t"], "topic", f"{event['role']}: {config}", f"The topic's {config} was set."))
            case "quota":
                found.append(_quota(event))
            case "throttle" if event["producers"] and not throttled:
                throttled = True
                most = max(producer["produce_throttle_time_max"] for producer in event["producers"])
                found.append(
                    Mark(
                        event["t"],
                        "quota",
                        f"throttled {most:,.0f} ms",
                        f"A producer was throttled for {most:,.0f} ms.",
                    )
                )
            case "exception":
                text = f"{event['exception']}: {event['message']}"
                found.append(Mark(event["at"], "exception", event["exception"], text))
            case "failure" if event["anomaly"] != "thread-died":  # which `uncaught` reports
                found.append(Mark(event["t"], "exception", event["anomaly"], event["observed"]))
            case "stall":
                seconds = f"{event['ms'] / 1_000:.1f} s"
                text = f"{event['source']} was not given any time for {seconds}."
                found.append(Mark(event["t"], "exception", f"stood still for {seconds}", text))
            case "uncaught":
                name = event["exception"].rpartition(".")[2]
                text = f"{event['thread']} ended with {name}: {event['message']} Response: {event['response']}."
                found.append(Mark(event["t"], "exception", name, text))
    return sorted(found, key=lambda mark: mark.t)


def _step(event: Event) -> Mark:
    action = event["action"]
    kind = "in" if action.startswith("remove") or action.endswith("stop") else "out"
    return Mark(event["t"], kind, f"{action} {event['instance']}", f"The driver: {action} in {event['instance']}.")


def _start(event: Event, before: str | None) -> Iterator[Mark]:
    """Only of a start that is not the instance's first."""
    name, release = event["name"], event["release"]
    if before is not None:
        other = "" if before == release else f" on {release}"
        text = f"{name} was started again, on Kafka Streams {release}" + (f" after {before}." if other else ".")
        yield Mark(event["t"], "start", f"restart {name}{other}", text)


def _quota(event: Event) -> Mark:
    limit = event["bytes_per_second"]
    if limit is None:
        return Mark(event["t"], "quota", "quota lifted", f"The quota of {event['client']} was lifted.")
    return Mark(event["t"], "quota", f"quota {limit:,} B/s", f"{event['client']} may send {limit:,} bytes/s.")


def _crash(event: Event) -> str:
    """The state that the process left behind, as far as the scenario knows."""
    if "published" in event:
        return "published: " + ", ".join(f"{count:,} {role}" for role, count in event["published"].items())
    if "processed" in event:
        return f"{event['processed'] - event['committed']:,} records in the open transaction"
    if "during" in event:
        return f"killed during {event['during']}"
    return f"killed with {event['committed']:,} records committed"


def _fields(event: Event) -> str:
    return ", ".join(f"{k.replace('_', ' ')}: {v}" for k, v in event.items() if k not in ("t", "source", "event"))


def group(marks: Sequence[Mark], near: int) -> list[Mark]:
    """Marks of one kind and label that follow each other within `near` milliseconds, as one."""
    groups: list[list[Mark]] = []
    last: dict[tuple[str, str], list[Mark]] = {}
    for mark in marks:
        group = last.get((mark.kind, mark.label))
        if group is not None and mark.t - group[-1].t <= near:
            group.append(mark)
        else:
            last[mark.kind, mark.label] = [mark]
            groups.append(last[mark.kind, mark.label])
    return [
        Mark(
            group[0].t,
            group[0].kind,
            group[0].label + (f" ×{len(group)}" if len(group) > 1 else ""),
            "\n".join(dict.fromkeys(mark.text for mark in group)),
        )
        for group in groups
    ]


def stagger(marks: Sequence[Mark], begin: int, end: int) -> list[tuple[int, str]]:
    """For each mark the level of its label, 0 at the top, and its side, so that none hides another.

    From each mark a stem goes down, which must not cross a label. The side is `right` or, near the end, `left`; empty
    where there is no room: such a mark shows its text by hovering only.
    """
    taken: list[_Label] = []
    placed: dict[int, tuple[int, str]] = {}
    # A text to the left lies next to earlier marks, so the latest is placed first and ends up above them.
    spots = [(number, *_spot(mark, begin, end)) for number, mark in enumerate(marks)]
    rightward = [spot for spot in spots if spot[2] == "right"]
    leftward = [spot for spot in spots if spot[2] == "left"]
    for number, at, side, left, right in (*rightward, *reversed(leftward)):
        labels = (_Label(level, at, left, right) for level in range(LEVELS))
        label = next((label for label in labels if not any(label.hides(other) for other in taken)), None)
        if label is not None:
            taken.append(label)
            placed[number] = (label.level, side)
    beneath = 1 + max((level for level, _ in placed.values()), default=-1)
    return [placed.get(number, (beneath, "")) for number in range(len(marks))]


def _spot(mark: Mark, begin: int, end: int) -> tuple[float, str, float, float]:
    """Where a mark is in pixels, on which side its text, from where to where."""
    at = (mark.t - begin) / (end - begin) * WIDTH
    long = len(mark.label) * LETTER + 16
    return (at, "right", at + 8, at + long) if at + long <= WIDTH + MARGIN else (at, "left", at - long, at - 8)


@dataclass(frozen=True)
class _Label:
    """The place of a mark at `at` and its text from `left` to `right`, in pixels."""

    level: int
    at: float
    left: float
    right: float

    def hides(self, other: "_Label") -> bool:
        """Whether the two touch, or the stem of the upper one goes through the text of the lower."""
        if self.level == other.level:
            begin, end = min(self.at - 8, self.left), max(self.at + 8, self.right)
            return begin < max(other.at + 8, other.right) and min(other.at - 8, other.left) < end
        upper, lower = (self, other) if self.level < other.level else (other, self)
        return lower.left <= upper.at <= lower.right
