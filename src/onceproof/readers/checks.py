"""Which promises are looked at in which topology of the application, without Spark."""

from collections.abc import Callable

from onceproof.model.anomaly import Findings, witnesses_of
from onceproof.model.record import Facts, Topics
from onceproof.readers import enumerator
from onceproof.readers.answers import compare_answers, compare_published
from onceproof.readers.comparisons import findings_of
from onceproof.readers.deliveries import compare_deliveries
from onceproof.readers.reads import compare_reads
from onceproof.readers.state import compare_state
from onceproof.readers.transactions import compare_transactions


def check_enumerator(topics: Topics, facts: Facts) -> Findings:
    """The topology `enumerator`: its own check, and its two stores if its process was killed.

    Args:
        topics: `input`, `output`, `counter-changelog`, `ids-changelog`, each partition in offset order; and, after a
            kill, `counter-contents` and `ids-contents`.
        facts: `partitions`; after a kill `counter_end` and `ids_end`.
    """
    findings = enumerator.check(topics, facts)
    for store in ("counter", "ids"):
        if f"{store}_end" in facts:
            findings.witnesses += witnesses_of(compare_state(store, topics, facts))
    return findings


def check_counting(topics: Topics, facts: Facts) -> Findings:
    """The topology `counting`.

    Args:
        topics: `input` (value: the number), `output` (value: the number, and in its lower half what was found).
        facts: `exactly_once`.
    """
    inputs, outputs = topics["input"], topics["output"]
    comparisons = [
        *compare_reads(inputs, outputs, bool(facts["exactly_once"])),
        *compare_deliveries(inputs, outputs, at_least=not facts["exactly_once"]),
    ]
    return findings_of(inputs, outputs, comparisons)


def check_dedup(topics: Topics, facts: Facts) -> Findings:
    """The topology `dedup`: each key comes out once.

    Args:
        topics: `input`, `output`, `seen-changelog`, and `seen-contents`: what the store held after the restart.
        facts: `exactly_once`; `seen_end`, the end of the changelog when the process was killed.
    """
    inputs, outputs = topics["input"], topics["output"]
    comparisons = [
        *compare_deliveries(inputs, outputs, once=True, at_least=not facts["exactly_once"]),
        *compare_state("seen", topics, facts),
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
    return findings_of(inputs, outputs, comparisons)


CHECKS: dict[str, Callable[[Topics, Facts], Findings]] = {
    "enumerator": check_enumerator,
    "counting": check_counting,
    "dedup": check_dedup,
    "deleter": check_deleter,
    "values": check_values,
}
