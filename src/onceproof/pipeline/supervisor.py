"""Airflow's components as processes of ours: started together, watched, ended together.

The supervisor is the process that owns them. Whatever ends it, including SIGKILL, ends them, their tasks and the
brokers of those tasks (see `processes.reaper`).
"""

import hashlib
import json
import os
import secrets
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
from filelock import FileLock, Timeout

from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.json_file import read_json, write_json
from onceproof.pipeline.api import AirflowApi
from onceproof.pipeline.environment import DRIVE_POOL, USER, airflow_environment, airflow_home, password_file
from onceproof.processes.identity import boot_id, is_alive, read_start
from onceproof.processes.orphans import end_orphans, note_session, sessions_file
from onceproof.processes.process import below_reaper, tail
from onceproof.processes.waiting import await_condition
from onceproof.settings import Settings

DAG = "regression"
SPARK_CONNECTION = {
    "connection_id": "spark_default",
    "conn_type": "spark",
    "description": "Where topics are collected and checked; any Spark master will do",
    "extra": '{"spark-binary": "spark-submit"}',
}
COMPONENTS = {
    # Its log server would listen on all interfaces; the logs of local tasks are read from disk.
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "api-server": ("api-server",),
}
START_TIMEOUT = 180.0  # for a cold disk and a busy machine; a component that dies ends the wait at once
STOP_TIMEOUT = 5.0


