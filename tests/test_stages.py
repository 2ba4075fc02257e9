"""The stages of the tests: what each selects, what it needs, and in which order workers take it."""

import shutil
import subprocess
import sys

import pytest

from tests import durations, tools
from tests.docker import inputs


@pytest.fixture
def deployment(tmp_path, project):
    """A copy of the files that a deployment is made of."""
    for file in inputs.inputs(project):
        copy = tmp_path / file.relative_to(project)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return tmp_path


@pytest.mark.parametrize("file", ["Dockerfile", "requirements-image.lock", "deploy/spark.env", "deploy/new.env"])
def test_containers_are_due_if_a_file_of_theirs_has_changed_since_they_passed(deployment, file):
    record = deployment / "passed.txt"
    assert not inputs.passed(deployment, record)  # they never did
    record.write_text(inputs.digest(deployment))
    assert inputs.passed(deployment, record)
    with (deployment / file).open("a") as changed:
        changed.write("\n")
    assert not inputs.passed(deployment, record)


def test_that_they_are_due_is_seen_before_anything_is_set_up(project):
    command = [sys.executable, "-I", "-S", project / "tests" / "docker" / "inputs.py"]
    assert subprocess.run(command, check=False).returncode == (0 if inputs.passed() else 1)


@pytest.fixture
def bare(monkeypatch):
    """A machine with PostgreSQL alone."""
    for name, tool in tools.TOOLS.items():
        monkeypatch.setitem(tools.TOOLS, name, tools.Tool(tool.missing, tool.remedy, lambda name=name: name == "postgresql"))
    monkeypatch.delenv(tools.SKIP, raising=False)
    return monkeypatch


def test_a_tool_that_is_missing_is_named_with_its_remedy_and_how_to_do_without(bare):
    [sentence] = tools.missing(["postgresql", "browser"])
    assert sentence == (
        "There is no Chromium on the PATH: apt-get install chromium, or leave out the tests that need it by "
        "ONCEPROOF_TEST_SKIP=browser."
    )
    assert tools.unavailable("browser") == sentence
    bare.setenv(tools.SKIP, "browser, docker")
    assert tools.missing(tools.TOOLS) == [tools.unavailable("toxiproxy")]
    assert tools.unavailable("browser") == "ONCEPROOF_TEST_SKIP leaves out what needs browser."
    assert tools.unavailable("postgresql") is None


def test_what_is_left_out_must_be_a_tool(bare, capsys):
    bare.setenv(tools.SKIP, "chromium")
    assert tools.main() == 2
    assert capsys.readouterr().err == (
        "ONCEPROOF_TEST_SKIP names chromium: it may name postgresql, browser, toxiproxy, docker.\n"
    )


def test_durations_are_kept_and_those_of_tests_that_did_not_run_stay(tmp_path):
    file = tmp_path / "durations.json"
    kept = durations.Durations(file)
    for test, seconds in (("a.py::x", 2.0), ("a.py::x", 0.5), ("a.py::short", 0.3)):
        kept.pytest_runtest_logreport(pytest.TestReport(test, (test, 1, test), {}, "passed", None, "call", duration=seconds))
    kept.pytest_sessionfinish()
    assert durations.read(file) == {"a.py::x": 2.5}
    again = durations.Durations(file)
    again.pytest_runtest_logreport(
        pytest.TestReport("b.py::y", ("b.py", 1, "y"), {}, "passed", None, "call", duration=9)
    )
    again.pytest_sessionfinish()
    assert durations.read(file) == {"a.py::x": 2.5, "b.py::y": 9}
