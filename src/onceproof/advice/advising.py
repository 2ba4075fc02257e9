"""From the registry, the scenarios and what was measured to the answer: pure functions; each sentence has sources."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from onceproof.advice.advice import (
    SCHEMA,
    Advice,
    Gap,
    Issue,
    LeftOut,
    MeasuredCell,
    Said,
    Source,
    SourceKind,
    UpgradeAnswer,
)
from onceproof.advice.uses import find_unused, needs_of, never_used, promises_looked_at
from onceproof.model.application import Application, can_have, describe
from onceproof.model.cell import Cell
from onceproof.model.compared import TopologyComparison
from onceproof.model.errors import UsageError
from onceproof.model.judged import Judgement
from onceproof.model.known_issues import LATER, OF_BROKERS, IssueRegistry, KnownIssue
from onceproof.model.matrices import BROKER
from onceproof.model.matrix import Offer
from onceproof.model.promise import OF_APPLICATIONS, PROMISES
from onceproof.model.release import Release
from onceproof.model.severity import Severity
from onceproof.model.verdict import Verdict
from onceproof.results.measured import Measured

GUIDE = Source(
    SourceKind.DOCUMENT, "Kafka Streams' upgrade guide", url="https://kafka.apache.org/43/streams/upgrade-guide/"
)
RESTARTS = Source(SourceKind.DOCUMENT, "docs/scenarios/crash.md, own runs with a restart on another release")
SCENARIOS = Source(SourceKind.DOCUMENT, "docs/scenarios")
RUNS = Source(SourceKind.DOCUMENT, "docs/applications.md, own runs of the application")
RESULTS = Source(SourceKind.DOCUMENT, "the results database")
COMPARED = Source(SourceKind.DOCUMENT, "onceproof release compare, of your topology on both releases")


@dataclass(frozen=True)
class OwnRun:
    """The last result of a user application on a release, or on the way to another, under a fault."""

    streams: Release
    restart_on: Release | None
    fault: str
    judgement: Judgement
    reason: str
    run: str

    @property
    def way(self) -> tuple[Release, Release | None]:
        """The release, and the one that it went over to."""
        return self.streams, self.restart_on

    @property
    def said(self) -> Said:
        """In a sentence."""
        releases = f"{self.streams} → {self.restart_on}" if self.restart_on else str(self.streams)
        message = f"{releases}, fault {self.fault}: {self.judgement}. {self.reason}"
        return Said(message, (Source(SourceKind.DOCUMENT, f"app run {self.run}"),))


@dataclass(frozen=True)
class UpgradeQuestion:
    """The question, and all that is known."""

    current: Release
    target: Release
    registry: IssueRegistry
    catalogue: Mapping[str, Offer]
    measured: Sequence[Measured]
    application: Application | None = None
    releases: Collection[Release] = ()  # that one might go to instead
    own: tuple[OwnRun, ...] | None = None  # of the application of one's own that is asked about
    takes: str | None = None  # how long what is lacking would take, for people
    topology: TopologyComparison | None = None  # what changes of the topology of the application of one's own

    def __post_init__(self) -> None:
        """Refuse a pointless question.

        Raises:
            UsageError: both releases are the same.
        """
        if self.current == self.target:
            raise UsageError(
                f"{self.current} is both releases, so nothing changes: name the release that you run, and then the one "
                "that you want to go to."
            )

    @property
    def is_back(self) -> bool:
        """Whether it goes to an older release."""
        return self.target < self.current

    @cached_property
    def app(self) -> Application:
        """The application; one that is not described may use everything."""
        return self.application or Application()

    @cached_property
    def issues(self) -> tuple[KnownIssue, ...]:
        """Those that may concern the application, the worst first."""
        found = (issue for issue in self.registry.issues if self.app.lacks(issue.needs) is None)
        return tuple(sorted(found, key=lambda issue: issue.harm.rank))

    @cached_property
    def cells(self) -> tuple[Measured, ...]:
        """The measured ones that may concern the application."""
        return tuple(
            measured for measured in self.measured if self.concerns(measured.cell.scenario, measured.cell.variant)
        )

    @cached_property
    def older(self) -> tuple[Measured, ...]:
        """The cells of which no verdict is by the harness as it is, but one by an earlier harness."""
        return tuple(measured for measured in self.cells if measured.is_decided and not measured.is_current)

    def refusal(self, one: Release, other: Release) -> str | None:
        """Why the other release cannot take over the state of one, if it cannot; only RocksDB's is on disk."""
        reason = None if self.app.lacks({"stores": ("rocksdb",)}) else one.refuse_restart_on(other)
        return reason and f"{reason.partition(';')[0]}."  # what follows is what to run instead

    def rolls(self, cell: Cell) -> bool:
        """Whether the application of a cell moves to the other release while it works."""
        return cell.variant in self.catalogue[cell.scenario].rolling

    def concerns(self, scenario: str, variant: str) -> bool:
        """Whether a variant may concern the application; one that no longer exists concerns none."""
        offer = self.catalogue.get(scenario)
        return offer is not None and variant in offer.variants and not self.app.lacks(needs_of(scenario, variant))

    def probes(self, scenario: str, *, rolling: bool) -> list[str]:
        """The variants in which a failure can show, the control first; where no issue is known, all that concern it.

        With `rolling` those that move to another release while they work, else the others.
        """
        offer = self.catalogue[scenario]
        own = [v for v in offer.variants if (v in offer.rolling) == rolling and self.concerns(scenario, v)]
        showing = [v for v in own if any(v in i.provoked.get(scenario, ()) for i in self.issues)]
        return sorted(showing or own, key=lambda variant: variant != offer.positive_control[0])


