"""The first page of an archive: what it is and how to repeat it, in a minute."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from onceproof.model.cell import OF_APPLICATION, Cell
from onceproof.model.errors import HarnessError
from onceproof.model.files import Outcome, TrialPlan, VerdictRow, read_observations
from onceproof.model.run_folder import TrialFolder
from onceproof.model.timeline import Event
from onceproof.results.evidence.case import WITNESSES, EvidenceCase
from onceproof.results.evidence.text import escape, fence, join, moment
from onceproof.results.evidence.window import Window

DOUBTS = 30  # places of words that may be secrets
LINES = 100  # of the condensed timeline
OF_INSTANCES = {"state", "restore", "restored", "contents", "stale-read", "exception"}
Redact = Callable[[str], str]  # a text that may be of others, as Markdown


def readme(case: EvidenceCase, window: Window | None, tables: bool, redacted: Redact) -> str:
    """The first page: what it is and how to repeat it, in a minute.

    What stands in a fence is not passed through `redacted`.
    """
    folder = case.folder
    plan, outcome = TrialPlan.read_known(folder.trial_file), Outcome.read_known(folder.outcome_file)
    parts = [
        *_describe_judged(case, redacted),
        *([f"What the variant is: {redacted(plan.description)}"] if plan and plan.description else []),
        *([f"What happened: {redacted(outcome.reason)}"] if outcome and outcome.reason else []),
        "## Repeat it",
        fence([case.shown.command]),
        "The seed gives the same schedule of records and steps; the threads and brokers stay free, so expect the rate "
        "above and not every trial to be red.",
        "## What really ran",
        _versions(outcome, case.cell, redacted),
        "## Configuration of Kafka Streams",
        _config({**plan.streams_config, **plan.group_config} if plan else {}),
        "## Witnesses",
        _witnesses(case, tables, redacted),
        "## State directories and promises",
        _describe_observed(folder, redacted),
        "## Timeline",
        _timeline(case.events, window),
    ]
    if len(case.trials) > 1:
        parts += ["## All trials of the cell", _trials(case, redacted)]
    parts += ["## Files", FILES]
    return "\n\n".join(parts) + "\n"


def doubtful(places: Sequence[str]) -> str:
    """The last section: places of words that may be secrets, by file and line."""
    lines = ["", "## Before you publish it", ""]
    if places:
        lines += ["Here are words that look random. They may be ids: take out what is a password or a key.", ""]
        lines += [f"- {escape(place)}" for place in places[:DOUBTS]]
        lines += [f"- and {len(places) - DOUBTS:,} more places"] if len(places) > DOUBTS else []
    else:
        lines.append("No word in these files looks random.")
    return "\n".join(lines) + "\n"


def _describe_judged(case: EvidenceCase, redacted: Redact) -> Iterator[str]:
    """The subject of the judgement, and the rule that judged it."""
    verdict, shown = case.verdict, f"Shown here: trial {case.shown.number}, seed {case.shown.seed}."
    if isinstance(verdict, VerdictRow):
        yield f"# {case.cell.title}: {verdict.verdict.sign} {verdict.verdict}"
        yield redacted(verdict.sentence)
        rate = f"{verdict.red}/{verdict.counted}"
        yield f"Red/counted: **{rate}** (of {verdict.trials} in run {case.run.run_id}). {shown}"
        yield from map(redacted, filter(None, (verdict.arithmetic, verdict.unqualified)))
    else:
        name = Path(case.shown.parameters[OF_APPLICATION]).name
        yield f"# {redacted(name)} on Kafka Streams {verdict.releases}, broker {case.cell.broker}: {verdict.judgement}"
        if verdict.explained:
            yield f"It is {redacted(verdict.explained)}." if verdict.is_known else "No known issue explains all of it."
        yield redacted(verdict.reason)
        yield from [f"Next: {redacted(verdict.advice)}"] if verdict.advice else []
        yield f"The other trials of run {case.run.run_id} are its oracle and its controls. {shown}"
        agreed = "; ".join(f"{topic}: {output.agreed}" for topic, output in verdict.outputs.items())
        yield from [f"What runs without a fault agree on: {redacted(agreed)}."] if agreed else []
        if verdict.plant:
            yield f"The bug {verdict.plant.name} was planted into the release: this is no evidence about Kafka."


FILES = """\
- `verdict.json`: the verdict as the run has it.
- `trial/trial.json`: the trial with every config of application, producer and brokers; `outcome.json`: how it ended;
  `reader.json`: counts and witnesses of the independent reader; `observations.json`: promises compared with what
  was seen.
- `trial/timeline.jsonl`: every event; `t` is epoch milliseconds. `preload.jsonl`: the records produced before.
- `trial/contents/`: what stores held when an instance began to work, as `store,partition,number,key,value`; where
  the scenario asks for it.
- `trial/state/`: files and checkpoints of the state directories, where a failed trial left them. Of a trial that
  ended well, the timeline's `checkpoint`, `crash`, `initialised` and `contents` show what was in them.
- `tables/records-around-witnesses.csv`: records of every topic with a witness's key (of a witness without one, the
  key of the records at its places), and 5 offsets before and after its places. The last column has the number of the
  witness and `place`, `key` or `near`. Timestamps are those of the input records: Kafka Streams hands them on.
- `tables/findings.csv`: all that Spark found in this trial.
- `logs/whole/`: the instances' logs; `logs/window/`: the same from 5 s before the first fault to 5 s after the input
  was drained.
- `other-trials/`: the other trials of the cell.

