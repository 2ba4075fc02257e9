"""What a green is worth: rule 3 of the verdict."""

import pytest

from onceproof.model.cell import Cell
from onceproof.model.known_issues import parse_registry, registry
from onceproof.model.release import Release
from onceproof.model.verdict import TrialEvidence, Verdict, judge
from onceproof.results.controls import Control, Tally, control_of, measured, weighed
from tests.model.test_known_issues import ROW

NOTHING: dict[tuple[str, str], Tally] = {}


def cell(streams, variant="DEFAULT_CONFIG", scenario="enumerator"):
    return Cell(scenario, variant, Release.parse(streams), Release.parse("3.9.1"))


SHOWN = {
    "enumerator": {"duplicate-id": 3},
    "crash": dict.fromkeys(("stale-checkpoint", "skipped-wipe", "lost-record", "uncommitted-state"), 1),
}


def judged(where, red=0, green=0):
    trials = [TrialEvidence(f"r{n}", n, exercised=True, anomalies=SHOWN[where.scenario]) for n in range(red)]
    trials += [TrialEvidence(f"g{n}", n, exercised=True, reason="It came back.") for n in range(green)]
    return judge(where, trials, registry())


def verdicts(*of_run, before=NOTHING):
    return [str(v.verdict) for v in weighed(of_run, registry(), before)]


def test_a_green_stands_on_as_many_trials_as_its_control_asks_for():
    control = judged(cell("3.3.1"), red=1)
    assert verdicts(control, judged(cell("3.4.1"), green=4)) == ["known", "inconclusive"]
    assert verdicts(control, judged(cell("3.4.1"), green=5)) == ["known", "clean"]


def test_earlier_trials_of_the_variant_count_for_less_and_not_for_ever():
    before = {("enumerator", "DEFAULT_CONFIG"): Tally(20, 20), ("crash", "DEFAULT_CONFIG"): Tally(0, 50)}
    control, green = judged(cell("3.3.1"), red=1), judged(cell("3.4.1"), green=1)
    assert verdicts(control, green, before=before) == ["known", "clean"]
    many = Control({cell("3.3.1"): Tally(1, 1)}, Tally(1000, 1000))
    assert many.weight == pytest.approx(0.01)


def test_a_control_that_is_red_too_seldom_is_not_talked_away_by_the_past():
    before = {("enumerator", "DEFAULT_CONFIG"): Tally(40, 40)}
    sick = judged(cell("3.3.1"), red=1, green=5)
    assert verdicts(sick, judged(cell("3.4.1"), green=5), before=before) == ["known", "inconclusive"]
    well, other = judged(cell("3.3.1"), red=1), judged(cell("3.3.2"), green=6)
    said = weighed([well, other, judged(cell("3.4.1"), green=5)], registry(), before)
    assert said[2].verdict is Verdict.INCONCLUSIVE  # one of two controls does not fit
    assert "and before in 40 of 40 trials, which tonight does not fit" in said[2].arithmetic


@pytest.mark.parametrize("anomaly", ["stale-checkpoint", "duplicate-output"])
def test_a_red_that_is_not_what_a_control_must_show_is_none(anomaly):
    shown = TrialEvidence("t", 1, exercised=True, anomalies={anomaly: 1})
    control = judge(cell("4.1.2", scenario="crash"), [shown], registry())
    green = judged(cell("4.3.1", scenario="crash"), green=9)
    said = weighed([control, green], registry(), measured(registry()))
    assert said[1].verdict is Verdict.INCONCLUSIVE
    assert "was not red as expected in this run" in said[1].sentence


def test_a_control_that_stays_green_takes_the_greens_of_its_scenario_with_it():
    green, silent = judged(cell("3.4.1"), green=9), judged(cell("3.3.2"), green=9)
    other = [judged(cell("4.1.2", scenario="crash"), red=3), judged(cell("3.6.2", scenario="crash"), green=2)]
    said = weighed([green, silent, *other], registry(), measured(registry()))
    assert said[0].verdict is Verdict.INCONCLUSIVE
    assert said[0].sentence.startswith(
        "Its positive control 3.3.2 × DEFAULT_CONFIG was not red as expected in this run"
    )
    assert said[3].verdict is Verdict.CLEAN


