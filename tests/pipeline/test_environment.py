"""What the components of Airflow see."""

import os
import sys
from pathlib import Path

from onceproof.pipeline.environment import airflow_environment, as_environment, of_the_lab
from onceproof.settings import Settings
from onceproof.spark import choose_compiler


def environment(settings: Settings, **environ: str) -> dict[str, str]:
    return airflow_environment(settings, port=8123, owner=os.getpid(), scheduled=False, environ=environ)


def test_everything_lies_below_the_home_and_on_loopback(tmp_path):
    made = environment(Settings(home=tmp_path))
    assert made["AIRFLOW_HOME"] == str(tmp_path / "airflow")
    assert made["AIRFLOW__API__HOST"] == made["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert made["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:8123/execution/"
    assert made["ONCEPROOF_OWNER_PID"] == str(os.getpid())


def test_airflows_own_configuration_wins(tmp_path):
    database = "postgresql://db/airflow"
    environ = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database, "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor"}
    made = environment(Settings(home=tmp_path), **environ)
    assert environ.items() <= made.items()
    assert "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS" not in made  # those are of SQLite


def test_trials_may_have_an_executor_of_their_own(tmp_path):
    alone, workers = Settings(home=tmp_path), Settings(home=tmp_path, lab_executor="CeleryExecutor")
    assert environment(alone)["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert environment(workers)["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor,CeleryExecutor"  # the first has all else
    assert of_the_lab(alone) == {"pool": "drive", "queue": "lab", "executor": None}
    assert of_the_lab(workers)["executor"] == "CeleryExecutor"


def test_sparks_driver_is_where_brokers_are(tmp_path):
    assert environment(Settings(home=tmp_path, host="lab"))["SPARK_LOCAL_IP"] == "lab"


def test_an_airflow_home_of_another_project_is_left_alone(tmp_path):
    made = environment(Settings(home=tmp_path), AIRFLOW_HOME="/somewhere/else")
    assert made["AIRFLOW_HOME"] == str(tmp_path / "airflow")


def test_our_interpreter_and_our_packages_come_first(tmp_path):
    made = environment(Settings(home=tmp_path), PATH="/bin", PYTHONPATH="/theirs")
    assert made["PATH"].split(":") == [str(Path(sys.executable).parent), "/bin"]
    project = Settings().project
    assert made["PYTHONPATH"].split(":") == [str(project / "src"), str(project), "/theirs"]


def test_spark_uses_the_java_of_the_settings(tmp_path):
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    assert environment(Settings(home=tmp_path, java=str(java)))["JAVA_HOME"] == str(tmp_path / "jdk")
    assert "JAVA_HOME" not in environment(Settings(home=tmp_path))


def test_another_process_reads_the_same_settings(tmp_path, monkeypatch):
    settings = Settings(home=tmp_path, drive_slots=3, airflow_port=8123)
    for name, value in as_environment(settings).items():
        monkeypatch.setitem(os.environ, name, value)
    assert Settings() == settings


def test_defaults_are_not_passed_on_as_choices(tmp_path):
    assert "ONCEPROOF_DRIVE_SLOTS" not in as_environment(Settings(home=tmp_path))


def test_spark_compiles_quickly_for_a_few_trials():
    options = choose_compiler(20, {"SPARK_SUBMIT_OPTS": "-Dmine=1"})["SPARK_SUBMIT_OPTS"].split()
    assert options[0] == "-XX:TieredStopAtLevel=1"
    assert options[1].startswith("-XX:ReservedCodeCacheSize=")
    assert options[2:] == ["-Dmine=1"]
    assert choose_compiler(21, {}) == {}


def test_the_page_is_registered_once(tmp_path, monkeypatch):
    """By the entry point of what is installed, or by the folder of a checkout that is not."""
    monkeypatch.setattr("onceproof.pipeline.environment.entry_points", lambda **_: ["onceproof"])
    assert "AIRFLOW__CORE__PLUGINS_FOLDER" not in environment(Settings(home=tmp_path))
    monkeypatch.setattr("onceproof.pipeline.environment.entry_points", lambda **_: [])
    folder = environment(Settings(home=tmp_path))["AIRFLOW__CORE__PLUGINS_FOLDER"]
    assert (Path(folder) / "onceproof_page.py").exists()
