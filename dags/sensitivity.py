"""**Would a bug of this release be seen?** Runs every week, for each new release, and by hand with params of your own.

`releases` says which. `sense` plants bugs into each of them, one after the other on brokers of its own, and stores in
the results database which of them its trials found: the verdicts of `regression` name them. It needs the machine and
waits for the pool `drive`, so it takes turns with the trials of `regression`.

**Where is the result?** On the page, tab *Sensitivity*, and in `sensitivity.json` of the run folder, whose path the
task returns. What was found on one release, with one harness, adds up over runs.

**It is red.** A plant survived, did not fire, or showed where it cannot: the last line of the log names it, and all of
it is stored. Any other last line says what to do. Marking it failed ends the trial and the brokers; what had ended is
stored, and clearing the task resumes it.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import CronTriggerTimetable, Param, dag, task
from airflow.sdk.exceptions import AirflowFailException

from onceproof.campaigns.requests import SensitivityRequest
from onceproof.campaigns.sensitivity import verbs
from onceproof.model.cell import draw_seed
from onceproof.model.errors import OnceproofError
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline.environment import of_the_lab
from onceproof.pipeline.steps import exact_releases, new_run_id
from onceproof.settings import get_settings


@task
def releases(params: Any = None) -> list[str]:
    """The releases that bugs are planted into."""
    try:
        return exact_releases(SensitivityRequest.of_params(params).streams)
    except OnceproofError as error:
        raise AirflowFailException(str(error)) from None


@task(**of_the_lab(get_settings()), map_index_template="{{ task.op_kwargs['streams'] }}", doc_md=verbs.sense.__doc__)
def sense(streams: str, params: Any = None, dag_run: Any = None) -> str:
    """Plant bugs into a release; returns the path of `sensitivity.json`."""
    run_id = new_run_id(dag_run.run_after, f"{dag_run.run_id} {streams}")
    try:
        run = RunFolder(get_settings().runs / run_id)
        asked = verbs.sense_for(SensitivityRequest.of_params(params), streams, seed=draw_seed(run_id))
        answer = verbs.sense(run, asked)
    except OnceproofError as error:
        raise AirflowFailException(str(error)) from None
    if answer["exit_code"]:
        raise AirflowFailException(verbs.complaint(answer))
    return str(run.sensitivity_file)


@dag(
    schedule=CronTriggerTimetable("15 8 * * 6", timezone="UTC"),
    catchup=False,  # evidence adds up: one run makes up for any that were missed
    max_active_runs=1,
    dagrun_timeout=timedelta(hours=12),
    is_paused_upon_creation=False,
    default_args={"retries": 0},  # a failure is a finding; a retry would hide it
    params={name: Param(**schema) for name, schema in SensitivityRequest.params().items()},
    doc_md=__doc__,
    tags=["onceproof"],
)
def sensitivity() -> None:
    """One task for each release that bugs are injected into."""
    sense.expand(streams=releases())


graph = sensitivity()
