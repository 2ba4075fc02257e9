"""**Which release broke it, and which fixed it?** Triggered by hand, with params; `onceproof bisect` does the same.

`bisect` runs trials of one scenario on one release of the range after another, on brokers of its own, until every
boundary between good and bad releases is settled or the trials are used up. It needs the machine and waits for the pool
`drive`, so it takes turns with the trials of `regression`.

**Where is the result?** The task's log ends with the boundaries as a table; `bisect.json` in the run folder, whose path
the task returns, has everything. If `missed` is above 5 %, or a line begins with `?`, more trials are needed.

**It is red.** The last line of the log says why. Marking it failed ends the trial and the brokers; nothing is left.
Trigger it again: the same seed gives the same trials.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowFailException

from onceproof.campaigns.bisection import verbs
from onceproof.campaigns.requests import BisectRequest
from onceproof.model.cell import draw_seed
from onceproof.model.errors import OnceproofError
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline.environment import of_the_lab
from onceproof.pipeline.steps import new_run_id
from onceproof.settings import get_settings


@task(task_id="bisect", **of_the_lab(get_settings()), doc_md=verbs.bisect.__doc__)
def find_boundaries(params: Any = None, dag_run: Any = None) -> str:
    """Bisect; returns the path of `bisect.json`."""
    run_id = new_run_id(dag_run.run_after, dag_run.run_id)
    try:
        run = RunFolder(get_settings().runs / run_id)
        search = verbs.search_for(BisectRequest.of_params(params), seed=draw_seed(run_id))
        print(verbs.as_table(verbs.bisect(run, search), search.title))
        return str(run.bisection_file)
    except OnceproofError as error:
        raise AirflowFailException(str(error)) from None


@dag(
    schedule=None,
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(hours=12),
    is_paused_upon_creation=False,
    default_args={"retries": 0},  # a failure is a finding; a retry would hide it
    params={name: Param(**schema) for name, schema in BisectRequest.params().items()},
    doc_md=__doc__,
    tags=["onceproof"],
)
def bisect() -> None:
    """One task, which bisects one scenario."""
    find_boundaries()


graph = bisect()
