"""What is replayed, in which order, and that the driver makes of it what the topology does."""

import json
import os
from dataclasses import replace

import pytest

from onceproof.lab import replay as replaying
from onceproof.lab.replay import SCRATCH, find_scratch, replay, write_input
from onceproof.model.errors import HarnessError
from onceproof.model.files import Declared, TopicPlan
from onceproof.model.record import Record
from onceproof.model.run_folder import TrialFolder
from onceproof.readers.kafka import headers_text, token
from tests.conftest import HERE, a_trial
from tests.present import present
from tests.published import NEWEST
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


def test_records_are_replayed_by_time_in_each_partitions_order(tmp_path):
    roles = plans(lines=IN, prices=replace(IN, name="prices", plays="global"), counts=OUT)
    lines = [record(0, 0, "a", "x", 50), record(0, 1, None, "late", 10), record(1, 0, "b", "y", 20)]
    rows = written(tmp_path, roles, {"lines": lines, "prices": [record(1, 0, "p", "9", 99)], "counts": []})
    assert [(topic, partition, time) for topic, partition, time, *_ in rows] == [
        ("lines", 1, 20),
        ("lines", 0, 50),
        ("lines", 0, 10),  # after the one before it, whatever its timestamp
        ("prices", -1, 99),  # for a global table: the program takes these first
    ]
    assert rows[1][3:] == ("YQ==", "eA==", "")
    assert rows[2][3] is None


def test_what_a_killed_replay_left_in_memory_is_found(tmp_path):
    for owner in (os.getpid(), 2**22 + 1):  # which no process has
        (tmp_path / f"{SCRATCH}{owner}-x").mkdir()
    (tmp_path / f"{SCRATCH}x-").mkdir()  # not by us
    assert [left.name for left in find_scratch(tmp_path)] == [f"{SCRATCH}{2**22 + 1}-x"]


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


LABELS = """
package labels;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
public class Labels implements java.util.function.Supplier<Topology> {
    public Topology get() {
        return new Topology()
            .addSource("in", Serdes.String().deserializer(), Serdes.String().deserializer(), "lines")
            .addProcessor("label", Label::new, "in")
            .addSink("out", "counts", Serdes.String().serializer(), Serdes.String().serializer(), "label");
    }
    public static class Label extends ContextualProcessor<String, String, String, String> {
        public void process(Record<String, String> line) {
            if (line.value().equals("throws")) throw new IllegalStateException("It is said to throw.");
            byte[] label = line.headers().lastHeader("label").value();
            context().forward(line.withValue((label == null ? "none" : new String(label)) + line.headers().toArray().length));
        }
    }
}
"""


@pytest.mark.broker
@pytest.mark.parametrize("streams", ["3.3.1", NEWEST])
def test_headers_are_replayed_and_a_topology_that_throws_is_said(tmp_path, streams):
    app = tmp_path / "labels"
    (app / "src").mkdir(parents=True)
    (app / "src" / "Labels.java").write_text(LABELS)
    (app / "onceproof.toml").write_text(
        'class = "labels.Labels"\nsources = ["src"]\n[[input]]\ntopic = "lines"\ngenerate = { records = 1, value = "x" }\n'
        '[[output]]\ntopic = "counts"\n'
    )
    folder, roles = TrialFolder(tmp_path), plans(lines=IN, counts=OUT)
    settings = {"application": str(app), "class": "labels.Labels"}
    plan = a_plan(a_trial(str(streams)), roles=roles, app=settings, check="app", streams_config={})
    headers = [headers_text(of) for of in ([("label", b"a=b"), ("empty", None)], [("label", None)], [("label", b"")])]
    lines = [replaced(record(0, n, "k", "x", EPOCH + n), headers=of) for n, of in enumerate(headers)]
    write_input(folder.replay_file, roles, {"lines": lines})
    found = replay(HERE, plan, folder, plan.trial.cell.streams)
    assert [value for _, _, value in found.bytes_of("counts")] == [b"a=b2", b"none1", b"1"]
    assert found.attributes["counts"] == tuple((EPOCH + n, of) for n, of in enumerate(headers))
    write_input(folder.replay_file, roles, {"lines": [*lines, record(0, 3, "k", "throws", EPOCH + 9)]})
    thrown = replay(HERE, plan, folder, plan.trial.cell.streams)
    assert thrown.records == {}
    assert "It is said to throw." in present(thrown.failed)


def replaced(of: Record, headers: str) -> Record:
    return of._replace(headers=headers)
