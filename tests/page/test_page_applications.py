"""The tab *Applications*: what they showed, release by release, and their trials."""

import zipfile
from io import BytesIO

import pytest

from onceproof.model.anomaly import Witness
from onceproof.model.cell import Cell, Trial
from onceproof.model.judged import Explaining, Judgement, PlantedControl
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from tests.page.conftest import BROKER, SCRIPT, make_trial
from tests.specimens.files import an_app_answer, on_release

RUN = "20260103T000000-0001"
TRIAL = Trial(
    RUN, Cell("app", "DEFAULT_CONFIG", Release(4, 1, 2), BROKER), 3, 1, {"application": "folder/shop", "fault": "pause"}
)
LOST = Witness("lost-record", 0, 1, (), ("out/0@1",), f"a {SCRIPT}", "nothing")


@pytest.fixture
def ran(settings):
    """A run that is red on a release and green on the other one, where a promise is vacuous."""
    run = RunFolder(settings.runs / RUN)
    make_trial(run, TRIAL, is_red=True)
    red = on_release(
        streams="4.1.2",
        judgement=Judgement.RED,
        reason=f"2 lost-record under the fault {SCRIPT}",
        anomalies={"lost-record": 2},
        witnesses=(LOST,),
        folders=(f"anywhere/{TRIAL.key}",),
        issues=(Explaining("KAFKA-20685", "t", ("4.2.2",), "r", "https://issues.apache.org/jira/browse/KAFKA-20685"),),
        advice=f"Delete the directory {SCRIPT}",
    )
    controls = (
        PlantedControl("batch-lost", 2, {"out": ("differential",)}, "b"),
        PlantedControl("record-twice", 0, {}, "c"),
    )
    green = on_release(controls=controls, vacuous={"out": ("unique",)})
    an_app_answer(red, green).write(run.app_file)
    return run


def test_applications_are_listed_with_what_each_release_showed(client, ran):
    page = client.get("/applications").text
    assert f'<a href="./applications/{RUN}">shop</a>' in page
    assert "3 Jan 2026, 00:00 UTC" in page
    assert page.index("red</span> 4.1.2") < page.index("green</span> 4.3.1")
    assert 'href="./applications"' in client.get("/").text


def test_what_is_known_is_told_with_what_to_do(client, ran):
    assert "known: KAFKA-20685, fixed in 4.2.2" in client.get("/applications").text
    page = client.get(f"/applications/{RUN}").text
    assert '<a href="https://issues.apache.org/jira/browse/KAFKA-20685">KAFKA-20685, fixed in 4.2.2</a>' in page
    assert "Delete the directory &lt;script" in page
    evidence = zipfile.ZipFile(BytesIO(client.get(EVIDENCE).content)).read("README.md").decode()
    assert "It is known: KAFKA-20685, fixed in 4.2.2." in evidence
    assert "Next: Delete the directory" in evidence


def test_without_an_application_the_tab_says_how_to_come_by_one(client):
    assert "onceproof app init my-app" in client.get("/applications").text


def test_a_run_tells_witnesses_controls_and_what_is_vacuous(client, ran):
    page = client.get(f"/applications/{RUN}").text
    for text in ("2 lost-record", "breaks differential", "never fired", "<td>unique</td>", "out/0@1"):
        assert text in page
    assert "onceproof app run folder/shop --streams 4.1.2 --streams 4.3.1 --fault pause" in page
    assert SCRIPT not in page
    assert "under the fault &lt;script" in page


def test_a_trial_is_shown_with_its_timeline_and_its_command(client, ran):
    assert f"../applications/{RUN}/trials/{TRIAL.key}" in client.get(f"/applications/{RUN}").text
    page = client.get(f"/applications/{RUN}/trials/{TRIAL.key}").text
    assert "onceproof app run folder/shop --streams 4.1.2 --fault pause --broker 3.9.1 --seed 1" in page
    assert client.get(f"/applications/{RUN}/trials/{TRIAL.key}/timeline.json").json()["data"]


EVIDENCE = f"/applications/{RUN}/releases/{TRIAL.cell.key}/evidence.zip"


def test_the_evidence_of_a_release_can_be_saved(client, ran):
    page = client.get(f"/applications/{RUN}").text
    assert page.count("evidence.zip") == 1  # of the other release nothing is left
    assert f'href="..{EVIDENCE}" download' in page
    answer = client.get(EVIDENCE)
    assert answer.headers["content-disposition"] == f'attachment; filename="{RUN}-{TRIAL.cell.key}.zip"'
    assert "under the fault" in zipfile.ZipFile(BytesIO(answer.content)).read("README.md").decode()
    assert client.head(EVIDENCE).status_code == 200
    assert not (ran.path / "evidence").exists()


def test_evidence_of_a_part_or_outside_the_run_is_not_served(client, ran, tmp_path):
    assert client.get(EVIDENCE.replace("4.1.2", "4.1")).status_code == 404
    log = ran.trial(TRIAL).path / "instances"
    log.rename(tmp_path / "outside") if log.exists() else (tmp_path / "outside").mkdir()
    log.symlink_to(tmp_path / "outside")
    assert client.get(EVIDENCE).status_code == 404
    log.unlink()
    assert client.get(EVIDENCE).status_code == 200
    ran.trial(TRIAL).trial_file.unlink()
    assert client.get(EVIDENCE).status_code == 404
    assert "evidence.zip" not in client.get(f"/applications/{RUN}").text


@pytest.mark.parametrize("path", ["20260103T000000-0002", f"{RUN}/trials/other", f"{RUN}/trials/..%2f.."])
def test_what_no_answer_names_is_not_served(client, ran, path):
    assert client.get(f"/applications/{path}").status_code == 404


def test_a_trial_that_no_answer_names_is_not_served(client, ran):
    other = Trial(RUN, TRIAL.cell, 9, 1)
    make_trial(ran, other, is_red=False)
    assert client.get(f"/applications/{RUN}/trials/{other.key}").status_code == 404


def test_a_damaged_answer_is_named_and_hides_no_other(client, ran, settings):
    other = RunFolder(settings.runs / "20260104T000000-0001")
    other.path.mkdir(parents=True)
    other.app_file.write_text('{"half":')
    page = client.get("/applications").text
    assert "The run 20260104T000000-0001 cannot be shown" in page
    assert f"./applications/{RUN}" in page
