"""What is recorded about a release stays, on each database, whoever else writes."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from onceproof.model.errors import HarnessError
from onceproof.model.release import Release
from onceproof.results.database import store_run
from onceproof.results.judging import judge_run
from onceproof.results.seen import SeenRelease, read_judged, read_seen, record_seen
from tests.results.test_judging import NO_DATABASE, UNIQUENESS_FAILED, make_run

OLD, NEW, CANDIDATE = map(Release.parse, ("4.3.1", "4.4.0", "4.4.0-rc1"))


def test_what_is_recorded_is_found_again(database_url):
    record_seen(
        [SeenRelease(OLD), SeenRelease(NEW, triggered="run"), SeenRelease(CANDIDATE, incomplete="no broker")],
        database_url,
    )
    found = read_seen(database_url)
    assert {release: (seen.triggered, seen.incomplete, seen.summary) for release, seen in found.items()} == {
        OLD: (None, None, "seen"),
        NEW: ("run", None, "run triggered"),
        CANDIDATE: (None, "no broker", "incomplete: no broker"),
    }


def test_a_second_record_replaces_all_but_the_first_time(database_url):
    record_seen([SeenRelease(NEW, incomplete="no broker")], database_url)
    before = read_seen(database_url)[NEW]
    record_seen([SeenRelease(NEW, triggered="run")], database_url)
    after = read_seen(database_url)[NEW]
    assert (after.triggered, after.incomplete, after.first_seen) == ("run", None, before.first_seen)
    assert str(before.to_dict()["first_seen"]).endswith("+00:00")


def test_to_look_makes_no_database(tmp_path):
    url = f"sqlite:///{tmp_path}/results.db"
    assert read_seen(url) == {}
    assert read_judged(url) == set()
    assert list(tmp_path.iterdir()) == []


def test_releases_are_judged_if_a_cell_of_theirs_is_not_in_error(database_url, tmp_path):
    contradicted: dict[str, Any] = {"seen_by_reader": {}}  # the readers contradict each other
    for streams, given in (("3.3.1", {}), ("3.4.1", contradicted)):
        run, _ = make_run(tmp_path, streams, ["duplicate-id"], suites=UNIQUENESS_FAILED, **given)
        judge_run(run, NO_DATABASE)
        store_run(run, database_url)
    assert read_judged(database_url) == {Release.parse("3.3.1")}


def test_concurrent_records_of_one_release_wait_for_each_other(database_url):
    together = Barrier(4)

    def record(number):
        together.wait()
        record_seen([SeenRelease(NEW, triggered=f"run {number}")], database_url)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(record, range(4)))
    assert list(read_seen(database_url)) == [NEW]


@pytest.mark.parametrize("ask", [read_seen, read_judged])
def test_a_database_that_refuses_is_a_sentence(ask):
    with pytest.raises(HarnessError, match="check ONCEPROOF_DATABASE_URL"):
        ask("postgresql+psycopg://nobody@127.0.0.1:1/results?connect_timeout=5")
