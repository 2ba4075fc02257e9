"""The stages of the tests: what each selects, what it needs, and in which order workers take it."""

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from operator import eq
from pathlib import Path
from typing import Literal

import pytest
from rich.console import Console

from onceproof.results.nights import read_nights
from tests import durations, lanes, night, tools
from tests.commands import parse_command
from tests.docker import inputs
from tests.docker.conftest import CONTAINERS, Noting
from tests.present import present

Outcome = Literal["passed", "failed", "skipped"]


@pytest.fixture
def deployment(tmp_path, project):
    """A copy of the files that a deployment is made of."""
    for file in inputs.inputs(project):
        copy = tmp_path / file.relative_to(project)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return tmp_path


@pytest.mark.parametrize("file", ["Dockerfile", "requirements-image.lock", "deploy/spark.env", "deploy/new.env"])
def test_containers_are_due_if_a_file_of_theirs_has_changed(deployment, file):
    record = deployment / "passed.txt"
    assert not inputs.passed(deployment, record)  # they never did
    record.write_text(inputs.digest(deployment))
    assert inputs.passed(deployment, record)
    with (deployment / file).open("a") as changed:
        changed.write("\n")
    assert not inputs.passed(deployment, record)


@pytest.mark.parametrize(
    ("left", "outcome", "noted"),
    [(0, "passed", True), (1, "passed", False), (0, "failed", False), (0, "skipped", False)],
)
def test_that_they_passed_is_noted_if_all_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int, outcome: Outcome, noted: bool
) -> None:
    monkeypatch.setattr(inputs, "PASSED", tmp_path / "passed.txt")
    noting, file = Noting(), "tests/docker/test_containers.py"
    names = re.findall(r"^def (test_\w+)", CONTAINERS.read_text(), re.MULTILINE)
    others: list[tuple[str, Outcome]] = [(f"{file}::{name}[x]", "passed") for name in names[left + 1 :]]
    ended: list[tuple[str, Outcome]] = [
        ("tests/test_docs.py::x", "failed"),
        *others,
        (f"{file}::{names[left]}", outcome),
    ]
    for test, became in ended:
        for when in ("setup", "call", "teardown"):
            became_then: Outcome = became if when == "call" else "passed"
            noting.pytest_runtest_logreport(pytest.TestReport(test, (test, 1, test), {}, became_then, None, when))
    noting.pytest_sessionfinish()
    assert (tmp_path / "passed.txt").exists() == noted
    assert not noted or inputs.passed(record=tmp_path / "passed.txt")


def test_that_they_are_due_is_seen_before_anything_is_set_up(project):
    command = [sys.executable, "-I", "-S", project / "tests" / "docker" / "inputs.py"]
    assert subprocess.run(command, check=False).returncode == (0 if inputs.passed() else 1)


@pytest.fixture
def bare(monkeypatch):
    """A machine with PostgreSQL alone."""
    for name, tool in tools.TOOLS.items():
        monkeypatch.setitem(tools.TOOLS, name, tools.Tool(tool.missing, tool.remedy, partial(eq, name, "postgresql")))
    monkeypatch.delenv(tools.SKIP, raising=False)
    return monkeypatch


def test_a_missing_tool_is_named_with_its_remedy_and_opt_out(bare):
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


def test_durations_are_kept_also_of_tests_that_did_not_run(tmp_path):
    file = tmp_path / "durations.json"
    kept = durations.Durations(file)
    for test, seconds in (("a.py::x", 2.0), ("a.py::x", 0.5), ("a.py::short", 0.3)):
        kept.pytest_runtest_logreport(
            pytest.TestReport(test, (test, 1, test), {}, "passed", None, "call", duration=seconds)
        )
    kept.pytest_sessionfinish()
    assert durations.read(file) == {"a.py::x": 2.5}
    again = durations.Durations(file)
    again.pytest_runtest_logreport(
        pytest.TestReport("b.py::y", ("b.py", 1, "y"), {}, "passed", None, "call", duration=9)
    )
    again.pytest_sessionfinish()
    assert durations.read(file) == {"a.py::x": 2.5, "b.py::y": 9}


