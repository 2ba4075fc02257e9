"""`docs/adding-*.md` say all that it takes to add something: a toy of each kind is made in a copy of the tree.

A toy touches exactly the files of its page's table. Java is not compiled here: its tests would need Maven.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
Change = str | list[tuple[str, str]]  # what is appended to a file, or pairs of a text and its replacement


@dataclass(frozen=True)
class Toy:
    """Something that is added: the page that says how, what it may touch at most, and what proves that it exists."""

    page: str
    most: int
    changes: Mapping[str, Change]
    proof: str  # code that runs in the copy
    registered: str  # the file without which nobody knows it
    stands_for: Mapping[str, str]  # what each placeholder of the page means


SCENARIO = Toy(
    "adding-a-scenario.md",
    11,
    {
        "src/onceproof/scenarios/toy.py": '''"""A toy: the story of `scan`, told of a topology of its own."""

from dataclasses import replace

from onceproof.scenarios import scan

SYSTEM = replace(scan.SYSTEM, topology="toy")
SCENARIO = replace(scan.SCENARIO, name="toy", title="A toy (KAFKA-1)", system=lambda _: SYSTEM)
''',
        "src/onceproof/scenarios/__init__.py": [
            ("from onceproof.scenarios import (\n", "from onceproof.scenarios import (\n    toy,\n"),
            ("_MODULES = (", "_MODULES = (toy, "),
        ],
        "src/onceproof/model/matrices.toml": """
[[nightly.blocks]]
scenario = "toy"
variants = ["DEFAULT_CONFIG"]
streams = ["3.9.0", "3.9.1"]
""",
        "src/onceproof/model/known_issues.toml": """
[[issue]]
key = "KAFKA-1"
title = "A toy is broken"
variants.toy = ["DEFAULT_CONFIG"]
affected = [{ first = "3.9.0", last = "3.9.0" }]
fixed = ["3.9.1"]
symptom = "It is seen to be broken."
condition = "It is played with."
remedy = "Go to 3.9.1."
needs = { caching = true }
sources = ["Own runs: red on 3.9.0"]
[[issue.explains]]
anomalies = ["ghost-key"]
open_at = "cold"
""",
        "docs/scenarios/toy.md": (
            "# toy\n\n`DEFAULT_CONFIG` `IN_MEMORY` `AT_LEAST_ONCE` `CACHING_DISABLED` `WARM_CACHE` shows `ghost-key`.\n"
        ),
        "tests/scenarios/test_drives.py": [
            (
                "WAYS = [\n",
                'WAYS = [\n    Way("toy", "its cache is warm", False, "times, 0 times with", "WARM_CACHE"),\n',
            ),
            ("*(10_000,", "*(2_000, 10_000,"),
        ],
        "tests/system/test_each_scenario.py": [("GREEN_OR_KNOWN = (\n", 'GREEN_OR_KNOWN = (\n    Small("toy"),\n')],
        "streams_app/src/main/java/onceproof/streams/Toy.java": "package onceproof.streams;\n\nfinal class Toy {}\n",
        "streams_app/src/main/java/onceproof/streams/Topologies.java": [
            ("Map.ofEntries(\n", 'Map.ofEntries(\n                    Map.entry("toy", Scans::topology),\n')
        ],
        "src/onceproof/readers/checks.py": [("Findings]] = {\n", 'Findings]] = {\n    "toy": check_scans,\n')],
        "spark_jobs/checks.py": [("CHECKS = {\n", 'CHECKS = {\n    "toy": Check(("scans", "stores"), _of_scans),\n')],
    },
    """
from onceproof.model.known_issues import registry
from onceproof.model.matrix import Request
from onceproof.readers.checks import CHECKS
from spark_jobs.checks import state_trial
from tests.published import expanded

