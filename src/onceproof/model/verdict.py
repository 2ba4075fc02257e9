"""The verdict on a cell, and why. Red is proof, green must be earned, the rest is not known."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from onceproof.model.cell import Cell
from onceproof.model.errors import ExitCode
from onceproof.model.known_issues import IssueRegistry
from onceproof.model.promise import ANOMALIES
from onceproof.model.sensitivity import Stratum, Tally


class Verdict(StrEnum):
    """The verdicts on a cell (`docs/reading-a-verdict.md`), in the order in which people want to know."""

    sign: str  # next to every colour, so that it can be read without
    meaning: str

    REGRESSION = "regression", "✘✘", "an anomaly that no known issue explains"
    ERROR = "error", "!", "the harness failed; says nothing about Kafka"
    INCONCLUSIVE = "inconclusive", "?", "the evidence does not carry a verdict"
    KNOWN = "known", "✘", "an anomaly, as the registry of known issues expects"
    FIXED = "fixed", "✔✔", "no anomaly, though the registry says affected"
    PROVISIONAL = "provisional", "✔?", "no anomaly at a first look, in too few trials for clean"
    CLEAN = "clean", "✔", "no anomaly in enough exercised trials"
    AVOIDED = "avoided", "○", "the mechanism cannot arise in this variant"

    def __new__(cls, name: str, sign: str = "", meaning: str = "") -> "Verdict":
        """A member whose value is its name."""
        member = str.__new__(cls, name)
        member._value_, member.sign, member.meaning = name, sign, meaning
        return member

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a run if this is its worst verdict."""
        return {
            Verdict.REGRESSION: ExitCode.ANOMALY,
            Verdict.ERROR: ExitCode.ERROR,
            Verdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
        }.get(self, ExitCode.OK)


# A regression outweighs an error (it is proved), an error outweighs what is merely not known.
WORST_FIRST = (Verdict.REGRESSION, Verdict.ERROR, Verdict.INCONCLUSIVE)
UNDECIDED = (Verdict.INCONCLUSIVE, Verdict.ERROR)  # they say nothing about Kafka


@dataclass(frozen=True)
class TrialEvidence:
    """The knowledge about one trial when it is judged.

    `error` is a sentence if the harness failed in any part; then nothing else counts.
    """

    key: str
    seed: int
    exercised: bool = False
    all_steps_tried: bool = False
    reason: str = ""
    anomalies: Mapping[str, int] = field(default_factory=dict)
    unexplained: Mapping[str, int] = field(default_factory=dict)  # of these, witnesses that no known issue explains
    error: str | None = None
    planned: bool = True  # before the first trial of its cell: it was not added because of what others showed
    is_void: bool = False  # it says nothing about Kafka, and was not at fault
    commit: str = ""  # of Kafka Streams, as the instances attested it
    harness: str = ""  # its version
    machine: str = ""  # what kind it is, with its JDK


@dataclass(frozen=True)
class Standing:
    """A planted bug that supports a green: found in `found` of `exercised` trials on the cell's own release.

    `missed` is the probability, at most, that it is found so often and a cell with a bug of its rate is always green.
    """

    name: str
    found: int
    exercised: int
    missed: float


@dataclass(frozen=True)
class CellVerdict:
    """A verdict with its arithmetic: `red` trials showed an anomaly, `counted` were exercised.

    `rated` are those from which a rate may be taken: exercised trials whose number was fixed before the first of them,
    all in one place.
    """

    cell: Cell
    verdict: Verdict
    sentence: str
    red: int
    counted: int
    trials: int
    anomalies: Mapping[str, int]
    issues: tuple[str, ...]
    errors: Mapping[str, str]  # trial -> what failed
    tried: int  # trials that say something, exercised or not
    greens: int  # exercised trials without an anomaly, in its place
    rated: Tally
    hits: int  # of the rated, that show an anomaly of an issue that is expected there: what it counts as a control
    place: Stratum | None  # of its trials; None if none came up
    interval: tuple[float, float] | None = None  # of the rate of red trials, 95 %; None if none counts
    excluded_rate: float | None = None  # of a green: bugs that show so often, or oftener, are excluded with 95 %
    missed: float | None = None  # of the procedure that called it green: the probability that it misses a bug, at most
    plants: tuple[Standing, ...] = ()  # that support a green
    arithmetic: str = ""  # the same in words


