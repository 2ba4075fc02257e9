"""**Does a Kafka Streams release keep its promises?** Runs every night, and by hand with params of your own.

`plan` expands the matrix into cells (scenario, variant, releases) and writes the run folder. One cluster per broker
release serves all cells. `prepare` creates their topics and produces their first records. `drive` runs the trials of a
cell: it needs the machine and waits for the pool of that name. `drive_waiting_cells` does all that for cells whose
trials mostly wait, one after the other. `sense` plants a few bugs into releases about which too little is known, on
brokers of its own, whenever a slot of the pool is free (DAG `sensitivity` plants all). `add_trials` gives further
trials to cells whose claim does not hold yet. A Spark application reads the topics and finds the anomalies: it is
started early, does so for trials that have ended, and for the rest after `end_trials`. Great Expectations validates the
tables, `judge` says what it means, `publish` keeps it, `gate` lets the run pass. `alert` is skipped unless a cell is
newly red. `extend_atlas` adds the verdicts to `ONCEPROOF_ATLAS`, if that is set.

**The run is red.** If `gate` failed, a cell regressed or could not be judged: its log names the cells and the run
folder, and everything is published. The log of any other red task ends with one sentence that says what to do.

**A cell is red.** Its trials failed in the lab: its verdict is `error`, and the other cells are judged nevertheless.
The logs of the application are in `trials/<trial>/instances/` of the run folder, those of the brokers in `clusters/`.

**Run it again.** Trigger a new run: clearing tasks of an old run does not bring back its brokers and topics.

**Connections and pool.** `spark_default`: the Spark master (`local[*]`). `onceproof_notify`: the receiver of messages
about newly red cells (without it, none is sent). `onceproof_brokers`: how brokers of your own are reached, if a run
asks for them. `drive`: trials driven at once (2). What needs the machine is queued as `lab`, for workers if there are
any.

**Assets.** `onceproof_verdicts` with every judged run, `onceproof_newly_red` with a newly red cell.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from logging import WARNING
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Asset, Connection, CronTriggerTimetable, Param, TriggerRule, dag, task
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException, AirflowSkipException

from onceproof.model.client_properties import ClientProperties
from onceproof.model.errors import OnceproofError, UsageError
from onceproof.model.json_file import read_json
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline import alerting, steps
from onceproof.pipeline.environment import of_the_lab
from onceproof.pipeline.request import RunRequest
from onceproof.settings import get_settings
from onceproof.spark import choose_compiler, connector_jars, spark_environment

RUN = "{{ ti.xcom_pull('plan') }}"  # a template, because an argument would draw an arrow from `plan` to every task
# Continues whatever became of single cells, but not if there is no plan.
GOES_ON = {"trigger_rule": TriggerRule.ALL_DONE_MIN_ONE_SUCCESS}
VERDICTS = Asset(name="onceproof_verdicts", uri="onceproof://verdicts")
NEWLY_RED = Asset(name="onceproof_newly_red", uri="onceproof://newly-red")
NOTIFY = "onceproof_notify"  # the connection that decides where
SPARK = "spark_default"
NAMED = {"map_index_template": "{{ task.op_kwargs['item']['title'] }}"}


@contextmanager
def one_sentence() -> Iterator[None]:
    """An error of ours ends the task in its sentence."""
    try:
        yield
    except OnceproofError as error:
        raise AirflowFailException(str(error)) from None


def client_properties(connection: str) -> ClientProperties:
    """How the brokers of a connection are reached.

    Raises:
        UsageError: there is no such connection, or it is no client.properties.
    """
    try:
        found = Connection.get(connection)
    except AirflowNotFoundException:
        raise UsageError(
            f"There is no connection {connection}: add it, with a client.properties as JSON in its extra "
            "(docs/brokers.md), or name releases of brokers that Onceproof starts."
        ) from None
    return ClientProperties.of(found.extra_dejson, f"The connection {connection}")


def external_brokers_of(run: RunFolder) -> ClientProperties:
    """How the external brokers of a run are reached."""
    return client_properties(read_json(run.run_file)["connection"])


def step(verb: Callable[..., Any], *, on_brokers: bool = False, **options: Any) -> Any:
    """A task that calls the verb with the run's folder; one that works with brokers, also with what asks for theirs."""

    @task(task_id=verb.__name__, doc_md=verb.__doc__, **options)
    def call(run: str, item: dict[str, str] | None = None) -> Any:
        folder = RunFolder(Path(run))
        asks = {"external": partial(external_brokers_of, folder)} if on_brokers else {}
        with one_sentence():
            return verb(folder, *([item["key"]] if item else []), **asks)

    return call


