"""Fuzzing: draws cases, runs them, judges them, and shrinks and writes down what is red."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import ndiff
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from onceproof.campaigns.fuzz.grammar import Case, draw, nearby, smaller
from onceproof.campaigns.fuzz.known import Explained, IssueEffect, causes_in, explain
from onceproof.campaigns.fuzz.printing import NAME, unit_test, write_application
from onceproof.campaigns.fuzz.relational import Difference, JudgedCase, compare, judge
from onceproof.campaigns.shrinking.reductions import shrink
from onceproof.lab.coverage import BOTH, GREEN, RED, Branch
from onceproof.model.errors import ExitCode, HarnessError, UsageError
from onceproof.model.json_file import JsonFile, replacing
from onceproof.model.release import Release

SHRUNK = 3  # reds that are shrunk of each signature; further ones are counted
SHRINKING = 60.0  # seconds for a red, at most
SHRINKING_KNOWN = 15.0  # the same, for the first red of a known issue; further ones are counted
NEARBY = 200  # cases near a finding's that are run at most, to find the nearest one that is green
NAMED = 40  # branches by which the two differ that are named at most
REPORTED_EVERY = 5.0  # seconds between reports, after which the progress is written, too


class CaseBench(Protocol):
    """Where cases are run."""

    def run(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """`outputs` by topic and `turns` of its tasks, or `failed`, of an encoded case.

        Raises:
            HarnessError: there is no answer.
        """


class Compares(Protocol):
    """Compares the branches of Kafka Streams that cases take."""

    def __call__(self, red: Case, greens: Sequence[Case]) -> tuple[int, tuple[Branch, ...]] | None:
        """The place of the green case that takes the fewest other branches, and these; None if none takes another one.

        Raises:
            HarnessError: they could not be compared.
        """


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """The nearest case to a finding's that is green, as `lab.coverage` has it.

    Attributes:
        change: lines of the finding's case that it has not (`- `), and lines of its own (`+ `).
        branches: by which it differs.
        reason: why there is no such case; None if there is one.
    """

    change: tuple[str, ...] = ()
    branches: tuple[Branch, ...] = ()
    reason: str | None = None

    def lines(self, streams: str) -> list[str]:
        """For people, as Markdown."""
        if self.reason is not None:
            return [self.reason]
        more = len(self.branches) - NAMED
        return [
            "The nearest case that is green differs by",
            "",
            "```diff",
            *self.change,
            "```",
            "",
            f"| line of Kafka Streams {streams} | runs what the other case does not |",
            "| -- | -- |",
            *(f"| `{branch.at}` | {_BY[branch.by]} |" for branch in self.branches[:NAMED]),
            *([f"| and {more} more |  |"] if more > 0 else []),
        ]


_BY = {RED: "the red case", GREEN: "the green case", BOTH: "each of them"}


@dataclass(frozen=True, kw_only=True)
class FuzzFinding:
    """A smallest case that is red.

    Attributes:
        number: from 1 on.
        title: for people.
        case_number: of the case that was drawn, so that `draw` gives it again.
        cases: that had been run when it was found.
        after: seconds of fuzzing until then.
        reds: cases that looked like it, itself among them.
        differences: what it shows, `topic`, `kind` and `shown`.
        case: the smallest one, as text.
        folder: of `case.json`, the test, and the application.
        nearest: the nearest case that is green; None if it was not asked for.
        releases: on which its case was run: `red`, `green`, or `lacks` where it cannot be run; None if it was on none.
        bisected: the releases where it begins and ends, in a sentence; None if it was not bisected.
    """

    number: int
    title: str
    case_number: int
    cases: int
    after: float
    reds: int
    differences: tuple[Difference, ...]
    case: str
    folder: str
    nearest: Nearest | None = None
    releases: Mapping[str, str] | None = None
    bisected: str | None = None


@dataclass(frozen=True, kw_only=True)
class KnownCase:
    """A known issue that cases have shown.

    Attributes:
        issue: its key in the registry.
        case_number: of the first case that was drawn.
        cases: that had been run by then.
        after: seconds of fuzzing until then.
        reds: cases that it explains, alone or with other issues.
        case: the first one as text, shrunk for some seconds.
    """

    issue: str
    case_number: int
    cases: int
    after: float
    reds: int
    case: str


@dataclass(frozen=True, kw_only=True)
class Searched:
    """How much was searched of an operation or a setting.

    Attributes:
        cases: that had it and were run; one of several tasks is one schedule.
        judged: of these, those of which an output was judged.
        red: of these, those that were red, by a known issue or not.
    """

    cases: int = 0
    judged: int = 0
    red: int = 0


@dataclass(frozen=True, kw_only=True)
class Fuzzed(JsonFile):
    """`fuzzed.json`: what is fuzzed, and what it came to so far.

    Attributes:
        run: its name.
        streams: the release.
        against: that its outputs are compared with, too.
        seed: from which all cases follow.
        without: operations that are left out.
        uniform: whether each operation is drawn as often as others.
        harness: the version of what draws and judges.
        cases: that were run; the next one has this number.
        seconds: of fuzzing.
        red: cases that are red, those of known issues among them.
        searched: by operation and by setting (`Case.settings`) the cases that had it.
        left_out: outputs that nothing can be said of, by the reason.
        issues: known ones of the registry that explain reds.
        findings: each another smallest case, which no known issue explains.
        folder: of all that was written.
    """

    schema: int = 1
    run: str
    streams: str
    against: str | None
    seed: int
    without: tuple[str, ...] = ()
    uniform: bool = False
    harness: str
    cases: int = 0
    seconds: float = 0.0
    red: int = 0
    searched: Mapping[str, Searched] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    issues: tuple[KnownCase, ...] = ()
    findings: tuple[FuzzFinding, ...] = ()
    folder: str

    @property
    def exit_code(self) -> ExitCode:
        """1 if there is a finding; a search that ran no case is inconclusive, not green."""
        if not self.cases:
            return ExitCode.INCONCLUSIVE
        return ExitCode.ANOMALY if self.findings else ExitCode.OK


Signature = tuple[tuple[str, ...], tuple[str, ...]]  # kinds of differences and operations


@dataclass
class Fuzzer:
    """Fuzzes a release.

    Attributes:
        path: the folder that takes what is found.
        state: what the fuzzing came to so far.
        bench: of the release.
        other: of the release that it is compared with.
        compares: the branches of the release that cases take; None if a finding is not to have a nearest green case.
        report: takes a sentence now and then.
        clock: seconds.
    """

    path: Path
    state: Fuzzed
    bench: CaseBench
    other: CaseBench | None = None
    compares: Compares | None = None
    report: Callable[[str], object] = print
    clock: Callable[[], float] = time.monotonic
    _signatures: list[Signature] = field(default_factory=list)  # of the findings
    _shrunk: Counter[Signature] = field(default_factory=Counter)
    _left_out: Counter[str] = field(default_factory=Counter)
    _searched: dict[str, Searched] = field(default_factory=dict)
    _causes: tuple[IssueEffect, ...] = ()

    def __post_init__(self) -> None:
        """Take the causes that the release has."""
        self._causes = causes_in(Release.parse(self.state.streams))

    def fuzz(self, seconds: float) -> Fuzzed:
        """Run cases for so many seconds, from where the fuzzing stands; at least one.

        Raises:
            HarnessError: a case got no answer, or the disk is full.
        """
        self._left_out.update(self.state.left_out)
        self._searched.update(self.state.searched)
        for finding in self.state.findings:
            self._remember(Case.decode(json.loads(Path(finding.folder, "case.json").read_text())), finding.differences)
        begin, before, reported = self.clock(), self.state.seconds, self.clock()
        while True:
            number = self.state.cases
            release = Release.parse(self.state.streams)
            case = draw(self.state.seed, number, release, self.state.without, uniform=self.state.uniform)
            judged = self._judge(case)
            self._left_out.update(judged.left_out.values())
            self._enter(case, judged)
            self.state = replace(self.state, cases=number + 1, seconds=round(before + self.clock() - begin, 1))
            if judged.differences:
                self._take(number, case, judged)
            now = self.clock()
            if now - reported > REPORTED_EVERY:
                reported = now
                self._write()
                counts = f"{len(self.state.issues)} known issues, {len(self.state.findings)} findings"
                self.report(f"{self.state.cases:,} cases, {self.state.red:,} red, {counts}")
            if now - begin >= seconds:
                self.state = replace(self.state, seconds=round(before + now - begin, 1))
                self._write()
                return self.state

    def _enter(self, case: Case, judged: JudgedCase) -> None:
        """Count a case under all that it has."""
        is_judged = len(judged.left_out) < len(case.leaves)
        for name in (*case.operations, *case.settings):
            had = self._searched.get(name, Searched())
            self._searched[name] = Searched(
                cases=had.cases + 1, judged=had.judged + is_judged, red=had.red + bool(judged.differences)
            )

    def _judge(self, case: Case) -> JudgedCase:
        """The judgement of a case."""
        release = Release.parse(self.state.streams)
        answer = self.bench.run(case.encoded)
        if "failed" in answer:
            return JudgedCase((Difference(case.leaves[0].name, "failed", answer["failed"]),))
        judged = judge(case, answer["outputs"], release)
        if self.other is None or judged.differences:
            return judged
        other = self.other.run(case.encoded)
        if "failed" in other:
            return replace(judged, differences=(Difference(case.leaves[0].name, "differs", other["failed"]),))
        return replace(judged, differences=compare(case, answer["outputs"], other["outputs"]))

    def _take(self, number: int, case: Case, judged: JudgedCase) -> None:
        """Count a red, and follow whatever known issues do not explain."""
        self.state = replace(self.state, red=self.state.red + 1)
        known = self._explain(case, judged)
        for key in known.keys:
            self._note(key, number, case)
        if known.judged.differences:
            self._follow(number, known.case, known.judged)

    def _explain(self, case: Case, judged: JudgedCase) -> Explained:
        return explain(case, judged, self._causes, self._judge)

    def _note(self, key: str, number: int, case: Case) -> None:
        """Count a red of a known issue; the first one is shrunk."""
        known = {one.issue: one for one in self.state.issues}
        if key in known:
            known[key] = replace(known[key], reds=known[key].reds + 1)
        else:
            self.report(f"case {number} is red by {key}, which is known: shrinking")
            until = self.clock() + SHRINKING_KNOWN

            def is_its(smaller_one: Case) -> bool:
                return bool(smaller_one.records) and key in self._explain(smaller_one, self._judge(smaller_one)).keys

            smallest = shrink(case, is_its, lambda: self.clock() < until, smaller)
            known[key] = KnownCase(
                issue=key,
                case_number=number,
                cases=self.state.cases,
                after=self.state.seconds,
                reds=1,
                case=str(smallest),
            )
        self.state = replace(self.state, issues=tuple(known.values()))

    def _follow(self, number: int, case: Case, judged: JudgedCase) -> None:
        """Shrink a red, unless enough like it were."""
        signature = (judged.kinds, case.operations)
        like = next((place for place, one in enumerate(self._signatures) if _covers(signature, one)), None)
        known = signature if like is None else self._signatures[like]
        if self._shrunk[known] >= SHRUNK:
            if like is not None:
                self._count(like)
            return
        self.report(f"case {number} is red ({', '.join(judged.kinds)}): shrinking")
        until = self.clock() + SHRINKING
        wanted = set(judged.kinds)

        def is_red(smaller_one: Case) -> bool:
            if not smaller_one.records or wanted.isdisjoint((judged := self._judge(smaller_one)).kinds):
                return False
            return not wanted.isdisjoint(self._explain(smaller_one, judged).judged.kinds)

        smallest = shrink(case, is_red, lambda: self.clock() < until, smaller)
        shown = self._judge(smallest)
        if not shown.differences:  # a result that differs from time to time
            shown = judged
            smallest = case
        self._add(number, smallest, shown)

    def _add(self, number: int, case: Case, shown: JudgedCase) -> None:
        signature = (shown.kinds, case.operations)
        self._shrunk[signature] += 1
        text = str(case)
        for place, finding in enumerate(self.state.findings):
            if finding.case == text:
                self._count(place)
                return
        finding_number = len(self.state.findings) + 1
        folder = self.path / "findings" / str(finding_number)
        topic = shown.differences[0].topic
        origin = f"{self.state.streams}: `onceproof fuzz --seed {self.state.seed}`, case {number}."
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "case.json", json.dumps(case.encoded, indent=2))
        turns = self.bench.run(case.encoded).get("turns", ()) if case.partitions > 1 else ()
        _write(folder / f"{NAME}.java", unit_test(case, topic, origin, turns))
        write_application(case, folder / "app", list(dict.fromkeys(one.topic for one in shown.differences)))
        title = f"{', '.join(shown.kinds)} of {', '.join(step.operation for step in case.steps)}"
        finding = FuzzFinding(
            number=finding_number,
            title=title,
            case_number=number,
            cases=self.state.cases,
            after=self.state.seconds,
            reds=1,
            differences=shown.differences,
            case=text,
            folder=str(folder),
            nearest=self._nearest(case),
        )
        self._signatures.append(signature)
        self.state = replace(self.state, findings=(*self.state.findings, finding))
        _write(folder / "finding.md", _page(finding, origin, self.state.streams))
        self.report(f"finding {finding.number}: {title}")

    def _nearest(self, case: Case) -> Nearest | None:
        """The nearest case that is green and judged as a whole."""
        if self.compares is None:
            return None
        greens = [one for one in islice(nearby(case), NEARBY) if one.records and self._judge(one) == JudgedCase()]
        try:
            found = self.compares(case, greens) if greens else None
        except HarnessError as error:
            return Nearest(reason=f"It was not compared with a green case: {error}")
        if found is None:
            return Nearest(reason=f"Of the {len(greens)} green cases near it, none takes another branch.")
        place, branches = found
        compared_lines = ndiff(str(case).splitlines(), str(greens[place]).splitlines())
        return Nearest(change=tuple(line for line in compared_lines if line[0] in "-+"), branches=branches)

    def _remember(self, case: Case, differences: tuple[Difference, ...]) -> None:
        signature = (JudgedCase(differences).kinds, case.operations)
        self._signatures.append(signature)
        self._shrunk[signature] += 1

    def _count(self, place: int) -> None:
        found = list(self.state.findings)
        found[place] = replace(found[place], reds=found[place].reds + 1)
        self.state = replace(self.state, findings=tuple(found))

    def _write(self) -> None:
        self.state = replace(self.state, left_out=dict(self._left_out), searched=dict(sorted(self._searched.items())))
        self.state.write(self.path / "fuzzed.json")


def _covers(one: Signature, other: Signature) -> bool:
    """Whether a red may be of another one's kind: it shows the same and has its operations, and others."""
    return one[0] == other[0] and set(other[1]) <= set(one[1])


