"""Kafka releases answer questions about themselves, so that no call site compares version strings."""

import re
from dataclasses import dataclass

from onceproof.model.errors import UsageError


@dataclass(frozen=True, order=True)
class Release:
    """A published Kafka version, ordered as versions are (3.9.0 < 3.10.0).

    The lab runs 3.0.0 and later: KRaft with exactly-once starts there.
    """

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> "Release":
        """Read `MAJOR.MINOR.PATCH`.

        Raises:
            UsageError: the text is malformed, or names a release before 3.0.0.
        """
        match = re.fullmatch(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})", text, re.ASCII)
        if match is None:
            raise UsageError(f"{text!r} is not a Kafka release: it must read MAJOR.MINOR.PATCH, for example 3.4.1.")
        release = cls(*(int(part) for part in match.groups()))
        if release < OLDEST:
            raise UsageError(
                f"Kafka {release} is too old: KRaft brokers with transactions start with {OLDEST}; "
                f"choose {OLDEST} or later."
            )
        return release

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def cache_size_config(self) -> str:
        """Name of the config that bounds the record cache of an instance (KIP-770 renamed it in 3.4)."""
        if self >= Release(3, 4, 0):
            return "statestore.cache.max.bytes"
        return "cache.max.bytes.buffering"

    @property
    def oldest_java(self) -> int:
        """The oldest Java feature version the brokers of this release run on (4.0 requires 17, KIP-1013)."""
        return 17 if self.major >= 4 else 11

    @property
    def can_do_without_state_updater(self) -> bool:
        """Whether it knows the internal config `__state.updater.enabled__`."""
        return Release(3, 4, 0) <= self < Release(4, 3, 0)

    @property
    def removed_threads_leave_group(self) -> bool:
        """Whether a thread that is removed tells the group so; on 4.1.0 it is missed only when its session ends.

        Source: own runs; its log has no LeaveGroup request, those of 4.0.2 and 4.1.2 have.
        """
        return self != Release(4, 1, 0)

    def refuse_restart_on(self, other: "Release") -> str | None:
        """Why an application that ran on this release cannot be restarted on the other one, if it cannot.

        Sources: KIP-1035; own runs, in which RocksDB refused to open the stores.
        """
        if other == self:
            return f"{other} is the release that it ran on; name another one to restart on."
        if other < Release(4, 3, 0) <= self:
            return (
                f"{self} keeps the offsets of its stores in a column family of RocksDB (KIP-1035), with which {other} "
                "cannot open them; restart on 4.3.0 or later."
            )
        if other < Release(4, 0, 0) <= self:
            return (
                f"the RocksDB of {self} writes files in a format (6) that the one of {other} cannot read; restart on "
                "4.0.0 or later."
            )
        return None

    @property
    def decodes_assignments_of_newest(self) -> bool:
        """Whether it decodes version 11 of the assignment, which Kafka Streams writes since 3.2 (KIP-708)."""
        return self >= Release(3, 2, 0)


OLDEST = Release(3, 0, 0)
