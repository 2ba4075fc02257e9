"""One trial, in three parts that may run in different processes: provision, seed, drive."""

import random
import re
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from onceproof.faults import chosen
from onceproof.harness import harness_version
from onceproof.lab.artifacts import dumper_class_path
from onceproof.lab.cluster import Cluster
from onceproof.lab.given import GivenCluster, cluster_of
from onceproof.lab.instance import Instance
from onceproof.lab.load import Bulk
from onceproof.lab.plan import check_capabilities, plan_of, reads_segments
from onceproof.lab.processes import await_condition, holds_within
from onceproof.lab.reader import Reader, Source
from onceproof.lab.segments import Dump, Logs, write_segments
from onceproof.lab.topics import Topics
from onceproof.lab.world import REAL, World
from onceproof.model.anomaly import Comparison, Findings
from onceproof.model.cell import Trial
from onceproof.model.errors import HarnessError, KafkaFailedError, OnceproofError, StoodStillError
from onceproof.model.files import Outcome, Planted, Produced, Reading, Suffered, TrialPlan, write_observations
from onceproof.model.json_file import unwritable
from onceproof.model.place import Place
from onceproof.model.record import Record
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder, read_contents
from onceproof.model.timeline import Event, Return, Timeline, stall_text, time_of_line
from onceproof.readers.checks import CHECKS
from onceproof.readers.inputs import deviation
from onceproof.readers.segments import compare_segments
from onceproof.readers.stores import compare_stores
from onceproof.scenarios import scenario
from onceproof.scenarios.base import INSTANCE, Exercise, partition_of_key, values_of
from onceproof.scenarios.liveness import compare_liveness

Report = Callable[[str], None]

PATIENCE = 120.0  # seconds without a commit after which a drain is stuck
SETTLED = 0.2  # seconds between two looks that must show the same
CLOSING = 5.0  # seconds that the instances of a drive that failed are given to end in good order
OPEN_FOR = 20.0  # seconds that the markers of the last transactions may take, when all is drained and closed
RECYCLED_WITHIN = 10_000  # ms before an instance tells that a task became a standby
RETRIED_WITHIN = 20_000  # ms in which Kafka Streams tries again to lock a directory: its longest pause is some 15 s
NOT_LOCKED = re.compile(r"Failed to lock the state directory for task (\S+)")
NOTICED_WITHIN = 2.0  # the death of a broker
MARKED_WITHIN = 5.0  # seconds that the last markers are given, when all is drained, closed and read


def provision(trial: Trial, cluster: Cluster, folder: TrialFolder) -> None:
    """Create the topics and write down the trial with every config that will be used.

    Raises:
        UsageError: the brokers do not allow what the trial needs.
        HarnessError: the brokers refused, or the folder cannot be written.
    """
    check_capabilities(trial, cluster)
    plan = plan_of(trial, cluster)
    if reads_segments(plan):
        dumper_class_path(cluster.release)  # it takes a while, the first time
    begin = time.monotonic()
    for old in (folder.outcome_file, folder.reader_file, folder.observations_file, folder.segments_file):
        old.unlink(missing_ok=True)
    with _explained(cluster):
        topics = Topics(cluster, trial.application_id)
        topics.create(_new_topics(plan, cluster))
        if plan.group_config:
            topics.alter_group(plan.group_config)
        topics.close()
    seconds = {"provision": _since(begin)}
    replace(plan, broker_config=cluster.files(), seconds=seconds).write(folder.trial_file)


def _new_topics(plan: TrialPlan, cluster: Cluster) -> Iterator[NewTopic]:
    """The topics that are there before the application is: it creates its changelogs itself, as a rule."""
    trial, partitions = plan.trial, plan.partitions
    for name, planned in plan.roles.items():
        if planned.may_refuse:
            replicas = [[1, cluster.dead_broker()]] * partitions
            config = {"min.insync.replicas": "1"}
            if name.endswith("-changelog"):
                config["cleanup.policy"] = "compact"
            yield NewTopic(trial.topic(name), partitions, replica_assignment=replicas, config=config)
        elif name in ("input", "output"):
            yield NewTopic(trial.topic(name), partitions)


