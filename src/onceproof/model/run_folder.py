"""A run is a plain folder that explains itself; copying it copies the truth. `model.files` has the contents
of its files.

```
<run>/
  run.json                         what was asked: matrix, cells, trials with their seeds
  further_trials.json              trials that were added, because a verdict needed more of them, or one was killed
  clusters/<broker>.json           the brokers of the run: bootstrap servers, process, log
  clusters/<trial>.json            those of a trial that has its own
  trials/<trial>.attempt-<n>/      what failed or interrupted attempts left behind; in resumed runs
  trials/<trial>/
    trial.json                     the trial and every config that was used
    progress.json                  seconds of what came before the trial was driven
    preload.jsonl                  events of what was produced before the trial was driven
    timeline.jsonl                 every event in order: bulks, states, assignments, faults, drains
    instances/<name>.log           log of each instance
    threads/<name>.txt             what the threads of each instance were doing when the trial was stuck
    contents/<task>.csv            what stores held when an instance began to work; where a scenario asks for it
    dumps/<instance>.<store>.<partition>.<active|standby>.<offset>.csv
                                   what a store held at the end, and the changelog offset that it claimed
    dumps/<the same>.entries       the same as bytes, with timestamps, of stores whose entries are compared
    topics/committed.parquet       the messages of its topics, as the independent reader got them, with those alone
    topics/all.parquet             that are committed, or with all where a role is read so: `lab.messages`
    segments.parquet               what the brokers' log segments hold of its transactions, a row for each
                                   `model.segments.LogEntry`; of embedded brokers under exactly-once
    observations.json              what promises expected and the timeline showed; where a scenario has such promises
    outputs.json                   what a user application emitted
    replay.jsonl                   its input in the order in which it is replayed, if that is asked for
    reader.json                    what the independent reader counted (no Spark involved)
    outcome.json                   exercised or not, seconds by phase; what Kafka did that ended the drive, why the
                                   trial is void, or the error; written last
  trials_over                      is there as soon as no further trial will be driven
  parts/                           tables of trials that have ended, as run folders of their own, until those of the
                                   run are made of them
  tables/<table>/                  Parquet: records, assignments, changelogs, transactions, comparisons, findings,
                                   counts
  validations/<trial>.json         outcome of each Great Expectations suite
  data_docs/index.html             the suites' results in the browser
  verdicts.json                    one verdict per cell
  evidence/<run>-<cell>.zip        archives for a JIRA, where a user asked for them
  planted/                         trials with planted bugs, as a run folder of their own: run.json, clusters/, trials/,
                                   tables/
  qualification.json               whether the harness still sees on a release, if that was all the run was for
  sensitivity.json                 what became of planted bugs, if that was all the run was for
  app.json                         what a user application showed on each release, if the run is of one;
                                   next to it, `oracle-<release>.json` is its output without a fault,
                                   `replay-<release>/` its input as it was replayed during a run, and
                                   `cluster-<release>-<n>/` what brokers that all its releases share have written
  bisect.json                      boundaries, if the run is a bisection; it has nothing of the above but trials
```
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onceproof.model.cell import Cell, Trial
from onceproof.model.decoding import decode
from onceproof.model.errors import HarnessError
from onceproof.model.files import Outcome, VerdictRow
from onceproof.model.json_file import read_json, write_json
from onceproof.model.verdict import Verdict


def read_contents(folder: Path) -> Iterator[tuple[str, int, int, int, int]]:
    """The content of stores: role `<store>-contents`, partition, number of the entry, key, value. None without any."""
    for file in sorted(folder.glob("*.csv")):
        with file.open() as lines:
            for line in lines:
                store, *numbers = line.strip().split(",")
                partition, number, key, value = map(int, numbers)
                yield f"{store}-contents", partition, number, key, value


@dataclass(frozen=True)
class StoreDump:
    """The content of a store of an instance at the end of a trial: by its own claim, its changelog up to `offset`."""

    instance: str
    store: str
    partition: int
    task_type: str  # `active` or `standby`
    offset: int
    file: Path  # one line `key,value` an entry; as bytes, `key,value,timestamp`

    @staticmethod
    def of(file: Path) -> "StoreDump":
        """The dump in a file, by the file's name."""
        instance, store, partition, task_type, offset, _ = file.name.rsplit(".", 5)
        return StoreDump(instance, store, int(partition), task_type, int(offset), file)

    @property
    def title(self) -> str:
        """The store, its instance and its place in the input."""
        where = f"partition {self.partition}, at offset {self.offset}"
        return f"{self.task_type} store {self.store} of {self.instance}, {where}"

    def entries(self) -> dict[int, int]:
        """The content of the store."""
        with self.file.open() as lines:
            return {int(key): int(value) for key, value in (line.split(",") for line in lines)}

    def byte_entries(self) -> Iterator[tuple[str, str, int | None, str | None]]:
        """The content as bytes: key and value in hexadecimal digits; timestamp and headers if the store keeps them."""
        with self.file.open() as lines:
            for line in lines:
                key, value, timestamp, *headers = line.rstrip("\n").split(",", 3)
                yield key, value, int(timestamp) if timestamp else None, headers[0] if headers else None