def judge(cell: Cell, trials: Sequence[TrialEvidence], registry: IssueRegistry) -> CellVerdict:
    """Judge a cell by rules 1, 2 and 4 of `docs/architecture.md`; only the whole run shows what its green is worth
    (`results.controls`).

    1. A harness failure is `error`; a cell in which no trial was exercised is `inconclusive`, unless the registry
       declares that its variant avoids the mechanism: then it is `avoided`, if the driver tried all its steps.
    2. An anomaly is proof, whether its trial was exercised or not, and whatever became of the other trials:
       `known` where the registry says that this release shows this anomaly, else `regression`.
    3. No anomaly: `clean`, or `fixed` where the registry says that this release is affected. Too few trials for either
       are `provisional` or `inconclusive`.
    """
    sound = [trial for trial in trials if trial.error is None]
    broken = [trial for trial in trials if trial.error is not None]
    red = [trial for trial in sound if is_red(cell, trial.anomalies, registry)]
    exercised = [trial for trial in sound if trial.exercised]
    anomalies: Counter[str] = Counter()
    for trial in red:
        anomalies.update(trial.anomalies)
    issues = tuple(issue.key for issue in registry.find_concerned(cell, anomalies))

    place = next((where for trial in exercised or sound if (where := _place(cell, trial)).is_known), None)
    together = [trial for trial in exercised if place is None or _place(cell, trial) == place]
    rated = [trial for trial in together if trial.planned]
    tally = Tally(sum(trial in red for trial in rated), len(rated))
    provoked = find_expected(cell, registry)
    hits = sum(not provoked.isdisjoint(trial.anomalies) for trial in rated)
    tried = sum(not trial.is_void for trial in sound)
    greens = sum(trial not in red for trial in together)
    verdict, sentence = _decide(cell, sound, broken, red, exercised, anomalies, registry)
    errors = {trial.key: trial.error for trial in broken if trial.error is not None}
    figures = (len(red), len(exercised), len(trials), anomalies, issues, errors, tried, greens, tally, hits)
    return CellVerdict(cell, verdict, sentence, *figures, place)


def _place(cell: Cell, trial: TrialEvidence) -> Stratum:
    return Stratum.of(cell, trial.commit, trial.harness, trial.machine)


def is_red(cell: Cell, anomalies: Iterable[str], registry: IssueRegistry) -> bool:
    """Whether anomalies turn a trial of a cell red: informational ones do not, unless an issue has them here."""
    here = {name for issue in registry.explaining(cell) for name in issue.anomalies}
    return any(name in here or not ANOMALIES[name].informational for name in anomalies)


@dataclass(frozen=True)
class Sighting:
    """The sighting of a trial of the anomalies that are searched for.

    `red` are those that turn it red for it; `others`, in addition, what keeps a trial from being green that shows none.
    """

    red: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def find_expected(cell: Cell, registry: IssueRegistry) -> frozenset[str]:
    """Anomalies of the known issues that are expected to show in a cell."""
    return frozenset(name for issue in registry.affecting(cell) for name in issue.anomalies)


def by_chance(cell: Cell, unexplained: Mapping[str, int], registry: IssueRegistry) -> frozenset[str]:
    """Anomalies that, if a trial of a cell shows them, are incidental: those of incidental issues, which no other
    issue has there, and of which it shows no witness that is `unexplained`.
    """
    names = registry.by_chance(cell) - find_expected(cell, registry)
    return frozenset(name for name in names if not unexplained.get(name))