@task(doc_md=steps.plan.__doc__)
def plan(params: Any = None, dag_run: Any = None) -> str:
    """Make the plan; returns the run folder."""
    if steps.is_late(dag_run):
        raise AirflowSkipException("Airflow was not up at that time: a missed night is not made up for.")
    with one_sentence():
        asked = RunRequest.of_params(params)
        run_id = asked.run or steps.new_run_id(dag_run.run_after, dag_run.run_id)
        asks = partial(client_properties, asked.connection)
        return str(steps.plan(run_id, asked.request, dag_run.run_id, asked.connection, asks).path)


@task(doc_md=steps.stop_clusters.__doc__)
def stop_clusters(run: str, ti: Any = None) -> None:
    """Stop the brokers; and fail, as this is all that runs of a run that a user has marked failed."""
    folder = RunFolder(Path(run))
    with one_sentence():
        steps.stop_clusters(folder, partial(external_brokers_of, folder))
    states = ti.get_task_states(dag_id=ti.dag_id, task_ids=["end_trials"], run_ids=[ti.run_id])
    if "skipped" in states[ti.run_id].values():
        raise AirflowFailException("The run was ended by hand: there is no verdict. Its brokers are stopped.")


@task(doc_md=steps.publish.__doc__, outlets=[VERDICTS])
def publish(run: str, outlet_events: Any = None) -> None:
    """Publish the verdicts; the asset's event reports them."""
    folder = RunFolder(Path(run))
    with one_sentence():
        steps.publish(folder)
        outlet_events[VERDICTS].extra = alerting.event_of(folder)


@task(outlets=[NEWLY_RED])
def alert(run: str, outlet_events: Any = None) -> None:
    """Report newly red cells; skipped if there are none."""
    folder = RunFolder(Path(run))
    with one_sentence():
        if not (cells := alerting.newly_red(folder)):
            raise AirflowSkipException("No cell is newly red.")
        outlet_events[NEWLY_RED].extra = alerting.event_of(folder) | {"newly_red": cells}
        notify(f"Onceproof: {len(cells)} newly red", alerting.message(folder, cells))


def notify(title: str, body: str) -> None:
    """Send a message where the connection says, if there is one; if that fails, the verdicts still stand."""
    from airflow.providers.apprise.notifications.apprise import AppriseNotifier
    from apprise import LogCapture

    print(body)
    try:
        Connection.get(NOTIFY)
    except AirflowNotFoundException:
        print(f"No message is sent: there is no connection {NOTIFY}.")
        return
    with LogCapture(level=WARNING, fmt="%(message)s") as complaints:  # the notifier does not raise its errors
        try:
            AppriseNotifier(title=title, body=body, apprise_conn_id=NOTIFY).notify({})
        except Exception as error:
            print(f"The notification by {NOTIFY} was not sent ({type(error).__name__}): check the connection.")
            return
        if reason := complaints.getvalue().strip():
            print(f"The notification by {NOTIFY} was not sent to all ({reason.splitlines()[0]}): check the connection.")


def require_spark() -> None:
    """Check that the connection to Spark exists: without one the provider takes YARN for the master.

    Raises:
        UsageError: it does not.
    """
    try:
        Connection.get(SPARK)
    except AirflowNotFoundException:
        raise UsageError(
            f"There is no connection {SPARK}, which names the Spark master: add it as docs/installing.md says."
        ) from None


