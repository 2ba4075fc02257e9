"""What is said of an application of people's own on each release: the form of `app run --json`."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from onceproof.model.anomaly import Witness
from onceproof.model.cell import FAULT, app_command
from onceproof.model.errors import ExitCode
from onceproof.model.files import Planted, Suffered
from onceproof.model.json_file import JsonFile


class Judgement(StrEnum):
    """What a release is found to be, the worst first."""

    RED = "red"
    INCONCLUSIVE = "inconclusive"
    GREEN = "green"

    @property
    def exit_code(self) -> ExitCode:
        """What the command returns."""
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


@dataclass(frozen=True)
class Control:
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


@dataclass(frozen=True, kw_only=True)
class OnRelease:
    """What an application showed on one release."""

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
    fault: Suffered | None
    seconds: float  # of all its trials
    folders: tuple[str, ...]  # of its trials: two without the fault, and the one with it
    controls: tuple[Control, ...] = ()  # that were asked for
    # Promises by topic that no control broke, though all of them took effect.
    vacuous: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def releases(self) -> str:
        """The release, or both, for people."""
        return f"{self.streams} → {self.restart_on}" if self.restart_on else self.streams


@dataclass(frozen=True, kw_only=True)
class AppAnswer(JsonFile):
    """`app.json`: the form of `app run --json`."""

    schema: int = 1  # it changes when a field goes or means something else, not when one is added
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
            [one.streams for one in self.releases],
            first.restart_on,
            self.broker,
            self.seed,
            parameters,
            first.plant.name if first.plant else None,
        )
        words += ["--controls"] if any(one.controls for one in self.releases) else []
        return shlex.join(words)

    @property
    def judgement(self) -> Judgement:
        """The worst of all releases."""
        found = {one.judgement for one in self.releases}
        return next(judgement for judgement in Judgement if judgement in found)