def test_without_a_control_a_green_says_nothing():
    [said] = weighed([judged(cell("3.4.1"), green=50)], registry(), measured(registry()))
    assert said.verdict is Verdict.INCONCLUSIVE
    assert "nobody knows what a green is worth" in said.sentence


def test_an_affected_release_that_stays_green_is_fixed_if_others_were_red_often_enough():
    control, still = judged(cell("3.3.1"), red=9), judged(cell("3.4.0"), green=1)
    assert verdicts(control, still) == ["known", "fixed"]
    assert verdicts(judged(cell("3.3.1"), red=1), still) == ["known", "inconclusive"]
    assert verdicts(still) == ["inconclusive"]  # it is not its own control


def test_controls_of_the_same_variant_come_first():
    tallies = {cell("3.3.1"): Tally(1, 1), cell("3.3.1", "REPEATED_KEYS"): Tally(0, 3)}
    before = {("enumerator", "REPEATED_KEYS"): Tally(4, 5)}
    own = control_of(cell("3.4.1", "REPEATED_KEYS"), tallies, registry(), before)
    assert own == Control({cell("3.3.1", "REPEATED_KEYS"): Tally(0, 3)}, Tally(4, 5))
    other = control_of(cell("3.4.1", "CACHING_DISABLED"), tallies, registry(), NOTHING)
    assert other == Control({cell("3.3.1"): Tally(1, 1)}, Tally())  # the scenario's control


def test_controls_with_the_same_broker_and_restart_come_first():
    def of(streams, broker, restart_on=None):
        restart = Release.parse(restart_on) if restart_on else None
        return Cell("crash", "DEFAULT_CONFIG", Release.parse(streams), Release.parse(broker), restart)

    controls = [of("4.1.2", "3.9.1"), of("4.1.2", "4.1.2"), of("4.1.2", "4.1.2", "4.3.1")]
    tallies = dict.fromkeys(controls, Tally(1, 1))
    for green, control in (
        (of("4.3.1", "3.9.1"), controls[0]),
        (of("4.3.1", "4.1.2"), controls[1]),
        (of("3.6.2", "4.1.2", "4.3.1"), controls[2]),
        (of("3.6.2", "3.9.1", "4.3.1"), controls[0]),
    ):
        found = control_of(green, tallies, registry(), NOTHING)
        assert found is not None
        assert list(found.cells) == [control]


def test_the_arithmetic_is_told():
    control, green = weighed([judged(cell("3.3.1"), red=3), judged(cell("3.4.1"), green=2)], registry(), NOTHING)
    assert control.arithmetic == ("Red in 3 of 3 trials that count: 44% to 100% (95 %, Wilson).")
    assert green.arithmetic == (
        "Its positive control 3.3.1 × DEFAULT_CONFIG was red in 3 of 3 trials. A bug that shows as often would have "
        "stayed unseen in 2 trials with a probability of 3.8%; at most 5% are allowed."
    )
    assert green.missed == pytest.approx(0.0375)
    assert green.interval == pytest.approx((0.0, 0.6576), abs=1e-4)


def test_red_avoided_and_error_need_no_control():
    red = judged(cell("3.4.1"), red=1)
    avoided = judge(cell("3.4.1", "NO_LAG_ACCEPTABLE"), [TrialEvidence("t", 1, all_steps_tried=True)], registry())
    broken = judge(cell("3.4.1"), [TrialEvidence("t", 1, error="A broker ended.")], registry())
    assert verdicts(red, avoided, broken) == ["regression", "avoided", "error"]


def test_what_the_registry_measured_is_known_before_any_run():
    row = f"{ROW}measured = {{ DEFAULT_CONFIG = {{ red = 7, trials = 8 }} }}"
    assert measured(parse_registry(row)) == {("enumerator", "DEFAULT_CONFIG"): Tally(7, 8)}
