"""The evidence of one cell as an archive that can be attached to a JIRA as it is.

```
README.md                              verdict, rate, how to repeat it, versions, witnesses, timeline
verdict.json                           the verdict as the run has it
trial/                                 the first red trial (of a cell that is not red: the first that ended well)
  trial.json, outcome.json, reader.json, observations.json, timeline.jsonl, seed.jsonl, contents/, dumps/
  state/files.csv, state/.../.checkpoint   state directories, where a failed trial left them
tables/records-around-witnesses.csv    records of each role with a witness's key, or near its place
tables/findings.csv                    what Spark found in the trial
logs/whole/, logs/window/              the instances' logs, and the same cut to the window of the fault
logs/threads/                          what their threads were doing when the trial was stuck
other-trials/<trial>/                  of the cell's other trials: trial.json, outcome.json, reader.json
```

The window begins 5 s before the first fault: a step, a changed topic or quota, a crash, a killed instance, an
exception; of a trial without any, the first instance that is closed or started again. It ends 5 s after the input was
drained, or with the log.
"""

import csv
import io
import json
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from pyarrow.dataset import field

from onceproof.model.anomaly import Witness, first_of_each
from onceproof.model.cell import Cell, Trial, is_run_id
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import Outcome, Reading, TrialPlan, VerdictRow, read_observations
from onceproof.model.json_file import encoded, replacing
from onceproof.model.place import Place
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.timeline import Event, time_of_line
from onceproof.results.redaction import Redaction
from onceproof.results.spark_tables import rows_of_trial, witnesses_in

WITNESSES = 20  # of each anomaly
NEAR = 5  # offsets before and after a place
MARGIN = 5_000  # milliseconds before the first fault and after the end
LINES = 100  # of the condensed timeline
RECORD = ("role", "partition", "offset", "timestamp", "key", "value")  # columns of the table
FAULTS = {"step", "fault", "topic", "quota", "crash", "checkpoint", "exception"}
OF_INSTANCES = {"state", "restore", "restored", "contents", "stale-read", "exception"}
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first that a zip can tell: the same run gives the same bytes


@dataclass(frozen=True)
class Member:
    """One file of the archive: text, or what a JSON file holds, or the lines of a JSONL file."""

    name: str
    content: Any
    form: str = "text"

    def redacted(self, redaction: Redaction) -> bytes:
        """Its bytes, without what must not leave the machine."""
        if self.form == "json":
            return json.dumps(redaction.data(self.content), indent=2).encode()
        if self.form == "jsonl":
            return "".join(json.dumps(redaction.data(line)) + "\n" for line in self.content).encode()
        return redaction.text(self.content).encode()


@dataclass(frozen=True)
class Case:
    """All that is told of a cell, of which one trial stands for the others."""

    run: RunFolder
    verdict: VerdictRow
    trials: Sequence[Trial]
    shown: Trial
    events: Sequence[Event]

    @property
    def folder(self) -> TrialFolder:
        """Folder of the trial that is shown."""
        return self.run.trial(self.shown)

    def reader(self, trial: Trial) -> Reading | None:
        """What the independent reader found; None if it did not come to it."""
        return Reading.known(self.run.trial(trial).reader_file)

    @property
    def witnesses(self) -> list[Witness]:
        """The first of each anomaly, by anomaly, as they are counted; the tables number them from 1."""
        reader = self.reader(self.shown)
        rank = {name: number for number, name in enumerate(reader.anomalies)} if reader else {}
        found = first_of_each(reader.witnesses, WITNESSES) if reader else []
        return sorted(found, key=lambda witness: rank.get(witness.anomaly, len(rank)))


def find_run(runs: Path, wanted: str) -> RunFolder:
    """The judged run of this id; `last` is the newest that is judged.

    Raises:
        UsageError: there is none, or it is not judged.
    """
    ids = [path.name for path in sorted(runs.glob("*"), reverse=True) if is_run_id(path.name)]
    judged = [name for name in ids if RunFolder(runs / name).verdicts_file.exists()]
    if wanted == "last" and judged:
        return RunFolder(runs / judged[0])
    there_are = f"judged are {_some(judged)}" if judged else "none is judged yet; `onceproof run` makes one"
    if wanted not in ids:
        raise UsageError(f"There is no run {wanted!r} in {runs}: {there_are}.")
    if wanted not in judged:
        raise UsageError(f"Run {wanted} is not judged, so there is no verdict to give evidence of: {there_are}.")
    return RunFolder(runs / wanted)


