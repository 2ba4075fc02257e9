"""The search for failures that no scenario looks for: schedules, the grammar they are drawn from, and what steers the
draw.

A schedule is a scenario with values of its parameters, a fault among them. A grammar draws one from what scenarios and
faults declare, and varies one that is there. First each scenario is run as it is by default; then they come equally
often. The corpus keeps the schedules that reached something new (`model.coverage`) and has those varied that reach what
few others do; schedules that show what is known already, or that were not exercised, are varied less, and one that was
run already is seldom run again, so that scenarios with little to vary make room. All follows from one seed: the next
schedule depends on it and on what was reached before, and on nothing else.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BeforeValidator

Settings = Mapping[str, Any]  # values of parameters, those that are not the default's

STAYS = 0.6  # the probability that a parameter of a schedule that is drawn afresh has its default
AFRESH = 0.25  # the share of schedules that are drawn afresh, although there are some to vary
UNEXERCISED = 0.25  # how often a schedule is varied that was not exercised, beside one that was
CHANGES = 3  # parameters that are changed at once, at most
ATTEMPTS = 100  # at a schedule that can be run
AGAIN = 0.1  # how often a schedule is taken that was run before: not every failure shows each time
SEEDS = 2**31


def _by_name(values: object) -> object:
    """Parameters of a schedule in JSON as pairs."""
    return tuple(values.items()) if isinstance(values, dict) else values


@dataclass(frozen=True)
class Schedule:
    """The schedule of one trial of a search; `parameters` are those that differ from the variant's."""

    scenario: str
    variant: str
    parameters: Annotated[tuple[tuple[str, Any], ...], BeforeValidator(_by_name)]  # by name
    seed: int

    def to_dict(self) -> dict[str, object]:
        """JSON form: scenario, variant, parameters, seed."""
        return {**vars(self), "parameters": dict(self.parameters)}

    def is_like(self, other: "Schedule") -> bool:
        """Whether they are the same but for the seed."""
        return replace(self, seed=0) == replace(other, seed=0)

    @property
    def summary(self) -> str:
        """For people, without its seed."""
        return " ".join([self.scenario, self.variant, *(f"{name}={value}" for name, value in self.parameters)])


@dataclass(frozen=True)
class Story:
    """The parameters that can be drawn of a scenario.

    Attributes:
        scenario: its name.
        domains: of each parameter the values that it may have, the default first.
        variants: of each the values that it sets.
        tidy: makes settings whole: leaves out what matters only to another fault, and adds what this one needs.
        refuse: why a variant cannot be run with these values of parameters beside its own, if it cannot.
        sizes: parameters that are halved where a schedule is made smaller, each with the least.
    """

    scenario: str
    domains: Mapping[str, Sequence[Any]]
    variants: Mapping[str, Settings] = field(default_factory=lambda: {"DEFAULT_CONFIG": {}})
    tidy: Callable[[Settings], Settings] = dict
    refuse: Callable[[str, Settings], str | None] = lambda _variant, _settings: None
    sizes: Mapping[str, int] = field(default_factory=dict)

    def schedule(self, settings: Settings, seed: int) -> Schedule | None:
        """The schedule of these settings, by the name of the variant that has most of them; None if it is refused."""
        whole = self.tidy(settings)
        plain = {name: values[0] for name, values in self.domains.items()}
        chosen = {name: value for name, value in whole.items() if value != plain.get(name)}
        fitting = [name for name, sets in self.variants.items() if sets.items() <= chosen.items()]
        # The first of several. Where none fits, the first of all: what it sets is set back.
        variant = max(fitting, key=lambda name: len(self.variants[name]), default=next(iter(self.variants)))
        as_it_is = {**plain, **self.variants[variant]}
        wanted = {**plain, **chosen}
        left = {name: wanted[name] for name in sorted(wanted) if wanted[name] != as_it_is.get(name)}
        if self.refuse(variant, left):
            return None
        return Schedule(self.scenario, variant, tuple(left.items()), seed)

    def plain(self, seed: int) -> Schedule:
        """The scenario as it is by default, but for what is the same in each schedule."""
        name, sets = next(iter(self.variants.items()))
        return self.schedule(sets, seed) or Schedule(self.scenario, name, (), seed)

    def settings(self, schedule: Schedule) -> dict[str, Any]:
        """All settings of a schedule, the variant's among them."""
        return {**self.variants[schedule.variant], **dict(schedule.parameters)}

    def is_within(self, one: Schedule, other: Schedule) -> bool:
        """Whether a schedule has each setting of `one`, whatever else it sets, but for sizes, which name no cause."""
        other_settings = self.settings(other)
        return all(
            other_settings.get(name, self.domains.get(name, (None,))[0]) == value
            for name, value in self.settings(one).items()
            if name not in self.sizes
        )


