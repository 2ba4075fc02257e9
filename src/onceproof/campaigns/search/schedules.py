"""The schedules of a search for failures that no scenario looks for, the grammar that they are drawn from, and their
order.

A schedule is a scenario with values of its parameters, a fault among them. A grammar draws one from what scenarios and
faults declare. First each scenario is run as it is by default; then they come equally often, drawn afresh. One that was
run already is seldom run again, so that scenarios with few schedules make room for those with many. All follows from
one seed: the next schedule depends on it and on the schedules before, and on nothing else.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BeforeValidator

Settings = Mapping[str, Any]  # values of parameters, those that are not the default's

STAYS = 0.6  # the probability that a parameter of a schedule that is drawn afresh has its default
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
class DrawableParameters:
    """The parameters that can be drawn of a scenario.

    Attributes:
        scenario: its name.
        domains: of each parameter the values that it may have, the default first.
        variants: of each the values that it sets.
        tidy: makes settings whole: leaves out what matters only to another fault, and adds what this one needs.
        refuse: why a variant cannot be run with these values of parameters in addition to its own, if it cannot.
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
    """Draws schedules of some scenarios, and makes them simpler."""

    stories: Mapping[str, DrawableParameters]

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

    def simpler(self, schedule: Schedule) -> Iterator[Schedule]:
        """Everything that is one reduction away: no fault, one parameter as it is by default, smaller numbers."""
        story = self.stories[schedule.scenario]
        settings = story.settings(schedule)
        # The fault first: without it a finding is another one, and every trial that follows is quicker.
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


class Draws:
    """Chooses the schedule that is tried next.

    Each one that was tried is passed to it in order: with the same ones it chooses the same one next.
    """

    def __init__(self, grammar: Grammar, seed: int, *, uniform: bool = False) -> None:
        """Nothing was tried yet; `uniform` draws each schedule of any scenario, whatever was run before."""
        self._grammar, self._seed, self._uniform = grammar, seed, uniform
        self._tried: Counter[str] = Counter()  # trials, by scenario
        self._known: set[Schedule] = set()  # what was tried, without seeds

    def next(self) -> Schedule:
        """The next schedule."""
        # Not one generator for the whole search: a search that is resumed has no state to take up but its trials.
        rng = random.Random(f"{self._seed}/{self._tried.total()}")
        names = sorted(self._grammar.stories)
        if self._uniform:
            return self._grammar.draw(rng.choice(names), rng)
        if begins := [name for name in names if not self._tried[name]]:
            return self._grammar.stories[rng.choice(begins)].plain(rng.randrange(SEEDS))
        for _ in range(ATTEMPTS):
            drawn = self._grammar.draw(rng.choice(names), rng)
            if replace(drawn, seed=0) not in self._known or rng.random() < AGAIN:
                break
        return drawn

    def add(self, schedule: Schedule) -> None:
        """Take in that a schedule was tried."""
        self._tried[schedule.scenario] += 1
        self._known.add(replace(schedule, seed=0))