class CollectAndCheck(SparkSubmitOperator):
    """Our Spark application, which learns through a pipe how external brokers are reached."""

    application_args: list[str]

    def execute(self, context: Any) -> None:
        """Run it to its end."""
        run = RunFolder(Path(self.application_args[-1]))
        with one_sentence():
            require_spark()
        self.env_vars = spark_environment(get_settings()) | choose_compiler(sum(1 for _ in run.trials()))
        self.application_args = ["--owner", str(os.getpid()), *self.application_args]
        if read_json(run.run_file).get("connection") is None:
            super().execute(context)
            return
        with one_sentence(), TemporaryDirectory() as folder:
            pipe = Path(folder) / "client.properties"
            os.mkfifo(pipe, 0o600)
            text = external_brokers_of(run).text()
            Thread(target=pipe.write_text, args=(text,), daemon=True).start()  # waits for the reader
            self.application_args += ["--brokers", str(pipe)]
            super().execute(context)


def collect_and_check() -> SparkSubmitOperator:
    """Our Spark application, over the whole run: it starts early and takes trials as they end."""
    jobs, host = get_settings().project / "spark_jobs", get_settings().host
    return CollectAndCheck(
        task_id="collect_and_check",
        conn_id=SPARK,
        name="onceproof collect_and_check",
        application=str(jobs / "collect_and_check.py"),
        application_args=["--early", "--run-folder", RUN],
        properties_file=str(jobs / "spark.conf"),
        jars="{{ connector_jars() }}",
        # Executors on other machines call the driver back.
        conf={"spark.driver.host": host, "spark.driver.bindAddress": host},
    )


@dag(
    schedule=CronTriggerTimetable("15 2 * * *", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(hours=20),
    is_paused_upon_creation=False,
    # A failure is a finding; a retry would hide it. The tasks that are furthest along go first.
    default_args={"retries": 0, "weight_rule": "upstream"},
    params={name: Param(**schema) for name, schema in RunRequest.params(matrix="nightly").items()},
    user_defined_macros={"connector_jars": connector_jars},
    doc_md=__doc__,
    tags=["onceproof"],
)
def regression() -> None:
    """Plan, prepare and drive all cells, then let Spark check them and judge the run."""
    lab = of_the_lab(get_settings())
    planned, brokers, cells = plan(), step(steps.brokers)(RUN), step(steps.cells)(RUN)
    started = step(steps.start_cluster, on_brokers=True, **NAMED).partial(run=RUN).expand(item=brokers)
    prepared = step(steps.prepare, on_brokers=True)(RUN)
    driven = step(steps.drive, on_brokers=True, **lab, **NAMED).partial(run=RUN).expand(item=cells)
    sensed = step(steps.sense, **lab)(RUN)
    added = step(steps.add_trials, on_brokers=True, **lab, **GOES_ON)(RUN)
    # Spark would wait forever if this were killed.
    ended = step(steps.end_trials, retries=2, retry_delay=timedelta(seconds=1), **GOES_ON)(RUN)
    checked, validated = collect_and_check(), step(steps.validate)(RUN)
    judged = step(steps.judge, **GOES_ON)(RUN)
    stopped = stop_clusters(RUN).as_teardown(setups=started, on_failure_fail_dagrun=True)

    planned >> [brokers, cells, sensed]
    sensed >> added
    started >> prepared >> driven
    started >> step(steps.drive_waiting_cells, on_brokers=True)(RUN) >> added
    driven >> added >> ended >> [stopped, validated, judged]
    checked >> [stopped, validated]
    validated >> judged >> publish(RUN) >> [step(steps.gate)(RUN), alert(RUN), step(steps.extend_atlas)(RUN)]
    planned >> [added, ended, checked, judged]


graph = regression()
