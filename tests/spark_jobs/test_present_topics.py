"""Which trials can be read at all is decided from names and numbers, without Spark and brokers."""

from dataclasses import replace
from pathlib import Path

from onceproof.model.cell import Trial
from onceproof.model.files import Outcome
from spark_jobs.collect import present_topics
from tests.specimens.enumerator import HEALTHY
from tests.specimens.files import ROLES
from tests.specimens.folders import run_folder_of


def topics_of(trial: Trial) -> dict[str, int]:
    return {trial.topic(role): 2 for role in ROLES}


def test_topics_of_complete_trials_are_read_and_others_explained(tmp_path: Path) -> None:
    run_folder, _ = run_folder_of(tmp_path, [HEALTHY] * 3)
    complete, lacking, other = run_folder.list_driven()
    partitions = topics_of(complete) | topics_of(lacking) | topics_of(other)
    del partitions[lacking.topic("output")]
    partitions[other.topic("input")] = 3

    topics, errors = present_topics(run_folder, [complete, lacking, other], partitions)

    assert [(topic.name, topic.trial, topic.role) for topic in topics] == [
        (complete.topic(role), complete.key, role) for role in ROLES
    ]
    assert errors == {
        lacking.key: f"topic {lacking.topic('output')} does not exist",
        other.key: f"topic {other.topic('input')} has 3 partitions, 2 were expected",
    }


def test_a_trial_that_kafka_ended_needs_no_uncreated_topic(tmp_path: Path) -> None:
    run_folder, _ = run_folder_of(tmp_path, [HEALTHY])
    [trial] = run_folder.list_driven()
    outcome = run_folder.trial(trial).outcome_file
    replace(Outcome.read(outcome), failed="thread-died: instance-1").write(outcome)
    topics, errors = present_topics(run_folder, [trial], {trial.topic("input"): 2})
    assert [topic.role for topic in topics] == ["input"]
    assert errors == {}
