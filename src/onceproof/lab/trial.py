"""One trial, in three parts that may run in different processes: provision, seed, drive."""

import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaException

from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.lab.instance import Instance
from onceproof.lab.load import PRODUCER_CONFIG, Bulk
from onceproof.lab.processes import await_condition
from onceproof.lab.reader import Reader
from onceproof.lab.topics import Topics
from onceproof.model.anomaly import Findings
from onceproof.model.cell import Trial
from onceproof.model.errors import HarnessError
from onceproof.model.run_folder import TrialFolder, read_json, unwritable, write_json
from onceproof.model.timeline import Event, Timeline
from onceproof.scenarios import scenario
from onceproof.scenarios.base import Exercise

Report = Callable[[str], None]

# What the lab adds to a scenario's own configuration, and why.
LAB_CONFIG = {
    # Members learn of a rebalance by their heartbeats; with Kafka's 3 s each step of a trial would take that long.
    "main.consumer.heartbeat.interval.ms": "200",
}
DRAIN_TIMEOUT = 120.0


def provision(trial: Trial, cluster: Cluster, folder: TrialFolder) -> None:
    """Create the topics and write down the trial with every config that will be used.

    Raises:
        HarnessError: the brokers refused, or the folder cannot be written.
    """
    what = scenario(trial.cell.scenario)
    begin = time.monotonic()
    folder.outcome_file.unlink(missing_ok=True)
    with _explained(cluster):
        topics = Topics(cluster, trial.application_id)
        topics.create([trial.topic("input"), trial.topic("output")], what.partitions)
        topics.close()
    write_json(
        folder.trial_file,
        {
            "trial": trial.to_dict(),
            "application_id": trial.application_id,
            "description": what.variant(trial.cell.variant).description,
            "partitions": what.partitions,
            "roles": list(what.roles),
            "app": dict(what.app(trial)),
            "streams_config": _streams_config(trial),
            "producer_config": PRODUCER_CONFIG,
            "broker_config": _broker_config(cluster),
            "seconds": {"provision": _since(begin)},
        },
    )


def _streams_config(trial: Trial) -> dict[str, str]:
    """Configuration of every instance; its ids, its state directory and the brokers come on top."""
    return {**LAB_CONFIG, **scenario(trial.cell.scenario).config(trial)}


def _broker_config(cluster: Cluster) -> dict[str, str]:
    """Files of the embedded brokers, by name; nothing is known of external ones."""
    if not isinstance(cluster, EmbeddedCluster):
        return {}
    return {file.name: file.read_text() for file in sorted(cluster.folder.glob("*.properties"))}


def seed(trial: Trial, cluster: Cluster, folder: TrialFolder) -> None:
    """Produce the first bulk.

    Raises:
        HarnessError: a record was not delivered.
    """
    what = scenario(trial.cell.scenario)
    begin = time.monotonic()
    timeline = Timeline(folder.path / "seed.jsonl")
    try:
        bulk = _bulk(trial, cluster, timeline, "first", what.workload(trial).first, None)
        bulk.await_delivered()
    finally:
        timeline.close()
    notes = read_json(folder.trial_file)
    notes["seconds"]["seed"] = _since(begin)
    notes["seeded"] = bulk.delivered
    write_json(folder.trial_file, notes)


def _bulk(
    trial: Trial,
    cluster: Cluster,
    timeline: Timeline,
    name: str,
    records: Sequence[tuple[int, int]],
    rate: float | None,
) -> Bulk:
    """Start producing to the trial's input, partitioned as its scenario wants it."""
    what = scenario(trial.cell.scenario)
    topic = trial.topic("input")
    return Bulk(cluster, topic, lambda key: what.partition(key, what.partitions), name, records, rate, timeline)