def find_cell(run: RunFolder, wanted: str) -> VerdictRow:
    """The verdict of the cell with this key, or of the only one whose key has this part.

    Raises:
        UsageError: there is none, or there are several, or the run is not judged.
        HarnessError: the verdicts are damaged.
    """
    if not run.verdicts_file.exists():
        raise UsageError(f"Run {run.run_id} is not judged, so there is no verdict to give evidence of.")
    verdicts = {row.cell: row for row in VerdictRow.read_all(run.verdicts_file)}
    if wanted in verdicts:
        return verdicts[wanted]
    fitting = [cell for cell in verdicts if wanted.casefold() in cell.casefold()]
    if len(fitting) == 1:
        return verdicts[fitting[0]]
    if fitting:
        raise UsageError(f"{wanted!r} is part of {len(fitting)} cells, name one: {_some(fitting, len(fitting))}.")
    raise UsageError(f"Run {run.run_id} has no cell {wanted!r}; it has {_some(list(verdicts), len(verdicts))}.")


def _some(names: Sequence[str], limit: int = 5) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def write_evidence(run: RunFolder, cell: str, target: Path | None = None) -> Path:
    """Write the archive as a whole or not at all; without a target, into `evidence/` of the run folder.

    The same run gives the same bytes. Any judged cell has evidence, not only a red one.

    Returns:
        Where it is.

    Raises:
        UsageError: the run is not judged, the cell is not one of its cells, or the target is a folder.
        HarnessError: the run is damaged, or the disk is full or read-only.
    """
    verdict = find_cell(run, cell)
    target = target or run.path / "evidence" / f"{run.run_id}-{verdict.cell}.zip"
    if target.is_dir():
        raise UsageError(f"{target} is a folder: name the file that the archive shall be.")
    case = case_of(run, verdict)
    try:
        members = sorted(_members(case), key=lambda member: member.name)
    except (OSError, ValueError) as error:
        raise HarnessError(
            f"A file of run {run.run_id} could not be read ({error}): it is incomplete or damaged."
        ) from error
    redaction = Redaction.of(run)
    for member in members:
        redaction.learn(member.content)
    _write(target, [(member.name, member.redacted(redaction)) for member in members])
    return target


def _write(target: Path, members: Iterable[tuple[str, bytes]]) -> None:
    """A zip, because JIRA lists what is in one beside the attachment, and every system opens it by itself."""
    with replacing(target) as draft, draft.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        for name, content in members:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever it is written
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)


def case_of(run: RunFolder, verdict: VerdictRow) -> Case:
    """The cell with the trial that shows most: a red one, else one that ended well, else any."""
    trials = [trial for trial in run.trials() if trial.cell.key == verdict.cell]
    if not trials:
        raise HarnessError(f"{run.run_file} has no trial of {verdict.cell}: the run is incomplete or damaged.")

    def worth(trial: Trial) -> tuple[bool, bool, bool]:
        reader = Reading.known(run.trial(trial).reader_file)
        red = reader is not None and bool(reader.anomalies)
        sound = trial.key not in verdict.errors
        return red and sound, sound, run.trial(trial).path.exists()

    shown = max(trials, key=worth)  # the first of equals
    return Case(run, verdict, trials, shown, [e for e in _json_lines(run.trial(shown).timeline) if _is_event(e)])


def _is_event(line: Any) -> bool:
    return isinstance(line, dict) and {"t", "source", "event"} <= line.keys()


def _json_lines(file: Path) -> list[Any]:
    """What each line holds; a line that was cut off as it is. Nothing if there is no file."""
    if not file.exists():
        return []
    lines: list[Any] = []
    for line in _text(file).splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            lines.append(line)
    return lines


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _members(case: Case) -> Iterator[Member]:
    """All files of the archive, not yet redacted."""
    folder = case.folder
    yield Member("verdict.json", encoded(case.verdict), "json")
    for file in (folder.trial_file, folder.outcome_file, folder.reader_file, folder.observations_file):
        yield from _json_member(file, f"trial/{file.name}")
    for file in (folder.timeline, folder.path / "seed.jsonl"):
        if file.exists():
            yield Member(f"trial/{file.name}", _json_lines(file), "jsonl")
    for file in sorted(folder.contents.glob("*.csv")):
        yield Member(f"trial/contents/{file.name}", _text(file))
    for dump in folder.dumps():
        yield Member(f"trial/dumps/{dump.file.name}", _text(dump.file))
    yield from _state(folder.state)
    tables = [member for member in (_records_near(case), _findings(case)) if member is not None]
    yield from tables
    window = _window(case.events)
    for log in sorted(folder.instances.glob("*.log")):
        whole = _text(log)
        yield Member(f"logs/whole/{log.name}", whole)
        if window is not None:
            yield Member(f"logs/window/{log.name}", _cut(whole, *window))
    for threads in sorted(folder.threads.glob("*.txt")):
        yield Member(f"logs/threads/{threads.name}", _text(threads))
    for trial in case.trials:
        if trial != case.shown:
            other = case.run.trial(trial)
            for file in (other.trial_file, other.outcome_file, other.reader_file):
                yield from _json_member(file, f"other-trials/{trial.key}/{file.name}")
    yield Member("README.md", _readme(case, window, bool(tables)))


