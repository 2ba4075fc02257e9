"""From judged runs to measurements that may leave the machine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from onceproof.atlas.file import read_atlas, write_atlas
from onceproof.atlas.measurement import ControlSeen, Measurement, merge
from onceproof.model.anomaly import Witness, first_of_each
from onceproof.model.cell import Cell, Trial
from onceproof.model.decoding import decode
from onceproof.model.files import Outcome, Reading, VerdictRow
from onceproof.model.json_file import check_target, encode, read_json
from onceproof.model.known_issues import registry
from onceproof.model.run_folder import RunFolder
from onceproof.model.sensitivity import commit_of
from onceproof.model.timeline import Event, read_timeline
from onceproof.model.verdict import Verdict
from onceproof.results.controls import near_controls
from onceproof.results.redaction import Redaction

WITNESSES = 3  # of a cell
GREEN = (Verdict.CLEAN, Verdict.PROVISIONAL, Verdict.FIXED)
SAMPLED = ("progress", "lags", "lag", "produced", "drained", "hello", "command", "resources")  # events of a timeline
EVENTS = 500  # of a timeline, at most
SEVERAL = " and "  # between versions or machines, if trials of a cell had several


@dataclass(frozen=True)
class Exported:
    """The measurements of runs, and those that were left out, each with the reason."""

    measurements: tuple[Measurement, ...]
    left_out: Mapping[str, str]  # `run cell`


def export(runs: Iterable[RunFolder]) -> Exported:
    """The measurements of judged runs, without paths, hosts and people.

    Left out are errors, which say nothing about Kafka, builds, and brokers of which the release is only claimed.

    Raises:
        HarnessError: a run is incomplete or damaged.
    """
    found: list[Measurement] = []
    left_out: dict[str, str] = {}
    for run in runs:
        created = str(read_json(run.run_file)["created"])
        trials, rows = run.trials_by_cell(), VerdictRow.read_all(run.verdicts_file)
        redaction = Redaction.of(run)
        for row in rows:
            if reason := _explain_refusal(row):
                left_out[f"{run.run_id} {row.cell}"] = reason
            else:
                measurement = _measurement(run, created, row, trials.get(row.as_cell, ()), rows)
                found.append(decode(Measurement, redaction.data(encode(measurement))))
    return Exported(merge(found), left_out)


def append(file: Path, run: RunFolder) -> Exported:
    """Add the measurements of a judged run to an atlas, which is made if it is not there.

    Runs that end at the same time add theirs one after the other. An atlas that cannot be read stays as it is.

    Raises:
        UsageError: the file is no atlas.
        HarnessError: the run is incomplete or damaged, or the disk is full or read-only.
    """
    found = export([run])
    check_target(file)
    with FileLock(f"{file}.lock"):
        before = read_atlas(file) if file.exists() else ()
        write_atlas(file, merge(before, found.measurements))
    return found


def _explain_refusal(row: VerdictRow) -> str | None:
    """Why a verdict does not belong into an atlas, if it does not."""
    cell = row.as_cell
    if row.verdict is Verdict.ERROR:
        return "the harness failed, which says nothing about Kafka"
    if any(release.commit for release in (cell.streams, cell.running, cell.broker)):
        return "a build is not published"
    return "the release of its brokers is only claimed" if cell.broker.is_claimed else None


def _measurement(
    run: RunFolder, created: str, row: VerdictRow, trials: Sequence[Trial], rows: Sequence[VerdictRow]
) -> Measurement:
    outcomes = [outcome for trial in trials if (outcome := run.outcome(trial))]
    return Measurement(
        cell=row.as_cell,
        run=run.run_id,
        created=created,
        verdict=row.verdict,
        sentence=row.sentence,
        commit=_together(commit_of(row.as_cell, outcome.attested) for outcome in outcomes),
        harness=_together(outcome.harness for outcome in outcomes),
        machine=_together(outcome.machine for outcome in outcomes),
        trials=row.trials,
        exercised=row.counted,
        red=row.red,
        anomalies=row.anomalies,
        issues=row.issues,
        witnesses=tuple(_witnesses(run, trials)),
        controls=tuple(_controls(row, rows)) if row.verdict in GREEN else (),
        plants=row.plants,
        excluded_rate=row.excluded_rate,
        missed=row.missed,
        arithmetic=row.arithmetic,
        unqualified=row.unqualified,
        seeds=row.seeds,
        seconds=row.seconds,
        timeline=_timeline(run, trials) if row.red else (),
    )


def _together(values: Iterable[str | None]) -> str:
    """The value that trials share, or all that they have."""
    return SEVERAL.join(sorted({value for value in values if value}))


def _witnesses(run: RunFolder, trials: Sequence[Trial]) -> list[Witness]:
    """A few: one of each anomaly first."""
    files = [run.trial(trial).reader_file for trial in trials if _is_read(run.outcome(trial))]
    found = [witness for file in files for witness in Reading.read(file).witnesses]
    first = first_of_each(found, 1)
    return [*first, *(witness for witness in found if witness not in first)][:WITNESSES]


def _timeline(run: RunFolder, trials: Sequence[Trial]) -> tuple[Event, ...]:
    """The first red trial's, without what is sampled all the time; none where it has too many events for a picture."""
    for trial in trials:
        folder = run.trial(trial)
        if _is_read(run.outcome(trial)) and Reading.read(folder.reader_file).anomalies and folder.timeline.exists():
            events = tuple(event for event in read_timeline(folder.timeline) if event["event"] not in SAMPLED)
            return events if len(events) <= EVENTS else ()
    return ()


def _is_read(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome.says_something


def _controls(row: VerdictRow, rows: Sequence[VerdictRow]) -> Iterable[ControlSeen]:
    """The affected cells nearest to a green that were red as expected in its run."""
    by_cell: dict[Cell, VerdictRow] = {measurement.as_cell: measurement for measurement in rows}
    for cell in near_controls(row.as_cell, by_cell, registry()):
        if (control := by_cell[cell]).verdict is Verdict.KNOWN:
            yield ControlSeen(cell.key, control.red, control.counted)


def to_json(measurement: Measurement) -> dict[str, object]:
    """A measurement for other programs, with the key of its cell and its version, without its timeline."""
    data: dict[str, Any] = encode(measurement)
    del data["timeline"]
    return {"key": measurement.cell.key, **data, "version": measurement.version}