def _page(finding: FuzzFinding, origin: str, streams: str) -> str:
    lines = "\n".join(f"- `{one.topic}`, {one.kind}: {one.shown}" for one in finding.differences)
    files = f"`{NAME}.java` asserts what must be. `app` is for `onceproof app run`."
    page = f"# {finding.title}\n\n{origin}\n\n```\n{finding.case}\n```\n\n{lines}\n\n{files}\n"
    if finding.nearest is None:
        return page
    return "\n".join((page, "## Branches that differ", "", *finding.nearest.lines(streams), ""))


def _write(file: Path, text: str) -> None:
    with replacing(file) as draft:
        draft.write_text(text, encoding="utf-8")


def read_begun(root: Path, name: str, harness: str) -> Fuzzed:
    """The result of the fuzzing of this name, or of the `last` one.

    Raises:
        UsageError: there is none, or another version of Onceproof began it.
        HarnessError: its file is damaged.
    """
    files = sorted(root.glob("*/fuzzed.json"))
    wanted = files[-1:] if name == "last" else [file for file in files if file.parent.name == name]
    if not wanted:
        raise UsageError(f"There is no fuzzing {name} in {root} to continue; begin one with --streams.")
    state = Fuzzed.read(wanted[0])
    if state.harness != harness:
        raise UsageError(
            f"The fuzzing {state.run} was begun by {state.harness}, and this is {harness}, which draws or judges "
            "otherwise: begin another one."
        )
    return state
