"""**Is there a new Kafka release?** Looks every day, or when triggered by hand, and runs each release that was not seen
before.

`look` asks Maven what is published, with its mirrors and credentials, and compares it with the results database.
`qualify` starts a run of `qualify` for each new release, which shows that the harness still sees there; then `trigger`
starts one of `regression`, and `plant` one of `sensitivity`, which measures what its greens are worth. `record` writes
down that it did. The first look of an installation only records what is there. `onceproof release list` shows what was
seen.

**A release is incomplete.** Its artifacts appear one by one. The log says so once, `onceproof release list` shows the
reason, and each look tries again.

**`look` is red.** Maven could not reach its registry or the results database refused: the last line of the log says
which. Nothing is lost; the next look finds the same. **`qualify`, `trigger` or `plant` is red.** The same, and no
release gets two runs of any.

**Run one again.** Trigger `regression` with the release as `streams`: a release that was seen is not checked again.
"""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import CronTriggerTimetable, Param, TriggerRule, dag, task
from airflow.sdk.exceptions import AirflowFailException

from onceproof.model.errors import OnceproofError
from onceproof.pipeline import watch
from onceproof.pipeline.request import WatchRequest
from onceproof.settings import get_settings

PARAMS = WatchRequest.params(pre_releases=get_settings().pre_releases)


@task(doc_md=watch.look.__doc__)
def look(params: Any = None) -> list[dict[str, Any]]:
    """Look at what is published."""
    try:
        asked = WatchRequest.of_params(params)
        return watch.look(matrix=asked.matrix, pre_releases=asked.pre_releases, catch_up=asked.catch_up)
    except OnceproofError as error:
        raise AirflowFailException(str(error)) from None


@task(doc_md=watch.record.__doc__, trigger_rule=TriggerRule.NONE_FAILED)  # a run that existed already is skipped
def record(triggered: list[dict[str, Any]]) -> None:
    """Record what was triggered."""
    try:
        watch.record(triggered)
    except OnceproofError as error:
        raise AirflowFailException(str(error)) from None


def trigger(name: str, dag_id: str) -> Any:
    """Start runs of a DAG, one for each release; none gets a second one."""
    return TriggerDagRunOperator.partial(
        task_id=name,
        trigger_dag_id=dag_id,
        logical_date=None,  # runs differ by the id alone
        skip_when_already_exists=True,
        map_index_template="{{ task.trigger_run_id }}",
        trigger_rule=TriggerRule.NONE_FAILED,  # what exists already is skipped, and what comes after it is not
    )


@dag(
    schedule=CronTriggerTimetable("15 12 * * *", timezone="UTC"),
    catchup=False,  # a look sees everything: one makes up for any that were missed
    max_active_runs=1,
    dagrun_timeout=timedelta(hours=2),
    is_paused_upon_creation=False,
    default_args={"retries": 0},  # the next look is the retry
    params={name: Param(**schema) for name, schema in PARAMS.items()},
    doc_md=__doc__,
    tags=["onceproof"],
)
def release_watch() -> None:
    """For each release that is new: qualify it, inject bugs into it, run it, and record it."""
    found = look()
    qualified = trigger("qualify", "qualify").expand_kwargs(found.map(watch.of_its_release))
    planted = trigger("plant", "sensitivity").expand_kwargs(found.map(watch.of_its_release))
    triggered = trigger("trigger", "regression").expand_kwargs(found)
    qualified >> [planted, triggered] >> record(found)


graph = release_watch()
