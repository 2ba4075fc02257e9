"""Real producers on a real broker: what they did wrong is seen in the broker's log segments, not by a consumer."""

import secrets
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from onceproof.lab import reading
from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.load import encode_integer
from onceproof.lab.log_dump import Logs
from onceproof.lab.segments import SegmentDump, read_segments
from onceproof.lab.topics import ApplicationTopics
from onceproof.lab.trial import run_trial
from onceproof.model.anomaly import Comparison
from onceproof.model.files import TrialPlan
from onceproof.model.record import Record
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.model.segments import LogEntry, partition_of_name
from onceproof.processes.waiting import await_condition
from onceproof.readers.segments import compare_segments
from tests.conftest import HERE, a_trial, undisturbed
from tests.present import present
from tests.producers import transactional

pytestmark = pytest.mark.broker

KEYS = [5, 6, 7]
GROUP_LOGS = 4  # partitions of `__consumer_offsets` on embedded brokers


class Application:
    """What an application of the topology `values` has: an input, a changelog, a group, a transactional producer."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path, group: str | None = None) -> None:
        self.id = group or f"app-{secrets.token_hex(3)}"
        self.cluster, self.folder = cluster, folder
        self.input, self.changelog = f"{self.id}-input", f"{self.id}-values-changelog"
        topics = ApplicationTopics(cluster, self.id)
        topics.create([NewTopic(self.input, 1), NewTopic(self.changelog, 1)])
        topics.close()
        plain = Producer(cluster.client())
        for key in KEYS:
            plain.produce(self.input, key=encode_integer(key), value=encode_integer(0), partition=0)
        plain.flush(30)
        self.producer = transactional(cluster, f"{self.id}-1")
        self.group = Consumer({**cluster.client(), "group.id": self.id})

    def write(self, *keys: int) -> None:
        """Write to the changelog, within the transaction."""
        for key in keys:
            self.producer.produce(self.changelog, key=encode_integer(key), value=encode_integer(0), partition=0)
        self.producer.flush(30)

    def commit(self, position: int) -> None:
        """Commit the transaction, and with it a position in the input."""
        at = [TopicPartition(self.input, 0, position)]
        self.producer.send_offsets_to_transaction(at, self.group.consumer_group_metadata(), 30)
        self.producer.commit_transaction(30)

    def compared(self, written: dict[int, int]) -> list[Comparison]:
        """What the log shows; `written`: keys that readers saw in the changelog, by their offsets."""
        logs = Logs(self.id, {self.input: "input", self.changelog: "values-changelog"})
        topics = {
            "input": [Record(0, offset, key, 0) for offset, key in enumerate(KEYS)],
            "values-changelog": [Record(0, offset, key, 0) for offset, key in written.items()],
        }
        return list(
            compare_segments(
                SegmentDump(self.cluster, logs, self.folder).finish(topics), topics, "values", {"ended": 1}
            )
        )


# The first and the last release of each form in which DumpLogSegments prints Kafka's own topics.
@pytest.fixture(
    params=["3.0.0", *(pytest.param(v, marks=pytest.mark.night) for v in ("3.8.1", "3.9.0", "4.3.1")), "4.4.0"]
)
def brokers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedCluster]:
    started = EmbeddedCluster.start(HERE, Release.parse(request.param), tmp_path / "brokers")
    yield started
    started.stop()


@pytest.fixture
def application(brokers: EmbeddedCluster, tmp_path: Path) -> Iterator[Application]:
    own = Application(brokers, tmp_path)
    yield own
    own.group.close()


@pytest.fixture
def neighbour(brokers: EmbeddedCluster, tmp_path: Path, application: Application) -> Iterator[Application]:
    """Another one, whose positions are in the same partition of `__consumer_offsets`."""
    ids = (f"app-{secrets.token_hex(3)}" for _ in count())
    wanted = partition_of_name(application.id, GROUP_LOGS)
    other = Application(brokers, tmp_path, next(one for one in ids if partition_of_name(one, GROUP_LOGS) == wanted))
    yield other
    other.group.close()


def anomalies(compared: list[Comparison]) -> list[tuple[str, str, int | None, str, str]]:
    return [(c.anomaly, c.place, c.key, c.expected, c.observed) for c in compared if c.anomaly]


def test_a_whole_transaction_a_torn_one_and_one_that_hangs(application: Application, neighbour: Application) -> None:
    neighbour.producer.begin_transaction()
    neighbour.write(5)
    neighbour.commit(1)
    application.producer.begin_transaction()
    application.write(5)
    application.commit(1)
    application.producer.begin_transaction()
    application.write(6)  # and not 7
    application.commit(3)
    found: list[Comparison] = []

    def marked() -> bool:  # markers come a little after the answer
        nonlocal found
        found = application.compared({0: 5, 2: 6})
        return not any(c.anomaly == "hanging-transaction" for c in found)

    await_condition("the markers", marked, timeout=120)
    torn = ("torn-transaction", "values-changelog/0@2", 7, "committed, 2 effects", "committed, 1 effect, 1 missing")
    assert anomalies(found) == [torn]
    assert sum(c.promise == "atomicity" for c in found) == 2

    application.producer.begin_transaction()
    application.write(7)  # and is never heard of again
    hanging = ("hanging-transaction", "values-changelog/0@4", None, "committed or aborted", "open, 1 record")
    assert anomalies(application.compared({0: 5, 2: 6})) == [torn, hanging]


def test_the_log_of_a_real_crash_is_whole_and_edits_are_found(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[list[LogEntry], dict[str, list[Record]], str, dict[str, int]]] = []

    def kept(
        entries: list[LogEntry], topics: dict[str, list[Record]], topology: str, facts: dict[str, int]
    ) -> list[Comparison]:
        read.append((entries, topics, topology, facts))
        return list(compare_segments(entries, topics, topology, facts))

    monkeypatch.setattr(reading, "compare_segments", kept)
    parameters: dict[str, Any] = {"committed": 300, "burst": 2_200}
    folder = TrialFolder(tmp_path)
    undisturbed(lambda: run_trial(a_trial("4.3.1", scenario="crash", **parameters), folder, cluster=cluster))
    assert TrialPlan.read(folder.trial_file).not_looked_at == {}
    entries, topics, topology, facts = read[-1]
    assert read_segments(folder.segments_file) == entries
    assert {"COMMIT", "ABORT"} <= {e.kind for e in entries}  # what the killed process had open

    def reported(changed: list[LogEntry], seen: dict[str, list[Record]] = topics) -> list[tuple[str, str]]:
        compared = compare_segments(changed, seen, topology, facts)
        return [(c.anomaly, c.place) for c in compared if c.anomaly]

    assert reported(entries) == []
    of_output = [e for e in entries if e.role == "output"]
    last, ended = (next(e for e in reversed(of_output) if e.kind == kind) for kind in ("data", "COMMIT"))
    first = of_output[: of_output.index(ended)]  # the first batch of the last committed transaction
    begun = next(e for n, e in enumerate(first) if all(later.kind == "data" for later in first[n:]))
    place = f"output/0@{begun.first}"

    def with_(old: LogEntry, **fields: Any) -> list[LogEntry]:
        return [replace(e, **fields) if e == old else e for e in entries]

    flipped = ("torn-transaction", place), ("isolation-breach", place)
    assert reported(with_(ended, kind="ABORT")) == [*flipped]
    unseen = {**topics, "output": [r for r in topics["output"] if r.offset < begun.first]}
    assert reported(with_(ended, kind="ABORT"), unseen) == [flipped[0]]
    assert reported([e for e in entries if e != ended], unseen) == [("hanging-transaction", place)]
    assert reported(entries, {**topics, "output": topics["output"][:-1]}) == [("isolation-breach", place)]
    assert reported(with_(ended, epoch=last.epoch - 1)) == [("fencing-breach", f"output/0@{ended.first}")]
    assert reported(with_(last, sequence=last.sequence + 1)) == [("fencing-breach", f"output/0@{last.first}")]
    committed = [e for e in entries if e.kind == "position"]
    moved = reported(with_(committed[-1], position=present(committed[-1].position) - 1))
    assert [anomaly for anomaly, _ in moved] == ["torn-transaction"]