def advise(question: UpgradeQuestion) -> Advice:
    """The answer."""
    gaps = tuple(sorted(_gaps(question), key=lambda gap: not gap.is_needed))
    gained, left = _find_gained(question, question.target), _find_gained(question, question.current, question.target)
    carried = _find_carried(question)
    against = tuple(_against(question, gained))
    answer = _answer(against, gaps)
    better = better_targets(question)
    stay = [issue for issue in question.issues if issue.is_in(question.current) and issue.is_in(question.target)]
    way = [issue for issue in question.issues if issue.is_between(question.current, question.target)]
    return Advice(
        SCHEMA,
        str(question.current),
        str(question.target),
        answer,
        int(answer.exit_code),
        _headline(question, answer, len(against), [*gained, *carried]),
        against,
        tuple(_to_do(question, gained, way, better, gaps)),
        tuple(map(str, better)),
        tuple(_issue(question, issue) for issue in left),
        tuple(_issue(question, issue) for issue in gained),
        tuple(_issue(question, issue) for issue in stay),
        tuple(map(_cell, sorted(question.cells, key=lambda measured: _order(question, measured.cell)))),
        gaps,
        None if question.application is None else dict(question.application.uses),
        tuple(_find_left_out(question)),
        tuple(_issue(question, issue) for issue in way),
        tuple(run.said for run in question.own or ()),
        tuple(replace(_issue(question, issue), remedy=_close(question)) for issue in carried),
        tuple(_remarks(question, gaps, len([issue for issue in left if issue not in carried]), len(way))),
    )


def _find_gained(question: UpgradeQuestion, having: Release, lacking: Release | None = None) -> list[KnownIssue]:
    """The issues that one release has and the other (the current one, if not given) does not.

    Without those of a feature that the other one lacks, as no application there uses it.
    """
    other = lacking or question.current
    return [i for i in question.issues if i.is_in(having) and not i.is_in(other) and can_have(i.needs, other)]


def _answer(against: Collection[Said], gaps: Iterable[Gap]) -> UpgradeAnswer:
    if against:
        return UpgradeAnswer.SOMETHING
    return UpgradeAnswer.UNKNOWN if any(gap.is_needed for gap in gaps) else UpgradeAnswer.NOTHING


def _headline(question: UpgradeQuestion, answer: UpgradeAnswer, against: int, issues: Iterable[KnownIssue]) -> str:
    """The answer in one line; the number of things against it, and the worst severity of the issues among them."""
    way = f"{question.current} to {question.target}{' (a downgrade)' if question.is_back else ''}"
    found = {issue.harm for issue in issues}
    worst = next((f", at worst {severity}" for severity in Severity if severity in found), "")
    return f"{way}: {answer}{f' ({against})' if against else ''}{worst}."


