"""A deployment in real containers: one for all tests, with its own volumes, network and secrets."""

import json
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from filelock import FileLock

from onceproof.lab.cluster import free_ports
from onceproof.pipeline.api import FINISHED, AirflowApi
from onceproof.pipeline.supervisor import DAG
from onceproof.processes.waiting import await_condition
from tests.docker.inputs import digest, note
from tests.tools import unavailable

ROOT = Path(__file__).parents[2]
DOCKER, MAKE = shutil.which("docker") or "docker", shutil.which("make") or "make"
CONTAINERS = Path(__file__).with_name("test_containers.py")
STAND_INS = Path(__file__).parent  # a folder for each service whose image is not ours
PROJECT_LABEL = "com.docker.compose.project"
BUILD, UP, RUN = 1200, 900, 1500  # seconds at most
IMAGES = pytest.StashKey[Future[None]]()
MATCHING = """import glob, os, sys
root = "/var/lib/onceproof/runs"
for path in glob.iglob(sys.argv[1], root_dir=root):
    print(path, os.stat(os.path.join(root, path)).st_mtime_ns)
"""


def docker(
    *arguments: str | Path,
    timeout: float = 120,
    env: dict[str, str] | None = None,
    fed: str | None = None,
    codes: Collection[int] = (0,),
) -> str:
    """What it prints, or why it failed; it must end with one of these exit codes."""
    command = [DOCKER, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env, input=fed, check=False)
    assert done.returncode in codes, (
        f"docker {' '.join(map(str, arguments))}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    )
    return (done.stdout or done.stderr).strip()


@dataclass(frozen=True)
class Deployment:
    """`docker compose` for the tests' own project."""

    project: str
    port: int
    secrets: Path
    seconds: dict[str, float] = field(default_factory=dict)  # what it took
    options: list[str] = field(default_factory=list)  # of `docker compose`: profiles and files of variables

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def compose(self, *arguments: str, timeout: float = 120) -> str:
        variables = {"ONCEPROOF_SECRETS": str(self.secrets), "ONCEPROOF_AIRFLOW_PORT": str(self.port)}
        files = ("--project-name", self.project, "--project-directory", str(ROOT), *self.options)
        return docker("compose", *files, *arguments, timeout=timeout, env=os.environ | variables)

    def up(self, *options: str) -> None:
        """What a person types, whatever has happened before."""
        begin = time.monotonic()
        try:
            self.compose("up", "--detach", "--wait", *options, timeout=UP)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.compose('logs', '--tail=40')}") from None
        self.seconds["up"] = time.monotonic() - begin

    def kill(self, service: str) -> None:
        docker("kill", self.container(service))

    def container(self, service: str) -> str:
        return self.compose("ps", "--all", "--quiet", service)

    def inside(self, service: str, *command: str, fed: str = "", timeout: float = 120) -> str:
        return docker("exec", "--interactive", self.container(service), *command, fed=fed, timeout=timeout)

    def processes(self, container: str) -> list[str]:
        """Command lines of all processes of a container."""
        return docker("top", container, "-eo", "pid,args").splitlines()[1:]

    def api(self) -> AirflowApi:
        return AirflowApi(self.url, "admin", (self.secrets / "password").read_text())

    def token(self) -> dict[str, str]:
        credentials = {"username": "admin", "password": (self.secrets / "password").read_text()}
        answer = httpx.post(f"{self.url}/auth/token", json=credentials, timeout=30)
        return {"Authorization": f"Bearer {answer.json()['access_token']}"}

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(self.url + path, headers=headers, timeout=60)

    def read_json(self, file: str) -> Any:
        return json.loads(self.inside("scheduler", "cat", f"/var/lib/onceproof/runs/{file}"))

    def files(self, pattern: str) -> dict[str, str]:
        """Matching files of the runs, with the time of their last change.

        Only the folders of the pattern are read: those of brokers and stores come and go meanwhile.
        """
        found = self.inside("scheduler", "python", "-c", MATCHING, pattern)
        return dict(line.split() for line in found.splitlines())

    def history(self) -> dict[str, dict[str, int]]:
        """Counts of verdicts of the stored runs, as the command reports them."""
        told = json.loads(self.inside("scheduler", "onceproof", "results", "history", "--json"))
        return {run["run"]: run["counts"] for run in told["runs"]}

    def left(self) -> list[str]:
        """What the engine still has of this project."""
        mine = f"label={PROJECT_LABEL}={self.project}"
        lists = (["ps", "--all"], ["volume", "ls"], ["network", "ls"])
        return [thing for kind in lists for thing in docker(*kind, "--quiet", "--filter", mine).splitlines()]

    def await_run(self, run: str, dag: str = DAG) -> str:
        """Wait until a DAG run has ended; returns its state."""
        with self.api() as api:
            await_condition(f"run {run}", lambda: api.run_state(dag, run) in FINISHED, timeout=RUN, interval=1)
            return api.run_state(dag, run)


class Noting:
    """A plugin of pytest that notes that the tests in containers have all passed with the files as they are."""

    def __init__(self) -> None:
        self._inputs = digest()
        self._all = set(re.findall(r"^def (test_\w+)", CONTAINERS.read_text(), re.MULTILINE))
        self._passed: set[str] = set()
        self._other = False  # than passed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """See what became of a test."""
        file, _, name = report.nodeid.partition("::")
        if (ROOT / file) != CONTAINERS:
            return
        self._other |= not report.passed
        if report.when == "teardown":
            self._passed.add(name.partition("[")[0])

    def pytest_sessionfinish(self) -> None:
        """Write it down, where they ran."""
        if self._passed == self._all and not self._other:
            note(self._inputs)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Images take minutes to build: that begins at once, next to tests that do not need the machine to themselves."""
    asked = any(item.get_closest_marker("docker") for item in session.items)
    if asked and not session.config.option.collectonly and unavailable("docker") is None:
        session.config.stash[IMAGES] = ThreadPoolExecutor(1).submit(build_images)
        session.config.pluginmanager.register(Noting())


@pytest.fixture(scope="session")
def images(pytestconfig: pytest.Config) -> None:
    """They exist."""
    pytestconfig.stash[IMAGES].result()


def build_images() -> None:
    """Ours are built; others are pulled or, failing that, built from what is at hand.

    By one worker (`-n`): those that come later find all of it in the engine's cache.
    """
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    with FileLock(ROOT / ".onceproof" / "images.lock"):
        image = services["init"]["image"]
        docker("build", "--target", services["init"]["build"]["target"], "--tag", image, ROOT, timeout=BUILD)
        docker("build", "--tag", f"{image}-slim", ROOT, timeout=BUILD)
        for name in ("postgres", "redis", "kafka"):
            image = services[name]["image"]
            if docker("image", "ls", "--quiet", image):
                continue
            if subprocess.run([DOCKER, "pull", "--quiet", image], capture_output=True, check=False).returncode:
                docker("build", "--tag", image, STAND_INS / name, timeout=BUILD)


@pytest.fixture(scope="module")
def deployment(images, tmp_path_factory) -> Iterator[Deployment]:
    """Up and healthy; whatever the tests did, nothing remains of it."""
    folder = tmp_path_factory.mktemp("secrets")
    subprocess.run([MAKE, "--silent", "secrets", f"SECRETS={folder}"], cwd=ROOT, check=True, capture_output=True)
    made = Deployment(f"onceproof-test-{secrets.token_hex(4)}", free_ports(1)[0], folder)
    try:
        made.up()
        yield made
    finally:
        made.compose("--profile=*", "down", "--volumes", "--timeout=1", timeout=180)
        shutil.rmtree(folder, ignore_errors=True)