def seed(trial: Trial, cluster: Cluster, folder: TrialFolder) -> None:
    """Produce the first bulk.

    Raises:
        HarnessError: a record was not delivered.
    """
    plan = TrialPlan.read(folder.trial_file)
    begin = time.monotonic()
    timeline = Timeline(folder.path / "seed.jsonl")
    try:
        records = scenario(trial.cell.scenario).workload(trial).first
        bulk = _bulk(plan, cluster, timeline, "first", records, None)
        bulk.await_delivered()
    finally:
        timeline.close()
    replace(plan, seconds={**plan.seconds, "seed": _since(begin)}, seeded=bulk.delivered).write(folder.trial_file)


def _bulk(
    plan: TrialPlan,
    cluster: Cluster,
    timeline: Timeline,
    name: str,
    records: Sequence[tuple[int, int]],
    rate: float | None,
    timestamps: Sequence[int] | None = None,
    world: World = REAL,
) -> Bulk:
    """Start producing to the trial's input."""
    partition = partial(partition_of_key, partitions=plan.partitions)
    return world.bulk(cluster, plan.trial.topic("input"), partition, name, records, rate, timeline, timestamps)


def drive(
    trial: Trial, cluster: Cluster, folder: TrialFolder, report: Report = lambda _: None, world: World = REAL
) -> Outcome:
    """Run the application through the scenario, let the independent reader judge, and write the outcome.

    Args:
        trial: what to run; its topics are provisioned and seeded.
        cluster: the brokers.
        folder: takes timeline, logs, `reader.json`, and `outcome.json` last.
        report: called with the name of each phase as it begins.
        world: what the trial is made of.

    Returns:
        What was written as the outcome.

    Raises:
        HarnessError: the harness failed; the outcome carries the sentence.
    """
    lab = TrialLab(trial, cluster, folder, report, world)
    outcome = None
    try:
        with _explained(cluster):
            exercise = lab.drive()
            findings, observed = lab.judge()
        write_observations(folder.observations_file, observed)
        Reading.of(findings).write(folder.reader_file)
        outcome = lab.outcome(exercise)
    except (HarnessError, StoodStillError) as error:
        # What a process did that was given no time is nobody's fault, whatever it looks like.
        void = stall_text(lab.events) or (str(error) if isinstance(error, StoodStillError) else None)
        if void is None:
            lab.outcome(error=str(error)).write(folder.outcome_file)
            raise
        Reading.of(Findings(0, 0, 0, 0)).write(folder.reader_file)
        outcome = lab.outcome(void=void)
    finally:
        lab.stop()
        if outcome is not None and outcome.failed is None:  # of a trial that failed the state is evidence
            shutil.rmtree(folder.state, ignore_errors=True)
    outcome.write(folder.outcome_file)
    return outcome


@contextmanager
def _explained(cluster: Cluster) -> Iterator[None]:
    """Turn what a Kafka client or the disk throws into a HarnessError; a broker that died is named first."""
    try:
        yield
    except KafkaException as error:
        # Its connections break before it is seen to be gone.
        holds_within(NOTICED_WITHIN, lambda: False, cluster.check_alive)
        raise HarnessError(f"The brokers at {cluster.bootstrap_servers} failed: {error}.") from error
    except OSError as error:
        raise unwritable(error) from error


def _since(begin: float) -> float:
    return round(time.monotonic() - begin, 2)