@pytest.fixture
def noted(tmp_path):
    """A command that notes that it ran, and returns a code; and what was noted."""
    notes = tmp_path / "notes"
    notes.touch()

    def step(name, code, **more):
        def says(word, ends):
            return (sys.executable, "-c", f"open({str(notes)!r}, 'a').write({word + ' '!r}); raise SystemExit({ends})")

        resumed = says(f"{name}-resumed", more.pop("resumes")) if "resumes" in more else ()
        return night.Step(name, "it", lambda _: says(name, code), resumed, **more)

    return step, lambda: notes.read_text().split()


def gone_through(steps, folder, *wanted):
    console = Console(record=True, width=200)
    nights = night.Night(steps, folder / "night", folder / "nights.jsonl")
    code = nights.run(wanted or [step.name for step in steps], console)
    console.print(nights.table())
    return code, console.export_text()


def test_a_night_repeats_what_failed_and_not_what_passed(tmp_path, noted):
    step, notes = noted
    code, output = gone_through([step("good", 0), step("bad", 7), step("not-wanted", 0)], tmp_path, "good", "bad")
    assert (code, notes()) == (1, ["good", "bad"])
    assert re.search(r"good .* passed", output)
    assert re.search(r"bad .* failed \(exit code 7\)", output)
    assert re.search(r"not-wanted .* not yet", output)
    assert gone_through([step("good", 0), step("bad", 0)], tmp_path)[0] == 0
    assert notes() == ["good", "bad", "bad"]
    recorded = read_nights(tmp_path / "nights.jsonl")
    assert [(one.version, one.step, one.became) for one in recorded] == [
        ("night", "bad", "passed"),
        ("night", "bad", "failed (exit code 7)"),
        ("night", "good", "passed"),
    ]


@pytest.mark.parametrize(("resumes", "ran"), [(0, ["run-resumed"]), (2, ["run-resumed", "run"])])
def test_an_interrupted_run_is_resumed_or_started_again(tmp_path, noted, resumes, ran):
    step, notes = noted
    folder = tmp_path / "night" / "run"
    folder.mkdir(parents=True)
    (folder / night.RESULT).write_text('{"begun": true}')  # as a killed one leaves it
    assert gone_through([step("run", 0, resumes=resumes)], tmp_path)[0] == 0
    assert notes() == ran


def test_a_step_whose_tool_is_left_out_says_so_and_fails_nothing(tmp_path, noted, bare):
    step, notes = noted
    bare.setenv(tools.SKIP, "docker")
    code, output = gone_through([step("containers", 1, needs="docker")], tmp_path)
    assert (code, notes()) == (0, [])
    assert "ONCEPROOF_TEST_SKIP leaves out what needs docker." in output


