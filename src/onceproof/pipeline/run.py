"""`onceproof run`: one run of the DAG from the request to the verdicts, watched, and ended in an orderly way."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from rich.console import Console
from tenacity import Retrying, retry_if_result, wait_fixed

from onceproof.lab.external_brokers import ExternalCluster, check_access
from onceproof.model.cell import Trial, is_run_id
from onceproof.model.errors import ExitCode, HarnessError, UsageError
from onceproof.model.extras import PIPELINE, require
from onceproof.model.files import VerdictRow
from onceproof.model.json_file import write_json
from onceproof.model.matrix import Request
from onceproof.model.published import NEWEST
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import exit_code
from onceproof.pipeline import steps
from onceproof.pipeline.api import ENDED, FINISHED, AirflowApi
from onceproof.pipeline.progress import Display, list_failed_tasks, progress_of
from onceproof.pipeline.request import CONNECTION, RunRequest
from onceproof.pipeline.services import Running, services
from onceproof.pipeline.supervisor import DAG, Airflow
from onceproof.processes.signals import interruptible
from onceproof.processes.waiting import await_condition
from onceproof.settings import Settings, get_settings

LOOK_EVERY = 1.0  # seconds
PATIENCE = 10  # times as long as a look at all tasks took: 300 ms for 230 of them, and trials need the machine
LONGEST_PATIENCE = 10.0  # seconds: while Airflow starts, a look takes seconds
END_TIMEOUT = 30.0


@dataclass(frozen=True)
class Finished:
    """A run that has its verdicts: where they are, what the command returns, and what went wrong on the way."""

    run: RunFolder
    exit_code: ExitCode
    failures: tuple[str, ...]


def run(
    request: Request, *, console: Console, interrupted: str | None = None, external: ExternalCluster | None = None
) -> Finished:
    """Run the DAG under the Airflow that is up, or one of our own, and wait for the verdicts.

    Progress goes to `console`: a live table on a terminal, else lines. If the id of an `interrupted` run is given, it
    is resumed, with the request that it had. The `external` brokers are those whose release the request claims.

    Raises:
        UsageError: an extra is not installed, the request cannot be carried out, a port is taken, or another run is
            under way; or the external brokers do not answer, or do not allow what a trial does.
        HarnessError: Airflow or a task failed, so that there are no verdicts.
        KeyboardInterrupt: Ctrl-C or SIGTERM, after everything that was started has been ended.
    """
    require(PIPELINE, "A run of the matrix")
    settings = get_settings()
    new = steps.random_run_id()
    if external is not None:  # before anything is started
        external.check_reached()
    asked = cache(lambda: steps.read_published_for(RunFolder(settings.runs / (interrupted or new))))
    expansion = steps.check_request(request, asked)
    if external is not None:
        check_access(external, *(Trial(new, cell, 1, 0) for cell in expansion.cells))
    run_id = interrupted or new
    folder, dag_run = RunFolder(settings.runs / run_id), f"{run_id}.{new}" if interrupted else run_id
    with _alone(settings, run_id), interruptible(), Display(console) as display:
        display.say(f"run {run_id} in {folder.path}; Airflow is starting")
        if asked.cache_info().currsize:
            display.say(asked().meaning(NEWEST))
        display.say(steps.why_brokers(request, expansion))
        with services(settings) as running, running.airflow.api() as api:
            _check_idle(running.airflow, api)
            display.say(f"Airflow is at {running.airflow.url}")
            api.unpause(DAG)
            with _connect(api, run_id, external) as connection:
                folder.interrupted_file.unlink(missing_ok=True)
                wanted = RunRequest.of(request, run_id, connection)
                api.trigger(DAG, dag_run, wanted.model_dump(mode="json"))
                try:
                    instances = _watch(folder, dag_run, running, api, display)
                except KeyboardInterrupt:
                    display.say("interrupted: ending tasks and brokers")
                    _end(folder, dag_run, api, external)
                    if folder.run_file.exists():
                        folder.interrupted_file.touch()
                        display.say(f"`onceproof run --resume {run_id}` continues it")
                    raise
            return _finish(folder, dag_run, running.airflow, instances)


@contextmanager
def _connect(api: AirflowApi, run_id: str, external: ExternalCluster | None) -> Iterator[str]:
    """A connection of Airflow for external brokers, as long as the run lasts; its name, by which the DAG finds it.

    It has a name of its own: one that people have made is left alone.
    """
    for left in api.connections(f"{CONNECTION}."):
        if is_run_id(left.removeprefix(f"{CONNECTION}.")):  # of a run that was killed; ours is the only one here
            api.delete_connection(left)
    if external is None:
        yield CONNECTION
        return
    name = f"{CONNECTION}.{run_id}"
    api.add_connection(
        {"connection_id": name, "conn_type": "kafka", "extra": json.dumps(dict(external.properties.values))}
    )
    try:
        yield name
    finally:
        with suppress(HarnessError):  # this Airflow has ended; the next run deletes it
            api.delete_connection(name)


def find_interrupted(wanted: str) -> tuple[str, Request]:
    """Id and request of a run that was interrupted; `last` is the newest.

    Raises:
        UsageError: there is none of this id, or it is finished and stored, or its brokers' data is gone.
    """
    runs = [RunFolder(file.parent) for file in sorted(get_settings().runs.glob("*/run.json"), reverse=True)]
    can = [run for run in runs if run.can_be_resumed]
    found = next((run for run in can if wanted in (run.run_id, "last")), None)
    begun = found or next((run for run in runs if wanted in (run.run_id, "last") and not run.is_finished), None)
    if begun is not None:
        steps.check_resumable(begun)
    if found is None:
        there_is = f"there is {', '.join(run.run_id for run in can)}" if can else "there is none"
        raise UsageError(
            f"There is no interrupted run {wanted!r} that could be resumed: {there_is}. A run can be resumed until "
            "another one is planned or `onceproof system sweep --all` is called, which delete its topics."
        )
    return found.run_id, steps.read_request(found).request


@contextmanager
def _alone(settings: Settings, run_id: str) -> Iterator[None]:
    """One run at a time and home: two would disturb each other's trials."""
    holder = settings.home / "run.json"
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        lock = FileLock(settings.home / "run.lock", blocking=False)
        lock.acquire()
    except Timeout as error:
        other: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            other = json.loads(holder.read_text())
        raise UsageError(
            f"Run {other.get('run', '(starting)')} is under way in process {other.get('pid', '(unknown)')}: wait until "
            "it has ended, or set ONCEPROOF_HOME to another folder."
        ) from error
    except OSError as error:
        raise HarnessError(
            f"{settings.home} cannot be written ({error.strerror}): "
            "make room or set ONCEPROOF_HOME to a writable folder."
        ) from error
    try:
        write_json(holder, {"run": run_id, "pid": os.getpid()})
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _check_idle(airflow: Airflow, api: AirflowApi) -> None:
    if active := api.active_runs(DAG):
        raise UsageError(
            f"Run {active[0]} is under way in the Airflow at {airflow.url}: wait until it has ended, "
            "or mark it failed there."
        )


