"""What the Spark application sets by what it is to read."""

from pathlib import Path

import pytest

from onceproof.model.files import Produced
from onceproof.model.json_file import write_json
from onceproof.model.run_folder import RunFolder
from spark_jobs.collect_and_check import MANY, settings
from tests.conftest import a_trial
from tests.specimens.files import an_outcome


@pytest.mark.parametrize(("records", "compressed"), [(MANY // 2, {}), (MANY // 2 + 1, {"true"})])
def test_what_many_records_shuffle_is_compressed(tmp_path: Path, records: int, compressed: set[str]) -> None:
    run = RunFolder(tmp_path / "20261121T084500-3f2a")
    trials = [a_trial("3.4.1", scenario=name) for name in ("enumerator", "crash", "scan")]
    write_json(run.run_file, {"trials": [trial.to_dict() for trial in trials]})
    for trial in trials[:2]:
        an_outcome(trial, produced=Produced(records, 1)).write(run.trial(trial).outcome_file)
    set_to = settings(run)
    assert set(set_to.values()) == set(compressed)
    assert set(set_to) <= {"spark.shuffle.compress", "spark.shuffle.spill.compress"}
