"""**Every variant on every line of releases.** Runs every Sunday: `trigger` starts a run of `regression` with the
matrix `weekly`, which has the cells of every night, too. It takes hours; a run of the night waits until it has ended.

`prune` removes folders of old runs and searches, if the setting `ONCEPROOF_KEEP_RUNS` says how many stay.

`is_due` skips a Sunday on which Airflow was not up at that time: it is not made up for.

**Where is the result?** In the run of `regression` whose id begins with `weekly`, on the page like any other.
"""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import CronTriggerTimetable, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from onceproof.pipeline import steps
from onceproof.settings import get_settings


@task
def is_due(dag_run: Any = None) -> None:
    """Skip a Sunday that was missed."""
    if steps.is_late(dag_run):
        raise AirflowSkipException("Airflow was not up at that time; trigger a run to have it now.")


@task
def prune() -> None:
    """Remove what is older than the runs that stay."""
    from onceproof.pipeline.pruning import prune_by_rule

    prune_by_rule(get_settings())


@dag(
    schedule=CronTriggerTimetable("15 13 * * 0", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(hours=2),  # it waits for nothing
    is_paused_upon_creation=False,
    default_args={"retries": 0},
    doc_md=__doc__,
    tags=["onceproof"],
)
def weekly() -> None:
    """On a due Sunday, prune and start `regression`; neither waits for the other."""
    is_due() >> [prune(), _trigger()]


def _trigger() -> TriggerDagRunOperator:
    return TriggerDagRunOperator(
        task_id="trigger",
        trigger_dag_id="regression",
        trigger_run_id="weekly__{{ dag_run.run_id }}",
        conf={"matrix": "weekly"},
        logical_date=None,  # runs differ by the id alone
        skip_when_already_exists=True,  # clearing it makes no second run
    )


graph = weekly()