def _remarks(question: UpgradeQuestion, gaps: Iterable[Gap], left: int, met: int) -> Iterator[str]:
    needed, older = sum(gap.is_needed for gap in gaps), len(question.older)
    for number, one, several in (
        (left, "known issue is left behind", "known issues are left behind"),
        (met, "known issue applies on the way", "known issues apply on the way"),
        (needed, "thing was not checked", "things were not checked"),
        (older, "verdict is by an earlier harness", "verdicts are by an earlier harness"),
    ):
        if number:
            yield f"{_count(number, one, several)}."


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


# --- what is known against it ----------------------------------------------------------------------------------------


def _against(question: UpgradeQuestion, gained: Iterable[KnownIssue]) -> Iterator[Said]:
    current, target = question.current, question.target
    if reason := question.refusal(current, target):
        yield Said(f"{target} cannot continue with the state of {current}: {reason}", (GUIDE, RESTARTS))
    for change in question.topology.grave if question.topology else ():
        yield Said(f"Your topology changes: {change.summary} ({'; '.join(change.effects)}).", (COMPARED,))
    for issue in gained:
        text = f"{target} has {issue.key}, which {current} has not: {issue.symptom} When: {issue.condition}"
        yield Said(text, _row(question, issue), issue.key)
    for issue in _find_carried(question):
        yield Said(
            f"What a crash on {current} leaves behind is trusted by {target}, too ({issue.key}): {issue.symptom}",
            _row(question, issue, carried=True),
            issue.key,
        )
    for measured in question.cells:
        if measured.verdict is Verdict.REGRESSION and measured.cell.running == target:
            when = "" if measured.is_current else " (by an earlier harness)"
            yield Said(
                f"{measured.cell.title} showed what no known issue explains{when}: {measured.sentence}",
                (_source(measured),),
            )
    for run in _own_gained(question):
        yield Said(f"Your application is red on the way, and not on {current}: {run.said.text}", run.said.sources)


def _own_gained(question: UpgradeQuestion) -> Iterator[OwnRun]:
    """The red runs of one's own application that have to do with the target, if it is not as red where it is now."""
    runs = [run for run in question.own or () if run.judgement is Judgement.RED]
    here = {run.fault for run in runs if run.way == (question.current, None)}
    yield from (run for run in runs if (run.restart_on or run.streams) == question.target and run.fault not in here)


def _find_carried(question: UpgradeQuestion) -> list[KnownIssue]:
    """The issues of the current release whose damage is carried along, whatever the target has, if it can be."""
    if question.refusal(question.current, question.target):
        return []
    return [issue for issue in question.issues if issue.culprit == "killed" and issue.is_in(question.current)]


# --- what to do ------------------------------------------------------------------------------------------------------


def _to_do(
    question: UpgradeQuestion,
    gained: Sequence[KnownIssue],
    way: Iterable[KnownIssue],
    better: Sequence[Release],
    gaps: Iterable[Gap],
) -> Iterator[Said]:
    current, target = question.current, question.target
    yield from (_alternative(question, release) for release in better)
    for issue in gained:
        yield Said(f"If it must be {target}, against {issue.key}: {issue.remedy}", _row(question, issue), issue.key)
    for issue in _find_carried(question):
        text = f"{_close(question)[:-1]} ({issue.key})."
        yield Said(text, _row(question, issue, carried=True), issue.key)
    if question.topology and question.topology.grave:
        yield Said(f"Your topology changes. {question.topology.advice}", (COMPARED,))
    for issue in way:
        yield Said(f"On the way, against {issue.key}: {issue.remedy}", _row(question, issue), issue.key)
    empty = "stop each instance and empty its state directory, so that its stores are restored from the changelogs."
    if question.refusal(current, target):
        yield Said(f"Before the change {empty}", (GUIDE,))
    elif reason := question.refusal(target, current):
        yield Said(f"Should you have to go back to {current}, first {empty} The reason: {reason}", (GUIDE, RESTARTS))
    if reason := current.refuse_roll_to(target):
        yield Said(f"Stop all instances before the first one starts on {target}: {reason.partition(';')[0]}.", (GUIDE,))
    elif (first := current.bounces_to(target)[0])[1]:
        text = f"Bounce each instance twice: on {first[0]} with upgrade.from={first[1]}, then on {target} without it."
        yield Said(text, (GUIDE,))
    else:
        text = f"Bounce each instance once: from {current} to {target} upgrade.from is not needed."
        yield Said(f"{text} The guide lists what was removed or renamed, and the Java that it needs.", (GUIDE,))
    if cells := [gap for gap in gaps if gap.is_needed and gap.cell]:
        sources = tuple(source for gap in cells for source in gap.sources)
        own = " --application FILE" if question.application else ""
        own = " --application DIR" if question.own is not None else own
        size = ", ".join(filter(None, (_count(len(cells), "cell", "cells"), question.takes)))
        text = f"Have what is missing looked at: `onceproof advise {current} {target}{own} --run` ({size})."
        yield Said(text, tuple(dict.fromkeys(sources)))


