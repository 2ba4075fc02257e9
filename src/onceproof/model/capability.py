"""The capabilities of brokers besides being used by clients: faults, scenarios and promises name what they need."""

from enum import Enum


class Capability(Enum):
    """Something that can be done with some brokers only; its value completes "it must be possible ..."."""

    KILL_NODE = "to kill or stop a broker and have it back"
    CUT_LINK = "to disturb the link between an instance and a broker, by a proxy"
    LOSE_ANSWER = "to drop or delay an answer of a broker, by a proxy that knows it"
    MOVE_LEADERS = "to have other replicas elected as leaders"
    REFUSE_RECORDS = "to let a topic refuse records, by a replica on a dead broker"
    READ_SEGMENTS = "to read the brokers' log segments"
    CONFIGURE_GROUPS = "to set the configuration of a group, as the streams protocol needs it"
    DESCRIBE_TOPICS = "to read the configuration of topics"
    COMPACT_TOPICS = "to have brokers compact topics at once"
    ALTER_QUOTAS = "to set the quota of a client"


BY_PROXY = frozenset({Capability.CUT_LINK, Capability.LOSE_ANSWER})  # each takes a proxy of its own
OF_CLAIMED = frozenset({Capability.ALTER_QUOTAS})  # what brokers allow that are not ours
