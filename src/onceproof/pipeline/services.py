"""The Airflow of this installation: for the duration of a run, or until it is taken down."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import psutil

from onceproof.model.errors import ExitCode, HarnessError, OnceproofError, UsageError
from onceproof.model.extras import PIPELINE, WORKERS, require
from onceproof.pipeline.environment import airflow_home, as_environment
from onceproof.pipeline.supervisor import DAG, START_TIMEOUT, STOP_TIMEOUT, Airflow, Supervisor, is_starting
from onceproof.processes.orphans import end_orphans
from onceproof.processes.process import tail
from onceproof.processes.signals import interruptible
from onceproof.processes.waiting import await_condition
from onceproof.settings import Settings, get_settings


@dataclass(frozen=True)
class Running:
    """An Airflow in use; `check` raises HarnessError, in one sentence, as soon as a part of it is gone."""

    airflow: Airflow
    check: Callable[[], None]


@contextmanager
def services(settings: Settings) -> Iterator[Running]:
    """The Airflow that is up, or one of our own that lasts as long as the context and has no schedule.

    Raises:
        UsageError: the port that was asked for is taken.
        HarnessError: a component ended, or did not become healthy.
    """
    if (airflow := Airflow.running(settings)) is not None:
        dag_file = settings.project / "dags" / f"{DAG}.py"
        airflow.await_dag(datetime.fromtimestamp(dag_file.stat().st_mtime, UTC), airflow.check)
        yield Running(airflow, airflow.check)
        return
    with Supervisor(settings, scheduled=False) as supervisor:
        yield Running(supervisor.start(), supervisor.check)


def up(settings: Settings) -> tuple[Airflow, bool]:
    """Start an Airflow that stays until `system down`; returns it, and whether it is new.

    Raises:
        UsageError: an extra is not installed, the port is taken, or a run is under way in an Airflow of its own.
        HarnessError: it did not become healthy.
    """
    _require_airflow(settings)
    if (airflow := Airflow.running(settings)) is not None:
        if not airflow.scheduled:
            raise UsageError(
                f"A run is under way (process {airflow.supervisor}) in an Airflow of its own at {airflow.url}: "
                "wait until it has ended, or stop it with `onceproof system down`."
            )
        return airflow, False
    log = airflow_home(settings) / "supervisor.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as out:
            child = subprocess.Popen(
                [sys.executable, "-m", "onceproof.pipeline.services"],
                env={**os.environ, **as_environment(settings)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
    except OSError as error:
        raise HarnessError(
            f"{log} cannot be written ({error.strerror}): make room or set ONCEPROOF_HOME to a writable folder."
        ) from error

    def check() -> None:
        if (code := child.poll()) is not None:
            kind = UsageError if code == ExitCode.USAGE else HarnessError
            raise kind(tail(log, 20))

    try:
        await_condition(
            "Airflow to come up",
            lambda: Airflow.running(settings) is not None,
            timeout=START_TIMEOUT,
            check=check,
            last_seen=lambda: f"See {log}.",
            interval=0.1,
        )
    except BaseException:
        child.terminate()
        raise
    airflow = Airflow.running(settings)
    if airflow is None:
        raise HarnessError(f"Airflow ended as soon as it was up; see {log}.")
    return airflow, True


def down(settings: Settings) -> bool:
    """Stop the Airflow of this home and everything it started, a run included; False if there was none.

    Raises:
        UsageError: one is just starting.
    """
    airflow = Airflow.running(settings)
    if airflow is None:
        if is_starting(settings):
            raise UsageError(f"An Airflow of {settings.home} is just starting: try again in a moment.")
        end_orphans(settings.home)
        return False
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(airflow.supervisor)
        process.terminate()
        try:
            process.wait(timeout=6 * STOP_TIMEOUT)
        except psutil.TimeoutExpired:
            process.kill()  # the rest follows by itself
            process.wait(timeout=STOP_TIMEOUT)
    end_orphans(settings.home)
    return True


def serve(settings: Settings, announce: Callable[[Airflow], None] = lambda _: None) -> None:
    """Run the supervisor in the foreground, until SIGTERM, SIGHUP or Ctrl-C.

    Raises:
        UsageError: an extra is not installed, an Airflow of this home is up already, or its port is taken.
        HarnessError: a component ended.
    """
    _require_airflow(settings)
    with suppress(KeyboardInterrupt), interruptible(), Supervisor(settings, scheduled=True) as supervisor:
        announce(supervisor.start())
        supervisor.watch()


def _require_airflow(settings: Settings) -> None:
    require(PIPELINE, "Airflow with our DAGs")
    if "Celery" in (settings.lab_executor or ""):
        require(WORKERS, f"ONCEPROOF_LAB_EXECUTOR={settings.lab_executor}")


if __name__ == "__main__":
    try:
        serve(get_settings())
    except OnceproofError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
