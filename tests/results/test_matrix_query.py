"""What was known at a run: the same as from all runs, in each database, but without reading them."""

import random
from collections import defaultdict
from datetime import datetime

import pytest
from sqlalchemy import insert

from onceproof.model.cell import Cell
from onceproof.model.files import VerdictRow
from onceproof.model.json_file import write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.results.database import CellRow, RunRow, database
from onceproof.results.history import changes, read_runs
from onceproof.results.matrix_query import DEPTH, read_known_at, read_known_with, runs_stored, verdicts_of
from tests.present import present
from tests.specimens.files import a_verdict

BROKER = Release(3, 9, 1)
CELLS = [
    *(Cell("quota", variant, Release(3, minor, 1), BROKER) for variant in ("A", "B") for minor in (8, 9)),
    Cell("quota", "A", Release(3, 8, 1), Release(4, 1, 2)),
    Cell("quota", "A", Release(3, 8, 1), BROKER, Release(4, 3, 1)),
]


def fill(url, runs=12, of_each=4):
    """Runs, each of some of the cells, in which verdicts and seconds change; the last two begin in the same second."""
    draw = random.Random(1)
    with database(url) as engine, engine.begin() as connection:
        for number in range(runs):
            created = f"2026-11-{min(number, runs - 2) + 1:02}T02:15:00+00:00"
            run = f"202611{number + 1:02}T021500-{number:04x}"
            row = {"id": run, "matrix": "nightly", "created": created, "stored": datetime(2026, 11, 21), "folder": ""}
            connection.execute(insert(RunRow), row)
            for cell in draw.sample(CELLS, of_each):
                verdict = draw.choice(["clean", "known", "regression", "error", "inconclusive"])
                judged = {"verdict": verdict, "red": 0, "counted": 1, "issues": [], "seconds": draw.choice([5.0, 40.0])}
                connection.execute(insert(CellRow), {**cell.to_dict(), **judged, "sentence": "", "run_id": run})


def by_cell(runs):
    """All verdicts of each cell, newest first."""
    found = defaultdict(list)
    for run in runs:
        for judged in run.cells:
            found[judged.cell].append(judged)
    return found


@pytest.mark.parametrize("at", [0, 1, 5, -1])
def test_it_is_what_all_runs_up_to_then_tell(database_url, at):
    fill(database_url)
    runs = read_runs(database_url)
    run = runs[at]
    known = present(read_known_at(database_url, run.id))
    expected = by_cell(runs[runs.index(run) :])
    assert {cell: [dated.judged for dated in past] for cell, past in known.past.items()} == expected
    assert known.cells == list(run.cells)
    assert [change.to_dict() for change in known.changes] == [c.to_dict() for c in changes(runs)[run.id]]


def test_only_the_latest_verdicts_of_a_cell_are_read(database_url):
    fill(database_url, runs=28, of_each=len(CELLS))
    runs = read_runs(database_url)
    past = present(read_known_at(database_url, runs[0].id)).past
    expected = {cell: judged[:DEPTH] for cell, judged in by_cell(runs).items()}
    assert {cell: [dated.judged for dated in of_cell] for cell, of_cell in past.items()} == expected


def test_the_verdicts_of_one_cell(database_url):
    fill(database_url)
    expected = by_cell(read_runs(database_url))
    for cell in CELLS:  # identical except for the broker, or the restart
        assert [dated.judged for dated in verdicts_of(database_url, cell, 100)] == expected[cell]
    assert len(verdicts_of(database_url, CELLS[0], 2)) == 2


def test_the_last_runs_with_their_counts(database_url):
    fill(database_url)
    reported = runs_stored(database_url, 3)
    assert [(run.id, run.created, run.counts) for run in reported] == [
        (run.id, run.created, run.counts) for run in read_runs(database_url)[:3]
    ]


def test_a_run_that_is_not_stored_stands_before_those_that_are(database_url, tmp_path):
    fill(database_url)
    run = RunFolder(tmp_path / "20261121T021500-ffff")
    write_json(run.run_file, {"created": "2026-11-21T02:15:00+00:00", "matrix": "seed"})
    VerdictRow.write_all(run.verdicts_file, [a_verdict(CELLS[0], "fixed", seconds=None)])
    known = present(read_known_with(run, database_url))
    before = present(read_known_at(database_url, read_runs(database_url)[0].id))
    assert [judged.verdict for judged in known.cells] == ["fixed"]
    assert list(known.past[CELLS[0]])[1:] == list(before.past[CELLS[0]])
    assert known.past.keys() == before.past.keys()


def test_to_look_makes_no_database(tmp_path):
    url = f"sqlite:///{tmp_path}/results.db"
    assert runs_stored(url, 9) == []
    assert read_known_at(url, "20261121T021500-ffff") is None
    assert verdicts_of(url, CELLS[0], 9) == []
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_nobody_knows(database_url):
    fill(database_url)
    assert read_known_at(database_url, "20261121T021500-ffff") is None
