"""A folder of DAGs that is not ours, with a file of three lines in it."""

import os
import re
from pathlib import Path
from textwrap import dedent

import pytest

from onceproof import airflow
from onceproof.airflow import dags, take_settings
from onceproof.model.errors import UsageError

PAGE = Path(__file__).parents[2] / "docs" / "installing.md"


def test_they_bring_all_dags_of_ours(bag, tmp_path, database):
    from airflow.dag_processing.dagbag import DagBag

    [lines] = re.findall(r" *```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    file = tmp_path / "of_a_team.py"
    file.write_text(dedent(lines))
    brought = DagBag(tmp_path)
    assert brought.import_errors == {}
    assert brought.dags.keys() == bag.dags.keys()
    assert {dag.fileloc for dag in brought.dags.values()} == {str(file)}
    for name, dag in bag.dags.items():
        assert brought.dags[name].task_ids == dag.task_ids


def test_those_that_are_named_come_alone():
    assert dags("weekly", "explore").keys() == {"weekly", "explore"}
    with pytest.raises(UsageError, match=r"^There is no DAG nightly: choose among applications, .*weekly\.$"):
        dags("nightly", "weekly")


def test_the_process_of_a_task_gets_its_own_dag_alone(monkeypatch):
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "regression")
    assert dags().keys() == {"regression"}
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "of_a_team")
    assert len(dags()) == 8


def test_the_variable_sets_what_the_environment_does_not(monkeypatch):
    monkeypatch.setenv("ONCEPROOF_HOST", "lab")
    monkeypatch.setenv("ONCEPROOF_DRIVE_SLOTS", "removed at the end of the test")
    monkeypatch.delenv("ONCEPROOF_DRIVE_SLOTS")
    monkeypatch.setenv("AIRFLOW_VAR_ONCEPROOF", '{"host": "other", "drive_slots": 3}')
    dags("weekly")
    assert (os.environ["ONCEPROOF_HOST"], os.environ["ONCEPROOF_DRIVE_SLOTS"]) == ("lab", "3")


@pytest.mark.parametrize(
    ("variable", "sentence"),
    [
        ({"drive_slot": 3}, r"^The Airflow variable onceproof has drive_slot, which is no setting: choose among proj"),
        (
            ["home"],
            r'^The Airflow variable onceproof is no JSON object: write it like \{"home": "/data/onceproof"\}\.$',
        ),
    ],
)
def test_what_else_stands_in_the_variable_is_refused(variable, sentence):
    with pytest.raises(UsageError, match=sentence):
        take_settings(variable)
    take_settings(None)


def test_airflow_that_is_not_installed_is_one_sentence(monkeypatch):
    monkeypatch.setattr("onceproof.model.extras.find_spec", lambda name: None if name == "airflow" else name)
    with pytest.raises(UsageError, match=r"^A DAG of Onceproof needs Airflow, which is not installed"):
        airflow.dags()
