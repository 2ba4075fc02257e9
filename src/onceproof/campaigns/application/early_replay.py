"""The input of a run, replayed while that run is in progress: from the moment at which its topics hold all of it."""

import threading
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from onceproof.installation import Installation
from onceproof.lab.cluster import Cluster
from onceproof.lab.context import Report
from onceproof.lab.raw import offsets_of, raw_consumer, raw_records
from onceproof.lab.replay import replay, write_input
from onceproof.lab.world import World
from onceproof.model.cell import Trial
from onceproof.model.files import TrialPlan
from onceproof.model.oracle import Outputs
from onceproof.model.record import Record
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.readers.application import select_declared
from onceproof.readers.kafka import token_record
from onceproof.scenarios import scenario

EVERY = 0.1  # seconds between two looks


@dataclass(frozen=True)
class Replayed:
    """The outputs that releases make of an input, which is written down in a folder."""

    folder: TrialFolder
    outputs: Mapping[Release, Outputs] = field(default_factory=dict)

    def of(self, release: Release, run: TrialFolder) -> Outputs | None:
        """The output of a release for the input of a run; None if it is not known, or the input was another one."""
        if release not in self.outputs or self.folder.replay_file.read_bytes() != run.replay_file.read_bytes():
            return None
        return self.outputs[release]


class EarlyReplay:
    """Waits for the input of a run, and replays it."""

    def __init__(
        self, installation: Installation, trial: Trial, cluster: Cluster, folders: tuple[TrialFolder, TrialFolder]
    ) -> None:
        """Nothing is read yet.

        Args:
            installation: what it is replayed with.
            trial: the run.
            cluster: that has its topics.
            folders: of the run, and of what is written down here.
        """
        self._installation, self._trial, self._cluster = installation, trial, cluster
        self._run, self._own = folders
        self._flows, self._is_over = threading.Event(), threading.Event()

    def watch_report(self, report: Report) -> Report:
        """A report of phases that notes when all records are on their way."""

        def hear(phase: str) -> None:
            if phase == "drain":
                self._flows.set()
            report(phase)

        return hear

    def run_is_over(self) -> None:
        """Nothing more is produced."""
        self._is_over.set()

    def replay(self, releases: Collection[Release], world: World) -> Replayed:
        """Replay the input on releases, when it is there; on none if the run ends before that.

        Raises:
            UsageError: a release has no TopologyTestDriver here.
            HarnessError: the driver failed.
        """
        records = None
        while not self._is_over.is_set() and records is None:
            world.sleep(EVERY)
            records = self._input() if self._flows.is_set() else None
        if records is None:
            return Replayed(self._own)
        plan = TrialPlan.read(self._run.trial_file)
        self._own.path.mkdir(parents=True, exist_ok=True)
        write_input(self._own.replay_file, plan.roles, records)
        outputs = {release: replay(self._installation, plan, self._own, release) for release in sorted(releases)}
        return Replayed(self._own, outputs)

    def _input(self) -> Mapping[str, list[Record]] | None:
        """The input by role; None if it is not all there, or is gone since the run is tried again."""
        plan = TrialPlan.read(self._run.trial_file)
        declared = {**select_declared("input", plan.roles), **select_declared("global", plan.roles)}
        wanted = Counter(
            message.topic for message in scenario(self._trial.cell.scenario).workload(self._trial).messages
        )
        consumer = raw_consumer(self._cluster)
        try:
            stretches = {place: of for topic in sorted(wanted) for place, of in offsets_of(consumer, topic).items()}
            there = Counter(
                {t: sum(end - begin for (of, _), (begin, end) in stretches.items() if of == t) for t in wanted}
            )
            if there != wanted:
                return None
            roles = {output.name: role for role, output in declared.items()}
            records: dict[str, list[Record]] = {role: [] for role in declared}
            for message in raw_records(consumer, stretches):
                role = roles[str(message.topic())]
                sent = (message.timestamp()[1], message.headers() or ())
                place = (message.partition() or 0, message.offset() or 0)
                records[role].append(token_record(*place, message.key(), message.value(), declared[role], *sent))
        except KafkaException:
            return None
        finally:
            consumer.close()
        return records
