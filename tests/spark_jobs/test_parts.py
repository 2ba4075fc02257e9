"""While trials are driven, the tables of those that have ended are made, and at the end those of the run of them."""

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onceproof.model.json_file import read_json, write_json
from onceproof.model.run_folder import RunFolder
from onceproof.results.spark_tables import rows_of
from spark_jobs import collect_and_check as application
from spark_jobs import parts, tables
from spark_jobs.parts import LOOK_EVERY, complete, make_ahead
from tests.conftest import a_trial
from tests.present import present
from tests.specimens.files import a_plan, an_outcome


class Run:
    """A run whose trials end one after the other, while the maker of parts sleeps. A part has a row for each trial."""

    def __init__(self, folder: Path, *topologies: str) -> None:
        self.folder = RunFolder(folder / "20261121T084500-3f2a")
        self.left = [replace(a_trial("3.4.1", scenario=of), number=n) for n, of in enumerate(topologies, 1)]
        self.performed: list[list[str]] = []
        self.failing: set[str] = set()  # topologies: while they are looked at
        self.unreadable: set[str] = set()
        write_json(self.folder.run_file, {"trials": [trial.to_dict() for trial in self.left]})
        self.folder.cluster_file("3.9.1").parent.mkdir()
        self.folder.cluster_file("3.9.1").write_text("{}")

    def end_one(self, seconds: float) -> None:
        assert seconds == LOOK_EVERY
        if not self.left:
            self.folder.trials_over.touch()
            return
        trial = self.left.pop(0)
        a_plan(trial, check=trial.cell.scenario).write(self.folder.trial(trial).trial_file)
        an_outcome(trial).write(self.folder.trial(trial).outcome_file)

    def perform(self, part: RunFolder) -> None:
        assert part.cluster_file("3.9.1").exists()
        trials = part.list_driven()
        of = [trial.cell.scenario for trial in trials]
        self.performed.append(of)
        for name in ("records", *tables.CHECKED):
            file = part.table(name) / ("role=input" if name == "records" else "") / "part-0.parquet"
            file.parent.mkdir(parents=True)
            pq.write_table(pa.table({"trial": [trial.key for trial in trials]}), file)
        if self.failing & set(of):
            raise ValueError("boom")
        tables.write_errors(part, {t.key: "gone" for t in trials if t.cell.scenario in self.unreadable})
        tables.write_corrupt(part, [{"trial": trials[0].key}])

    def make(self) -> dict[str, list[str]]:
        """All of it: what was in the tables of the run, by table."""
        complete(self.folder, make_ahead(self.folder, self.perform, self.end_one), self.perform)
        return {
            name: sorted(row["trial"] for row in present(rows_of(self.folder.table(name), ["trial"])))
            for name in ("records", *tables.CHECKED)
        }


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a handful of trials will do."""
    monkeypatch.setattr(parts, "STILL_OPEN", 2)
    monkeypatch.setattr(parts, "TOGETHER", 3)


def is_whole(run: Run, made: dict[str, list[str]]) -> bool:
    keys = sorted(trial.key for trial in run.folder.trials())
    left = {file.name for file in run.folder.path.iterdir()}
    return made == dict.fromkeys(made, keys) and left == {"run.json", "clusters", "trials", "trials_over", "tables"}


def test_a_part_has_what_has_ended_since_the_last_one(tmp_path: Path) -> None:
    run = Run(tmp_path, "enumerator", "enumerator", "crash", "crash", "crash", "crash", "quota", "crash")
    assert is_whole(run, run.make())
    assert run.performed == [
        ["enumerator", "enumerator", "crash"],  # as many as make a part
        ["crash", "crash", "crash"],
        ["quota", "crash"],  # few are left, or all are over
    ]
    assert len(read_json(run.folder.run_file)["trials"]) == 8
    assert len(tables.read_corrupt(run.folder)) == 3
    assert tables.read_errors(run.folder) == {}


@pytest.mark.parametrize("how", ["failing", "unreadable"])
def test_a_failed_part_is_created_again_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    run = Run(tmp_path, *["enumerator"] * 3, *["crash"] * 3, *["scan"] * 5)
    getattr(run, how).add("crash")
    ahead = make_ahead(run.folder, run.perform, run.end_one)
    assert run.performed == [["enumerator"] * 3, ["crash"] * 3, ["scan"] * 3]
    assert [[trial.cell.scenario for trial in part.trials()] for part in ahead] == [["enumerator"] * 3, ["scan"] * 3]
    assert capsys.readouterr().out == ("A part failed: ValueError: boom\n" if how == "failing" else "")
    run.failing.clear()
    complete(run.folder, ahead, run.perform)
    assert run.performed[3:] == [["crash"] * 3 + ["scan"] * 2]
    assert list(tables.read_errors(run.folder).values()) == (["gone"] * 3 if how == "unreadable" else [])


def test_trials_wait_for_the_brokers_of_a_run_that_is_resumed(tmp_path: Path) -> None:
    run = Run(tmp_path, "enumerator", "crash", "crash", "crash", "quota", "crash")
    brokers = run.folder.cluster_file("3.9.1")
    brokers.write_text('{"stopped": true}')

    def end_one(seconds: float) -> None:
        run.end_one(seconds)
        if len(run.left) == 3:
            brokers.write_text("{}")

    ahead = make_ahead(run.folder, run.perform, end_one)
    complete(run.folder, ahead, run.perform)
    assert run.performed == [["enumerator", "crash", "crash"], ["crash", "quota", "crash"]]


def test_a_part_with_a_trial_that_is_not_judged_is_left_out(tmp_path: Path) -> None:
    run = Run(tmp_path, "enumerator", "crash", "scan", "scan", "scan")
    ahead = make_ahead(run.folder, run.perform, run.end_one)
    [_, trial, *_] = run.folder.trials()
    an_outcome(trial, error="it was not one").write(run.folder.trial(trial).outcome_file)
    complete(run.folder, ahead, run.perform)
    assert run.performed == [["enumerator", "crash", "scan"], ["enumerator", "scan", "scan", "scan"]]


def test_without_prepared_parts_the_tables_are_those_of_one_run(tmp_path: Path) -> None:
    run = Run(tmp_path, "enumerator")
    assert is_whole(run, run.make())
    assert run.performed == [["enumerator"]]


def test_many_at_once_are_made_in_parts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "AT_ONCE", 2)
    run = Run(tmp_path, "enumerator", "enumerator", "crash", "crash", "scan")
    while run.left:
        run.end_one(LOOK_EVERY)
    run.folder.trials_over.touch()
    assert is_whole(run, run.make())
    assert run.performed == [["enumerator", "enumerator"], ["crash", "crash"], ["scan"]]


def test_remains_of_an_interrupted_attempt_are_never_used(tmp_path: Path) -> None:
    run = Run(tmp_path, "enumerator", "crash", "scan", "scan", "scan")
    make_ahead(run.folder, run.perform, run.end_one)
    run.folder.trials_over.unlink()
    run.performed.clear()
    assert is_whole(run, run.make())
    assert run.performed[0] == ["enumerator", "crash", "scan", "scan", "scan"]


def test_if_the_rest_fails_there_is_no_table_and_no_part(tmp_path: Path) -> None:
    run = Run(tmp_path, "enumerator", "enumerator", "crash", "crash", "scan")
    run.failing.add("scan")
    with pytest.raises(ValueError, match="boom"):
        run.make()
    assert not run.folder.table("records").exists()
    assert not run.folder.parts.exists()


@pytest.mark.parametrize(("early", "kept"), [(True, False), (False, False), (False, True)])
def test_parts_and_kept_messages_are_for_those_who_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, early: bool, kept: bool
) -> None:
    calls = []
    for name, replaced in {
        "session": lambda _: nullcontext("spark"),
        "make_ahead": lambda run, perform: calls.append("ahead") or [],
        "collect": lambda spark, run, external, *, kept: calls.append("kept" if kept else "brokers") or {},
        "check": lambda spark, run: calls.append(run.path),
    }.items():
        monkeypatch.setattr(application, name, replaced)
    write_json(tmp_path / "run.json", {"trials": []})
    monkeypatch.setattr(
        sys,
        "argv",
        ["x", *(["--early"] if early else []), *(["--kept"] if kept else []), "--run-folder", str(tmp_path)],
    )
    application.main()
    assert calls == [*(["ahead"] if early else []), "kept" if kept else "brokers", tmp_path]
