"""CVE-2026-111496: what is generated, and what the application is told."""

from onceproof.model.cell import Cell
from onceproof.model.known_issues import registry
from onceproof.model.release import Release
from onceproof.scenarios.far_future import END, FOREVER, SCENARIO, app, workload
from tests.conftest import a_trial


def test_one_record_is_valid_forever_between_the_others():
    made = workload(a_trial("4.3.1", scenario="far-future", committed=50, later=40))
    assert [key for key, _ in [*made.first, *made.second]] == list(range(91))
    assert [key for key, value in [*made.first, *made.second] if value == FOREVER] == [50]
    assert made == workload(a_trial("4.3.1", scenario="far-future", committed=50, later=40))


def test_an_interval_after_for_ever_is_after_the_end_of_time():
    reported = app(a_trial("4.3.1", scenario="far-future"))
    assert int(reported["forever.ms"]) <= END < int(reported["forever.ms"]) + reported["punctuate.ms"]
    near = app(a_trial("4.3.1", "NEXT_CENTURY", scenario="far-future"))
    assert int(near["forever.ms"]) + near["punctuate.ms"] < END


def test_which_releases_are_known_to_spin():
    def affected(release):
        cell = Cell("far-future", "DEFAULT_CONFIG", Release.parse(release), Release(3, 9, 1))
        return [issue.key for issue in registry().affecting(cell)]

    releases = ("3.0.0", "3.9.2", "4.1.2", "4.2.1", "4.2.2", "4.3.0", "4.3.1", "4.4.0")
    assert [release for release in releases if not affected(release)] == ["4.2.2", "4.4.0"]
    [issue] = [issue for issue in registry().issues if issue.key == "CVE-2026-111496"]
    assert issue.url == "https://www.cve.org/CVERecord?id=CVE-2026-111496"


def test_its_application_is_not_restarted_on_another_release():
    refusal = SCENARIO.refuse(a_trial("4.3.1", scenario="far-future", restart_on="4.2.0").cell)
    assert refusal == "the application of far-future is not restarted; leave out the release 4.2.0 to restart on."