def drive(trial: Trial, cluster: Cluster, folder: TrialFolder, report: Report = lambda _: None) -> dict[str, Any]:
    """Run the application through the scenario, let the independent reader judge, and write the outcome.

    Args:
        trial: what to run; its topics are provisioned and seeded.
        cluster: the brokers.
        folder: takes timeline, logs, `reader.json`, and `outcome.json` last.
        report: called with the name of each phase as it begins.

    Returns:
        What was written as the outcome.

    Raises:
        HarnessError: the harness failed; the outcome carries the sentence.
    """
    lab = TrialLab(trial, cluster, folder, report)
    failed = False
    try:
        with _explained(cluster):
            exercise = lab.what.drive(lab)
            with lab.phase("read"):
                findings = lab.what.check(lab.read())
                lab.compare(findings)
        write_json(folder.reader_file, findings.to_dict())
        outcome = lab.outcome(exercise, None)
    except HarnessError as error:
        failed = True
        write_json(folder.outcome_file, lab.outcome(None, str(error)))
        raise
    finally:
        lab.end()
        if not failed:  # of a failed trial the state is evidence
            shutil.rmtree(folder.state, ignore_errors=True)
    write_json(folder.outcome_file, outcome)
    return outcome


@contextmanager
def _explained(cluster: Cluster) -> Iterator[None]:
    """Turn what a Kafka client or the disk throws into a HarnessError; a broker that died is named first."""
    try:
        yield
    except KafkaException as error:
        cluster.check_alive()
        raise HarnessError(f"The brokers at {cluster.bootstrap_servers} failed: {error}.") from error
    except OSError as error:
        raise unwritable(error) from error


def _since(begin: float) -> float:
    return round(time.monotonic() - begin, 2)


