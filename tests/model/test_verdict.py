from dataclasses import replace

import pytest

from onceproof.model.cell import Cell
from onceproof.model.errors import ExitCode
from onceproof.model.known_issues import registry
from onceproof.model.release import Release
from onceproof.model.sensitivity import Tally
from onceproof.model.verdict import Sighting, TrialEvidence, Verdict, exit_code, judge, sighting


def cell(streams, variant="DEFAULT_CONFIG", scenario="enumerator", restart_on=None):
    restart = Release.parse(restart_on) if restart_on else None
    return Cell(scenario, variant, Release.parse(streams), Release.parse("3.9.1"), restart)


def trial(key="t1", **known):
    return TrialEvidence(key, 1, **{"all_steps_tried": True, "reason": "why", **known})


RED = trial(exercised=True, anomalies={"duplicate-id": 3})
GREEN = trial("t2", exercised=True)
STUCK = trial("t5", anomalies={"stuck": 1})
IDLE = trial("t3", exercised=False)
BROKEN = trial("t4", error="A broker ended.")


@pytest.mark.parametrize(
    ("where", "trials", "expected"),
    [
        (cell("3.3.1"), [RED], Verdict.KNOWN),
        (cell("3.4.0"), [RED], Verdict.KNOWN),
        (cell("3.4.1"), [RED], Verdict.REGRESSION),
        (cell("3.3.1", "CACHING_DISABLED"), [RED], Verdict.REGRESSION),
        (cell("3.4.1"), [GREEN], Verdict.CLEAN),
        (cell("3.3.1", "CACHING_DISABLED"), [GREEN], Verdict.CLEAN),
        (cell("3.3.1"), [GREEN], Verdict.FIXED),  # affected, and yet nothing was seen
        (cell("3.4.1"), [IDLE], Verdict.INCONCLUSIVE),
        (cell("3.4.1"), [IDLE, GREEN], Verdict.CLEAN),
        (cell("3.3.1", "NO_LAG_ACCEPTABLE"), [IDLE], Verdict.AVOIDED),
        (cell("3.3.1", "NO_LAG_ACCEPTABLE"), [trial(all_steps_tried=False)], Verdict.INCONCLUSIVE),
        (cell("3.3.1", "NO_LAG_ACCEPTABLE"), [RED], Verdict.REGRESSION),
        (cell("3.4.1"), [BROKEN], Verdict.ERROR),
        (cell("3.4.1"), [GREEN, BROKEN], Verdict.ERROR),
        (cell("3.3.1", "NO_LAG_ACCEPTABLE"), [IDLE, BROKEN], Verdict.ERROR),
        (cell("3.3.1"), [RED, BROKEN], Verdict.ERROR),  # an expected red hides no failure
        (cell("3.3.1"), [trial(anomalies={"lost-record": 5000})], Verdict.REGRESSION),  # not what the issue explains
        (cell("3.4.1"), [RED, BROKEN], Verdict.REGRESSION),  # one witness is proof
        (cell("3.4.1"), [trial(anomalies={"lost-record": 1})], Verdict.REGRESSION),  # exercised or not
        (cell("3.4.1"), [], Verdict.ERROR),
        (cell("3.9.1"), [STUCK, GREEN], Verdict.KNOWN),  # KAFKA-19510, which is incidental: it may show,
        (cell("3.9.1"), [GREEN], Verdict.CLEAN),  # but need not
        (cell("3.9.1"), [trial(anomalies={"stuck": 1}, unexplained={"stuck": 1})], Verdict.REGRESSION),
        (cell("4.1.1"), [STUCK], Verdict.REGRESSION),  # which has its fix
    ],
)
def test_rules(where, trials, expected):
    verdict = judge(where, trials, registry())
    assert verdict.verdict is expected
    assert verdict.sentence


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (cell("3.4.1", restart_on="3.3.1"), Verdict.KNOWN),  # the release that runs in the end
        (cell("3.3.1", restart_on="3.4.1"), Verdict.REGRESSION),
        (cell("4.1.2", scenario="crash", restart_on="4.3.1"), Verdict.KNOWN),  # the release that was killed
        (cell("3.6.2", scenario="crash", restart_on="4.1.2"), Verdict.REGRESSION),
    ],
)
def test_a_restart_cell_is_affected_by_the_culprit_of_the_issue(where, expected):
    crash = ("stale-checkpoint", "skipped-wipe", "lost-record", "uncommitted-state")
    names = {"enumerator": ("duplicate-id",), "crash": crash}
    red = trial(exercised=True, anomalies=dict.fromkeys(names[where.scenario], 3))
    assert judge(where, [red], registry()).verdict is expected


