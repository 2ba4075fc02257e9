"""A run for other people's tools: JUnit XML, Markdown, plain text for a mailing list, annotations of GitHub."""

import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onceproof.model.decoding import decode
from onceproof.model.files import TrialPlan, VerdictRow
from onceproof.model.json_file import check_target, encode, read_json, replacing
from onceproof.model.matrices import BROKER
from onceproof.model.plain import plain
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import Verdict
from onceproof.page.report import redaction_of
from onceproof.results.evidence.text import escape
from onceproof.results.qualified import distinct
from onceproof.results.table import describe_seen

FEW = 3  # versions of the harness that are listed
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0


@dataclass(frozen=True)
class RunReport:
    """A judged run, without what must not leave the machine."""

    run: str
    created: str
    matrix: str
    harness: str
    verdicts: Sequence[VerdictRow]
    commits: Mapping[str, str]  # by release of Kafka Streams that really ran
    not_looked_at: Mapping[str, Mapping[str, int]]  # promise -> reason -> trials


def report_of(run: RunFolder) -> RunReport:
    """The report on a judged run.

    Raises:
        HarnessError: the run is damaged.
    """
    verdicts = VerdictRow.read_all(run.verdicts_file)
    commits: dict[str, str] = {}
    harnesses: set[str] = set()
    not_looked_at: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for trial in run.trials():
        if outcome := run.outcome(trial):
            harnesses |= {outcome.harness} if outcome.harness else set()
            for versions in outcome.attested.values():
                release = str(versions.get("release", versions["streams_version"]))  # older outcomes have no release
                commits[release] = str(versions["streams_commit"] or "not in its jars")
        for promise, reason in TrialPlan.read(run.trial(trial).trial_file).not_looked_at.items():
            not_looked_at[promise][reason] += 1
    request = read_json(run.run_file)
    redaction = redaction_of(run, verdicts, run.trials())
    return RunReport(
        run.run_id,
        request["created"],
        str(redaction.data(request["matrix"])),
        _versions(harnesses),
        decode(tuple[VerdictRow, ...], redaction.data(encode(verdicts))),
        dict(sorted(commits.items())),
        redaction.data({promise: dict(reasons) for promise, reasons in sorted(not_looked_at.items())}),
    )


def _versions(harnesses: Collection[str]) -> str:
    """The versions of the harness that drove a run's trials: each scenario has its own."""
    versions = sorted(harnesses)
    return (
        ", ".join(versions)
        if len(versions) <= FEW
        else f"{versions[0]} and {len(versions) - 1} versions for other scenarios"
    )


