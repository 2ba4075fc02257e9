"""Kafka releases answer questions about themselves, so that no call site compares version strings."""

import re
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema

from onceproof.model.decoding import AsText
from onceproof.model.errors import UsageError

PATTERN = (
    r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})"
    r"(?:(?:-rc(0|[1-9][0-9]{0,2}))?(?:@([0-9a-f]{7}))?|-SNAPSHOT@([0-9a-f]{7}))"
)
CLAIMED = "-claimed"  # behind the release of brokers of which it is only said
# Numbers that no candidate has, so that a release comes after its candidates, and a build of its own after neither.
SNAPSHOT, BUILT, FINAL = -1, 1000, 1001


@dataclass(frozen=True, order=True)
class Release:
    """A published Kafka version, a candidate of one, or a build, in their order: 3.9.0 < 3.10.0-rc0 < 3.10.0.

    A build is not published: it is a version and a commit, `4.4.0-SNAPSHOT@ab12cd3`. A build with the version of a
    release, `4.4.0@ab12cd3`, is different from it, and comes before it: it is usually a candidate.

    A rule or a range that begins with a release includes the candidates of that release (`since`): 3.4.0-rc1 has the
    code of 3.4.0. What 3.4.1 fixes, 3.4.1-rc1 fixes, too: a range that ends with 3.4.0 does not have it.

    Of brokers that a user gives us, and of black boxes, it is only said what they are, `3.9.1-claimed`: a name of its
    own, so that nothing that was measured there stands for the release itself. It has what the release has.

    The lab runs 3.0.0 and later: KRaft with exactly-once starts there.
    """

    major: int
    minor: int
    patch: int
    candidate: int = FINAL
    commit: str = ""  # of a build: how its id begins
    is_claimed: bool = False

    @classmethod
    def parse(cls, text: str) -> "Release":
        """Read `MAJOR.MINOR.PATCH`, `MAJOR.MINOR.PATCH-rcNUMBER`, or either, or `-SNAPSHOT`, with `@COMMIT`.

        Raises:
            UsageError: the text is malformed, or names a release before 3.0.0.
        """
        match = re.fullmatch(PATTERN, text, re.ASCII)
        if match is None:
            raise UsageError(
                f"{text!r} is not a Kafka release: it must read MAJOR.MINOR.PATCH, for example 3.4.1, or 3.4.1-rc0 for "
                "a release candidate, or, where one is asked for, newest, previous, or a line such as 3.4; a build is "
                "named by the Maven repository that it is in (docs/builds.md)."
            )
        major, minor, patch, candidate, commit, of_snapshot = match.groups()
        last = FINAL if commit is None else BUILT
        number = SNAPSHOT if of_snapshot else last if candidate is None else int(candidate)
        release = cls(int(major), int(minor), int(patch), number, commit or of_snapshot or "")
        if not release.since(OLDEST):
            raise UsageError(
                f"Kafka {release} is too old: KRaft brokers with transactions start with {OLDEST}; "
                f"choose {OLDEST} or later."
            )
        return release

    @classmethod
    def of_brokers(cls, text: str) -> "Release":
        """Read the release of brokers, or of a black box, which may be claimed.

        Raises:
            UsageError: as `parse`.
        """
        return replace(cls.parse(text.removesuffix(CLAIMED)), is_claimed=text.endswith(CLAIMED))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """In JSON it is its text; one that is claimed must be declared (`OfBrokers`)."""
        return AsText(cls.parse).__get_pydantic_core_schema__(source, handler)

    @property
    def claimed(self) -> "Release":
        """The same, of brokers of which it is only said."""
        return replace(self, is_claimed=True)

    def __str__(self) -> str:
        """Version, and of a build the commit; safe in paths."""
        text = f"{self.version}@{self.commit}" if self.commit else self.version
        return f"{text}{CLAIMED}" if self.is_claimed else text

    @property
    def version(self) -> str:
        """As in Maven; builds may share it with each other and with a release."""
        last = {SNAPSHOT: "-SNAPSHOT", BUILT: "", FINAL: ""}.get(self.candidate, f"-rc{self.candidate}")
        return f"{self.major}.{self.minor}.{self.patch}{last}"

    @property
    def slug(self) -> str:
        """As the text, and safe in topics and task ids, too."""
        return str(self).replace("@", "_")

    @classmethod
    def from_slug(cls, slug: str) -> "Release":
        """Read a `slug`; raises as `parse` does."""
        return cls.of_brokers(slug.replace("_", "@"))

    @property
    def is_candidate(self) -> bool:
        """Whether it is a pre-release or a build."""
        return self.candidate != FINAL

    @property
    def line(self) -> str:
        """Its release line, for example `3.4`."""
        return f"{self.major}.{self.minor}"

    def since(self, first: "Release") -> bool:
        """Whether it has what came with the release `first`; a candidate of `first` does, too."""
        return self >= (first if first.is_candidate else replace(first, candidate=SNAPSHOT))

    def within(self, first: "Release", last: "Release") -> bool:
        """Whether it is between the two, candidates of `first` included."""
        return self.since(first) and self <= last

    @property
    def cache_size_config(self) -> str:
        """Name of the config that bounds the record cache of an instance (KIP-770 renamed it in 3.4)."""
        if self.since(Release(3, 4, 0)):
            return "statestore.cache.max.bytes"
        return "cache.max.bytes.buffering"

    @property
    def oldest_java(self) -> int:
        """The oldest Java feature version the brokers of this release run on (4.0 requires 17, KIP-1013)."""
        return 17 if self.major >= 4 else 11

    @property
    def can_do_without_state_updater(self) -> bool:
        """Whether it knows the internal config `__state.updater.enabled__`."""
        return self.since(Release(3, 4, 0)) and not self.since(Release(4, 3, 0))

    @property
    def has_versioned_stores(self) -> bool:
        """Whether it knows versioned key-value stores (KIP-889)."""
        return self.since(Release(3, 5, 0))

    @property
    def removes_old_state(self) -> bool:
        """Whether it knows `state.cleanup.dir.max.age.ms` (KIP-1259)."""
        return self.since(Release(4, 3, 0))

    @property
    def removed_threads_leave_group(self) -> bool:
        """Whether a removed thread leaves the group; in 4.1 it is missed only when its session ends.

        Source: own runs; the brokers' log has no LeaveGroup request of it on 4.1.0 to 4.1.2, but on 4.0.2 and 4.2.0.
        """
        return not self.since(Release(4, 1, 0)) or self.since(Release(4, 2, 0))

    @property
    def has_streams_protocol(self) -> bool:
        """Whether it knows `group.protocol=streams` (KIP-1071), on either side; the early access of 4.1 is left out."""
        return self.since(Release(4, 2, 0))

    @property
    def has_static_streams_members(self) -> bool:
        """Whether a member with `group.protocol=streams` may have a `group.instance.id`, on either side.

        Source: `StreamsConfig` and the brokers' `GroupCoordinatorService`, which refuse it up to 4.3.1.
        """
        return self.since(Release(4, 4, 0))

    @property
    def has_transactional_stores(self) -> bool:
        """Whether it knows `enable.transactional.statestores` (KIP-892)."""
        return self.since(Release(4, 4, 0))

    @property
    def has_store_headers(self) -> bool:
        """Whether it knows `dsl.store.format` (KIP-1271)."""
        return self.since(Release(4, 3, 0))

    def refuse_restart_on(self, other: "Release") -> str | None:
        """Why an application that ran on this release cannot be restarted on the other one, if it cannot.

        Sources: KIP-1035; own runs, in which RocksDB refused to open the stores.
        """
        if other == self:
            return f"{other} is the release that it ran on; name another one to restart on."
        if self.since(Release(4, 3, 0)) and not other.since(Release(4, 3, 0)):
            return (
                f"{self} keeps the offsets of its stores in a column family of RocksDB (KIP-1035), with which {other} "
                "cannot open them; restart on 4.3.0 or later."
            )
        if self.since(Release(4, 0, 0)) and not other.since(Release(4, 0, 0)):
            return (
                f"the RocksDB of {self} writes files in a format (6) that the one of {other} cannot read; restart on "
                "4.0.0 or later."
            )
        return None

    def bounces_to(self, other: "Release") -> tuple[tuple["Release", str | None], ...]:
        """The rolling bounces by which a group moves to the other release: for each the release and `upgrade.from`.

        From 3.5 on repartition topics have another format (KIP-904), unless `upgrade.from` names an older release. On
        the way up a second bounce takes it away; on the way back a first one sets it.

        Source: Kafka Streams' upgrade guide.
        """
        if self._writes_old_changes == other._writes_old_changes:
            return ((other, None),)
        first = (self, other.line) if other._writes_old_changes else (other, self.line)
        return (first, (other, None))

    @property
    def _writes_old_changes(self) -> bool:
        return not self.since(Release(3, 5, 0))

    def refuse_roll_to(self, other: "Release", *, upgrade_from: bool = True) -> str | None:
        """Why a group of this release cannot take in instances of the other one, if it cannot, whatever their state.

        Without `upgrade_from` that is not set even where Kafka Streams asks for it.

        Source: `AssignorConfiguration` of 3.5.0, which throws where `upgrade.from` is 3.4.
        """
        if other == self:
            return f"{other} is the release that it runs on; name another one to roll to."
        older, newer = sorted((self, other))
        if upgrade_from and older.line == "3.4" and newer.within(Release(3, 5, 0), Release(3, 5, 1)):
            return (
                f"it takes upgrade.from=3.4 (KIP-904), which {newer} does not know, so that its threads die; roll to "
                "3.5.2 or later."
            )
        return None

    @property
    def decodes_assignments_of_newest(self) -> bool:
        """Whether it decodes version 11 of the assignment, which Kafka Streams writes since 3.2 (KIP-708)."""
        return self.since(Release(3, 2, 0))


OLDEST = Release(3, 0, 0)
OfBrokers = Annotated[Release, AsText(Release.of_brokers)]  # in JSON, where it may be claimed