def _json_member(file: Path, name: str) -> Iterator[Member]:
    if file.exists():
        text = _text(file)
        try:
            yield Member(name, json.loads(text), "json")
        except ValueError:
            yield Member(name, text)


def _state(folder: Path) -> Iterator[Member]:
    """What a failed trial left of the state directories: names, sizes, times, and the checkpoints themselves."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if not files:
        return
    rows = []
    for file in files:
        name, stat = file.relative_to(folder).as_posix(), file.stat()
        rows.append((name, stat.st_size, _moment(stat.st_mtime * 1000)))
        if file.name.startswith(".checkpoint"):
            yield Member(f"trial/state/{name}", _text(file))
    yield Member("trial/state/files.csv", _csv(("path", "bytes", "modified"), rows))


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _moment(milliseconds: float) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _findings(case: Case) -> Member | None:
    found = witnesses_in(case.run, case.shown)
    if found is None:
        return None
    columns = [column.name for column in fields(Witness)]
    lines = sorted((_place_order(witness), [_joined(getattr(witness, name)) for name in columns]) for witness in found)
    return Member("tables/findings.csv", _csv(columns, (line for _, line in lines)))


def _place_order(witness: Witness) -> tuple[str, list[Place], int]:
    """By anomaly, and within it as the topics go."""
    return witness.anomaly, witness.places, -1 if witness.key is None else witness.key


def _joined(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def _records_near(case: Case) -> Member | None:
    """The records around all witnesses, each once; the last column has their numbers and why."""
    rows = records_around(case.run, case.shown, dict(enumerate(case.witnesses, 1)))
    if rows is None:
        return None
    lines = [
        [
            *(row[name] for name in ("role", "partition", "offset")),
            "" if row["timestamp"] is None else row["timestamp"].strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
            _joined(row["key"]),
            _joined(row["value"]),
            " ".join(f"{number}:{why}" for number, why in row["witnesses"].items()),
        ]
        for row in rows
    ]
    return Member("tables/records-around-witnesses.csv", _csv((*RECORD, "witnesses"), lines))


def records_around(run: RunFolder, trial: Trial, witnesses: Mapping[int, Witness]) -> list[dict[str, Any]] | None:
    """For each witness the records of every role with its key, and those near its places.

    A witness without a key has the keys of the records at its places.

    Args:
        run: the run, whose table `records` is read.
        trial: the trial of which the witnesses are.
        witnesses: by number.

    Returns:
        By role, partition and offset: `role`, `partition`, `offset`, `timestamp` (UTC or None), `key`, `value`, and in
        `witnesses` why it is told, by number of the witness: `place`, `key` or `near`. None if there is no table, or
        no witness.
    """
    table = run.table("records")
    places = {number: witness.places for number, witness in witnesses.items()}
    near: dict[tuple[str, int], dict[int, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
    for number, of_witness in places.items():
        for role, partition, offset in of_witness:
            for at in range(max(0, offset - NEAR), offset + NEAR + 1):
                near[role, partition][at].append((number, "place" if at == offset else "near"))
    wanted = field("key").isin([])
    for (role, partition), offsets in near.items():
        wanted |= (field("role") == role) & (field("partition") == partition) & field("offset").isin(sorted(offsets))
    close = rows_of_trial(table, trial, RECORD, wanted)
    if close is None or not witnesses:
        return None
    at_place = {(row["role"], row["partition"], row["offset"]): row["key"] for row in close}
    with_key: dict[int, set[int]] = defaultdict(set)
    for number, witness in witnesses.items():
        own = [witness.key] if witness.key is not None else [at_place.get(place) for place in places[number]]
        for key in own:
            if key is not None:
                with_key[key].add(number)
    rows = [*close, *(rows_of_trial(table, trial, RECORD, field("key").isin(sorted(with_key))) or [])]
    told = {}
    for row in rows:
        place = (row["role"], row["partition"], row["offset"])
        why = dict.fromkeys(with_key.get(row["key"], ()), "key")
        for number, reason in near.get(place[:2], {}).get(place[2], ()):
            why[number] = "place" if "place" in (reason, why.get(number)) else why.get(number, reason)
        told[place] = {**row, "witnesses": {number: why[number] for number in sorted(why)}}
    return [told[place] for place in sorted(told)]


def _window(events: Sequence[Event]) -> tuple[int, int | None] | None:
    """Begin and end of what matters, epoch milliseconds; no end if the log was not drained; None without a fault."""
    faults, lesser, started = [], [], set()
    for event in events:
        action = event.get("action") if event["event"] == "instance" else None
        if event["event"] in FAULTS or action == "killed":
            faults.append(event["t"])
        elif action == "closed" or (action == "started" and event["name"] in started):
            lesser.append(event["t"])
        if action == "started":
            started.add(event["name"])
    begins = faults or lesser
    if not begins:
        return None
    drained = [event["t"] for event in events if event["event"] == "drained"]
    return min(begins) - MARGIN, max(drained) + MARGIN if drained else None


def _cut(log: str, begin: int, end: int | None) -> str:
    """The lines of the window; one without a time belongs to the one before."""
    within, kept = False, []
    for line in log.splitlines(keepends=True):
        at = time_of_line(line)
        if at is not None:
            within = begin <= at and (end is None or at <= end)
        if within:
            kept.append(line)
    return "".join(kept)


def _readme(case: Case, window: tuple[int, int | None] | None, tables: bool) -> str:
    """The first page: what it is and how to repeat it, in a minute."""
    verdict, cell = case.verdict, case.verdict.as_cell
    folder = case.folder
    plan, outcome = TrialPlan.known(folder.trial_file), Outcome.known(folder.outcome_file)
    rate = f"{verdict.red}/{verdict.counted}"
    parts = [
        f"# {cell.title}: {verdict.verdict.sign} {verdict.verdict}",
        verdict.sentence,
        f"Red/counted: **{rate}** (of {verdict.trials} in run {case.run.run_id}). "
        f"Shown here: trial {case.shown.number}, seed {case.shown.seed}.",
        *([verdict.arithmetic] if verdict.arithmetic else []),
        *([f"What the variant is: {plan.description}"] if plan and plan.description else []),
        *([f"What happened: {outcome.reason}"] if outcome and outcome.reason else []),
        "## Repeat it",
        f"```\n{case.shown.command}\n```",
        "The seed gives the same schedule of records and steps; the threads and brokers stay free, so expect the rate "
        "above and not every trial to be red.",
        "## What really ran",
        _versions(outcome, cell),
        "## Configuration of Kafka Streams",
        _config(plan.streams_config if plan else {}),
        "## Witnesses",
        _witnesses(case, tables),
        "## State directories and promises",
        _observed(folder),
        "## Timeline",
        _timeline(case.events, window),
    ]
    if len(case.trials) > 1:
        parts += ["## All trials of the cell", _trials(case)]
    parts += ["## Files", FILES]
    return "\n\n".join(parts) + "\n"


FILES = """\
- `verdict.json`: the verdict as the run has it.
- `trial/trial.json`: the trial with every config of application, producer and brokers; `outcome.json`: how it ended;
  `reader.json`: counts and witnesses of the independent reader; `observations.json`: promises compared with what
  was seen.
