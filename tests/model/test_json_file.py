"""A file between rooms is read as it was written; one of another form is reported with file and field."""

import os
import socket
import stat
import threading
from dataclasses import replace

import pytest

from onceproof.model.errors import HarnessError
from onceproof.model.files import FaultOutcome, Outcome, Planted, Produced, TrialPlan
from onceproof.model.json_file import read_json, replacing, write_json
from tests.conftest import a_trial
from tests.specimens.files import a_plan, an_outcome

TRIAL = a_trial("4.1.2", scenario="crash", restart_on="4.3.1", burst=5)
WHOLE = an_outcome(
    TRIAL,
    failed="stuck: instance-1",
    steps=3,
    facts={"partitions": 2},
    attested={"instance-1": {"streams_version": "4.1.2", "streams_commit": None}},
    plant=Planted("stale-cache", ("Cache.clear()",), 7),
    harness="0.1.0",
)
# What is not of this form, and what is said about it.
ODD = {
    "a list": (lambda data: [data], 'all of it must be a table, not [{"trial": '),
    "not there": (lambda data: without(data, "reason"), "reason is missing"),
    "unknown": (lambda data: {**data, "mood": "good"}, "there is no field 'mood'; choose from trial, error"),
    "a text for a truth": (lambda data: {**data, "exercised": "yes"}, 'exercised must be true or false, not "yes"'),
    "a truth for a number": (lambda data: {**data, "steps": True}, "steps must be a whole number, not true"),
    "null": (lambda data: {**data, "reason": None}, "reason must be a text, not null"),
    "deep inside": (
        lambda data: {**data, "produced": {"records": 1.5, "keys": 1}},
        "produced.records must be a whole number, not 1.5",
    ),
    "an entry": (
        lambda data: {**data, "attested": {"instance-1": []}},
        "attested.instance-1 must be a table with a value for each name, not []",
    ),
    "one of many": (
        lambda data: {**data, "plant": {**data["plant"], "altered": ["a", 1]}},
        "plant.altered.2 must be a text, not 1",
    ),
    "a release": (
        lambda data: {**data, "trial": odd_release(data["trial"])},
        "trial.cell.streams = \"four\": 'four' is not a Kafka release",
    ),
}


def without(data, name):
    return {key: value for key, value in data.items() if key != name}


def odd_release(trial):
    return {**trial, "cell": {**trial["cell"], "streams": "four"}}


def test_what_is_written_is_read(tmp_path):
    WHOLE.write(tmp_path / "outcome.json")
    assert Outcome.read(tmp_path / "outcome.json") == WHOLE
    assert read_json(tmp_path / "outcome.json")["plant"] == {
        "name": "stale-cache",
        "altered": ["Cache.clear()"],
        "fired": 7,
    }


def test_a_file_of_before_a_field_was_there_has_its_default(tmp_path):
    WHOLE.write(tmp_path / "outcome.json")
    write_json(tmp_path / "outcome.json", without(read_json(tmp_path / "outcome.json"), "failed"))
    assert Outcome.read(tmp_path / "outcome.json") == replace(WHOLE, failed=None)


def test_an_outcome_with_the_old_words_for_a_fault_is_read(tmp_path):
    fault = FaultOutcome("pause", True, "It stood still.", {"stood_still_ms": 7_091})
    replace(WHOLE, fault=fault).write(tmp_path / "outcome.json")
    older = read_json(tmp_path / "outcome.json")
    older["fault"] = {"name": "pause", "bit": True, "told": "It stood still.", "observed": {"stood_still_ms": 7_091}}
    write_json(tmp_path / "outcome.json", older)
    assert Outcome.read(tmp_path / "outcome.json") == replace(WHOLE, fault=fault)


def test_a_plan_with_the_old_name_of_preloaded_records_is_read(tmp_path):
    file, promises = tmp_path / "trial.json", {"state": "preloaded"}
    plan = a_plan(TRIAL, preloaded=300, promises=promises)
    plan.write(file)
    older = {**without(read_json(file), "preloaded"), "seeded": 300, "promises": {"state": "seeded"}}
    write_json(file, older)
    read = TrialPlan.read(file)
    assert replace(read, promises=promises) == plan
    assert read.least("state", Produced(900, 900)) == plan.least("state", Produced(900, 900)) == 300


@pytest.mark.parametrize(("spoil", "expected"), ODD.values(), ids=ODD)
def test_a_file_of_another_form_is_one_sentence(tmp_path, spoil, expected):
    file = tmp_path / "outcome.json"
    WHOLE.write(file)
    write_json(file, spoil(read_json(file)))
    with pytest.raises(HarnessError) as refused:
        Outcome.read(file)
    assert str(refused.value).startswith(f"{file} is incomplete or damaged, or of another version of Onceproof: ")
    assert expected in str(refused.value)


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(file):
    return stat.S_IMODE(file.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_others_read_what_somebody_named_as_the_umask_says(tmp_path):
    for name, named in (("mine.xml", True), ("ours.json", False)):
        with replacing(tmp_path / name, named=named) as draft:
            draft.write_text("new")
    assert mode(tmp_path / "mine.xml") == 0o640
    assert mode(tmp_path / "ours.json") == 0o600


def test_an_existing_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path):
    file, link = tmp_path / "report.html", tmp_path / "newest.html"
    file.write_text("old")
    file.chmod(0o664)
    link.symlink_to(file.name)
    with replacing(link, named=True) as draft:
        draft.write_text("new")
    assert link.is_symlink()
    assert (file.read_text(), mode(file)) == ("new", 0o664)
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "newest.html"}


def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write_json(pipe, {"a": 1})
    assert pipe.is_fifo()
    reader.join(timeout=30)
    assert read == ['{\n  "a": 1\n}']


def test_what_is_neither_a_file_nor_can_be_written_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        with pytest.raises(HarnessError, match="socket could not be written"):
            write_json(tmp_path / "socket", {})
        assert (tmp_path / "socket").is_socket()
