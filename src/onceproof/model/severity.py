"""How bad a known issue is for those who depend on the results: the order in which people read about issues."""

from collections.abc import Iterable
from enum import StrEnum


class Severity(StrEnum):
    """The harm of an issue, the worst first."""

    LOST = "data lost"
    WRONG = "wrong"
    STUCK = "stuck"
    LOUD = "loud"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)

    @property
    def meaning(self) -> str:
        """The meaning, for people."""
        return {
            Severity.LOST: "records, results or state are missing",
            Severity.WRONG: "results or answers are wrong, come twice or at a wrong time",
            Severity.STUCK: "processing stands still or takes longer, or nothing can be closed",
            Severity.LOUD: "a thread or a process fails with an error",
        }[self]


# By the anomalies that the issue explains; any other anomaly is a wrong result.
OF_ANOMALIES = {
    **dict.fromkeys(("lost-record", "lost-entry", "lost-alone"), Severity.LOST),
    **dict.fromkeys(("stuck", "idle-partition", "unclean-close", "wrong-end", "wrong-membership"), Severity.STUCK),
    **dict.fromkeys(("long-throttle", "runaway-lag"), Severity.STUCK),
    **dict.fromkeys(("thread-died", "aborted-by-throttle", "leak"), Severity.LOUD),
}


def rate(anomalies: Iterable[str]) -> Severity:
    """The severity of the worst of some anomalies; of none, that of wrong results."""
    found = [OF_ANOMALIES.get(anomaly, Severity.WRONG) for anomaly in anomalies]
    return min(found, key=lambda severity: severity.rank, default=Severity.WRONG)