affected, fixed = expanded(Request("nightly", scenarios=("toy",))).cells
assert [issue.key for issue in registry().affecting(affected)] == ["KAFKA-1"]
assert not registry().affecting(fixed)
assert [log["promise"] for log in state_trial("t", 1, "toy", 2, {})["logs"]] == ["output-order", "changelog"]
assert CHECKS["toy"]({role: [] for role in ("input", "output", "records-changelog")}, {"exactly_once": 1}).records == 0
tests("tests/test_docs.py", "tests/scenarios/test_drives.py", only="toy")
tests("tests/system/test_each_scenario.py", only="has_its_trial")
""",
    registered="src/onceproof/scenarios/__init__.py",
    stands_for={"<name>": "toy", "<Name>": "Toy"},
)

ANOMALY = Toy(
    "adding-an-anomaly.md",
    3,
    {
        "src/onceproof/model/promise.py": [
            (
                "    for anomaly in (\n        Anomaly(",
                '    for anomaly in (\n        Anomaly("toy-breach", "A toy is broken.", "toy"),\n        Anomaly(',
            ),
            ('("thread-died", "stuck",', '("toy-breach", "thread-died", "stuck",'),
        ],
        "src/onceproof/scenarios/liveness.py": [
            (
                '        elif event["event"] == "uncaught":',
                '        elif event["event"] == "toy":\n'
                '            yield Comparison(PROMISE, "toy-breach", 0, None, event["source"], "whole", "broken")\n'
                '        elif event["event"] == "uncaught":',
            )
        ],
        "docs/reading-a-verdict.md": [
            (
                "| name | it means | one witness per |\n| -- | -- | -- |\n",
                "| name | it means | one witness per |\n| -- | -- | -- |\n| `toy-breach` | A toy is broken. | toy |\n",
            )
        ],
    },
    """
from onceproof.model.promise import meaning, map_suites
from onceproof.scenarios.liveness import compare_liveness

[seen] = compare_liveness([{"t": 1, "source": "instance-1", "event": "toy"}])
assert (seen.anomaly, meaning(seen.anomaly)) == ("toy-breach", "A toy is broken.")
assert [suite for suite, names in map_suites().items() if "toy-breach" in names] == ["liveness"]
tests("tests/test_docs.py", only="anomalies_are")
""",
    registered="src/onceproof/model/promise.py",
    stands_for={"<module>": "liveness"},
)

FAULT = Toy(
    "adding-a-fault.md",
    3,  # including its row in the docs
    {
        "src/onceproof/faults/toy.py": '''"""A toy: it strikes nobody, and is seen to."""

from collections.abc import Mapping, Sequence
from typing import Any

from onceproof.faults.base import Fault, FaultRun


class Toy(FaultRun):
    """Nothing is done."""

    patience = 1.0

    def apply(self) -> str:
        return "nobody"

    def has_taken_effect(self) -> bool:
        return True

    def heal(self) -> None:
        pass

    def has_recovered(self) -> bool:
        return True

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        return {"seen": True}, [], "It struck nobody."


FAULT = Fault("toy", "It strikes nobody.", "Nothing is to be undone.", "it takes nothing", Toy)
''',
        "src/onceproof/faults/__init__.py": [
            (
                "from onceproof.faults.base import",
                "from onceproof.faults import toy\nfrom onceproof.faults.base import",
            ),
            ("_MODULES = (", "_MODULES = (toy, "),
            ("OF_GROUPS = (", "OF_GROUPS = (toy.FAULT, "),
        ],
        "docs/faults.md": [
            (
                "| `pause` | an",
                "| `toy` | nothing: `enumerator`, `multirunner`, `as-of-join`, `foreign-key-join`, `global-join`, `stream-join`, "
                "`table-join`, `windows`, `punctuators` | | |\n"
                "| `pause` | an",
            )
        ],
    },
    """
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conftest import a_trial
from tests.fakes.world import fake_driver

for scenario in ("enumerator", "multirunner"):
    with TemporaryDirectory() as folder:
        driver = fake_driver(a_trial("4.3.1", scenario=scenario, fault="toy"), Path(folder))
        outcome = driver.outcome(driver.drive())
        driver.stop()
        assert (outcome.exercised, outcome.reason) == (True, "It struck nobody."), outcome.reason
        assert outcome.fault.observed == {"seen": True}
tests("tests/faults/test_faults.py", only="every_fault")
""",
    registered="src/onceproof/faults/__init__.py",
    stands_for={"<name>": "toy"},
)

BROKERS = Toy(
    "adding-brokers.md",
    3,
    {
        "src/onceproof/lab/toy.py": '''"""Brokers that are toys."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from onceproof.lab.cluster import Cluster
from onceproof.model.release import Release


@dataclass(frozen=True)
class ToyCluster(Cluster):
    """They allow nothing."""

    bootstrap_servers: str
    release: Release = Release(3, 9, 1)


