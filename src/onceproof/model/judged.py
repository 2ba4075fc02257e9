"""The result of a user application on each release: the form of `app run --json`."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from onceproof.model.anomaly import Witness
from onceproof.model.causes import Cause
from onceproof.model.cell import FAULT, app_command
from onceproof.model.errors import ExitCode
from onceproof.model.files import FaultOutcome, Planted
from onceproof.model.json_file import JsonFile
from onceproof.model.known_issues import KnownIssue


class Judgement(StrEnum):
    """The judgement on a release, the worst first."""

    RED = "red"
    INCONCLUSIVE = "inconclusive"
    GREEN = "green"

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the command."""
        return {
            Judgement.RED: ExitCode.ANOMALY,
            Judgement.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
            Judgement.GREEN: ExitCode.OK,
        }[self]


@dataclass(frozen=True)
class Output:
    """How far runs without a fault agree on an output, see `model.files.Declared`."""

    agreed: str
    ignored: tuple[str, ...] = ()
    differ: tuple[str, ...] = ()  # attributes that were to be compared, and on which they do not agree


@dataclass(frozen=True)
class PlantedControl:
    """A trial without a fault, with a planted bug, and the promises of each output that it broke."""

    plant: str
    fired: int
    broke: Mapping[str, tuple[str, ...]]  # by topic
    folder: str
    failed: str | None = None  # what Kafka or the application did that ended it: then nothing was compared

    @property
    def says_something(self) -> bool:
        """Whether the bug took effect, and its outputs are whole."""
        return self.fired > 0 and self.failed is None


@dataclass(frozen=True)
class Explaining:
    """A known issue that explains witnesses of an application."""

    key: str
    title: str
    fixed: tuple[str, ...]  # releases, each the first of its line
    remedy: str
    url: str | None

    @classmethod
    def of(cls, issue: KnownIssue) -> "Explaining":
        """A row of the registry."""
        return cls(issue.key, issue.title, tuple(map(str, issue.fixed)), issue.remedy, issue.url)

    @property
    def summary(self) -> str:
        """Its key, and where it is fixed."""
        return f"{self.key}, {'fixed in ' if self.fixed else 'not fixed yet'}{' and '.join(self.fixed)}"


@dataclass(frozen=True, kw_only=True)
class OnRelease:
    """The result of an application on one release."""

    streams: str
    restart_on: str | None  # the release to which it went over instance by instance
    judgement: Judgement
    reason: str
    exercised: bool
    anomalies: Mapping[str, int]  # witnesses of each
    witnesses: tuple[Witness, ...]  # the first of each anomaly
    promises: Mapping[str, int]  # comparisons that each had
    not_looked_at: Mapping[str, str]  # promises, and why
    outputs: Mapping[str, Output]  # by topic
    records: int  # in its inputs
    plant: Planted | None
    fault: FaultOutcome | None
    seconds: float  # of all its trials
    folders: tuple[str, ...]  # of its trials: two without the fault, and the one with it
    issues: tuple[Explaining, ...] = ()  # known ones that explain witnesses
    causes: tuple[Cause, ...] = ()  # in the application itself, which explain others
    unexplained: Mapping[str, int] = field(default_factory=dict)  # witnesses that nothing explains, by anomaly
    concerned: tuple[
        str, ...
    ] = ()  # keys of known issues that the release has for such a topology, and explain nothing
    advice: str = ""  # what to do next; empty if nothing is left to do
    controls: tuple[PlantedControl, ...] = ()  # that were asked for
    # Promises by topic that no control broke, though all of them took effect.
    vacuous: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def releases(self) -> str:
        """The release, or both, for people."""
        return f"{self.streams} → {self.restart_on}" if self.restart_on else self.streams

    @property
    def is_known(self) -> bool:
        """Whether it is red, and known issues explain each witness."""
        return self.judgement is Judgement.RED and bool(self.issues) and not self.unexplained and not self.causes

    @property
    def explained(self) -> str:
        """Whether a red is known, and by which issues, or of the application's own making; empty if it is not red."""
        if self.judgement is not Judgement.RED:
            return ""
        known = "; ".join(issue.summary for issue in self.issues)
        if self.unexplained or not (self.issues or self.causes):
            return "unknown"
        if not self.causes:
            return f"known: {known}"
        own = f"no release is to blame: {'; '.join(cause.summary for cause in self.causes)}"
        return f"known: {known}; and {own}" if known else own


@dataclass(frozen=True, kw_only=True)
class AppAnswer(JsonFile):
    """`app.json`: the form of `app run --json`."""

    schema: int = 2  # it changes when a field goes or means something else, not when one is added
    application: str  # its folder
    class_name: str  # or its command
    broker: str
    fault: str
    parameters: Mapping[str, Any]  # that were set
    seed: int
    releases: tuple[OnRelease, ...]

    @property
    def name(self) -> str:
        """The application's: that of its folder."""
        return Path(self.application).name

    @property
    def command(self) -> str:
        """The command that runs it again, with the same records and schedule."""
        first = self.releases[0]
        parameters = {**self.parameters, FAULT: self.fault}
        words = app_command(
            self.application,
            [release.streams for release in self.releases],
            first.restart_on,
            self.broker,
            self.seed,
            parameters,
            first.plant.name if first.plant else None,
        )
        words += ["--controls"] if any(release.controls for release in self.releases) else []
        return shlex.join(words)

    @property
    def judgement(self) -> Judgement:
        """The worst of all releases."""
        return _worst(self.releases)

    def exit_code(self, *, known_is_ok: bool = False) -> ExitCode:
        """The exit code of the command; a red that known issues explain counts as green if that is asked for."""
        return _worst(release for release in self.releases if not (known_is_ok and release.is_known)).exit_code


def _worst(releases: Iterable[OnRelease]) -> Judgement:
    found = {release.judgement for release in releases}
    return next((judgement for judgement in Judgement if judgement in found), Judgement.GREEN)
