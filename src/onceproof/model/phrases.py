"""The phrases of Kafka's logs by which something counts as seen: one table for scenarios, faults and the lab.

A log is no interface: Kafka may word a phrase differently on any release, and what it stands for would then never be
seen again, in silence. So each phrase names a trial that must show it. `onceproof release qualify` runs these trials on
a new release, and names the phrases that are missing (`docs/qualifying.md`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from onceproof.model.release import OLDEST, Release

LATER = Release(999, 0, 0)  # the last release of a range that is open


class Side(StrEnum):
    """Whose log says it."""

    INSTANCE = "instance"  # of Kafka Streams: its log, and what a thread of it died of
    BROKER = "broker"


@dataclass(frozen=True)
class Showing:
    """A trial that must show a phrase or an event."""

    scenario: str
    variant: str = "DEFAULT_CONFIG"
    parameters: Mapping[str, Any] = field(default_factory=dict)  # in addition to the variant's

    def __str__(self) -> str:
        settings = " ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.scenario} {self.variant}{f' ({settings})' if settings else ''}"


@dataclass(frozen=True)
class Phrase:
    """A phrase of a log; the trial must show it on the releases from `first` to `last`."""

    name: str
    text: str  # a regular expression that is found in a line
    source: str  # Kafka's class that says it
    shown: Showing | None  # the trial that must show it
    unshown: str = ""  # why no trial must, if none does
    side: Side = Side.INSTANCE
    first: Release = OLDEST
    last: Release = LATER

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled expression."""
        return re.compile(self.text)

    def is_due_on(self, release: Release) -> bool:
        """Whether the trial must show it on a release."""
        return release.within(self.first, self.last)


# Trials that show several phrases.
REBALANCED = Showing("enumerator")
KILLED = Showing("crash")
WIPED_ANEW = Showing("crash", "DURING_RESTORATION")
ZOMBIE = Showing("enumerator", "PAUSED")
BROKER_ZOMBIE = Showing("enumerator", parameters={"fault": "broker-pause", "nodes": 3})
BROKER_KILLED = Showing("enumerator", parameters={"fault": "broker-kill", "nodes": 3})
DISK_FULL = Showing("enumerator", "DISK_FULL")
GIVEN_UP = Showing("at-least-once", "TIMED_OUT")
BY_CHANCE = "whether an instance says this or another phrase first depends on the time"

# --- stores, when a task is initialised ----------------------------------------------------------------------------

TRUSTED = Phrase(
    "store-trusted",
    r"State store (?P<store>\S+) initialized from checkpoint with offset (?P<offset>\d+)"
    r" at changelog \S+-(?P<partition>\d+)\b",
    "ProcessorStateManager",
    KILLED,
)
ANEW = Phrase(
    "store-anew",
    r"State store (?P<store>\S+) did not find checkpoint offset, hence would default .*"
    r" changelog \S+-(?P<partition>\d+)\b",
    "ProcessorStateManager",
    KILLED,
)
NOT_EMPTY = Phrase(  # from 4.3 on most stores know themselves whether they were closed cleanly (KIP-1035)
    "store-not-empty",
    r"State store (?P<store>\S+) did not find checkpoint offsets? while stores are not empty",
    "ProcessorStateManager",
    WIPED_ANEW,
    last=Release(4, 2, 999),
)
WIPED = Phrase("task-wiped", r"Tasks \[(?P<tasks>[^]]+)\] are corrupted", "TaskCorruptedException", WIPED_ANEW)
CORRUPTED = Phrase("task-corrupted", r"Detected the states of tasks .* are corrupted", "StreamThread", WIPED_ANEW)
PROCESS = Phrase("process-id", r"Reading UUID from process file: (?P<id>\S+)", "StateDirectory", KILLED)
RESTORED = Phrase(
    "restored",
    r"Finished restoring changelog|Restored and ready to run",
    "StoreChangelogReader, StreamTask",
    REBALANCED,
)
NOT_LOCKED = Phrase(
    "not-locked",
    r"Failed to lock the state directory for task (?P<task>\S+)",
    "StateDirectory, TaskManager",
    None,
    "it takes a thread that has not let go of a task which another one was given",
)
NOT_OPENED = Phrase(
    "store-not-opened",
    r"State store (?P<store>\S+) didn't find a valid state",
    "ProcessorStateManager",
    None,
    "on a release without a bug a store that is not opened is wiped at once, and this is not logged",
)
NO_DATABASE = Phrase(
    "database-not-opened",
    r"Error opening store (?P<store>\S+) at location",
    "RocksDBStore",
    Showing("windows", "HALTED"),
    first=Release(4, 3, 0),  # before, a segment that was not opened was passed over in silence
)
NOT_RESTORED = Phrase(
    "not-restored",
    r"Exception caught while trying to restore state",
    "ProcessorStateManager",
    None,
    "a segment that was passed over is restored only where its store is trusted after a kill (KAFKA-20685)",
)
# The words of the operating system, and those of Kafka Streams about a directory.
REFUSED = Phrase(
    "write-refused",
    r"File too large|No space left on device|Read-only file system|Operation not permitted|Permission denied|"
    r"couldn't be created",
    "StateDirectory, RocksDB",
    DISK_FULL,
)

