"""How far a run has come, from Airflow's task instances and the run folder, and how that is shown."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from onceproof.model.cell import Trial
from onceproof.model.errors import HarnessError
from onceproof.model.files import Reading
from onceproof.model.run_folder import RunFolder
from onceproof.model.timeline import read_timeline
from onceproof.pipeline.steps import lanes
from onceproof.scenarios.explaining import find_concerned_in

DRIVE = "drive"
WAITING_CELLS = "drive_waiting_cells"
SPARK = "collect_and_check"
STAGES = (
    "plan",
    "brokers",
    "start_cluster",
    "cells",
    "prepare",
    WAITING_CELLS,
    "sense",
    "add_trials",
    SPARK,
    "validate",
    "judge",
    "publish",
    "gate",
    "alert",
    "extend_atlas",
    "stop_clusters",
)
SHOWN = 3  # anomalies of a cell
STYLES = {"failed": "red", "waiting": "dim", "done": "green"}


@dataclass(frozen=True)
class Progress:
    """The progress of a run: the stages under way, how far each cell is, and the first answers about them."""

    stages: tuple[str, ...]
    cells: Mapping[str, str]
    answers: Mapping[str, str] = field(default_factory=dict)  # of cells of which a trial has been read

    @property
    def driven(self) -> int:
        """Cells that need nothing more."""
        return sum(phase in {"done", "failed"} for phase in self.cells.values())


def progress_of(run: RunFolder, instances: Iterable[Mapping[str, Any]]) -> Progress:
    """How far the run has come."""
    states: dict[tuple[str, int], str | None] = {(i["task_id"], i["map_index"]): i["state"] for i in instances}
    stages = {task for (task, _), state in states.items() if state == "running" and task in STAGES}
    if not run.trials_over.exists():  # it waits
        stages.discard(SPARK)
    cells, answers = dict[str, str](), dict[str, str]()
    if run.run_file.exists():
        mapped = {item["key"]: index for index, item in enumerate(lanes(run)[0])}
        for cell, trials in run.trials_by_cell().items():
            if cell.key in mapped:
                state = states.get((DRIVE, mapped[cell.key]))
            else:
                state = _of_waiting_cells(run, trials, states.get((WAITING_CELLS, -1)))
            cells[cell.title] = _phase(run, cell.key, [trial.number for trial in trials], state)
            if answer := first_answer(run, trials):
                answers[cell.title] = answer
    return Progress(tuple(stage for stage in STAGES if stage in stages), cells, answers)


def first_answer(run: RunFolder, trials: Iterable[Trial]) -> str:
    """The answer of the independent reader about the trials of a cell that it has read; empty if there is none.

    It is no verdict: Spark reads the same topics, and a verdict takes the promises of the suites, too.
    """
    read = [
        (trial, outcome, _read_once(file, file.stat().st_mtime_ns))
        for trial in trials
        if (file := run.trial(trial).reader_file).exists() and (outcome := run.outcome(trial)) and outcome.void is None
    ]
    found: Counter[str] = Counter()
    for _, _, reading in read:
        found.update(reading.anomalies)
    if not read:
        return ""
    if not found:
        answer = "no anomaly" if any(outcome.exercised for _, outcome, _ in read) else "not exercised"
    else:
        shown = ", ".join(f"{count:,} {name}" for name, count in found.most_common(SHOWN))
        is_known = not any(any(reading.unexplained.values()) for _, _, reading in read)
        issues = sorted(
            {issue.key for trial, _, _ in read for issue in find_concerned_in(trial, found)} if is_known else ()
        )
        answer = ", ".join([f"red, {shown}", *([f"known: {', '.join(issues)}"] if issues else [])])
    return f"{answer}; Spark: pending"


@cache
def _read_once(file: Path, _written: int) -> Reading:
    """The findings of the independent reader, which stay, while a run is looked at every few seconds."""
    return Reading.read(file)


def _of_waiting_cells(run: RunFolder, trials: list[Trial], state: str | None) -> str | None:
    """The state that the task of a cell would have, if cells driven in parallel did not share one task."""
    outcomes = [run.outcome(trial) for trial in trials]
    if all(outcomes):
        return "failed" if any(outcome and outcome.error for outcome in outcomes) else "success"
    return None if state == "running" and not run.trial(trials[0]).path.exists() else state


def _phase(run: RunFolder, cell: str, trials: list[int], state: str | None) -> str:
    if state in {"failed", "upstream_failed"}:
        return "failed"
    further = not run.trial(f"{cell}-t{trials[-1]}").outcome_file.exists()  # one that was added is not driven yet
    if state == "success" and not further:
        return "done"
    return _trial_phase(run, cell, trials) if state in {"running", "success"} else "waiting"


def _trial_phase(run: RunFolder, cell: str, trials: list[int]) -> str:
    """The phase of the trial that is being driven."""
    number = next((n for n in trials if not run.trial(f"{cell}-t{n}").outcome_file.exists()), trials[-1])
    phase = "starting"
    with suppress(HarnessError):  # not begun
        for event in read_timeline(run.trial(f"{cell}-t{number}").timeline):
            if event["event"] in {"phase", "step"}:
                phase = str(event.get("name") or event.get("action"))
    return phase if len(trials) == 1 else f"trial {number} of {len(trials)}: {phase}"


class Display:
    """A live table on a terminal; elsewhere a line for each change."""

    def __init__(self, console: Console) -> None:
        """Show on this console."""
        self._console = console
        self._began = time.monotonic()
        self._last = Progress((), {})
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        """Begin to show."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the live table away."""
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """One line that stays."""
        self._console.print(f"{self._seconds()}  {text}", markup=False, highlight=False, soft_wrap=True)

    def show(self, progress: Progress) -> None:
        """Show how far the run has come."""
        if self._live is not None:
            self._live.update(self._table(progress))
        else:
            for stage in progress.stages:
                if stage not in self._last.stages:
                    self.say(stage)
            for title, phase in progress.cells.items():
                now, before = _in_short(phase), _in_short(self._last.cells.get(title, "waiting"))
                answer = progress.answers.get(title, "")
                if answer != self._last.answers.get(title, ""):
                    self.say(f"{title}: {answer}")
                elif now != before and not (now == "done" and answer):
                    self.say(f"{title}: {now}")
        self._last = progress

    def _table(self, progress: Progress) -> Table:
        stages = ", ".join(progress.stages) or "cells"
        title = f"{self._seconds()}  {stages}  {progress.driven}/{len(progress.cells)} cells"
        table = Table(title=title, title_justify="left", show_header=False, box=None)
        # What is under way comes first, as a large matrix does not fit on the screen.
        ranks = {phase: rank for rank, phase in enumerate(STYLES)}
        order = sorted(progress.cells.items(), key=lambda item: ranks.get(item[1], -1))
        for cell, phase in order[: max(3, self._console.height - 3)]:
            answer = progress.answers.get(cell, "")
            style = "red" if answer.startswith("red") else STYLES.get(phase, "bold")
            table.add_row(cell, answer if answer and phase == "done" else phase, style=style)
        return table

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._began:6.1f} s"


def _in_short(phase: str) -> str:
    """The phase for a log, which needs fewer lines than a live table has states."""
    return phase if phase in STYLES else "driving"


def list_failed_tasks(instances: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The tasks that failed by themselves, in their order; those of cells and the gate speak through their verdicts."""
    failed = [i for i in instances if i["state"] == "failed" and i["task_id"] not in {DRIVE, WAITING_CELLS, "gate"}]
    return sorted(failed, key=lambda i: str(i["end_date"]))