def write_junit(report: RunReport, target: Path) -> None:
    """Write a test suite with a test case for each cell.

    A regression is a failure; `known` is skipped with its issue; inconclusive and failed cells are errors.

    Raises:
        UsageError: the target is a folder.
        HarnessError: it cannot be written.
    """
    kinds = {
        Verdict.REGRESSION: "failure",
        Verdict.KNOWN: "skipped",
        Verdict.INCONCLUSIVE: "error",
        Verdict.ERROR: "error",
    }
    suite = ET.Element("testsuite", name=f"onceproof {report.run}", timestamp=report.created[:19])
    for verdict in report.verdicts:
        seconds = (verdict.seconds or 0) * verdict.trials
        case = ET.SubElement(
            suite, "testcase", classname=f"onceproof.{verdict.scenario}", name=_name(verdict), time=f"{seconds:.1f}"
        )
        if kind := kinds.get(verdict.verdict):
            found = ET.SubElement(case, kind, message=describe_seen(verdict), type=verdict.verdict)
            found.text = "\n".join([verdict.sentence, *verdict.errors.values()])
        output = ET.SubElement(case, "system-out")
        output.text = _details(verdict)
    suite.set("tests", str(len(report.verdicts)))
    suite.set("time", f"{sum(float(case.get('time', 0)) for case in suite):.1f}")
    for attribute, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{kind}"))))
    suites = ET.Element("testsuites")
    suites.append(suite)
    for element in suites.iter():
        element.text = element.text and _legal(element.text)
        element.attrib.update({name: _legal(value) for name, value in element.items()})
    ET.indent(suites)
    write_text(target, ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n")


def write_summary(report: RunReport, target: Path) -> None:
    """Write Markdown for a pull request or the summary of a job.

    Raises:
        UsageError: the target is a folder.
        HarnessError: it cannot be written.
    """
    write_text(target, "\n".join(_summary(report)) + "\n")


def _summary(report: RunReport) -> Iterator[str]:
    yield f"## Onceproof: {_counts(report)}"
    yield f"\nRun {report.run}, {report.created[:16].replace('T', ' ')} UTC, matrix {escape(report.matrix)}.\n"
    yield "| | Kafka Streams | scenario, variant | red/counted | what was seen |\n|---|---|---|---|---|"
    for verdict in report.verdicts:
        sign = verdict.verdict.sign
        yield (
            f"| {sign} {verdict.verdict} | {escape(_releases(verdict))} | {escape(_story(verdict))} "
            f"| {verdict.red}/{verdict.counted} | {escape(describe_seen(verdict))} |"
        )
    yield "\n**Commits.** " + escape(_commits(report))
    if controls := list(_controls(report)):
        yield "\n<details><summary>What each green is worth</summary>\n"
        yield from (f"- {escape(line)}" for line in controls)
        yield "\n</details>"
    if doubts := distinct(verdict.unqualified for verdict in report.verdicts):
        yield "\n**Not qualified.** " + escape(" ".join(doubts))
    yield "\n**Not checked.** " + escape("; ".join(_missing(report)) or "Nothing was left out.")


def vote(report: RunReport) -> str:
    """The run as plain text, for a mailing list."""
    lines = [f"Onceproof: {_counts(report)}", f"Run {report.run}, matrix {report.matrix}, harness {report.harness}", ""]
    lines += [f"  {v.verdict.sign:2} {v.verdict:12} {_name(v)}: {describe_seen(v)}" for v in report.verdicts]
    lines += ["", "Commits", f"  {_commits(report)}"]
    lines += ["", "What each green is worth", *(f"  {line}" for line in _controls(report))]
    lines += ["", "Not checked", *(f"  {line}" for line in _missing(report) or ["Nothing was left out."])]
    return plain("\n".join(lines))


def annotations(report: RunReport) -> Iterator[str]:
    """Commands by which GitHub Actions shows what a person must look at, one a line."""
    levels = {Verdict.REGRESSION: "error", Verdict.ERROR: "warning", Verdict.INCONCLUSIVE: "warning"}
    for verdict in report.verdicts:
        if level := levels.get(verdict.verdict):
            title = _command(f"{verdict.verdict}: {_name(verdict)}", ":,")
            yield f"::{level} title={title}::{_command(verdict.sentence)}"


def _command(text: str, more: str = "") -> str:
    """A text as GitHub's commands expect it: what would end it is escaped."""
    text = plain(text)
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _counts(report: RunReport) -> str:
    verdicts = [verdict.verdict for verdict in report.verdicts]
    return ", ".join(f"{verdicts.count(v)} {v}" for v in Verdict if v in verdicts) or "no cells"


def _name(verdict: VerdictRow) -> str:
    return f"{_releases(verdict)} {_story(verdict)}"


def _story(verdict: VerdictRow) -> str:
    broker = "" if verdict.broker == BROKER else f" (broker {verdict.broker})"
    return f"{verdict.scenario} {verdict.variant}{broker}"


def _releases(verdict: VerdictRow) -> str:
    return verdict.as_cell.releases


def _details(verdict: VerdictRow) -> str:
    seeds = ", ".join(map(str, verdict.seeds))
    red = f"{verdict.red} of {verdict.counted} exercised trials are red."
    word = f"{verdict.verdict}: {verdict.verdict.meaning}."
    return f"{word} {red} {verdict.arithmetic}\nSeeds: {seeds}"


def _commits(report: RunReport) -> str:
    return ", ".join(f"{release}: {commit}" for release, commit in report.commits.items()) or "none came up"


def _controls(report: RunReport) -> Iterator[str]:
    return (f"{_name(v)}: {v.arithmetic}" for v in report.verdicts if v.arithmetic)


def _missing(report: RunReport) -> list[str]:
    return [
        f"{promise} ({trials} trials): {reason}"
        for promise, reasons in report.not_looked_at.items()
        for reason, trials in reasons.items()
    ]


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", plain(text))


def write_text(target: Path, text: str) -> None:
    """Write a file that a user asked for.

    Raises:
        UsageError: the target is a folder.
        HarnessError: it cannot be written.
    """
    check_target(target)
    with replacing(target, named=True) as draft:
        draft.write_text(text, encoding="utf-8")
