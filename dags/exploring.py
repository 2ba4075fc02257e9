"""**Which failures are not known yet?** Takes what is left of every night, and runs by hand with params of your own.

`releases` says which are searched. `search` searches each of them, as `onceproof issue explore` does: for `minutes`,
or else until the local hour `until`. It continues the search of the last night that asked for the same in this version
of Onceproof, if it is not to begin `anew`. It needs the machine and waits for the pool `drive`. After a quarter of an
hour it gives its turn to whatever else waits, trials of `regression` first, and continues when nothing does; several
releases take turns.

**Where is the result?** On the page, tab *Searches*, also while it is in progress, and in the folder of
`exploration.jsonl`, whose path the task returns.

**It is red.** It found something that no known issue explains, and no night before had found: the last line of the log
has the command that repeats it. Any other last line says what to do. Marking it failed ends the trial and the brokers,
and clearing the task continues the search, as `onceproof issue explore --resume` does. It is skipped if nothing was
left of the night.
"""

from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import CronTriggerTimetable, Param, PokeReturnValue, dag, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from pendulum.tz.local_timezone import get_local_timezone

from onceproof.campaigns.requests import ExploreRequest
from onceproof.campaigns.search import verbs
from onceproof.model.cell import draw_seed
from onceproof.model.errors import OnceproofError
from onceproof.pipeline import steps
from onceproof.settings import get_settings


@task
def releases(params: Any = None, dag_run: Any = None) -> list[str]:
    """The releases that are searched."""
    if steps.is_late(dag_run):
        raise AirflowSkipException("Airflow was not up when the night began; trigger a run to search now.")
    try:
        return steps.exact_releases(ExploreRequest.of_params(params).streams)
    except OnceproofError as error:
        raise AirflowFailException(str(error)) from None


@task.sensor(
    pool="drive",
    priority_weight=0,  # after everything else
    weight_rule="absolute",
    mode="reschedule",  # between two parts of the search the pool is free
    poke_interval=10,
    timeout=timedelta(days=2).total_seconds(),
    map_index_template="{{ task.op_kwargs['streams'] }}",
    doc_md=verbs.explore.__doc__,
)
def search(streams: str, params: Any = None, dag_run: Any = None) -> PokeReturnValue:
    """Search a release for a while; returns the path of `exploration.jsonl` when the time is up."""
    night = f"{dag_run.run_id} {streams}"
    run_id = steps.new_run_id(dag_run.run_after, night)
    try:
        request = ExploreRequest.of_params(params)
        root, drawn = get_settings().explorations, draw_seed(run_id)
        folder, asked = verbs.search_of(root, night, request, streams, run_id, drawn)
        before = folder.sum_spent_before(night)

        def compute_left() -> float:
            since, now = dag_run.run_after.astimezone(), datetime.now().astimezone()
            return verbs.seconds_left(request, folder.spent - before, since, now)

        if (seconds := compute_left()) > 0:
            folder.begin(night)
            verbs.explore(folder, asked, min(seconds, verbs.SLICE), named=bool(request.scenario))
        if compute_left() > 0:
            return PokeReturnValue(is_done=False)
        found = verbs.complaint(folder, before)
    except OnceproofError as error:
        raise AirflowFailException(str(error)) from None
    if found:
        raise AirflowFailException(found)
    if folder.spent == before:
        raise AirflowSkipException(f"Nothing was left of the night, which is over at {request.until}.")
    return PokeReturnValue(is_done=True, xcom_value=str(folder.log_file))


@dag(
    schedule=CronTriggerTimetable("30 3 * * *", timezone=get_local_timezone()),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(days=2),
    is_paused_upon_creation=False,
    default_args={"retries": 0},  # a failure is a finding; a retry would hide it
    params={name: Param(**schema) for name, schema in ExploreRequest.params().items()},
    doc_md=__doc__,
    tags=["onceproof"],
)
def explore() -> None:
    """One task for each release that is searched."""
    search.expand(streams=releases())


graph = explore()
