"""Whether the harness still sees on a release: what is looked for, what trials showed of it, and what follows.

A harness that has gone blind reports that all is well, or that Kafka lost what it cannot read any more. So a release
qualifies before it is judged: each thing that the harness goes by is looked for in a trial that must have it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AliasChoices, Field

from onceproof.model.cell import Cell
from onceproof.model.errors import ExitCode
from onceproof.model.json_file import JsonFile


class QualificationPart(StrEnum):
    """The kind of thing that is looked for."""

    DUMP = "dump"  # the brokers' log segments, as `DumpLogSegments` prints them
    PHRASE = "phrase"  # of a log (`model.phrases`)
    EVENT = "event"  # of the application under test
    SCENARIO = "scenario"  # whether it is exercised
    PLANT = "plant"  # whether it loads, alters what it has to, and fires
    CONTROL = "control"  # whether a known issue is still red


class Sight(StrEnum):
    """The outcome of an aim."""

    sign: str

    SEEN = "seen", "✔"
    MISSING = "missing", "✘"  # the harness has to learn it
    FAILED = "failed", "!"  # the harness failed otherwise
    UNKNOWN = "unknown", "?"  # the trials decide nothing
    UNTRIED = "untried", "○"  # no trial can show it here

    def __new__(cls, name: str, sign: str = "") -> "Sight":
        """A member that carries its sign."""
        member = str.__new__(cls, name)
        member._value_, member.sign = name, sign
        return member


@dataclass(frozen=True)
class QualifyingTrial:
    """A trial of a qualification."""

    cell: Cell
    parameters: Mapping[str, Any] = field(default_factory=dict)
    plant: str | None = None

    def __str__(self) -> str:
        settings = ", ".join(
            [*(f"{name}={value}" for name, value in self.parameters.items()), *filter(None, [self.plant])]
        )
        return f"{self.cell.scenario} {self.cell.variant}{f' ({settings})' if settings else ''}"


@dataclass(frozen=True)
class TrialTraces:
    """The traces of one trial."""

    exercised: bool = False
    reason: str = ""  # why, or why not
    phrases: frozenset[str] = frozenset()  # that its logs have, by name
    events: frozenset[str] = frozenset()  # that its timeline has
    entries: Mapping[str, int] = field(default_factory=dict)  # of the log segments, by kind
    promises: Mapping[str, int] = field(default_factory=dict)  # comparisons of each
    anomalies: Mapping[str, int] = field(default_factory=dict)
    unexplained: Mapping[str, int] = field(default_factory=dict)
    fired: int = 0  # how often the plant did
    not_understood: str | None = None  # what Kafka prints, and the harness does not know
    error: str | None = None  # the harness failed in another way
    void: str | None = None  # the machine stood still


@dataclass(frozen=True)
class QualificationRow:
    """The outcome of one thing that was looked for."""

    part: QualificationPart
    name: str
    sight: Sight
    reason: Annotated[str, Field(validation_alias=AliasChoices("reason", "told"))]  # `told` before 0.2.0
    trial: str = ""  # that must show it


@dataclass(frozen=True)
class Aim(ABC):
    """Something that a trial must show."""

    name: str
    trial: QualifyingTrial

    @property
    @abstractmethod
    def part(self) -> QualificationPart:
        """The kind of thing."""

    @abstractmethod
    def evidence(self, seen: TrialTraces) -> str | None:
        """How a trial showed it; None if it did not."""

    @abstractmethod
    def missing(self, seen: TrialTraces) -> str:
        """The evidence that a trial lacks if it did not show it."""

    def row(self, tries: Sequence[TrialTraces]) -> QualificationRow:
        """The verdict of the trials that were made of it."""
        sight, reason = self._judge(tries)
        return QualificationRow(self.part, self.name, sight, reason, str(self.trial))

    def _judge(self, tries: Sequence[TrialTraces]) -> tuple[Sight, str]:
        if shown := next((shown for seen in tries if (shown := self.evidence(seen)) is not None), None):
            return Sight.SEEN, shown
        if unknown := next((seen.not_understood for seen in tries if seen.not_understood), None):
            return Sight.UNKNOWN, f"its trial ended before that: {unknown}"
        whole = [seen for seen in tries if not seen.error and not seen.void]
        if whole:
            return self.sight_if_missing, self.missing(whole[-1])
        if error := next((seen.error for seen in tries if seen.error), None):
            return Sight.FAILED, error
        return Sight.UNKNOWN, next((seen.void for seen in tries if seen.void), None) or "no trial was made"

    @property
    def sight_if_missing(self) -> Sight:
        """The meaning if no trial showed it."""
        return Sight.MISSING


@dataclass(frozen=True)
class DumpAim(Aim):
    """That what `DumpLogSegments` prints is understood: entries of these kinds, and no transaction that looks torn."""

    kinds: tuple[str, ...]
    promises: tuple[str, ...] = ()  # that must have compared something, and found nothing that is not explained
    breaches: frozenset[str] = frozenset()  # their anomalies

    @property
    def part(self) -> QualificationPart:
        """A dump."""
        return QualificationPart.DUMP

    def evidence(self, seen: TrialTraces) -> str | None:
        """How many entries of each kind there are."""
        if seen.not_understood or seen.error or seen.void or any(self._lacks(seen)):
            return None
        return ", ".join(f"{seen.entries[kind]:,} {kind}" for kind in self.kinds)

    def _lacks(self, seen: TrialTraces) -> list[str]:
        lacks = [f"no entry {kind}" for kind in self.kinds if not seen.entries.get(kind)]
        lacks += [f"nothing to compare for {promise}" for promise in self.promises if not seen.promises.get(promise)]
        odd = {name: count for name, count in seen.unexplained.items() if name in self.breaches and count}
        return lacks + [f"{count:,} {name} that nothing explains" for name, count in odd.items()]

    def missing(self, seen: TrialTraces) -> str:
        """The kinds that the entries lack."""
        return f"the log segments show {', '.join(self._lacks(seen))}"

    def _judge(self, tries: Sequence[TrialTraces]) -> tuple[Sight, str]:
        sight, reason = super()._judge(tries)
        unknown = next((seen.not_understood for seen in tries if seen.not_understood), None)
        return (Sight.MISSING, unknown) if unknown and sight is not Sight.SEEN else (sight, reason)


@dataclass(frozen=True)
class PhraseAim(Aim):
    """That a log has a phrase."""

    source: str  # Kafka's class that says it

    @property
    def part(self) -> QualificationPart:
        """A phrase."""
        return QualificationPart.PHRASE

    def evidence(self, seen: TrialTraces) -> str | None:
        """That it has it."""
        return f"by {self.source}" if self.name in seen.phrases else None

    def missing(self, seen: TrialTraces) -> str:
        """That it has not."""
        return f"no log has it: {self.source} words it differently, or does not log it ({seen.reason})"


@dataclass(frozen=True)
class EventAim(Aim):
    """That the application reports an event."""

    source: str  # Kafka's interface that it has it from

    @property
    def part(self) -> QualificationPart:
        """An event."""
        return QualificationPart.EVENT

    def evidence(self, seen: TrialTraces) -> str | None:
        """That it does."""
        return f"by {self.source}" if self.name in seen.events else None

    def missing(self, seen: TrialTraces) -> str:
        """That it does not."""
        return f"no instance reported it: look at {self.source} ({seen.reason})"


@dataclass(frozen=True)
class ScenarioAim(Aim):
    """That a scenario is exercised."""

    @property
    def part(self) -> QualificationPart:
        """A scenario."""
        return QualificationPart.SCENARIO

    def evidence(self, seen: TrialTraces) -> str | None:
        """How it was."""
        return seen.reason if seen.exercised else None

    def missing(self, seen: TrialTraces) -> str:
        """Why it was not."""
        return f"not exercised: {seen.reason}"


@dataclass(frozen=True)
class PlantAim(Aim):
    """That a plant fires in a scenario."""

    altered: tuple[str, ...]  # methods

    @property
    def part(self) -> QualificationPart:
        """A plant."""
        return QualificationPart.PLANT

    def evidence(self, seen: TrialTraces) -> str | None:
        """How often it fired, and what that showed."""
        if not seen.fired:
            return None
        shown = ", ".join(f"{count:,} {name}" for name, count in seen.anomalies.items()) or "no anomaly"
        return f"fired {seen.fired:,} times: {shown}"

    def missing(self, seen: TrialTraces) -> str:
        """That it did not."""
        return f"did not fire, though {', '.join(self.altered)} was altered ({seen.reason})"


@dataclass(frozen=True)
class ControlAim(Aim):
    """That a known issue is red, and explained by its row of the registry."""

    anomalies: tuple[str, ...]

    @property
    def part(self) -> QualificationPart:
        """A positive control."""
        return QualificationPart.CONTROL

    def evidence(self, seen: TrialTraces) -> str | None:
        """The part that was seen."""
        red = {name: seen.anomalies.get(name, 0) - seen.unexplained.get(name, 0) for name in self.anomalies}
        return ", ".join(f"{count:,} {name}" for name, count in red.items() if count > 0) or None

    def missing(self, seen: TrialTraces) -> str:
        """The observation instead."""
        rest = ", ".join(f"{count:,} {name}" for name, count in seen.unexplained.items() if count)
        return f"it does not show: it is fixed there, or not seen any more{f'; unexplained are {rest}' if rest else ''}"

    @property
    def sight_if_missing(self) -> Sight:
        """One alone may be fixed on the release, or show only incidentally."""
        return Sight.UNKNOWN


def rows_of(rows: Sequence[QualificationRow]) -> tuple[QualificationRow, ...]:
    """The rows, by their parts; if no positive control is red, all of them are missing."""
    controls = [row for row in rows if row.part is QualificationPart.CONTROL and row.sight is not Sight.UNTRIED]
    is_blind = bool(controls) and all(row.sight is Sight.UNKNOWN for row in controls)
    judged = [replace(row, sight=Sight.MISSING) if is_blind and row in controls else row for row in rows]
    return tuple(sorted(judged, key=lambda row: list(QualificationPart).index(row.part)))


@dataclass(frozen=True, kw_only=True)
class Qualification(JsonFile):
    """The result of `onceproof release qualify`."""

    schema: int = 1
    run: str
    streams: str
    broker: str
    harness: str  # its version
    scenarios: tuple[str, ...]  # to which it was narrowed; none: all
    trials: int
    seconds: float
    rows: tuple[QualificationRow, ...]

    def of(self, sight: Sight) -> list[QualificationRow]:
        """The rows of which this became."""
        return [row for row in self.rows if row.sight is sight]

    @property
    def doubtful(self) -> list[QualificationRow]:
        """The rows that neither show that the harness sees, nor that it has to learn something."""
        return [row for row in self.rows if row.sight in (Sight.FAILED, Sight.UNKNOWN)]

    @property
    def lessons(self) -> list[str]:
        """The lessons for the harness, a sentence each."""
        return [f"{row.part} {row.name}: {row.reason}" for row in self.of(Sight.MISSING)]

    @property
    def exit_code(self) -> ExitCode:
        """0 the release qualifies, 1 the harness has to learn something, 4 it failed, 3 the trials decide nothing."""
        if self.of(Sight.MISSING):
            return ExitCode.ANOMALY
        if self.of(Sight.FAILED):
            return ExitCode.ERROR
        return ExitCode.INCONCLUSIVE if self.of(Sight.UNKNOWN) or not self.of(Sight.SEEN) else ExitCode.OK
