"""The catalogue of plants (`plants.toml`): bugs planted into a release, and the promises that must show them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from onceproof.model.cell import Cell
from onceproof.model.decoding import read_tables
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.explaining import Explanation
from onceproof.model.known_issues import KnownIssue, registry
from onceproof.model.promise import PROMISES
from onceproof.model.release import OLDEST, Release

LATER = Release(999, 0, 0)  # the last of a range that is open
CATALOGUE = Path(__file__).with_name("plants.toml")


@dataclass(frozen=True)
class Claim:
    """That a scenario finds a plant: in which variant, with which parameters, by which promises."""

    scenario: str
    variants: tuple[str, ...]
    promises: tuple[str, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def cell(self, streams: Release, broker: Release) -> Cell:
        """The cell of a release in which it is tried.

        Raises:
            UsageError: a known issue shows in all variants on this release, or may, and explains there whatever the
                plant would show, so that the plant could not be distinguished from it.
        """
        cells = [Cell(self.scenario, variant, streams, broker) for variant in self.variants]
        for cell in cells:
            if not self._find_hiding(cell):
                return cell
        known = self._find_hiding(cells[0])[0]
        raise UsageError(
            f"On {streams} {known.key} shows in {self.scenario} itself, so a plant would look like it; choose a "
            "release without it."
        )

    def _find_hiding(self, cell: Cell) -> list[KnownIssue]:
        """Issues from which it cannot be distinguished in a cell: those that must show there, and incidental ones that
        explain each witness that it has. Its witnesses distinguish it from other incidental issues
        (`model.verdict.by_chance`).
        """
        where = cell.scenario, cell.variant
        by_chance = [
            issue
            for issue in registry().explaining(cell)
            if any(_takes_all(e) and self.breaches(e.anomalies) for e in issue.explanations(*where))
        ]
        return [*registry().affecting(cell), *by_chance]

    def breaches(self, anomalies: Iterable[str]) -> list[str]:
        """Those of the anomalies that break a promise which must show the plant."""
        wanted = {name for promise in self.promises for name in PROMISES[promise].anomalies}
        return sorted(wanted & set(anomalies))


def _takes_all(explanation: Explanation) -> bool:
    """Whether an explanation takes each witness of its anomalies where a fault is injected, or all of the tasks that it
    hit, as far as keys that come again and again allow: it asks for nothing else.
    """
    bare = Explanation(explanation.anomalies)
    unrestricted = replace(explanation, faults=(), variants=None, scenarios=None, struck=False)
    return bool(explanation.faults) and bare == replace(
        unrestricted, open_at=None if unrestricted.open_at == "fault" else unrestricted.open_at
    )


@dataclass(frozen=True)
class Plant:
    """A bug that the agent can plant into Kafka Streams."""

    name: str
    effect: str
    bug: str  # why it is not equivalent to the healthy program
    claims: Annotated[tuple[Claim, ...], Field(validation_alias="claim")] = ()
    first: Release = OLDEST
    last: Release = LATER
    resembles: str | None = None  # JIRA key
    equivalent: Mapping[str, str] = field(default_factory=dict)  # scenario -> why it cannot show there

    def applies(self, release: Release) -> bool:
        """Whether the release has what it alters, and not the bug itself."""
        return release.within(self.first, self.last)

    @property
    def releases(self) -> str:
        """The releases that it applies to, as text."""
        if self.last == LATER:
            return "all" if self.first == OLDEST else f"{self.first} and later"
        return f"{self.first} to {self.last.major}.{self.last.minor}"

    def refuse(self, release: Release) -> str | None:
        """Why it cannot be planted into a release, if it cannot."""
        if self.applies(release):
            return None
        return (
            f"{self.name} cannot be planted into {release}, only into {self.releases}; "
            "`onceproof check plants` lists the others."
        )

    def claim(self, scenario: str) -> Claim | None:
        """The claim about it in a scenario."""
        return next((claim for claim in self.claims if claim.scenario == scenario), None)

    def to_dict(self) -> dict[str, object]:
        """JSON form: name, effect, bug, resembles, first, last, claims, equivalent."""
        return {
            "name": self.name,
            "effect": self.effect,
            "bug": self.bug,
            "resembles": self.resembles,
            "first": str(self.first),
            "last": None if self.last == LATER else str(self.last),
            "claims": [
                {
                    "scenario": claim.scenario,
                    "variants": list(claim.variants),
                    "parameters": dict(claim.parameters),
                    "promises": list(claim.promises),
                }
                for claim in self.claims
            ],
            "equivalent": dict(self.equivalent),
        }


def parse_plants(text: str, name: str = "plants.toml") -> dict[str, Plant]:
    """Read a catalogue.

    Raises:
        HarnessError: it is not TOML; a field is missing or unknown; a promise does not exist; a name comes twice; a
            plant is neither claimed nor declared equivalent anywhere, or both in one scenario. Names the plant.
    """
    [rows] = read_tables(text, name, plant=Annotated[Plant, AfterValidator(_check)]).values()
    plants = {plant.name: plant for plant in rows}
    if twice := next((plant.name for plant in rows if plant is not plants[plant.name]), None):
        raise HarnessError(f"{name}: plant {twice} is there twice; make the two rows one.")
    return plants


def _check(plant: Plant) -> Plant:
    """The same plant.

    Raises:
        ValueError: what it says does not hang together.
    """
    if not plant.claims and not plant.equivalent:
        raise ValueError("no scenario must find it, and none is declared in which it cannot show")
    if both := sorted({claim.scenario for claim in plant.claims} & plant.equivalent.keys()):
        raise ValueError(f"it must be found in {both[0]}, and yet cannot show there")
    if unknown := sorted({name for claim in plant.claims for name in claim.promises} - PROMISES.keys()):
        raise ValueError(f"there is no promise {unknown[0]!r}; docs/reading-a-verdict.md lists them")
    return plant


@cache
def plants() -> dict[str, Plant]:
    """The catalogue of this installation, by name."""
    return parse_plants(CATALOGUE.read_text(), CATALOGUE.name)


def plant(name: str) -> Plant:
    """The plant of this name.

    Raises:
        UsageError: there is none.
    """
    try:
        return plants()[name]
    except KeyError:
        raise UsageError(f"There is no plant {name!r}; choose from {', '.join(plants())}.") from None
