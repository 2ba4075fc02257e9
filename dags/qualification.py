"""**Does the harness still see on this release?** Runs for each new release, before it is judged, and by hand.

`releases` says which. `qualify` looks for each thing that the harness goes by in a trial that must have it: what the
brokers' log segments hold, phrases of Kafka's logs, whether each scenario is exercised, planted bugs, known issues. It
needs the machine and waits for the pool `drive`, where it comes before trials of `regression`.

**Where is the result?** In `qualification.json` of the run folder, whose path the task returns. It is kept: verdicts on
a release that did not qualify with this version of the harness say so.

**It is red.** Kafka changed something that the harness goes by: the last line of the log says what it has to learn
(`docs/qualifying.md`). Or the trials decide nothing: clear the task. Any other last line says what to do.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowFailException

from onceproof.campaigns.qualification import verbs
from onceproof.campaigns.requests import QualifyRequest
from onceproof.model.cell import draw_seed
from onceproof.model.errors import OnceproofError
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline.environment import of_the_lab
from onceproof.pipeline.steps import new_run_id
from onceproof.settings import get_settings

BEFORE_TRIALS = 100  # the priority of its task


@task
def releases(params: Any = None) -> list[str]:
    """The releases that are looked at."""
    try:
        return list(QualifyRequest.of_params(params).streams)
    except OnceproofError as error:
        raise AirflowFailException(str(error)) from None


@task(
    **of_the_lab(get_settings()),
    priority_weight=BEFORE_TRIALS,
    map_index_template="{{ task.op_kwargs['streams'] }}",
    doc_md=verbs.qualify.__doc__,
)
def qualify(streams: str, params: Any = None, dag_run: Any = None) -> str:
    """Look at a release; returns the path of `qualification.json`."""
    run_id = new_run_id(dag_run.run_after, f"{dag_run.run_id} {streams}")
    run = RunFolder(get_settings().runs / run_id)
    try:
        found = verbs.qualify(run, QualifyRequest.of_params(params), streams, draw_seed(run_id))
    except OnceproofError as error:
        raise AirflowFailException(str(error)) from None
    if complaint := verbs.complaint(found):
        raise AirflowFailException(complaint)
    return str(run.qualification_file)


@dag(
    dag_id="qualify",
    schedule=None,
    max_active_runs=1,
    dagrun_timeout=timedelta(hours=6),
    is_paused_upon_creation=False,
    default_args={"retries": 0},  # a failure is a finding; a retry would hide it
    params={name: Param(**schema) for name, schema in QualifyRequest.params().items()},
    doc_md=__doc__,
    tags=["onceproof"],
)
def qualification() -> None:
    """One task for each release that is to qualify."""
    qualify.expand(streams=releases())


graph = qualification()
