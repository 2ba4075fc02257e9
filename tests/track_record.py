"""The track record: which run of matrix `known` has last shown every known issue, on which commit.

    python -m tests.track_record RUN_FOLDER    record that run, if it passed; the folder lies in the checkout that ran it
    python -m tests.track_record               whether the record is of an ancestor and not too old: `.ci/run`

A run has passed if each cell has a verdict, none is a regression or an error, each cell in which an issue is expected
is `known` by an expected issue, and each expected issue explains a cell. Other cells that came out inconclusive are
listed in the record. Exit code 1 with a sentence if a run has not passed, or the record does not hold.
"""

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from onceproof.model.files import Reading, VerdictRow
from onceproof.model.json_file import JsonFile, read_json
from onceproof.model.known_issues import LATER, KnownIssue, registry
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import Verdict

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_name("track_record.json")
MATRIX, COMMAND = "known", "onceproof run --matrix known"
# The night runs it every day. A week without anybody at work must not close the door to what comes next, nor a night
# that was red by chance once more; what breaks the matrix shows within two weeks at the latest.
MOST_DAYS = 14


@dataclass(frozen=True)
class Reproduction:
    """A cell in which an issue was seen."""

    cell: str
    seeds: tuple[int, ...]  # of the trials that were red
    red: int
    counted: int
    anomalies: Mapping[str, int]


@dataclass(frozen=True)
class Reproduced:
    """An issue: the ranges of releases that have it, and where the run has seen it."""

    key: str
    affected: tuple[str, ...]
    cells: tuple[Reproduction, ...]


@dataclass(frozen=True)
class TrackRecord(JsonFile):
    """A run of the matrix that passed."""

    run: str
    commit: str
    date: str  # on which the run began
    brokers: tuple[str, ...]
    cells: int
    verdicts: Mapping[str, int]
    inconclusive: Mapping[str, str]  # by cell: why
    issues: tuple[Reproduced, ...]


class RefusedError(Exception):
    """A sentence on why a run or a record is refused."""


def recorded(run: RunFolder, commit: str) -> TrackRecord:
    """The record of a run.

    Raises:
        RefusedError: it has not passed.
    """
    asked = read_json(run.run_file)
    if asked["matrix"] != MATRIX:
        raise RefusedError(f"Run {run.run_id} is of the matrix {asked['matrix']}, and the track record is of {MATRIX}.")
    if not run.verdicts_file.exists():
        raise RefusedError(f"Run {run.run_id} has no verdicts: resume it by `onceproof run --resume {run.run_id}`.")
    rows = VerdictRow.read_all(run.verdicts_file)
    expected = {row.cell: registry().affecting(row.as_cell) for row in rows}
    if said := [*_missing(asked, rows), *_wrong(rows, expected)]:
        raise RefusedError("\n".join([f"Run {run.run_id} has not passed:", *said]))
    found = {issue.key: issue for issues in expected.values() for issue in issues}
    return TrackRecord(
        run=run.run_id,
        commit=commit,
        date=asked["created"],
        brokers=tuple(asked["brokers"]),
        cells=len(rows),
        verdicts=dict(Counter(str(row.verdict) for row in rows)),
        inconclusive={row.cell: row.sentence for row in rows if row.verdict == Verdict.INCONCLUSIVE},
        issues=tuple(_reproduced(run, issue, rows) for issue in found.values()),
    )


def _missing(asked: Mapping[str, list[Mapping[str, str]]], rows: tuple[VerdictRow, ...]) -> Iterator[str]:
    judged = {row.cell for row in rows}
    yield from (f"{cell['key']} has no verdict." for cell in asked["cells"] if cell["key"] not in judged)


