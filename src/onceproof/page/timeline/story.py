"""The content of the picture of a trial. Nothing here knows how to draw it."""

from collections.abc import Sequence
from dataclasses import dataclass

from onceproof.model.timeline import Event, Return, returns
from onceproof.page.timeline import bands
from onceproof.page.timeline.bands import Band
from onceproof.page.timeline.flow import Flow, flow, short_thread, thin_out
from onceproof.page.timeline.marks import Mark, marks
from onceproof.page.timeline.moments import Moment


@dataclass(frozen=True)
class Story:
    """All that the picture shows. Times are epoch milliseconds."""

    begin: int
    end: int
    phases: Sequence[Band]
    marks: Sequence[Mark]
    flow: Sequence[Flow]
    lags: Sequence[tuple[int, int]]  # that the driver measured
    drained: Sequence[tuple[int, int]]
    instances: Sequence[Band]
    tasks: Sequence[Band]
    returns: Sequence[tuple[tuple[str, ...], Return]]  # with their rows
    idle: Sequence[Band]
    moments: Sequence[Moment]
    left_out: int  # tasks

    @classmethod
    def of(cls, events: Sequence[Event], preloaded: int, moments: Sequence[Moment]) -> "Story":
        """The story of these events."""
        all_tasks = bands.task_bands(events)
        all_rows = {band.row for band in all_tasks}
        came_back = [(row, r) for r in returns(events) for row in all_rows if _is_of(r, row)]
        tasks = bands.choose_rows(all_tasks, {row for row, _ in came_back})
        rows = {band.row for band in tasks}
        return cls(
            events[0]["t"],
            max(events[-1]["t"], events[0]["t"] + 1),
            bands.phases(events),
            marks(events),
            thin_out(flow(events, preloaded)),
            [(event["t"], event["records"]) for event in events if event["event"] == "lag"],
            [(event["t"], event["committed"]) for event in events if event["event"] == "drained"],
            bands.instance_bands(events),
            tasks,
            [(row, r) for row, r in came_back if row in rows],
            bands.idle_bands(events),
            moments,
            len({row[0] for row in all_rows} - {row[0] for row in rows}),
        )


def _is_of(r: Return, row: tuple[str, ...]) -> bool:
    """Whether the row is that of the task and the thread to which it came back."""
    task, instance, thread = row
    return r.task == task and short_thread(r.thread.partition(" (")[0], instance) == thread