def _close(question: UpgradeQuestion) -> str:
    return f"Close the application cleanly before the change: a crash on {question.current} survives it."


def _alternative(question: UpgradeQuestion, other: Release) -> Said:
    """A release that may be better than the target: the issues that only one of them has."""
    target = question.target
    (has, gains), (target_has, target_gains) = _count_burden(question, other), _count_burden(question, target)
    only, only_target = _find_gained(question, other, target), _find_gained(question, target, other)
    numbers = f"It has {has} known issues, {gains} of them new; {target} has {target_has}, {target_gains} of them new."
    differ = [
        f"Only {release} has {_join_names([issue.key for issue in issues])}."
        for release, issues in ((other, only), (target, only_target))
        if issues
    ]
    text = " ".join([f"Consider {other}. {numbers}", *differ])
    # Where neither has one alone, issues of features that the other lacks make the difference.
    counted = [*only, *only_target] or [i for i in question.issues if i.is_in(other) != i.is_in(target)]
    return Said(text, tuple(map(_of_row, counted)))


def _join_names(keys: Sequence[str]) -> str:
    """Keys, some of which have commas, in a sentence."""
    return "; ".join(keys)


def better_targets(question: UpgradeQuestion) -> list[Release]:
    """The newest better release of the target's line, and the best of all, if there are any.

    A release is better if it has fewer known issues than the target, or as many, of which fewer are new. A way back
    ends before the current release, and a way on begins after it.
    """
    current, target = question.current, question.target
    lowest, highest = (target, current) if question.is_back else (current, LATER)
    burden = _count_burden(question, target)
    on_the_way = (release for release in question.releases if not release.is_candidate and lowest < release < highest)
    better = sorted((release for release in on_the_way if _count_burden(question, release) < burden), reverse=True)
    of_line = [release for release in better if release.line == target.line][:1]
    # Of several that are equally good the newest, with which `better` begins.
    best = [min(better, key=lambda release: _count_burden(question, release))] if better else []
    return list(dict.fromkeys([*of_line, *best]))


def _count_burden(question: UpgradeQuestion, release: Release) -> tuple[int, int]:
    """How many known issues a release has, and how many of them the current one has not."""
    return sum(issue.is_in(release) for issue in question.issues), len(_find_gained(question, release))


# --- issues and cells ------------------------------------------------------------------------------------------------


def _issue(question: UpgradeQuestion, issue: KnownIssue) -> Issue:
    return Issue(
        issue.key,
        issue.title,
        issue.url,
        issue.symptom,
        issue.condition,
        issue.remedy,
        issue.ranges,
        tuple(map(str, issue.fixed)),
        issue.sources,
        _find_sources(question, issue),
        issue.harm,
    )


def _row(question: UpgradeQuestion, issue: KnownIssue, carried: bool = False) -> tuple[Source, ...]:
    """The row of an issue, and the cells that show it."""
    return (_of_row(issue), *_find_sources(question, issue, carried))


def _of_row(issue: KnownIssue) -> Source:
    return Source(SourceKind.ISSUE, issue.key, url=issue.url)


def _find_sources(question: UpgradeQuestion, issue: KnownIssue, carried: bool = False) -> tuple[Source, ...]:
    """The cells that say something about an issue; `carried`: those that go from the current release to the target."""
    way = (question.current, question.target)
    return tuple(
        _source(measured)
        for measured in question.cells
        if measured.is_decided
        and issue.concerns(measured.cell.scenario, measured.cell.variant)
        and (not issue.is_incidental(measured.cell) or issue.key in measured.issues)
        and (not carried or (measured.cell.streams, measured.cell.restart_on) == way)
    )


def _source(measured: Measured) -> Source:
    return Source(SourceKind.ATLAS if measured.by else SourceKind.CELL, measured.cell.key, measured.run)


