"""The story of KAFKA-14172, shown by two real trials: `onceproof demo`."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from onceproof.installation import Installation
from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.lab.context import Report
from onceproof.lab.trial import run_trial
from onceproof.model.cell import Trial
from onceproof.model.errors import ExitCode, OnceproofError
from onceproof.model.files import Outcome, Reading
from onceproof.model.known_issues import registry
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.timeline import find_proved_returns, read_timeline
from onceproof.page.report import write_trials
from onceproof.page.timeline.bands import Band, task_bands

Progress = Callable[[str], AbstractContextManager[Report]]  # of a title: shows the current phase

ISSUE = "KAFKA-14172"
RELEASES = ("3.4.0", "3.4.1")  # the last with the bug, the first without
ATTEMPTS = 2  # at a trial that is no evidence
WIDTH = 46  # characters of a timeline
SIGNS = {"active": "█", "standby": "░"}

PROLOGUE = """\
An application counts the keys that it sees and gives each of them its number as an ID, under exactly-once,
so no two keys may ever share an ID. We send it 63,000 keys while a stream thread comes and goes.
"""
CAUSE = "  The thread then still had its old records in its cache, and counted on from an old number."
EPILOGUE = """\
The fix clears the cache when a thread gives up an active task and keeps it as a standby:
https://issues.apache.org/jira/browse/KAFKA-14172"""


def tell(
    installation: Installation,
    trials: Sequence[Trial],
    run: RunFolder,
    page: Path,
    out: Console,
    progress: Progress,
) -> ExitCode:
    """Run the trials one after the other on the same brokers, and report each as it ends.

    Args:
        installation: for the brokers.
        trials: of the bad release and of the good one, with the same seed.
        run: the folder that holds them until the end.
        page: the file that takes their timelines; it stays.
        out: where the story is printed.
        progress: shows what is under way.

    Raises:
        HarnessError: the harness failed; the folder stays, for it has the logs.
    """
    out.print(PROLOGUE, soft_wrap=True)
    with passing(run):
        with progress("The brokers start") as report:
            broker = trials[0].cell.broker
            report(f"Kafka {broker}")
            cluster = EmbeddedCluster.start(installation, broker, run.cluster_folder(str(broker)))
        acts = []
        try:
            for trial in trials:
                title = f"Kafka Streams {trial.cell.streams}"
                with progress(title) as report:
                    act = play(trial, run, cluster, report)
                out.print(Text(title, "bold"))
                for part in act.show():
                    out.print(part, soft_wrap=isinstance(part, Text))
                out.print()
                acts.append(act)
        finally:
            cluster.stop()
        write_trials(run, ISSUE, [act.trial for act in acts], page)
    code = ending(*acts)
    if code is ExitCode.OK:
        out.print(EPILOGUE, soft_wrap=True)
    return code


@contextmanager
def passing(run: RunFolder) -> Iterator[None]:
    """A run folder that is removed at the end, unless it has to explain an error."""
    try:
        yield
    except OnceproofError:
        raise
    except BaseException:
        shutil.rmtree(run.path, ignore_errors=True)
        raise
    shutil.rmtree(run.path, ignore_errors=True)


@dataclass(frozen=True)
class Act:
    """One trial of the story: what it was, how it ended, what was found."""

    trial: Trial
    folder: TrialFolder
    outcome: Outcome
    reading: Reading

    @property
    def is_red(self) -> bool:
        """Whether an anomaly was seen."""
        return bool(self.reading.anomalies)

    @property
    def others(self) -> tuple[str, ...]:
        """Keys of other known issues, incidental in this scenario, that explain all that was seen."""
        if not self.is_red or any(self.reading.unexplained.values()):
            return ()
        cell = self.trial.cell
        there = (issue for issue in registry().find_concerned(cell, self.reading.anomalies) if issue.key != ISSUE)
        return tuple(issue.key for issue in there if issue.is_incidental(cell))

    def show(self) -> Iterator[RenderableType]:
        """The anomalies seen, and the journey of a task by the assignments."""
        anomalies = self.reading.anomalies
        if self.is_red:
            found = (f"✘ {', '.join(f'{count:,} {name}' for name, count in anomalies.items())}", "bold red")
        else:
            found = ("✔ no anomaly", "green") if self.outcome.exercised else ("? nothing is shown", "yellow")
        yield Text.assemble("  ", found, f" in {self.reading.outputs:,} answers")
        if self.others and self.trial.cell.streams > Release.parse(RELEASES[0]):
            yield Text(f"  That is another bug, {' or '.join(self.others)}, which shows here now and then.")
        for witness in [w for w in self.reading.witnesses if w.anomaly == "duplicate-id"][:1]:
            yield Text(f"  For example, ID {witness.ids[0]:,} was given to {witness.observed}.")
        if not self.outcome.exercised:
            yield Text(f"  The fault did not take effect: {self.outcome.reason}")
            return
        events = read_timeline(self.folder.timeline)
        journey = max(find_proved_returns(events), key=lambda proof: proof.elsewhere)
        yield Text(
            f"  Task {journey.task} left a thread, stayed there as a standby while another thread processed "
            f"{journey.elsewhere:,} of its records, and came back:"
        )
        yield picture(task_bands(events), journey.task, events[0]["t"], events[-1]["t"])
        if "duplicate-id" in anomalies:
            yield Text(CAUSE)


def ending(bad: Act, good: Act) -> ExitCode:
    """Whether it went as in the story: the bad release red, the good one not of the same bug, though exercised."""
    if good.is_red and not good.others:
        return ExitCode.ANOMALY
    return ExitCode.OK if bad.is_red and good.outcome.exercised else ExitCode.INCONCLUSIVE


def play(trial: Trial, run: RunFolder, cluster: Cluster, report: Report) -> Act:
    """Run the trial; a second time if the first was no evidence.

    Raises:
        HarnessError: the harness failed.
    """
    for number in range(1, ATTEMPTS + 1):
        attempt = replace(trial, number=number)
        folder = run.trial(attempt)
        outcome = run_trial(attempt, folder, report, cluster=cluster)
        act = Act(attempt, folder, outcome, Reading.read(folder.reader_file))
        if act.is_red or outcome.exercised:
            break
    return act


def picture(bands: Iterable[Band], task: str, begin: int, end: int) -> Table:
    """The bands of a task, a row for each thread that held it, on one axis of time (epoch milliseconds)."""
    rows: dict[str, list[str]] = {}

    def column(t: int) -> int:
        return round((t - begin) / (end - begin) * WIDTH)

    for band in bands:
        if band.row[0] == task:
            row = rows.setdefault(" ".join(band.row[1:]), [" "] * WIDTH)
            first = min(column(band.begin), WIDTH - 1)
            for place in range(first, max(first + 1, column(band.end))):
                row[place] = SIGNS[band.kind]
    table = Table.grid(padding=(0, 2), pad_edge=False)
    for name, signs in rows.items():
        table.add_row(f"    {name}", Text("".join(signs), "blue"))
    table.add_row("", Text(f"0 s{f'{(end - begin) / 1_000:.1f} s':>{WIDTH - 3}}", "dim"))
    table.add_row("", Text("   ".join(f"{sign} {kind}" for kind, sign in SIGNS.items()), "dim"))
    return table
