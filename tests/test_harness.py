"""The version of the harness changes with what could change a trial of the scenario, and with nothing else."""

import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from onceproof import faults, harness, scenarios
from onceproof.harness import harness_version, harness_versions
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the sources."""
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in harness.JAVA:
        shutil.copytree(ROOT / name / "src" / "main", root / name / "src" / "main")
    return root / "src" / "onceproof"


@pytest.fixture
def package(copied, monkeypatch):
    """A copy of the sources, whose versions the harness says."""
    monkeypatch.setattr(harness, "PACKAGE", copied)
    monkeypatch.setattr(harness, "PROJECT", copied.parents[1])
    _forget()
    yield copied
    _forget()


def _forget():
    for cached in (harness_version, harness._sources, harness._digest):
        cached.cache_clear()


@cache
def versions_of(_: Path) -> dict[str, str]:
    """Those of the copy as it was made, which every test leaves as it found it."""
    return harness_versions()


def changed_by(*files: Path, by: str = "\nWAIT = 2\n", part: slice = slice(None)) -> set[str]:
    """The scenarios of whose version another line at the end of these files changes a part: of its two digests."""
    first = versions_of(harness.PACKAGE)
    texts = {file: file.read_text() for file in files}
    for file, text in texts.items():
        file.write_text(text + by)
    _forget()
    now = harness_versions()
    for file, text in texts.items():
        file.write_text(text)
    _forget()
    return {name for name, version in now.items() if version.split(".")[-2:][part] != first[name].split(".")[-2:][part]}


ALL = {*scenarios.SCENARIOS, "app"}


def test_it_is_the_package_s_version_and_a_digest():
    assert re.fullmatch(r"\d+\.\d+\.\d+\+[0-9a-f]{8}\.[0-9a-f]{8}", harness_version("crash"))


def test_an_edit_of_a_scenario_changes_versions_of_its_importers(package):
    room = package / "scenarios"
    assert changed_by(room / "quota.py") == {"quota"}
    assert changed_by(room / "enumerator.py") == {"enumerator", "idle-task", "crash"}
    changed = changed_by(room / "two_instances.py")
    assert changed >= {"as-of-join", "multirunner"}
    assert changed.isdisjoint({"quota", "crash", "migration", "app"})


def test_an_edit_of_a_fault_changes_versions_of_its_scenarios(package):
    def allows(name: str) -> set[str]:
        return {one for one in ALL if faults.FAULTS[name] in scenarios.scenario(one).faults}

    for name in ("partition", "topology-pause", "disk-full"):
        file = package / "faults" / f"{faults.FAULTS.modules[name].rpartition('.')[2]}.py"
        assert changed_by(file) == allows(name) != ALL


@pytest.mark.parametrize(
    "name",
    [
        "lab/trial.py",
        "processes/reaper.py",
        "lab/log4j.properties",
        "readers/checks.py",
        "model/phrases.py",
        "scenarios/base.py",
    ],
)
def test_an_edit_of_driving_or_reading_code_changes_all_versions(package, name):
    assert changed_by(package / name) == ALL


@pytest.mark.parametrize(("name", "part"), [("lab/trial.py", "drives"), ("readers/checks.py", "judges")])
def test_what_drives_and_what_judges_have_a_digest_each(package, name, part):
    parts = {"drives": slice(0, 1), "judges": slice(1, 2)}
    for other, of in parts.items():
        assert changed_by(package / name, part=of) == (ALL if other == part else set())


def test_a_trial_judged_again_keeps_the_version_of_its_drive(package):
    package_version, _, digests = harness_version("crash").partition("+")
    assert harness.judged_now("0.1.0+11111111.22222222", "crash") == f"0.1.0+11111111.{digests[-8:]}"
    assert harness.judged_now(harness_version("crash"), "crash") == harness_version("crash")
    assert package_version.count(".") == 2


def test_an_edit_of_the_jars_changes_all_versions(package):
    assert changed_by(next((package.parents[1] / "streams_app").rglob("Instance.java")), by="interface Two {}") == ALL
    assert changed_by(next((package.parents[1] / "streams_agent").rglob("Agent.java")), by="interface Two {}") == ALL


def test_an_edit_of_prose_changes_none(package):
    files = [package / "lab" / "trial.py", package / "scenarios" / "quota.py"]
    assert changed_by(*files, by="\n\n# It is so because of KIP-1.\n") == set()
    assert (
        changed_by(next((package.parents[1] / "streams_app").rglob("Instance.java")), by="/** More. */ // 2") == set()
    )


def test_an_edit_of_code_outside_trials_changes_no_version(package):
    rooms = [package / room for room in ("campaigns", "cli", "page", "results", "pipeline", "advice")]
    beside = [package / "lab" / "comparing.py", package / "lab" / "sweep.py"]
    assert changed_by(*(file for room in rooms for file in room.rglob("*.py")), *beside) == set()


@pytest.mark.parametrize("registry", ["scenarios", "faults"])
def test_a_new_scenario_changes_no_other_version_but_a_rule_does(package, registry):
    file = package / registry / "__init__.py"
    assert changed_by(file, by="\nfrom onceproof.lab import comparing\nMORE = (comparing,)\n") == set()
    assert changed_by(file, by="\n\ndef rule():\n    return 2\n") == ALL


def test_a_version_of_several_scenarios_changes_with_each(package):
    search = package / "campaigns" / "search"

    def version(*names):
        _forget()
        return harness_version(*names, beside=search)

    first, every = version("quota", "crash"), version()
    assert len({first, every, harness_version("quota", "crash"), harness_version("crash", beside=search)}) == 4
    for file in (package / "scenarios" / "quota.py", search / "grammar.py"):
        text = file.read_text()
        file.write_text(text + "\nWAIT = 2\n")
        assert version("quota", "crash") != first
        assert version() != every
        file.write_text(text)
    other = package / "scenarios" / "windows.py"
    text = other.read_text()
    other.write_text("WAIT = 2\n")
    assert version("quota", "crash") == first
    assert version() != every
    other.write_text(text)


def test_it_is_the_same_in_a_wheel(package, monkeypatch):
    in_checkout = harness_version("crash")
    inside = package / "_project"
    for name in harness.JAVA:
        shutil.copytree(package.parents[1] / name, inside / name)
    monkeypatch.setattr(harness, "PROJECT", inside)
    _forget()
    assert harness_version("crash") == in_checkout
    shutil.rmtree(inside)
