"""Which trials of the net are a part of a change."""

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from onceproof import harness
from onceproof.model.json_file import write_json
from tests import net
from tests.conftest import ROOT
from tests.track_record import MOST_DAYS

NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A copy of the sources behind trials."""
    root = tmp_path_factory.mktemp("project")
    for folder in ("src", *(f"{name}/src/main" for name in harness.JAVA)):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture(scope="module")
def first(sources):
    """The digest of a trial as long as none of them is altered."""
    return digest(sources)


def digest(root, scenario="crash", trial="it"):
    harness._digest.cache_clear()
    return net.digest_of(scenario, trial, harness.Sources(root / "src" / "onceproof", root))


@pytest.mark.parametrize(
    ("file", "added", "changes"),
    [
        ("src/onceproof/scenarios/crash.py", "WAIT = 2\n", True),
        ("src/onceproof/lab/reader.py", "WAIT = 2\n", True),
        ("src/onceproof/scenarios/quota.py", "WAIT = 2\n", False),  # another scenario
        ("src/onceproof/readers/checks.py", "WAIT = 2\n", False),  # the corpus sees it
        ("src/onceproof/page/app.py", "WAIT = 2\n", False),
        ("src/onceproof/lab/reader.py", "# It is so because of KIP-1.\n", False),
    ],
)
def test_a_digest_changes_with_what_could_alter_how_a_trial_ends(sources, first, file, added, changes):
    text = (sources / file).read_text()
    (sources / file).write_text(f"{text}\n{added}")
    after = digest(sources)
    (sources / file).write_text(text)
    assert (after != first) == changes


def test_a_digest_is_of_one_trial(sources, first):
    assert digest(sources, trial="it, with a fault") != first


DIGESTS = """
import json
from tests.net import _began
from tests.system.test_each_scenario import NET
print(json.dumps([*((str(small), small.digest) for small in NET), _began().isoformat()]))
"""


def test_all_processes_agree_on_which_trials_are_due():
    net.NetRecord()  # as before they are started
    printed = [
        subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env=os.environ | {"PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert len(json.loads(printed[0])) > 1
    assert printed == printed[:1] * 3


def passed(name, digest, *, outcome="passed", when="call"):
    return pytest.TestReport(name, (name, 1, name), {}, outcome, None, when, user_properties=[(net.NOTED, digest)])


def test_a_trial_is_due_until_it_has_passed_with_these_sources(tmp_path):
    record = tmp_path / "net.json"
    assert net.is_due("crash", "1", record)
    kept = net.NetRecord(record)
    kept.pytest_runtest_logreport(passed("a", "crash 1"))
    kept.pytest_runtest_logreport(passed("b", "quota 1", outcome="failed"))
    kept.pytest_runtest_logreport(passed("c", "leaks 1", when="setup"))
    kept.pytest_sessionfinish()
    assert not net.is_due("crash", "1", record)
    assert net.is_due("crash", "2", record)
    assert net.is_due("quota", "1", record)
    assert net.is_due("leaks", "1", record)


def test_a_trial_that_passed_long_ago_is_due(tmp_path):
    record = tmp_path / "net.json"
    old = (NOW - timedelta(days=MOST_DAYS, seconds=1)).isoformat()
    write_json(record, {"crash": {"digest": "1", "passed": old}})
    assert net.is_due("crash", "1", record, NOW)
    assert not net.is_due("crash", "1", record, NOW - timedelta(seconds=2))
    other = net.NetRecord(record)
    other.pytest_runtest_logreport(passed("b", "quota 1"))
    other.pytest_sessionfinish()
    assert sorted(net._read(record)) == ["crash", "quota"]


def test_a_session_without_trials_of_the_net_writes_nothing(tmp_path):
    net.NetRecord(tmp_path / "net.json").pytest_sessionfinish()
    assert not (tmp_path / "net.json").exists()