@dataclass(frozen=True)
class Grammar:
    """Draws and varies schedules of some scenarios."""

    stories: Mapping[str, Story]

    def draw(self, scenario: str, rng: random.Random) -> Schedule:
        """One of a scenario, afresh; as it is by default if no other can be run."""
        story = self.stories[scenario]
        for _ in range(ATTEMPTS):
            settings = {
                name: rng.choice(values[1:])
                for name, values in story.domains.items()
                if len(values) > 1 and rng.random() > STAYS
            }
            if schedule := story.schedule(settings, rng.randrange(SEEDS)):
                return schedule
        return story.plain(rng.randrange(SEEDS))

    def vary(self, schedule: Schedule, rng: random.Random) -> Schedule:
        """The same with some parameters changed, and another seed; with another seed only if nothing can be changed."""
        story = self.stories[schedule.scenario]
        before = story.settings(schedule)
        names = [name for name, values in story.domains.items() if len(values) > 1]
        seed = rng.randrange(SEEDS)
        for _ in range(ATTEMPTS if names else 0):
            settings = dict(before)
            for name in rng.sample(names, rng.randint(1, min(CHANGES, len(names)))):
                values = story.domains[name]
                settings[name] = rng.choice([value for value in values if value != before.get(name, values[0])])
            varied = story.schedule(settings, seed)
            if varied and story.settings(varied) != before:
                return varied
        return Schedule(schedule.scenario, schedule.variant, schedule.parameters, seed)

    def simpler(self, schedule: Schedule) -> Iterator[Schedule]:
        """Everything that is one reduction away: no fault, one parameter as it is by default, smaller numbers."""
        story = self.stories[schedule.scenario]
        settings = story.settings(schedule)
        fewer = [
            {other: value for other, value in settings.items() if other != name}
            for name in sorted(settings, key=lambda name: (name != "fault", name))
        ]
        for name, least in story.sizes.items():
            value = settings.get(name, story.domains[name][0])
            fewer += [{**settings, name: less} for less in dict.fromkeys((least, value // 2)) if least <= less < value]
        for candidate in fewer:
            reduced = story.schedule(candidate, schedule.seed)
            if reduced and reduced != schedule:
                yield reduced


@dataclass(frozen=True)
class Signature:
    """The signature of a red: the scenario, and the anomalies."""

    scenario: str
    anomalies: tuple[str, ...]

    def is_like(self, other: "Signature") -> bool:
        """Whether they are of one scenario and have an anomaly in common: a bug does not show all of it each time."""
        return self.scenario == other.scenario and not set(self.anomalies).isdisjoint(other.anomalies)


@dataclass(frozen=True)
class Pick:
    """The choice of the corpus: a schedule, and which trial (from 1 on) it is a variation of, if it is one."""

    schedule: Schedule
    parent: int | None = None


@dataclass
class _Kept:
    schedule: Schedule
    reached: frozenset[str]
    signature: Signature | None
    exercised: bool
    varied: int = 0


class Corpus:
    """Chooses what is tried next.

    Each trial is passed to it in order: with the same trials it chooses the same one next.
    """

    def __init__(self, grammar: Grammar, seed: int, *, uniform: bool = False) -> None:
        """Nothing was tried yet; `uniform` draws each schedule afresh, whatever the ones before have reached."""
        self._grammar, self._seed, self._uniform = grammar, seed, uniform
        self._tried: Counter[str] = Counter()  # trials, by scenario
        self._known: set[Schedule] = set()  # what was tried, without seeds
        self._kept: dict[int, _Kept] = {}
        self._seen: Counter[str] = Counter()  # trials that reached it, by scenario
        self._shown: Counter[Signature] = Counter()

    @property
    def coverage(self) -> int:
        """How much was reached in all: marks and pairs, of each scenario."""
        return len(self._seen)

    def next(self) -> Pick:
        """The next schedule."""
        rng = random.Random(f"{self._seed}/{self._tried.total()}")
        names = sorted(self._grammar.stories)
        if self._uniform:
            return Pick(self._grammar.draw(rng.choice(names), rng))
        if begins := [name for name in names if not self._tried[name]]:
            return Pick(self._grammar.stories[rng.choice(begins)].plain(rng.randrange(SEEDS)))
        for _ in range(ATTEMPTS):
            pick = self._pick(rng.choice(names), rng)
            if replace(pick.schedule, seed=0) not in self._known or rng.random() < AGAIN:
                break
        return pick

    def _pick(self, scenario: str, rng: random.Random) -> Pick:
        numbers = [number for number, kept in self._kept.items() if kept.schedule.scenario == scenario]
        if not numbers or rng.random() < AFRESH:
            return Pick(self._grammar.draw(scenario, rng))
        [parent] = rng.choices(numbers, [self._energy(self._kept[number]) for number in numbers])
        return Pick(self._grammar.vary(self._kept[parent].schedule, rng), parent)

    def _energy(self, kept: _Kept) -> float:
        """High where something was reached that few trials reach.

        Less the more it was varied, the more trials showed what it did, and if it was not exercised.
        """
        rare = sum(1 / self._seen[item] for item in kept.reached)
        shown = self._shown[kept.signature] if kept.signature else 0
        return rare * (1 if kept.exercised else UNEXERCISED) / (1 + kept.varied) / (1 + shown) ** 2

    def learn(
        self, pick: Pick, reached: frozenset[str], signature: Signature | None = None, *, exercised: bool = True
    ) -> frozenset[str]:
        """Take in what a trial of the pick reached, and the signature of its red; returns what nothing reached before.

        What scenarios reach is kept apart: it is another application.
        """
        self._tried[pick.schedule.scenario] += 1
        self._known.add(replace(pick.schedule, seed=0))
        chosen = frozenset(f"{pick.schedule.scenario}: {item}" for item in reached)
        gained = chosen - self._seen.keys()
        self._seen.update(chosen)
        if signature:
            self._shown[signature] += 1
        if pick.parent is not None:
            self._kept[pick.parent].varied += 1
        if gained:
            self._kept[self._tried.total()] = _Kept(pick.schedule, chosen, signature, exercised)
        return gained
