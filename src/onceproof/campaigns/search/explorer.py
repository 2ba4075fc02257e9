"""Searches a release for unknown failures: runs schedules that are drawn, and follows up what is red.

A red that no known issue explains is repeated for its rate, then shrunk to a smallest schedule that still shows it, and
written as a finding; one that a known issue explains is counted. Trials are run one after the other, and each has its
line in `exploration.jsonl` as soon as it has ended; whatever is cut short continues from that file, and a trial that
was torn away is run again.
"""

import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import KafkaException
from filelock import FileLock, Timeout

from onceproof.campaigns.bisection.boundaries import Bisected, Bisection, lines_of
from onceproof.campaigns.search.grammar import refusal, story
from onceproof.campaigns.search.log import (
    Exploration,
    ExplorationFolder,
    Finding,
    Purpose,
    SearchLog,
    SearchRequest,
    Tried,
    of_finding,
    probe,
    rate_of,
)
from onceproof.campaigns.search.schedules import Draws, Grammar, Schedule
from onceproof.campaigns.shrinking.reductions import shrink
from onceproof.faults import partition
from onceproof.harness import harness_version
from onceproof.installation import Installation
from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.lab.external_brokers import needs_own_cluster, own_cluster
from onceproof.lab.topics import ApplicationTopics
from onceproof.lab.toxiproxy import require_toxiproxy
from onceproof.lab.trial import run_alone
from onceproof.model.cell import Trial
from onceproof.model.coverage import name_reached, spans
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import Outcome, Reading
from onceproof.model.json_file import replacing
from onceproof.model.known_issues import registry
from onceproof.model.matrices import RISK
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.model.timeline import read_timeline
from onceproof.model.verdict import is_red
from onceproof.scenarios import SCENARIOS, scenario
from onceproof.scenarios.explaining import find_concerned_in

REPEATED = 3  # trials of a schedule for its rate
TRIES = 3  # trials of a simpler schedule in one of which it must be red
BISECTED = 100  # trials of the bisection of a finding, at most
BROKEN = 5  # trials that fail one after the other, after which something must be wrong here


class TrialBench(Protocol):
    """Where trials are run."""

    def __call__(self, trial: Trial, folder: TrialFolder) -> Outcome:
        """Run one.

        Raises:
            UsageError, HarnessError: it could not be run to its end.
        """


def search_version(scenarios: Sequence[str]) -> str:
    """The version of the harness for a search in scenarios: what draws schedules counts, too."""
    return harness_version(*scenarios, beside=Path(__file__).parent)


def read_request(folder: ExplorationFolder) -> SearchRequest:
    """The request of the search that was begun in a folder.

    Raises:
        UsageError: none was, or by another version of Onceproof, which may see other things.
    """
    asked = SearchRequest.read_known(folder.asked_file)
    if asked is None:
        raise UsageError(f"{folder.path} is no search to continue; name one of {folder.path.parent}, or `last`.")
    if asked.harness != (here := search_version(asked.scenarios)):
        raise UsageError(
            f"The search {asked.run} was begun by {asked.harness}, and this is {here}, which may see "
            "other things: begin another one."
        )
    return asked


