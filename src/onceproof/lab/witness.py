"""Kafka's `TopologyTestDriver` as a witness of our own scenarios: what it makes of what was committed to their input.

It shares nothing with the models of the two readers: it runs the topology itself. A driver takes the records of a
partition one after the other, commits after each, and knows neither brokers nor threads, rebalances, restarts or
faults; so its output is what the application must have emitted, whatever happened to it. On the release of the trial it
shows what was broken on brokers only; on the newest one it shows, too, what the release always does wrong.

It is not asked about scenarios whose output has the partition of its task, of which the driver knows none
(`enumerator`, `idle-task`), that are about the speed of a producer (`quota`) or about brokers (`migration`), that read
two topics (`two-topics`), or that hang the driver, too (`far-future`) or are refused by it (`dead-letters`): they have
no `alike`.

It writes a file to the disk for each record, which takes as long as the trial itself; so it is asked by
`benchmarks/witness.py` and by tests, and not in each trial of a run.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence

from onceproof.installation import Installation
from onceproof.lab.cluster import Cluster
from onceproof.lab.load import encode_integer
from onceproof.lab.reader import Reader, TopicSource
from onceproof.lab.replay import Row, in_turn, replay, write_rows
from onceproof.lab.topics import ApplicationTopics
from onceproof.model.anomaly import Comparison
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import TrialPlan
from onceproof.model.record import Record
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.readers.application import compare_with
from onceproof.readers.kafka import decode_integer
from onceproof.scenarios import scenario
from onceproof.scenarios.declared import GUARANTEE

# A left or outer join looks only once a second of the wall clock for what is due alone, and the driver's stands still.
CONFIG = {"__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0"}


def witness(
    installation: Installation, plan: TrialPlan, cluster: Cluster, folder: TrialFolder, releases: Sequence[Release]
) -> dict[Release, list[Comparison]]:
    """The output of each release for the committed input of a trial that has ended, compared with the committed output.

    Raises:
        UsageError: a release has no TopologyTestDriver here, or the scenario is none that it can be asked about.
        HarnessError: the topics cannot be read, or the driver failed.
    """
    name = plan.trial.cell.scenario
    alike = scenario(name).alike
    if alike is None:
        raise UsageError(f"The TopologyTestDriver cannot be asked about {name}: see `lab/witness.py` for those it can.")
    at_least = plan.streams_config[GUARANTEE] == "at_least_once"
    records = _read_committed(plan, cluster)
    write_rows(folder.replay_file, _rows(plan.topic("input"), records["input"]))
    found = {}
    for release in releases:
        replayed = replay(installation, plan, folder, release, CONFIG)
        if replayed.failed:
            raise HarnessError(f"The input cannot be replayed on {release}: {replayed.failed}.")
        expected = _records(replayed.bytes_of("output"), plan)
        found[release] = list(compare_with(expected, records["output"], "replay", "output", alike, at_least=at_least))
    return found


def _read_committed(plan: TrialPlan, cluster: Cluster) -> Mapping[str, Sequence[Record]]:
    """The committed records of input and output."""
    roles = {role: plan.roles[role] for role in ("input", "output")}
    topics = ApplicationTopics(cluster, plan.application_id)
    try:
        ends = topics.ends({plan.topic(role): plan.partitions for role in roles}, committed=True)
    finally:
        topics.close()
    sources = [TopicSource(plan.topic(role), role, of.value_bytes, plan.partitions) for role, of in roles.items()]
    records, _ = Reader(cluster, plan.application_id, sources).finish(ends)
    return records


def _rows(topic: str, records: Sequence[Record]) -> Iterator[Row]:
    for turn, record in in_turn(records):
        yield (
            turn,
            topic,
            record.partition,
            record.timestamp,
            _base64(record.key),
            _base64(record.value),
            record.headers,
        )


def _base64(number: int | None) -> str | None:
    return None if number is None else base64.b64encode(encode_integer(number)).decode()


def _records(output: Sequence[tuple[int, bytes | None, bytes | None]], plan: TrialPlan) -> list[Record]:
    size = plan.roles["output"].value_bytes
    return [
        Record(partition, offset, decode_integer(key), decode_integer(value, size))
        for offset, (partition, key, value) in enumerate(output)
    ]