@dataclass(frozen=True)
class TrialFolder:
    """The folder of one trial."""

    path: Path

    @property
    def trial_file(self) -> Path:
        """The trial and every config that was used."""
        return self.path / "trial.json"

    @property
    def progress_file(self) -> Path:
        """How far it has come before it is driven."""
        return self.path / "progress.json"

    @property
    def preload(self) -> Path:
        """Events of the records that were produced before the trial was driven, as in the timeline."""
        return self.path / "preload.jsonl"

    @property
    def timeline(self) -> Path:
        """Every event in order, one JSON object a line."""
        return self.path / "timeline.jsonl"

    @property
    def instances(self) -> Path:
        """Folder of the instances' logs."""
        return self.path / "instances"

    @property
    def state(self) -> Path:
        """Folder of the instances' state directories; removed when the trial has ended well."""
        return self.path / "state"

    @property
    def contents(self) -> Path:
        """Folder of what stores held when an instance began to work: `store,partition,number,key,value` a line."""
        return self.path / "contents"

    @property
    def dumps_folder(self) -> Path:
        """Folder of what stores held at the end."""
        return self.path / "dumps"

    def dumps(self) -> list[StoreDump]:
        """The content of stores at the end, in the order of their files' names."""
        return [StoreDump.of(file) for file in sorted(self.dumps_folder.glob("*.csv"))]

    def entry_dumps(self) -> list[StoreDump]:
        """The same as bytes, of stores whose entries are compared."""
        return [StoreDump.of(file) for file in sorted(self.dumps_folder.glob("*.entries"))]

    @property
    def threads(self) -> Path:
        """Folder of the instances' thread dumps, if the trial was stuck."""
        return self.path / "threads"

    @property
    def topics(self) -> Path:
        """Folder of the messages of its topics, as they were read."""
        return self.path / "topics"

    def messages_file(self, *, committed: bool) -> Path:
        """The messages of its topics as a reader got them who sees committed ones only, or all."""
        return self.topics / ("committed.parquet" if committed else "all.parquet")

    @property
    def segments_file(self) -> Path:
        """The entries of the brokers' log segments of its transactions, as Parquet: `model.segments.LogEntry`."""
        return self.path / "segments.parquet"

    @property
    def observations_file(self) -> Path:
        """The comparisons with the timeline, as a list of `model.anomaly.Comparison`."""
        return self.path / "observations.json"

    @property
    def reader_file(self) -> Path:
        """Findings of the independent reader."""
        return self.path / "reader.json"

    @property
    def outputs_file(self) -> Path:
        """The output of a user application: `model.oracle.Outputs`."""
        return self.path / "outputs.json"

    @property
    def replay_file(self) -> Path:
        """Input of a user application, in the order in which it is replayed."""
        return self.path / "replay.jsonl"

    @property
    def outcome_file(self) -> Path:
        """How the trial ended; exists only when it ended."""
        return self.path / "outcome.json"


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @property
    def run_id(self) -> str:
        """The run's id, which is the folder's name."""
        return self.path.name

    @property
    def run_file(self) -> Path:
        """The file with the request."""
        return self.path / "run.json"

    @property
    def interrupted_file(self) -> Path:
        """Exists from Ctrl-C or SIGTERM on until the run is resumed."""
        return self.path / "interrupted"

    @property
    def planted(self) -> "RunFolder":
        """Folder of the trials with planted bugs, which are no evidence about Kafka."""
        return RunFolder(self.path / "planted")

    def cluster_file(self, name: str) -> Path:
        """The brokers of one release, or of one trial."""
        return self.path / "clusters" / f"{name}.json"

    def cluster_folder(self, name: str) -> Path:
        """Logs and data of the brokers of one release, or of one trial."""
        return self.path / "clusters" / name

    def cluster_of(self, trial: Trial) -> str:
        """The name of the brokers of a trial: its own, if it was given some, or those that it shares."""
        return trial.key if self.cluster_file(trial.key).exists() else str(trial.cell.broker)

    def can_be_read(self, trial: Trial) -> bool:
        """Whether the brokers of a trial are there: not those that a run had before it was resumed, or that ended."""
        file = self.cluster_file(self.cluster_of(trial))
        return file.exists() and not read_json(file).get("stopped")

    def trial(self, trial: Trial | str) -> TrialFolder:
        """Folder of the trial with this key."""
        key = trial if isinstance(trial, str) else trial.key
        return TrialFolder(self.path / "trials" / key)

    def table(self, name: str) -> Path:
        """Folder of a Parquet table; its column `trial` says whose rows they are."""
        return self.path / "tables" / name

    @property
    def parts(self) -> Path:
        """Folder of what the tables are made of, while they are."""
        return self.path / "parts"

    @property
    def validations(self) -> Path:
        """Folder of the suites' outcomes."""
        return self.path / "validations"

    def validation_file(self, trial: Trial | str) -> Path:
        """Outcome of the suites on one trial."""
        key = trial if isinstance(trial, str) else trial.key
        return self.validations / f"{key}.json"

    @property
    def data_docs(self) -> Path:
        """First page of the Data Docs."""
        return self.path / "data_docs" / "index.html"

    @property
    def bisection_file(self) -> Path:
        """Boundaries between good and bad releases."""
        return self.path / "bisect.json"

    @property
    def fix_file(self) -> Path:
        """Whether a build has the fix of an issue."""
        return self.path / "fix.json"

    @property
    def app_file(self) -> Path:
        """The result of a user application."""
        return self.path / "app.json"

    @property
    def sensitivity_file(self) -> Path:
        """The outcome of planted bugs."""
        return self.path / "sensitivity.json"

    @property
    def qualification_file(self) -> Path:
        """Whether the harness still sees on a release."""
        return self.path / "qualification.json"

    @property
    def verdicts_file(self) -> Path:
        """One verdict per cell."""
        return self.path / "verdicts.json"

    @property
    def further_trials_file(self) -> Path:
        """Trials that were added to those of the plan."""
        return self.path / "further_trials.json"

    @property
    def trials_over(self) -> Path:
        """Is there as soon as no further trial will be driven."""
        return self.path / "trials_over"

    @property
    def is_finished(self) -> bool:
        """Whether all is judged: a run with an `error` can be resumed, which repeats what failed."""
        if not self.verdicts_file.exists():
            return False
        return all(row.verdict is not Verdict.ERROR for row in VerdictRow.read_all(self.verdicts_file))

    @property
    def has_topics(self) -> bool:
        """Whether brokers that it started left their data, which `publish` deletes of one that is finished."""
        return any(self.path.glob("clusters/*/data-1"))

    @property
    def can_be_resumed(self) -> bool:
        """Whether it is a run of the matrix that still has its topics: one that is finished and stored has none."""
        return self.run_file.exists() and self.has_topics

    def archive_attempt(self, trial: Trial) -> None:
        """Keep what an attempt at a trial left under another name, so that nothing of it is mistaken for the next."""
        folder = self.trial(trial).path
        if folder.exists():
            earlier = len(list(folder.parent.glob(f"{folder.name}.attempt-*")))
            folder.rename(folder.with_name(f"{folder.name}.attempt-{earlier + 1}"))

    def trials(self) -> Iterator[Trial]:
        """The trials of the plan, in its order, and those that were added.

        Raises:
            HarnessError: the plan is missing or damaged.
        """
        for data in (*read_json(self.run_file)["trials"], *self._further_trials()):
            yield _trial(data)

    def trials_by_cell(self) -> dict[Cell, list[Trial]]:
        """The same trials by their cells, in the order of the plan.

        Raises:
            HarnessError: the plan is missing or damaged.
        """
        trials: dict[Cell, list[Trial]] = defaultdict(list)
        for trial in self.trials():
            trials[trial.cell].append(trial)
        return dict(trials)

    def list_planned_keys(self) -> set[str]:
        """Keys of the trials of the plan, whose number was fixed before the first, and of those in their places.

        Raises:
            HarnessError: the plan is missing or damaged.
        """
        replacing = [data for data in self._further_trials() if data.get("planned")]
        return {_trial(data).key for data in (*read_json(self.run_file)["trials"], *replacing)}

    def add_trial(self, trial: Trial, *, planned: bool = False) -> None:
        """Add a trial to those of the plan; as one that was `planned`, if it takes the place of such a one."""
        write_json(self.further_trials_file, [*self._further_trials(), trial.to_dict() | {"planned": planned}])

    def _further_trials(self) -> list[dict[str, Any]]:
        return list(read_json(self.further_trials_file)) if self.further_trials_file.exists() else []

    def list_driven(self) -> list[Trial]:
        """The trials that are judged by their topics: driven to the end, or until Kafka failed; no error, not void."""
        return [trial for trial in self.trials() if (outcome := self.outcome(trial)) and outcome.says_something]

    def outcome(self, trial: Trial) -> Outcome | None:
        """How the trial ended; None while it has not.

        Raises:
            HarnessError: the file is damaged.
        """
        file = self.trial(trial).outcome_file
        return Outcome.read(file) if file.exists() else None


def _trial(data: Mapping[str, Any]) -> Trial:
    """A trial of a plan; the plan may note more than it.

    Raises:
        HarnessError: it is none.
    """
    try:
        trial: Trial = decode(Trial, {name: value for name, value in data.items() if name != "planned"})
    except ValueError as error:
        raise HarnessError(f"The plan of the run is damaged, or of another version of Onceproof: {error}.") from error
    return trial
