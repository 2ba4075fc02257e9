"""A run is judged again by what its trials left, and an altered message changes the verdict."""

import shutil

import pytest

from onceproof.lab.messages import MessageLog, read_messages
from onceproof.lab.rejudging import judge_again
from onceproof.model.errors import HarnessError
from onceproof.model.files import Outcome, VerdictRow
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import Verdict
from onceproof.pipeline import rejudging
from onceproof.pipeline.rejudging import rejudge
from onceproof.settings import get_settings
from tests.kept_trials import files, key_of, lay_out
from tests.specimens.files import a_verdict

RED, GREEN = "at-least-once-DEFAULT_CONFIG-s4.4.0-b3.9.2", "at-least-once-EXACTLY_ONCE-s4.4.0-b3.9.2"


@pytest.fixture
def run(tmp_path):
    """A run of two small trials of the corpus that has no verdicts."""
    run, _ = lay_out(tmp_path, [file for file in files() if key_of(file) in (f"{RED}-t1", f"{GREEN}-t1")])
    return run


@pytest.fixture
def own_database(tmp_path, monkeypatch):
    """A results database of the test, with the artifacts of the checkout."""
    monkeypatch.setenv("ONCEPROOF_DATABASE_URL", f"sqlite:///{tmp_path / 'results.db'}")
    get_settings.cache_clear()
    yield
    monkeypatch.undo()
    get_settings.cache_clear()


def lose(run, cell, role):
    """Take the last message of a role out of what the cell's trial kept."""
    folder = run.trial(f"{cell}-t1")
    file = folder.messages_file(committed=True)
    messages = list(read_messages(file))
    last = next(message for message in reversed(messages) if message.topic.endswith(f"-{role}"))
    log = MessageLog()
    for message in messages:
        if message is not last:
            log.append(message)
    log.write(file)


def test_the_reader_sees_a_message_that_is_missing(run):
    folder = run.trial(f"{GREEN}-t1")
    assert judge_again(folder).reading.anomalies == {}
    lose(run, GREEN, "output")
    judged = judge_again(folder)
    assert "lost-record" in judged.reading.anomalies
    assert judged.reading.unexplained.keys() == judged.reading.anomalies.keys()


@pytest.mark.spark
@pytest.mark.gx
@pytest.mark.timeout(900)
def test_the_verdict_changes_whose_trial_shows_more(run, own_database):
    driven = {trial.key: Outcome.read(run.trial(trial).outcome_file) for trial in run.trials()}
    cells = {cell.key: cell for cell in run.trials_by_cell()}
    shown = {"false-after-true": 3000, "changelog-output-mismatch": 3000}
    before = [
        a_verdict(cells[RED], "known", anomalies=shown, issues=("at_least_once (documented)",)),
        a_verdict(cells[GREEN], "inconclusive"),
    ]
    VerdictRow.write_all(run.verdicts_file, before)
    lose(run, GREEN, "output")
    found = rejudge(run)
    assert (found.trials, found.cells) == (2, 2)
    assert [(change.cell, change.before, change.now) for change in found.changes] == [
        (GREEN, Verdict.INCONCLUSIVE, Verdict.REGRESSION)
    ]
    rows = {row.cell: row for row in VerdictRow.read_all(run.verdicts_file)}
    assert (rows[RED].verdict, rows[GREEN].verdict) == (Verdict.KNOWN, Verdict.REGRESSION)
    assert not (run.path / rejudging.WORK).exists()
    for trial in run.trials():
        old, now = driven[trial.key], Outcome.read(run.trial(trial).outcome_file)
        assert str(now.harness).rpartition(".")[0] == str(old.harness).rpartition(".")[0]
        assert (now.exercised, now.facts, now.attested) == (old.exercised, old.facts, old.attested)


def test_a_call_that_is_cut_short_is_seen(run):
    run.verdicts_file.write_text("[]")
    work = RunFolder(run.path / rejudging.WORK / run.run_id)
    rejudging._lay_out(run, work)
    assert not rejudging.is_half_replaced(run)
    with pytest.raises(FileNotFoundError):  # it was not judged there
        rejudging._replace(run, work, list(run.trials()))
    assert rejudging.is_half_replaced(run)


def test_a_run_without_messages_is_refused_and_stays(run):
    shutil.rmtree(run.trial(f"{RED}-t1").topics)
    run.verdicts_file.write_text("[]")
    with pytest.raises(HarnessError, match=r"1 of the 2 trials of run \S+ did not keep their messages"):
        rejudge(run)
    assert run.verdicts_file.read_text() == "[]"


def test_a_reader_that_fails_leaves_the_verdicts(run):
    run.verdicts_file.write_text("[]")
    run.trial(f"{RED}-t1").messages_file(committed=True).write_bytes(b"no Parquet")
    with pytest.raises(HarnessError, match=rf"{RED}-t1/topics/committed.parquet cannot be read"):
        rejudge(run)
    assert run.verdicts_file.read_text() == "[]"
    assert not (run.path / rejudging.WORK).exists()
