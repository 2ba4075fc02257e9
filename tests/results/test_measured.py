"""One verdict for each cell of some releases: what counts before what does not, then the newest."""

from dataclasses import replace
from datetime import datetime

import pytest
from sqlalchemy.orm import Session

from onceproof.model.cell import Cell
from onceproof.model.release import Release
from onceproof.results.database import CellRow, RunRow, TrialRow, database
from onceproof.results.measured import read_measured

HARNESS, EARLIER = "0.1.0+now", "0.1.0+then"
VERSIONS = {"crash": HARNESS, "quota": EARLIER}  # by scenario
OLD, NEW = Release(3, 9, 1), Release(4, 3, 1)
CELL = Cell("crash", "DEFAULT_CONFIG", NEW, OLD)


def store(url, *judged):
    """Runs, one per day, of one cell each: the cell, its verdict, the harness of its trial."""
    with database(url) as engine, Session(engine) as session, session.begin():
        for day, (cell, verdict, harness) in enumerate(judged, 1):
            session.add(
                _run(f"202611{day:02}T021500-000{day}", f"2026-11-{day:02}T02:15:00+00:00", cell, verdict, harness)
            )


def _run(run_id, created, cell, verdict, harness):
    said = {"exercised": True, "planned": True, "reason": "", "seconds": {}, "attested": {}}
    trial = TrialRow(number=1, seed=1, harness=harness, anomalies=[], **said)
    fields = {"verdict": verdict, "sentence": f"It is {verdict}.", "red": 0, "counted": 1, "issues": ["KAFKA-1"]}
    row = CellRow(**cell.to_dict(), **fields, seconds=9.0, missed=0.05, trials=[trial])
    return RunRow(id=run_id, matrix="m", created=created, stored=datetime(2026, 11, 22), folder="", cells=[row])


def last(url, *judged):
    store(url, *judged)
    [one] = read_measured(url, (OLD, NEW), VERSIONS)
    return str(one.verdict), one.is_current, int(one.run[-1])


def test_without_a_database_nothing_was_measured(tmp_path):
    assert read_measured(f"sqlite:///{tmp_path}/none.db", (OLD, NEW), VERSIONS) == []


@pytest.mark.parametrize(
    ("judged", "expected"),
    [
        ([("known", HARNESS), ("clean", HARNESS)], ("clean", True, 2)),
        ([("clean", HARNESS), ("inconclusive", HARNESS), ("error", HARNESS)], ("clean", True, 1)),
        ([("clean", HARNESS), ("known", EARLIER)], ("clean", True, 1)),
        ([("clean", EARLIER), ("inconclusive", HARNESS)], ("clean", False, 1)),
        ([("clean", EARLIER)], ("clean", False, 1)),
        ([("error", None), ("inconclusive", None)], ("inconclusive", False, 2)),
    ],
)
def test_what_decided_by_this_harness_comes_before_all_else(database_url, judged, expected):
    assert last(database_url, *((CELL, *one) for one in judged)) == expected


def test_each_scenario_has_a_version_of_its_own(database_url):
    assert last(database_url, (replace(CELL, scenario="quota"), "clean", EARLIER)) == ("clean", True, 1)


def test_cells_of_these_releases_alone_and_each_of_them(database_url):
    def cell(streams, restart=None, broker=OLD):
        return Cell("crash", "DEFAULT_CONFIG", streams, broker, restart)

    other = Release(4, 2, 0)
    wanted = [cell(NEW), cell(OLD), cell(OLD, NEW), cell(NEW, broker=NEW)]
    beside = [cell(other), cell(other, NEW), cell(OLD, other)]
    store(database_url, *((one, "clean", HARNESS) for one in (*wanted, *beside)))
    found = read_measured(database_url, (OLD, NEW), VERSIONS)
    assert {one.cell for one in found} == set(wanted)
    assert len(found) == len(wanted)
    assert (found[0].sentence, found[0].missed, found[0].issues) == ("It is clean.", 0.05, ("KAFKA-1",))
