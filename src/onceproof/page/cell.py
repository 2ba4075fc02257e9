"""A cell and its trials as shown: verdict, trials, anomalies with witnesses, and the records around them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from onceproof.model.anomaly import Witness
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import HarnessError
from onceproof.model.files import FaultOutcome, Outcome, Reading, TrialPlan, VerdictRow
from onceproof.model.known_issues import registry, url_of
from onceproof.model.promise import meaning
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.page import timeline
from onceproof.page.docs import SuitePage, pages_by_trial
from onceproof.page.matrix import day, minute, moment
from onceproof.results.evidence.case import EvidenceCase, case_of
from onceproof.results.evidence.records import records_around
from onceproof.results.matrix_query import DatedVerdict

FIRST = 3  # witnesses of each anomaly that are seen at once


@dataclass(frozen=True)
class Loaded:
    """Versions that instances reported to have loaded; None where they reported none."""

    streams_version: str | None
    streams_commit: str | None
    clients_version: str | None
    clients_commit: str | None
    java: str | None
    instances: str  # their names


@dataclass(frozen=True, kw_only=True)
class TrialView:
    """A trial."""

    key: str
    title: str
    number: int
    seed: int
    command: str
    exercised: bool | None  # None while it has not ended
    reason: str
    fault: FaultOutcome | None
    error: str  # why it says nothing; empty if it says something
    anomalies: Mapping[str, int]
    seconds: Mapping[str, float]
    attested: tuple[Loaded, ...]
    docs: tuple[SuitePage, ...]


@dataclass(frozen=True)
class IssueView:
    """A known issue, with what the registry says of it today."""

    key: str
    url: str | None
    title: str
    fixed: tuple[str, ...]


@dataclass(frozen=True)
class BlindView:
    """An issue that no release fixes: nothing else that looks like `what` can be seen there."""

    key: str
    url: str | None
    what: tuple[str, ...]


@dataclass(frozen=True)
class RunVerdict:
    """A verdict on the cell in some run."""

    run: str
    when: str
    day: str
    verdict: str
    sign: str
    rate: str
    seconds: float | None


@dataclass(frozen=True)
class RecordView:
    """A record: its place, and why it is shown."""

    partition: int
    offset: int
    key: int | None
    value: int | None
    time: str
    why: str


@dataclass(frozen=True)
class RecordsView:
    """The records around a witness: for each of the `columns`, topics, those by key and then place.

    There are no columns where Spark has not collected the records.
    """

    run: str
    key: str
    title: str
    trial: int
    witness: "WitnessView"
    columns: tuple[str, ...]
    records: tuple[tuple[RecordView, ...], ...]


@dataclass(frozen=True)
class WitnessView(Witness):
    """A witness with its number among all of its trial, and in a report with the records around it."""

    number: int
    records: RecordsView | None = None


@dataclass(frozen=True)
class AnomalyCount:
    """An anomaly: how often it was seen, and its meaning."""

    name: str
    count: int
    meaning: str


@dataclass(frozen=True)
class AnomalyView(AnomalyCount):
    """An anomaly with its witnesses, the `first` of which are seen at once."""

    first: tuple[WitnessView, ...]
    more: tuple[WitnessView, ...]


@dataclass(frozen=True, kw_only=True)
class CellView:
    """Everything that a cell's page shows."""

    run: str
    key: str
    title: str
    scenario: str
    variant: str
    releases: str
    broker: str
    verdict: str
    sign: str
    sentence: str
    arithmetic: str
    unqualified: str
    not_looked_at: Mapping[str, str]
    description: str  # of the variant
    reason: str  # of the trial that is shown
    issues: tuple[IssueView, ...]
    blind: tuple[BlindView, ...]
    history: tuple[RunVerdict, ...]
    trials: tuple[TrialView, ...]
    shown: str  # the key of a trial
    command: str
    anomalies: tuple[AnomalyView, ...]


def cell_view(run: RunFolder, verdict: VerdictRow, history: Sequence[DatedVerdict]) -> CellView:
    """The view of a cell; `history` is newest first.

    Raises:
        HarnessError: the run is damaged.
    """
    cell, case = verdict.as_cell, case_of(run, verdict)
    docs = pages_by_trial(run)
    plan, outcome = TrialPlan.read_known(case.folder.trial_file), Outcome.read_known(case.folder.outcome_file)
    return CellView(
        run=run.run_id,
        key=cell.key,
        title=cell.title,
        scenario=cell.scenario,
        variant=cell.variant,
        releases=cell.releases,
        broker=str(cell.broker),
        verdict=str(verdict.verdict),
        sign=verdict.verdict.sign,
        sentence=verdict.sentence,
        arithmetic=_arithmetic(verdict),
        unqualified=verdict.unqualified,
        not_looked_at=verdict.not_looked_at,
        description=plan.description if plan else "",
        reason=outcome.reason if outcome else "",
        issues=_issues(cell, verdict),
        blind=_blind(cell),
        history=_over_time(history),
        trials=tuple(trial_view(run, verdict.errors, trial, docs.get(trial.title, ())) for trial in case.trials),
        shown=case.shown.key,
        command=case.shown.command,
        anomalies=_anomalies(case),
    )


def _arithmetic(verdict: VerdictRow) -> str:
    """How the verdict counts; older runs know no interval."""
    counted = f"{verdict.red} red, {verdict.counted} exercised trials"
    if verdict.trials != verdict.counted:
        counted += f" ({verdict.trials} were run)"
    if verdict.interval:
        low, high = verdict.interval
        counted += f"; 95 % interval of the rate {low:.0%} to {high:.0%}"
    return f"{counted}. {verdict.arithmetic}".strip()