def test_results_are_those_of_one_version_of_the_code(tmp_path):
    def git(*words):
        command = [shutil.which("git"), "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
        subprocess.run(command, cwd=tmp_path, check=True)

    git("init", "-q")
    (tmp_path / "code").write_text("1")
    git("add", "code")
    git("commit", "-qm", "1")
    versions = [night.version_of(tmp_path)]
    (tmp_path / "tests" / "docker").mkdir(parents=True)
    for file in ("docker/passed.txt", "net.json"):
        (tmp_path / "tests" / file).write_text("written by a step of the night")
    assert night.version_of(tmp_path) == versions[0]
    for file in ("code", "new"):
        (tmp_path / file).write_text("2")
        versions.append(night.version_of(tmp_path))
    git("add", ".")
    git("commit", "-qm", "2")
    versions.append(night.version_of(tmp_path))
    assert len(set(versions)) == 4
    assert "-" not in versions[0] + versions[-1]


@pytest.mark.parametrize("step", night.STEPS, ids=lambda step: step.name)
def test_commands_of_onceproof_are_some(step, tmp_path):
    for command in filter(None, (step.command(tmp_path), step.resumed)):
        if tuple(command[:3]) == night.ONCEPROOF:
            parse_command(*command[3:])


def test_a_quick_stage_leaves_out_what_took_long(tmp_path, project):
    file = tmp_path / "durations.json"
    names = ["test_one", "test_other"]
    (tmp_path / "test_it.py").write_text("".join(f"def {name}(): pass\n" for name in names))
    file.write_text('{"test_it.py::test_one": 1.0}')
    command = [sys.executable, "-m", "pytest", "-v", "-p", "tests.conftest", "-p", "no:cacheprovider", "--quick"]
    done = subprocess.run(
        [*command, "--rootdir", tmp_path, tmp_path / "test_it.py"],
        env=os.environ | {"ONCEPROOF_DURATIONS": str(file), "PYTHONPATH": f"{project / 'src'}:{project}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed, 1 deselected" in done.stdout, done.stdout + done.stderr
    assert "test_other PASSED" in done.stdout


def test_short_units_come_first_then_the_longest():
    seconds = {
        "tests/lab/test_a.py::x": 20.0,
        "tests/lab/test_a.py::y": 15.0,
        "tests/spark_jobs/test_b.py::x": 30.0,
        "tests/expectations/test_c.py::x": 10.0,
        "tests/lab/test_d.py::x": 4.0,
        "tests/lab/test_e.py::night": 900.0,
    }
    new = [f"tests/lab/test_new.py::{number}" for number in range(3)]
    tests = [*list(seconds)[:-1], "tests/lab/test_e.py::x", *new]
    by_unit = lanes.places(dict.fromkeys(tests, 12.5), seconds)
    order = sorted(by_unit, key=by_unit.__getitem__)
    assert order[:2] == ["tests/lab/test_d.py", "tests/lab/test_e.py"]
    assert order[2:] == ["a Spark session", "tests/lab/test_new.py", "tests/lab/test_a.py"]


NEEDED = ("bash", "dirname", "id", "sed")


@pytest.fixture
def ci(tmp_path, project):
    """CI's script in a folder, with the programs that are given and stand-ins for make and go; what it came to.

    There is no apt-get, so it installs nothing; PostgreSQL it finds where it is.
    """

    def run(*programs, makes=0, record="exit 0"):
        folder, bin_ = tmp_path / "project", tmp_path / "bin"
        shutil.copytree(project / ".ci", folder / ".ci")
        (folder / "src" / "onceproof" / "lab").mkdir(parents=True)
        (folder / "src" / "onceproof" / "lab" / "toxiproxy.py").touch()
        bin_.mkdir()
        for name in NEEDED:
            (bin_ / name).symlink_to(present(shutil.which(name)))
        (bin_ / "python3").symlink_to(Path(sys.executable).resolve())
        scripts = {
            "make": f'echo "make $1 without $ONCEPROOF_TEST_SKIP"; [ $1 = setup ] || exit {makes}',
            "go": "exit 1",
        }
        for name, script in {**dict.fromkeys(programs, "exit 0"), **scripts}.items():
            (bin_ / name).write_text(f"#!{bin_}/bash\n{script}\n")
            (bin_ / name).chmod(0o755)
        (folder / ".venv" / "bin").mkdir(parents=True)
        (folder / ".venv" / "bin" / "python").write_text(f"#!{bin_}/bash\n{record}\n")
        (folder / ".venv" / "bin" / "python").chmod(0o755)
        environment = {"PATH": str(bin_), "ONCEPROOF_TEST_SKIP": ""}
        done = subprocess.run(
            [folder / ".ci" / "run"], env=environment, capture_output=True, text=True, check=False, cwd=folder
        )
        return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()

    return run


HAS_POSTGRESQL = bool(list(Path("/usr/lib/postgresql").glob("*/bin/initdb")))
NO_POSTGRESQL = [] if HAS_POSTGRESQL else ["postgresql"]


def test_ci_fails_at_the_end_if_something_due_was_left_out(ci):
    code, ran, said = ci()
    assert code == 1
    assert ran[-1] == f"make test without {','.join([*NO_POSTGRESQL, 'browser', 'toxiproxy'])}"
    assert said[-2:] == [
        "Chromium could not be installed, so the tests that need it did not run.",
        "Toxiproxy could not be installed, so the tests that need it did not run.",
    ]


@pytest.mark.parametrize(("makes", "code"), [(0, 0), (2, 2)])
@pytest.mark.postgresql
def test_ci_ends_as_the_tests_do_if_nothing_was_left_out(ci, makes, code):
    ended, ran, said = ci("chromium", "toxiproxy-server", makes=makes)
    assert (ended, ran[-1], said) == (code, "make test without ", [])


@pytest.mark.postgresql
def test_ci_fails_without_a_track_record_after_all_else_ran(ci):
    code, ran, said = ci("chromium", "toxiproxy-server", record="echo There is none. >&2; exit 1")
    assert (code, ran[-1], said) == (1, "make test without ", ["There is none."])