def _wrong(rows: tuple[VerdictRow, ...], expected: Mapping[str, tuple[KnownIssue, ...]]) -> Iterator[str]:
    shown = {key for row in rows if row.verdict == Verdict.KNOWN for key in row.issues}
    for row in rows:
        keys = {issue.key for issue in expected[row.cell]}
        if row.verdict in (Verdict.REGRESSION, Verdict.ERROR):
            yield f"{row.cell} is {row.verdict}: {row.sentence}"
        elif keys and (row.verdict != Verdict.KNOWN or not keys & set(row.issues)):
            yield f"{row.cell} is {row.verdict}, and {', '.join(sorted(keys))} is expected there: {row.sentence}"
    for key in sorted({issue.key for issues in expected.values() for issue in issues} - shown):
        yield f"{key} was seen in no cell."


def _reproduced(run: RunFolder, issue: KnownIssue, rows: tuple[VerdictRow, ...]) -> Reproduced:
    ranges = (f"{first} and later" if last == LATER else f"{first} to {last}" for first, last in issue.affected)
    cells = (
        Reproduction(row.cell, tuple(_red_seeds(run, row)), row.red, row.counted, row.anomalies)
        for row in rows
        if row.verdict == Verdict.KNOWN and issue.key in row.issues
    )
    return Reproduced(issue.key, tuple(ranges), tuple(cells))


def _red_seeds(run: RunFolder, row: VerdictRow) -> Iterator[int]:
    for seed, folder in zip(row.seeds, row.folders, strict=True):
        file = run.path / folder / "reader.json"
        if file.exists() and Reading.read(file).anomalies:
            yield seed


def commit_of(run: RunFolder) -> str:
    """The commit of the checkout in which a run's folder lies, which must be as it was when the run began.

    Raises:
        RefusedError: it is no checkout, or it was changed.
    """
    commit, changed = _git(run.path, "rev-parse", "HEAD"), _git(run.path, "status", "--porcelain")
    if commit is None or changed is None:
        raise RefusedError(f"{run.path} lies in no checkout, so nobody can say which commit it ran.")
    if changed:
        raise RefusedError(f"The checkout around {run.path} has changes that no commit has: {changed.splitlines()[0]}")
    began = datetime.fromisoformat(read_json(run.run_file)["created"])
    if datetime.fromisoformat(_git(run.path, "log", "-1", "--format=%cI") or "") > began:
        raise RefusedError(f"The checkout around {run.path} has a commit that is younger than the run: {commit}.")
    return commit


def check(file: Path = RECORD, checkout: Path = ROOT, now: datetime | None = None) -> str | None:
    """A sentence if what could be seen is not all: in a clone without the history, or in none, only the age counts.

    Raises:
        RefusedError: there is no record, it is too old, or its commit is no ancestor.
    """
    remedy = (
        f"run `make test-night ARGS={MATRIX}` and `python -m tests.track_record RUN_FOLDER`, and commit {file.name}."
    )
    if not file.exists():
        raise RefusedError(f"No run of the matrix {MATRIX} is recorded: {remedy}")
    record = TrackRecord.read(file)
    age = (now or datetime.now(UTC)) - datetime.fromisoformat(record.date)
    if age > timedelta(days=MOST_DAYS):
        raise RefusedError(
            f"The matrix {MATRIX} passed {age.days} days ago, and {MOST_DAYS} are the most that a change may build on: "
            f"{remedy}"
        )
    if _git(checkout, "merge-base", "--is-ancestor", record.commit, "HEAD") is not None:
        return None
    if _git(checkout, "rev-parse", "--is-shallow-repository") != "false":
        return f"Whether {record.commit[:12]}, on which the matrix {MATRIX} passed, is an ancestor cannot be seen here."
    raise RefusedError(
        f"The matrix {MATRIX} passed on {record.commit[:12]}, which is no ancestor of this commit: {remedy}"
    )


def _git(folder: Path, *words: str) -> str | None:
    """What git prints; None if it fails."""
    command = [shutil.which("git") or "git", "-C", str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def main() -> int:
    """Record a run, or check the record."""
    try:
        if len(sys.argv) == 1:
            if said := check():
                sys.stderr.write(f"{said}\n")
            return 0
        run = RunFolder(Path(sys.argv[1]).resolve())
        recorded(run, commit_of(run)).write(RECORD)
    except RefusedError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print(f"{RECORD} has run {run.run_id}. `make reference` writes docs/track-record.md; commit both.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
