"""Specimens of the promise `stores`: a changelog, what stores held at the end, and the keys in which they are wrong.

Changelog: `(partition, offset, key, value)`, None a tombstone. Dumps: instance, partition, role, the offset that is
claimed, entries.
"""

from dataclasses import dataclass, field
from pathlib import Path

from onceproof.model.record import Record
from onceproof.model.run_folder import StoreDump

# Keys 1 to 3, of which 2 is deleted and 1 changed; offsets 4 and 8 are markers of transactions.
CHANGELOG = [
    Record(0, 0, 1, 10),
    Record(0, 1, 2, 20),
    Record(0, 2, 3, 30),
    Record(0, 5, 2, None),
    Record(0, 6, 1, 11),
    Record(1, 0, 4, 40),
]
WHOLE, BEFORE = {1: 11, 3: 30}, {1: 10, 2: 20, 3: 30}
OTHER = ("one", 1, "active", 2, {4: 40})
Held = tuple[str, int, str, int, dict[int, int]]


@dataclass(frozen=True)
class Specimen:
    """What stores held; and for each wrong key: anomaly, key, place, expected, observed without the store's title."""

    name: str
    dumps: list[Held]
    wrong: list[tuple[str, int, str, str, str]] = field(default_factory=list)

    def write(self, folder: Path) -> list[StoreDump]:
        """Write the dumps as an instance does."""
        folder.mkdir()
        for instance, partition, role, offset, entries in self.dumps:
            file = folder / f"{instance}.seen.{partition}.{role}.{offset}.csv"
            file.write_text("".join(f"{key},{value}\n" for key, value in entries.items()))
        return [StoreDump.of(file) for file in sorted(folder.glob("*.csv"))]


ACTIVE, STANDBY = ("one", 0, "active", 9, WHOLE), ("two", 0, "standby", 8, WHOLE)
SPECIMENS = [
    Specimen("all at the end", [ACTIVE, STANDBY, OTHER]),
    Specimen(
        "a standby that is behind holds the changelog before its offset", [ACTIVE, ("two", 0, "standby", 5, BEFORE)]
    ),
    Specimen("a standby that has just begun is empty", [ACTIVE, ("two", 0, "standby", 0, {})]),
    Specimen("two standbys of one store", [ACTIVE, STANDBY, ("three", 0, "standby", 3, BEFORE)]),
    Specimen("order does not matter", [("one", 0, "active", 9, {3: 30, 1: 11})]),
    Specimen(
        "an old value",
        [("one", 0, "active", 9, {**WHOLE, 1: 10}), STANDBY],
        [("wrong-store", 1, "seen-changelog/0@6", "11", "10")],
    ),
    Specimen(
        "a deleted entry that came back",
        [("one", 0, "active", 9, {**WHOLE, 2: 20})],
        [("wrong-store", 2, "seen-changelog/0@5", "nothing", "20")],
    ),
    Specimen(
        "an entry that nothing explains",
        [("one", 0, "active", 9, {**WHOLE, 7: 70}), OTHER],
        [("wrong-store", 7, "active store seen of one, partition 0, at offset 9", "nothing", "70")],
    ),
    Specimen(
        "a standby that lacks an entry, and one ahead of what it claims",
        [ACTIVE, ("three", 0, "standby", 5, WHOLE), ("two", 0, "standby", 9, {1: 11})],
        [
            ("wrong-standby", 1, "seen-changelog/0@0", "10", "11"),
            ("wrong-standby", 2, "seen-changelog/0@1", "20", "nothing"),
            ("wrong-standby", 3, "seen-changelog/0@2", "30", "nothing"),
        ],
    ),
    Specimen(
        "an empty store",
        [("one", 0, "active", 9, {}), OTHER],
        [
            ("wrong-store", 1, "seen-changelog/0@6", "11", "nothing"),
            ("wrong-store", 3, "seen-changelog/0@2", "30", "nothing"),
        ],
    ),
    Specimen(
        "the other partition's entries",
        [("one", 1, "active", 2, {1: 11})],
        [
            ("wrong-store", 1, "active store seen of one, partition 1, at offset 2", "nothing", "11"),
            ("wrong-store", 4, "seen-changelog/1@0", "40", "nothing"),
        ],
    ),
]
