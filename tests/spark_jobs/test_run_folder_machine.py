"""A run folder through whatever can become of a run: nothing measured is lost, nothing half-written is a result."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from onceproof.model.cell import Trial
from onceproof.model.files import Outcome
from onceproof.model.json_file import encode, replacing, write_json
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline import steps
from onceproof.pipeline.request import RunRequest
from onceproof.results.spark_tables import rows_of
from spark_jobs import parts, tables
from tests.specimens.files import a_plan, a_reading, an_outcome
from tests.specimens.folders import RUN_ID, trial_of

ASKED = RunRequest(scenarios=("enumerator",))
TABLES = ("records", *tables.CHECKED)
NOTHING = frozenset[str]()


def killed_in(path: Path, content: str) -> None:
    """End this process, as SIGKILL does, half-way through a file."""
    with replacing(path) as draft:
        draft.write_text(content[: len(content) // 2])
        os._exit(0)


class Run(RuleBasedStateMachine):
    """A run that is driven, killed, resumed and checked, beside what it must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="run-folder-"))
        self.run = RunFolder(self.place / RUN_ID)
        self.measured: dict[str, str] = {}  # by key of a trial, what it said
        self.ended_otherwise: dict[str, str] = {}  # the same of those that say nothing
        self.attempts: dict[str, str] = {}  # by place, what an attempt left
        self.checked: dict[str, frozenset[str]] = dict.fromkeys(TABLES, NOTHING)  # by table, the trials that are in it
        self.count = 0

    @initialize()
    def plan(self) -> None:
        planned = {
            "brokers": ["3.9.1"],
            "request": ASKED.model_dump(mode="json", exclude={"connection"}),
            "trials": [trial_of(number).to_dict() for number in range(1, 5)],
        }
        write_json(self.run.run_file, planned)
        write_json(self.run.cluster_file("3.9.1"), {"bootstrap_servers": "nowhere"})

    def is_open(self, trial: Trial) -> bool:
        return trial.key not in self.measured and trial.key not in self.ended_otherwise

    def an_open(self, number: int) -> Trial | None:
        left = [trial for trial in self.run.trials() if self.is_open(trial)]
        return left[number % len(left)] if left else None

    def files(self, trial: Trial, outcome: Outcome) -> Iterator[tuple[Path, str]]:
        """What a drive writes, in its order."""
        folder = self.run.trial(trial)
        yield folder.trial_file, json.dumps(encode(a_plan(trial)))
        yield folder.timeline, f'{{"t": {self.count}}}\n'
        yield folder.reader_file, json.dumps(encode(a_reading()))
        yield folder.outcome_file, json.dumps(encode(outcome))

    @rule(number=st.integers(0, 9))
    def drive_to_the_end(self, number: int) -> None:
        if (trial := self.an_open(number)) is not None:
            self.count += 1
            for file, content in self.files(trial, an_outcome(trial, reason=f"drive {self.count}")):
                with replacing(file) as draft:
                    draft.write_text(content)
            self.measured[trial.key] = f"drive {self.count}"

    @rule(number=st.integers(0, 9), written=st.integers(0, 3))
    def be_killed_in_a_drive(self, number: int, written: int) -> None:
        if (trial := self.an_open(number)) is None:
            return
        self.count += 1
        if (child := os.fork()) == 0:
            for place, (file, content) in enumerate(self.files(trial, an_outcome(trial, reason="never"))):
                if place == written:
                    killed_in(file, content)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0

    @rule(number=st.integers(0, 9), void=st.booleans())
    def fail(self, number: int, void: bool) -> None:
        if (trial := self.an_open(number)) is not None:
            self.count += 1
            sentence = f"failed {self.count}"
            outcome = Outcome.of_void(trial, sentence) if void else Outcome.of_error(trial, sentence)
            outcome.write(self.run.trial(trial).outcome_file)
            self.ended_otherwise[trial.key] = sentence

    @rule()
    def resume(self) -> None:
        before = self.content_of_attempts()
        moved = [
            file.read_text()
            for trial in self.run.trials()
            if trial.key not in self.measured
            for file in sorted(self.run.trial(trial).path.glob("*"))
        ]
        steps._go_on(self.run, ASKED)
        self.attempts = self.content_of_attempts()
        assert before.items() <= self.attempts.items()
        assert sorted(self.attempts.values()) == sorted([*before.values(), *moved])
        self.ended_otherwise = {}
        for trial in self.run.trials():
            assert self.run.trial(trial).path.exists() == (trial.key in self.measured)

    @rule()
    def replace_what_was_cut_off(self) -> None:
        cut = [t for t in self.run.trials() if self.is_open(t) and self.run.trial(t).timeline.exists()]
        before = list(self.run.trials())
        steps.replace_cut_off(self.run)
        self.ended_otherwise |= {trial.key: steps.CUT_OFF for trial in cut}
        after = list(self.run.trials())
        assert after[: len(before)] == before
        assert len({trial.key for trial in after}) == len(after) == len(before) + len(cut)

    @rule(fails_in=st.integers(0, 3 * len(TABLES)), ahead=st.booleans())
    def make_tables(self, fails_in: int, ahead: bool) -> None:
        """As Spark does; it fails before so many tables are written, unless there are not so many."""
        left = [fails_in]

        def perform(folder: RunFolder) -> None:
            keys = [trial.key for trial in folder.list_driven()]
            for name in TABLES:
                written = tables.draft(folder, name)
                written.mkdir(parents=True)
                pq.write_table(pa.table({"trial": pa.array(keys, pa.string())}), written / "part-0.parquet")
                left[0] -= 1
                if left[0] == 0:
                    raise OSError("Spark failed")
                tables.publish(folder, name, written)
            tables.write_errors(folder, {})
            tables.write_corrupt(folder, [])

        driven, were = frozenset(self.measured), set(self.checked.values())
        made: list[RunFolder] = []
        if ahead and driven:
            made = [parts.excerpt(self.run, self.run.list_driven()[:2])]
            try:
                perform(made[0])
            except OSError:
                made = []
        try:
            parts.complete(self.run, made, perform)
        except OSError:
            self.checked = {name: self.in_table(name) for name in TABLES}
            assert set(self.checked.values()) <= {*were, driven}
        else:
            self.checked = dict.fromkeys(TABLES, driven)
        assert not self.run.parts.exists()

    def in_table(self, name: str) -> frozenset[str]:
        folder = self.run.table(name)
        return frozenset(row["trial"] for row in rows_of(folder, ["trial"]) or []) if folder.exists() else NOTHING

    def content_of_attempts(self) -> dict[str, str]:
        found = sorted(self.run.path.glob("trials/*.attempt-*/*"))
        return {str(file.relative_to(self.run.path)): file.read_text() for file in found}

    @invariant()
    def what_was_measured_is_there_and_nothing_else_passes_for_it(self) -> None:
        if not self.run.run_file.exists():
            return
        said = {trial.key: outcome for trial in self.run.trials() if (outcome := self.run.outcome(trial))}
        assert {key: outcome.reason for key, outcome in said.items()} == {**self.measured, **self.ended_otherwise}
        assert {trial.key for trial in self.run.list_driven()} == self.measured.keys()
        assert {name: self.in_table(name) for name in TABLES} == self.checked
        assert self.content_of_attempts() == self.attempts

    def teardown(self) -> None:
        shutil.rmtree(self.place)


TestRun = Run.TestCase
TestRun.settings = settings(
    max_examples=8, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