def _cell(measured: Measured) -> MeasuredCell:
    is_error = measured.verdict is Verdict.ERROR  # its sentence is about this machine
    return MeasuredCell(
        measured.cell.key,
        measured.cell.scenario,
        measured.cell.variant,
        str(measured.cell.streams),
        str(measured.cell.broker),
        str(measured.cell.restart_on) if measured.cell.restart_on else None,
        str(measured.verdict),
        "The harness failed; this says nothing about Kafka." if is_error else measured.sentence,
        measured.red,
        measured.counted,
        measured.excluded_rate,
        measured.missed,
        measured.issues,
        measured.run,
        measured.created,
        measured.is_current,
        measured.by,
    )


def _order(question: UpgradeQuestion, cell: Cell) -> tuple[object, ...]:
    ways = [(question.target, None), (question.current, question.target), (question.current, None)]
    way = (cell.streams, cell.restart_on)
    scenarios = list(question.catalogue)
    return ways.index(way) if way in ways else len(ways), scenarios.index(cell.scenario), cell.variant, cell.broker


# --- what was not checked ---------------------------------------------------------------------------------------------


def _gaps(question: UpgradeQuestion) -> Iterator[Gap]:
    current, target = question.current, question.target
    yield from (_name_gap(question, cell) for cell in lacking(question))
    for way in ((current, None), (target, current)):
        cells = [cell for scenario in question.catalogue if (cell := _missing(question, scenario, *way))]
        if cells:
            names = ", ".join(cell.scenario for cell in cells)
            why = "No cell was decided here or in the atlas; the answer does not wait for it."
            yield Gap(f"{cells[0].releases}: {names}", why, False, None, (RESULTS,))
    yield from _of_own(question)
    yield from _features(question)
    yield from _promises(question)
    if decided := [measured for measured in question.cells if measured.is_decided]:
        brokers = " and ".join(map(str, sorted({measured.cell.broker for measured in decided})))
        yield Gap(f"Brokers other than {brokers}", "All cells ran on these.", False, None, (_source(decided[0]),))
    if older := question.older:
        names = ", ".join(dict.fromkeys(measured.cell.scenario for measured in older))
        why = f"An earlier one, which may have found less, judged {_count(len(older), 'cell', 'cells')}."
        yield Gap(f"The present harness in {names}", why, False, None, (RESULTS,))
    yield from _blind(question)
    for issue in question.issues:
        if issue.culprit == OF_BROKERS:
            why = f"They have {issue.key}, whatever Kafka Streams runs on them: {issue.symptom}"
            yield Gap(f"Brokers {', '.join(issue.ranges)}", why, False, None, (_of_row(issue),))


def _blind(question: UpgradeQuestion) -> Iterator[Gap]:
    """The variants in which nothing else can be seen of what an issue shows, on the target and all later releases."""
    for issue in question.issues:
        if not (issue.is_in(question.target) and issue.has_no_end(question.target)):
            continue
        own = {
            scenario: [variant for variant in variants if question.concerns(scenario, variant)]
            for scenario, variants in issue.provoked.items()
        }
        where = "; ".join(f"{scenario} {', '.join(variants)}" for scenario, variants in own.items() if variants)
        shown = {e for scenario, of in own.items() for variant in of for e in issue.explanations(scenario, variant)}
        names = ", ".join(sorted({name for explanation in shown for name in explanation.anomalies}))
        why = f"{issue.key} shows {names} there, on {question.target} and all later releases."
        if where:
            yield Gap(f"Blind here: {where}", why, False, None, (_of_row(issue),))


def _of_own(question: UpgradeQuestion) -> Iterator[Gap]:
    """Where one's own application was not run, or said nothing; the answer waits for the target alone."""
    if question.own is None:
        return
    current, target = question.current, question.target
    said = {run.way for run in question.own if run.judgement is not Judgement.INCONCLUSIVE}
    for way, options in (
        ((target, None), f"--streams {target}"),
        ((current, target), f"--streams {current} --roll-to {target}"),
    ):
        if way not in said:
            releases = f"{current} → {target}" if way[1] else str(target)
            why = f"No run of it said anything here: `onceproof app run DIR {options}`."
            yield Gap(f"{releases}: your application", why, way == (target, None), None, (RUNS,))


