"""The registry of known issues (`known_issues.toml`): what is expected, and where each fact comes from."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator

from onceproof.model.application import Application, Value, check_needs
from onceproof.model.cell import Cell
from onceproof.model.decoding import read_tables
from onceproof.model.errors import HarnessError
from onceproof.model.explaining import Explanation
from onceproof.model.promise import ANOMALIES
from onceproof.model.release import Release
from onceproof.model.severity import Severity, rate

MIXED = "mixed"  # the culprit of an issue that no release has alone
OF_BROKERS = "broker"  # the culprit of an issue of brokers, whatever release of Kafka Streams uses them
LATER = Release(999, 0, 0)  # the last of a range that is open
UNKNOWN = Application()  # of which nothing is known, so that it may use anything
REGISTRY = Path(__file__).with_name("known_issues.toml")


def url_of(key: str) -> str | None:
    """Where what has this key is reported; None of any other key, for example of documented behaviour."""
    if re.fullmatch(r"CVE-\d{4}-\d{4,7}", key):
        return f"https://www.cve.org/CVERecord?id={key}"
    reported = re.fullmatch(r"(KAFKA-\d{1,6})(, [a-z ]+)?", key)  # of some, a part has a row of its own
    return f"https://issues.apache.org/jira/browse/{reported[1]}" if reported else None


class Range(NamedTuple):
    """Releases, both ends included; without `last`, all later ones."""

    first: Release
    last: Release = LATER


def _in_order(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """The ranges in order.

    Raises:
        ValueError: one is inverted, or overlaps another one.
    """
    if inverted := next((affected for affected in ranges if affected.last < affected.first), None):
        raise ValueError(f"the range {inverted.first} to {inverted.last} is inverted; write the older release first")
    for earlier, later in pairwise(sorted(ranges)):
        if later.first <= earlier.last:
            raise ValueError(
                f"the range that begins with {later.first} overlaps the one that begins with {earlier.first}"
            )
    return tuple(sorted(ranges))


def _sentences(text: str) -> str:
    """The text without blanks around it.

    Raises:
        ValueError: it does not end with a full stop.
    """
    if not text.strip().endswith("."):
        raise ValueError("must be sentences that end with a full stop")
    return text.strip()


Texts = tuple[str, ...]
Ranges = Annotated[tuple[Range, ...], AfterValidator(_in_order)]
Sentences = Annotated[str, AfterValidator(_sentences)]
Variants = Mapping[str, Texts]  # by scenario


@dataclass(frozen=True)
class KnownIssue:
    """A row of the registry; ranges are inclusive.

    Attributes:
        key: its JIRA key, its CVE, or a name for documented behaviour.
        title: as in JIRA.
        variants: by scenario those in which it shows; none where it takes parameters that no variant has. No scenario
            where `app run` or `fuzz` alone shows it.
        explains: which witnesses it explains, see `[[issue.explains]]`; nothing of an issue without a scenario.
        affected: ranges of releases that have it, from `first` to `last`; without `last`, all later ones.
        fixed: on each release line the first release that has it no more.
        sources: where each fact comes from.
        symptom: what a person would see in production, in sentences.
        condition: when it occurs, in sentences.
        remedy: where it is fixed, and what helps until then, in sentences.
        needs: by feature of an application the values with which it can occur; `onceproof advise --template`
            lists the features.
        must_show: by scenario and variant the anomalies that a red must show to be what was provoked, and not only
            its beginning.
        culprit: the release that must be affected where the application goes over to another one: `restarted` (the
            default) or `killed`; `mixed`: one of both, not both; `broker`: the ranges are of brokers.
        incidental: scenarios made for another failure, in which it shows only sometimes. It may explain a red
            there, but none is expected.
        sometimes: by scenario further variants, in which it shows only sometimes, likewise.
        shown: whether a run of Onceproof has shown it; true, unless it says otherwise.
        fuzz: whether `onceproof fuzz` has found it.
        severity: how bad it is, where its anomalies do not say it: it has none, or they are also those of a lesser or a
            greater harm.
    """

    key: str
    title: str
    variants: Variants
    affected: Ranges
    fixed: tuple[Release, ...]
    sources: Texts
    symptom: Sentences
    condition: Sentences
    remedy: Sentences
    needs: Annotated[Mapping[str, tuple[Value, ...]], BeforeValidator(check_needs)]
    must_show: Mapping[str, Mapping[str, Texts]] = field(default_factory=dict)
    culprit: Literal["restarted", "killed", "mixed", "broker"] = "restarted"
    incidental: Texts = ()
    sometimes: Variants = field(default_factory=dict)
    shown: bool = True
    fuzz: bool = False
    severity: Severity | None = None
    explains: tuple[Explanation, ...] = ()

    @property
    def anomalies(self) -> tuple[str, ...]:
        """The anomalies of which it explains witnesses."""
        return tuple(dict.fromkeys(name for explanation in self.explains for name in explanation.anomalies))

    @property
    def harm(self) -> Severity:
        """How bad it is for those who depend on the results."""
        return self.severity or rate(self.anomalies)

    def explanations(self, scenario: str, variant: str | None) -> tuple[Explanation, ...]:
        """Its explanations in a variant of a scenario, or in any."""
        return tuple(e for e in self.explains if e.holds_in(scenario, variant))

    @property
    def summary(self) -> str:
        """Its key, and where it is fixed, for sentences."""
        fixed = " and ".join(str(release) for release in self.fixed)
        return f"{self.key} (fixed in {fixed})" if fixed else self.key

    @property
    def url(self) -> str | None:
        """Where it is reported; None of what is documented behaviour."""
        return url_of(self.key)

    @property
    def ranges(self) -> tuple[str, ...]:
        """The releases that have it, in words, a text for each range."""
        return tuple(
            str(first) if first == last else f"{first} and later" if last == LATER else f"{first} to {last}"
            for first, last in self.affected
        )

    def is_in(self, release: Release) -> bool:
        """Whether the release of Kafka Streams has it, whatever other release is in the same group."""
        return self.culprit not in (MIXED, OF_BROKERS) and self._names(release)

    def is_between(self, one: Release, other: Release) -> bool:
        """Whether it occurs on the way from one release to the other, while both are members of a group."""
        return self.culprit == MIXED and self._names(one) != self._names(other)

    def _names(self, release: Release) -> bool:
        return any(release.within(*affected) for affected in self.affected)

    def has_no_end(self, release: Release) -> bool:
        """Whether the release has it, and so have all later ones, as far as is known."""
        return any(release.within(first, last) and last == LATER for first, last in self.affected)

    def concerns(self, scenario: str, variant: str | None) -> bool:
        """Whether it can show in a variant of a scenario, or in whichever, on some release."""
        variants = (*self.variants.get(scenario, ()), *self.sometimes.get(scenario, ()))
        return scenario in self.variants if variant is None else variant in variants

    def is_incidental(self, cell: Cell) -> bool:
        """Whether it shows in the variant of a cell only sometimes, if it does."""
        return cell.scenario in self.incidental or cell.variant in self.sometimes.get(cell.scenario, ())

    @property
    def provoked(self) -> Mapping[str, tuple[str, ...]]:
        """By scenario the variants in which it is expected to show."""
        return {scenario: names for scenario, names in self.variants.items() if scenario not in self.incidental}

    def affects(self, cell: Cell, *, varied: bool = False) -> bool:
        """Whether it may show in the cell; and is expected to, unless it is incidental there.

        In a trial that is `varied` (`Trial.is_varied`) it may be one that shows in another variant.
        """
        if not self.concerns(cell.scenario, None if varied else cell.variant):
            return False
        if self.culprit == OF_BROKERS:
            return self._names(cell.broker)
        culprits = (cell.streams,) if self.culprit == "killed" else (cell.running,)
        releases = (cell.streams, cell.running) if self.is_incidental(cell) else culprits
        return self.is_between(cell.streams, cell.running) or any(map(self.is_in, releases))


@dataclass(frozen=True)
class Avoidance:
    """A declaration that variants avoid the mechanism of their scenario.

    Attributes:
        variants: by scenario those that avoid it.
        releases: ranges of releases on which that was seen.
        reason: why the mechanism cannot arise.
        sources: where each fact comes from.
    """

    variants: Variants
    releases: Ranges
    reason: str
    sources: Texts

    def declares(self, cell: Cell) -> bool:
        """Whether it applies to the cell: the variant, and a release on which it was seen."""
        if cell.variant not in self.variants.get(cell.scenario, ()):
            return False
        return all(any(r.within(*seen) for seen in self.releases) for r in (cell.streams, cell.running))


@dataclass(frozen=True)
class IssueRegistry:
    """All that is known before a run."""

    issues: tuple[KnownIssue, ...]
    avoided: tuple[Avoidance, ...]

    def affecting(self, cell: Cell) -> tuple[KnownIssue, ...]:
        """Known issues that are expected to show in a cell."""
        return tuple(issue for issue in self.explaining(cell) if not issue.is_incidental(cell))

    def find_concerned(
        self, cell: Cell, anomalies: Collection[str], application: Application = UNKNOWN, *, varied: bool = False
    ) -> tuple[KnownIssue, ...]:
        """Known issues that are expected to show in a cell, and the incidental ones that have any of the anomalies."""
        there = self.explaining(cell, application, varied=varied)
        return tuple(i for i in there if not i.is_incidental(cell) or set(i.anomalies) & set(anomalies))

    def explaining(
        self, cell: Cell, application: Application = UNKNOWN, *, varied: bool = False
    ) -> tuple[KnownIssue, ...]:
        """Known issues that may explain a red of a cell, expected or not.

        A trial that is `varied` (`Trial.is_varied`) may be as other variants are, and its `application` may lack what
        an issue needs.
        """
        here = (issue for issue in self.issues if issue.affects(cell, varied=varied))
        return tuple(issue for issue in here if application.lacks(issue.needs) is None)

    def explanations(
        self, cell: Cell, application: Application = UNKNOWN, *, varied: bool = False
    ) -> tuple[Explanation, ...]:
        """The explanations of these issues there."""
        variant = None if varied else cell.variant
        issues = self.explaining(cell, application, varied=varied)
        return tuple(explanation for issue in issues for explanation in issue.explanations(cell.scenario, variant))

    def by_chance(self, cell: Cell) -> frozenset[str]:
        """Anomalies that a cell may show of an incidental issue, whatever it is run for."""
        issues = (issue for issue in self.explaining(cell) if issue.is_incidental(cell))
        return frozenset(name for issue in issues for name in issue.anomalies)

    def blind(self, cell: Cell) -> tuple[KnownIssue, ...]:
        """Issues that show in a cell on this release and all later ones: it can show nothing else that looks like that.

        `KnownIssue.explanations` says which.
        """

        def has_no_end(issue: KnownIssue) -> bool:
            releases = (cell.broker,) if issue.culprit == OF_BROKERS else (cell.streams, cell.running)
            return any(map(issue.has_no_end, releases))

        return tuple(filter(has_no_end, self.affecting(cell)))

    def avoidance(self, cell: Cell) -> Avoidance | None:
        """The declaration that a cell avoids the mechanism, if there is one."""
        return next((row for row in self.avoided if row.declares(cell)), None)


def parse_registry(text: str, name: str = "known_issues.toml") -> IssueRegistry:
    """Read a registry.

    Raises:
        HarnessError: it is not TOML; a field is missing or unknown; a range is inverted, overlaps another one, or holds
            a release in which the issue is fixed; an anomaly does not exist; names the row.
    """
    tables = read_tables(text, name, issue=Annotated[KnownIssue, AfterValidator(_check)], avoided=Avoidance)
    keys = [issue.key for issue in tables["issue"]]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise HarnessError(f"{name}: {twice} has more than one row; make them one, with several ranges.")
    return IssueRegistry(tables["issue"], tables["avoided"])


def _check(issue: KnownIssue) -> KnownIssue:
    """The same issue.

    Raises:
        ValueError: what it says does not hang together.
    """
    if not issue.explains and issue.variants:
        raise ValueError("it explains nothing; say which anomalies, and what must hold of a witness")
    if not issue.sources:
        raise ValueError("it has no source; say where the facts come from")
    if issue.culprit == MIXED and (issue.fixed or any(last == LATER for _, last in issue.affected)):
        raise ValueError("culprit is 'mixed', so no release fixes it, and each range ends where the other side begins")
    if unknown := sorted(set(issue.incidental) - issue.variants.keys()):
        raise ValueError(f"incidental names {unknown[0]!r}, which is not one of its scenarios")
    if unknown := sorted(issue.sometimes.keys() - issue.provoked.keys()):
        raise ValueError(f"sometimes names {unknown[0]!r}, which is not one of the scenarios that provoke it")
    for scenario, variants in issue.sometimes.items():
        if twice := sorted({*variants} & {*issue.variants[scenario]}):
            raise ValueError(f"{twice[0]} of {scenario} is among its variants and its sometimes; leave out one")
    for fixed in issue.fixed:
        if any(fixed.within(*affected) for affected in issue.affected):
            raise ValueError(f"{fixed} is fixed, and yet in an affected range; end the range before it")
    for explanation in issue.explains:
        _check_explanation(explanation)
    due = [
        (scenario, *of_variant)
        for scenario, of_variants in issue.must_show.items()
        for of_variant in of_variants.items()
    ]
    named = {name for _, _, names in due for name in names}
    if unknown := sorted(named - ANOMALIES.keys()):
        raise ValueError(f"there is no anomaly {unknown[0]!r}; docs/reading-a-verdict.md lists them")
    if unknown := sorted(variant for scenario, variant, _ in due if not issue.concerns(scenario, variant)):
        raise ValueError(f"{unknown[0]!r} is not one of its variants")
    return issue


def _check_explanation(explanation: Explanation) -> None:
    if not explanation.conditions - {"most"}:
        raise ValueError(
            "an explanation says nothing of its witnesses; give it `says`, `after`, `faults`, `given`, `open_at`, "
            "`returned`, `stayed`, `restored`, `struck`, `instance`, `sent`, `unsent`, `changed`, `values`, `version` "
            "or `window`"
        )
    if explanation.instance and explanation.after is None:
        raise ValueError("instance is that of the event after; give both, or none")
    if unknown := sorted(set(explanation.anomalies) - ANOMALIES.keys()):
        raise ValueError(f"there is no anomaly {unknown[0]!r}; docs/reading-a-verdict.md lists them")
    several = sorted(name for name in explanation.anomalies if ANOMALIES[name].per != "trial")
    if explanation.is_of_trial and several and explanation.whole_trial is None:
        raise ValueError(
            f"it explains every {several[0]} of a trial, however many there are; give it a condition on the witness, "
            "or say in whole_trial why there is none"
        )
    if explanation.whole_trial is not None and not (explanation.is_of_trial and several):
        raise ValueError("whole_trial is for explanations that hold of a whole trial; leave it out")


@cache
def registry() -> IssueRegistry:
    """The registry of this installation."""
    return parse_registry(REGISTRY.read_text(), REGISTRY.name)
