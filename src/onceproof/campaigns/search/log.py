"""The log of a search: a line for each trial as it ends, and what follows from all lines.

`exploration.jsonl` is the truth: it is only added to, a search that was cut short continues from it, and findings are
what its lines say.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from onceproof.campaigns.bisection.boundaries import COLUMNS, Bisected, Probe, row
from onceproof.campaigns.search.schedules import Schedule, Signature
from onceproof.model.cell import Cell, Trial
from onceproof.model.coverage import Span
from onceproof.model.decoding import decode
from onceproof.model.errors import ExitCode, HarnessError
from onceproof.model.json_file import JsonFile, encode, read_json, unwritable, write_json
from onceproof.model.promise import ANOMALIES, PROMISES
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.sensitivity import NOTHING, Tally


class Purpose(StrEnum):
    """The purpose of a trial."""

    SEARCH = "search"  # for something new
    REPEAT = "repeat"  # of the first schedule of a finding, for its rate
    SHRINK = "shrink"  # whether a simpler schedule shows it, too
    RATE = "rate"  # of the smallest schedule
    BISECT = "bisect"  # whether another release shows it, too


@dataclass(frozen=True, kw_only=True)
class SearchRequest(JsonFile):
    """`exploration.json`: what is searched, from which all schedules follow."""

    run: str
    streams: str
    broker: str
    scenarios: tuple[str, ...]
    seed: int
    uniform: bool
    plant: str | None
    harness: str  # its version: another one may see other things
    bisect: bool = False  # whether the releases that show a finding are searched
    settings: tuple[str, ...] = ()  # `name=value` of parameters that are the same in each schedule

    def trial(self, number: int, schedule: Schedule, streams: str | None = None) -> Trial:
        """A trial of the search; on another release, if one is given."""
        on, brokers = Release.parse(streams or self.streams), Release.parse(self.broker)
        cell = Cell(schedule.scenario, schedule.variant, on, brokers)
        return Trial(self.run, cell, number, schedule.seed, dict(schedule.parameters), self.plant)


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One trial of a search, a line of `exploration.jsonl`."""

    number: int
    purpose: Purpose
    schedule: Schedule
    finding: int | None = None  # that it belongs to
    streams: str | None = None  # the release, where a finding is bisected; else that of the search
    marks: Mapping[str, Span] = field(default_factory=dict)  # that it left
    gained: int = 0  # of these and their pairs, what no trial of the search before it had reached
    exercised: bool = False
    reason: str = ""
    anomalies: Mapping[str, int] = field(default_factory=dict)  # none if the trial is not red
    unexplained: Mapping[str, int] = field(default_factory=dict)  # of these, witnesses that no known issue explains
    issues: tuple[str, ...] = ()  # known ones that explain others
    error: str | None = None  # why it says nothing
    seconds: float  # that it took
    at: float  # seconds of searching until it had ended
    command: str  # that runs it again
    folder: str | None = None  # of what it left, if that was kept

    @property
    def is_new(self) -> bool:
        """Whether it shows what no known issue explains; an informational anomaly is none."""
        return any(not ANOMALIES[name].informational for name in self.unexplained)

    @property
    def signature(self) -> Signature | None:
        """The signature that it shares with reds that look like it; None if it is not red."""
        if not self.anomalies:
            return None
        names = self.unexplained if self.is_new else self.anomalies
        return Signature(
            self.schedule.scenario, tuple(sorted(name for name in names if not ANOMALIES[name].informational))
        )

    def looks_like(self, other: "Tried") -> bool:
        """Whether both are new, of one scenario, and have an anomaly in common."""
        one, two = self.signature, other.signature
        return bool(one and two and self.is_new and other.is_new and one.is_like(two))

    @property
    def promises(self) -> tuple[str, ...]:
        """Those that its signature breaks, of any scenario."""
        names = self.signature.anomalies if self.signature else ()
        return tuple(name for name, promise in PROMISES.items() if not set(promise.anomalies).isdisjoint(names))

    @property
    def said(self) -> str:
        """The result in one line: error, new, known, green, or not exercised."""
        if self.error:
            return self.error
        if self.is_new:
            return f"RED: {_counts(self.unexplained)}, which no known issue explains"
        if self.anomalies:
            return f"known: {', '.join(self.issues)} ({_counts(self.anomalies)})"
        return "green" if self.exercised else "not exercised"


def _counts(anomalies: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(anomalies.items()))


def read_lines(path: Path) -> list[Tried]:
    """The trials of a search; a last line that was cut off is not missed.

    Raises:
        HarnessError: it cannot be read, or is damaged.
    """
    try:
        whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
    except OSError as error:
        raise HarnessError(f"{path} could not be read ({error.strerror}): make it readable.") from error
    lines = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            tried = json.loads(line)
            if isinstance(tried, dict):
                tried.pop("parent", None)  # versions that varied schedules wrote it
            lines.append(decode(Tried, tried))
        except ValueError as error:
            raise HarnessError(f"{path} is damaged in line {number}: {error}.") from error
    return lines