def test_a_red_that_is_not_what_was_provoked_is_inconclusive():
    only_level_one = trial(exercised=True, anomalies={"stale-checkpoint": 1})
    verdict = judge(cell("4.1.2", scenario="crash"), [only_level_one], registry())
    assert verdict.verdict is Verdict.INCONCLUSIVE
    assert "but no lost-record, skipped-wipe, uncommitted-state, which KAFKA-20685" in verdict.sentence


CRASH = cell("4.2.1", scenario="crash")
LEVELS = {"stale-checkpoint": 1, "skipped-wipe": 1, "lost-record": 900, "uncommitted-state": 900}


def test_an_unexplained_witness_is_a_regression_despite_an_issue():
    assert judge(CRASH, [trial(exercised=True, anomalies=LEVELS)], registry()).verdict is Verdict.KNOWN
    odd = trial(exercised=True, anomalies=LEVELS, unexplained={"lost-record": 3})
    verdict = judge(CRASH, [odd], registry())
    assert verdict.verdict is Verdict.REGRESSION
    assert "no known issue explains 3 of the 900 lost-record on 4.2.1" in verdict.sentence


@pytest.mark.parametrize(
    ("streams", "anomalies", "expected"),
    [
        ("4.3.1", {"skipped-wipe": 1}, Verdict.CLEAN),  # reported, and nothing else
        ("4.3.1", {"stale-checkpoint": 1, "skipped-wipe": 1}, Verdict.CLEAN),
        ("4.3.1", {"skipped-wipe": 1, "lost-record": 1}, Verdict.REGRESSION),
        ("4.1.2", {"stale-checkpoint": 1, "skipped-wipe": 1}, Verdict.INCONCLUSIVE),  # there it must show more
    ],
)
def test_implementation_anomalies_are_red_only_next_to_damage(streams, anomalies, expected):
    reported = trial(exercised=True, anomalies=anomalies)
    verdict = judge(cell(streams, scenario="crash"), [reported], registry())
    assert verdict.verdict is expected
    assert all(name in verdict.sentence for name in anomalies)


def test_trials_that_count_are_red_or_exercised():
    verdict = judge(cell("3.3.1"), [RED, GREEN, IDLE], registry())
    assert (verdict.red, verdict.counted, verdict.trials) == (1, 2, 3)
    assert verdict.issues == ("KAFKA-14172",)
    assert dict(verdict.anomalies) == {"duplicate-id": 3}


def test_a_rate_counts_planned_trials_only():
    added, void = replace(GREEN, key="t6", planned=False), trial("t7", is_void=True)
    verdict = judge(cell("3.3.1"), [RED, replace(RED, key="t8"), GREEN, IDLE, added, void], registry())
    assert (verdict.rated, verdict.hits, verdict.greens, verdict.tried) == (Tally(2, 3), 2, 2, 5)


def test_a_trial_without_details_has_nothing_assumed():
    verdict = judge(cell("3.3.1", "NO_LAG_ACCEPTABLE"), [TrialEvidence("t1", 1, reason="It ended.")], registry())
    assert (verdict.verdict, verdict.sentence) == (Verdict.INCONCLUSIVE, "Not all steps were tried: It ended.")
    counted = judge(cell("3.4.1"), [TrialEvidence("t1", 1, exercised=True)], registry())
    assert (counted.rated, counted.tried) == (Tally(0, 1), 1)


FIRST, LATE = trial("t6", exercised=True, reason="It came back."), trial("t7", error="It took too long.")


