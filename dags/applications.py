"""**Do our own applications keep their promises?** Runs every night, and by hand with params of your own.

`applications` says which: each folder with an `onceproof.toml` in `ONCEPROOF_APPLICATIONS`. `run_application` runs one
of them on each release, on brokers of its own, twice without a fault and once with it, as `onceproof app run` does. It
needs the machine and waits for the pool `drive`, so it takes turns with the trials of `regression`. In containers their
code runs in a service of its own, without secrets and network; otherwise as the user that this worker runs as.

**Where is the result?** In `app.json` of the run folder, whose path the task returns; the folders of the trials are
next to it.

**It is red.** The last line of the log names the release, and says what was wrong in the output, why the run says
nothing, or what to do. Marking it failed ends the trial and the brokers; nothing is left. Trigger it again, with the
seed of `app.json` for the same records; a task that is cleared is refused, as its folder is there.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import CronTriggerTimetable, Param, dag, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from onceproof.campaigns.application import verbs
from onceproof.campaigns.requests import ApplicationRequest
from onceproof.model.cell import draw_seed
from onceproof.model.errors import ExitCode, OnceproofError
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline import application_service
from onceproof.pipeline.steps import new_run_id
from onceproof.settings import get_settings


@task(task_id="applications")
def named_applications(params: Any = None) -> list[str]:
    """The folders of the applications that are run; skipped where there is none."""
    try:
        found = verbs.applications(ApplicationRequest.of_params(params).applications)
    except OnceproofError as error:
        raise AirflowFailException(str(error)) from None
    if not found:
        raise AirflowSkipException(f"There is no application in {get_settings().applications}: docs/applications.md.")
    return found


@task(pool="drive", map_index_template="{{ task.op_kwargs['folder'] }}")
def run_application(folder: str, params: Any = None, dag_run: Any = None) -> str:
    """Run an application on each release; returns the path of `app.json`."""
    run_id = new_run_id(dag_run.run_after, f"{dag_run.run_id} {folder}")
    run = RunFolder(get_settings().runs / run_id)
    try:
        request, seed = ApplicationRequest.of_params(params), draw_seed(run_id)
        if service := get_settings().application_service:
            request = verbs.resolve_releases(folder, request)
            answer = application_service.run_application(service, run, folder, request, seed)
        else:
            wanted = verbs.app_run(run, folder, request, seed)
            verbs.claim_folder(run)
            answer = verbs.apply(wanted)
    except OnceproofError as error:
        raise AirflowFailException(str(error)) from None
    if answer.judgement.exit_code is not ExitCode.OK:
        raise AirflowFailException(verbs.complaint(answer))
    return str(run.app_file)


@dag(
    schedule=CronTriggerTimetable("15 6 * * *", timezone="UTC"),
    catchup=False,  # what was missed yesterday says nothing that today's run does not
    max_active_runs=1,
    dagrun_timeout=timedelta(hours=12),
    is_paused_upon_creation=False,
    default_args={"retries": 0},  # a failure is a finding; a retry would hide it
    params={name: Param(**schema) for name, schema in ApplicationRequest.params().items()},
    doc_md=__doc__,
    tags=["onceproof"],
)
def applications() -> None:
    """One task for each application that is named."""
    run_application.expand(folder=named_applications())


graph = applications()
