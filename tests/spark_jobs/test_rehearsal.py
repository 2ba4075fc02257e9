"""While trials are driven, what Spark does with them is rehearsed on those that have ended."""

from onceproof.model.json_file import read_json, write_json
from onceproof.model.run_folder import RunFolder
from spark_jobs.rehearsal import LOOK_EVERY, rehearse
from tests.conftest import a_trial
from tests.specimens.files import a_plan, an_outcome


class Run:
    """A run whose trials end one after the other, while the rehearsal sleeps."""

    def __init__(self, folder, *topologies):
        self.folder = RunFolder(folder / "20261121T084500-3f2a")
        self.left = [a_trial("3.4.1", scenario=name) for name in topologies]
        self.rehearsed = []
        self.failing = False
        write_json(self.folder.run_file, {"trials": [trial.to_dict() for trial in self.left]})
        self.folder.cluster_file("3.9.1").parent.mkdir()
        self.folder.cluster_file("3.9.1").write_text("{}")

    def end_one(self, seconds):
        assert seconds == LOOK_EVERY
        if not self.left:
            self.folder.trials_over.touch()
            return
        trial = self.left.pop(0)
        a_plan(trial, check=trial.cell.scenario).write(self.folder.trial(trial).trial_file)
        an_outcome(trial).write(self.folder.trial(trial).outcome_file)

    def perform(self, part):
        assert part.path.parent.parent == self.folder.path
        assert part.cluster_file("3.9.1").exists()
        self.rehearsed.append([trial.cell.scenario for trial in part.driven_trials()])
        part.table("records").mkdir(parents=True)
        if self.failing:
            raise ValueError("boom")


def test_each_topology_is_rehearsed_with_those_before_until_few_trials_are_left(tmp_path):
    run = Run(tmp_path, "enumerator", "enumerator", "crash", "quota", "scan")
    rehearse(run.folder, run.perform, run.end_one)
    assert run.rehearsed == [["enumerator"], ["enumerator", "crash"]]
    assert {file.name for file in run.folder.path.iterdir()} == {"run.json", "clusters", "trials", "trials_over"}
    assert len(read_json(run.folder.run_file)["trials"]) == 5


def test_what_a_rehearsal_throws_is_told_and_ends_nothing(tmp_path, capsys):
    run = Run(tmp_path, "enumerator", "crash", "scan", "scan")
    run.failing = True
    rehearse(run.folder, run.perform, run.end_one)
    assert run.rehearsed == [["enumerator"], ["enumerator", "crash"]]
    assert capsys.readouterr().out == "The rehearsal failed: ValueError: boom\n" * 2


def test_when_trials_are_over_nothing_is_rehearsed(tmp_path):
    run = Run(tmp_path, "enumerator")
    run.folder.trials_over.touch()
    rehearse(run.folder, run.perform, run.end_one)
    assert run.rehearsed == []
