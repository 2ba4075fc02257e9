"""The story of a trial as a still picture: an SVG without scripts and styles of its own, for static pages."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from onceproof.model.timeline import Event
from onceproof.page.timeline.bands import FROZEN, KILLED, Band
from onceproof.page.timeline.marks import WIDTH, Mark, group, stagger
from onceproof.page.timeline.story import Story

LEFT, RIGHT = 230, 30  # pixels to the left and right of the plot, of which the left ones have the labels of rows
ROW, GAP, BAR, LEVEL = 20, 8, 16, 15  # pixels: of a row, between panels, of a bar, of a level of marks
LETTER = 6.2  # pixels
TICKS = 8  # at most
STEPS = (1, 2, 5, 10, 20, 30, 60, 120, 300)  # seconds between ticks
NEAR = 40  # a mark falls together with its like if a trial is so many times as long as what is between them


@dataclass(frozen=True)
class Bar:
    """A band, in pixels; `look` is the class of its colour, and `label` is empty where there is no room for it."""

    x: float
    y: float
    width: float
    look: str
    label: str
    title: str


@dataclass(frozen=True)
class Label:
    """A text at a place in pixels; `side` is where it lies: `right`, `left`, or empty where there is no room."""

    x: float
    y: float
    text: str
    side: str = "right"
    title: str = ""


@dataclass(frozen=True)
class Picture:
    """All parts with their places, in pixels from the upper left corner.

    Attributes:
        frames: where a task came back to a thread that had it before.
        begin: of the plot, from the left.
    """

    width: float
    height: float
    bars: Sequence[Bar]
    frames: Sequence[Bar]
    rows: Sequence[Label]
    marks: Sequence[Label]
    ticks: Sequence[Label]
    begin: float = LEFT

    @classmethod
    def of(cls, events: Sequence[Event]) -> "Picture | None":
        """The picture of these events, in order of time; None where nothing in them lasts."""
        story = Story.of(events, 0, ()) if events else None
        return _Layout(story).picture() if story and story.instances else None


class _Layout:
    """Gives each part of a story its place, from the top down."""

    def __init__(self, story: Story) -> None:
        self._story, self._y = story, 0.0
        self._bars: list[Bar] = []
        self._rows: list[Label] = []

    def picture(self) -> Picture:
        """All of it."""
        story = self._story
        self._panel([("phase",)], story.phases, lambda _: "phase")
        shown = group(story.marks, (story.end - story.begin) // NEAR)
        marks = list(self._marks(shown))
        self._panel(_rows_of(story.instances), story.instances, lambda band: _state(band.kind))
        held_from = self._y
        rows = _rows_of(story.tasks)
        self._panel(rows, story.tasks, lambda band: band.kind)
        frames = [
            Bar(
                self._x(r.left),
                held_from + rows.index(row) * ROW,
                self._x(r.back) - self._x(r.left),
                "return",
                "",
                f"Task {r.task} came back to this thread.",
            )
            for row, r in story.returns
        ]
        ticks = list(self._ticks())
        return Picture(LEFT + WIDTH + RIGHT, self._y + 2 * ROW, self._bars, frames, self._rows, marks, ticks)

    def _x(self, t: int) -> float:
        share = (t - self._story.begin) / (self._story.end - self._story.begin)
        return round(LEFT + min(max(share, 0.0), 1.0) * WIDTH, 1)

    def _panel(self, rows: Sequence[tuple[str, ...]], bands: Sequence[Band], look: Callable[[Band], str]) -> None:
        if not bands:
            return
        for number, row in enumerate(rows):
            self._rows.append(Label(LEFT - 8, self._y + number * ROW + BAR - 4, _name_row(row), "left"))
        for band in bands:
            x = self._x(band.begin)
            width = round(self._x(band.end) - x, 1)
            text = _words(band.kind)
            label = text if len(text) * LETTER + 6 < width else ""
            title = f"{_name_row(band.row)}: {text}, {self._seconds(band.begin)} to {self._seconds(band.end)} s"
            self._bars.append(Bar(x, self._y + rows.index(band.row) * ROW, width, look(band), label, title))
        self._y += len(rows) * ROW + GAP

    def _marks(self, marks: Sequence[Mark]) -> Iterator[Label]:
        places = stagger(marks, self._story.begin, self._story.end)
        for mark, (level, side) in zip(marks, places, strict=True):
            y = self._y + (level + 1) * LEVEL - 4
            yield Label(self._x(mark.t), y, mark.label, side, f"{self._seconds(mark.t)} s: {mark.text}")
        self._y += LEVEL * (1 + max((level for level, _ in places), default=-1)) + GAP

    def _ticks(self) -> Iterator[Label]:
        seconds = (self._story.end - self._story.begin) / 1000
        step = next((step for step in STEPS if seconds / step <= TICKS), max(STEPS))
        for at in range(0, int(seconds) + 1, step):
            yield Label(self._x(self._story.begin + at * 1000), self._y + ROW - 4, f"{at} s")

    def _seconds(self, t: int) -> str:
        return f"{(t - self._story.begin) / 1000:.1f}"


def _rows_of(bands: Sequence[Band]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(band.row for band in bands))


def _name_row(row: tuple[str, ...]) -> str:
    return " · ".join(row)


def _words(kind: str) -> str:
    return {KILLED: "killed", FROZEN: "standing still", "CREATED": "starting"}.get(kind, kind)


def _state(kind: str) -> str:
    """The look of a state: those that mean the same for a reader have the same."""
    match kind:
        case "RUNNING":
            return "running"
        case "REBALANCING":
            return "rebalancing"
        case "ERROR" | "PENDING_ERROR" | "killed":
            return "dead"
        case _:
            return "idle"
