"""The program of each service of `docker-compose.yml`: `python -m onceproof.pipeline.container SERVICE`.

`init` prepares databases and artifacts, and ends. `applications` runs one application of people, and ends. The others
become Airflow's components, or those of a Spark cluster,
in the environment that `make up` gives them; what the compose file sets wins. A container whose process dies is started
again by the engine, so nothing here watches anything.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from onceproof.model.errors import HarnessError, OnceproofError, UsageError
from onceproof.pipeline import application_service
from onceproof.pipeline.api import AirflowApi
from onceproof.pipeline.environment import LAB_QUEUE, USER, airflow_environment
from onceproof.pipeline.health import trouble
from onceproof.pipeline.supervisor import COMPONENTS, START_TIMEOUT, abandon_active_runs, furnish
from onceproof.processes.waiting import await_condition
from onceproof.settings import SECRETS, Settings, get_settings

PORT = 8080  # in the containers' network; the compose file says which port of the host leads to it
INIT, APPLICATIONS = "init", "applications"
PID = ("--pid", "/tmp/worker.pid")  # noqa: S108 - its default lies on a volume that workers share
AIRFLOWS = {
    **COMPONENTS,
    # One trial at a time: each needs the machine. Logs lie on a volume, where the API server reads them.
    "worker": ("celery", "worker", "--queues", LAB_QUEUE, "--concurrency", "1", "--skip-serve-logs", *PID),
}
SPARK_PORT, SPARK_MASTER = 7077, "spark-master"
SPARKS = {
    SPARK_MASTER: ("deploy.master.Master", "--port", str(SPARK_PORT)),
    "spark-worker": ("deploy.worker.Worker", "--work-dir", "/tmp/spark", f"spark://{SPARK_MASTER}:{SPARK_PORT}"),  # noqa: S108
}


def main(service: str) -> None:
    """Run a service; returns only if it is `init` or `applications`.

    Raises:
        UsageError: there is no such service, or its secret is missing.
        HarnessError: a database or the API server does not answer.
    """
    services = [INIT, APPLICATIONS, *AIRFLOWS, *SPARKS]
    if service not in services:
        raise UsageError(f"There is no service {service!r}: name one of {', '.join(services)}.")
    settings = get_settings()
    if service == APPLICATIONS:
        if settings.application_service is None:
            raise UsageError("ONCEPROOF_APPLICATION_SERVICE is not set: name the socket to listen at.")
        application_service.serve(settings.application_service)
        return
    environment = airflow_environment(settings, port=PORT, owner=os.getpid(), scheduled=True)
    if "ONCEPROOF_DATABASE_URL" not in os.environ:  # then it is a secret, which every process reads for itself
        environment.pop("ONCEPROOF_DATABASE_URL", None)
    if service == INIT:
        init(settings, environment)
        return
    if service == "scheduler":
        _make_ready(settings, environment)
    if service == "api-server":
        environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"] = str(_writable_passwords())
    if service in SPARKS:
        environment["SPARK_LOCAL_HOSTNAME"] = socket.gethostname()
        del environment["SPARK_LOCAL_IP"]  # which would be that of the driver
    command = _spark(*SPARKS[service]) if service in SPARKS else _airflow(*AIRFLOWS[service])
    os.execvpe(command[0], command, environment)  # noqa: S606 - an argument list, no shell


def init(settings: Settings, environment: dict[str, str]) -> None:
    """Bring both databases to the schema of this version, and resolve what the default matrix needs.

    Raises:
        HarnessError: a database refuses, or Maven fails.
    """
    from onceproof.results.database import migrate

    migrated = migrate(settings.database_url)
    print(f"The results database is ready. {migrated or ''}", flush=True)
    for command in (_airflow("db", "migrate"), [sys.executable, "-m", "onceproof.cli", "system", "setup"]):
        if code := subprocess.run(command, env=environment, check=False).returncode:
            raise HarnessError(f"`{' '.join(command[1:])}` failed (exit code {code}); the reason stands above.")


def _make_ready(settings: Settings, environment: dict[str, str]) -> None:
    """Before a scheduler sees the runs of its predecessor: what they had started is gone with its container."""
    server = urlsplit(environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"])
    url = f"{server.scheme}://{server.netloc}"
    health = f"{url}/api/v2/monitor/health"
    await_condition(
        "the API server and its database",
        lambda: trouble(health, "metadatabase") is None,
        timeout=START_TIMEOUT,
        last_seen=lambda: trouble(health, "metadatabase") or "",
        interval=1.0,
    )
    with AirflowApi(url, USER, _password()) as api:
        abandon_active_runs(api)
        furnish(api, settings)


def _writable_passwords() -> Path:
    """The password as Airflow requires it: in a file that it may open for writing."""
    folder = Path(tempfile.mkdtemp(prefix="onceproof-"))  # which is private, and in memory
    file = folder / "passwords.json"
    file.write_text(json.dumps({USER: _password()}))
    return file


def _password() -> str:
    file = SECRETS / "password"
    try:
        return file.read_text().strip()
    except OSError as error:
        raise UsageError(f"The secret {file} cannot be read ({error.strerror}): run `make secrets`.") from error


def _airflow(*command: str) -> list[str]:
    return [sys.executable, "-m", "airflow", *command]


def _spark(main: str, *arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("spark-class")), f"org.apache.spark.{main}", *arguments]


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except OnceproofError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
