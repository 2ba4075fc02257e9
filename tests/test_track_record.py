"""The track record: what counts as a run that passed, and when a record of one holds."""

import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from onceproof.model.files import VerdictRow
from onceproof.model.json_file import write_json
from onceproof.model.known_issues import registry
from onceproof.model.matrix import Request
from onceproof.model.run_folder import RunFolder
from tests import track_record
from tests.published import expanded
from tests.specimens.files import a_reading, a_verdict

BEGAN = datetime(2026, 11, 29, 21, tzinfo=UTC)
CELLS = [cell for cell in expanded(Request("known")).cells if cell.scenario == "enumerator"]


def judged(cell, **changed):
    """The verdict on a cell of a run that passed, red in the second of two trials where issues are expected."""
    issues = tuple(issue.key for issue in registry().affecting(cell))
    red = {"red": 1, "anomalies": {"duplicate-id": 3}, "issues": issues} if issues else {}
    two = {"trials": 2, "counted": 2, "seeds": (7, 8), "folders": (f"trials/{cell.key}-t1", f"trials/{cell.key}-t2")}
    return a_verdict(cell, changed.pop("verdict", "known" if issues else "provisional"), **{**two, **red, **changed})


@pytest.fixture
def a_run(tmp_path):
    """A run of some cells of the matrix; what is given changes the verdict on each that `where` is true of."""

    def make(where=lambda _: False, matrix="known", left_out=0, **changed):
        run = RunFolder(tmp_path / "runs" / "20261129T210000-aaaa")
        named = [{"key": cell.key} for cell in CELLS]
        asked = {"matrix": matrix, "created": BEGAN.isoformat(), "brokers": ["4.4.0"], "cells": named}
        write_json(run.run_file, asked)
        rows = [judged(cell, **(changed if where(cell) else {})) for cell in CELLS]
        VerdictRow.write_all(run.verdicts_file, rows[left_out:])
        for row in rows:
            for folder, is_red in zip(row.folders, (False, row.red > 0), strict=True):
                a_reading(anomalies={"duplicate-id": 3} if is_red else {}).write(run.path / folder / "reader.json")
        return run

    return make


def is_bad(cell):
    return bool(registry().affecting(cell))


def test_a_passed_run_is_recorded_with_its_issues(a_run):
    bad = [cell.key for cell in CELLS if is_bad(cell)]
    record = track_record.recorded(a_run(), "a" * 40)
    assert (record.commit, record.cells) == ("a" * 40, len(CELLS))
    assert record.verdicts == {"known": len(bad), "provisional": len(CELLS) - len(bad)}
    [issue] = [one for one in record.issues if one.key == "KAFKA-14172"]
    assert issue.affected
    assert {cell.cell for cell in issue.cells} <= set(bad)
    assert {(cell.seeds, cell.red, cell.counted) for cell in issue.cells} == {((8,), 1, 2)}


def test_inconclusive_cells_without_an_expectation_are_listed(a_run):
    good = next(cell for cell in CELLS if not is_bad(cell))
    record = track_record.recorded(a_run(good.__eq__, verdict="inconclusive", sentence="It was late."), "a" * 40)
    assert record.inconclusive == {good.key: "It was late."}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"matrix": "seed"}, "is of the matrix seed, and the track record is of known"),
        ({"left_out": 1}, "has no verdict."),
        ({"where": is_bad, "verdict": "clean"}, "is clean, and KAFKA-14172 is expected there"),
        ({"where": is_bad, "verdict": "fixed"}, "is fixed, and KAFKA-14172 is expected there"),
        ({"where": is_bad, "verdict": "inconclusive"}, "is inconclusive, and KAFKA-14172 is expected there"),
        ({"where": is_bad, "issues": ("KAFKA-18943",)}, "is known, and KAFKA-14172 is expected there"),
        ({"where": is_bad, "issues": ("KAFKA-18943",)}, "KAFKA-14172 was seen in no cell."),
        ({"where": lambda cell: not is_bad(cell), "verdict": "regression"}, "is regression: why"),
        ({"where": lambda cell: not is_bad(cell), "verdict": "error"}, "is error: why"),
    ],
)
def test_a_run_has_not_passed_if(a_run, changed, said):
    with pytest.raises(track_record.RefusedError, match="Run 20261129T210000-aaaa") as refused:
        track_record.recorded(a_run(**changed), "a" * 40)
    assert said in str(refused.value)


@pytest.fixture
def checkout(tmp_path):
    """A repository of two commits."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text(".onceproof\n")
    git(folder, "add", ".")
    for message in ("1", "2"):
        git(folder, "commit", "-qm", message, "--allow-empty")
    return folder


def git(folder, *words):
    day = {"GIT_COMMITTER_DATE": "2026-11-29T20:00:00Z"}
    command = [shutil.which("git"), "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=day).stdout.strip()


@pytest.fixture
def record(a_run, checkout):
    """A file with the record of a run on the first commit."""
    file = checkout / ".onceproof" / "track_record.json"
    file.parent.mkdir()
    track_record.recorded(a_run(), git(checkout, "rev-parse", "HEAD~1")).write(file)
    return file


def test_a_record_holds_on_later_commits_for_some_days(record, checkout):
    last = BEGAN + timedelta(days=track_record.MOST_DAYS)
    assert track_record.check(record, checkout, last) is None
    with pytest.raises(track_record.RefusedError, match="passed 14 days ago, and 14 are the most"):
        track_record.check(record, checkout, last + timedelta(hours=1))


def test_without_a_record_nothing_is_shown(checkout):
    with pytest.raises(track_record.RefusedError, match="No run of the matrix known is recorded: run `make test-night"):
        track_record.check(checkout / "none.json", checkout, BEGAN)


def test_a_record_of_another_branch_does_not_hold(record, checkout):
    git(checkout, "checkout", "-q", "--orphan", "other")
    git(checkout, "commit", "-qm", "other")
    with pytest.raises(track_record.RefusedError, match="which is no ancestor of this commit"):
        track_record.check(record, checkout, BEGAN)


def test_in_a_shallow_clone_or_without_git_the_age_alone_counts(record, checkout, tmp_path):
    git(tmp_path, "clone", "-q", "--depth=1", checkout.as_uri(), "shallow")
    (tmp_path / "archive").mkdir()
    for folder in ("shallow", "archive"):
        said = track_record.check(record, tmp_path / folder, BEGAN)
        assert said is not None
        assert said.endswith("is an ancestor cannot be seen here.")
        with pytest.raises(track_record.RefusedError, match="days ago"):
            track_record.check(record, tmp_path / folder, BEGAN + timedelta(days=15))


def test_the_commit_is_that_of_the_unchanged_checkout_of_the_run(a_run, checkout, tmp_path):
    outside = a_run()
    with pytest.raises(track_record.RefusedError, match="lies in no checkout"):
        track_record.commit_of(outside)
    run = RunFolder(shutil.copytree(outside.path, checkout / ".onceproof" / "runs" / outside.run_id))
    assert track_record.commit_of(run) == git(checkout, "rev-parse", "HEAD")
    (checkout / "code").touch()
    with pytest.raises(track_record.RefusedError, match=r"has changes that no commit has: \?\? code"):
        track_record.commit_of(run)
    (checkout / "code").unlink()
    write_json(run.run_file, {"created": "2026-11-29T19:00:00+00:00"})
    with pytest.raises(track_record.RefusedError, match="a commit that is younger than the run"):
        track_record.commit_of(run)
