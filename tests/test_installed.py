"""The wheel as a user has it: in an environment of its own, outside of the checkout, with a home of its own.

`ONCEPROOF_TEST_WHEEL` names a wheel that is there, `ONCEPROOF_TEST_PYTHONS` versions of Python, by commas.
"""

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from onceproof.settings import get_settings
from tests.wheels import ROOT, build_wheel, install, outside

pytestmark = [pytest.mark.broker, pytest.mark.night, pytest.mark.timeout(1800)]

PYTHONS = os.environ.get("ONCEPROOF_TEST_PYTHONS", f"{sys.version_info.major}.{sys.version_info.minor}").split(",")
MAX_MEGABYTES = 250  # of a plain install


@dataclass(frozen=True)
class Installed:
    """The command of an environment, and a folder in which it runs."""

    command: Path
    folder: Path

    def __call__(self, *words: str, code: int = 0) -> str:
        """What it prints; it must end with this exit code."""
        environment = outside(self.command.parent, ONCEPROOF_HOME=str(self.folder / "home"))
        done = subprocess.run(
            [self.command, *words], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if given := os.environ.get("ONCEPROOF_TEST_WHEEL"):
        return Path(given).absolute()
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module", params=PYTHONS)
def onceproof(request, wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    commands = install(folder / "venv", request.param, str(wheel))
    (folder / "home").mkdir()
    (folder / "home" / "artifacts").symlink_to(get_settings().artifacts)
    return Installed(commands / "onceproof", folder)


def test_it_is_this_version_and_small(onceproof):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert onceproof("--version").startswith(f"onceproof {version}, harness {version}+")
    venv = onceproof.folder / "venv"
    size = sum(file.lstat().st_size for file in venv.rglob("*") if file.is_file())
    assert size < MAX_MEGABYTES * 1_000_000


def test_demo_is_red_and_green(onceproof):
    said = onceproof("demo")
    assert "duplicate-id" in said
    assert "✔ no anomaly" in said or "That is another bug, KAFKA-18943, which shows here now and then." in said


def test_advise_answers(onceproof):
    assert "KAFKA-" in onceproof("advise", "3.9.1", "4.4.0", "--json", code=1)  # something is known against it


def test_an_application_is_made_and_run(onceproof):
    onceproof("app", "init", "my-app")
    assert "4.4.0 green" in onceproof("app", "run", "my-app", "--streams", "4.4.0", "--seed", "1")
