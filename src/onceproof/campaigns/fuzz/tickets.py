"""The releases that have a finding, and a ticket in its folder, for those who mend it."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from onceproof.campaigns.fuzz.fuzzing import Bench, Finding, Fuzzed
from onceproof.campaigns.fuzz.grammar import Case
from onceproof.campaigns.fuzz.printing import NAME
from onceproof.campaigns.fuzz.relational import judge
from onceproof.model.json_file import replacing
from onceproof.model.release import Release

RED, GREEN, LACKS = "red", "green", "lacks"
DIFFERS = "differs"


def tried(
    state: Fuzzed,
    releases: Iterable[Release],
    opened: Callable[[Release], AbstractContextManager[Bench]],
    report: Callable[[str], object] = print,
) -> Fuzzed:
    """Run the case of each finding on releases, and write a ticket into its folder.

    One that only differs from another release is left out, as the model finds nothing in it.

    Args:
        state: what was found.
        releases: on which each case is run.
        opened: opens a release, once for all findings.
        report: takes a sentence for each release.

    Raises:
        UsageError: a release is not published.
        HarnessError: a JVM could not be run, or a disk is full.
    """
    judged = [one for one in state.findings if DIFFERS not in {difference.kind for difference in one.differences}]
    cases = {one.number: Case.decoded(json.loads(Path(one.folder, "case.json").read_text())) for one in judged}
    shown: dict[int, dict[str, str]] = {number: {} for number in cases}
    for release in sorted(releases):
        report(f"running {len(cases)} findings on {release}")
        with opened(release) as bench:
            for finding in judged:
                kinds = {difference.kind for difference in finding.differences}
                shown[finding.number][str(release)] = _shown(bench, cases[finding.number], release, kinds)
    done = {finding.number: replace(finding, releases=shown[finding.number]) for finding in judged}
    for finding in done.values():
        like = [other for other in done.values() if _is_alike(finding, other) and other.number != finding.number]
        with replacing(Path(finding.folder, "ticket.md")) as draft:
            draft.write_text(_ticket(finding, cases[finding.number], like), encoding="utf-8")
    return replace(state, findings=tuple(done.get(finding.number, finding) for finding in state.findings))


def _shown(bench: Bench, case: Case, release: Release, kinds: set[str]) -> str:
    """Whether a release shows one of the kinds."""
    if not release.since(case.since):
        return LACKS
    answer: Mapping[str, Any] = bench.run(case.encoded)
    if "failed" in answer:
        return RED if "failed" in kinds else LACKS
    return GREEN if kinds.isdisjoint(judge(case, answer["outputs"], release).kinds) else RED


def _is_alike(one: Finding, other: Finding) -> bool:
    """Whether two may be one bug: they show the same on the same releases."""
    return one.releases == other.releases and {d.kind for d in one.differences} == {d.kind for d in other.differences}


def _ticket(finding: Finding, case: Case, like: Sequence[Finding]) -> str:
    differences = "\n".join(f"- `{one.topic}`, {one.kind}: {one.shown}" for one in finding.differences)
    test = f"`{NAME}.java` beside this ticket asserts it." if case.partitions == 1 else "It takes two tasks."
    lines = [
        f"# {finding.title}",
        "",
        "- **Project**: Kafka. **Component**: streams. **Type**: Bug.",
        *(f"- **{label}**: {', '.join(_of(finding, shown)) or 'none'}." for label, shown in _LABELS.items()),
        "",
        "## Steps to reproduce",
        "",
        "```",
        str(case),
        "```",
        "",
        test,
        "",
        "## Observed, and not what the operations mean",
        "",
        differences,
        "",
        "## Findings that may have the same cause",
        "",
        *(f"- [{one.number}](../{one.number}/ticket.md): {one.title}" for one in like),
        *([] if like else ["None shows the same on the same releases."]),
        "",
        "## Not done",
        "",
        "It was run by TopologyTestDriver, and not on brokers: `onceproof app run app`. It is not known",
        "whether an issue reports it.",
        "",
    ]
    return "\n".join(lines)


_LABELS = {"Affects": RED, "Not affected": GREEN, "Cannot run it": LACKS}


def _of(finding: Finding, shown: str) -> list[str]:
    return [release for release, one in (finding.releases or {}).items() if one == shown]
