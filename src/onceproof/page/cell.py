"""A cell and its trials as shown: verdict, trials, anomalies with witnesses, and the records around them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from onceproof.model.anomaly import Witness
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import HarnessError
from onceproof.model.files import Outcome, Reading, TrialPlan, VerdictRow
from onceproof.model.json_file import encoded
from onceproof.model.known_issues import registry, url_of
from onceproof.model.promise import meaning
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.page import timeline
from onceproof.page.docs import pages_by_trial
from onceproof.page.matrix import day, minute, moment
from onceproof.results.evidence.case import Case, case_of
from onceproof.results.evidence.records import records_around
from onceproof.results.matrix_query import Dated

FIRST = 3  # witnesses of each anomaly that are seen at once


def cell_view(run: RunFolder, verdict: VerdictRow, history: Sequence[Dated]) -> dict[str, Any]:
    """Everything that a cell's page shows; `history` is newest first.

    Raises:
        HarnessError: the run is damaged.
    """
    cell, case = verdict.as_cell, case_of(run, verdict)
    docs = pages_by_trial(run)
    trials = [trial_view(run, verdict.errors, trial, docs.get(trial.title, ())) for trial in case.trials]
    return {
        "run": run.run_id,
        "key": cell.key,
        "cell": {**cell.to_dict(), "releases": cell.releases, "title": cell.title},
        "verdict": str(verdict.verdict),
        "sign": verdict.verdict.sign,
        "sentence": verdict.sentence,
        "arithmetic": _arithmetic(verdict),
        "unqualified": verdict.unqualified,
        "not_looked_at": verdict.not_looked_at,
        "description": plan.description if (plan := TrialPlan.known(case.folder.trial_file)) else "",
        "reason": shown.reason if (shown := Outcome.known(case.folder.outcome_file)) else "",
        "issues": _issues(cell, verdict),
        "blind": _blind(cell),
        "history": _over_time(history),
        "trials": trials,
        "shown": case.shown.key,
        "command": case.shown.command,
        "anomalies": _anomalies(case),
    }


def _arithmetic(verdict: VerdictRow) -> str:
    """How the verdict counts; older runs know no interval."""
    counted = f"{verdict.red} red, {verdict.counted} exercised trials"
    if verdict.trials != verdict.counted:
        counted += f" ({verdict.trials} were run)"
    if verdict.interval:
        low, high = verdict.interval
        counted += f"; 95 % interval of the rate {low:.0%} to {high:.0%}"
    return f"{counted}. {verdict.arithmetic}".strip()


def _issues(cell: Cell, verdict: VerdictRow) -> list[dict[str, Any]]:
    """The known issues that were expected to show, or did, with what the registry says of them today."""
    rows = {issue.key: issue for issue in registry().explaining(cell)}
    return [
        {
            "key": key,
            "url": url_of(key),
            "title": rows[key].title if key in rows else "",
            "fixed": [str(release) for release in rows[key].fixed] if key in rows else [],
        }
        for key in verdict.issues
    ]


def _blind(cell: Cell) -> list[dict[str, Any]]:
    """The anomalies that the cell cannot show anew, since an issue shows there that no release mends, by issue."""
    return [
        {
            "key": issue.key,
            "url": issue.url,
            "what": [e.summary for e in issue.explanations(cell.scenario, cell.variant)],
        }
        for issue in registry().blind(cell)
    ]


def _over_time(history: Sequence[Dated]) -> list[dict[str, Any]]:
    """The verdicts of the cell, oldest first, each with its day; where a day has several, with the time of day."""
    days = Counter(dated.created[:10] for dated in history)
    return [_dated_view(dated, minute if days[dated.created[:10]] > 1 else day) for dated in reversed(history)]


def _dated_view(dated: Dated, label: Callable[[str], str]) -> dict[str, Any]:
    judged = dated.judged
    return {
        "run": judged.run,
        "when": moment(dated.created),
        "day": label(dated.created),
        "verdict": str(judged.verdict),
        "sign": judged.verdict.sign,
        "rate": f"{judged.red}/{judged.counted}",
        "seconds": judged.seconds,
    }


def trial_view(
    run: RunFolder, errors: Mapping[str, str], trial: Trial, docs: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """The view of one trial; `errors` are the judge's, by trial."""
    folder = run.trial(trial)
    outcome, reader = Outcome.known(folder.outcome_file), Reading.known(folder.reader_file)
    return {
        "key": trial.key,
        "title": trial.title,
        "number": trial.number,
        "seed": trial.seed,
        "command": trial.command,
        "exercised": outcome.exercised if outcome else None,
        "reason": outcome.reason if outcome else "",
        "fault": encoded(outcome.fault) if outcome else None,
        "error": errors.get(trial.key) or (outcome and outcome.error) or "",
        "anomalies": reader.anomalies if reader else {},
        "seconds": outcome.seconds if outcome else {},
        "attested": _attested(outcome.attested if outcome else {}),
        "docs": list(docs),
    }


def _attested(versions: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The loaded versions, one entry for each different set, with the instances that reported it."""
    instances: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    columns = ("streams_version", "streams_commit", "clients_version", "clients_commit", "java")
    for name, entry in sorted(versions.items()):
        instances[tuple(entry.get(column) for column in columns)].append(name)
    return [
        {**dict(zip(columns, entry, strict=True)), "instances": ", ".join(names)} for entry, names in instances.items()
    ]


def _anomalies(case: Case) -> list[dict[str, Any]]:
    """Each anomaly of the trial that is shown, with its first witnesses, which keep their number."""
    reader = case.reader(case.shown)
    witnesses = defaultdict(list)
    for number, witness in enumerate(case.witnesses, 1):
        witnesses[witness.anomaly].append(_numbered(witness, number))
    return [
        {
            "name": name,
            "count": count,
            "meaning": meaning(name),
            "first": witnesses[name][:FIRST],
            "more": witnesses[name][FIRST:],
        }
        for name, count in (reader.anomalies if reader else {}).items()
    ]


def _numbered(witness: Witness, number: int) -> dict[str, Any]:
    return {**encoded(witness), "number": number}


def timeline_json(folder: TrialFolder, *, dark: bool) -> str:
    """The timeline of a trial as a figure of Plotly.

    Raises:
        HarnessError: the timeline is missing or damaged.
    """
    reading = Reading.known(folder.reader_file)
    return str(timeline.figure(folder, reading.witnesses if reading else (), dark).to_json())


def records_view(run: RunFolder, verdict: VerdictRow, number: int) -> dict[str, Any] | None:
    """The records around one witness of a cell, side by side; None if there is no such witness.

    Returns:
        `columns`: input, output and each changelog that the trial has; `rows`: for each key and then place, one list
        of records for each column; empty where Spark has not collected the records.

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
    return {
        "run": run.run_id,
        "key": verdict.cell,
        "title": verdict.as_cell.title,
        "trial": case.shown.number,
        "witness": _numbered(witness, number),
        "columns": columns,
        "records": [[_record(r, number) for r in records if r["role"] == column] for column in columns],
    }


def _column(role: str) -> tuple[int, str]:
    """Input first, then output, then what the stores wrote."""
    return ("input", "output").index(role) if role in ("input", "output") else 2, role


def _record(record: Mapping[str, Any], number: int) -> dict[str, Any]:
    stamp = record["timestamp"]
    return {
        **{name: record[name] for name in ("partition", "offset", "key", "value")},
        "time": "" if stamp is None else stamp.strftime("%H:%M:%S.%f")[:-3],
        "why": record["witnesses"][number],
    }