def sighting(
    cell: Cell,
    anomalies: Collection[str],
    unexplained: Mapping[str, int],
    registry: IssueRegistry,
    wanted: Collection[str] | None = None,
) -> Sighting:
    """Whether a trial of a cell is red for what is searched for.

    An incidental anomaly (`by_chance`) says nothing of anomalies that are wanted by name. Where any is wanted it is
    none of them, and yet the trial is not green: it may hide what else there is.

    Args:
        cell: of the trial.
        anomalies: that it shows.
        unexplained: of these, witnesses that no known issue explains.
        registry: the known issues.
        wanted: the names that are searched for; None: any, but for incidental ones.
    """
    chance = by_chance(cell, unexplained, registry)
    seen = set(anomalies)
    sought = seen - chance if wanted is None else seen.intersection(wanted)
    others = seen - sought if wanted is None else seen - sought - chance
    if is_red(cell, sought, registry):
        return Sighting(red=tuple(sorted(name for name in sought if is_red(cell, [name], registry))))
    return Sighting(others=tuple(sorted(others)) if is_red(cell, others, registry) else ())


def _decide(
    cell: Cell,
    sound: Sequence[TrialEvidence],
    broken: Sequence[TrialEvidence],
    red: Sequence[TrialEvidence],
    exercised: Sequence[TrialEvidence],
    anomalies: Mapping[str, int],
    registry: IssueRegistry,
) -> tuple[Verdict, str]:
    issues = ", ".join(issue.summary for issue in registry.find_concerned(cell, anomalies))
    if red:
        seen = ", ".join(f"{count:,} {name}" for name, count in sorted(anomalies.items()))
        unexplained = ", ".join(_find_unexplained(cell, red, anomalies, registry))
        failed = f" {len(broken)} of its trials failed: {broken[0].error}" if broken else ""
        if unexplained:
            return Verdict.REGRESSION, f"{seen}: no known issue explains {unexplained} on {cell.releases}.{failed}"
        if broken:
            return Verdict.ERROR, f"{seen}, as {issues} explains; but{failed}"
        must_show = [i.must_show.get(cell.scenario, {}).get(cell.variant, ()) for i in registry.affecting(cell)]
        missing = sorted(set().union(*must_show) - set(anomalies))
        if missing:
            return Verdict.INCONCLUSIVE, f"{seen}, but no {', '.join(missing)}, which {issues} must show here."
        return Verdict.KNOWN, f"{seen}: expected, {cell.releases} is affected by {issues}."
    if broken or not sound:
        return Verdict.ERROR, broken[0].error or "" if broken else "No trial was run."
    if not exercised:
        avoidance = registry.avoidance(cell)
        if avoidance is None:
            return Verdict.INCONCLUSIVE, sound[0].reason
        if not all(trial.all_steps_tried for trial in sound):
            return Verdict.INCONCLUSIVE, f"Not all steps were tried: {sound[0].reason}"
        return Verdict.AVOIDED, avoidance.reason
    nothing = f"No anomaly in {len(exercised)} exercised {'trial' if len(exercised) == 1 else 'trials'}"
    if issues:
        return Verdict.FIXED, f"{nothing}, though the registry says that {cell.releases} is affected by {issues}."
    counts = Counter(name for trial in sound for name in trial.anomalies)
    beside = "".join(f" {name} in {count:,}, which alone is no breach." for name, count in sorted(counts.items()))
    return Verdict.CLEAN, f"{nothing}.{beside} {exercised[0].reason}"


def _find_unexplained(
    cell: Cell, red: Sequence[TrialEvidence], anomalies: Mapping[str, int], registry: IssueRegistry
) -> Iterator[str]:
    """The anomalies that no known issue explains: anomalies, or some witnesses of those that an issue has here."""
    here = {name for issue in registry.explaining(cell) for name in issue.anomalies}
    for name, count in sorted(anomalies.items()):
        odd = sum(trial.unexplained.get(name, 0) for trial in red)
        if name not in here:
            yield name
        elif odd:
            yield f"{odd:,} of the {count:,} {name}"


def exit_code(verdicts: Sequence[Verdict]) -> ExitCode:
    """The exit code of a run: 0 if everything is as the registry expects."""
    for verdict in WORST_FIRST:
        if verdict in verdicts:
            return verdict.exit_code
    return ExitCode.OK if verdicts else ExitCode.ERROR