Values of secrets are `***`. Paths, hosts and accounts are `[run]`, `[project]`, `[home]`, `[path]`, `[host]`, `[user]`;
loopback addresses stay."""


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]], redacted: Redact) -> str:
    lines = [header, ["---"] * len(header), *([redacted(join(cell)) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _versions(outcome: Outcome | None, cell: Cell, redacted: Redact) -> str:
    """The reports of each start of an instance about itself."""
    columns = ("streams_version", "streams_commit", "clients_version", "clients_commit", "java")
    attested = outcome.attested if outcome else {}
    rows = [[name, *(of.get(column) for column in columns)] for name, of in sorted(attested.items())]
    header = ("instance", "Kafka Streams", "commit", "clients", "commit", "Java")
    table = _table(header, rows, redacted) if rows else "No instance came far enough to report it."
    machine = f" Driven on {redacted(outcome.machine)}." if outcome and outcome.machine else ""
    return f"{table}\n\nBrokers: Kafka {cell.broker}. Onceproof {version('onceproof')}.{machine}"


def _config(config: Mapping[str, str]) -> str:
    return fence(f"{name}={value}" for name, value in sorted(config.items()))


def _witnesses(case: EvidenceCase, tables: bool, redacted: Redact) -> str:
    reader = case.reader(case.shown)
    if reader is None:
        return "The independent reader did not come to read this trial."
    seen = ", ".join(f"{count:,} {name}" for name, count in reader.anomalies.items()) or "no anomaly"
    counts = f"{seen} in {reader.records:,} records with {reader.keys:,} keys."
    if not case.witnesses:
        return counts
    rows = [
        (i, w.anomaly, w.partition, w.key, w.ids, w.expected, w.observed, w.offsets)
        for i, w in enumerate(case.witnesses, 1)
    ]
    header = ("#", "anomaly", "partition", "key", "ids", "expected", "observed", "where")
    around = "the records around them are in `tables/`." if tables else "Spark has not collected the records."
    return f"{counts} The first {WITNESSES} of each; {around}\n\n{_table(header, rows, redacted)}"


def _describe_observed(folder: TrialFolder, redacted: Redact) -> str:
    """The comparisons with the timeline, those that are wrong first."""
    file = folder.observations_file
    try:
        comparisons = read_observations(file) if file.exists() else ()
    except HarnessError:
        comparisons = ()
    if not comparisons:
        return "This scenario looked at none."
    chosen = sorted(comparisons, key=lambda c: c.anomaly is None)[:WITNESSES]
    rows = [(c.promise, c.place, c.expected, c.observed, c.anomaly or "as expected") for c in chosen]
    table = _table(("promise", "place", "expected", "observed", ""), rows, redacted)
    more = len(comparisons) - len(chosen)
    return f"{table}\n\n{more:,} more are in `trial/observations.json`." if more else table


def _trials(case: EvidenceCase, redacted: Redact) -> str:
    rows = []
    for trial in case.trials:
        outcome, reader = Outcome.read_known(case.run.trial(trial).outcome_file), case.reader(trial)
        seen = ", ".join(f"{count:,} {name}" for name, count in reader.anomalies.items()) if reader else ""
        error = case.errors.get(trial.key)
        exercised = "yes" if outcome and outcome.exercised else "no"
        rows.append((trial.number, trial.seed, exercised, error or seen or "none"))
    return _table(("trial", "seed", "exercised", "anomalies"), rows, redacted)


def _timeline(events: Sequence[Event], window: Window | None) -> str:
    """The events, one line each; what belongs together on one line."""
    if not events:
        return "The trial was not driven, or its timeline is damaged."
    zero = min(event["t"] for event in events)
    telling = [
        e for e in events if (e["event"] in OF_INSTANCES or e["source"] == "driver") and e["event"] != "produced"
    ]
    lines = []
    for (source, name), group in groupby(telling, key=lambda event: (event["source"], event["event"])):
        alike = list(group)
        merged = [alike] if name in ("restore", "restored", "stale-read") else [[event] for event in alike]
        lines += [
            f"{(e[0]['t'] - zero) / 1000:8.3f}  {source:<11} {name:<11} {_line(name, e)}".rstrip() for e in merged
        ]
    shown = lines[:LINES]
    if len(lines) > LINES:
        shown.append(f"          ... and {len(lines) - LINES:,} more in trial/timeline.jsonl")
    note = f"Seconds since {moment(zero)}."
    if window is not None:
        begin, end = window
        until = f"to {(end - zero) / 1000:.1f} s" if end is not None else "to their end"
        note += f" The logs are cut from {max(0, begin - zero) / 1000:.1f} s {until}."
    return f"{note}\n\n{fence(shown)}"


def _line(name: str, events: Sequence[Event]) -> str:
    """The fields of an event besides its kind, on one line; for restores and stale reads, what several say together."""
    event = events[0]
    if name == "restore":
        offsets = sum(e["end"] - e["from"] for e in events)
        return f"{_stores(events)}: {offsets:,} offsets to replay"
    if name == "restored":
        return f"{_stores(events)}: {sum(e['records'] for e in events):,} records replayed"
    if name == "state":
        return f"{event['from']} to {event['to']}"
    rest = {field: value for field, value in event.items() if field not in ("t", "source", "event")}
    fields = (f"{field}={value if isinstance(value, str) else json.dumps(value)}" for field, value in rest.items())
    line = " ".join(" ".join(fields).splitlines())
    return f"{line} (and {len(events) - 1:,} more)" if len(events) > 1 else line


def _stores(events: Sequence[Event]) -> str:
    if len(events) == 1:
        return f"{events[0]['store']}/{events[0]['partition']}"
    return f"{len(events)} partitions of {', '.join(sorted({e['store'] for e in events}))}"
