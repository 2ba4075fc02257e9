"""The way of one trial, in three parts that may run in different processes: provision, preload, drive."""

import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from onceproof.lab.artifacts import dumper_class_path
from onceproof.lab.cluster import Cluster
from onceproof.lab.context import Report, progress_of
from onceproof.lab.driver import Driver
from onceproof.lab.input import start_first
from onceproof.lab.judging import check_least
from onceproof.lab.plan import plan_of, reads_segments
from onceproof.lab.topics import ApplicationTopics
from onceproof.lab.world import REAL, World
from onceproof.model.anomaly import Findings
from onceproof.model.cell import Trial
from onceproof.model.errors import HarnessError, StoodStillError
from onceproof.model.files import CHANGELOG, Outcome, Reading, TrialPlan, TrialProgress, write_observations
from onceproof.model.json_file import unwritable
from onceproof.model.run_folder import TrialFolder
from onceproof.model.timeline import Timeline
from onceproof.processes.locks import in_use
from onceproof.processes.waiting import holds_within
from onceproof.scenarios.prepared import PreparedTrial

NOTICED_WITHIN = 2.0  # the death of a broker
BEGUN = TrialProgress()
# Topics whose records may be of any time keep all of them: those of a segment that is not closed are never compacted.
KEPT = {"retention.ms": "-1", "segment.ms": str((1 << 63) - 1)}


def provision(
    prepared: PreparedTrial, cluster: Cluster, folder: TrialFolder, progress: TrialProgress = BEGUN
) -> TrialPlan:
    """Create the topics and write down the trial with every config that will be used; returns what was written.

    The `progress` so far is written down, too.

    Raises:
        HarnessError: the brokers refused, or the folder cannot be written.
    """
    plan = plan_of(prepared, cluster)
    if reads_segments(plan):
        dumper_class_path(cluster.installation, cluster.release)  # it takes a while the first time
    begin = time.monotonic()
    for old in (folder.outcome_file, folder.reader_file, folder.observations_file, folder.segments_file):
        old.unlink(missing_ok=True)
    with _explain_errors(cluster):
        topics = ApplicationTopics(cluster, plan.application_id, set(map(plan.topic, plan.roles)))
        topics.create(_new_topics(plan, cluster))
        if plan.group_config:
            topics.alter_group(plan.group_config)
        topics.close()
        hosts = cluster.hosts()
    plan = replace(plan, broker_config=cluster.files(), broker_hosts=hosts)
    plan.write(folder.trial_file)
    progress.and_then("provision", _since(begin)).write(folder.progress_file)
    return plan


def _new_topics(plan: TrialPlan, cluster: Cluster) -> Iterator[NewTopic]:
    """The topics that exist before the application does: it usually creates its changelogs itself."""
    trial, partitions = plan.trial, plan.partitions
    for name, planned in plan.roles.items():
        if planned.declared and planned.declared.plays == CHANGELOG:
            continue  # Kafka Streams knows how many partitions it needs
        if planned.declared:
            config = {**KEPT, **planned.declared.config}
            yield NewTopic(planned.declared.name, plan.partitions_of(name), config=config)
        elif planned.may_refuse:
            replicas = [[1, cluster.dead_broker()]] * partitions
            config = {"min.insync.replicas": "1"}
            if name.endswith("-changelog"):
                config["cleanup.policy"] = "compact"
            yield NewTopic(trial.topic(name), partitions, replica_assignment=replicas, config=config)
        elif name in (*plan.inputs, "output", "dead-letters", "answers"):
            yield NewTopic(trial.topic(name), partitions)


def preload(prepared: PreparedTrial, plan: TrialPlan, cluster: Cluster, folder: TrialFolder) -> None:
    """Produce the first bulk, and write down how long it took.

    Raises:
        HarnessError: a record was not delivered.
    """
    begin = time.monotonic()
    timeline = Timeline(folder.preload)
    try:
        start_first(plan, cluster, timeline, prepared.workload).await_delivered()
    finally:
        timeline.close()
    progress_of(folder).and_then("preload", _since(begin)).write(folder.progress_file)


