"""A run is judged from its folder; whatever is missing or contradicts itself makes an error, never a green."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from onceproof.model.anomaly import Witness
from onceproof.model.cell import Trial
from onceproof.model.decoding import decode
from onceproof.model.errors import HarnessError
from onceproof.model.files import Outcome, Produced, VerdictRow
from onceproof.model.json_file import read_json, write_json
from onceproof.model.matrices import RISK
from onceproof.model.promise import map_suites
from onceproof.model.run_folder import RunFolder
from onceproof.results import judging
from onceproof.results.judging import judge_run, spark_counts
from tests.conftest import a_trial
from tests.specimens.files import a_plan, a_reading, an_outcome

NO_DATABASE = "sqlite:///nowhere/results.db"
ACTIVE: tuple[list[str], list[str]] = (["0_0", "0_1"], [])
STANDBY: tuple[list[str], list[str]] = (["0_0"], ["0_1"])
RETURNED: list[dict[str, Any]] = [  # partition 1
    {
        "t": t,
        "source": "instance-1",
        "event": "assignment",
        "threads": [{"thread": "a-instance-1-StreamThread-1", "active": active, "standby": standby}],
    }
    for t, (active, standby) in enumerate((ACTIVE, STANDBY, ACTIVE))
]
COUNTS = {"records": 5, "outputs": 5, "keys": 4, "ids": 4}
PASSED = {name: {"success": True, "error": None, "evaluated": 5} for name in ("id_uniqueness", "changelog_consistency")}


def make_run(home, streams="3.4.1", anomalies=(), scenario="enumerator", **fields) -> tuple[RunFolder, Trial]:
    """A run of one trial, as the tasks leave it."""
    trial = a_trial(streams, scenario=scenario)
    run = RunFolder(home / trial.run)
    write_json(run.run_file, {"matrix": "seed", "created": "now", "risk": 0.25, "trials": []})
    write_json(run.table("errors.json"), {})
    add_trial(run, trial, anomalies, **fields)
    return run, trial


def add_trial(
    run,
    trial,
    anomalies=(),
    counts=COUNTS,
    exercised=True,
    suites=PASSED,
    seen_by_reader=None,
    produced=(5, 4),
    failed=None,
    void=None,
    witnesses=(),
    compared=(),
    timeline=RETURNED,
) -> None:
    folder, plan = run.trial(trial), read_json(run.run_file)
    write_json(run.run_file, {**plan, "trials": [*plan["trials"], trial.to_dict()]})
    a_plan(trial).write(folder.trial_file)
    fields = {"failed": failed, "void": void, "exercised": exercised, "harness": "0.1.0+1"}
    an_outcome(trial, produced=Produced(*produced), **fields).write(folder.outcome_file)
    found = dict.fromkeys(anomalies, 1) if seen_by_reader is None else seen_by_reader
    read = tuple(decode(Witness, data) for data in witnesses)
    a_reading(**COUNTS, anomalies=found, witnesses=read).write(folder.reader_file)
    spark_table(run, "counts", [counts], trial.key)
    spark_table(run, "findings", [seen(name) for name in anomalies], trial.key)
    spark_table(run, "comparisons", compared, trial.key)
    folder.timeline.write_text("".join(json.dumps(event) + "\n" for event in timeline))
    write_json(run.validation_file(trial), suites)


def seen(anomaly, key=1, places=("output/0@1",)):
    """What is kept about a finding, or about a witness."""
    fields = {"ids": [1], "offsets": list(places), "expected": "", "observed": "nothing"}
    return {"anomaly": anomaly, "partition": 1, "key": key, **fields}


def spark_table(run, name, rows, trial_key):
    folder = run.table(name)
    if rows:
        ds.write_dataset(pa.Table.from_pylist(rows), folder / f"trial={trial_key}", format="parquet")
    folder.mkdir(parents=True, exist_ok=True)


def verdict(run):
    [judged] = judge_run(run, NO_DATABASE)
    assert VerdictRow.read_all(run.verdicts_file) == (judged,)
    return judged.verdict, judged.sentence


UNIQUENESS_FAILED = {**PASSED, "id_uniqueness": {"success": False, "error": None, "evaluated": 5}}


def test_a_green_is_clean_beside_a_control_that_was_red(tmp_path):
    run, _ = make_run(tmp_path)
    assert verdict(run)[0] == "inconclusive"
    add_trial(run, a_trial("3.3.1"), ["duplicate-id"], suites=UNIQUENESS_FAILED)
    green, control = judge_run(run, NO_DATABASE)
    assert (green.verdict, control.verdict) == ("provisional", "known")
    assert (green.missed, green.excluded_rate) == (0.25, 0.95)  # one red control and one green: a first look


def test_a_verdict_says_which_promises_were_not_checked_and_why(tmp_path):
    run, trial = make_run(tmp_path)
    [judged] = judge_run(run, NO_DATABASE)
    assert judged.not_looked_at == {}
    fields = {"atomicity": "these brokers do not show their segments"}
    replace(a_plan(trial), not_looked_at=fields).write(run.trial(trial).trial_file)
    [judged] = judge_run(run, NO_DATABASE)
    assert judged.not_looked_at == fields


def test_a_verdict_says_that_its_release_did_not_qualify(tmp_path):
    run, _ = make_run(tmp_path)
    [judged] = judge_run(run, NO_DATABASE)
    assert judged.unqualified == ""
    [judged] = judge_run(run, NO_DATABASE, tmp_path / "qualifications")
    assert judged.unqualified.startswith("It is not shown that this version of the harness sees on ")
    assert VerdictRow.read_all(run.verdicts_file) == (judged,)


def test_a_database_that_refuses_takes_no_verdicts(tmp_path, capsys):
    run, _ = make_run(tmp_path, "3.3.1", ["duplicate-id"], suites=UNIQUENESS_FAILED)
    [judged] = judge_run(run, "not a url")
    assert judged.verdict == "known"
    assert "Earlier runs do not count. The results database refused" in capsys.readouterr().out


def test_a_known_and_a_new_anomaly(tmp_path):
    known, _ = make_run(
        tmp_path,
        "3.3.1",
        ["duplicate-id", "duplicate-id"],
        suites=UNIQUENESS_FAILED,
        seen_by_reader={"duplicate-id": 2},
    )
    new, _ = make_run(tmp_path, "3.4.1", ["duplicate-id"], suites=UNIQUENESS_FAILED)
    assert verdict(known) == (
        "known",
        "2 duplicate-id: expected, 3.3.1 is affected by KAFKA-14172 (fixed in 3.4.1 and 3.5.0).",
    )
    assert verdict(new) == ("regression", "1 duplicate-id: no known issue explains duplicate-id on 3.4.1.")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"counts": {**COUNTS, "ids": 3}}, "The independent reader counts 4 ids, Spark 3."),
        ({"anomalies": ["lost-record"], "seen_by_reader": {}}, "The independent reader sees 0 lost-record, Spark 1."),
        ({"seen_by_reader": {"lost-record": 2}}, "The independent reader sees 2 lost-record, Spark 0."),
        (
            {"anomalies": ["duplicate-id"], "witnesses": [seen("duplicate-id", key=2)]},
            "The independent reader sees duplicate-id of key 2 at output/0@1, Spark does not.",
        ),
        (
            {"anomalies": ["duplicate-id"], "witnesses": [seen("duplicate-id", key=None, places=("output/1@1",))]},
            "The independent reader sees duplicate-id at output/1@1, Spark does not.",
        ),
        (
            {"compared": [{"promise": "output-order", "comparisons": 4}]},
            "The independent reader made 0 comparisons for output-order, Spark 4.",
        ),
        ({"produced": (6, 4)}, "6 records were produced, but 5 are in the input topic."),
        ({"anomalies": ["wrong-id"]}, "1 wrong-id were found, but the suite id_uniqueness did not fail."),
        ({"anomalies": ["duplicate-id"]}, "1 duplicate-id were found, but the suite id_uniqueness did not fail."),
        ({"suites": UNIQUENESS_FAILED}, "The suite id_uniqueness failed, but none of its anomalies was found"),
        (
            {"suites": {**PASSED, "id_uniqueness": {"success": False, "error": "boom", "evaluated": 5}}},
            "could not be run: boom",
        ),
    ],
)
def test_what_contradicts_itself_is_an_error(tmp_path, made, said):
    judged, sentence = verdict(make_run(tmp_path, **made)[0])
    assert judged == "error"
    assert said in sentence


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("outcome", "did not run to its end"),
        ("reader", "could not be read"),
        ("counts", "Spark has not checked it"),
        ("table", "Spark has not checked it"),
        ("validations", "the suite id_uniqueness was not run"),
        ("suite", "the suite changelog_consistency was not run"),
        ("collected", "topic x partition 0 offset 3"),
    ],
)
def test_what_is_missing_is_an_error(tmp_path, missing, said):
    run, trial = make_run(tmp_path)
    match missing:
        case "outcome":
            run.trial(trial).outcome_file.unlink()
        case "reader":
            run.trial(trial).reader_file.unlink()
        case "counts":
            next(run.table("counts").rglob("*.parquet")).unlink()
        case "table":
            shutil.rmtree(run.table("counts"))
        case "validations":
            run.validation_file(trial).unlink()
        case "suite":
            write_json(run.validation_file(trial), {"id_uniqueness": PASSED["id_uniqueness"]})
        case "collected":
            write_json(run.table("errors.json"), {trial.key: "topic x partition 0 offset 3: bad"})
    judged, sentence = verdict(run)
    assert judged == "error"
    assert said in sentence


def test_an_outcome_with_an_error_is_told_in_its_words(tmp_path):
    run, trial = make_run(tmp_path)
    Outcome.of_error(trial, "A broker ended.").write(run.trial(trial).outcome_file)
    assert verdict(run) == ("error", "A broker ended.")


def test_an_unexercised_trial_is_inconclusive(tmp_path):
    assert verdict(make_run(tmp_path, exercised=False)[0]) == ("inconclusive", "why")


def test_sparks_counts_are_read_by_trial(tmp_path):
    run, trial = make_run(tmp_path, "3.3.1", ["wrong-id", "wrong-id"])
    counted = spark_counts(run)[trial.key]
    assert counted.counts == COUNTS
    assert counted.anomalies == {"wrong-id": 2}


ALL_FAILED = {name: {"success": False, "error": None, "evaluated": 5} for name in PASSED}


def test_a_drive_that_kafka_ended_is_judged_by_committed_data(tmp_path):
    """In that case, fewer records than were produced, and suites that miss rows, contradict nothing."""
    died = {"failed": "thread-died: instance-1", "produced": (63_000, 63_000), "suites": ALL_FAILED}
    run, _ = make_run(tmp_path, "3.4.1", ["thread-died"], **died)
    assert verdict(run) == ("regression", "1 thread-died: no known issue explains thread-died on 3.4.1.")
    beside, _ = make_run(tmp_path, "3.3.1", ["duplicate-id", "thread-died"], **died)
    assert verdict(beside)[0] == "regression"


@pytest.mark.parametrize(
    ("failures", "anomaly", "expected"),
    [
        pytest.param([True], "lost-record", "regression", id="too few rows, as some are lost"),
        pytest.param([True], "duplicate-id", "error", id="too few rows, of which no loss is known"),
        pytest.param([True, False], "lost-record", "error", id="another expectation failed, too"),
        pytest.param([], "lost-record", "error", id="what failed is not known"),
    ],
)
def test_a_suite_may_lack_rows_by_a_loss_that_another_one_saw(tmp_path, failures, anomaly, expected):
    short = {"success": False, "error": None, "evaluated": 5, "failed": [{"floor": floor} for floor in failures]}
    suites = {**UNIQUENESS_FAILED, "changelog_consistency": short}
    assert not {anomaly} & map_suites()["changelog_consistency"]
    assert verdict(make_run(tmp_path, "3.4.1", [anomaly], suites=suites)[0])[0] == expected


def test_a_drive_that_went_to_its_end_hides_no_missing_records(tmp_path):
    run, _ = make_run(tmp_path, "3.4.1", ["duplicate-id"], produced=(63_000, 4), suites=UNIQUENESS_FAILED)
    assert verdict(run)[0] == "error"


def test_a_void_trial_says_nothing_whatever_it_shows(tmp_path):
    run, trial = make_run(tmp_path, "3.4.1", void="The machine stood still for 3.2 s (driver): the trial says nothing.")
    assert verdict(run)[0] == "inconclusive"
    assert "stood still for 3.2 s" in verdict(run)[1]
    assert judging.evidence(run, trial, spark_counts(run), {}).is_void  # nor of how often trials are exercised


def test_a_witness_beyond_the_known_issue_is_a_regression_there(tmp_path):
    made = {"suites": UNIQUENESS_FAILED, "timeline": RETURNED[:2]}  # the task never came back
    run, _ = make_run(tmp_path, "3.3.1", ["duplicate-id"], **made)
    assert verdict(run) == (
        "regression",
        "1 duplicate-id: no known issue explains 1 of the 1 duplicate-id on 3.3.1.",
    )


@pytest.mark.parametrize("scenario", ["enumerator", "multirunner"])
@pytest.mark.parametrize(("streams", "expected"), [("3.4.1", "known"), ("3.9.0", "known"), ("3.9.1", "regression")])
def test_one_issue_is_known_in_several_scenarios(tmp_path, scenario, streams, expected):
    revoked = [
        {**RETURNED[0], "threads": [{**RETURNED[0]["threads"][0], "active": a}]} for a in (["0_0", "0_1"], ["0_1"])
    ]
    run, _ = make_run(tmp_path, streams, ["torn-transaction"], scenario, timeline=revoked)
    assert verdict(run)[0] == expected


def test_what_came_in_is_given_with_its_time_in_milliseconds(tmp_path):
    run, trial = make_run(tmp_path, "3.4.1")
    at = datetime(2026, 11, 20, 2, 15, 0, 123_000, tzinfo=UTC)
    rows = [
        {"partition": 1, "offset": offset, "key": 3, "value": 0, "timestamp": at, "role": role}
        for role, offset in (("input", 7), ("output", 8))
    ]
    spark_table(run, "records", rows, trial.key)
    assert list(judging._inputs(run, trial)) == [(1, 7, 3, 0, 1_795_140_900_123)]


def test_of_several_suites_that_see_an_anomaly_one_must_fail(tmp_path):
    of_all = [name for name, names in map_suites().items() if "lost-record" in names][:2]
    assert len(of_all) == 2
    suites = {**PASSED, **dict.fromkeys(of_all, PASSED["id_uniqueness"])}
    run, _ = make_run(tmp_path, anomalies=["lost-record"], suites=suites)
    judged, sentence = verdict(run)
    assert judged == "error"
    assert f"none of the suites {', '.join(name for name in suites if name in of_all)} did fail." in sentence
    for name in of_all:
        failed = {**suites, name: UNIQUENESS_FAILED["id_uniqueness"]}
        assert verdict(make_run(tmp_path, anomalies=["lost-record"], suites=failed)[0])[0] == "regression"


def test_an_empty_input_topic_is_an_error(tmp_path):
    nothing = dict.fromkeys(COUNTS, 0)
    run, trial = make_run(tmp_path, counts=nothing, produced=(0, 0))
    a_reading(**nothing).write(run.trial(trial).reader_file)
    assert verdict(run) == ("error", f"{trial.key}: The input topic is empty, so nothing was checked.")


@pytest.mark.parametrize("name", ["records", "keys"])
def test_what_was_produced_must_be_there(tmp_path, name):
    made = {"records": (1_006, 4), "keys": (5, 1_006)}[name]
    judged, sentence = verdict(make_run(tmp_path, produced=made)[0])
    assert judged == "error"
    assert sentence.endswith(f": 1,006 {name} were produced, but {COUNTS[name]} are in the input topic.")


def test_a_planted_trial_is_no_evidence(tmp_path):
    run, trial = make_run(tmp_path)
    add_trial(run, replace(a_trial("3.4.1", seed=2), run=trial.run, number=2, plant="put-lost"))
    with pytest.raises(HarnessError, match="ran with the planted bug put-lost: it is no evidence about Kafka"):
        judge_run(run, NO_DATABASE)


def test_anomalies_without_witnesses_are_an_error(tmp_path):
    run, trial = make_run(tmp_path, "3.3.1", ["duplicate-id"], suites=UNIQUENESS_FAILED)
    assert judging._count_unexplained(run, trial, {"duplicate-id": 1}) == {}
    shutil.rmtree(run.table("findings"))
    with pytest.raises(HarnessError, match="its witnesses cannot be read"):
        judging._count_unexplained(run, trial, {"duplicate-id": 1})
    assert judging._count_unexplained(run, trial, {}) == {}


def test_a_verdict_has_what_tables_for_people_need(tmp_path):
    run, trial = make_run(tmp_path)
    second = replace(a_trial("3.4.1", seed=2), run=trial.run, number=2)
    add_trial(run, second, compared=[{"promise": "output-order", "comparisons": 4}])
    a_reading(**COUNTS, promises={"output-order": 4}).write(run.trial(second).reader_file)
    for of_cell, total in ((trial, 2.0), (second, 3.025)):
        an_outcome(of_cell, produced=Produced(5, 4), exercised=True, seconds={"total": total}).write(
            run.trial(of_cell).outcome_file
        )
    [judged] = judge_run(run, NO_DATABASE)
    assert (judged.records, judged.keys, judged.ids, judged.promises) == (10, 8, 8, {"output-order": 4})
    assert (judged.seeds, judged.seconds, judged.trials, judged.counted) == ((trial.seed, 2), 2.51, 2, 2)
    assert [run.path / folder for folder in judged.folders] == [run.trial(t).path for t in (trial, second)]


def test_a_run_without_a_risk_of_its_own_has_that_of_clean(tmp_path):
    run, _ = make_run(tmp_path)
    assert judging.risk_of(run) == 0.25
    write_json(run.run_file, {"matrix": "seed", "created": "now", "trials": []})
    assert judging.risk_of(run) == RISK


def test_without_a_file_of_errors_all_was_collected(tmp_path):
    run, _ = make_run(tmp_path)
    run.table("errors.json").unlink()
    assert judging.collection_errors(run) == {}