def lent_toy(servers: str) -> AbstractContextManager[Cluster]:
    return nullcontext(ToyCluster(servers))
''',
        "src/onceproof/cli/asking.py": [
            (
                "VariantOption =",
                'ToyOption = Annotated[str | None, typer.Option("--toy", help="Brokers that are toys.")]\nVariantOption =',
            )
        ],
        "src/onceproof/cli/trials.py": [
            ("    BrokersOption,\n", "    BrokersOption,\n    ToyOption,\n"),
            (
                "    brokers: BrokersOption = None,\n    maven_repo",
                "    brokers: BrokersOption = None,\n    toy: ToyOption = None,\n    maven_repo",
            ),
            (
                "    from onceproof.lab.trial import run_alone\n",
                "    from onceproof.lab.toy import lent_toy\n    from onceproof.lab.trial import run_alone\n",
            ),
            (
                "run_alone(trial_, folder, cluster, report)",
                "run_alone(trial_, folder, lent_toy(toy), report)",
            ),
        ],
    },
    """
import pytest
from onceproof.cli import trials
from onceproof.lab import trial
from onceproof.lab.plan import check_capabilities, plan_of
from onceproof.model.errors import UsageError
from onceproof.scenarios.prepared import PreparedTrial
from tests.conftest import a_trial

def run_alone(trial_, folder, brokers, report):
    with brokers as cluster:
        assert set(plan_of(PreparedTrial(trial_), cluster).not_looked_at) == {"atomicity", "isolation", "fencing", "internal-topics"}
    with pytest.raises(UsageError, match="needs to kill .*, which the brokers at nowhere do not allow"):
        check_capabilities(a_trial("4.3.1", fault="broker-kill", nodes=3), cluster)
    raise UsageError("It got there.")

trial.run_alone, trials.cell_of = run_alone, lambda *_: (a_trial("4.3.1").cell, {})
with pytest.raises(UsageError, match="It got there"):
    trials.trial("enumerator", streams="4.3.1", toy="nowhere")
""",
    registered="src/onceproof/cli/trials.py",
    stands_for={"<name>": "toy"},
)
TOYS = [SCENARIO, ANOMALY, FAULT, BROKERS]
PREAMBLE = """
import subprocess, sys
from pathlib import Path
import onceproof
assert Path(onceproof.__file__).is_relative_to(Path.cwd()), onceproof.__file__

def tests(*files, only):
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files, "-k", only], check=True)
"""


def listed(toy: Toy) -> list[str]:
    """The files that the table of its page names, for this toy."""
    named = re.findall(r"^\| \d+ \| `([^`]+)` \|", (ROOT / "docs" / toy.page).read_text(), re.MULTILINE)
    for placeholder, name in toy.stands_for.items():
        named = [file.replace(placeholder, name) for file in named]
    return named


def copied(toy: Toy, copy: Path, without: str = "") -> None:
    """A copy of the tree in which the toy is made, except for what it would change in one file."""
    ignored = shutil.ignore_patterns(".git", ".venv", ".onceproof", "target", ".*cache*")  # what is compiled stays
    shutil.copytree(ROOT, copy, ignore=ignored, dirs_exist_ok=True)
    for name, change in toy.changes.items():
        if name == without:
            continue
        file = copy / name
        text = file.read_text() if file.exists() else ""
        for old, new in [] if isinstance(change, str) else change:
            assert text.count(old) == 1, (name, old, text.count(old))
            text = text.replace(old, new)
        file.write_text(text + change if isinstance(change, str) else text)


def run(copy: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the copy, with the code of the copy."""
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{copy}", "ONCEPROOF_HOME": str(copy / "home")}
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)


def proved(toy: Toy, copy: Path) -> subprocess.CompletedProcess[str]:
    return run(copy, sys.executable, "-c", PREAMBLE + toy.proof)


@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.page)
def test_what_a_page_lists_is_enough_and_not_too_much(toy: Toy, tmp_path: Path) -> None:
    assert sorted(listed(toy)) == sorted(toy.changes)
    assert len(toy.changes) <= toy.most
    copied(toy, tmp_path)
    done = proved(toy, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    linted = run(tmp_path, str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache")
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.page)
def test_what_nobody_registered_is_not_there(toy: Toy, tmp_path: Path) -> None:
    copied(toy, tmp_path, without=toy.registered)
    assert proved(toy, tmp_path).returncode != 0
