"""What is replayed, in which order, and that the driver makes of it what the topology does."""

import json
import os
from dataclasses import replace

import pytest

from onceproof.lab import replay as replaying
from onceproof.lab.replay import SCRATCH, left_scratch, replay, write_input
from onceproof.model.errors import HarnessError
from onceproof.model.files import Declared, TopicPlan
from onceproof.model.record import Record
from onceproof.model.run_folder import TrialFolder
from onceproof.readers.kafka import token
from tests.conftest import HERE, a_trial
from tests.present import present
from tests.specimens.files import a_plan
from tests.specimens.trials import EPOCH

IN, OUT = Declared("lines", "input", "string", "string"), Declared("counts", "output", "string", "long", ("replay",))


def plans(**declared: Declared) -> dict[str, TopicPlan]:
    return {role: TopicPlan(role, 4, declared=one) for role, one in declared.items()}


def record(partition: int, offset: int, key: str | None, value: str, time: int) -> Record:
    of_key, of_value = (None if text is None else token(text.encode(), "string") for text in (key, value))
    return Record(partition, offset, of_key, of_value, timestamp=time)


def written(tmp_path, roles, records):
    write_input(tmp_path / "replay.jsonl", roles, records)
    return [tuple(json.loads(line)) for line in (tmp_path / "replay.jsonl").read_text().splitlines()]


def test_records_are_replayed_by_time_and_each_partition_in_its_order(tmp_path):
    roles = plans(lines=IN, prices=replace(IN, name="prices", plays="global"), counts=OUT)
    lines = [record(0, 0, "a", "x", 50), record(0, 1, None, "late", 10), record(1, 0, "b", "y", 20)]
    rows = written(tmp_path, roles, {"lines": lines, "prices": [record(1, 0, "p", "9", 99)], "counts": []})
    assert [(topic, partition, time) for topic, partition, time, *_ in rows] == [
        ("lines", 1, 20),
        ("lines", 0, 50),
        ("lines", 0, 10),  # after the one before it, whatever its timestamp
        ("prices", -1, 99),  # for a global table: the program takes these first
    ]
    assert rows[1][3:] == ("YQ==", "eA==")
    assert rows[2][3] is None


def test_what_a_killed_replay_left_in_memory_is_found(tmp_path):
    for owner in (os.getpid(), 2**22 + 1):  # which no process has
        (tmp_path / f"{SCRATCH}{owner}-x").mkdir()
    assert [left.name for left in left_scratch(tmp_path)] == [f"{SCRATCH}{2**22 + 1}-x"]


def test_stores_are_in_memory_only_if_there_is_room(tmp_path, monkeypatch):
    monkeypatch.setattr(replaying, "MEMORY", tmp_path / "memory")
    monkeypatch.setattr(replaying, "ROOM", 1)
    assert replaying.scratch_within(tmp_path) == tmp_path
    (tmp_path / "memory").mkdir()
    assert replaying.scratch_within(tmp_path) == tmp_path / "memory"
    monkeypatch.setattr(replaying, "ROOM", 2**62)
    assert replaying.scratch_within(tmp_path) == tmp_path


@pytest.fixture
def words(tmp_path):
    """A trial of the example that counts words, of which two lines were produced."""
    trial = a_trial("4.3.1")
    folder = TrialFolder(tmp_path)
    lines = [record(0, 0, None, "a rose is", EPOCH), record(1, 0, None, "a rose", EPOCH + 5)]
    roles = plans(lines=IN, counts=OUT)
    write_input(folder.replay_file, roles, {"lines": lines})
    return a_plan(trial, roles=roles), folder


@pytest.mark.broker
@pytest.mark.parametrize("streams", ["3.0.2", "4.3.1"])
def test_words_of_all_partitions_are_counted_by_one_driver(words, project, streams):
    plan, folder = words
    app = {"application": str(project / "examples" / "wordcount"), "class": "wordcount.WordCount"}
    cell = replace(plan.trial.cell, streams=type(plan.trial.cell.streams).parse(streams))
    plan = replace(plan, trial=replace(plan.trial, cell=cell), app=app, check="app", streams_config={})
    counted = replay(HERE, plan, folder, plan.trial.cell.streams).bytes_of("counts")
    last = {present(key).decode(): int.from_bytes(present(value)) for _, key, value in counted}
    assert last == {"a": 2, "rose": 2, "is": 1}
    broken = replace(plan, app={**app, "class": "wordcount.Nothing"})
    with pytest.raises(HarnessError, match=r"There is no class wordcount\.Nothing"):
        replay(HERE, broken, folder, broken.trial.cell.streams)