class TrialLab:
    """What a scenario may do to the world (`scenarios.base.Lab`), done for real."""

    def __init__(
        self, trial: Trial, cluster: Cluster, folder: TrialFolder, report: Report, world: World = REAL
    ) -> None:
        """Prepare the folder."""
        self.trial = trial
        self.rng = random.Random(trial.seed)
        self.what = scenario(trial.cell.scenario)
        self.parameters: Mapping[str, Any] = values_of(trial, self.what.parameters, self.what.variants)
        self.workload = self.what.workload(trial)
        self._plan = TrialPlan.read(folder.trial_file)
        self._partitions = self._plan.partitions
        self._cluster, self._folder, self._report, self._world = cluster, folder, report, world
        self._topics = world.topics(cluster, trial.application_id)
        self._instances: dict[str, Instance] = {}
        self._started: list[Instance] = []  # all that ever were
        self._bulks: list[Bulk] = []
        self._readers: list[Reader] = []
        self._dump_running: Dump | None = None
        self._starts: Counter[str] = Counter()
        self._attested: dict[str, Any] = {}
        self._failure: KafkaFailedError | None = None
        self._facts: dict[str, int] = {}
        self._limited: set[str] = set()  # client ids that have a quota
        self._seconds = dict(self._plan.seconds)
        for old in (folder.state, folder.contents, folder.dumps_folder, folder.instances):  # of one that was cut off
            shutil.rmtree(old, ignore_errors=True)
        self._timeline = Timeline(folder.timeline, world.now)
        self.brokers = world.brokers(cluster, self.note)
        self._seeded = self._plan.seeded
        self._ticker = world.ticker(lambda seconds: self.note("stall", ms=round(seconds * 1_000)))

    def drive(self) -> Exercise:
        """Drive the scenario; to its end, or until Kafka fails, which is told in the timeline.

        Raises:
            HarnessError: the harness failed.
            StoodStillError: some process was not given any time.
        """
        try:
            exercise = self.what.drive(self)
        except KafkaFailedError as failure:
            exercise = self._failed(failure)
        self._ticker.stop()
        self._require_time()
        return exercise

    def _failed(self, failure: KafkaFailedError) -> Exercise:
        """Keep what tells why, end the application, and look at how far it came."""
        self._failure = failure
        told = {"anomaly": failure.anomaly, "place": failure.place}
        self.note("failure", **told, expected=failure.expected, observed=failure.observed)
        with self.phase("failure"):
            if failure.anomaly != "thread-died":
                self._dump()
            self._check_answers()
            for bulk in self._bulks:
                bulk.stop()
                bulk.await_sent()
            for instance in self._instances.values():
                if not instance.has_ended():
                    instance.close()
            self._within(CLOSING, lambda: all(instance.has_ended() for instance in self._instances.values()))
            for instance in self._instances.values():
                instance.kill()
            self._facts |= {f"input_end/{p}": offset for p, offset in self._settled().items()}
        return Exercise(exercised=False, reason=str(failure), all_steps_tried=False)

    def _dump(self) -> None:
        """Write down what the threads of every instance do.

        Raises:
            StoodStillError: somebody has stopped an instance.
        """
        for instance in self._instances.values():
            if instance.is_stopped():
                raise StoodStillError(f"{instance.name} was stopped (SIGSTOP), so it could do nothing.")
            missing = instance.dump_threads(self._folder.threads / f"{instance.log.stem}.txt")
            self.note("threads", name=instance.name, missing=missing)
            for task in self._locked(instance.log):
                self.note("locked", instance=instance.name, task=task)

    def _locked(self, log: Path) -> list[str]:
        """The tasks whose directories an instance has just failed to lock, by its log."""
        t, failed = 0, {}
        for line in log.open(errors="replace"):
            stamp = time_of_line(line)
            t = t if stamp is None else stamp
            if said := NOT_LOCKED.search(line):
                failed[said.group(1)] = t
        return sorted(task for task, at in failed.items() if self._world.now() * 1_000 - at <= RETRIED_WITHIN)

    def _check_answers(self) -> None:
        """Check that the brokers are healthy, so that it was not they who held up the application.

        Raises:
            HarnessError: they are gone.
            KafkaException: they do not answer.
        """
        self._cluster.check_alive()
        self._topics.names()

    def _settled(self) -> dict[int, int]:
        """How far each partition of the input is committed, when nothing is written any more."""
        topic, names = self.trial.topic("input"), self._present()
        seen: tuple[object, object] = (None, None)
        while True:
            before, offsets = seen, self._topics.offsets(topic, self._partitions)
            seen = (offsets, self._topics.ends(names, self._partitions, committed=True))
            if seen == before:
                return offsets
            self._world.sleep(SETTLED)

    def _require_time(self) -> None:
        if void := stall_text(self.events):
            raise StoodStillError(void)

    def judge(self) -> tuple[Findings, list[Comparison]]:
        """What the independent reader finds in the topics, and what the timeline shows beside them.

        Raises:
            HarnessError: the topics cannot be read, or hold another input than was delivered.
        """
        with self.phase("read"):
            # Of a drive that failed, the transactions that were open stay so until they have timed out.
            self.measure(ended=int(self._failure is None))
            dump = self._dump_segments()  # beside the readers
            records, corrupt = self.read()
            findings = CHECKS[self._plan.check](self._as_far_as_committed(records), self.facts())
            findings.add(corrupt)
            findings.add(self._compare_segments(dump, records, corrupt))
            findings.add(list(compare_stores(self._folder.dumps(), records)))
            if self._failure is None and not corrupt:
                self.compare(records["input"])
        observed = [*self.what.observe(self.trial, self.events), *compare_liveness(self.events)]
        findings.add(observed)
        return findings, observed

    @property
    def events(self) -> Sequence[Event]:
        """The timeline so far."""
        return self._timeline.events

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Name what happens in a `with` block; its seconds are kept."""
        self._timeline.add("driver", "phase", name=name)
        self._report(name)
        begin = self._world.monotonic()
        try:
            yield
        finally:
            self._seconds[name] = round(self._world.monotonic() - begin, 2)

    def now(self) -> float:
        """The time in epoch seconds."""
        return self._world.now()

    def note(self, event: str, **fields: Any) -> None:
        """Record something that the driver did or saw."""
        self._timeline.add("driver", event, **fields)

    def start_instance(
        self,
        name: str,
        release: Release | None = None,
        config: Mapping[str, str] | None = None,
        app: Mapping[str, Any] | None = None,
        log: str | None = None,
    ) -> Instance:
        """Start an instance and wait until the right release has loaded."""
        self._starts[name] += 1
        start = log or (f"{name}.{self._starts[name]}" if self._starts[name] > 1 else name)
        file = self._folder.instances / f"{start}.log"
        instance = self._world.instance(name, release or self.trial.cell.streams, file, self._timeline)
        instance.plant = self.trial.plant
        self._instances[name] = instance
        self._started.append(instance)
        whole = {
            **self._cluster.java_client(instance.release),
            "application.id": self.trial.application_id,
            "client.id": f"{self.trial.application_id}-{name}",
            "state.dir": str(self._folder.state / name),
            **{key: value.replace(INSTANCE, name) for key, value in self._plan.streams_config.items()},
            **(config or {}),
        }
        instance.start(self._plan.check, {**self._plan.app, **(app or {})}, whole)
        self._attested[start] = instance.await_hello()
        return instance

    def stop_instance(self, name: str, leave_group: bool = False) -> None:
        """Close an instance in good order and wait for its end."""
        instance = self._instances[name]
        instance.close(leave_group)
        instance.await_closed()
        del self._instances[name]

    @property
    def running(self) -> Mapping[str, Instance]:
        """The instances that run, by name."""
        return dict(self._instances)

    def kill_instance(self, name: str) -> None:
        """End an instance with SIGKILL."""
        self._instances.pop(name).kill()

    def freeze_instance(self, name: str) -> None:
        """Let an instance stand still (SIGSTOP)."""
        self._instances[name].freeze()

    def thaw_instance(self, name: str) -> None:
        """Let a frozen instance go on."""
        self._instances[name].thaw()

    def recycled(self, proof: Return) -> bool:
        """Whether a log says that the thread recycled its active task then."""
        name = proof.thread.partition(" (")[0]  # the timeline tells later starts apart like this
        said = re.compile(
            rf"\[{re.escape(name)}\].* task \[{re.escape(proof.task)}\] Closed (clean )?and recycled state"
        )
        lines = (line for log in self._folder.instances.glob("*.log") for line in log.open(errors="replace"))
        times = (time_of_line(line) for line in lines if said.search(line))
        # Told of is an assignment a little later than it is made; before it leaves the thread cannot recycle a task.
        return any(t is not None and proof.left - RECYCLED_WITHIN <= t <= proof.back for t in times)

    def state_directory(self, name: str) -> Path:
        """Where an instance keeps its stores."""
        return self._folder.state / name / self.trial.application_id

    def on_disk(self, name: str, task: str) -> dict[str, Mapping[int, int]]:
        """What RocksDB has on disk of a task of an instance that has ended or is frozen."""
        scratch, log = self._folder.path / "copied", self._folder.path / "directory.log"
        directory = self.state_directory(name) / task
        return self._world.read_task_directory(self.trial.cell.streams, directory, scratch, log)

    def contents_folder(self) -> Path:
        """Where an instance may write what its stores hold."""
        return self._folder.contents

    def produce(
        self,
        name: str,
        records: Sequence[tuple[int, int]],
        rate: float | None = None,
        timestamps: Sequence[int] | None = None,
    ) -> Bulk:
        """Send records in the background."""
        bulk = _bulk(self._plan, self._cluster, self._timeline, name, records, rate, timestamps, self._world)
        self._bulks.append(bulk)
        if not self._readers and self._topic_names() <= (present := self._topics.names()):
            self._start_readers(present)  # reads along
        return bulk

    def _topic_names(self) -> set[str]:
        return {self.trial.topic(planned.topic) for planned in self._plan.roles.values()}

    def _start_readers(self, present: set[str]) -> None:
        """One for committed records, and one for all of those topics of which these are wanted."""
        for committed in (True, False):
            sources = [
                Source(topic, role, planned.value_bytes)
                for role, planned in self._plan.roles.items()
                if planned.committed == committed and (topic := self.trial.topic(planned.topic)) in present
            ]
            if sources:
                group = self.trial.application_id
                self._readers.append(self._world.reader(self._cluster, group, sources, self._partitions, committed))

    def step(self, command: str, instance: str) -> None:
        """Scale: have an instance carry out a command, and record it."""
        self._timeline.add("driver", "step", action=command, instance=instance)
        self._report(f"{command} {instance}")
        if self._instances[instance].command(command) is None:
            raise HarnessError(
                f"{instance} did not {command}: Kafka Streams {self.trial.cell.streams} answered nothing."
            )

    def alter_topic(self, role: str, **config: str) -> None:
        """Change the configuration of a topic, for example `min_insync_replicas="2"`."""
        self._topics.alter(self.trial.topic(role), {key.replace("_", "."): value for key, value in config.items()})
        self._timeline.add("driver", "topic", role=role, config=config)

    def set_producer_quota(self, client: str, bytes_per_second: int | None) -> None:
        """Limit what the producer of this client id may send; None lifts the limit."""
        log = self._folder.path / "quota.log"
        self._limited.add(client)
        self._world.set_producer_quota(self._cluster, self.trial.cell.streams, client, bytes_per_second, log)
        if bytes_per_second is None:
            self._limited.discard(client)
        self._timeline.add("driver", "quota", client=client, bytes_per_second=bytes_per_second)

    def end(self, role: str) -> int:
        """End offset of a topic, summed over its partitions."""
        return sum(self._topics.ends([self.trial.topic(role)], self._partitions).values())

    def positions(self) -> Mapping[int, int]:
        """End offset of each partition of `__consumer_offsets`."""
        return self._topics.positions()

    def await_(self, what: str, condition: Callable[[], object], timeout: float = 60.0) -> None:
        """Wait for a condition that the application must bring about."""
        await_condition(
            what,
            condition,
            timeout=timeout,
            check=self._check,
            last_seen=self._last_seen,
            late=partial(self._stuck, what),
            clock=self._world.monotonic,
            sleep=self._world.sleep,
        )

    def _stuck(self, what: str, told: str) -> OnceproofError:
        """What it means that the application did not bring something about."""
        return KafkaFailedError("stuck", ", ".join(sorted(self._instances)) or "no instance", what, told)

    def holds_within(self, seconds: float, condition: Callable[[], object]) -> bool:
        """Whether a condition comes to hold within some time."""
        return self._within(seconds, condition, self._check)

    def _within(
        self, seconds: float, condition: Callable[[], object], check: Callable[[], None] = lambda: None
    ) -> bool:
        return holds_within(seconds, condition, check, self._world.monotonic, self._world.sleep)

    def committed(self, role: str = "input") -> int:
        """Records of a topic, the input as a rule, whose processing is committed."""
        return self._topics.committed(self.trial.topic(role), self._partitions)

    def await_drained(self) -> None:
        """Wait until everything produced is processed and committed."""
        for bulk in self._bulks:
            bulk.await_delivered()
        end = self.end("input")
        while (committed := self.committed()) < end:
            self.await_(
                f"more than {committed:,} of {end:,} records to be committed", self._more_than(committed), PATIENCE
            )
        self._timeline.add("driver", "drained", committed=end)

    def _more_than(self, committed: int) -> Callable[[], bool]:
        return lambda: self.committed() > committed

    def close_instances(self) -> None:
        """Have all instances write what their stores hold, then let them leave, side by side."""
        self.await_("every store to be written where it is active", self._dump_stores)
        for instance in self._instances.values():
            instance.close()
        for instance in self._instances.values():
            instance.await_closed()

    def _dump_stores(self) -> bool:
        """Have all instances write what their stores hold; whether they are all there, and no task is on its way."""
        active: set[tuple[str, int]] = set()
        for instance in self._instances.values():
            instance.command(f"dump {instance.name} {self._folder.dumps_folder}")
            stores = instance.last["dump"]["stores"]
            active |= {(store["store"], store["partition"]) for store in stores if store["role"] == "active"}
        return len(active) == self._plan.partition_stores

    def read(self) -> tuple[dict[str, list[Record]], list[Comparison]]:
        """The records of all topics by role, and what stores held as `<store>-contents`; what cannot be decoded.

        If the drive failed, a topic that was never created is empty.
        """
        if not self._readers:
            self._start_readers(self._awaited_topics())
        ends = {True: self._stable_ends(), False: self._topics.ends(self._present(), self._partitions)}
        if self._failure is not None:
            self._facts |= self._looked_at(ends[True])
        records: dict[str, list[Record]] = {role: [] for role in self._plan.roles}
        corrupt: list[Comparison] = []
        while self._readers:
            reader = self._readers.pop()
            found, faults = reader.finish(ends[reader.committed])
            records |= found
            corrupt += faults
        for role, partition, line, key, value in read_contents(self._folder.contents):
            records.setdefault(role, []).append(Record(partition, line, key, value))
        return records, corrupt

    def _looked_at(self, ends: Mapping[tuple[str, int], int]) -> dict[str, int]:
        """How far committed records are read: a transaction that is open now may have ended before Spark looks."""
        roles = self._logs().roles
        return {f"{roles[topic]}_read/{p}": end for (topic, p), end in ends.items() if topic in roles}

    def _as_far_as_committed(self, records: Mapping[str, list[Record]]) -> dict[str, list[Record]]:
        """The records; if the drive failed, without the input that was never processed."""
        if self._failure is None:
            return dict(records)
        return {**records, "input": [r for r in records["input"] if r[1] < self._facts[f"input_end/{r[0]}"]]}

    def _dump_segments(self) -> Dump | None:
        """Begin to read the brokers' log segments, if these are to be looked at."""
        if not reads_segments(self._plan):
            return None
        self._dump_running = Dump(self._cluster, self._logs(), self._folder.path)
        return self._dump_running

    def _logs(self) -> Logs:
        topics = self._plan.roles.items()
        roles = {self.trial.topic(planned.topic): role for role, planned in topics if planned.committed}
        return Logs(self.trial.application_id, roles)

    def _compare_segments(
        self, dump: Dump | None, records: Mapping[str, Sequence[Record]], corrupt: Sequence[Comparison]
    ) -> list[Comparison]:
        """What the log segments hold beside what was read; they are written down as well.

        Markers come a little after the answer to a commit, so where one is missing, the segments are read once more.
        """
        compared: list[Comparison] = []
        undecoded: dict[str, list[Record]] = defaultdict(list)
        for place in filter(None, (Place.parse(comparison.place) for comparison in corrupt)):
            undecoded[place.role].append(Record(place.partition, place.offset, key=None, value=None))
        deadline = self._world.monotonic() + MARKED_WITHIN
        while dump is not None:
            entries = dump.finish()
            topics = {role: [*records[role], *undecoded[role]] for role in self._logs().roles.values()}
            compared = list(compare_segments(entries, topics, self._plan.check, self.facts()))
            write_segments(self._folder.segments_file, entries)
            is_open = any(comparison.anomaly == "hanging-transaction" for comparison in compared)
            dump = self._dump_segments() if is_open and self._world.monotonic() < deadline else None
        return compared

    def _awaited_topics(self) -> set[str]:
        """The topics of the trial: all of them, or if the drive failed those that there are."""
        wanted = self._topic_names()
        if self._failure is None:
            await_condition(
                f"the topics {', '.join(sorted(wanted))}",
                lambda: wanted <= self._topics.names(),
                timeout=30,
                check=self._check,
            )
        return self._present()

    def _present(self) -> set[str]:
        return self._topic_names() & self._topics.names()

    def _stable_ends(self) -> dict[tuple[str, int], int]:
        """Where the committed records of each partition end; a transaction that stays open hides those behind it."""

        def open_transactions() -> list[tuple[str, int]]:
            ends = self._topics.ends(self._present(), self._partitions)
            stable = self._topics.ends(self._present(), self._partitions, committed=True)
            return [place for place, end in ends.items() if stable[place] < end]

        if self._failure is None and not self._within(OPEN_FOR, lambda: not open_transactions()):
            [(topic, partition), *_] = open_transactions()
            told = f"{topic}/{partition}: {OPEN_FOR:g} s after the application has closed, a transaction is still open"
            self.note("failure", anomaly="stuck", place=topic, expected="every transaction ends", observed=told)
            self._failure = KafkaFailedError("stuck", topic, "every transaction ends", told)
            self._facts |= {f"input_end/{p}": offset for p, offset in self._settled().items()}
        return self._topics.ends(self._present(), self._partitions, committed=True)

    def measure(self, **facts: int) -> None:
        """Keep what the checks need to know of the drive."""
        self._facts |= facts

    def facts(self) -> dict[str, int]:
        """What the checks need to know beside the records."""
        app = self._plan.app
        return {
            "partitions": self._partitions,
            "exactly_once": int(self._plan.streams_config["processing.guarantee"] == "exactly_once_v2"),
            "cached": int(bool(app["caching"])),
            "punctuated": int(bool(app.get("punctuate.ms"))),
            **self._facts,
        }

    def compare(self, inputs: Sequence[Record]) -> None:
        """Check that what was generated and delivered is what stands in the input topic.

        Raises:
            HarnessError: it is not, so the trial says nothing.
        """
        told = deviation(inputs, self._generated(), partial(partition_of_key, partitions=self._partitions))
        if told is not None:
            raise HarnessError(f"The input topic does not hold what was delivered: {told}.")

    def outcome(
        self, exercise: Exercise | None = None, *, error: str | None = None, void: str | None = None
    ) -> Outcome:
        """How the trial ended; without an exercise, why there is none: an error, or a trial that is void."""
        return Outcome(
            trial=self.trial,
            error=error,
            void=void,
            failed=None if self._failure is None else str(self._failure),
            exercised=exercise is not None and exercise.exercised,
            reason=exercise.reason if exercise else error or void or "",
            steps=exercise.steps if exercise else None,
            all_steps_tried=exercise is not None and exercise.all_steps_tried,
            produced=Produced(self._delivered(), len(self._keys())),
            facts=self.facts(),
            attested=self._attested,
            plant=self._planted(),
            fault=self._suffered(),
            harness=harness_version(),
            seconds=self._seconds | {"total": round(sum(self._seconds.values()), 2)},
        )

    def _planted(self) -> Planted | None:
        """What became of the planted bug; None as a rule."""
        if self.trial.plant is None:
            return None
        told = [instance.last["plant"] for instance in self._started if "plant" in instance.last]
        altered = sorted({method for event in told for method in event["altered"]})
        return Planted(self.trial.plant, tuple(altered), sum(event["fired"] for event in told))

    def _suffered(self) -> Suffered | None:
        """What became of the fault; None if none was to strike."""
        fault = chosen(self.parameters)
        if fault is None:
            return None
        for event in self.events:
            if event["event"] == "fault" and event["action"] == "observed":
                return Suffered(event["name"], event["bit"], event["told"], event["observed"])
        return Suffered(fault.name, bit=False, told="The drive ended before that.", observed={})

    def _delivered(self) -> int:
        return self._seeded + sum(bulk.delivered for bulk in self._bulks)

    def _keys(self) -> set[int]:
        return {key for key, _ in self._generated()}

    def _generated(self) -> Iterator[tuple[int, int]]:
        """Key and value of all that was delivered, in order."""
        return chain(self.workload.first, *(bulk.sent for bulk in self._bulks))

    def stop(self) -> None:
        """Stop whatever still runs."""
        self._ticker.stop()
        for bulk in self._bulks:
            bulk.stop()
        for instance in self._instances.values():
            instance.kill()
        while self._readers:
            self._readers.pop().stop()
        if self._dump_running is not None:
            self._dump_running.stop()
        self._let_topics_accept()
        self._lift_quotas()
        self._topics.close()
        self._timeline.close()

    def _let_topics_accept(self) -> None:
        """Heal what a drive that ended early left: a marker that a topic refuses holds up those of other trials."""
        with suppress(HarnessError):  # the brokers are gone
            for name, planned in self._plan.roles.items():
                if planned.may_refuse:
                    self._topics.alter(self.trial.topic(name), {"min.insync.replicas": "1"})

    def _lift_quotas(self) -> None:
        with suppress(HarnessError):  # the brokers are gone
            for client in sorted(self._limited):
                self.set_producer_quota(client, None)

    def _check(self) -> None:
        if self._timeline.failure:
            raise self._timeline.failure
        self._require_time()
        self._cluster.check_alive()
        for instance in self._instances.values():
            instance.check_alive()
        for bulk in self._bulks:
            bulk.check()

    def _last_seen(self) -> str:
        states = ", ".join(f"{i.name} {i.state} {i.processed:,} processed" for i in self._instances.values())
        return f"Committed: {self.committed():,}; {states}; the logs are in {self._folder.instances}."


def run_trial(
    trial: Trial,
    folder: TrialFolder,
    report: Report = lambda _: None,
    cluster: Cluster | None = None,
    given: GivenCluster | None = None,
) -> Outcome:
    """One whole trial: brokers up (unless a cluster is passed, or others are given), provision, seed, drive, clean up.

    Returns:
        The outcome; its seconds include `cluster`, the start of the brokers.

    Raises:
        UsageError: the given brokers cannot be reached, or do not allow what the trial needs.
        HarnessError: the harness failed.
    """
    begin = time.monotonic()
    if cluster is None:
        report("cluster")
    with nullcontext(cluster) if cluster else cluster_of(trial, folder, given) as brokers:
        up = _since(begin)
        report("provision")
        provision(trial, brokers, folder)
        report("seed")
        seed(trial, brokers, folder)
        plan = TrialPlan.read(folder.trial_file)
        replace(plan, seconds={"cluster": up, **plan.seconds}).write(folder.trial_file)
        return drive(trial, brokers, folder, report)
