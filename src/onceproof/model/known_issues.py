"""The registry of known issues (`known_issues.toml`): what is expected, and where each fact comes from."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from onceproof.model.cell import Cell
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.release import Release

LATER = Release(999, 0, 0)  # the last of a range that is open
REGISTRY = Path(__file__).with_name("known_issues.toml")


@dataclass(frozen=True)
class KnownIssue:
    """A row of the registry; ranges are inclusive."""

    key: str
    title: str
    scenario: str
    variants: tuple[str, ...]
    anomalies: tuple[str, ...]
    affected: tuple[tuple[Release, Release], ...]
    fixed: tuple[Release, ...]
    sources: tuple[str, ...]
    # Variant -> the anomalies that a red must show, so that it is what was provoked, and not only its beginning.
    must_show: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Where the application is restarted on another release: the one that must be affected.
    culprit: str = "restarted"

    @property
    def told(self) -> str:
        """Its key, and where it is fixed, for sentences."""
        fixed = " and ".join(str(release) for release in self.fixed)
        return f"{self.key} (fixed in {fixed})" if fixed else self.key

    def concerns(self, cell: Cell) -> bool:
        """Whether it can show in the cell's scenario and variant, on some release."""
        return self.scenario == cell.scenario and cell.variant in self.variants

    def affects(self, cell: Cell) -> bool:
        """Whether it is expected to show in the cell."""
        release = cell.streams if self.culprit == "killed" else cell.running
        return self.concerns(cell) and any(first <= release <= last for first, last in self.affected)


@dataclass(frozen=True)
class Avoidance:
    """A declaration that variants avoid the mechanism of their scenario."""

    scenario: str
    variants: tuple[str, ...]
    releases: tuple[tuple[Release, Release], ...]
    reason: str
    sources: tuple[str, ...]

    def declares(self, cell: Cell) -> bool:
        """Whether it speaks of the cell: the variant, and a release on which it was seen."""
        if self.scenario != cell.scenario or cell.variant not in self.variants:
            return False
        return any(first <= cell.streams <= last for first, last in self.releases)


@dataclass(frozen=True)
class Registry:
    """All that is known before a run."""

    issues: tuple[KnownIssue, ...]
    avoided: tuple[Avoidance, ...]

    def affecting(self, cell: Cell) -> tuple[KnownIssue, ...]:
        """Known issues that are expected to show in a cell."""
        return tuple(issue for issue in self.issues if issue.affects(cell))

    def avoidance(self, cell: Cell) -> Avoidance | None:
        """The declaration that a cell avoids the mechanism, if there is one."""
        return next((row for row in self.avoided if row.declares(cell)), None)


def parse_registry(text: str, name: str = "known_issues.toml") -> Registry:
    """Read a registry.

    Raises:
        HarnessError: it is not TOML, a field is missing, or a range is inverted; names the row.
    """
    row = "the file"
    try:
        data: dict[str, Any] = tomllib.loads(text)
        issues, avoided = [], []
        for entry in data.get("issue", []):
            row = str(entry.get("key", "an issue without key"))
            issues.append(_issue(entry))
        for entry in data.get("avoided", []):
            row = f"avoided {entry.get('scenario')}"
            avoided.append(
                Avoidance(
                    entry["scenario"],
                    tuple(entry["variants"]),
                    _ranges(entry["releases"]),
                    entry["reason"],
                    tuple(entry["sources"]),
                )
            )
    except KeyError as error:
        raise HarnessError(f"{name}: {row} lacks the field {error.args[0]!r}; add it.") from error
    except (ValueError, UsageError) as error:
        raise HarnessError(f"{name}: {row} cannot be read: {error}") from error
    return Registry(tuple(issues), tuple(avoided))


def _ranges(entries: list[dict[str, str]]) -> tuple[tuple[Release, Release], ...]:
    ranges = []
    for entry in entries:
        first = Release.parse(entry["first"])
        last = Release.parse(entry["last"]) if "last" in entry else LATER
        if last < first:
            raise ValueError(f"the range {first} to {last} is inverted; write the older release first.")
        ranges.append((first, last))
    return tuple(ranges)


def _issue(entry: dict[str, Any]) -> KnownIssue:
    return KnownIssue(
        entry["key"],
        entry["title"],
        entry["scenario"],
        tuple(entry["variants"]),
        tuple(entry["anomalies"]),
        _ranges(entry["affected"]),
        tuple(Release.parse(text) for text in entry["fixed"]),
        tuple(entry["sources"]),
        {variant: tuple(names) for variant, names in entry.get("must_show", {}).items()},
        _culprit(entry.get("culprit", "restarted")),
    )


def _culprit(text: str) -> str:
    if text not in ("killed", "restarted"):
        raise ValueError(f"culprit is {text!r}, but must be killed or restarted.")
    return text


@cache
def registry() -> Registry:
    """The registry of this installation."""
    return parse_registry(REGISTRY.read_text(), REGISTRY.name)