class SearchLog:
    """The lines of a search, in memory and in their file."""

    def __init__(self, path: Path) -> None:
        """Continue with what the file has, without what was cut off.

        Raises:
            HarnessError: it cannot be read or written, or is damaged.
        """
        self._path = path
        self.lines = read_lines(path)
        try:
            if path.exists():
                os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
        except OSError as error:
            raise unwritable(error, path) from error

    def add(self, tried: Tried) -> None:
        """Keep a further line.

        Raises:
            HarnessError: the disk is full or read-only.
        """
        self.lines.append(tried)
        try:
            with self._path.open("a") as file:
                file.write(json.dumps(encode(tried)) + "\n")
        except OSError as error:
            raise unwritable(error, self._path) from error


@dataclass(frozen=True, kw_only=True)
class KnownTrial:
    """A known issue that the search came upon."""

    issues: tuple[str, ...]
    trials: int
    anomalies: Mapping[str, int]  # of its first trial
    after: float  # seconds until then
    command: str  # that runs it again


@dataclass(frozen=True, kw_only=True)
class Finding(JsonFile):
    """`finding.json`: reds of one signature that no known issue explains."""

    number: int
    streams: str
    broker: str
    plant: str | None
    scenario: str
    promises: tuple[str, ...]
    anomalies: Mapping[str, int]  # witnesses in the first trial, that nothing explains
    issues: tuple[str, ...]  # known ones that explain others of them
    after: float  # seconds of searching until it was found
    trials_before: int
    first: str  # the command of the first trial
    rate: Tally  # of repetitions of the first schedule, which itself does not count
    is_settled: bool  # whether it was repeated and shrunk to the end
    variant: str  # of the smallest schedule that showed it
    parameters: Mapping[str, Any]  # of that, in addition to the variant's
    command: str  # the same, as a trial that was red
    smallest_rate: Tally  # of the smallest, without the trial by which it was found
    others: int  # further schedules of the search that look like it
    folder: str | None  # of what the trial left that shows it
    releases: Bisected | None = None  # that show it, by as many trials as there were so far; None if not bisected

    @property
    def title(self) -> str:
        """The anomalies, with scenario and release."""
        planted = f" with the planted bug {self.plant}" if self.plant else ""
        return f"{', '.join(self.anomalies)} in {self.scenario} on Kafka Streams {self.streams}{planted}"

    @property
    def bisected_by(self) -> str:
        """The schedule that shows it oftener, `smallest` or `first`: by that it is bisected."""
        small, first = self.smallest_rate, self.rate
        return "smallest" if small.red and small.red * first.counted >= first.red * small.counted else "first"

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.number}-{self.scenario}-{next(iter(self.anomalies))}"

    @property
    def markdown(self) -> str:
        """`finding.md`."""
        sentences = [
            f"- `{name}`: {ANOMALIES[name].sentence} {count:,} of them." for name, count in self.anomalies.items()
        ]
        smallest = Schedule(self.scenario, self.variant, tuple(self.parameters.items()), 0).summary
        promises = "\n".join(f"- {name}: {PROMISES[name].sentence}" for name in self.promises)
        state = (
            ("Nothing that is one reduction away showed it." if self.rate.red else "So it was not shrunk.")
            if self.is_settled
            else "The time was up before it was repeated and shrunk to the end; "
            "`onceproof issue explore --resume` continues."
        )
        return f"""# {self.title}

No row of the registry of known issues explains it. That alone makes it no bug of Kafka: look at the evidence first.

{chr(10).join(sentences)}

The promises that are broken:

{promises}

**The smallest schedule that showed it**: {smallest}. Red in {_of(self.smallest_rate)}. {state}

```
{self.command}
```

**The first**: found in trial {self.trials_before + 1}, after {self.after:,.0f} s; red in {_of(self.rate)}.
{self.others:,} further schedules of the search look like it.

```
{self.first}
```
{"".join(_releases(self.releases, self.bisected_by)) if self.releases else ""}
Brokers {self.broker}. What the trial left: `{self.folder or "not kept"}`.
"""


def _releases(of: Bisected, by: str) -> Iterator[str]:
    yield f"\n**The releases that show it**, by {of.trials:,} trials of the {by} schedule: {of.summary}\n\n"
    if of.boundaries:
        yield f"| {' | '.join(name.replace('_', ' ') for name in COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n"
        yield from (f"| {' | '.join(row(boundary))} |\n" for boundary in of.boundaries)
    yield f"\nGood: {', '.join(of.good) or 'none'}.\n"
    yield from (f"Not known: {', '.join(releases)}: {why}\n" for why, releases in of.why_unknown.items())


def _of(rate: Tally) -> str:
    return f"{rate.red} of {rate.counted} further trials"


