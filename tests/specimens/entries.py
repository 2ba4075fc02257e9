"""Specimens of the promise `entries`: a changelog as bytes, what stores held at the end, and where they are wrong.

Dumps: instance, role, the offset that is claimed, entries as bytes with their timestamps (None: none is kept), and with
their headers where the store keeps them.
"""

from dataclasses import dataclass, field
from pathlib import Path

from onceproof.model.files import StorePlan
from onceproof.model.record import Record
from onceproof.model.run_folder import StoreDump

Shown = tuple[str, str, int | None] | tuple[str, str, int | None, str]
Held = tuple[str, str, int, list[Shown]]
Wrong = tuple[str, int, str, str, str]


def window(key: int, start: int, sequence: int = 0) -> str:
    """The key of a window in a changelog."""
    return f"{key:08x}{start:016x}{sequence:08x}"


def session(key: int, start: int, end: int) -> str:
    """The key of a session."""
    return f"{key:08x}{end:016x}{start:016x}"


def said(offset: int, key: str, value: str | None, timestamp: int, headers: str = "") -> Record:
    """A record of a changelog."""
    entry = key if value is None else f"{key},{value}"
    return Record(0, offset, int(key[:8], 16), None, timestamp, headers, entry)


# Windows of 100 ms, kept for 1,000 ms from the youngest one on. Key 2 was deleted, key 3 is too old.
WINDOWS = [
    said(0, window(3, 500), "aa", 510),
    said(1, window(1, 1_600), "01", 1_610),
    said(2, window(2, 1_600), "02", 1_620),
    said(5, window(1, 1_600), "03", 1_650),
    said(6, window(2, 1_600), None, 1_660),
    said(7, window(1, 2_000), "04", 2_010),
]
KEPT = StorePlan("windows", 1_000)
# A join keeps several records of one key and time, which it tells apart by a sequence number.
JOINED = [
    said(0, window(1, 1_600, 1), "07", 1_600),
    said(1, window(1, 1_600, 2), "05", 1_600),
    said(2, window(1, 1_600, 3), "07", 1_600),
]
SESSIONS = [
    said(0, session(1, 100, 200), "01", 200),
    said(1, session(1, 100, 200), None, 300),
    said(2, session(1, 100, 300), "02", 300),
]
ASKED = f"00000004{7:08x}{8:08x}"  # by a foreign key, behind its length: that of the row comes last
WAITING = f"{5:016x}01{7:08x}"  # time, side, key

# Versions of a history of 1,000 ms, which at the end goes back to 1,900. The fourth is too old when it comes. Key 1 has
# two from 2,500 on, of which the later one counts; key 3 is deleted before the history begins, key 4 was never there.
VERSIONS = StorePlan("versions", 1_000)
CHANGES = [
    said(offset, f"{key:08x}", value, time)
    for offset, (key, value, time) in enumerate(
        [
            (1, "01", 1_000),
            (1, "02", 1_500),
            (2, "05", 2_000),
            (1, "09", 900),
            (3, "07", 1_600),
            (3, None, 1_700),
            (2, None, 2_400),
            (1, "04", 2_900),
            (1, "08", 2_500),
            (1, "03", 2_500),
            (4, None, 1_950),
        ]
    )
]
HEADERS = ("a,b=01", "b=01 b=02", "c", "")
LABELLED = [said(offset, f"{offset + 1:08x}", "0a", 1, headers) for offset, headers in enumerate(HEADERS)]
ONCE: Shown = ("00000001", "01", 1_000)
HISTORY: list[Shown] = [
    ("00000001", "02", 1_500),
    ("00000001", "03", 2_500),
    ("00000001", "04", 2_900),
    ("00000002", "05", 2_000),
    ("00000002", "", 2_400),
]


def shown(key: str) -> str:
    """The key of a window as a store shows it."""
    return key[:-8]


@dataclass(frozen=True)
class Specimen:
    """What stores held; for each wrong key: anomaly, key, place, expected, observed without the store's title."""

    name: str
    changelog: list[Record]
    dumps: list[Held]
    wrong: list[Wrong] = field(default_factory=list)
    store: StorePlan = KEPT

    def write(self, folder: Path) -> list[StoreDump]:
        """Write the dumps as an instance does."""
        folder.mkdir()
        for instance, role, offset, entries in self.dumps:
            lines = (",".join("" if part is None else str(part) for part in entry) + "\n" for entry in entries)
            (folder / f"{instance}.sums.0.{role}.{offset}.entries").write_text("".join(lines))
        return [StoreDump.of(file) for file in sorted(folder.glob("*.entries"))]


