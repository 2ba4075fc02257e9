"""The environment of Airflow's components: everything below our home, on loopback, and quick."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from onceproof.settings import Settings
from onceproof.spark import spark_environment

USER = "admin"
DRIVE_POOL = "drive"
LAB_QUEUE = "lab"


def airflow_home(settings: Settings) -> Path:
    """Folder of Airflow's database, logs, secrets and state."""
    return settings.home / "airflow"


def password_file(home: Path) -> Path:
    """File with the generated password: `{"admin": "..."}`, readable by its owner only."""
    return home / "passwords.json"


def of_the_lab(settings: Settings) -> dict[str, Any]:
    """Options of an Airflow task that needs a machine: it waits for a pool, and goes to workers, if there are any."""
    return {"pool": DRIVE_POOL, "queue": LAB_QUEUE, "executor": settings.lab_executor}


def as_environment(settings: Settings) -> dict[str, str]:
    """The variables from which another process reads the same settings."""
    return {
        f"ONCEPROOF_{name.upper()}": str(value)
        for name, value in settings.model_dump().items()
        if name in settings.model_fields_set or name in {"home", "project"}
    }


def airflow_environment(
    settings: Settings, *, port: int, owner: int, scheduled: bool, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The whole environment of a component, for an Airflow on this port that belongs to the process `owner`.

    A `scheduled` Airflow also follows the cron schedule. Whatever `AIRFLOW__...` variable is `given` wins over
    ours: another database or executor is Airflow's own configuration.
    """
    # Not for DAG files, which ask this module for names.
    from onceproof.processes.identity import read_start
    from onceproof.processes.orphans import OWNER, OWNER_STARTED

    home = airflow_home(settings)
    url = f"http://127.0.0.1:{port}"
    ours = {
        "AIRFLOW__CORE__DAGS_FOLDER": settings.project / "dags",
        "AIRFLOW__CORE__LOAD_EXAMPLES": False,
        "AIRFLOW__CORE__EXECUTOR": ",".join(["LocalExecutor", *filter(None, [settings.lab_executor])]),
        # Four short tasks at once fill two cores; what needs the machine is limited by a pool. Spark mostly waits.
        "AIRFLOW__CORE__PARALLELISM": 5,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": False,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": password_file(home),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        # Of a client.properties in a connection: what pages and logs do not show, in addition to keys with `password`.
        "AIRFLOW__CORE__SENSITIVE_VAR_CONN_NAMES": "jaas,keystore_key",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": port,
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": 1,
        # A finished task is noticed at this interval; 5 s by default.
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": 1,
        # A task that cannot reach the API within this time is given up; the default of 5 s is short on a busy machine.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": 60,
        "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": 10,
        # Between two looks at all tasks of the run, which take 100 ms of CPU if there are hundreds; 1 s by default.
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": 0.5,
        "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": scheduled,
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": 30,
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": 1,
        # Those that have changed are parsed without that; all others every 30 s would take 6 % of two cores.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": 600,
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": False,
        # Airflow renames its processes; without this their environment, by which they are recognised, is overwritten.
        "SPT_NOENV": 1,
        "GX_ANALYTICS_ENABLED": False,
    }
    if not any(name.startswith("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN") for name in environ):  # itself, or its folder
        ours["AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS"] = "onceproof.pipeline.sqlite.CONNECT_ARGS"
    if not entry_points(group="airflow.plugins", name="onceproof"):  # a checkout that is not installed
        ours["AIRFLOW__CORE__PLUGINS_FOLDER"] = settings.project / "plugins"
    environment = {name: str(value) for name, value in ours.items()} | dict(environ)
    # These are not a matter of taste: with others the parts would not find each other.
    environment |= {
        "AIRFLOW_HOME": str(home),
        **as_environment(settings),
        OWNER: str(owner),
        OWNER_STARTED: str(read_start(owner)),
        "ONCEPROOF_UP_SINCE": datetime.now(UTC).isoformat(),
    }
    return environment | spark_environment(settings, environ)
