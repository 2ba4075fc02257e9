"""The output of Kafka's TopologyTestDriver for the input of a trial: an oracle without brokers, threads and commits.

It takes records one by one from one place. A topology that has a cache, reads several inputs or looks at the clock may
emitted other records there than on brokers, though the same final values or keys: how much must be the same is for the
application to say (`compare`), and no more than runs without a fault agree on.
"""

import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import psutil

from onceproof.faults.directory import MEMORY_OF_FAULTS
from onceproof.installation import Installation
from onceproof.lab.applications import application_class_path
from onceproof.lab.artifacts import replay_class_path
from onceproof.lab.programs import run_program
from onceproof.model.files import Declared, TopicPlan, TrialPlan
from onceproof.model.oracle import Outputs, base64_of
from onceproof.model.record import Record
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.readers.application import select_declared
from onceproof.readers.comparisons import by_place
from onceproof.scenarios.app import REPLAYED
from onceproof.scenarios.base import INSTANCE

PROGRAM = "onceproof.streams.Replay"
MEMORY, ROOM = Path("/dev/shm"), 2**30  # bytes that must be free there  # noqa: S108
SCRATCH = "onceproof-replay-"  # the process id follows
WITHIN = 900.0  # seconds; where there is no such room, some hundred records take a second
GLOBAL = -1  # the partition of what is read into global tables
# The time at which the turn of a record comes, and its line; key and value in Base64, headers as a record has them.
Row = tuple[int, str, int, int, str | None, str | None, str]


def asks_for_replay(outputs: Mapping[str, Declared]) -> bool:
    """Whether some output is to be compared with a replay."""
    return any(name in declared.promises for name in REPLAYED for declared in outputs.values())


def write_input(file: Path, roles: Mapping[str, TopicPlan], records: Mapping[str, Sequence[Record]]) -> None:
    """Write down the input of your own application."""
    write_rows(file, [r for plays in ("input", "global") for r in _rows(select_declared(plays, roles), records, plays)])


def write_rows(file: Path, rows: Iterable[Row]) -> None:
    """Write down an input as the program reads it: `[topic, partition, timestamp, key, value, headers]` a line.

    In the order in which tasks choose among their partitions: by time, and each partition in its own order.
    """
    with file.open("w") as lines:
        lines.writelines(json.dumps(row) + "\n" for _, *row in sorted(rows, key=lambda row: row[0]))


def _rows(roles: Mapping[str, Declared], records: Mapping[str, Sequence[Record]], plays: str) -> Iterator[Row]:
    for role, declared in roles.items():
        for turn, record in in_turn(records[role]):
            partition = GLOBAL if plays == "global" else record.partition
            key, value = base64_of(record.key), base64_of(record.value)
            yield turn, declared.name, partition, record.timestamp, key, value, record.headers


def in_turn(records: Iterable[Record]) -> Iterator[tuple[int, Record]]:
    """The records of a topic, and the time at which the turn of each comes."""
    latest: dict[int, int] = defaultdict(int)  # by partition; a late record comes after the one before it
    for record in sorted(records, key=by_place):
        latest[record.partition] = max(latest[record.partition], record.timestamp)
        yield latest[record.partition], record


def scratch_within(folder: Path) -> Path:
    """Where the driver keeps its stores: in memory, if there is room, else in this folder.

    It has RocksDB write a file, and wait until that is on the disk, for each record: in memory 20,000 took 13 s instead
    of 122.
    """
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM
    return MEMORY if has_room else folder


def find_scratch(memory: Path = MEMORY) -> Iterator[Path]:
    """The shared memory that killed processes left."""
    for scratch in memory.glob(f"{SCRATCH}*"):
        pid = scratch.name.removeprefix(SCRATCH).partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            yield scratch


def replay(
    installation: Installation,
    plan: TrialPlan,
    folder: TrialFolder,
    release: Release,
    config: Mapping[str, str] = MappingProxyType({}),
) -> Outputs:
    """Replay the input of a trial, which was written down, on a release; returns the output by role.

    If the topology or the driver throws for a record, there is none, and it is said why.

    Args:
        installation: what it is replayed with.
        plan: of the trial.
        folder: of the trial; takes the log.
        release: of Kafka Streams and its TopologyTestDriver.
        config: of Kafka Streams, in addition to that of the trial.

    Raises:
        UsageError: the release has no TopologyTestDriver here.
        HarnessError: the driver failed.
    """
    own_config = {"application.id": plan.application_id, "bootstrap.servers": "localhost:1"}
    # The driver flushes each record, and iterators of a store go over all files that are never compacted.
    kept = {
        name: value.replace(INSTANCE, "replay")
        for name, value in plan.streams_config.items()
        if value != MEMORY_OF_FAULTS
    }
    line = json.dumps({"topology": plan.check, "app": plan.app, "config": {**kept, **own_config, **config}})
    topics = {role: plan.topic(role) for role in plan.outputs}
    application = plan.app.get("application")
    user_jars = application_class_path(installation, application, release) if application else []
    beside = [*user_jars, *replay_class_path(installation, release)]
    of_topic: dict[str, list[tuple[str | None, str | None, int, str]]] = defaultdict(list)
    with TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}-", dir=scratch_within(folder.path)) as scratch:
        out = Path(scratch, "outputs.jsonl")
        main = (PROGRAM, str(folder.replay_file), str(out), *topics.values())
        what, log = "the input to be replayed", folder.path / "replay.log"
        ended = run_program(installation, release, main, log, what, line, beside=beside, timeout=WITHIN)
        if ended.get("event") == "threw":
            return Outputs({}, failed=str(ended["message"]))
        with out.open() as lines:
            for topic, *record in map(json.loads, lines):
                of_topic[topic].append(tuple(record))
    records = {role: of_topic[topic] for role, topic in topics.items()}
    return Outputs(
        {role: tuple((0, key, value) for key, value, *_ in of_role) for role, of_role in records.items()},
        attributes={role: tuple((at, headers) for *_, at, headers in of_role) for role, of_role in records.items()},
    )
