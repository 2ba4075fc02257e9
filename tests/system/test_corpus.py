"""Each trial of the corpus is judged as before, by both readers, without a broker."""

import pytest

from onceproof.lab.rejudging import judge_again
from onceproof.model.files import Outcome, Reading
from onceproof.results.judging import collection_errors, disagreements, spark_counts
from onceproof.scenarios import SCENARIOS, app
from onceproof.spark import choose_compiler, collect_and_check
from tests.kept_trials import expected, files, key_of, lay_out, summarize

LEAST_RED = 10


def test_the_corpus_has_every_scenario_in_red_and_in_green():
    judged = expected()
    assert [key_of(file) for file in files()] == sorted(judged)
    found = {key: bool(of["anomalies"]) for key, of in judged.items()}
    for scenario in SCENARIOS.keys() - {app.SCENARIO.name}:
        assert False in {red for key, red in found.items() if key.startswith(f"{scenario}-")}, scenario
    assert sum(found.values()) >= LEAST_RED


@pytest.mark.parametrize("file", files(), ids=key_of)
def test_the_independent_reader_finds_what_it_found(tmp_path, file):
    run, [trial] = lay_out(tmp_path, [file])
    judged = judge_again(run.trial(trial))
    assert summarize(judged.reading) == expected()[trial.key]
    assert judged.outcome == Outcome.read(run.trial(trial).outcome_file)


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_spark_finds_the_same(tmp_path):
    run, trials = lay_out(tmp_path, files())
    for trial in trials:
        judge_again(run.trial(trial)).reading.write(run.trial(trial).reader_file)
    collect_and_check(run, env=choose_compiler(len(trials)), kept=True)
    assert collection_errors(run) == {}
    counts = spark_counts(run)
    for trial in trials:
        folder = run.trial(trial)
        outcome, reading = Outcome.read(folder.outcome_file), Reading.read(folder.reader_file)
        assert list(disagreements(outcome, reading, counts.get(trial.key))) == [], trial.key