@contextmanager
def hold(folder: ExplorationFolder) -> Iterator[None]:
    """Keep others from continuing a search for the time of a `with` block; the kernel ends that with the process.

    Raises:
        UsageError: another process is searching it.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder.path / "lock", blocking=False):
            yield
    except Timeout:
        raise UsageError(f"The search {folder.path.name} is under way; wait for it, or begin another one.") from None


def last_of(root: Path) -> ExplorationFolder:
    """The search that was begun last.

    Raises:
        UsageError: there is none.
    """
    begun = sorted(file.parent for file in root.glob("*/exploration.json"))
    if not begun:
        raise UsageError(f"There is no search in {root} to continue; begin one with --streams.")
    return ExplorationFolder(begun[-1])


def grammar_of(installation: Installation, asked: SearchRequest, *, named: bool) -> tuple[Grammar, Mapping[str, str]]:
    """The scenarios that can be drawn, and those that cannot here, with the reason.

    Args:
        installation: that may lack something.
        asked: what is to be searched.
        named: whether a user named the scenarios, so that none may be left out.

    Raises:
        UsageError: a scenario does not exist, or nothing can be searched on these releases.
    """
    left_out: dict[str, str] = {}
    never: list[str] = []
    try:
        require_toxiproxy(installation.toxiproxy)
    except UsageError as error:
        never.append(partition.NAME)
        left_out[f"fault {partition.NAME}"] = str(error)
    stories = {}
    for name in asked.scenarios:
        try:
            stories[name] = story(
                name,
                Release.parse(asked.streams),
                Release.parse(asked.broker),
                never,
                asked.settings,
            )
        except UsageError as error:
            if named or name not in SCENARIOS:
                raise
            left_out[name] = str(error)
    if not stories:
        raise UsageError(f"Nothing can be searched on {asked.streams}: {left_out[asked.scenarios[0]]}")
    return Grammar(stories), left_out


class OutOfTimeError(Exception):
    """No further trial may begin."""


class Explorer:
    """One search, from where it stands."""

    def __init__(
        self,
        folder: ExplorationFolder,
        asked: SearchRequest,
        grammar: Grammar,
        bench: TrialBench,
        report: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
        releases: Collection[Release] = (),
    ) -> None:
        """Take in what was tried before; findings are bisected over `releases`, if there are any.

        Raises:
            HarnessError: its lines are damaged.
        """
        self._folder, self._asked, self._bench, self._report, self._now = folder, asked, bench, report, now
        self._grammar, self._releases = grammar, releases
        self._streams, self._broker = Release.parse(asked.streams), Release.parse(asked.broker)
        self._draws = Draws(grammar, asked.seed, uniform=asked.uniform)
        self._reached: set[str] = set()  # marks and pairs, each with its scenario: each has another application
        self._log = SearchLog(folder.log_file)
        self._settled: set[int] = set()
        self._smallest: dict[int, Schedule] = {}
        self._bisected: dict[int, Bisected] = {}
        for line in self._lines:
            if line.purpose is Purpose.SEARCH:
                self._learn(line)
        self._spent = self._lines[-1].at if self._lines else 0.0
        self._begin = self._deadline = now()

    @property
    def _lines(self) -> list[Tried]:
        return self._log.lines

    def explore(self, seconds: float, left_out: Mapping[str, str] | None = None) -> Exploration:
        """Search for some time; the trial that is under way then is run to its end.

        Raises:
            HarnessError: nothing can be run here, or the disk is full.
        """
        self._begin = self._now()
        self._deadline = self._begin + seconds
        try:
            while True:
                # A finding is settled before the next draw. A search that is resumed reads the same lines, so it
                # settles the same findings again, from the trials that ran before, and draws what it would have drawn.
                for number in self._numbers():
                    if number not in self._settled:
                        self._settle(number)
                        self._write(number)
                self._try(self._draws.next(), Purpose.SEARCH)
        except OutOfTimeError:
            return self._exploration(left_out or {})
        finally:
            for number in self._numbers():
                self._write(number)
            self._spent += self._now() - self._begin

    def _numbers(self) -> list[int]:
        """The findings."""
        return sorted({line.finding for line in self._lines if line.finding is not None})

    # --- a trial ---------------------------------------------------------------------------------------------

    def _learn(self, line: Tried) -> int:
        """Take in a trial of the search; returns how much it reached that none before had."""
        self._draws.add(line.schedule)
        new = {f"{line.schedule.scenario}: {item}" for item in name_reached(line.marks)} - self._reached
        self._reached |= new
        return len(new)

    def _try(
        self,
        schedule: Schedule,
        purpose: Purpose,
        *,
        finding: int | None = None,
        streams: Release | None = None,
    ) -> Tried:
        """Run a trial of a schedule, and keep its line; on the release that is searched, or another one.

        Raises:
            OutOfTimeError: the time is up.
        """
        began = self._now()
        if began >= self._deadline:
            raise OutOfTimeError
        number = len(self._lines) + 1
        on = None if streams is None else str(streams)
        trial = self._asked.trial(number, schedule, on)
        self._folder.run.archive_attempt(trial)  # of a search that was cut short in this very trial
        folder = self._folder.run.trial(trial)
        seen = self._see(trial, folder)
        ended = self._now()
        tried = Tried(
            number=number,
            purpose=purpose,
            schedule=schedule,
            finding=finding,
            streams=on,
            seconds=round(ended - began, 2),
            at=round(self._spent + ended - self._begin, 2),
            command=trial.command,
            **seen,
        )
        tried = self._keep(self._attribute(tried), folder)
        if purpose is Purpose.SEARCH:
            tried = replace(tried, gained=self._learn(tried))
        self._log.add(tried)
        if tried.finding is not None:
            self._write(tried.finding)  # the page shows how it stands
        title = f"{schedule.summary} on {streams}" if streams else schedule.summary
        self._report(f"trial {number}, {purpose}: {title}: {tried.said}; {tried.gained} new marks and pairs")
        self._check_harness()
        return tried

    def _see(self, trial: Trial, folder: TrialFolder) -> dict[str, Any]:
        """The anomalies and the coverage of a trial."""
        try:
            outcome = self._bench(trial, folder)
            if outcome.void:
                return {"error": outcome.void}
            reading, cell = Reading.read(folder.reader_file), trial.cell
            events = read_timeline(folder.timeline)
        except (HarnessError, UsageError) as error:
            return {"error": str(error)}
        logs = [log.read_text(errors="replace").splitlines() for log in sorted(folder.instances.glob("*.log"))]
        seen = {
            "marks": spans(events, logs),
            "exercised": outcome.exercised and (trial.plant is None or outcome.has_fired),
            "reason": outcome.reason,
        }
        if not is_red(cell, reading.anomalies, registry()):
            return seen
        issues = tuple(issue.key for issue in find_concerned_in(trial, reading.explained))
        return {**seen, "anomalies": reading.anomalies, "unexplained": reading.unexplained, "issues": issues}

    def _attribute(self, tried: Tried) -> Tried:
        """With the finding that a red of the search belongs to, a new one if it looks like none.

        An anomaly alone has many causes: what lacks a setting with which a finding is known to show is another one.
        """
        if tried.purpose is not Purpose.SEARCH or not tried.is_new:
            return tried
        # Two findings of one bug cost a reader minutes; two bugs in one finding hide the second. So it is another one
        # if in doubt.
        story = self._grammar.stories[tried.schedule.scenario]
        like = (number for number in self._numbers() if self._first(number).looks_like(tried))
        same = (number for number in like if story.is_within(self._best(number), tried.schedule))
        return replace(tried, finding=next(same, len(self._numbers()) + 1))

    def _keep(self, tried: Tried, folder: TrialFolder) -> Tried:
        """Keep what a trial left if it is evidence, or says why it failed; of the others there would be thousands."""
        if not (tried.is_new or tried.error or (tried.anomalies and tried.issues not in self._list_known())):
            shutil.rmtree(folder.path, ignore_errors=True)
            return tried
        return replace(tried, folder=str(folder.path.relative_to(self._folder.path)))

    def _list_known(self) -> set[tuple[str, ...]]:
        return {line.issues for line in self._lines if line.anomalies and not line.is_new}

    def _check_harness(self) -> None:
        last = self._lines[-BROKEN:]  # that a release fails, in a bisection, says nothing about this machine
        if len(last) == BROKEN and all(line.error and line.purpose is not Purpose.BISECT for line in last):
            raise HarnessError(f"{BROKEN} trials failed one after the other, so the search ends: {last[-1].error}")

    # --- a finding -------------------------------------------------------------------------------------------

    def _first(self, number: int) -> Tried:
        return of_finding(self._lines, number, Purpose.SEARCH)[0]

    def _best(self, number: int) -> Schedule:
        """The schedule that shows a finding oftener, the smallest or the first: shrinking may have slid to another
        bug, which has the anomaly in common and shows less often.
        """
        first = self._first(number).schedule
        return self._smallest.get(number, first) if self._finding(number).bisected_by == "smallest" else first

    def _settle(self, number: int) -> None:
        """Repeat, shrink and rate a finding, from where this stands."""
        first = self._first(number)
        self._smallest.setdefault(number, first.schedule)
        repeated = list(self._trials(number, first.schedule, Purpose.REPEAT, REPEATED))
        # A red that does not come again cannot be shrunk: every simpler schedule would look green, and none be proven
        # so.
        if rate_of(repeated, first).red:
            self._smallest[number] = first.schedule
            shrink(first.schedule, partial(self._shows, number), lambda: True, self._grammar.simpler)
            if not self._smallest[number].is_like(first.schedule):
                # With other seeds: the trials by which a schedule was chosen were chosen for their red, and a rate from
                # them would be too high.
                list(self._trials(number, self._smallest[number], Purpose.RATE, REPEATED, after=TRIES))
        self._settled.add(number)
        if self._releases and rate_of(repeated, first).red:
            self._bisect(number)

    def _bisect(self, number: int) -> None:
        """Find the releases on which the schedule of a finding that shows it best does, from where this stands."""
        first = self._first(number)
        by = self._best(number)
        releases = {*self._releases, self._streams}
        one, parameters = scenario(by.scenario), dict(by.parameters)
        refused = {r: refusal(one, r, self._broker, by.variant, parameters) for r in releases - {self._streams}}
        # Generators: a trial runs when the bisection asks for it, and those of an earlier attempt come first.
        trials = {
            release: self._trials(number, by, Purpose.BISECT, BISECTED, REPEATED + TRIES, release)
            for release in releases
        }
        bisection = Bisection(
            lines_of(releases),
            lambda release: probe(next(trials[release]), first),
            RISK,
            BISECTED,
            reds={self._streams: 1},
            unknown={release: reason for release, reason in refused.items() if reason},
        )
        try:
            bisection.run()
        finally:
            self._bisected[number] = bisection.result

    def _shows(self, number: int, simpler: Schedule) -> bool:
        first = self._first(number)
        shows = any(first.looks_like(line) for line in self._trials(number, simpler, Purpose.SHRINK, TRIES))
        if shows:
            self._smallest[number] = simpler
        return shows

    def _trials(
        self,
        number: int,
        schedule: Schedule,
        purpose: Purpose,
        count: int,
        after: int = 0,
        streams: Release | None = None,
    ) -> Iterator[Tried]:
        """Trials of a schedule, each with the next seed `after` so many: first those that were run before."""
        release = None if streams is None else str(streams)
        like = of_finding(self._lines, number, purpose, schedule)
        before = [line for line in like if line.streams == release][:count]
        yield from before
        for n in range(len(before) + 1, count + 1):
            yield self._try(replace(schedule, seed=schedule.seed + after + n), purpose, finding=number, streams=streams)

    def _write(self, number: int) -> None:
        finding = self._finding(number)
        folder = self._folder.finding(finding)
        folder.mkdir(parents=True, exist_ok=True)
        finding.write(folder / "finding.json")
        with replacing(folder / "finding.md") as draft:
            draft.write_text(finding.markdown)

    def _finding(self, number: int) -> Finding:
        """The finding as its lines have it; during a search, what was written of it until it is its turn."""
        if number not in self._smallest:
            written = next(self._folder.findings.glob(f"{number}-*/finding.json"), None)
            if written and (known := Finding.read_known(written)):
                return known
        first, smallest = self._first(number), self._smallest.get(number, self._first(number).schedule)
        repeated = of_finding(self._lines, number, Purpose.REPEAT)
        rated = of_finding(self._lines, number, Purpose.RATE, smallest)
        is_smaller = not smallest.is_like(first.schedule)
        reds = [
            line
            for line in of_finding(self._lines, number, Purpose.SHRINK, smallest)
            if is_smaller and first.looks_like(line)
        ]
        red = reds[0] if reds else first
        trial = self._asked.trial(first.number, first.schedule)
        looked_at = scenario(first.schedule.scenario).system(trial).promises
        return Finding(
            number=number,
            streams=self._asked.streams,
            broker=self._asked.broker,
            plant=self._asked.plant,
            scenario=first.schedule.scenario,
            promises=tuple(name for name in first.promises if name in looked_at),
            anomalies=first.unexplained,
            issues=first.issues,
            after=first.at,
            trials_before=first.number - 1,
            first=first.command,
            rate=rate_of(repeated, first),
            is_settled=number in self._settled,
            variant=red.schedule.variant,
            parameters=dict(red.schedule.parameters),
            command=red.command,
            smallest_rate=rate_of(rated if is_smaller else repeated, first),
            others=len(of_finding(self._lines, number, Purpose.SEARCH)) - 1,
            folder=red.folder,
            releases=self._bisected.get(number),
        )

    # --- the answer ------------------------------------------------------------------------------------------

    def _exploration(self, left_out: Mapping[str, str]) -> Exploration:
        seconds = self._spent + self._now() - self._begin
        findings = map(self._finding, self._numbers())
        return Exploration.of(self._folder, self._asked, self._lines, findings, seconds, left_out)


class SharedBrokers:
    """Runs trials on brokers that they share, and on brokers of their own those that need more, or disturb them."""

    def __init__(self, installation: Installation, release: Release, folder: Path) -> None:
        """None run yet; their logs and data go below the folder."""
        self._installation, self._release, self._folder = installation, release, folder
        self._cluster: EmbeddedCluster | None = None
        self._starts = 0

    def __call__(self, trial: Trial, folder: TrialFolder) -> Outcome:
        """Run one."""
        if needs_own_cluster(trial):
            return run_alone(trial, folder, own_cluster(self._installation, trial, folder))
        return run_alone(trial, folder, self._lend(trial))

    @contextmanager
    def _lend(self, trial: Trial) -> Iterator[Cluster]:
        """Brokers that serve, without the trial's topics afterwards."""
        cluster = self._serving()
        try:
            yield cluster
        finally:
            topics = ApplicationTopics(cluster, trial.application_id)
            try:
                topics.delete()
            except (HarnessError, KafkaException):  # what the trial says stands; the next one gets other brokers
                self.stop()
            finally:
                topics.close()

    def _serving(self) -> EmbeddedCluster:
        """Those that run; others if they have died."""
        if self._cluster is not None:
            try:
                self._cluster.check_alive()
            except HarnessError:
                self.stop()
        if self._cluster is None:
            self._starts += 1
            self._cluster = EmbeddedCluster.start(
                self._installation, self._release, self._folder / f"cluster-{self._starts}"
            )
        return self._cluster

    def stop(self) -> None:
        """Stop those that run."""
        if self._cluster is not None:
            self._cluster.stop()
            self._cluster = None