# --- tasks that move -----------------------------------------------------------------------------------------------

RECYCLED = Phrase(
    "task-recycled",
    r"\[(?P<thread>[^\[\]]+)\] task \[(?P<task>[^\]]+)\] Closed (?:clean )?and recycled state",
    "StreamTask, StandbyTask",
    REBALANCED,
)
CLOSED = Phrase("task-closed", r"[Tt]ask \[\S+\] Closed clean \(", "StreamTask, StandbyTask", REBALANCED)
DIRTY = Phrase("task-dirty", r"[Tt]ask \[\S+\] Closed dirty", "StreamTask, StandbyTask", ZOMBIE)
FOLLOW_UP = Phrase("follow-up", r"Triggering the followup rebalance", "StreamThread", REBALANCED)
REBALANCE = Phrase(
    "rebalance", r"State transition from RUNNING to (?:REBALANCING|PARTITIONS_REVOKED)", "KafkaStreams", REBALANCED
)
REVOKED = Phrase(
    "revoked",
    r"Revoke previously assigned partitions",
    "ConsumerRebalanceListenerInvoker, ConsumerCoordinator",
    REBALANCED,
)
REJOINS = Phrase("rejoins", r"\(Re-\)joining group", "ConsumerCoordinator", REBALANCED)
JOINED = Phrase("joined", r"Successfully joined group with generation", "ConsumerCoordinator", REBALANCED)
ENDED = Phrase("thread-ended", r"State transition from PENDING_SHUTDOWN to DEAD", "StreamThread", REBALANCED)
MIGRATED = Phrase("task-migrated", r"TaskMigratedException", "TaskMigratedException", ZOMBIE)
LOST = Phrase("partitions-lost", r"partitions \[.*\] lost due to missed rebalance", "StreamThread", None, BY_CHANCE)
DIED = Phrase(
    "thread-failed",
    r"Encountered the following exception during processing",
    "StreamThread",
    None,
    "it takes a thread that dies",
)

# What these say is asked of applications of users, which no trial of ours is; tests/specimens/phrases.tsv has lines.
OF_USERS = "it takes an application that does what it warns of"
SKIPPED = Phrase(
    "record-skipped",
    r"Skipping record due to (?P<why>deserialization error|negative extracted timestamp)\. "
    r"topic=\[(?P<topic>[^\]]+)\] partition=\[(?P<partition>\d+)\]",
    "RecordQueue, RecordDeserializer",
    None,
    OF_USERS,
)
UNKEYED = Phrase(
    "record-unkeyed",
    r"Skipping record due to null (?:join )?key or value\..* topic=\[(?P<topic>[^\]]+)\] partition=\[\d+\].*Join\w*\)",
    "KStreamKTableJoin, KStreamKStreamJoin",
    None,
    OF_USERS,
)
UNSENT = Phrase(
    "record-unsent",
    r"Error encountered sending record to topic (?P<topic>\S+) for task (?P<task>\d+_\d+) due to",
    "RecordCollectorImpl",
    None,
    OF_USERS,
)
GOES_ON = Phrase(
    "goes-on-unsent", r"Exception handler choose to CONTINUE processing", "RecordCollectorImpl", None, OF_USERS
)
POSITIONED = Phrase(
    "positioned",
    r"Setting offset for partition (?P<place>\S+) to the committed offset FetchPosition\{offset=(?P<offset>\d+)",
    "ConsumerUtils, ConsumerCoordinator",
    KILLED,
)
THREAD_FENCED = Phrase("thread-fenced", r"Detected that the thread is being fenced", "StreamThread", ZOMBIE)
LATE_POLL = Phrase(
    "late-poll",
    r"[Cc]onsumer poll timeout has expired\.",
    "AbstractCoordinator, HeartbeatRequestManager",
    None,
    OF_USERS,
)

