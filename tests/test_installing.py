"""What is installed: the wheel has what stands beside the package, and the plain install needs no extra."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from onceproof.model import extras
from onceproof.model.errors import UsageError
from onceproof.model.extras import BRINGS, PIPELINE, is_installed, require

ROOT = Path(__file__).parents[1]
INSIDE = "onceproof/_project/"
HEAVY = ("airflow", "pyspark", "great_expectations", "pyarrow", "pandas", "numpy", "scipy", "psycopg", "celery")
# Modules that only an extra, a migration or a process of its own imports.
ONLY_THERE = (
    "onceproof.airflow",
    "onceproof.cli.__main__",
    "onceproof.lab.sampling",
    "onceproof.processes.reaper",
    "onceproof.results.migrations",
)
# Refuses to find what is not there in a plain install, then runs the command.
PLAIN = f"""
import sys

class Plain:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HEAVY!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Plain())
import importlib, pkgutil, onceproof
for module in pkgutil.walk_packages(onceproof.__path__, "onceproof."):
    if not module.name.startswith({ONLY_THERE!r}):
        importlib.import_module(module.name)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The names of the files in the wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [file] = folder.glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        yield set(archive.namelist())


def shipped(*folders):
    """The files of the repository below folders, as the wheel names them."""
    listed = subprocess.run(
        [shutil.which("git") or "git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(listed.stdout.split())


def test_the_wheel_has_the_whole_package_and_its_companions(wheel):
    assert {name.removeprefix("src/") for name in shipped("src/onceproof")} <= wheel
    beside = shipped(
        "spark_jobs",
        "expectations",
        "dags",
        "examples/wordcount",
        "streams_app/src/main",
        "streams_agent/src/main",
    )
    jars = {
        f"{part}/target/onceproof-{part.replace('_', '-')}.jar" for part in ("streams_app", "streams_agent", "resolver")
    }
    inside = {name.removeprefix(INSIDE) for name in wheel if name.startswith(INSIDE)}
    assert inside == beside | jars


def test_nothing_is_installed_beside_the_package(wheel):
    assert {name.partition("/")[0].partition("-")[0] for name in wheel} == {"onceproof"}


def test_without_extras_every_module_can_be_imported():
    """A module that cannot must be one that only an extra runs."""
    done = subprocess.run(
        [sys.executable, "-c", PLAIN], cwd=ROOT, capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr[-2_000:]


def test_what_is_missing_is_one_sentence(monkeypatch):
    monkeypatch.setitem(BRINGS, PIPELINE, {"no_airflow": "Airflow", "no_spark": "Spark", "sys": "Python"})
    assert not is_installed(PIPELINE)
    with pytest.raises(
        UsageError, match=r"^A run needs Airflow and Spark, which are not installed: install the extra pip"
    ):
        require(PIPELINE, "A run")
    monkeypatch.setitem(BRINGS, PIPELINE, {"sys": "Python"})
    require(PIPELINE, "A run")
    assert set(extras.BRINGS) == {"pipeline", "parquet", "postgres", "workers"}