@pytest.mark.parametrize(
    ("where", "trials", "sentence"),
    [
        (cell("3.4.1"), [], "No trial was run."),
        (cell("3.4.1"), [BROKEN, LATE], "A broker ended."),
        (cell("3.4.1"), [replace(IDLE, reason="It did not take effect."), IDLE], "It did not take effect."),
        (
            cell("3.3.1", "NO_LAG_ACCEPTABLE"),
            [replace(IDLE, reason="It ended early.", all_steps_tried=False), IDLE],
            "Not all steps were tried: It ended early.",
        ),
        (cell("3.4.1"), [FIRST], "No anomaly in 1 exercised trial. It came back."),
        (cell("3.4.1"), [FIRST, GREEN], "No anomaly in 2 exercised trials. It came back."),
        (
            cell("3.3.1"),
            [RED, BROKEN, LATE],
            "3 duplicate-id, as KAFKA-14172 (fixed in 3.4.1 and 3.5.0) explains; but 2 of its trials failed: "
            "A broker ended.",
        ),
    ],
)
def test_the_first_trial_that_says_it_gives_the_reason(where, trials, sentence):
    verdict = judge(where, trials, registry())
    assert verdict.sentence == sentence
    assert verdict.errors == {trial.key: trial.error for trial in trials if trial.error}


INFORMATIONAL_AND_RED = {"stale-checkpoint": 1, "thread-died": 1}


@pytest.mark.parametrize(
    ("where", "anomalies", "unexplained", "wanted", "red", "others"),
    [
        (cell("3.4.1"), {}, {}, None, (), ()),
        (cell("3.4.1"), {"duplicate-id": 1}, {}, None, ("duplicate-id",), ()),
        # KAFKA-18943 has torn-transaction there by chance.
        (cell("3.4.1"), {"torn-transaction": 1}, {}, None, (), ("torn-transaction",)),
        (cell("3.4.1"), {"torn-transaction": 1}, {}, ["duplicate-id"], (), ()),
        (cell("3.4.1"), {"torn-transaction": 1}, {}, ["torn-transaction"], ("torn-transaction",), ()),
        (cell("3.4.1"), {"torn-transaction": 2}, {"torn-transaction": 1}, None, ("torn-transaction",), ()),
        (cell("3.4.1"), {"torn-transaction": 2}, {"torn-transaction": 1}, ["stuck"], (), ("torn-transaction",)),
        (cell("3.4.1"), {"lost-record": 1}, {}, ["duplicate-id"], (), ("lost-record",)),
        (cell("3.4.1"), {"lost-record": 1, "duplicate-id": 1}, {}, ["duplicate-id"], ("duplicate-id",), ()),
        (cell("3.4.1"), {"torn-transaction": 1, "stuck": 1}, {}, None, ("stuck",), ()),
        # What is only told becomes no red because another anomaly stands beside it.
        (cell("4.3.1", scenario="crash"), {"stale-checkpoint": 1}, {}, None, (), ()),
        (cell("4.3.1", scenario="crash"), INFORMATIONAL_AND_RED, {}, ["stale-checkpoint"], (), ("thread-died",)),
        (cell("4.2.1", scenario="crash"), INFORMATIONAL_AND_RED, {}, ["stale-checkpoint"], ("stale-checkpoint",), ()),
    ],
)
def test_whether_a_trial_is_red_for_what_is_searched_for(where, anomalies, unexplained, wanted, red, others):
    assert sighting(where, anomalies, unexplained, registry(), wanted) == Sighting(red, others)


def test_the_worst_verdict_decides_the_exit_code():
    v = Verdict
    assert exit_code([v.CLEAN, v.KNOWN, v.AVOIDED, v.FIXED]) is ExitCode.OK
    assert exit_code([v.CLEAN, v.INCONCLUSIVE]) is ExitCode.INCONCLUSIVE
    assert exit_code([v.INCONCLUSIVE, v.ERROR]) is ExitCode.ERROR
    assert exit_code([v.ERROR, v.REGRESSION, v.INCONCLUSIVE]) is ExitCode.ANOMALY
    assert exit_code([]) is ExitCode.ERROR