# --- transactions --------------------------------------------------------------------------------------------------

BEING_FENCED = Phrase(
    "being-fenced", r"thread is being fenced|ProducerFencedException", "StreamThread, TransactionManager", ZOMBIE
)
EPOCH = Phrase("old-epoch", r"InvalidProducerEpochException", "InvalidProducerEpochException", None, BY_CHANCE)
# How a client says that it was fenced; which comes first depends on what it does when it wakes.
FENCED = Phrase(
    "fenced",
    "|".join(phrase.text for phrase in (BEING_FENCED, LOST, EPOCH)),
    "StreamThread, TransactionManager",
    ZOMBIE,
)
ABORTED = Phrase("aborted", r"Aborting (?:incomplete )?transaction", "KafkaProducer, TransactionManager", ZOMBIE)
TRANSACTIONAL_ID = Phrase("transactional-id", r"transactionalId=(?P<id>[^,\]\s]+)", "KafkaProducer", REBALANCED)
REQUESTED = Phrase(
    "transactional-request",
    r"(?P<step>Enqueuing|Sending) transactional request \(?(?:type=)?"
    r"(?P<request>AddOffsetsToTxn|AddPartitionsToTxn|EndTxn|TxnOffsetCommit)",
    "TransactionManager, Sender",
    Showing("quota"),
)
SPLIT = Phrase("batch-split", r"splitting and retrying", "Sender", Showing("split-batch"))

# --- the network ---------------------------------------------------------------------------------------------------

REQUEST_TIMED_OUT = Phrase(
    "request-timed-out", r"due to request timeout|TimeoutException", "NetworkClient, TimeoutException", GIVEN_UP
)
TIMED_OUT = Phrase(
    "timed-out",
    r"(?i)due to [a-z ]*timeout|session timed out|TimeoutException|request timed out",
    "AbstractCoordinator, NetworkClient, Sender",
    ZOMBIE,
)
DISCONNECTED = Phrase(
    "disconnected", r"(?i)\bnode (?P<node>-?\d+) (?:being )?disconnected", "NetworkClient", BROKER_KILLED
)

# --- brokers -------------------------------------------------------------------------------------------------------

FOLLOWS = Phrase(
    "follows", r"Follower (?P<place>\S+) starts at leader epoch", "Partition", BROKER_ZOMBIE, side=Side.BROKER
)
NOT_STREAMS = Phrase(
    "not-a-streams-group",
    r"Group (?P<group>\S+) is not a streams group",
    "GroupMetadataManager",
    None,
    "only brokers with KAFKA-20254 say it",
    side=Side.BROKER,
)

# --- what a thread died of, where it was ours ----------------------------------------------------------------------

NO_LIBRARY = Phrase(
    "no-library",
    r"UnsatisfiedLinkError|Could not initialize class org\.rocksdb",
    "RocksDB",
    None,
    "it takes a folder from which no program may be run",
)
NO_ACCESS = Phrase(
    "no-access",
    r"\b(?P<exception>\w*(?:Authorization|Authentication)Exception)\b",
    "AuthorizationException, AuthenticationException",
    None,
    "it takes brokers that refuse a client",
)
UNEQUAL = Phrase(
    "unequal-partitions",
    r"(?:same number of partitions|not co-partitioned): \[(?P<topics>[^\]]*)\]",
    "CopartitionedTopicsEnforcer",
    None,
    "it takes an application with a mistake",
)

PHRASES: tuple[Phrase, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Phrase))


@dataclass(frozen=True)
class Reported:
    """An event that the application under test prints, and that counts as seen, and a trial that must have it."""

    event: str
    source: str  # Kafka's interface from which the application has it
    shown: Showing


EVENTS = (
    Reported("state", "KafkaStreams.StateListener", REBALANCED),
    Reported("assignment", "KafkaStreams.metadataForLocalThreads", REBALANCED),
    Reported("progress", "Processor", REBALANCED),
    Reported("restore", "StateRestoreListener", KILLED),
    Reported("restored", "StateRestoreListener", KILLED),
    Reported("throttle", "produce-throttle-time-max of KafkaStreams.metrics", Showing("quota")),
    Reported("uncaught", "StreamsUncaughtExceptionHandler", DISK_FULL),
)
