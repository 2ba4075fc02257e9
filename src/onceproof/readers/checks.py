"""Which promises are checked in which topology of the application, without Spark."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain

from onceproof.model.anomaly import Comparison, Findings
from onceproof.model.record import Facts, Record, Topics
from onceproof.readers import enumerator
from onceproof.readers.answers import DELETE, FALSE, TRUE, compare_answers, compare_published
from onceproof.readers.comparisons import as_number, findings_of
from onceproof.readers.contents import (
    LogCheck,
    compare_contents,
    first_of_key,
    leave_unjudged,
    put_or_delete,
    select_skipped,
    select_taken,
    version,
)
from onceproof.readers.deliveries import compare_deliveries
from onceproof.readers.groups import sums_of_groups
from onceproof.readers.joins import as_of, by_foreign_key, by_key, changes_of, with_entries
from onceproof.readers.matches import compare_matches
from onceproof.readers.punctuations import BUFFER, compare_punctuations
from onceproof.readers.queries import compare_queries
from onceproof.readers.reads import compare_reads
from onceproof.readers.scans import compare_scans
from onceproof.readers.state import compare_state
from onceproof.readers.time_order import compare_time_order
from onceproof.readers.transactions import compare_transactions
from onceproof.readers.windows import compare_windows

DEAD_LETTERS = "dead-letters"  # a topology, a role and a promise


def _contents(logs: Sequence[LogCheck], topics: Topics, facts: Facts) -> Iterator[Comparison]:
    exactly_once = bool(facts.get("exactly_once", 1))
    return chain.from_iterable(compare_contents(log, topics, exactly_once=exactly_once) for log in logs)


def _is_cached(facts: Facts) -> bool:
    return bool(facts.get("cached", 1))


def check_enumerator(topics: Topics, facts: Facts) -> Findings:
    """The topology `enumerator`: its own check, and its two stores if its process was killed.

    Args:
        topics: `input`, `output`, `counter-changelog`, `ids-changelog`, each partition in offset order; and, after a
            kill, `counter-contents` and `ids-contents`.
        facts: `partitions`; after a kill `counter_end` and `ids_end`.
    """
    findings = enumerator.check(topics, facts)
    for store in ("counter", "ids"):
        findings.add(list(compare_state(store, topics, facts)))
    logs = [  # IDs are judged by `identities`, what the stores lack by `counters`
        LogCheck("output-order", "output", expected=leave_unjudged, observed=leave_unjudged, counted=True),
        LogCheck(
            "changelog",
            "ids-changelog",
            first_of_key,
            leave_unjudged,
            leave_unjudged,
            folded=_is_cached(facts),
            counted=True,
        ),
    ]
    if not _is_cached(facts):
        logs.append(
            LogCheck(
                "changelog", "counter-changelog", first_of_key, leave_unjudged, leave_unjudged, key=0, counted=True
            )
        )
    findings.add(list(_contents(logs, topics, facts)))
    return findings


def check_counting(topics: Topics, facts: Facts) -> Findings:
    """The topology `counting`.

    Args:
        topics: `input` (value: the number), `output` (value: the number, and in its lower half what was found),
            `last-changelog`.
        facts: `exactly_once`, `cached`.
    """
    inputs, outputs = topics["input"], topics["output"]
    comparisons = [
        *compare_reads(inputs, outputs, bool(facts["exactly_once"])),
        *compare_deliveries(inputs, outputs, at_least=not facts["exactly_once"]),
        *_contents(
            [  # what was found is judged by `reads`
                LogCheck("output-order", "output", observed=lambda pair: as_number(pair) >> 32, counted=True),
                LogCheck(
                    "changelog",
                    "last-changelog",
                    folded=_is_cached(facts),
                    beside="output",
                    history=True,
                ),
            ],
            topics,
            facts,
        ),
    ]
    return findings_of(inputs, outputs, comparisons)


def check_interactive_queries(topics: Topics, facts: Facts) -> Findings:
    """The topology `interactive-queries`: as `counting`, and each answer holds what it must.

    Args:
        topics: those of `counting`, and `answers`.
        facts: `exactly_once`, `cached`.
    """
    findings = check_counting(topics, facts)
    findings.add(list(compare_queries(topics, facts)))
    return findings


def check_copy(topics: Topics, facts: Facts) -> Findings:
    """The topology `copy`: each record is emitted as it is.

    Args:
        topics: `input`, `output`.
        facts: `exactly_once`.
    """
    inputs, outputs = topics["input"], topics["output"]
    comparisons = [
        *compare_deliveries(inputs, outputs, at_least=not facts["exactly_once"]),
        *_contents([LogCheck("output-order", "output", counted=True)], topics, facts),
    ]
    return findings_of(inputs, outputs, comparisons)


def check_dead_letters(topics: Topics, facts: Facts) -> Findings:
    """The topology `dead-letters`: each record is emitted as it is, or is skipped, into a dead letter queue if there is
    one.

    Args:
        topics: `input` (poison has a value below 0), `output`, `dead-letters`.
        facts: `exactly_once`; `queue` is 1 if there is a dead letter queue.
    """
    logs = [LogCheck("skipping", "output", select_taken)]
    if facts.get("queue"):
        logs.append(LogCheck(DEAD_LETTERS, DEAD_LETTERS, select_skipped, handled=True))
    return findings_of(topics["input"], topics["output"], _contents(logs, topics, facts))


def check_dedup(topics: Topics, facts: Facts) -> Findings:
    """The topology `dedup`: each key is emitted once.

    Args:
        topics: `input`, `output`, `seen-changelog`, and `seen-contents`: what the store held after the restart.
        facts: `exactly_once`; `seen_end`, the end of the changelog when the process was killed.
    """
    inputs, outputs = topics["input"], topics["output"]
    comparisons = [
        *compare_deliveries(inputs, outputs, once=True, at_least=not facts["exactly_once"]),
        *(compare_state("seen", topics, facts) if "seen_end" in facts else ()),
        *_contents(
            [
                LogCheck("output-order", "output", first_of_key, counted=True),
                LogCheck(
                    "changelog",
                    "seen-changelog",
                    first_of_key,
                    folded=_is_cached(facts),
                    beside="output",
                    punctuated=bool(facts.get("punctuated")),
                    history=True,
                ),
            ],
            topics,
            facts,
        ),
    ]
    return findings_of(inputs, outputs, comparisons)


def check_values(topics: Topics, facts: Facts) -> Findings:
    """The topology `values`.

    Args:
        topics: `input`, `values-changelog` as committed, and `values-changelog-all` with what was aborted.
        facts: `exactly_once`.
    """
    role = "values-changelog"
    inputs, changelog = topics["input"], topics[role]
    comparisons = [
        *compare_deliveries(inputs, changelog, role=role, at_least=not facts["exactly_once"]),
        *compare_transactions(role, changelog, topics[f"{role}-all"]),
        *_contents([LogCheck("changelog", role, folded=_is_cached(facts), counted=True, history=True)], topics, facts),
    ]
    return findings_of(inputs, changelog, comparisons)


def check_deleter(topics: Topics, facts: Facts) -> Findings:
    """The topology `deleter`.

    Args:
        topics: `input` (1 put, 0 delete), `output` (1 true, 0 false), `records-changelog`.
        facts: `changelog_end` and `output_end`, where both topics ended when the process was killed; `downstream` is 1
            if the deletion comes after the answer by design, so that they are not compared.
    """
    inputs, outputs = topics["input"], topics["output"]
    comparisons = list(compare_answers(inputs, outputs))
    if not facts["downstream"] and "output_end" in facts:  # else the drive failed before the kill
        comparisons += compare_published(inputs, outputs, topics["records-changelog"], facts)
    logs = [
        LogCheck("output-order", "output", _deletes, lambda _: TRUE, _read_answer, counted=True),
        _puts_and_deletes(folded=_is_cached(facts) or bool(facts["downstream"])),
    ]
    return findings_of(inputs, outputs, [*comparisons, *_contents(logs, topics, facts)])


def _puts_and_deletes(*, folded: bool) -> LogCheck:
    """The changelog of a store into which the input puts, and from which it deletes."""
    return LogCheck("changelog", "records-changelog", expected=put_or_delete, folded=folded, history=True)


def _deletes(inputs: Sequence[Record]) -> Iterator[Record]:
    return (record for record in inputs if record[3] == DELETE)


def _read_answer(value: int | None) -> int | None:
    """`answers` judges whether an answer is right; one other than true and false is wrong."""
    return TRUE if value in (TRUE, FALSE) else value


def check_global_join(topics: Topics, facts: Facts) -> Findings:
    """The topology `global-join`: each record is emitted, with the entry that it asks for.

    Args:
        topics: `input`, `output`.
        facts: `exactly_once`; `added` to the entries by a global store's processor.
    """
    inputs, outputs = topics["input"], topics["output"]
    replay = partial(with_entries, added=facts.get("added", 0))
    comparisons = [
        *compare_deliveries(inputs, outputs, at_least=not facts["exactly_once"]),
        *_contents([LogCheck("output-order", "output", replay, counted=True)], topics, facts),
    ]
    return findings_of(inputs, outputs, comparisons)


def check_as_of_join(topics: Topics, facts: Facts) -> Findings:
    """The topology `as-of-join`: each record is emitted, with the version of its key at its time.

    Args:
        topics: `input`, `output`, `versions-changelog`.
        facts: `exactly_once`; `retention` of the table's history in ms, 0 if it has no versions.
    """
    inputs, outputs = topics["input"], topics["output"]
    logs = [
        LogCheck("output-order", "output", partial(as_of, retention=facts.get("retention", 0)), counted=True),
        LogCheck("changelog", "versions-changelog", changes_of, expected=version),
    ]
    comparisons = [
        *compare_deliveries(inputs, outputs, at_least=not facts["exactly_once"]),
        *_contents(logs, topics, facts),
    ]
    return findings_of(inputs, outputs, comparisons)


def check_grouped_table(topics: Topics, facts: Facts) -> Findings:
    """The topology `grouped-table`: its results make the table of the sums of the groups.

    Args:
        topics: `input`, `output`.
        facts: `exactly_once`.
    """
    sums = LogCheck("grouped", "output", sums_of_groups, folded=True)
    return findings_of(topics["input"], topics["output"], _contents([sums], topics, facts))


def check_scans(topics: Topics, facts: Facts) -> Findings:
    """The topology `scans`.

    Args:
        topics: `input` (1 put, 0 delete and scan), `output` (what the scan found), `records-changelog`.
        facts: `exactly_once`, `cached`; `reach` and `all_every`, which say what is scanned.
    """
    inputs, outputs = topics["input"], topics["output"]
    logs = [  # what was found is judged by `scans`
        LogCheck("output-order", "output", _deletes, leave_unjudged, leave_unjudged, counted=True),
        _puts_and_deletes(folded=_is_cached(facts)),
    ]
    return findings_of(inputs, outputs, [*compare_scans(inputs, outputs, facts), *_contents(logs, topics, facts)])


def check_foreign_key_join(topics: Topics, facts: Facts) -> Findings:
    """The topology `foreign-key-join`: its results make the table of the join; 0 stands for none.

    Args:
        topics: `input`, `output`.
        facts: `exactly_once`; `join`, 0 inner, 1 left.
    """
    replay = partial(by_foreign_key, outer=bool(facts.get("join")))
    results = LogCheck("joined", "output", replay, observed=lambda result: result or None, folded=True)
    return findings_of(topics["input"], topics["output"], _contents([results], topics, facts))


def check_table_join(topics: Topics, facts: Facts) -> Findings:
    """The topology `table-join`: its results make the table of the join, and that of the last sums; 0 is none.

    Args:
        topics: `input`, `output`.
        facts: `exactly_once`; `join`, 0 inner, 1 left, 2 outer.
    """
    replay = partial(by_key, join=facts.get("join", 0))
    results = LogCheck("joined", "output", replay, _there, _there, folded=True)
    return findings_of(topics["input"], topics["output"], _contents([results], topics, facts))


def _there(result: int | None) -> int | None:
    return result or None


def check_stream_join(topics: Topics, facts: Facts) -> Findings:
    """The topology `stream-join`: each record is emitted with its matches, or alone.

    Args:
        topics: `input`, `output`.
        facts: `exactly_once`; `window`, `grace`, `join`, which say what matches, and what is emitted alone.
    """
    inputs, outputs = topics["input"], topics["output"]
    # If the drive failed at once, nothing is known about the join.
    return findings_of(inputs, outputs, compare_matches(inputs, outputs, facts) if "join" in facts else ())


def check_outbox(topics: Topics, facts: Facts) -> Findings:
    """The topology `outbox`: each record is emitted once, in order, and when it is due.

    Args:
        topics: `input`, `output` (value: the input's, and in its lower half how long it waited), `buffer-changelog`.
        facts: `exactly_once`; `clock`, `interval`, which say when records are due.
    """
    inputs, outputs = topics["input"], topics["output"]
    logs = [  # which records are emitted is judged by `punctuations`
        LogCheck("output-order", "output", observed=lambda pair: as_number(pair) >> 32, counted=True),
        LogCheck("changelog", BUFFER, puts=True),
    ]
    # If the drive failed at once, nothing is known about the punctuations.
    punctuated = compare_punctuations(inputs, outputs, topics[BUFFER], facts) if "clock" in facts else ()
    return findings_of(inputs, outputs, [*punctuated, *_contents(logs, topics, facts)])


def check_windows(topics: Topics, facts: Facts) -> Findings:
    """The topology `windows`: each window is emitted with what its records give.

    Args:
        topics: `input`, `output`.
        facts: `kind`, `size`, `grace`, `suppressed`, which say what windows there are, and when they are emitted.
    """
    inputs, outputs = topics["input"], topics["output"]
    # If the drive failed at once, nothing is known about the windows.
    return findings_of(inputs, outputs, compare_windows(inputs, outputs, facts) if "kind" in facts else ())


def check_two_topics(topics: Topics, facts: Facts) -> Findings:
    """The topology `two-topics`: each record of the stream finds the entry of its time.

    Args:
        topics: `input`, `entries`, `output`.
        facts: `exactly_once`.
    """
    inputs, outputs = topics["input"], topics["output"]
    return findings_of(inputs, outputs, compare_time_order(inputs, topics["entries"], outputs, facts))


CHECKS: dict[str, Callable[[Topics, Facts], Findings]] = {
    "as-of-join": check_as_of_join,
    "copy": check_copy,
    "enumerator": check_enumerator,
    "counting": check_counting,
    DEAD_LETTERS: check_dead_letters,
    "dedup": check_dedup,
    "deleter": check_deleter,
    "foreign-key-join": check_foreign_key_join,
    "global-join": check_global_join,
    "grouped-table": check_grouped_table,
    "interactive-queries": check_interactive_queries,
    "outbox": check_outbox,
    "scans": check_scans,
    "stream-join": check_stream_join,
    "table-join": check_table_join,
    "two-topics": check_two_topics,
    "values": check_values,
    "windows": check_windows,
}
