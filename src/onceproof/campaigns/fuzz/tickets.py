"""The releases that have a finding, and a ticket in its folder, for those who fix it."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from onceproof.campaigns.bisection.boundaries import COLUMNS, Bisected, Bisection, Probe, lines_of, row
from onceproof.campaigns.fuzz.fuzzing import CaseBench, Fuzzed, FuzzFinding
from onceproof.campaigns.fuzz.grammar import Case
from onceproof.campaigns.fuzz.printing import NAME
from onceproof.campaigns.fuzz.relational import judge
from onceproof.model.json_file import replacing
from onceproof.model.release import Release

RED, GREEN, LACKS = "red", "green", "lacks"
BOUNDARIES = COLUMNS[:-1]  # no chance takes part, so that no good release is a bad one that was missed
TRIALS = 10_000  # of a bisection at most; a case gives the same each time, so that a release runs it once
DIFFERS = "differs"


def try_releases(
    state: Fuzzed,
    releases: Iterable[Release],
    opened: Callable[[Release], AbstractContextManager[CaseBench]],
    report: Callable[[str], object] = print,
) -> Fuzzed:
    """Bisect each finding over releases, and write a ticket into its folder.

    The ends of each line of releases run it, and of those in between as many as it takes to find where it begins and
    ends (`bisection.boundaries`). One that only differs from another release is left out, as the
    model finds nothing in it.

    Args:
        state: what was found.
        releases: that are searched.
        opened: opens a release, once for all findings.
        report: takes a sentence for each release.

    Raises:
        UsageError: a release is not published.
        HarnessError: a JVM could not be run, or a disk is full.
    """
    judged = [one for one in state.findings if DIFFERS not in {difference.kind for difference in one.differences}]
    cases = {one.number: Case.decode(json.loads(Path(one.folder, "case.json").read_text())) for one in judged}
    shown: dict[Release, dict[int, str]] = {}

    def show_kinds(release: Release) -> dict[int, str]:
        if release not in shown:
            report(f"running {len(cases)} findings on {release}")
            with opened(release) as bench:
                shown[release] = {
                    one.number: _show_kind(bench, cases[one.number], release, _kinds(one)) for one in judged
                }
        return shown[release]

    lines = lines_of(releases)
    bisected = {number: _bisect(lines, show_kinds, number) for number in cases}
    done: dict[int, FuzzFinding] = {}
    for finding in judged:
        seen = {str(release): of[finding.number] for release, of in sorted(shown.items())}
        done[finding.number] = replace(finding, releases=seen, bisected=bisected[finding.number].summary)
    for number, finding in done.items():
        like = [other for other in done.values() if _is_alike(finding, other) and other.number != number]
        with replacing(Path(finding.folder, "ticket.md")) as draft:
            text = _ticket(finding, cases[number], bisected[number], like, state.streams)
            draft.write_text(text, encoding="utf-8")
    return replace(state, findings=tuple(done.get(finding.number, finding) for finding in state.findings))


def _kinds(finding: FuzzFinding) -> set[str]:
    return {difference.kind for difference in finding.differences}


def _bisect(
    lines: Mapping[str, Sequence[Release]], shown_by: Callable[[Release], Mapping[int, str]], number: int
) -> Bisected:
    """The releases where a finding begins and ends to be red."""

    def probe(release: Release) -> Probe:
        seen = shown_by(release)[number]
        return Probe(seen == RED, seen == GREEN, "The release cannot run the case." if seen == LACKS else "")

    search = Bisection(lines, probe, budget=TRIALS)
    search.run()
    return search.result


def _show_kind(bench: CaseBench, case: Case, release: Release, kinds: set[str]) -> str:
    """Whether a release shows one of the kinds."""
    if not release.since(case.since):
        return LACKS
    answer: Mapping[str, Any] = bench.run(case.encoded)
    if "failed" in answer:
        return RED if "failed" in kinds else LACKS
    return GREEN if kinds.isdisjoint(judge(case, answer["outputs"], release).kinds) else RED


def _is_alike(one: FuzzFinding, other: FuzzFinding) -> bool:
    """Whether two may be one bug: they show the same on the same releases."""
    return one.releases == other.releases and _kinds(one) == _kinds(other)


def _ticket(finding: FuzzFinding, case: Case, bisected: Bisected, like: Sequence[FuzzFinding], streams: str) -> str:
    differences = "\n".join(f"- `{one.topic}`, {one.kind}: {one.shown}" for one in finding.differences)
    nearest = finding.nearest
    lines = [
        f"# {finding.title}",
        "",
        "- **Project**: Kafka. **Component**: streams. **Type**: Bug.",
        *(f"- **{label}**: {', '.join(_of(finding, shown)) or 'none'}." for label, shown in _LABELS.items()),
        "",
        bisected.summary,
        "",
        f"| {' | '.join(name.replace('_', ' ') for name in BOUNDARIES)} |",
        f"| {' | '.join('--' for _ in BOUNDARIES)} |",
        *(f"| {' | '.join(row(boundary)[: len(BOUNDARIES)])} |" for boundary in bisected.boundaries),
        "",
        "## Steps to reproduce",
        "",
        "```",
        str(case),
        "```",
        "",
        f"`{NAME}.java` next to this ticket asserts it.",
        "",
        "## Observed, and not what the operations mean",
        "",
        differences,
        "",
        *([] if nearest is None else ["## Branches that differ", "", *nearest.lines(streams), ""]),
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


def _of(finding: FuzzFinding, shown: str) -> list[str]:
    return [release for release, one in (finding.releases or {}).items() if one == shown]
