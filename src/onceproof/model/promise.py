"""The promises of Kafka Streams, each promise a value, and the named breaches of it.

All that know promises take them from here: both readers, the Great Expectations suites, the judge, the page, and
`docs/reading-a-verdict.md` (a test compares its table with this one). Every promise that is checked, and every anomaly
that a check can raise, has its row here and nowhere else.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from onceproof.model.capability import Capability
from onceproof.model.errors import UsageError

# The minimum number of comparisons, by a rule on the workload: a number, or one for each of these. Never 0.
Least = str | int
RULES = {
    "keys": "a key that was delivered",
    "preloaded": "a record that was preloaded",
    "partitions": "a partition",
    "stores": "a store of the topology",
    "partition_stores": "a store of the topology in each partition",
    "entry_stores": "a store whose entries are read, in each partition",
}


@dataclass(frozen=True)
class Anomaly:
    """A named breach: what it means, for people, and what it has one witness of.

    One that is `informational` tests how Kafka Streams keeps a promise, not whether: alone it turns no cell red, unless
    a known issue has it there.
    """

    name: str
    sentence: str
    per: str
    informational: bool = False


@dataclass(frozen=True)
class Dated:
    """The events of the timeline that date a breach: the `last` of them or the first.

    `role` is that of the topic in which the breach is seen (None: in none, `any`: it does not matter).
    """

    by: tuple[str, ...]
    last: bool = True
    role: str | None = None


@dataclass(frozen=True)
class Promise:
    """The rule that must hold.

    Attributes:
        name: as in tables and results.
        sentence: what must hold, for people.
        counted: what one comparison is, as a sentence, shown next to their number.
        anomalies: the names of its breaches.
        suite: the Great Expectations suite that judges it. A trial makes all promises of a suite or none.
        least: the least number of comparisons that it must have seen, see `RULES`.
        table: of `spark_jobs.tables`, the one that it is judged in.
        dated: what dates a breach; None if it arose when the record at its last place was processed.
        needs: what the brokers must allow for it to be checked.
    """

    name: str
    sentence: str
    counted: str
    anomalies: tuple[str, ...]
    suite: str
    least: Least
    table: str = "comparisons"
    dated: Dated | None = None
    needs: Capability | None = None


OF_APPLICATIONS = "applications"  # the suite of those that only your own applications make
TRANSACTION_ATOMICITY = "transaction_atomicity"  # the suite of those that are judged by the log alone
ANOMALIES = {
    anomaly.name: anomaly
    for anomaly in (
        Anomaly("duplicate-id", "One ID was given to more than one key.", "ID"),
        Anomaly("unstable-id", "One key was given more than one ID.", "key"),
        Anomaly(
            "wrong-id",
            "A key's ID is its own and stable, but not the one that the order of the input determines.",
            "key",
        ),
        Anomaly("lost-record", "A key has fewer records downstream of the application than it should.", "key"),
        Anomaly("duplicate-output", "A key has more records downstream of the application than it should.", "key"),
        Anomaly("unexpected-record", "A record exists that nothing in the input explains.", "key, or record"),
        Anomaly(
            "wrong-order",
            "A record comes before one that it must follow, by the order of the input.",
            "record",
        ),
        Anomaly("wrong-value", "A record's value differs from the one that the input determines.", "record, or key"),
        Anomaly(
            "wrong-time",
            "A record was joined with an entry that its key had in the table at another time, as its task took records "
            "of two topics in the wrong order.",
            "record",
        ),
        Anomaly(
            "unstable-final",
            "Two runs without a fault end with different values of a key, in an output whose final values are "
            "declared. The topology gives no reason for that.",
            "key",
        ),
        Anomaly("wrong-timestamp", "A record's timestamp differs from that of its input record.", "record, or key"),
        Anomaly("wrong-partition", "A record is in a partition to which its key does not belong.", "record, or key"),
        Anomaly("wrong-header", "A record's headers differ from those of its input record.", "record, or key"),
        Anomaly("counter-regression", "The counter's changelog did not grow from one record to the next.", "record"),
        Anomaly("changelog-output-mismatch", "A changelog and the output do not agree.", "key, or partition"),
        Anomaly("stale-read", "A store returned an older value than the one that was put last.", "output record"),
        Anomaly(
            "dirty-read",
            "Under exactly-once, a store returned a value that no earlier record had put there.",
            "output record",
        ),
        Anomaly(
            "stale-answer",
            "A client got an older value than the store had to hold, or declared to hold.",
            "answer",
        ),
        Anomaly(
            "early-answer",
            "A client got a value that was not committed, from a store that must not show uncommitted values.",
            "answer",
        ),
        Anomaly("unexplained-answer", "A client got a value that its key never had.", "answer"),
        Anomaly(
            "wrong-route",
            "At the end, an instance did not send clients to the instance that has the key.",
            "instance and partition",
        ),
        Anomaly("ghost-key", "A scan of a store found a key that had been deleted.", "request"),
        Anomaly("missing-key", "A scan of a store did not find a key that had been put and not deleted.", "request"),
        Anomaly(
            "lost-alone",
            "A left or outer join did not emit a record that has no match, though its window had closed.",
            "record",
        ),
        Anomaly(
            "early-alone",
            "A join emitted a record alone, though it has a match or its window has not closed.",
            "record",
        ),
        Anomaly(
            "early-result",
            "A window was emitted as final, though it had not closed, or another session included it later.",
            "window",
        ),
        Anomaly(
            "early-release",
            "A buffer emitted a record before it was due, or at a time that its task never had.",
            "record",
        ),
        Anomaly(
            "late-release",
            "A record stayed in a buffer when a punctuation had to release it, and was emitted by a later one.",
            "record",
        ),
        Anomaly(
            "unreleased",
            "A buffer did not emit a record, or still held it at the end, though it had been due.",
            "record",
        ),
        Anomaly(
            "stale-checkpoint",
            "Under exactly-once, a checkpoint of the stores stayed in place while the task was running.",
            "task",
            informational=True,
        ),
        Anomaly(
            "skipped-wipe",
            "Under exactly-once, a store was trusted that held writes of the transaction in which its process died.",
            "store",
            informational=True,
        ),
        Anomaly(
            "uncommitted-state", "After a restart, a store held what no committed changelog record explains.", "key"
        ),
        Anomaly("lost-state", "After a restart, a store lacked what the committed changelog holds.", "key"),
        Anomaly(
            "wrong-store",
            "At the end, a store differed from its changelog up to the offset that the store claims.",
            "store and key",
        ),
        Anomaly(
            "wrong-standby",
            "At the end, a standby differed from its changelog up to the offset that the standby claims.",
            "standby and key",
        ),
        Anomaly(
            "lost-entry",
            "At the end, a store lacked an entry of its changelog that it must still keep.",
            "store and key",
        ),
        Anomaly(
            "wrong-entry",
            "At the end, a store held an entry, of a window for example, that its changelog does not have.",
            "store and key",
        ),
        Anomaly(
            "wrong-entry-time",
            "At the end, a store held a value whose timestamp differs from that in its changelog.",
            "store and key",
        ),
        Anomaly(
            "wrong-entry-headers",
            "At the end, a store held a value whose headers differ from those in its changelog.",
            "store and key",
        ),
        Anomaly(
            "false-after-true",
            "A delete was answered with false, though the record was there when it was asked for.",
            "key",
        ),
        Anomaly(
            "torn-transaction",
            "One transaction is not committed as a whole: a record without the input that caused it, or "
            "the input without the record.",
            "transaction",
        ),
        Anomaly(
            "hanging-transaction", "A transaction has no end: a marker is missing in one of its logs.", "transaction"
        ),
        Anomaly(
            "isolation-breach",
            "Readers of committed records missed records that a marker in the log commits, or saw others.",
            "transaction and log",
        ),
        Anomaly(
            "wrong-topic",
            "An internal topic of Kafka Streams has a wrong number of partitions, or a wrong configuration.",
            "topic",
        ),
        Anomaly(
            "wrong-assignment",
            "At rest, a task had no owner or two, too few standbys, or one on the instance that has it as active.",
            "task",
        ),
        Anomaly(
            "wrong-membership",
            "An instance that left its group when it closed stayed a member, or one that was to stay lost its tasks.",
            "instance",
        ),
        Anomaly(
            "wrong-end",
            "After an exception, an instance did not do what its handler returned (shut down or continue), or it did "
            "not close in time.",
            "instance",
        ),
        Anomaly(
            "wrong-clean-up",
            "`cleanUp()` left state behind that the next start trusted, or took that of a running instance.",
            "instance, or task",
        ),
        Anomaly(
            "skipped-restoration",
            "A restoration that a shutdown interrupted did not resume where it had stopped.",
            "store",
        ),
        Anomaly("early-running", "An instance was RUNNING before a store of it was restored.", "restoration"),
        Anomaly(
            "wrong-progress",
            "A listener got other numbers of restored records than those of the batches and offsets.",
            "restoration",
        ),
        Anomaly(
            "standby-behind",
            "At rest, a standby lacked records of its changelog when it should long have had them.",
            "standby",
        ),
        Anomaly(
            "idle-partition",
            "Records of a partition waited, and none was committed for longer than what had happened to its owner "
            "explains.",
            "partition",
        ),
        Anomaly(
            "leak",
            "After each round of the same work, the application held more of something than before.",
            "resource",
        ),
        Anomaly(
            "fencing-breach",
            "A producer's epoch fell, its sequence did not follow, or a committed position fell: a producer wrote "
            "that should have been fenced.",
            "producer and log, or partition",
        ),
        Anomaly(
            "early-commit",
            "The offset of a request was committed before its change and its answer were flushed.",
            "topic",
        ),
        Anomaly(
            "long-throttle",
            "A producer slightly above its quota was throttled for much longer than the quota explains.",
            "trial",
        ),
        Anomaly(
            "runaway-lag", "The lag behind a throttled producer grew much faster than its quota explains.", "trial"
        ),
        Anomaly(
            "aborted-by-throttle",
            "A transaction failed although its producer was only throttled.",
            "transaction, or class of exception",
        ),
        Anomaly("thread-died", "A stream thread ended with an exception, or the client could not start.", "thread"),
        Anomaly("stuck", "The application made no progress, although the brokers were healthy.", "trial"),
        Anomaly("unclean-close", "An instance that was asked to close did not end cleanly.", "instance"),
        Anomaly("corrupt-record", "A record cannot be decoded.", "record"),
    )
}

# Breaches by which records, entries or threads are missing, or are not what they should be: with one of them other
# promises have less to compare.
LOSSES = frozenset(
    (
        *("lost-record", "unexpected-record", "wrong-value", "wrong-partition", "lost-alone", "unreleased"),
        *("changelog-output-mismatch", "lost-state", "lost-entry", "torn-transaction", "hanging-transaction"),
        *("isolation-breach", "wrong-assignment", "thread-died", "stuck", "unclean-close", "corrupt-record"),
    )
)

# Breaches of a log that is compared with the replay of the input, record by record.
_CONTENTS = (
    "lost-record",
    "duplicate-output",
    "unexpected-record",
    "wrong-order",
    "wrong-value",
    "wrong-timestamp",
    "wrong-partition",
    "wrong-header",
)
# Breaches of the output of a user application; the last two where its timestamps and headers are compared.
_OUTPUTS = ("lost-record", "duplicate-output", "unexpected-record", "wrong-value", "wrong-timestamp", "wrong-header")
PROMISES = {
    promise.name: promise
    for promise in (
        Promise(
            "identities",
            "Each key is emitted as often as it went in, always with the ID that the order of the input determines.",
            "Every key that was delivered was emitted with an ID.",
            ("duplicate-id", "unstable-id", "wrong-id", "lost-record", "duplicate-output", "unexpected-record"),
            "id_uniqueness",
            "keys",
            table="assignments",
        ),
        Promise(
            "counters",
            "The counter grows, and both changelogs end with what the output shows.",
            "The last entry of every key in the store ids, and every record of the counter's changelog.",
            ("counter-regression", "changelog-output-mismatch"),
            "changelog_consistency",
            "keys",
            table="changelogs",
        ),
        Promise(
            "output-order",
            "The committed output of each partition is, record by record and in order, what the replay of the input "
            "says: key, value, timestamp, headers and partition; under at-least-once a suffix may come again.",
            "Every record of the output was compared with the input record that gave it.",
            ("wrong-order", "wrong-value", "wrong-timestamp", "wrong-partition", "wrong-header"),
            "output_contents",
            "keys",
        ),
        Promise(
            "skipping",
            "An exception handler that continues skips the records that cannot be read or processed, and no other: "
            "each of the others is emitted, in order, with its key, value, timestamp, headers and partition.",
            "Every record that can be processed was looked for in the output.",
            _CONTENTS,
            "skipped_records",
            1,  # how many there are varies
        ),
        Promise(
            "dead-letters",
            "Each record that is skipped is in the dead letter queue once, as it was read (KIP-1034); under "
            "at-least-once a suffix may come again.",
            "Every record that cannot be processed was looked for in the dead letter queue.",
            _CONTENTS,
            "dead_letters",
            1,  # how many there are varies
        ),
        Promise(
            "changelog",
            "A changelog is what the replay of the input says: record by record where the store is not cached, else as "
            "the table that it folds to. Each of its records is one that its key had, in the order of the input.",
            "Every record of the changelog, or key of its table, was compared with what the input gives.",
            _CONTENTS,
            "changelog_contents",
            "keys",
        ),
        Promise(
            "joined",
            "The table that a join of two tables gives, and sums of it, are key by key what those of the input give.",
            "Every result, or key of a table, was compared with the join of the tables that the input makes.",
            (
                "lost-record",
                "unexpected-record",
                "wrong-value",
                "wrong-timestamp",
                "wrong-partition",
                "wrong-header",
            ),
            "joined_tables",
            1,  # how many results there are varies
        ),
        Promise(
            "grouped",
            "The aggregates of a grouped table or stream are, group by group, what the last values of the input's keys "
            "give. That holds also when the group of instances moved to another release meanwhile (KIP-904).",
            "Every result, or group, was compared with the sums of the last values of the input's keys.",
            (
                "lost-record",
                "unexpected-record",
                "wrong-value",
                "wrong-timestamp",
                "wrong-partition",
                "wrong-header",
            ),
            "grouped_tables",
            1,  # how many results there are varies
        ),
        Promise(
            "matches",
            "A join of two streams gives each pair of records of a key that are within the window of one another. A "
            "left or outer join also gives each record without a match, once, after its window has closed "
            "(KAFKA-14862).",
            "Every result was compared with those that the records of the input give.",
            (
                "lost-alone",
                "early-alone",
                "lost-record",
                "duplicate-output",
                "unexpected-record",
                "wrong-timestamp",
                "wrong-partition",
            ),
            "joined_streams",
            1,  # how many results there are varies
        ),
        Promise(
            "time-order",
            "A task takes the records of two topics in the order of their timestamps, as far as max.task.idle.ms asks "
            "it to wait (KIP-695): each record of a stream is emitted once, in order, with the entry that its key had "
            "in the table at its time.",
            "Every record of the stream was compared with the output for it.",
            (
                "wrong-time",
                "lost-record",
                "duplicate-output",
                "unexpected-record",
                "wrong-order",
                "wrong-value",
                "wrong-timestamp",
                "wrong-partition",
            ),
            "time_order",
            "keys",
        ),
        Promise(
            "windows",
            "An aggregation by windows of time gives, for each window, its updates record by record, or, suppressed, "
            "the last of them once, when the window has closed; records that come too late do not count (KAFKA-20099).",
            "Every window, or result, was compared with what the records of the input give in their order.",
            (
                "early-result",
                "lost-record",
                "duplicate-output",
                "unexpected-record",
                "wrong-value",
                "wrong-timestamp",
                "wrong-partition",
            ),
            "windowed_aggregates",
            1,  # how many windows there are varies
        ),
        Promise(
            "punctuations",
            "A punctuator releases what a buffer holds: each record once, not before it is due, and by stream time all "
            "that is due at once; nothing that was due is left.",
            "Every record that was delivered or emitted was compared with the time from which on it was due.",
            ("early-release", "late-release", "unreleased", "duplicate-output", "unexpected-record"),
            "punctuations",
            "keys",
            dated=Dated(("fault",), last=False, role="input"),  # which parted a record from its buffer
        ),
        Promise(
            "reads",
            "A cached store never gives an older value than the one put last, also when its task was active, standby "
            "and active again on one thread (KAFKA-14624); under exactly-once it never gives one that no record had "
            "put there.",
            "Every output record has what was found in the store.",
            ("stale-read", "dirty-read"),
            "store_reads",
            "keys",
        ),
        Promise(
            "queries",
            "An answer to an interactive query holds what was committed before the question, or, of a standby or a "
            "store that is restored, what that declares to hold (KIP-535, KIP-562). One with a position holds what "
            "came before it (KIP-796), and none shows what its store must not.",
            "Every answer was compared with the changelog and the input.",
            ("stale-answer", "early-answer", "unexplained-answer"),
            "interactive_queries",
            "keys",
        ),
        Promise(
            "routing",
            "At rest, each instance sends clients to the instance that has the key as active.",
            "Each instance was asked for a key of each partition.",
            ("wrong-route",),
            "query_routing",
            "partitions",
            dated=Dated(("routes",)),
        ),
        Promise(
            "scans",
            "A scan of a store finds the keys that were put and not deleted, whatever of it is in the cache only "
            "(KAFKA-18326).",
            "Every deletion was followed by a scan, and what it found was compared with what the input gives.",
            ("ghost-key", "missing-key", "lost-record", "duplicate-output", "unexpected-record"),
            "store_scans",
            "keys",
        ),
        Promise(
            "assertions",
            "The application, which asserts the same while it runs, never sees an old value either.",
            "The application was asked what it had asserted.",
            ("stale-read",),
            "store_reads",
            1,
            dated=Dated(("stale-read",), last=False),
        ),
        Promise(
            "deliveries",
            "No record is lost, also not one that is delivered again after a crash (KAFKA-20685), and under "
            "exactly-once none is emitted more often than it should.",
            "Every key that was delivered to the input was looked for behind the application.",
            ("lost-record", "duplicate-output", "unexpected-record"),
            "deliveries",
            "keys",
        ),
        Promise(
            "checkpoint",
            "Under exactly-once a task has no checkpoint while it is RUNNING: one that is there when the process dies "
            "vouches for a store that may hold uncommitted writes (KAFKA-20685).",
            "The checkpoint was sampled while records flowed.",
            ("stale-checkpoint",),
            "checkpoints",
            1,
            dated=Dated(("checkpoint",)),
        ),
        Promise(
            "wipe",
            "A store whose process was killed in a transaction is wiped and restored from its changelog, not trusted "
            "from a checkpoint.",
            "Of each store it is known how it was initialised after the crash.",
            ("skipped-wipe",),
            "state_recovery",
            "stores",
            dated=Dated(("restore",)),  # which the last start began where the checkpoint said
        ),
        Promise(
            "state",
            "After the restart a store holds all that its changelog holds as committed, and nothing else.",
            "Every record that was committed before the crash was looked for in the store after it.",
            ("uncommitted-state", "lost-state"),
            "state_recovery",
            "preloaded",
            dated=Dated(("contents",), role="any"),
        ),
        Promise(
            "stores",
            "At the end every store, active or standby, is what its changelog says, key by key, up to the offset that "
            "it claims.",
            "Every store of every partition was written at the end, at least where it was active.",
            ("wrong-store", "wrong-standby"),
            "stores",
            "partition_stores",
            dated=Dated(("dump",), role="any"),
        ),
        Promise(
            "entries",
            "At the end every store of windows, sessions, joins, versions, tables and results that are held back has "
            "the entries of its changelog up to the offset that it claims. Keys, values, timestamps and headers "
            "are the same bytes. Entries that are older than its retention do not count.",
            "Every such store of every partition was written at the end, at least where it was active.",
            ("lost-entry", "wrong-entry", "wrong-entry-time", "wrong-entry-headers"),
            "store_entries",
            "entry_stores",
            dated=Dated(("dump",), role="any"),
        ),
        Promise(
            "throttle",
            "A producer that is only throttled keeps its transaction: there is no exception of the transaction "
            "(KAFKA-17455).",
            "The throttle, the lag and the log of the instance were looked at.",
            ("aborted-by-throttle",),
            "throttling",
            1,
            dated=Dated(("exception", "uncaught"), last=False),
        ),
        Promise(
            "slowdown",
            "A producer slightly above its quota is slightly throttled, and its lag grows as the quota explains.",
            "Throttle and lag at the end of the load, compared with what quota and load ask for.",
            ("long-throttle", "runaway-lag"),
            "slowdown",
            2,
            dated=Dated(("load",)),
        ),
        Promise(
            "transactions",
            "None of its transactions is aborted.",
            "The transactions of the changelog were looked at.",
            ("aborted-by-throttle",),
            "throttling",
            1,
        ),
        Promise(
            "atomicity",
            "The input that a transaction commits, and what this input makes the topology write, are committed "
            "together or not at all.",
            "Of every transaction in the brokers' log segments, what belongs to it was looked at.",
            ("torn-transaction", "hanging-transaction"),
            TRANSACTION_ATOMICITY,
            1,
            needs=Capability.READ_SEGMENTS,
        ),
        Promise(
            "isolation",
            "Readers of committed records see what the markers in the log commit, and nothing else.",
            "What each transaction wrote to a log was looked for among what readers saw, and the input.",
            ("isolation-breach",),
            TRANSACTION_ATOMICITY,
            "partitions",
            needs=Capability.READ_SEGMENTS,
        ),
        Promise(
            "fencing",
            "Epochs and sequences of a producer only grow, and so do the positions in the input that are committed.",
            "In every log, all that a producer wrote was looked at, and every position that was committed.",
            ("fencing-breach",),
            TRANSACTION_ATOMICITY,
            1,
            needs=Capability.READ_SEGMENTS,
        ),
        Promise(
            "answers",
            "Every request is answered once, and with what is true: the deletion of an earlier attempt is not seen by "
            "a later one.",
            "For every request to delete, its answers were looked at.",
            ("false-after-true", "duplicate-output", "lost-record", "unexpected-record"),
            "answers",
            "keys",
        ),
        Promise(
            "flush",
            "Under any guarantee, a request's offset is committed only after its change and its answer were flushed.",
            "The ends of each topic were sampled after the committed offset, from the first request to the last.",
            ("early-commit",),
            "flushes",
            1,
            dated=Dated(("flushes",)),
        ),
        Promise(
            "published",
            "A deletion in the changelog and its answer in the output are published together or not at all.",
            "For every request to delete, what was published of it when the process died.",
            ("changelog-output-mismatch",),
            "publication",
            "keys",
            dated=Dated(("crash", "timeout"), role="input"),  # which parted a request's answer from its deletion
        ),
        Promise(
            "differential",
            "The output of a user application is, key by key, its output in a run without a fault.",
            "Every key of an output was compared with a run without a fault.",
            (*_OUTPUTS, "unstable-final"),
            OF_APPLICATIONS,
            1,
        ),
        Promise(
            "replay",
            "The output of a user application is, key by key, the output of TopologyTestDriver for its input.",
            "Every key of an output was compared with a replay without brokers.",
            _OUTPUTS,
            OF_APPLICATIONS,
            1,
        ),
        Promise(
            "replay-newest",
            "Its output is, key by key, the output of TopologyTestDriver of the newest release for its input.",
            "Every key of an output was compared with a replay on the newest release.",
            _OUTPUTS,
            OF_APPLICATIONS,
            1,
        ),
        Promise(
            "unique",
            "No key comes twice in an output of which the application says so.",
            "Every key of such an output was counted.",
            ("duplicate-output",),
            OF_APPLICATIONS,
            1,
        ),
        Promise(
            "internal-topics",
            "The topics that Kafka Streams makes for itself have the partitions, and keep records for as long, as it "
            "documents: a changelog that deletes by time loses its store.",
            "The configuration of each of these topics was read.",
            ("wrong-topic",),
            "internal_topics",
            1,
            needs=Capability.DESCRIBE_TOPICS,
        ),
        Promise(
            "assignment",
            "At rest, each task is active on one instance, and standby on as many others as num.standby.replicas asks "
            "for and as there are.",
            "The instances that had each task before they closed.",
            ("wrong-assignment",),
            "assignment",
            1,
        ),
        Promise(
            "endings",
            "An instance ends as it was asked to, and its group knows: by CloseOptions (KIP-812), an exception handler "
            "(KIP-671), or SIGTERM during a restoration; cleanUp() removes all state of an instance that has closed.",
            "What the group and the disk were like after an instance had ended.",
            ("wrong-membership", "wrong-end", "wrong-clean-up", "skipped-restoration"),
            "endings",
            1,
            dated=Dated(("absent", "answered", "cleaned", "cleaned-start", "terminated")),
        ),
        Promise(
            "readiness",
            "An instance is RUNNING only when the stores of its active tasks are restored, and its listener gets "
            "the number of records that were restored. At rest standbys have what is committed within 40 s.",
            "Each restoration of an active store, and each standby at rest.",
            ("early-running", "wrong-progress", "standby-behind"),
            "readiness",
            1,
            dated=Dated(("restored", "standbys")),
        ),
        Promise(
            "ownership",
            "A partition whose owner is gone has another one as soon as its group can know: at once if a member left "
            "or its thread died, after its session if it was killed or is to come back.",
            "Each partition of the input, by the longest time in which records of it waited and none was committed.",
            ("idle-partition",),
            "ownership",
            "partitions",
            needs=Capability.READ_SEGMENTS,
        ),
        Promise(
            "resources",
            "An application that does the same again and again holds no more than before: threads, file handles, "
            "metrics, objects of Kafka and of RocksDB.",
            "The number of each of these after each round of work.",
            ("leak",),
            "resources",
            4,
        ),
        Promise(
            "liveness",
            "The application runs until it is asked to end, ends cleanly, and writes records that can be decoded.",
            "The starts of the instances.",
            ("thread-died", "stuck", "unclean-close", "corrupt-record"),
            "liveness",
            1,
            dated=Dated(("uncaught", "failure"), last=False),
        ),
    )
}


def suites_of(promises: Iterable[str]) -> list[str]:
    """The suites that judge these promises, each once."""
    return list(dict.fromkeys(PROMISES[name].suite for name in promises))


def promises_of(suite: str) -> list[Promise]:
    """The promises that a suite judges."""
    return [promise for promise in PROMISES.values() if promise.suite == suite]


def least_of(promises: Iterable[str]) -> dict[str, Least]:
    """For each of these promises the minimum number of comparisons, as a rule."""
    return {name: PROMISES[name].least for name in promises}


@cache
def map_suites() -> Mapping[str, frozenset[str]]:
    """Which suite sees which anomaly.

    A suite that stays green with an anomaly that it should see checks nothing; one that fails without any saw what
    the readers did not.
    """
    seen: dict[str, set[str]] = defaultdict(set)
    for promise in PROMISES.values():
        seen[promise.suite].update(promise.anomalies)
    return {suite: frozenset(anomalies) for suite, anomalies in seen.items()}


def find_dating(anomaly: str, role: str | None) -> Dated | None:
    """The event that dates a breach in the topic of this role, or in none; None: the processing of its record."""
    for promise in PROMISES.values():
        if anomaly in promise.anomalies and promise.dated and promise.dated.role in ("any", role):
            return promise.dated
    return None


def check_anomaly(name: str) -> None:
    """Check that there is an anomaly of this name.

    Raises:
        UsageError: there is none.
    """
    if name not in ANOMALIES:
        raise UsageError(f"There is no anomaly {name!r}; choose from {', '.join(sorted(ANOMALIES))}.")


def meaning(anomaly: str) -> str:
    """The sentence of an anomaly; empty for one that only an earlier version knew."""
    known = ANOMALIES.get(anomaly)
    return known.sentence if known else ""
