"""The agent on real releases: it alters what the catalogue says, and the JVM accepts the altered classes."""

from dataclasses import replace

import pytest

from onceproof.lab.agent import alterations, check_plantable
from onceproof.lab.sensitivity import Planting, try_plantings
from onceproof.lab.trial import run_trial
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.json_file import read_json
from onceproof.model.plants import Plant, plant, plants
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.sensitivity import PlantedTrial
from tests.conftest import a_trial, undisturbed

pytestmark = pytest.mark.broker
# The oldest and the newest release of each line that Maven has completely.
LINES = {
    "3.0": (0, 2),
    "3.1": (0, 2),
    "3.2": (0, 3),
    "3.3": (1, 2),
    "3.4": (0, 1),
    "3.5": (0, 2),
    "3.6": (0, 2),
    "3.7": (0, 2),
    "3.8": (0, 1),
    "3.9": (0, 2),
    "4.0": (0, 2),
    "4.1": (0, 2),
    "4.2": (0, 1),
    "4.3": (0, 1),
}


@pytest.mark.parametrize("version", [f"{line}.{patch}" for line, patches in LINES.items() for patch in patches])
def test_every_plant_loads_on_the_releases_it_applies_to(version):
    release = Release.parse(version)
    altered = alterations(release)
    assert altered.keys() == plants().keys()
    for one in plants().values():
        if one.applies(release):
            assert altered[one.name], f"{one.name} alters nothing on {version}, so it does not apply to it."


def test_a_plant_whose_methods_the_release_lacks_is_refused():
    invented = Plant("checkpoint-stays", "w", "b", ())  # in truth only up to 4.2
    with pytest.raises(UsageError, match=r"checkpoint-stays cannot be planted into 4\.3\.1: it has not the methods"):
        check_plantable(invented, Release.parse("4.3.1"))


def test_a_planted_trial_says_so_and_leaves_no_archive(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr("onceproof.lab.instance.ClassData", None)  # whoever asks for an archive fails
    folder = TrialFolder(tmp_path)
    outcome = undisturbed(lambda: run_trial(replace(a_trial("3.4.1"), plant="stale-cache"), folder, cluster=cluster))
    assert read_json(folder.reader_file)["anomalies"]["duplicate-id"] > 100
    assert outcome.plant.fired > 0
    assert outcome.plant.altered == ("ProcessorStateManager.recycle()", "WrappedStateStore.clearCache()")
    assert outcome.attested["instance-1"]["plant"] == "stale-cache"
    assert read_json(folder.trial_file)["plant"]["resembles"] == "KAFKA-14172"


def test_an_agent_that_nobody_asked_for_is_an_error(tmp_path, cluster, monkeypatch):
    from onceproof.settings import get_settings

    # A JVM that is to write an archive refuses any agent by itself.
    monkeypatch.setattr("onceproof.lab.instance.ClassData.of", lambda _: None)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-javaagent:{get_settings().agent_jar}=plant=put-lost")
    with pytest.raises(HarnessError, match="says that put-lost is planted in it, but it should be nothing"):
        run_trial(a_trial("3.4.1"), TrialFolder(tmp_path), cluster=cluster)


def test_a_plant_that_does_not_fire_is_not_found(tmp_path):
    claim = plant("tombstone-lost").claims[0]  # of a scenario that deletes; the enumerator does not
    cell = a_trial("3.4.1").cell
    planting = Planting(plant("tombstone-lost"), cell, claim)

    def attempt() -> PlantedTrial:
        [(_, [trial])] = try_plantings(RunFolder(tmp_path), [planting], cell.broker, 1, 1, print)
        return trial

    trial = undisturbed(attempt, void=lambda trial: trial.error)
    assert (trial.fired, trial.found, trial.exercised, trial.error) == (0, False, False, None)
    assert trial.commit