def _missing(
    question: UpgradeQuestion, scenario: str, streams: Release, restart: Release | None, rolling: bool = False
) -> Cell | None:
    """The cell to run if a scenario was run in none of the variants that would show something.

    None if it was, or cannot be run there.
    """
    offer, broker = question.catalogue[scenario], Release.parse(BROKER)
    cells = (
        Cell(scenario, variant, streams, broker, restart) for variant in question.probes(scenario, rolling=rolling)
    )
    can = [cell for cell in cells if offer.refuse(cell) is None]
    return None if not can or any(measured.is_decided for measured in _find_measurements(question, can[0])) else can[0]


def _find_measurements(question: UpgradeQuestion, cell: Cell) -> list[Measured]:
    """The measurements with the scenario and the releases of a cell, in variants that would show something."""
    variants = question.probes(cell.scenario, rolling=question.rolls(cell))
    return [
        measured
        for measured in question.cells
        if (measured.cell.scenario, measured.cell.releases) == (cell.scenario, cell.releases)
        and measured.cell.variant in variants
    ]


def _name_gap(question: UpgradeQuestion, cell: Cell) -> Gap:
    what = f"{cell.releases}{', rolling' if question.rolls(cell) else ''}: {cell.scenario}"
    if not (tried := _find_measurements(question, cell)):
        return Gap(what, "No cell was run here, and the atlas has none.", True, cell.key, (RESULTS,))
    last = tried[0]
    by = f", {last.by}" if last.by else ""
    why = f"The last verdict is {last.verdict} ({last.cell.variant}){by}."
    return Gap(what, why, True, cell.key, (_source(last),))


def _features(question: UpgradeQuestion) -> Iterator[Gap]:
    """Features that no cell of the target used: those that the application has; else those that no scenario has."""
    if question.application is None:
        lacking, is_needed, why = never_used(), False, "No scenario has it."
    else:
        lacking = find_unused(question.application.uses, _variants(_on_target(question)))
        is_needed, why = True, f"No cell on {question.target} had it, and the application has."
    for name, values in lacking.items():
        yield Gap(f"An application with {describe(name, values)}", why, is_needed, None, (SCENARIOS,))


def _on_target(question: UpgradeQuestion) -> list[Measured]:
    """The decided cells that ran on the target."""
    return [measured for measured in question.cells if measured.is_decided and measured.cell.running == question.target]


def _variants(cells: Iterable[Measured]) -> list[tuple[str, str]]:
    return [(measured.cell.scenario, measured.cell.variant) for measured in cells]


def _promises(question: UpgradeQuestion) -> Iterator[Gap]:
    current = _variants(
        measured for measured in _on_target(question) if measured.is_current
    )  # an earlier one had fewer
    looked_at = {promise for name, variant in current for promise in promises_looked_at(name, variant)}
    ours = [name for name, promise in PROMISES.items() if promise.suite != OF_APPLICATIONS]
    if missing := [name for name in ours if name not in looked_at]:
        why = f"No cell on {question.target} by the present harness looks at them."
        names = f"The promises {', '.join(missing)}" if looked_at else "All promises"
        yield Gap(names, why, False, None, (RESULTS,))


# --- what does not concern the application ---------------------------------------------------------------------------


def _find_left_out(question: UpgradeQuestion) -> Iterator[LeftOut]:
    for issue in question.registry.issues:
        here = issue.is_in(question.current) or issue.is_in(question.target)
        here = here or issue.is_between(question.current, question.target)
        if here and (why := question.app.lacks(issue.needs)):
            yield LeftOut(issue.key, f"{why[0].upper()}{why[1:]}.")
    for scenario, offer in question.catalogue.items():
        whys = {variant: question.app.lacks(needs_of(scenario, variant)) for variant in offer.variants}
        for why in dict.fromkeys(why for why in whys.values() if why):
            out = [variant for variant in offer.variants if whys[variant] == why]
            what = scenario if len(out) == len(offer.variants) else f"{scenario} {', '.join(out)}"
            yield LeftOut(what, f"{why[0].upper()}{why[1:]}.")


# --- what would fill the gaps ----------------------------------------------------------------------------------------


def lacking(question: UpgradeQuestion) -> list[Cell]:
    """The cells that fill the gaps that the answer depends on."""
    current, target = question.current, question.target
    ways = ((target, None, False), (current, target, False), (current, target, True), (target, current, True))
    cells = (_missing(question, scenario, *way) for way in ways for scenario in question.catalogue)
    return [cell for cell in cells if cell is not None]
