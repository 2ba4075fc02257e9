"""How bad a known issue is for those who depend on the results: the order in which people read about issues."""

from enum import StrEnum

from onceproof.model.known_issues import KnownIssue


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
# By the key, of an issue without anomalies, or whose anomalies are also those of a lesser or a greater harm.
OF_ISSUES = {
    **dict.fromkeys(
        ("KAFKA-14172", "KAFKA-16017", "KAFKA-17635", "KAFKA-12317", "KIP-954 (no JIRA)"),
        Severity.LOST,
    ),
    **dict.fromkeys(
        (
            *("KAFKA-13499, out of order (no JIRA)", "KAFKA-15417, late (no JIRA)", "KAFKA-19943", "KAFKA-20412"),
            *("KAFKA-20769", "KAFKA-20782", "KAFKA-8037", "KIP-328, old value (no JIRA)"),
            *("KIP-825, sessions (no JIRA)", "KIP-825, sessions up to 3.3 (no JIRA)"),
            *("KIP-889, same time (no JIRA)", "uncached count (no JIRA)"),
        ),
        Severity.WRONG,
    ),
    **dict.fromkeys(
        (
            *("KAFKA-19724", "KAFKA-19831", "KAFKA-20002", "KAFKA-20187", "KAFKA-20442", "KAFKA-20765"),
            *("KAFKA-20845", "KAFKA-20873", "KAFKA-20876"),
        ),
        Severity.STUCK,
    ),
    **dict.fromkeys(
        (
            *("KAFKA-15259", "KAFKA-19690", "KAFKA-19864", "KAFKA-19939", "KAFKA-19939, at the start (no JIRA)"),
            *("KAFKA-20428", "KAFKA-20861", "KAFKA-20985", "shared filter (no JIRA)"),
        ),
        Severity.LOUD,
    ),
}


def severity_of(issue: KnownIssue) -> Severity:
    """The severity of an issue: as its key says, or the worst of its anomalies."""
    if issue.key in OF_ISSUES:
        return OF_ISSUES[issue.key]
    found = [OF_ANOMALIES.get(anomaly, Severity.WRONG) for anomaly in issue.anomalies]
    return min(found, key=lambda severity: severity.rank, default=Severity.WRONG)