- `trial/timeline.jsonl`: every event; `t` is epoch milliseconds. `seed.jsonl`: the records produced before.
- `trial/contents/`: what stores held when an instance began to work, as `store,partition,number,key,value`; where
  the scenario asks for it.
- `trial/state/`: files and checkpoints of the state directories, where a failed trial left them. Of a trial that
  ended well, the timeline's `checkpoint`, `crash`, `initialised` and `contents` tell what was in them.
- `tables/records-around-witnesses.csv`: records of every topic with a witness's key (of a witness without one, the
  key of the records at its places), and 5 offsets before and after its places. The last column has the number of the
  witness and `place`, `key` or `near`. Timestamps are those of the input records: Kafka Streams hands them on.
- `tables/findings.csv`: all that Spark found in this trial.
- `logs/whole/`: the instances' logs; `logs/window/`: the same from 5 s before the first fault to 5 s after the input
  was drained.
- `other-trials/`: the other trials of the cell.

Values of secrets are `***`. Paths, hosts and accounts are `[run]`, `[project]`, `[home]`, `[path]`, `[host]`, `[user]`;
loopback addresses stay."""


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    cells = [[" ".join(_joined(cell).split()).replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _versions(outcome: Outcome | None, cell: Cell) -> str:
    """What each start of an instance told of itself."""
    columns = ("streams_version", "streams_commit", "clients_version", "clients_commit", "java")
    attested = outcome.attested if outcome else {}
    rows = [[name, *(told.get(column) for column in columns)] for name, told in sorted(attested.items())]
    header = ("instance", "Kafka Streams", "commit", "clients", "commit", "Java")
    told = _table(header, rows) if rows else "No instance came so far as to tell."
    return f"{told}\n\nBrokers: Kafka {cell.broker}. Onceproof {version('onceproof')}."


def _config(config: Mapping[str, str]) -> str:
    return "\n".join(["```", *(f"{name}={value}" for name, value in sorted(config.items())), "```"])


def _witnesses(case: Case, tables: bool) -> str:
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
    return f"{counts} The first {WITNESSES} of each; {around}\n\n{_table(header, rows)}"


def _observed(folder: TrialFolder) -> str:
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
    table = _table(("promise", "place", "expected", "observed", ""), rows)
    more = len(comparisons) - len(chosen)
    return f"{table}\n\n{more:,} more are in `trial/observations.json`." if more else table


def _trials(case: Case) -> str:
    rows = []
    for trial in case.trials:
        outcome, reader = Outcome.known(case.run.trial(trial).outcome_file), case.reader(trial)
        seen = ", ".join(f"{count:,} {name}" for name, count in reader.anomalies.items()) if reader else ""
        error = case.verdict.errors.get(trial.key)
        exercised = "yes" if outcome and outcome.exercised else "no"
        rows.append((trial.number, trial.seed, exercised, error or seen or "none"))
    return _table(("trial", "seed", "exercised", "anomalies"), rows)


def _timeline(events: Sequence[Event], window: tuple[int, int | None] | None) -> str:
    """What happened, one line each; what belongs together on one line."""
    if not events:
        return "The trial was not driven."
    zero = min(event["t"] for event in events)
    telling = [
        e for e in events if (e["event"] in OF_INSTANCES or e["source"] == "driver") and e["event"] != "produced"
    ]
    lines = []
    for (source, name), group in groupby(telling, key=lambda event: (event["source"], event["event"])):
        alike = list(group)
        merged = [alike] if name in ("restore", "restored", "stale-read") else [[event] for event in alike]
        lines += [
            f"{(e[0]['t'] - zero) / 1000:8.3f}  {source:<11} {name:<11} {_told(name, e)}".rstrip() for e in merged
        ]
    shown = lines[:LINES]
    if len(lines) > LINES:
        shown.append(f"          ... and {len(lines) - LINES:,} more in trial/timeline.jsonl")
    told = f"Seconds since {_moment(zero)}."
    if window is not None:
        begin, end = window
        until = f"to {(end - zero) / 1000:.1f} s" if end is not None else "to their end"
        told += f" The logs are cut from {max(0, begin - zero) / 1000:.1f} s {until}."
    return "\n".join([told, "", "```", *shown, "```"])


def _told(name: str, events: Sequence[Event]) -> str:
    """What an event says beside its kind; of restores and stale reads, what several say together."""
    event = events[0]
    if name == "restore":
        offsets = sum(e["end"] - e["from"] for e in events)
        return f"{_stores(events)}: {offsets:,} offsets to replay"
    if name == "restored":
        return f"{_stores(events)}: {sum(e['records'] for e in events):,} records replayed"
    if name == "state":
        return f"{event['from']} to {event['to']}"
    rest = {field: value for field, value in event.items() if field not in ("t", "source", "event")}
    told = " ".join(
        f"{field}={value if isinstance(value, str) else json.dumps(value)}" for field, value in rest.items()
    )
    return f"{told} (and {len(events) - 1:,} more)" if len(events) > 1 else told


def _stores(events: Sequence[Event]) -> str:
    if len(events) == 1:
        return f"{events[0]['store']}/{events[0]['partition']}"
    return f"{len(events)} partitions of {', '.join(sorted({e['store'] for e in events}))}"