class TrialLab:
    """What a scenario may do to the world (`scenarios.base.Lab`), done for real."""

    def __init__(self, trial: Trial, cluster: Cluster, folder: TrialFolder, report: Report) -> None:
        """Prepare the folder."""
        self.trial = trial
        self.rng = random.Random(trial.seed)
        self.what = scenario(trial.cell.scenario)
        self._cluster, self._folder, self._report = cluster, folder, report
        self._topics = Topics(cluster, trial.application_id)
        self._instances: dict[str, Instance] = {}
        self._bulks: list[Bulk] = []
        self._reader: Reader | None = None
        self._attested: dict[str, Any] = {}
        notes = read_json(folder.trial_file)
        self._seconds: dict[str, float] = dict(notes["seconds"])
        shutil.rmtree(folder.state, ignore_errors=True)
        self._timeline = Timeline(folder.timeline)
        work = self.what.workload(trial)
        self._keys = {key for key, _ in work.first}
        self._produced = int(notes["seeded"])

    @property
    def events(self) -> Sequence[Event]:
        """The timeline so far."""
        return self._timeline.events

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Name what happens in a `with` block; its seconds are kept."""
        self._timeline.add("driver", "phase", name=name)
        self._report(name)
        begin = time.monotonic()
        try:
            yield
        finally:
            self._seconds[name] = _since(begin)

    def start_instance(self, name: str) -> Instance:
        """Start an instance and wait until the right release has loaded."""
        instance = Instance(name, self.trial.cell.streams, self._folder.instances, self._timeline)
        self._instances[name] = instance
        config = {
            **self._cluster.java_client(),
            "application.id": self.trial.application_id,
            "client.id": f"{self.trial.application_id}-{name}",
            "state.dir": str(self._folder.state / name),
            **_streams_config(self.trial),
        }
        instance.start(self.what.topology, dict(self.what.app(self.trial)), config)
        self._attested[name] = instance.await_hello()
        return instance

    def produce(self, name: str, records: Sequence[tuple[int, int]], rate: float | None = None) -> Bulk:
        """Send records in the background."""
        bulk = _bulk(self.trial, self._cluster, self._timeline, name, records, rate)
        self._bulks.append(bulk)
        self._keys |= {key for key, _ in records}
        # By now the application has created its changelogs, so all topics can be read along.
        if self._reader is None:
            self._reader = self._start_reader()
        return bulk

    def _start_reader(self) -> Reader:
        topics = {role: self.trial.topic(role) for role in self.what.roles}
        await_condition(
            f"the topics {', '.join(topics.values())}",
            lambda: set(topics.values()) <= self._topics.names(),
            timeout=30,
            check=self._check,
        )
        return Reader(self._cluster, self.trial.application_id, topics, self.what.partitions)

    def step(self, command: str, instance: str) -> None:
        """Scale: have an instance carry out a command, and record it."""
        self._timeline.add("driver", "step", action=command, instance=instance)
        self._report(f"{command} {instance}")
        if self._instances[instance].command(command) is None:
            raise HarnessError(
                f"{instance} did not {command}: Kafka Streams {self.trial.cell.streams} answered nothing."
            )

    def await_(self, what: str, condition: Callable[[], object], timeout: float = 60.0) -> None:
        """Wait for a condition."""
        await_condition(what, condition, timeout=timeout, check=self._check, last_seen=self._last_seen)

    def holds_within(self, seconds: float, condition: Callable[[], object]) -> bool:
        """Whether a condition comes to hold within some time."""
        deadline = time.monotonic() + seconds
        while not condition():
            self._check()
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        return True

    def committed(self) -> int:
        """Input records whose processing is committed."""
        return self._topics.committed(self.trial.topic("input"), self.what.partitions)

    def await_drained(self) -> None:
        """Wait until everything produced is processed and committed."""
        for bulk in self._bulks:
            bulk.await_delivered()
            self._produced += bulk.delivered
        end = sum(self._topics.ends([self.trial.topic("input")], self.what.partitions).values())
        self.await_(f"{end:,} records to be committed", lambda: self.committed() >= end, DRAIN_TIMEOUT)
        self._timeline.add("driver", "drained", committed=end)

    def close_instances(self) -> None:
        """Let all instances leave, side by side."""
        for instance in self._instances.values():
            instance.close()
        for instance in self._instances.values():
            instance.await_closed()

    def read(self) -> dict[str, Any]:
        """The committed records of all topics, by role."""
        reader, self._reader = self._reader or self._start_reader(), None
        topics = [self.trial.topic(role) for role in self.what.roles]
        return reader.finish(self._topics.ends(topics, self.what.partitions))

    def compare(self, findings: Findings) -> None:
        """Check that what was delivered is what stands in the input topic.

        Raises:
            HarnessError: it is not, so the trial says nothing.
        """
        produced, found = (self._produced, len(self._keys)), (findings.records, findings.keys)
        if produced != found:
            raise HarnessError(
                f"{produced[0]:,} records with {produced[1]:,} keys were delivered, but the input topic has "
                f"{found[0]:,} with {found[1]:,}."
            )

    def outcome(self, exercise: Exercise | None, error: str | None) -> dict[str, Any]:
        """What is written as the outcome."""
        return {
            "trial": self.trial.to_dict(),
            "error": error,
            "exercised": exercise is not None and exercise.exercised,
            "reason": exercise.reason if exercise else error,
            "steps": exercise.steps if exercise else None,
            "all_steps_tried": exercise is not None and exercise.all_steps_tried,
            "produced": {"records": self._produced, "keys": len(self._keys)},
            "attested": self._attested,
            "seconds": self._seconds | {"total": round(sum(self._seconds.values()), 2)},
        }

    def end(self) -> None:
        """Stop whatever still runs."""
        for bulk in self._bulks:
            bulk.stop()
        for instance in self._instances.values():
            instance.kill()
        if self._reader is not None:
            self._reader.stop()
            self._reader = None
        self._topics.close()
        self._timeline.close()

    def _check(self) -> None:
        if self._timeline.failure:
            raise self._timeline.failure
        self._cluster.check_alive()
        for instance in self._instances.values():
            instance.check_alive()
        for bulk in self._bulks:
            bulk.check()

    def _last_seen(self) -> str:
        states = ", ".join(f"{i.name} {i.state} {i.processed:,} processed" for i in self._instances.values())
        return f"Committed: {self.committed():,}; {states}; the logs are in {self._folder.instances}."


def run_trial(
    trial: Trial, folder: TrialFolder, report: Report = lambda _: None, cluster: Cluster | None = None
) -> dict[str, Any]:
    """One whole trial: brokers up (unless a cluster is given), provision, seed, drive, brokers down.

    Returns:
        The outcome; its seconds include `cluster`, the start of the brokers.

    Raises:
        HarnessError: the harness failed.
    """
    begin = time.monotonic()
    own: EmbeddedCluster | None = None
    if cluster is None:
        report("cluster")
        cluster = own = EmbeddedCluster.start(trial.cell.broker, folder.path / "cluster")
    try:
        up = _since(begin)
        report("provision")
        provision(trial, cluster, folder)
        report("seed")
        seed(trial, cluster, folder)
        notes = read_json(folder.trial_file)
        notes["seconds"] = {"cluster": up, **notes["seconds"]}
        write_json(folder.trial_file, notes)
        return drive(trial, cluster, folder, report)
    finally:
        if own is not None:
            own.stop()
