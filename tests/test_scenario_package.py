"""A scenario and a fault in a package of their own (`examples/scenario-package`), installed and run."""

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

EXAMPLE = ROOT / "examples" / "scenario-package"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Variables of a Python that has the package installed beside Onceproof."""
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(target), str(EXAMPLE)], check=True, capture_output=True, text=True)
    path = os.pathsep.join(map(str, (target, ROOT / "src", ROOT)))
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def python(environment, code, *words):
    """What a script prints, as JSON."""
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def onceproof(environment, *words):
    command = [sys.executable, "-m", "onceproof.cli", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_its_scenario_is_the_one_of_the_tutorial():
    page = (ROOT / "docs" / "tutorials" / "scenario.md").read_text()
    assert (EXAMPLE / "src" / "onceproof_example" / "second_scan.py").read_text() in page


DRIVEN = """
import json, sys
from pathlib import Path
from tests.conftest import a_trial
from tests.fakes.world import fake_driver

def drive(name, **parameters):
    driver = fake_driver(a_trial("4.3.1", scenario=name, **parameters), Path(sys.argv[1]) / name)
    told = driver.scenario.drive(driver.lab)
    return {"exercised": told.exercised, "reason": told.reason}

print(json.dumps([drive("second-scan"), drive("table-join", fault="absence", **{"absence.seconds": 10.0})]))
"""
VERSIONS = """
import json
from pathlib import Path
import onceproof_example
from onceproof import harness

def versions():
    for cached in (harness.harness_version, harness._sources, harness._digest):
        cached.cache_clear()
    return harness.harness_versions()

found = [versions()]
for name in ("second_scan", "absence"):
    file = Path(onceproof_example.__file__).with_name(f"{name}.py")
    text = file.read_text()
    file.write_text(text + "\\nWAIT = 2\\n")
    found.append(versions())
    file.write_text(text)
print(json.dumps(found))
"""


def test_both_can_be_driven_in_the_simulated_world(environment, tmp_path):
    scan, joined = python(environment, DRIVEN, str(tmp_path))
    assert scan["exercised"]
    assert "scans met a key that was not in the cache" in scan["reason"]
    assert joined["exercised"], joined["reason"]
    assert "was closed in" in joined["reason"]


def test_commands_know_it_and_it_can_be_in_a_matrix(environment):
    listed = onceproof(environment, "scenario", "list")
    assert "second-scan" in listed.stdout
    unknown = onceproof(environment, "trial", "second-sca", "--streams", "4.3.1")
    assert unknown.returncode == 2
    assert "second-scan" in unknown.stderr
    code = 'import json; from onceproof.scenarios import CATALOGUE; print(json.dumps([*CATALOGUE["second-scan"].variants]))'
    assert python(environment, code) == ["DEFAULT_CONFIG", "CACHING_DISABLED"]


def test_its_sources_are_part_of_the_version_of_the_harness(environment):
    first, *edited = python(environment, VERSIONS)
    changed = [{name for name in first if first[name] != now[name]} for now in edited]
    assert changed == [{"second-scan"}, {"app"}]


def test_a_package_that_cannot_be_loaded_is_one_sentence(environment, tmp_path):
    broken = tmp_path / "broken-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[onceproof.faults]\nodd = nowhere.to_be_found\n")
    path = f"{tmp_path}{os.pathsep}{environment['PYTHONPATH']}"
    done = onceproof({**environment, "PYTHONPATH": path}, "release", "list", "--json")
    assert (done.returncode, done.stdout.count("\n")) == (2, 1)
    answer = json.loads(done.stdout)["error"]
    assert answer.startswith(
        "The entry point odd = nowhere.to_be_found of broken 1.0 in onceproof.faults cannot be loaded"
    )


@pytest.mark.broker
@pytest.mark.night
def test_a_trial_of_it_is_red_where_the_bug_is(environment):
    done = onceproof(environment, "trial", "second-scan", "--streams", "3.9.0", "--seed", "1", "--json")
    assert done.returncode == 1, done.stderr
    assert "ghost-key" in done.stdout