def _watch(
    folder: RunFolder, dag_run: str, running: Running, api: AirflowApi, display: Display
) -> list[dict[str, Any]]:
    """Show the run's progress until it has ended; returns its task instances."""
    due = time.monotonic()

    def look() -> str:
        nonlocal due
        running.check()
        if (began := time.monotonic()) >= due:
            display.show(progress_of(folder, api.task_instances(DAG, dag_run)))
            due = time.monotonic() + min(LONGEST_PATIENCE, PATIENCE * (time.monotonic() - began))
        return api.run_state(DAG, dag_run)

    # No deadline of ours: the DAG has one (dagrun_timeout).
    Retrying(wait=wait_fixed(LOOK_EVERY), retry=retry_if_result(lambda state: state not in FINISHED))(look)
    instances = api.task_instances(DAG, dag_run)
    display.show(progress_of(folder, instances))
    return instances


def _end(folder: RunFolder, dag_run: str, api: AirflowApi, external: ExternalCluster | None) -> None:
    """Mark the run failed and wait until its tasks have ended and its brokers are stopped, or rid of it."""
    with suppress(HarnessError):  # it is the way out, and closing the services ends what is left
        api.fail_run(DAG, dag_run)
        await_condition(
            "the tasks to end",
            lambda: all(task["state"] in ENDED for task in api.task_instances(DAG, dag_run)),
            timeout=END_TIMEOUT,
            interval=0.2,
        )
        api.fail_run(DAG, dag_run)  # skipped tasks at its end would let it pass
    with suppress(HarnessError):
        steps.stop_clusters(folder, (lambda: external.properties) if external else None)


def _finish(folder: RunFolder, dag_run: str, airflow: Airflow, instances: list[dict[str, Any]]) -> Finished:
    failures = tuple(explain(airflow.logs, dag_run, instance) for instance in list_failed_tasks(instances))
    if not any(i["task_id"] == "judge" and i["state"] == "success" for i in instances):
        raise HarnessError(
            failures[0] if failures else f"Run {folder.run_id} ended without verdicts; see {airflow.url}."
        )
    code = exit_code([row.verdict for row in VerdictRow.read_all(folder.verdicts_file)])
    if failures and code is not ExitCode.ANOMALY:  # what is proved outweighs what failed
        code = ExitCode.ERROR
    return Finished(folder, code, failures)


def explain(logs: Path, dag_run: str, instance: Mapping[str, Any]) -> str:
    """Why a task failed, in one sentence, and where its log is."""
    task, index = instance["task_id"], instance["map_index"]
    folder = logs / f"dag_id={DAG}" / f"run_id={dag_run}" / f"task_id={task}"
    log = (folder if index < 0 else folder / f"map_index={index}") / f"attempt={instance['try_number']}.log"
    reason = ""
    with suppress(OSError):
        for line in log.read_text(errors="replace").splitlines():
            with suppress(ValueError, KeyError, IndexError, TypeError):
                error = json.loads(line)["error_detail"][0]
                ours = error["exc_type"] == "AirflowFailException"  # its text is a sentence
                reason = error["exc_value"] if ours else f"{error['exc_type']}: {error['exc_value']}"
    return f"Task {task} failed{': ' + reason if reason else ''} (log {log})"