def _issues(cell: Cell, verdict: VerdictRow) -> tuple[IssueView, ...]:
    """The known issues that were expected to show, or did, with what the registry says of them today."""
    rows = {issue.key: issue for issue in registry().explaining(cell)}

    def view(key: str) -> IssueView:
        row = rows.get(key)
        return IssueView(key, url_of(key), row.title if row else "", tuple(map(str, row.fixed)) if row else ())

    return tuple(map(view, verdict.issues))


def _blind(cell: Cell) -> tuple[BlindView, ...]:
    """By issue that no release fixes: the anomalies that the cell cannot show again, as that issue shows them there."""
    where = cell.scenario, cell.variant
    return tuple(
        BlindView(issue.key, issue.url, tuple(explanation.summary for explanation in issue.explanations(*where)))
        for issue in registry().blind(cell)
    )


def _over_time(history: Sequence[DatedVerdict]) -> tuple[RunVerdict, ...]:
    """The verdicts of the cell, oldest first, each with its day; where a day has several, with the time of day."""
    days = Counter(dated.created[:10] for dated in history)
    return tuple(_judgement(dated, minute if days[dated.created[:10]] > 1 else day) for dated in reversed(history))


def _judgement(dated: DatedVerdict, label: Callable[[str], str]) -> RunVerdict:
    judged = dated.judged
    return RunVerdict(
        run=judged.run,
        when=moment(dated.created),
        day=label(dated.created),
        verdict=str(judged.verdict),
        sign=judged.verdict.sign,
        rate=f"{judged.red}/{judged.counted}",
        seconds=judged.seconds,
    )


def trial_view(run: RunFolder, errors: Mapping[str, str], trial: Trial, docs: Iterable[SuitePage]) -> TrialView:
    """One trial; `errors` are the judge's, by trial."""
    folder = run.trial(trial)
    outcome, reader = Outcome.read_known(folder.outcome_file), Reading.read_known(folder.reader_file)
    return TrialView(
        key=trial.key,
        title=trial.title,
        number=trial.number,
        seed=trial.seed,
        command=trial.command,
        exercised=outcome.exercised if outcome else None,
        reason=outcome.reason if outcome else "",
        fault=outcome.fault if outcome else None,
        error=errors.get(trial.key) or (outcome and outcome.error) or "",
        anomalies=reader.anomalies if reader else {},
        seconds=outcome.seconds if outcome else {},
        attested=_collect_loaded(outcome.attested if outcome else {}),
        docs=tuple(docs),
    )


def _collect_loaded(reports: Mapping[str, Mapping[str, Any]]) -> tuple[Loaded, ...]:
    """The loaded versions, one entry for each different set, with the instances that reported it."""
    instances: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    columns = [field.name for field in fields(Loaded) if field.name != "instances"]
    for name, entry in sorted(reports.items()):
        instances[tuple(entry.get(column) for column in columns)].append(name)
    return tuple(
        Loaded(**dict(zip(columns, entry, strict=True)), instances=", ".join(names))
        for entry, names in instances.items()
    )


def _anomalies(case: EvidenceCase) -> tuple[AnomalyView, ...]:
    """Each anomaly of the trial that is shown, with its first witnesses, which keep their number."""
    reader = case.reader(case.shown)
    witnesses: dict[str, list[WitnessView]] = defaultdict(list)
    for number, witness in enumerate(case.witnesses, 1):
        witnesses[witness.anomaly].append(_number(witness, number))
    return tuple(
        AnomalyView(name, count, meaning(name), tuple(witnesses[name][:FIRST]), tuple(witnesses[name][FIRST:]))
        for name, count in (reader.anomalies if reader else {}).items()
    )


def counts_of(anomalies: Mapping[str, int]) -> tuple[AnomalyCount, ...]:
    """Anomalies that were counted, each with its meaning."""
    return tuple(AnomalyCount(name, count, meaning(name)) for name, count in anomalies.items())


def _number(witness: Witness, number: int) -> WitnessView:
    return WitnessView(**vars(witness), number=number)


def timeline_json(folder: TrialFolder, *, dark: bool) -> str:
    """The timeline of a trial as a figure of Plotly.

    Raises:
        HarnessError: the timeline is missing or damaged.
    """
    reading = Reading.read_known(folder.reader_file)
    return str(timeline.figure(folder, reading.witnesses if reading else (), dark).to_json())


def records_view(run: RunFolder, verdict: VerdictRow, number: int) -> RecordsView | None:
    """The records around one witness of a cell, side by side; None if there is no such witness.

    Raises:
        HarnessError: the run is damaged.
    """
    case = case_of(run, verdict)
    if not 1 <= number <= len(case.witnesses):
        return None
    witness = case.witnesses[number - 1]
    try:
        records = records_around(run, case.shown, {number: witness}) or []
    except (OSError, ValueError) as error:
        raise HarnessError(f"The records of run {run.run_id} could not be read: {error}.") from error
    columns = sorted({record["role"] for record in records}, key=_column)
    return RecordsView(
        run=run.run_id,
        key=verdict.cell,
        title=verdict.as_cell.title,
        trial=case.shown.number,
        witness=_number(witness, number),
        columns=tuple(columns),
        records=tuple(tuple(_record(r, number) for r in records if r["role"] == column) for column in columns),
    )


def _column(role: str) -> tuple[int, str]:
    """Input first, then output, then what the stores wrote."""
    return ("input", "output").index(role) if role in ("input", "output") else 2, role


def _record(record: Mapping[str, Any], number: int) -> RecordView:
    stamp = record["timestamp"]
    return RecordView(
        **{name: record[name] for name in ("partition", "offset", "key", "value")},
        time="" if stamp is None else stamp.strftime("%H:%M:%S.%f")[:-3],
        why=record["witnesses"][number],
    )
