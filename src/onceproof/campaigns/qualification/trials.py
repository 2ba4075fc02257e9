"""Shows that the harness still sees on a release: runs the trials that must show each thing that it goes by."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from onceproof.harness import harness_version
from onceproof.installation import Installation
from onceproof.lab.agent import alterations, lacking
from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.lab.external_brokers import needs_own_cluster, own_cluster
from onceproof.lab.log_dump import LogDump
from onceproof.lab.plan import ATOMICITY
from onceproof.lab.reading import logs_of
from onceproof.lab.segments import SegmentDump, read_segments
from onceproof.lab.trial import run_trial
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import HarnessError, NotUnderstoodError, UsageError
from onceproof.model.files import Outcome, Reading, TrialPlan
from onceproof.model.known_issues import MIXED, KnownIssue, registry
from onceproof.model.phrases import EVENTS, PHRASES, Phrase, Showing, Side
from onceproof.model.plants import Plant, plants
from onceproof.model.promise import PROMISES
from onceproof.model.qualification import (
    Aim,
    ControlAim,
    DumpAim,
    EventAim,
    PhraseAim,
    PlantAim,
    Qualification,
    QualificationPart,
    QualificationRow,
    QualifyingTrial,
    ScenarioAim,
    Sight,
    TrialTraces,
    rows_of,
)
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.segments import COMMIT, DATA, POSITION, PREPARE_COMMIT
from onceproof.model.timeline import Event, read_timeline
from onceproof.model.verdict import find_expected
from onceproof.scenarios import SCENARIOS, scenario

TRIES = 3  # trials until something that must be seen counts as missing
EXACTLY_ONCE = (DATA, COMMIT, POSITION, PREPARE_COMMIT)  # the kinds of entries that its log segments must hold
AT_LEAST_ONCE = (DATA, POSITION)
DUMPS = (
    ("exactly-once, classic protocol", Showing("enumerator"), EXACTLY_ONCE),
    ("exactly-once, streams protocol", Showing("enumerator", "STREAMS_PROTOCOL"), EXACTLY_ONCE),
    ("at-least-once, classic protocol", Showing("at-least-once"), AT_LEAST_ONCE),
    (
        "at-least-once, streams protocol",
        Showing("multirunner", "STREAMS_PROTOCOL", {"guarantee": "at_least_once"}),
        AT_LEAST_ONCE,
    ),
)


@dataclass(frozen=True)
class Wanted:
    """The aims on a release, and what no trial can show there."""

    streams: Release
    broker: Release
    aims: tuple[Aim, ...]
    settled: tuple[QualificationRow, ...]  # without a trial

    @property
    def trials(self) -> list[QualifyingTrial]:
        """The trials that it takes, each once."""
        asked: list[QualifyingTrial] = []
        for aim in self.aims:
            if aim.trial not in asked:
                asked.append(aim.trial)
        return asked


def find_wanted(
    installation: Installation, streams: Release, broker: Release, scenarios: Collection[str] = ()
) -> Wanted:
    """Everything that the harness goes by on a release, or what trials of these scenarios show of it.

    Raises:
        UsageError: there is nothing of it.
        HarnessError: the agent that plants bugs is not built.
    """
    found = [
        *_dumps(streams, broker),
        *_phrases(streams, broker),
        *_scenarios(streams, broker),
        *_plants(installation, streams, broker),
        *_controls(streams, broker),
    ]
    aims = tuple(part for part in found if isinstance(part, Aim) and _is_of(part.trial.cell.scenario, scenarios))
    rows = tuple(part for part in found if isinstance(part, QualificationRow) and not scenarios)
    if not aims:
        raise UsageError(f"Nothing is looked for in {', '.join(scenarios)} on {streams}; name another scenario.")
    return Wanted(streams, broker, aims, rows)


def _is_of(name: str, scenarios: Collection[str]) -> bool:
    return not scenarios or name in scenarios


def _ask(showing: Showing, streams: Release, broker: Release) -> QualifyingTrial:
    return QualifyingTrial(Cell(showing.scenario, showing.variant, streams, broker), showing.parameters)


def _explain_refusal(asked: QualifyingTrial) -> str | None:
    """Why a trial cannot be run, if it cannot."""
    return scenario(asked.cell.scenario).refuse_trial(Trial("", asked.cell, 1, 0, asked.parameters))


def _dumps(streams: Release, broker: Release) -> Iterator[Aim | QualificationRow]:
    breaches = frozenset(anomaly for promise in ATOMICITY for anomaly in PROMISES[promise].anomalies)
    for name, showing, kinds in DUMPS:
        asked = _ask(showing, streams, broker)
        if reason := _explain_refusal(asked):
            yield QualificationRow(QualificationPart.DUMP, name, Sight.UNTRIED, reason, str(asked))
        else:
            yield DumpAim(name, asked, kinds, ATOMICITY[:1] if kinds is EXACTLY_ONCE else (), breaches)


def _phrases(streams: Release, broker: Release) -> Iterator[Aim | QualificationRow]:
    for phrase in PHRASES:
        yield _phrase(phrase, streams, broker)
    for reported in EVENTS:
        yield EventAim(reported.event, _ask(reported.shown, streams, broker), reported.source)


def _phrase(phrase: Phrase, streams: Release, broker: Release) -> Aim | QualificationRow:
    if phrase.shown is None:
        return QualificationRow(QualificationPart.PHRASE, phrase.name, Sight.UNTRIED, phrase.unshown)
    asked = _ask(phrase.shown, streams, broker)
    release = broker if phrase.side is Side.BROKER else streams
    if not phrase.is_due_on(release):
        reason: str | None = f"the trial need not show it on {release}"
    else:
        reason = _explain_refusal(asked)
    if reason:
        return QualificationRow(QualificationPart.PHRASE, phrase.name, Sight.UNTRIED, reason, str(asked))
    return PhraseAim(phrase.name, asked, phrase.source)


def _scenarios(streams: Release, broker: Release) -> Iterator[Aim | QualificationRow]:
    for name, tested in SCENARIOS.items():
        asked = [QualifyingTrial(Cell(name, variant, streams, broker)) for variant in tested.variants]
        if len(tested.positive_control) == 3:  # its group moves from another release to this one
            before = Release.parse(tested.positive_control[1])
            asked = [QualifyingTrial(replace(trial.cell, streams=before, restart_on=streams)) for trial in asked]
        first = next((trial for trial in asked if not _explain_refusal(trial)), None)
        if first is None:
            yield QualificationRow(QualificationPart.SCENARIO, name, Sight.UNTRIED, _explain_refusal(asked[0]) or "")
        else:
            yield ScenarioAim(name, first)


def _plants(installation: Installation, streams: Release, broker: Release) -> Iterator[Aim | QualificationRow]:
    applying = [plant for plant in plants().values() if plant.applies(streams)]
    altered, broken = _find_altered(installation, streams, applying)
    moved = lacking(installation, streams) if not broken else {}
    for plant in applying:
        if plant.name in broken:
            yield QualificationRow(QualificationPart.PLANT, plant.name, Sight.MISSING, broken[plant.name])
        elif not altered.get(plant.name):
            reason = f"{streams} lacks {', '.join(moved.get(plant.name, ['a method']))}, which it alters"
            yield QualificationRow(QualificationPart.PLANT, plant.name, Sight.MISSING, reason)
        else:
            yield _plant(plant, altered[plant.name], streams, broker)


def _find_altered(
    installation: Installation, streams: Release, applying: Iterable[Plant]
) -> tuple[Mapping[str, list[str]], Mapping[str, str]]:
    """The methods that each plant alters, and why altered classes do not load.

    Raises:
        HarnessError: the agent is not built.
    """
    try:
        return alterations(installation, streams), {}
    except HarnessError:
        if not installation.agent_jar.is_file():
            raise
    altered: dict[str, list[str]] = {}
    broken: dict[str, str] = {}
    for plant in applying:
        try:
            altered |= alterations(installation, streams, plant.name)
        except HarnessError as error:
            broken[plant.name] = str(error)
    return altered, broken


def _plant(plant: Plant, altered: list[str], streams: Release, broker: Release) -> Aim | QualificationRow:
    """The first cell in which a plant must be found, or cannot show, but fires."""
    reason = f"no scenario is declared in which it fires; it alters {', '.join(altered)}"
    for claim in plant.claims:
        try:
            asked = QualifyingTrial(claim.cell(streams, broker), claim.parameters, plant.name)
        except UsageError as error:  # a known issue hides it
            reason = str(error)
            continue
        if not _explain_refusal(asked):
            return PlantAim(plant.name, asked, tuple(altered))
    for name in plant.equivalent:
        cells = (Cell(name, variant, streams, broker) for variant in scenario(name).variants)
        if quiet := next((cell for cell in cells if not _explain_refusal(QualifyingTrial(cell))), None):
            return PlantAim(plant.name, QualifyingTrial(quiet, plant=plant.name), tuple(altered))
    return QualificationRow(QualificationPart.PLANT, plant.name, Sight.UNTRIED, reason)


def _controls(streams: Release, broker: Release) -> Iterator[Aim | QualificationRow]:
    """The known issues that the release has; if it has none, the nearest release before it that shows another."""
    aims = [aim for issue in registry().issues if (aim := _control(issue, streams, broker))]
    yield from aims or _nearest(streams, broker)


def _control(issue: KnownIssue, streams: Release, broker: Release) -> Aim | None:
    if issue.culprit == MIXED:
        return None
    for name, variants in issue.provoked.items():
        for variant in variants:
            asked = QualifyingTrial(Cell(name, variant, streams, broker))
            if issue.affects(asked.cell) and not _explain_refusal(asked):
                anomalies = issue.must_show.get(name, {}).get(variant) or issue.anomalies
                return ControlAim(f"{issue.key} on {streams}", asked, anomalies)
    return None


def _nearest(streams: Release, broker: Release) -> Iterator[Aim]:
    controls = [
        QualifyingTrial(
            Cell(tested.name, tested.positive_control[0], Release.parse(tested.positive_control[1]), broker)
        )
        for tested in SCENARIOS.values()
        if len(tested.positive_control) == 2 and tested.control_broker is None
    ]
    before = [asked for asked in controls if asked.cell.streams < streams and not _explain_refusal(asked)]
    if before:
        asked = max(before, key=lambda control: control.cell.streams)
        keys = ", ".join(issue.key for issue in registry().affecting(asked.cell))
        yield ControlAim(f"{keys} on {asked.cell.streams}", asked, tuple(sorted(find_expected(asked.cell, registry()))))


def qualify(
    installation: Installation,
    run: RunFolder,
    looked_for: Wanted,
    seed: int,
    scenarios: Collection[str] = (),
    report: Callable[[str], None] = lambda _: None,
) -> Qualification:
    """Run the trials, on brokers that they share if they can; one that does not show what it must is tried again.

    Args:
        installation: for the brokers.
        run: takes the trials.
        looked_for: what they must show.
        seed: of the first trial; each further one takes the next.
        scenarios: to which it was narrowed.
        report: called with what is tried and what is missing.

    Raises:
        HarnessError: the brokers could not be started, or died.
    """
    begin, harness, tried, rows = monotonic(), harness_version(), 0, list(looked_for.settled)
    cluster = EmbeddedCluster.start(installation, looked_for.broker, run.cluster_folder(str(looked_for.broker)))
    try:
        for place, asked in enumerate(looked_for.trials, 1):
            aims = [aim for aim in looked_for.aims if aim.trial == asked]
            seen: list[TrialTraces] = []
            while not seen or (len(seen) < TRIES and not _is_settled(aims, seen)):
                report(f"{place} of {len(looked_for.trials)}: {asked}")
                tried += 1
                trial = Trial(run.run_id, asked.cell, tried, seed + tried, asked.parameters, asked.plant)
                seen.append(_try(trial, run.trial(trial), cluster, any(isinstance(aim, DumpAim) for aim in aims)))
                cluster.check_alive()
            rows += [aim.row(seen) for aim in aims]
            for row in rows[-len(aims) :]:
                if row.sight is not Sight.SEEN:
                    report(f"{row.part} {row.name} {row.sight}: {row.reason}")
    finally:
        cluster.stop()
    return Qualification(
        run=run.run_id,
        streams=str(looked_for.streams),
        broker=str(looked_for.broker),
        harness=harness,
        scenarios=tuple(scenarios),
        trials=tried,
        seconds=round(monotonic() - begin, 1),
        rows=rows_of(rows),
    )


def _is_settled(aims: Iterable[Aim], seen: list[TrialTraces]) -> bool:
    """Whether another trial would show nothing more."""
    return seen[-1].not_understood is not None or all(aim.row(seen).sight is Sight.SEEN for aim in aims)


def _try(trial: Trial, folder: TrialFolder, shared: Cluster, dumps: bool) -> TrialTraces:
    """One trial, and what it left, whatever became of it."""
    not_understood = error = None
    brokers = own_cluster(shared.installation, trial, folder) if needs_own_cluster(trial) else nullcontext(shared)
    entries: Counter[str] = Counter()
    try:
        with brokers as cluster:
            run_trial(trial, folder, cluster=cluster)
            entries = _entries(folder, cluster) if dumps else entries
    except NotUnderstoodError as failed:
        not_understood = str(failed)
    except (HarnessError, UsageError) as failed:
        error = str(failed)
    return _see(folder, entries, not_understood, error)


def _entries(folder: TrialFolder, cluster: Cluster) -> Counter[str]:
    """How many entries of each kind the log segments of a trial hold; read now if the trial did not.

    Raises:
        HarnessError: they cannot be read, or are not understood.
    """
    if folder.segments_file.is_file():
        return Counter(entry.kind for entry in read_segments(folder.segments_file))
    logs = logs_of(TrialPlan.read(folder.trial_file))
    dump = SegmentDump(cluster, logs, folder.path)
    try:
        dump.await_printed()
        with dump.printed.open("rb") as lines:
            return Counter(entry.kind for entry in LogDump(logs).entries(lines))
    finally:
        dump.stop()


def _see(folder: TrialFolder, entries: Mapping[str, int], not_understood: str | None, error: str | None) -> TrialTraces:
    outcome = Outcome.read_known(folder.outcome_file)
    reading = None if not_understood or error else Reading.read_known(folder.reader_file)
    events = read_timeline(folder.timeline) if folder.timeline.is_file() else []
    return TrialTraces(
        exercised=outcome is not None and outcome.exercised,
        reason=outcome.reason if outcome else "",
        phrases=frozenset(_phrases_in(folder, events)),
        events=frozenset(event["event"] for event in events if event["source"] != "driver"),
        entries=entries,
        promises=reading.promises if reading else {},
        anomalies=reading.anomalies if reading else {},
        unexplained=reading.unexplained if reading else {},
        fired=outcome.plant.fired if outcome and outcome.plant else 0,
        not_understood=not_understood,
        error=error,
        void=outcome.void if outcome else None,
    )


def _phrases_in(folder: TrialFolder, events: Iterable[Event]) -> Iterator[str]:
    """The phrases that the logs of a trial's instances and of its own brokers have, and what threads died of."""
    deaths = [" ".join([str(e["message"]), *e["causes"]]) for e in events if e["event"] == "uncaught"]
    said = {
        Side.INSTANCE: [*deaths, *_lines(folder.instances.glob("*.log"))],
        Side.BROKER: [*_lines((folder.path / "cluster").glob("node-*.log"))],
    }
    for phrase in PHRASES:
        if any(phrase.pattern.search(line) for line in said[phrase.side]):
            yield phrase.name


def _lines(logs: Iterable[Path]) -> Iterator[str]:
    for log in logs:
        with log.open(errors="replace") as lines:
            yield from lines
