"""The agent on real releases: it alters what the catalogue says, and the JVM accepts the altered classes."""

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from onceproof.campaigns.sensitivity.plantings import Planting
from onceproof.campaigns.sensitivity.verbs import Sense, sense
from onceproof.lab.agent import alterations, check_plantable
from onceproof.lab.java import Jvm
from onceproof.lab.trial import run_trial
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import Reading, TrialPlan
from onceproof.model.known_issues import registry
from onceproof.model.plants import Plant, plant, plants
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.results.sensitivity import read_planted_trials
from onceproof.settings import get_settings
from tests.conftest import HERE, a_trial, undisturbed
from tests.present import present
from tests.published import NEWEST, OF_EACH_CHANGE, PUBLISHED

pytestmark = pytest.mark.broker
NOT_IN_FULL = Release(3, 3, 0)  # in Maven
OF_LINES = {
    line: [release for release in PUBLISHED.releases if release.line == line and release != NOT_IN_FULL]
    for line in dict.fromkeys(release.line for release in PUBLISHED.releases)
}
ENDS = sorted({end for releases in OF_LINES.values() for end in (releases[0], releases[-1])})


@pytest.mark.parametrize(
    "release",
    [pytest.param(one, marks=[pytest.mark.night] * (one not in OF_EACH_CHANGE)) for one in ENDS],
    ids=str,
)
def test_every_plant_loads_on_the_releases_it_applies_to(release):
    altered = alterations(HERE, release)
    assert altered.keys() == plants().keys()
    for one in plants().values():
        if one.applies(release):
            assert altered[one.name], f"{one.name} alters nothing on {release}, so it does not apply to it."


def test_a_plant_whose_methods_the_release_lacks_is_refused():
    invented = Plant("stale-cache", "w", "b", ())  # actually only from 3.4.1 on
    with pytest.raises(UsageError, match=r"stale-cache cannot be planted into 3\.0\.0: it lacks the methods"):
        check_plantable(HERE, invented, Release.parse("3.0.0"))


def test_a_planted_trial_says_so_and_leaves_no_archive(tmp_path, cluster, monkeypatch):
    # An instance that asks for an archive fails.
    monkeypatch.setattr("onceproof.lab.instance.Jvm", type("Without", (Jvm,), {"of": None}))
    folder = TrialFolder(tmp_path)
    outcome = undisturbed(lambda: run_trial(replace(a_trial("3.4.1"), plant="stale-cache"), folder, cluster=cluster))
    found = Reading.read(folder.reader_file)
    assert found.anomalies["duplicate-id"] > 100
    assert found.unexplained["duplicate-id"] == found.anomalies["duplicate-id"]  # a release without KAFKA-14172
    by_chance = registry().by_chance(outcome.trial.cell)  # KAFKA-18943
    assert found.anomalies.keys() - found.unexplained.keys() <= by_chance
    planted = present(outcome.plant)
    assert planted.fired > 0
    assert planted.altered == ("ProcessorStateManager.recycle()", "WrappedStateStore.clearCache()")
    assert outcome.attested["instance-1"]["plant"] == "stale-cache"
    assert present(TrialPlan.read(folder.trial_file).plant)["resembles"] == "KAFKA-14172"


def test_an_agent_that_nobody_asked_for_is_an_error(tmp_path, cluster, monkeypatch):
    # A JVM that is to write an archive refuses any agent anyway.
    monkeypatch.setattr("onceproof.lab.java.ClassData.of", lambda *_: None)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-javaagent:{HERE.agent_jar}=plant=put-lost")
    with pytest.raises(HarnessError, match="says that put-lost is planted in it, but it should be nothing"):
        run_trial(a_trial("3.4.1"), TrialFolder(tmp_path), cluster=cluster)


@pytest.fixture
def database_url(tmp_path, monkeypatch):
    """The test's own results database."""
    monkeypatch.setenv("ONCEPROOF_DATABASE_URL", f"sqlite:///{tmp_path}/results.db")
    get_settings.cache_clear()
    yield get_settings().database_url
    get_settings.cache_clear()


@pytest.mark.spark
@pytest.mark.night
def test_both_readers_find_an_injected_bug_only_if_it_fires(tmp_path, database_url):
    cell = a_trial(str(NEWEST)).cell
    # The enumerator deletes nothing, so no tombstone is lost.
    plantings = [Planting(one, cell, one.claims[0]) for one in (plant("record-twice"), plant("tombstone-lost"))]
    runs = (RunFolder(tmp_path / f"20261121T084500-3f2{n}") for n in count())

    def attempt() -> dict[str, Any]:
        return sense(next(runs), Sense(cell.streams, cell.broker, tuple(plantings), 1, 1, {}))

    reported = undisturbed(
        attempt, void=lambda reported: next((e for row in reported["plants"] for e in row["errors"]), None)
    )
    found, idle = read_planted_trials(database_url)[-2:]
    assert (found.fired > 0, found.found, found.found_by, found.error) == (True, True, ("independent", "spark"), None)
    assert (idle.fired, idle.found, idle.exercised, idle.found_by, idle.error) == (0, False, False, (), None)
    assert found.commit == idle.commit != ""
    assert [row["verdict"] for row in reported["plants"]] == ["found", "not-fired"]
    assert reported["exit_code"] == 3