ONE, TWO = (shown(window(1, 1_600)), "03", 1_650), (shown(window(1, 2_000)), "04", 2_010)
OLD = (shown(window(3, 500)), "aa", 510)
SPECIMENS = [
    Specimen("all at the end, and what is too old is gone", WINDOWS, [("one", "active", 8, [ONE, TWO])]),
    Specimen("what is too old is still there", WINDOWS, [("one", "active", 8, [OLD, ONE, TWO])]),
    Specimen(
        "a standby that is behind",
        WINDOWS,
        [
            ("one", "active", 8, [ONE, TWO]),
            ("two", "standby", 3, [(ONE[0], "01", 1_610), (shown(window(2, 1_600)), "02", 1_620)]),
        ],
    ),
    Specimen("a standby that has just begun is empty", WINDOWS, [("two", "standby", 0, [])]),
    Specimen("it keeps no timestamps", WINDOWS, [("one", "active", 8, [(ONE[0], "03", None), (TWO[0], "04", None)])]),
    Specimen(
        "a window that is to be kept is gone",
        WINDOWS,
        [("one", "active", 8, [TWO])],
        [("lost-entry", 1, "sums-changelog/0@5", "03 at 1650", "nothing")],
    ),
    Specimen(
        "an older value, a deleted window and one that is too old and wrong",
        WINDOWS,
        [
            (
                "one",
                "active",
                8,
                [(OLD[0], "ab", 510), (ONE[0], "01", 1_610), TWO, (shown(window(2, 1_600)), "02", 1_620)],
            )
        ],
        [
            ("wrong-entry", 1, "sums-changelog/0@5", "03 at 1650", "01 at 1610"),
            ("wrong-entry", 2, "sums-changelog/0@6", "nothing", "02 at 1620"),
            ("wrong-entry", 3, "sums-changelog/0@0", "aa at 510", "ab at 510"),
        ],
    ),
    Specimen(
        "an entry that nothing explains",
        WINDOWS,
        [("one", "active", 8, [ONE, TWO, (shown(window(-1 % 2**32, 2_000)), "01", 5)])],
        [("wrong-entry", -1, "active store sums of one, partition 0, at offset 8", "nothing", "01 at 5")],
    ),
    Specimen(
        "the right value with another timestamp",
        WINDOWS,
        [("one", "active", 8, [(ONE[0], "03", 1_649), TWO])],
        [("wrong-entry-time", 1, "sums-changelog/0@5", "03 at 1650", "03 at 1649")],
    ),
    Specimen(
        "a join, in whatever order",
        JOINED,
        [("one", "active", 3, [(ONE[0], "05", None), (ONE[0], "07", None), (ONE[0], "07", None)])],
    ),
    Specimen(
        "a join lacks one of two that are alike",
        JOINED,
        [("one", "active", 3, [(ONE[0], "07", None), (ONE[0], "05", None)])],
        [("lost-entry", 1, "sums-changelog/0@2", "05 at 1600 and 07 at 1600 and 07 at 1600", "05 and 07")],
    ),
    Specimen(
        "a session",
        SESSIONS,
        [("one", "active", 3, [(session(1, 100, 300), "02", None)])],
        store=StorePlan("sessions", 1_000),
    ),
    Specimen(
        "a session that another has taken in",
        SESSIONS,
        [("one", "active", 3, [(session(1, 100, 300), "02", None), (session(1, 100, 200), "01", None)])],
        [("wrong-entry", 1, "sums-changelog/0@1", "nothing", "01")],
        StorePlan("sessions", 1_000),
    ),
    Specimen(
        "a record of a join that waits for its match",
        [said(0, WAITING, "0a", 5), said(1, f"{5:016x}01{8:08x}", "0b", 5)],
        [("one", "active", 2, [(WAITING, "0a", None)])],
        [("lost-entry", 8, "sums-changelog/0@1", "0b at 5", "nothing")],
        StorePlan("waiting"),
    ),
    Specimen(
        "a subscription of a row that asks for another key now",
        [said(0, ASKED, "0a", 5), said(1, ASKED, None, 6), said(2, f"00000004{9:08x}{8:08x}", "0b", 6)],
        [("one", "active", 3, [(ASKED, "0a", 5), (f"00000004{9:08x}{8:08x}", "0b", 6)])],
        [("wrong-entry", 8, "sums-changelog/0@1", "nothing", "0a at 5")],
        StorePlan("subscriptions"),
    ),
    Specimen(
        "of keys none is too old",
        [said(0, "00000001", "0a", 1), said(1, "00000002", "0b", 9_000)],
        [("one", "active", 2, [("00000002", "0b", 9_000)])],
        [("lost-entry", 1, "sums-changelog/0@0", "0a at 1", "nothing")],
        StorePlan("keys"),
    ),
    Specimen("a history since its begin", CHANGES, [("one", "active", 11, HISTORY)], store=VERSIONS),
    Specimen(
        "a history with what is older than its begin, and deletions of what was not there",
        CHANGES,
        [("one", "active", 11, [ONCE, *HISTORY, ("00000003", "", 1_700), ("00000004", "", 1_950)])],
        store=VERSIONS,
    ),
    Specimen(
        "a history of a standby that is behind", CHANGES, [("two", "standby", 2, [ONCE, HISTORY[0]])], store=VERSIONS
    ),
    Specimen(
        "a history without a version, and without a deletion",
        CHANGES,
        [("one", "active", 11, [HISTORY[0], *HISTORY[2:4]])],
        [
            (
                "lost-entry",
                1,
                "sums-changelog/0@9",
                "02 at 1500 and 03 at 2500 and 04 at 2900",
                "02 at 1500 and 04 at 2900",
            ),
            ("lost-entry", 2, "sums-changelog/0@6", "05 at 2000 and deleted at 2400", "05 at 2000"),
        ],
        VERSIONS,
    ),
    Specimen(
        "a history with a version from another time on, and with what was deleted before its begin",
        CHANGES,
        [("one", "active", 11, [*HISTORY[:4], ("00000002", "", 2_401), ("00000003", "07", 1_600)])],
        [
            (
                "wrong-entry-time",
                2,
                "sums-changelog/0@6",
                "05 at 2000 and deleted at 2400",
                "05 at 2000 and deleted at 2401",
            ),
            ("wrong-entry", 3, "sums-changelog/0@5", "nothing", "07 at 1600"),
        ],
        VERSIONS,
    ),
    Specimen(
        "a history has what was too old, and a key that is not known",
        CHANGES[:4],
        [("one", "active", 4, [ONCE, HISTORY[0], HISTORY[3], ("00000001", "09", 1_001), ("00000005", "01", 9)])],
        [
            (
                "wrong-entry",
                1,
                "sums-changelog/0@3",
                "01 at 1000 and 02 at 1500",
                "01 at 1000 and 09 at 1001 and 02 at 1500",
            ),
            ("wrong-entry", 5, "active store sums of one, partition 0, at offset 4", "nothing", "01 at 9"),
        ],
        VERSIONS,
    ),
    Specimen(
        "headers that have a comma, of one name, without a value, and none",
        LABELLED,
        [("one", "active", 4, [(f"{key:08x}", "0a", 1, headers) for key, headers in enumerate(HEADERS, 1)])],
        store=StorePlan("keys"),
    ),
    Specimen(
        "a store that keeps no headers",
        LABELLED[:1],
        [("one", "active", 1, [("00000001", "0a", 1)])],
        store=StorePlan("keys"),
    ),
    Specimen(
        "headers that are gone, of another record, in another order, and of one that had none",
        LABELLED,
        [
            (
                "one",
                "active",
                4,
                [
                    ("00000001", "0a", 1, ""),
                    ("00000002", "0a", 1, "b=02 b=01"),
                    ("00000003", "0a", 1, "c="),
                    ("00000004", "0a", 1, "a,b=01"),
                ],
            )
        ],
        [
            ("wrong-entry-headers", 1, "sums-changelog/0@0", "0a with a,b=01", "0a with no header"),
            ("wrong-entry-headers", 2, "sums-changelog/0@1", "0a with b=01 b=02", "0a with b=02 b=01"),
            ("wrong-entry-headers", 3, "sums-changelog/0@2", "0a with c", "0a with c="),
            ("wrong-entry-headers", 4, "sums-changelog/0@3", "0a with no header", "0a with a,b=01"),
        ],
        StorePlan("keys"),
    ),
    Specimen(
        "another timestamp and other headers",
        LABELLED[:1],
        [("one", "active", 1, [("00000001", "0a", 2, "")])],
        [("wrong-entry-time", 1, "sums-changelog/0@0", "0a at 1", "0a at 2")],
        StorePlan("keys"),
    ),
]