@dataclass(frozen=True)
class Airflow:
    """An Airflow that runs; the content of the state file."""

    url: str
    home: Path
    supervisor: int
    started: float
    scheduled: bool
    boot: str | None = None  # None if an older version of ours started it

    @classmethod
    def running(cls, settings: Settings) -> "Airflow | None":
        """The healthy Airflow of this home; None if there is none."""
        try:
            data = json.loads(_state_file(airflow_home(settings)).read_text())
            airflow = cls(**{**data, "home": Path(data["home"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return airflow if airflow.alive() else None

    @property
    def username(self) -> str:
        """The user that may log in."""
        return USER

    @property
    def password_file(self) -> Path:
        """Where the password is."""
        return password_file(self.home)

    @property
    def logs(self) -> Path:
        """Folder of all logs; those of a task are below `dag_id=.../run_id=.../task_id=...`."""
        return self.home / "logs"

    def api(self) -> AirflowApi:
        """A client of its REST API."""
        return AirflowApi(self.url, USER, str(read_json(self.password_file)[USER]))

    def alive(self) -> bool:
        """Whether its supervisor lives (and not another process under a reused id)."""
        return is_alive(self.supervisor, self.started, self.boot)

    def check(self) -> None:
        """Raise HarnessError if it is gone."""
        if not self.alive():
            raise HarnessError(
                f"Airflow at {self.url} ended (its supervisor was process {self.supervisor}); see {self.logs}."
            )

    def await_dag(self, since: datetime, check: Callable[[], None]) -> None:
        """Wait until the DAG as it is on disk now, or was `since`, can be triggered."""
        with self.api() as api:
            last_error: str | None = None

            def is_known() -> bool:
                nonlocal last_error
                parsed = api.last_parsed(DAG)
                if parsed is not None and datetime.fromisoformat(parsed) >= since:
                    return True
                last_error = api.import_error(f"{DAG}.py", since)
                if last_error is not None:
                    raise HarnessError(f"Airflow cannot import dags/{DAG}.py: {last_error}")
                return False

            await_condition(
                f"Airflow to read dags/{DAG}.py",
                is_known,
                timeout=START_TIMEOUT,
                check=check,
                last_seen=lambda: f"See {self.logs / 'dag-processor.log'}.",
                interval=0.1,
            )


class Supervisor:
    """Starts the components, watches them, ends them. One per home, which a lock ensures.

    A `scheduled` one also follows the DAG's cron schedule.
    """

    def __init__(self, settings: Settings, *, scheduled: bool) -> None:
        self._settings = settings
        self._home = airflow_home(settings)
        self._scheduled = scheduled
        self._environment: dict[str, str] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = _lock(self._home)
        self._airflow: Airflow | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Airflow:
        """Start all components and wait until they are healthy and know our DAG.

        Raises:
            UsageError: the port is taken, or another supervisor has this home.
            HarnessError: a component ended or did not become healthy, or the DAG cannot be imported.
        """
        self.prepare()
        port = choose_port(self._settings.airflow_port, self._home / "port")
        self._environment = airflow_environment(self._settings, port=port, owner=os.getpid(), scheduled=self._scheduled)
        self._migrate()
        began = datetime.now(UTC)
        airflow = Airflow(
            url=f"http://127.0.0.1:{port}",
            home=self._home,
            supervisor=os.getpid(),
            started=read_start(os.getpid()),
            boot=boot_id(),
            scheduled=self._scheduled,
        )
        unended = _locate_unended(self._home)
        if unended.exists():  # the last supervisor was killed, or one of its components
            self._end_orphaned_runs(airflow)
        with _writing(unended):
            unended.touch()
        for name in COMPONENTS.keys() - self._processes.keys():
            self._spawn(name, COMPONENTS[name])
        self._await_health(airflow, ("metadatabase", "scheduler", "dag_processor"), began)
        airflow.await_dag(began, self.check)
        with airflow.api() as api:
            furnish(api, self._settings)
        write_json(_state_file(self._home), {**asdict(airflow), "home": str(airflow.home)})
        self._airflow = airflow
        return airflow

    def prepare(self) -> None:
        """Make the home, private and ours alone.

        Raises:
            UsageError: another supervisor has it.
            HarnessError: it cannot be written.
        """
        self._prepare_home()
        self._take_lock()
        if not (file := password_file(self._home)).exists():
            write_json(file, {USER: secrets.token_urlsafe(12)})  # readable by its owner only, and never half of it
        end_orphans(self._settings.home)  # it would work on our database
        sessions_file(self._settings.home).unlink(missing_ok=True)  # their processes have ended

    def check(self) -> None:
        """Raise HarnessError if a component has ended."""
        for name, process in self._processes.items():
            if (code := process.poll()) is not None:
                log = self._log(name)
                raise HarnessError(
                    f"Airflow's {name} ended (exit code {code}), so all of it stops; log {log} ends with:\n{tail(log)}"
                )

    def watch(self) -> None:
        """Wait until a component ends, which raises HarnessError."""
        poll = select.poll()
        for process in self._processes.values():
            poll.register(os.pidfd_open(process.pid), select.POLLIN)
        while True:
            poll.poll()
            self.check()

    def stop(self) -> None:
        """End what was started; runs under way are marked failed, if not now, before the next scheduler sees them."""
        if self._airflow is not None:
            with suppress(HarnessError):
                self.check()
                with self._airflow.api() as api:
                    if not abandon_active_runs(api):  # else our scheduler may still change what we marked
                        _locate_unended(self._home).unlink(missing_ok=True)
            _state_file(self._home).unlink(missing_ok=True)
            self._airflow = None
        for process in self._processes.values():
            process.terminate()
        deadline = time.monotonic() + STOP_TIMEOUT
        for process in self._processes.values():
            try:
                process.wait(timeout=max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                with suppress(psutil.NoSuchProcess):
                    for child in psutil.Process(process.pid).children():
                        child.kill()  # its tree follows
                process.wait()
        self._processes.clear()
        self._lock.release()

    def _prepare_home(self) -> None:
        with _writing(self._home):
            self._home.mkdir(parents=True, exist_ok=True)
            self._home.chmod(0o700)  # it holds secrets
            (self._home / "logs").mkdir(exist_ok=True)

    def _take_lock(self) -> None:
        with _writing(self._home):
            try:
                self._lock.acquire()
            except Timeout as error:  # which is an OSError, too
                raise UsageError(
                    f"An Airflow of {self._settings.home} is starting or running already: wait for it, stop it with "
                    "`onceproof system down`, or set ONCEPROOF_HOME to another folder."
                ) from error

    def _migrate(self) -> None:
        """Create or upgrade the database, unless Airflow and the database are the same as last time."""
        database = self._environment.get("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "")
        stamp = {
            "airflow": version("apache-airflow-core"),
            "database": hashlib.sha256(database.encode()).hexdigest(),  # it may hold a password
        }
        file = self._home / "migrated.json"
        exists = bool(database) or (self._home / "airflow.db").exists()
        if exists and file.exists() and read_json(file) == stamp:
            return
        self._spawn("db-migrate", ("db", "migrate"))
        if code := self._processes.pop("db-migrate").wait():
            log = self._log("db-migrate")
            raise HarnessError(
                f"Airflow's database could not be prepared (exit code {code}); log {log} ends with:\n{tail(log)}"
            )
        write_json(file, stamp)

    def _spawn(self, name: str, command: tuple[str, ...]) -> None:
        with _writing(self._home), self._log(name).open("wb") as out:
            self._processes[name] = subprocess.Popen(
                below_reaper([sys.executable, "-m", "airflow", *command], os.getpid(), twice=True),
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                # Ctrl-C reaches us alone, and we end the components in an orderly way.
                start_new_session=True,
            )
            note_session(self._settings.home, self._processes[name].pid)

    def _log(self, name: str) -> Path:
        return self._home / "logs" / f"{name}.log"

    def _await_health(self, airflow: Airflow, parts: tuple[str, ...], since: datetime) -> None:
        seen: dict[str, Any] = {}

        def healthy() -> bool:
            with suppress(httpx.HTTPError, ValueError):  # it does not listen yet
                seen.update(client.get("/api/v2/monitor/health").json())
            return all(is_healthy(seen.get(part), since) for part in parts)

        # One client for all looks: each has certificates to load, which takes more than the look.
        with httpx.Client(base_url=airflow.url, timeout=5) as client:
            await_condition(
                "Airflow to become healthy",
                healthy,
                timeout=START_TIMEOUT,
                check=self.check,
                last_seen=lambda: f"Its health was {json.dumps(seen)}; see {airflow.logs}.",
                interval=0.1,
            )

    def _end_orphaned_runs(self, airflow: Airflow) -> None:
        """Before a scheduler sees and continues them: what they had started is gone."""
        for name in COMPONENTS.keys() - {"scheduler"}:  # all others start meanwhile
            self._spawn(name, COMPONENTS[name])
        self._await_health(airflow, ("metadatabase",), datetime.now(UTC))
        with airflow.api() as api:
            abandon_active_runs(api)


def is_starting(settings: Settings) -> bool:
    """Whether a supervisor of this home holds the lock."""
    home = airflow_home(settings)
    if not home.exists():
        return False
    try:
        with _lock(home):
            return False
    except Timeout:
        return True
    except OSError:  # it is not ours to write, so not ours to start
        return False


def _lock(home: Path) -> FileLock:
    return FileLock(home / "supervisor.lock", blocking=False)


def choose_port(wanted: int | None, memory: Path) -> int:
    """The port that is wanted, or the remembered one, or, if that is taken, a free one, which is remembered.

    Raises:
        UsageError: the wanted port is taken.
    """
    if wanted is not None:
        if not _is_free(wanted):
            raise UsageError(
                f"Port {wanted} on 127.0.0.1 is taken by another process: set ONCEPROOF_AIRFLOW_PORT to a free port, "
                "or unset it to have one chosen."
            )
        return wanted
    with suppress(OSError, ValueError):
        remembered = int(memory.read_text())
        if 0 < remembered <= 65535 and _is_free(remembered):
            return remembered
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with _writing(memory):
        memory.write_text(f"{port}\n")
    return port


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def is_healthy(part: Mapping[str, str | None] | None, since: datetime) -> bool:
    """Healthy, by a heartbeat since this start: a part that was killed looks healthy for half a minute."""
    if part is None or part["status"] != "healthy":
        return False
    beats = [beat for name, beat in part.items() if name.startswith("latest_")]
    return all(beat is not None and datetime.fromisoformat(beat) >= since for beat in beats)


def abandon_active_runs(api: AirflowApi) -> int:
    """Mark all runs under way failed: what they had started is gone. Returns how many there were."""
    active = api.all_active_runs()
    for dag, run in active:
        api.abandon_run(dag, run)
    return len(active)


def furnish(api: AirflowApi, settings: Settings) -> None:
    """Create what the DAG needs and does not exist yet; what is configured is set each time."""
    spark = SPARK_CONNECTION | {"host": settings.spark_master}
    api.add_connection(spark)
    if "spark_master" in settings.model_fields_set:
        api.set_connection(spark, "host")
    api.add_pool(DRIVE_POOL, settings.drive_slots, "Trials driven at once: each needs the machine")
    if "drive_slots" in settings.model_fields_set:
        api.set_pool_slots(DRIVE_POOL, settings.drive_slots)


def _state_file(home: Path) -> Path:
    return home / "running.json"


def _locate_unended(home: Path) -> Path:
    """Exists as long as Airflow's database may say of runs that they are under way."""
    return home / "unended"


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn an error of the disk into a sentence."""
    try:
        yield
    except OSError as error:
        raise HarnessError(
            f"{path} cannot be written ({error.strerror}): make room or set ONCEPROOF_HOME to a writable folder."
        ) from error
