"""A trial as one file: what comes out is what went in, and nothing else comes out."""

import hashlib
import io
import json
import lzma
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from onceproof.atlas import kept
from onceproof.atlas.kept import pack, unpack
from onceproof.lab.messages import MessageLog, TopicMessage
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.json_file import write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from tests.specimens.files import a_plan, a_reading, an_outcome

RUN = "20261130T021500-bbbb"
TRIAL = Trial(RUN, Cell("enumerator", "DEFAULT_CONFIG", Release(3, 3, 1), Release(3, 9, 1)), 1, seed=1)
MESSAGE = TopicMessage(TRIAL.topic("input"), 0, 0, 1, b"\0\0\0\1", b"\0\0\0\2")


@pytest.fixture
def run(tmp_path):
    """A run with a trial that kept its messages."""
    run = RunFolder(tmp_path / "runs" / RUN)
    folder = run.trial(TRIAL)
    write_json(run.run_file, {"trials": [TRIAL.to_dict()]})
    a_plan(TRIAL).write(folder.trial_file)
    an_outcome(TRIAL, reason=f"It says so in {tmp_path}/secret/notes.txt.").write(folder.outcome_file)
    a_reading().write(folder.reader_file)
    folder.timeline.write_text('{"t": 1.0, "source": "driver", "event": "phase", "name": "read"}\n')
    log = MessageLog()
    log.append(MESSAGE)
    log.write(folder.messages_file(committed=True))
    for name in ("dumps/instance-1.ids.0.active.3.csv", "instances/instance-1.log", "state/0_0/LOCK"):
        (folder.path / name).parent.mkdir(parents=True)
        (folder.path / name).write_text("1,2\n")
    return run


def test_a_trial_comes_out_as_it_went_in_without_logs_and_paths(run, tmp_path):
    file = pack(run, TRIAL, tmp_path / "store")
    other = RunFolder(tmp_path / "other" / RUN)
    assert unpack(file, other) == TRIAL
    there, back = run.trial(TRIAL), other.trial(TRIAL)
    for name in ("timeline.jsonl", "topics/committed.parquet", "dumps/instance-1.ids.0.active.3.csv"):
        assert (back.path / name).read_bytes() == (there.path / name).read_bytes()
    assert json.loads(back.trial_file.read_text()) == json.loads(there.trial_file.read_text())
    assert str(tmp_path) not in back.outcome_file.read_text()
    assert {child.name for child in back.path.iterdir()} == {
        *("trial.json", "outcome.json", "reader.json", "timeline.jsonl", "topics", "dumps")
    }


def test_counts_of_objects_stay_whatever_their_class_is_called(run, tmp_path):
    event = '{"t": 1.0, "source": "driver", "event": "resources", "objects of a.TokenError": 3}\n'
    run.trial(TRIAL).timeline.write_text(event + event.replace("resources", "note"))
    other = RunFolder(tmp_path / "other" / RUN)
    unpack(pack(run, TRIAL, tmp_path), other)
    counted, noted = other.trial(TRIAL).timeline.read_text().splitlines()
    assert json.loads(counted) == json.loads(event)
    assert json.loads(noted)["objects of a.TokenError"] == "***"


def test_the_name_and_the_bytes_follow_from_the_content(run, tmp_path):
    first = pack(run, TRIAL, tmp_path / "store")
    assert pack(run, TRIAL, tmp_path / "again").read_bytes() == first.read_bytes()
    run.trial(TRIAL).timeline.write_text("")
    assert pack(run, TRIAL, tmp_path / "store").name != first.name


def test_what_cannot_be_judged_again_is_not_packed(run, tmp_path):
    shutil.rmtree(run.trial(TRIAL).topics)
    with pytest.raises(HarnessError, match=r"did not end, or did not keep its messages"):
        pack(run, TRIAL, tmp_path)
    own = replace(TRIAL, cell=replace(TRIAL.cell, scenario="app"))
    with pytest.raises(UsageError, match=r"is of your own application"):
        pack(run, own, tmp_path)


def packed(folder, members, name=TRIAL.key):
    """A file as another program might make it."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for member, data in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    file = folder / f"{name}.{hashlib.sha256(content.getvalue()).hexdigest()[:16]}{kept.SUFFIX}"
    file.write_bytes(lzma.compress(content.getvalue()))
    return file


def a_link():
    info = tarfile.TarInfo("dumps/link")
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return info


@pytest.mark.parametrize("member", ["../x", "/x", "dumps/../../x", "dumps/..", "dumps/.x", "state/x", a_link()])
def test_a_member_that_is_no_part_of_a_trial_is_refused(tmp_path, member):
    run = RunFolder(tmp_path / RUN)
    with pytest.raises(UsageError, match="is no part of a trial"):
        unpack(packed(tmp_path, [(member, b"")]), run)
    assert not run.path.exists()


def test_a_file_that_was_cut_altered_or_renamed_is_refused(run, tmp_path, monkeypatch):
    file = pack(run, TRIAL, tmp_path / "store")
    other = RunFolder(tmp_path / "other" / RUN)
    cut = tmp_path / file.name
    cut.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(UsageError, match="cannot be read"):
        unpack(cut, other)
    renamed = Path(shutil.copy(file, tmp_path / f"{TRIAL.key}.0123456789abcdef{kept.SUFFIX}"))
    with pytest.raises(UsageError, match="cut, altered or renamed"):
        unpack(renamed, other)
    monkeypatch.setattr(kept, "MOST_BYTES", 10)
    with pytest.raises(UsageError, match="holds more than"):
        unpack(file, other)
    assert not other.path.exists()


def test_a_trial_that_the_run_has_is_not_overwritten(run, tmp_path):
    with pytest.raises(UsageError, match="already has the trial"):
        unpack(pack(run, TRIAL, tmp_path), run)


def test_a_trial_under_the_name_of_another_one_is_refused(run, tmp_path):
    folder = run.trial(TRIAL)
    members = [(file.name, file.read_bytes()) for file in (folder.trial_file, folder.outcome_file)]
    with pytest.raises(UsageError, match="which its name or its outcome denies"):
        unpack(packed(tmp_path, members, name="crash-x"), RunFolder(tmp_path / "other" / RUN))