def drive(
    prepared: PreparedTrial,
    plan: TrialPlan,
    cluster: Cluster,
    folder: TrialFolder,
    report: Report = lambda _: None,
    world: World = REAL,
) -> Outcome:
    """Run the application through the scenario, let the independent reader judge, and write the outcome.

    Args:
        prepared: the trial to be run.
        plan: of it; its topics are provisioned and preloaded.
        cluster: the brokers.
        folder: takes timeline, logs, `reader.json`, and `outcome.json` last.
        report: called with the name of each phase as it begins.
        world: what the trial is made of.

    Returns:
        What was written as the outcome.

    Raises:
        HarnessError: the harness failed; the outcome carries the sentence.
    """
    with in_use(folder.path):
        driver = Driver(prepared, plan, cluster, folder, report, world)
        outcome = None
        try:
            with _explain_errors(cluster):
                exercise = driver.drive()
                reading, observed = driver.judge()
            write_observations(folder.observations_file, observed)
            reading.write(folder.reader_file)
            outcome = check_least(plan, driver.outcome(exercise), reading)
        except (HarnessError, StoodStillError) as error:
            # A process without CPU time proves no fault of Kafka's, whatever it did.
            void = driver.context.void or (str(error) if isinstance(error, StoodStillError) else None)
            if void is None:
                driver.outcome(error=str(error)).write(folder.outcome_file)
                raise
            Reading.of(Findings(0, 0, 0, 0), {}).write(folder.reader_file)
            outcome = driver.outcome(void=void)
        finally:
            driver.stop()
            if outcome is not None and outcome.failed is None:  # the state of a failed trial is evidence
                shutil.rmtree(folder.state, ignore_errors=True)
        outcome.write(folder.outcome_file)
        return outcome


@contextmanager
def _explain_errors(cluster: Cluster) -> Iterator[None]:
    """Turn what a Kafka client or the disk throws into a HarnessError; a broker that died is named first."""
    try:
        yield
    except KafkaException as error:
        # Its connections break before it is noticed to be gone.
        holds_within(NOTICED_WITHIN, lambda: False, cluster.check_alive)
        raise HarnessError(f"The brokers at {cluster.bootstrap_servers} failed: {error}.") from error
    except OSError as error:
        raise unwritable(error) from error


def _since(begin: float) -> float:
    return round(time.monotonic() - begin, 2)


def run_trial(
    trial: Trial,
    folder: TrialFolder,
    report: Report = lambda _: None,
    *,
    cluster: Cluster,
    up: float = 0.0,
    world: World = REAL,
) -> Outcome:
    """One whole trial on brokers that serve: provision, preload, drive.

    Args:
        trial: to be run.
        folder: takes what it leaves.
        report: called with the name of each phase as it begins.
        cluster: the brokers, which may be shared.
        up: seconds that it took to start them.
        world: what the trial is made of.

    Raises:
        HarnessError: the harness failed.
    """
    report("provision")
    prepared = PreparedTrial(trial)
    plan = provision(prepared, cluster, folder, BEGUN.and_then("cluster", up))
    report("preload")
    preload(prepared, plan, cluster, folder)
    return drive(prepared, plan, cluster, folder, report, world)


def run_alone(
    trial: Trial, folder: TrialFolder, brokers: AbstractContextManager[Cluster], report: Report = lambda _: None
) -> Outcome:
    """One whole trial, with brokers that are started before it and cleaned up after it.

    `external_brokers` gives such brokers (`own_cluster`, `lend`). Those of a user are assumed to allow it: the caller
    checks that (`check_access`).

    Raises:
        UsageError, HarnessError: the brokers did not start, or the harness failed.
    """
    begin = time.monotonic()
    report("cluster")
    with brokers as cluster:
        return run_trial(trial, folder, report, cluster=cluster, up=_since(begin))