@dataclass(frozen=True)
class ExplorationFolder:
    """The folder of a search; its trials lie in it as in that of a run."""

    path: Path

    @property
    def run(self) -> RunFolder:
        """The folder of its trials."""
        return RunFolder(self.path)

    @property
    def asked_file(self) -> Path:
        """The file with the request of the search."""
        return self.path / "exploration.json"

    @property
    def log_file(self) -> Path:
        """A line for each trial."""
        return self.path / "exploration.jsonl"

    @property
    def spent(self) -> float:
        """Seconds of searching so far.

        Raises:
            HarnessError: its lines are damaged.
        """
        lines = read_lines(self.log_file)
        return lines[-1].at if lines else 0.0

    @property
    def nights_file(self) -> Path:
        """In which nights was searched."""
        return self.path / "nights.json"

    @property
    def nights(self) -> dict[str, float]:
        """The seconds of searching before each night; none if no night asked for it."""
        return dict(read_json(self.nights_file)) if self.nights_file.exists() else {}

    def sum_spent_before(self, night: str) -> float:
        """Seconds of searching before a night; all of them if it has not begun."""
        return self.nights.get(night, self.spent)

    def begin(self, night: str) -> None:
        """Note where a night continues, if that was not done."""
        if night not in (nights := self.nights):
            write_json(self.nights_file, {**nights, night: self.spent})

    @property
    def findings(self) -> Path:
        """The folder of the folders of findings."""
        return self.path / "findings"

    def finding(self, finding: Finding) -> Path:
        """The folder of a finding."""
        return self.findings / finding.name


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """The form of `issue explore --json`: what a search came to so far."""

    schema: int = 1  # it changes when a field goes or means something else, not when one is added
    run: str
    streams: str
    broker: str
    scenarios: tuple[str, ...]
    left_out: Mapping[str, str]  # what cannot be searched here, and why
    seed: int
    uniform: bool
    settings: tuple[str, ...]  # `name=value` of parameters that are the same in each schedule
    plant: str | None
    seconds: float
    trials: int
    searched: int  # of these, trials for something new
    exercised: int
    errors: int  # trials that say nothing
    coverage: int  # marks and pairs that were reached, of each scenario
    known: tuple[KnownTrial, ...]
    findings: tuple[Finding, ...]
    folder: str

    @classmethod
    def of(
        cls,
        folder: ExplorationFolder,
        asked: SearchRequest,
        lines: Sequence[Tried],
        findings: Iterable[Finding],
        seconds: float | None = None,
        left_out: Mapping[str, str] = MappingProxyType({}),
    ) -> "Exploration":
        """The summary of the lines of a search; if it is not known how long it took, until the last one."""
        searched = [line for line in lines if line.purpose is Purpose.SEARCH]
        return cls(
            run=asked.run,
            streams=asked.streams,
            broker=asked.broker,
            scenarios=asked.scenarios,
            left_out=left_out,
            seed=asked.seed,
            uniform=asked.uniform,
            settings=asked.settings,
            plant=asked.plant,
            seconds=round(seconds if seconds is not None else lines[-1].at if lines else 0.0, 1),
            trials=len(lines),
            searched=len(searched),
            exercised=sum(line.exercised for line in lines),
            errors=sum(line.error is not None for line in lines),
            coverage=sum(line.gained for line in searched),
            known=tuple(collect_known(searched)),
            findings=tuple(findings),
            folder=str(folder.path),
        )

    @property
    def exit_code(self) -> ExitCode:
        """1 with a finding, 0 without, if trials were exercised at all."""
        if self.findings:
            return ExitCode.ANOMALY
        return ExitCode.OK if self.exercised else ExitCode.INCONCLUSIVE


def collect_known(lines: Iterable[Tried]) -> Iterator[KnownTrial]:
    """The known issues that a search came upon, in this order."""
    reds = [line for line in lines if line.anomalies and not line.is_new]
    trials = Counter(line.issues for line in reds)
    for issues, count in trials.items():
        first = next(line for line in reds if line.issues == issues)
        yield KnownTrial(issues=issues, trials=count, anomalies=first.anomalies, after=first.at, command=first.command)


def of_finding(lines: Iterable[Tried], number: int, purpose: Purpose, like: Schedule | None = None) -> list[Tried]:
    """The trials of a finding for a purpose; of a schedule, whatever their seeds, if one is given."""
    return [
        line
        for line in lines
        if (line.finding, line.purpose) == (number, purpose) and (like is None or like.is_like(line.schedule))
    ]


def probe(line: Tried, first: Tried) -> Probe:
    """The bearing of a trial on some release on a finding: one that shows anything else is neither good nor bad."""
    why = line.said if line.error or line.anomalies else line.reason
    return Probe(first.looks_like(line), line.exercised and not line.anomalies, why)


def rate_of(lines: Sequence[Tried], first: Tried) -> Tally:
    """How many of them show what the first does, of those that say anything."""
    counted = [line for line in lines if line.error is None and (line.exercised or line.anomalies)]
    return Tally(sum(first.looks_like(line) for line in counted), len(counted)) if counted else NOTHING
