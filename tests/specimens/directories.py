"""Store directories that are not what the changelog says: what is wrong with a store, and the RocksDB that holds it.

An entry of a store is altered in the files of its RocksDB by a separate program (`PlantStores.java`); what the
directory holds is read by the application's `TaskDirectory`, as in the lab.
"""

import random
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from onceproof.lab.artifacts import streams_class_path
from onceproof.lab.programs import run_program
from onceproof.lab.task_directory import MAIN
from onceproof.model.record import Record
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from tests.conftest import HERE
from tests.specimens.mutations import Clean, Mutation

STRANGER = 9_000_000  # a key that no input has
INSTANCES = {"active": "instance-1", "standby": "instance-2"}
Entries = Mapping[int, int | None]  # None: a tombstone, or an entry that is taken away


@dataclass(frozen=True)
class Held:
    """A store of a partition at the end of a trial: what it claims to hold, and what its changelog says about it."""

    store: str
    partition: int
    task_type: str
    offset: int
    last: Mapping[int, Record]  # the last record of each key in the changelog before that offset

    @property
    def entries(self) -> dict[int, int]:
        """What it must hold."""
        return {key: record.value for key, record in self.last.items() if record.value is not None}

    @property
    def title(self) -> str:
        """For people."""
        task_type, instance = self.task_type, INSTANCES[self.task_type]
        return f"{task_type} store {self.store} of {instance}, partition {self.partition}, at offset {self.offset}"

    @property
    def file(self) -> str:
        """The name of its dump."""
        return f"{INSTANCES[self.task_type]}.{self.store}.{self.partition}.{self.task_type}.{self.offset}.csv"


def stores_of(topics: Mapping[str, Iterable[Record]], partition: int) -> list[Held]:
    """The stores of a partition: the active one is at the end of its changelog, a standby is halfway."""
    held = []
    for changelog in sorted(role for role in topics if role.endswith("-changelog")):
        records = sorted(record for record in topics[changelog] if record.partition == partition)
        for role, part in (("active", records), ("standby", records[: len(records) // 2])):
            offset = part[-1].offset + 1 if part else 0
            last = {record.key: record for record in part if record.key is not None}
            held.append(Held(changelog.removesuffix("-changelog"), partition, role, offset, last))
    return held


# --- what is wrong -------------------------------------------------------------------------------------------


Change = Callable[[Held, random.Random], Entries]


def _any(held: Held, rng: random.Random) -> tuple[int, int]:
    return rng.choice(sorted(held.entries.items()))


def other_value(held: Held, rng: random.Random) -> Entries:
    """A store has another value of a key."""
    key, value = _any(held, rng)
    return {key: value + 1}


def lost_entry(held: Held, rng: random.Random) -> Entries:
    """A store lacks a key."""
    return {_any(held, rng)[0]: None}


def stray_entry(_held: Held, _rng: random.Random) -> Entries:
    """A store has a key that is not in its changelog."""
    return {STRANGER: 7}


def altered(clean: Clean, rng: random.Random, change: Change, among: Sequence[Held]) -> Mutation:
    """One of these stores is not what it must be."""
    held = rng.choice(among)
    mutation = Mutation(f"{held.task_type} store {held.store}: {change.__name__.replace('_', ' ')}", clean)
    mutation.held[held.store, held.partition, held.task_type] = change(held, rng)
    return mutation


def kinds(clean: Clean) -> Iterator[Callable[[Clean, random.Random], Mutation]]:
    """The mutations of each store of the trial."""
    of_all: dict[tuple[str, str], list[Held]] = defaultdict(list)
    for partition in range(clean.facts["partitions"]):
        for held in stores_of(clean.topics, partition):
            of_all[held.store, held.task_type].append(held)
    for among in of_all.values():
        yield partial(altered, change=stray_entry, among=among)
        if filled := [held for held in among if held.entries]:
            for change in (other_value, lost_entry):
                yield partial(altered, change=change, among=filled)


# --- the directories -----------------------------------------------------------------------------------------


def alter(release: Release, changes: Mapping[Path, Entries]) -> None:
    """Change entries of RocksDB stores, each in its directory; one that does not exist is made."""
    if not changes:
        return
    java, jars = HERE.java, ":".join(map(str, streams_class_path(HERE, release)))
    lines = []
    for directory, entries in changes.items():
        directory.mkdir(parents=True, exist_ok=True)
        lines.append(f"store {directory}")
        lines += [f"delete {k}" if v is None else f"put {k} {v}" for k, v in entries.items()]
    program = [java, "-cp", jars, str(Path(__file__).with_name("PlantStores.java"))]
    subprocess.run(program, input="\n".join(lines), text=True, check=True, timeout=300)


def lay_out(
    task: Path, stores: Iterable[Held], changes: Mapping[str, Entries], topic: Callable[[str], str]
) -> dict[Path, Entries]:
    """Write the checkpoint of a task's directory; returns what each of its stores is to hold, with the changes."""
    task.mkdir(parents=True)
    stores = list(stores)
    claims = [f"{topic(h.store + '-changelog')} {h.partition} {h.offset - 1}" for h in stores]
    (task / ".checkpoint").write_text("\n".join(["0", str(len(claims)), *claims, ""]))
    return {task / "rocksdb" / h.store: {**h.entries, **changes.get(h.store, {})} for h in stores}


def dump(release: Release, task: Path, stores: Iterable[Held], folder: TrialFolder) -> None:
    """Read a task's directory into the trial's dumps; its checkpoint says what each store claims."""
    written = task.with_suffix(".entries")
    main = (MAIN, "integers", str(written), str(task))
    answer = run_program(HERE, release, main, task.with_suffix(".log"), str(task))
    positions = {store["store"]: store["position"] for store in answer["tasks"][task.name]}
    for held in stores:
        assert positions[held.store] == held.offset
        shutil.move(written / task.name / f"{held.store}.csv", folder.dumps_folder / held.file)
