"""An Airflow that was there before: it has the wheel, three lines among its DAGs, and what docs/installing.md says."""

import json
import re
import shlex
import subprocess
import tomllib
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from textwrap import dedent

import httpx
import psutil
import pytest

from onceproof.model.json_file import read_json
from onceproof.pipeline.api import AirflowApi
from onceproof.processes.waiting import await_condition
from onceproof.settings import get_settings
from tests.present import present
from tests.wheels import ROOT, build_wheel, install, outside

pytestmark = [pytest.mark.system, pytest.mark.night, pytest.mark.timeout(3600)]

DAGS = {"applications", "bisect", "explore", "qualify", "regression", "release_watch", "sensitivity", "weekly"}
PAGE = (ROOT / "docs" / "installing.md").read_text()
[SPECIFIED] = [
    line
    for line in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["pipeline"]
    if line.startswith("apache-airflow>")
]
OLDEST, NEWEST = re.findall(r"\d+\.\d+\.\d+", SPECIFIED)
CONF = {
    "matrix": "seed",  # plants nothing
    "scenarios": ["enumerator"],
    "variants": ["DEFAULT_CONFIG"],
    "streams": ["3.4.0", "3.4.1"],
    "trials": 1,
}
RUN = "by-hand"


@dataclass(frozen=True)
class Foreign:
    """An Airflow that runs, and the home of Onceproof there."""

    url: str
    password: str
    home: Path

    def api(self) -> AirflowApi:
        return AirflowApi(self.url, "admin", self.password)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module", params=[OLDEST, NEWEST])
def foreign(request, wheel, tmp_path_factory):
    """A fresh Airflow of this version, in an environment of its own."""
    folder = tmp_path_factory.mktemp("foreign")
    commands = install(folder / "venv", "3.11", f"{wheel}[pipeline]", f"apache-airflow=={request.param}")
    home = folder / "onceproof"
    home.mkdir()
    (home / "artifacts").symlink_to(get_settings().artifacts)
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    environment = outside(
        commands,
        AIRFLOW_HOME=str(folder / "airflow"),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__CORE__EXECUTOR="LocalExecutor",
        AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT="300",  # of a busy machine
        AIRFLOW__CORE__EXECUTION_API_SERVER_URL=f"{url}/execution/",
        AIRFLOW__API__HOST="127.0.0.1",
        AIRFLOW__API__PORT=str(port),
        AIRFLOW__API__BASE_URL=url,
        AIRFLOW__API__WORKERS="1",
        AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE="False",
        # The settings of Onceproof: in Airflow's variable alone.
        AIRFLOW_VAR_ONCEPROOF=json.dumps({"home": str(home)}),
    )
    dags = folder / "airflow" / "dags"
    dags.mkdir(parents=True)
    (dags / "onceproof_dags.py").write_text(dedent(present(re.search(r" *```python\n(.*?)```", PAGE, re.DOTALL))[1]))
    prepared = re.findall(r"^ *(airflow (?:pools|connections) .*)$", PAGE, re.MULTILINE)
    assert len(prepared) == 2
    for line in ("airflow db migrate", *prepared):
        done = subprocess.run(
            shlex.split(line), env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    with ExitStack() as stack:
        for part in ("api-server", "scheduler --skip-serve-logs", "dag-processor"):
            log = stack.enter_context((folder / f"{part.split()[0]}.log").open("wb"))
            process = subprocess.Popen(
                [commands / "airflow", *part.split()],
                env=environment,
                cwd=folder,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
            stack.callback(_end, process)
        passwords = folder / "airflow" / "simple_auth_manager_passwords.json.generated"
        await_condition("Airflow to answer", lambda: _is_healthy(url), timeout=300, interval=0.5)
        yield Foreign(url, str(read_json(passwords)["admin"]), home)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and all that it has started."""
    all_of_it = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=30)
    for one in all_of_it:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    process.wait()


def _is_healthy(url: str) -> bool:
    try:
        health = httpx.get(f"{url}/api/v2/monitor/health", timeout=10).json()
    except (httpx.HTTPError, ValueError):
        return False
    return all(health.get(part, {}).get("status") == "healthy" for part in ("scheduler", "dag_processor"))


def test_it_takes_the_dags_runs_two_cells_and_shows_them(foreign):
    with foreign.api() as api:
        await_condition("Airflow to read the DAGs", lambda: all(map(api.last_parsed, DAGS)), timeout=600, interval=1.0)
        api.trigger("regression", RUN, CONF)
        await_condition(
            "the run to end",
            lambda: api.run_state("regression", RUN) in {"success", "failed"},
            timeout=2400,
            interval=1.0,
            last_seen=lambda: str([(t["task_id"], t["state"]) for t in api.task_instances("regression", RUN)]),
        )
        assert api.run_state("regression", RUN) == "success"
    [run] = (foreign.home / "runs").iterdir()
    verdicts = {v["streams"]: v["verdict"] for v in read_json(run / "verdicts.json")}
    assert verdicts["3.4.0"] == "known"
    assert verdicts["3.4.1"] in {"clean", "provisional"}
    assert (run / "data_docs" / "index.html").exists()
    assert httpx.get(f"{foreign.url}/onceproof/").status_code == httpx.codes.UNAUTHORIZED
    login = {"username": "admin", "password": foreign.password}
    token = httpx.post(f"{foreign.url}/auth/token", json=login).json()["access_token"]
    shown = httpx.get(f"{foreign.url}/onceproof/", headers={"Authorization": f"Bearer {token}"})
    assert {"3.4.0", "3.4.1"} <= set(re.findall(r"3\.4\.\d", shown.text))
