"""What a green is worth: rule 3 of the verdict."""

import re
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from onceproof.model.cell import Cell, Trial
from onceproof.model.files import VerdictRow
from onceproof.model.json_file import write_json
from onceproof.model.known_issues import registry
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.sensitivity import PlantedTrial, Stratum, Tally, sensitivities
from onceproof.model.verdict import TrialEvidence, Verdict, judge
from onceproof.results.controls import (
    Past,
    control_of,
    control_trials_lacking,
    past_of,
    place_evidence,
    plants_in,
    tally_of,
    weigh,
)
from onceproof.results.database import store_run
from onceproof.results.sensitivity import store_planted
from tests.specimens.files import a_reading, a_verdict, an_outcome

HARNESS, COMMIT, MACHINE = "0.1.0+1", "c0ffee", "Linux 6.8 x86_64, 2 cores, 16 GiB or more, AMD EPYC, Java 17"
NOTHING = Past()


def cell(streams, variant="DEFAULT_CONFIG", scenario="enumerator"):
    return Cell(scenario, variant, Release.parse(streams), Release.parse("3.9.1"))


SHOWN = {
    "enumerator": {"duplicate-id": 3},
    "crash": dict.fromkeys(("stale-checkpoint", "skipped-wipe", "lost-record", "uncommitted-state"), 1),
}


def judged(where, red=0, green=0, idle_red=0, added_red=0, idle=0, machine=MACHINE):
    fields = {"commit": COMMIT, "harness": HARNESS, "machine": machine}
    shown = SHOWN[where.scenario]
    trials = [TrialEvidence(f"r{n}", n, exercised=True, anomalies=shown, **fields) for n in range(red)]
    trials += [TrialEvidence(f"g{n}", n, exercised=True, reason="It came back.", **fields) for n in range(green)]
    trials += [TrialEvidence(f"i{n}", n, anomalies=shown, **fields) for n in range(idle_red)]
    trials += [TrialEvidence(f"a{n}", n, True, anomalies=shown, planned=False, **fields) for n in range(added_red)]
    trials += [TrialEvidence(f"u{n}", n, reason="It did not take effect.", **fields) for n in range(idle)]
    return judge(where, trials, registry())


def place(where, **other):
    return replace(Stratum.of(where, COMMIT, HARNESS, MACHINE), **other)


def planted(
    where, plant, found, exercised, commit=COMMIT, harness=HARNESS, machine=MACHINE, run="20261120T084500-3f2a"
):
    return [
        PlantedTrial(
            run, f"{plant}-t{n}", plant, where, commit, harness, n, 3, True, n < found, {}, 9.0, machine=machine
        )
        for n in range(exercised)
    ]


def verdicts(*of_run, past=NOTHING, risk=0.05):
    return [str(v.verdict) for v in weigh(of_run, registry(), past, risk)]


CONTROL, GREEN = cell("3.3.1"), cell("3.4.1")


# --- known bugs on other releases


def test_a_green_needs_as_many_trials_as_its_control_demands():
    assert verdicts(judged(CONTROL, red=7), judged(GREEN, green=1)) == ["known", "clean"]
    assert verdicts(judged(CONTROL, red=3), judged(GREEN, green=1)) == ["known", "inconclusive"]
    assert verdicts(judged(CONTROL, red=3), judged(GREEN, green=2)) == ["known", "clean"]
    assert verdicts(judged(CONTROL, red=1), judged(GREEN, green=1), risk=0.25) == ["known", "provisional"]


def test_only_exercised_trials_planned_beforehand_count():
    assert verdicts(judged(CONTROL, red=3, idle_red=4), judged(GREEN, green=1)) == ["known", "inconclusive"]
    assert verdicts(judged(CONTROL, red=3, added_red=4), judged(GREEN, green=1)) == ["known", "inconclusive"]
    control = judged(CONTROL, red=1, idle_red=1)
    assert (control.red, control.counted, control.rated) == (2, 1, Tally(1, 1))


def test_earlier_trials_of_the_control_s_own_place_add_up():
    now, green = judged(CONTROL, red=1), judged(GREEN, green=1)
    assert verdicts(now, green, past=Past({place(CONTROL): Tally(6, 6)})) == ["known", "clean"]
    for other in (
        place(CONTROL, commit="abad1dea"),
        place(CONTROL, harness="0.1.0+2"),
        place(CONTROL, broker="3.9.0"),
        place(CONTROL, machine=MACHINE.replace("2 cores", "8 cores")),
        place(CONTROL, machine=MACHINE.replace("Java 17", "Java 21")),
        place(CONTROL, machine=""),  # of before it was noted
        place(CONTROL, variant="REPEATED_KEYS"),
        place(cell("3.3.2")),
    ):
        assert verdicts(now, green, past=Past({other: Tally(6, 6)})) == ["known", "inconclusive"], other


def test_a_good_past_does_not_save_a_control_red_too_seldom():
    past = Past({place(CONTROL): Tally(40, 40)})
    said = weigh([judged(CONTROL, red=1, green=5), judged(GREEN, green=9)], registry(), past, 0.05)
    assert said[1].verdict is Verdict.INCONCLUSIVE
    assert "was red in only 1 of 6 trials, and before in 40 of 40 trials" in said[1].sentence


@pytest.mark.parametrize("anomaly", ["stale-checkpoint", "duplicate-output"])
def test_a_red_that_is_not_what_a_control_must_show_is_none(anomaly):
    shown = TrialEvidence("t", 1, exercised=True, anomalies={anomaly: 1})
    control = judge(cell("4.1.2", scenario="crash"), [shown], registry())
    green = judged(cell("4.3.1", scenario="crash"), green=9)
    said = weigh([control, green], registry(), NOTHING, 0.05)
    assert said[1].verdict is Verdict.INCONCLUSIVE
    assert "was not red as expected in this run" in said[1].sentence


def test_what_a_control_shows_by_chance_is_no_hit():
    """KAFKA-18943 tears a transaction of 3.4.0 now and then, which says nothing of how visible KAFKA-14172 is there."""
    fields: dict[str, Any] = {"exercised": True, "commit": COMMIT, "harness": HARNESS, "machine": MACHINE}
    torn = [TrialEvidence(f"t{n}", n, anomalies={"torn-transaction": 1}, **fields) for n in range(6)]
    both = TrialEvidence("b", 1, anomalies={"torn-transaction": 1, "duplicate-id": 3}, **fields)
    green, where = judged(GREEN, green=1), cell("3.4.0")
    control = judge(where, [*torn, both], registry())
    assert (str(control.verdict), control.rated, control.hits) == ("known", Tally(7, 7), 1)
    assert control_of(GREEN, {GREEN: green, where: control}, registry(), NOTHING, 0.05).now == Tally(1, 7)
    said = weigh([judge(where, torn, registry()), green], registry(), NOTHING, 0.05)
    assert "was not red as expected in this run" in said[1].sentence


def test_a_green_control_invalidates_the_greens_of_its_scenario():
    green, silent = judged(GREEN, green=9), judged(cell("3.3.2"), green=9)
    other = [judged(cell("4.1.2", scenario="crash"), red=3), judged(cell("3.6.2", scenario="crash"), green=2)]
    said = weigh([green, silent, *other], registry(), Past({place(cell("3.3.2")): Tally(7, 7)}), 0.05)
    assert said[0].verdict is Verdict.INCONCLUSIVE
    assert said[0].sentence.startswith("Its positive control 3.3.2 × DEFAULT_CONFIG was not red as expected")
    assert said[3].verdict is Verdict.CLEAN


def test_without_a_control_a_green_says_nothing():
    [said] = weigh([judged(GREEN, green=50)], registry(), NOTHING, 0.05)
    assert said.verdict is Verdict.INCONCLUSIVE
    assert "it is not known what a green is worth" in said.sentence


def test_a_green_affected_release_is_fixed_if_others_are_red():
    control, still = judged(CONTROL, red=9), judged(cell("3.4.0"), green=1)
    assert verdicts(control, still) == ["known", "fixed"]
    assert verdicts(judged(CONTROL, red=1), still) == ["known", "inconclusive"]
    assert verdicts(still) == ["inconclusive"]  # it is not its own control


def controlled_by(green, of_run, past=NOTHING):
    return control_of(green, {v.cell: v for v in [*of_run, judged(green)]}, registry(), past, 0.05).cell


def test_controls_of_the_same_variant_come_first():
    of_run = [judged(CONTROL, red=5), judged(cell("3.3.1", "REPEATED_KEYS"), green=9)]
    assert controlled_by(cell("3.4.1", "REPEATED_KEYS"), of_run) == cell("3.3.1", "REPEATED_KEYS")
    assert controlled_by(cell("3.4.1", "CACHING_DISABLED"), of_run) == CONTROL  # the scenario's control


def test_the_control_with_most_trials_is_taken():
    of_run = [judged(CONTROL, red=2), judged(cell("3.3.2"), red=1, green=2)]
    assert controlled_by(GREEN, of_run) == cell("3.3.2")
    assert controlled_by(GREEN, of_run, Past({place(CONTROL): Tally(0, 2)})) == CONTROL


def test_controls_with_the_same_broker_and_restart_come_first():
    def of(streams, broker, restart_on=None):
        restart = Release.parse(restart_on) if restart_on else None
        return Cell("crash", "DEFAULT_CONFIG", Release.parse(streams), Release.parse(broker), restart)

    controls = [of("4.1.2", "3.9.1"), of("4.1.2", "4.1.2"), of("4.1.2", "4.1.2", "4.3.1")]
    of_run = [judged(control, red=1) for control in controls]
    for green, control in (
        (of("4.3.1", "3.9.1"), controls[0]),
        (of("4.3.1", "4.1.2"), controls[1]),
        (of("3.6.2", "4.1.2", "4.3.1"), controls[2]),
        (of("3.6.2", "3.9.1", "4.3.1"), controls[0]),
    ):
        assert controlled_by(green, of_run) == control


@pytest.mark.parametrize(
    ("green", "before", "is_sick"),
    [(1, Tally(40, 40), True), (19, Tally(1, 1), True), (18, Tally(1, 1), False), (19, Tally(), False)],
)
def test_one_trial_can_show_a_degraded_control(green, before, is_sick):
    control = judged(CONTROL, green=green, added_red=1)  # which was red, but in no planned trial
    of_run = {verdict.cell: verdict for verdict in (control, judged(GREEN, green=1))}
    found = control_of(GREEN, of_run, registry(), Past({place(CONTROL): before}), 0.05)
    assert (found.is_sick, found.is_alive) == (is_sick, not is_sick)


def test_of_two_with_as_many_trials_the_first_is_taken():
    first, second = judged(CONTROL, red=2), judged(cell("3.3.2"), red=2)
    assert controlled_by(GREEN, [first, second]) == CONTROL
    assert controlled_by(GREEN, [second, first]) == cell("3.3.2")


def test_a_cell_of_an_unknown_machine_has_a_control_and_is_one():
    unknown = {"machine": ""}
    for control, green in ((judged(CONTROL, red=7), unknown), (judged(CONTROL, red=7, **unknown), {})):
        of_run = {control.cell: control, GREEN: judged(GREEN, green=1, **green)}
        assert control_of(GREEN, of_run, registry(), NOTHING, 0.05).cell == CONTROL


def test_a_control_with_a_trial_that_failed_weighs_nothing():
    trials = [TrialEvidence("r", 1, exercised=True, anomalies=SHOWN["enumerator"]), TrialEvidence("e", 2, error="No.")]
    broken = judge(CONTROL, trials, registry())
    assert (broken.verdict, broken.rated, tally_of(broken)) == (Verdict.ERROR, Tally(1, 1), Tally())
    assert tally_of(judged(CONTROL, red=2, green=1)) == Tally(2, 3)
    assert tally_of(judged(GREEN, red=2)) == Tally(0, 2)  # not as the registry expects


def test_a_red_that_no_rate_can_be_taken_from_has_no_arithmetic():
    [red] = weigh([judged(GREEN, idle_red=1)], registry(), NOTHING, 0.05)
    assert (red.verdict, red.interval, red.arithmetic) == (Verdict.REGRESSION, None, "")


@pytest.mark.parametrize(
    ("red", "green", "sentence"),
    [
        (3, 1, "That takes 2 trials, and there is 1. No anomaly in 1 exercised trial. It came back."),
        (1, 2, "That takes 7 trials, and there are 2. No anomaly in 2 exercised trials. It came back."),
    ],
)
def test_too_few_greens_say_how_many_it_takes(red, green, sentence):
    said = weigh([judged(CONTROL, red=red), judged(GREEN, green=green)], registry(), NOTHING, 0.05)[1]
    assert (said.verdict, said.sentence) == (Verdict.INCONCLUSIVE, sentence)


def test_a_first_look_says_how_many_trials_there_are():
    past = Past({place(CONTROL): Tally(0, 1)})
    of_run = [judged(CONTROL, red=2), judged(GREEN, green=2)]
    first = weigh(of_run, registry(), past, 0.25)[1]
    assert first.verdict is Verdict.PROVISIONAL
    assert re.match(
        r"A first look: with this control `clean` takes \d+ trials, and there are 2\. No anomaly", first.sentence
    )
    assert "was red in 2 of 2 trials and before in 0 of 1 trial. If this cell had" in first.arithmetic


def test_a_first_look_says_if_no_number_of_greens_would_do():
    past = Past({place(CONTROL): Tally(0, 299)})
    first = weigh([judged(CONTROL, red=1), judged(GREEN, green=900)], registry(), past, 0.25)[1]
    assert first.verdict is Verdict.PROVISIONAL
    said = "A first look: with this control no number of green trials would be enough for `clean`. No anomaly"
    assert first.sentence.startswith(said)


# --- plants on the very release


def test_injected_bugs_of_a_place_are_those_of_any_commit():
    here = planted(GREEN, "stale-cache", 1, 2, commit="abad1dea")
    other, older = planted(cell("3.9.1"), "put-lost", 1, 1), planted(GREEN, "read-lost", 1, 1, harness="0.1.0+2")
    found = sensitivities([*here, *other, *older])
    assert [plant.plant for plant in plants_in(GREEN, HARNESS, MACHINE, found)] == ["stale-cache"]


def test_plants_on_its_own_release_carry_a_green_and_are_named():
    past = Past(plants=sensitivities([*planted(GREEN, "stale-cache", 7, 7), *planted(GREEN, "put-lost", 0, 7)]))
    green = weigh([judged(CONTROL, red=1), judged(GREEN, green=1)], registry(), past, 0.05)[1]
    assert green.verdict is Verdict.CLEAN
    assert [plant.name for plant in green.plants] == ["stale-cache"]
    assert green.missed == 0.0491
    assert green.arithmetic == (
        "1 green trial excludes, with 95 % confidence, bugs that show in 95 % of trials or more. Behind it stand 1 of 2 "
        "bugs planted into 3.4.1 itself (stale-cache 7/7). If this cell had a bug as visible, so many reds of "
        "stale-cache, the weakest of them, and 1 green trial here would come together with a probability of at most "
        "4.9 %; 5 % are allowed. Planted, and not found often enough: put-lost."
    )


def test_a_bug_that_is_found_sometimes_demands_more_greens():
    past = Past(plants=sensitivities([*planted(GREEN, "stale-cache", 7, 7), *planted(GREEN, "put-lost", 6, 7)]))
    control = {v.cell: v for v in (judged(CONTROL, red=1), judged(GREEN, green=1))}
    found = control_of(GREEN, control, registry(), past, 0.05)
    assert (found.count_needed(6), found.count_needed(3), found.count_needed(2)) == (3, 3, 1)
    [_, green] = weigh([judged(CONTROL, red=1), judged(GREEN, green=3)], registry(), past, 0.05)
    assert [plant.name for plant in green.plants] == ["put-lost", "stale-cache"]
    assert green.missed == pytest.approx(green.plants[0].missed, abs=1e-4)


def test_a_little_known_bug_demands_no_more_than_the_control():
    past = Past({place(CONTROL): Tally(6, 6)}, sensitivities(planted(GREEN, "stale-cache", 3, 3)))
    of_run = {v.cell: v for v in (judged(CONTROL, red=1), judged(GREEN, green=1))}
    assert control_of(GREEN, of_run, registry(), past, 0.05).count_needed(6) == 1  # the plant asks for two
    assert (
        control_of(GREEN, of_run, registry(), replace(past, controls={}), 0.05).count_needed(6) == 2
    )  # the control for seven


@pytest.mark.parametrize(
    "elsewhere",
    [
        planted(cell("3.9.1"), "stale-cache", 7, 7),
        planted(replace(GREEN, broker=Release.parse("3.9.0")), "stale-cache", 7, 7),
        planted(replace(GREEN, restart_on=Release.parse("3.5.0")), "stale-cache", 7, 7),
        planted(GREEN, "stale-cache", 7, 7, commit="abad1dea"),
        planted(GREEN, "stale-cache", 7, 7, harness="0.1.0+2"),
        planted(GREEN, "stale-cache", 7, 7, machine=MACHINE.replace("2 cores", "8 cores")),
    ],
)
def test_bugs_of_another_place_count_nothing(elsewhere):
    past = Past(plants=sensitivities(elsewhere))
    [_, green] = weigh([judged(CONTROL, red=1), judged(GREEN, green=1)], registry(), past, 0.05)
    assert green.verdict is Verdict.INCONCLUSIVE
    assert "No bug was planted into 3.4.1 itself. Its positive control, the known bug of 3.3.1" in green.arithmetic


def test_a_known_bug_may_replace_injected_bugs():
    past = Past(plants=sensitivities(planted(GREEN, "stale-cache", 0, 7)))
    [_, green] = weigh([judged(CONTROL, red=7), judged(GREEN, green=1)], registry(), past, 0.05)
    assert (green.verdict, green.plants) == (Verdict.CLEAN, ())
    assert "Of the bugs planted into 3.4.1 itself none carries it (stale-cache 0/7)." in green.arithmetic


def test_plants_do_not_replace_the_sign_of_life():
    past = Past(plants=sensitivities(planted(GREEN, "stale-cache", 7, 7)))
    assert verdicts(judged(CONTROL, green=1), judged(GREEN, green=1), past=past)[1] == "inconclusive"
    assert verdicts(judged(CONTROL, green=1, added_red=1), judged(GREEN, green=1), past=past)[1] == "clean"


def test_a_variant_without_injected_bugs_uses_the_default_ones():
    disabled = cell("3.4.1", "CACHING_DISABLED")
    past = Past(plants=sensitivities(planted(GREEN, "put-lost", 7, 7)))
    assert verdicts(judged(CONTROL, red=1), judged(disabled, green=1), past=past) == ["known", "clean"]
    own = Past(plants=[*past.plants, *sensitivities(planted(disabled, "put-lost", 0, 7))])
    assert verdicts(judged(CONTROL, red=1), judged(disabled, green=1), past=own) == ["known", "inconclusive"]


# --- what greens exclude, and the words for a first look


@pytest.mark.parametrize(("greens", "rate"), [(1, 0.95), (2, 0.7764), (3, 0.6316), (7, 0.3482)])
def test_the_smallest_rate_that_greens_exclude_is_reported(greens, rate):
    for of_run in ([judged(CONTROL, red=7)], [judged(CONTROL, green=1)], []):
        green = weigh([judged(GREEN, green=greens), *of_run], registry(), NOTHING, 0.05)[0]
        assert green.excluded_rate == rate
        assert f"bugs that show in {100 * rate:.0f} % of trials or more" in green.arithmetic
    assert weigh([judged(GREEN, red=1, green=greens)], registry(), NOTHING, 0.05)[0].excluded_rate is None


def test_clean_needs_the_same_trials_at_every_allowed_risk():
    first = weigh([judged(CONTROL, red=1), judged(GREEN, green=1)], registry(), NOTHING, 0.25)[1]
    assert (first.verdict, first.missed) == (Verdict.PROVISIONAL, 0.25)
    assert first.sentence.startswith(
        "A first look: with this control `clean` takes 7 trials, and there is 1. No anomaly"
    )
    assert "at most 25.0 %; 25 % are allowed" in first.arithmetic
    enough = weigh([judged(CONTROL, red=7), judged(GREEN, green=1)], registry(), NOTHING, 0.25)[1]
    assert enough.verdict is Verdict.CLEAN
    assert "at most 4.9 %; 5 % are allowed" in enough.arithmetic
    assert verdicts(judged(CONTROL, red=2, green=1), judged(GREEN, green=2), risk=0.25) == ["known", "provisional"]
    assert verdicts(judged(CONTROL, red=1, green=4), judged(GREEN, green=1), risk=0.25) == ["known", "inconclusive"]


def test_a_first_look_never_says_that_the_registry_is_wrong():
    assert verdicts(judged(CONTROL, red=1), judged(cell("3.4.0"), green=1), risk=0.25) == ["known", "inconclusive"]
    assert verdicts(judged(CONTROL, red=7), judged(cell("3.4.0"), green=1), risk=0.25) == ["known", "fixed"]


# --- where trials were driven


def test_a_control_on_another_machine_is_none():
    elsewhere = judged(CONTROL, red=7, machine=MACHINE.replace("2 cores", "8 cores"))
    said = weigh([elsewhere, judged(GREEN, green=1)], registry(), NOTHING, 0.05)[1]
    assert said.verdict is Verdict.INCONCLUSIVE
    assert "on this kind of machine" in said.sentence


def test_trials_of_one_machine_count_in_a_cell_of_two():
    fields: dict[str, Any] = {"exercised": True, "commit": COMMIT, "harness": HARNESS}
    idle = TrialEvidence("i", 1, commit=COMMIT, harness=HARNESS, machine="another")
    trials = [TrialEvidence(f"t{n}", n, machine=MACHINE if n else "another", **fields) for n in range(3)]
    one = judge(GREEN, [idle, *trials[1:], trials[0]], registry())
    assert (one.place, one.counted, one.greens, one.rated) == (place(GREEN), 3, 2, Tally(0, 2))
    unknown = judge(GREEN, [idle, TrialEvidence("t", 1, **fields)], registry())
    assert (unknown.place, unknown.greens) == (None, 1)


@pytest.mark.parametrize("planned", [True, False])
def test_a_trial_has_the_place_that_its_outcome_says(planned):
    trial = Trial("r", GREEN, 1, 1)
    keys = {trial.key} if planned else set()
    attested = {"a": {"streams_version": "3.4.1", "streams_commit": COMMIT}}
    outcome = an_outcome(trial, attested=attested, harness=HARNESS, machine=MACHINE)
    seen = TrialEvidence("t", 1, exercised=True)
    where: dict[str, Any] = {"commit": COMMIT, "harness": HARNESS, "machine": MACHINE}
    assert place_evidence(seen, trial, outcome, keys) == replace(seen, planned=planned, **where)
    old = replace(outcome, harness=None, machine=None)
    assert place_evidence(seen, trial, old, keys) == replace(seen, planned=planned, commit=COMMIT)
    assert place_evidence(seen, trial, None, keys) == replace(seen, planned=planned)


# --- trials that are not exercised


def test_a_cell_exercised_much_less_than_its_control_says_so():
    jump = "Exercised in 1 of 7, and its positive control 3.3.1 in 7 of 7: a jump of this kind can be a finding."
    rare, never = judged(GREEN, green=1, idle=6), judged(GREEN, idle=3)
    said = weigh([judged(CONTROL, red=7), rare], registry(), NOTHING, 0.05)[1]
    assert said.verdict is Verdict.CLEAN
    assert said.sentence.endswith(jump)
    past = Past({place(CONTROL): Tally(20, 20)}, tried={place(CONTROL): 20})
    said = weigh([judged(CONTROL, red=1), never], registry(), past, 0.05)[1]
    assert said.verdict is Verdict.INCONCLUSIVE
    assert "Exercised in 0 of 3, and its positive control 3.3.1 in 21 of 21" in said.sentence


@pytest.mark.parametrize(
    ("control", "of_cell", "past"),
    [
        (judged(CONTROL, red=1), judged(GREEN, idle=3), NOTHING),  # too few to say so
        (judged(CONTROL, red=7, idle=9), judged(GREEN, green=1, idle=3), NOTHING),  # it is exercised as seldom
        (
            judged(CONTROL, red=1),
            judged(GREEN, idle=3),
            Past({place(CONTROL): Tally(20, 20)}, tried={place(CONTROL): 90}),
        ),
        (judged(CONTROL, red=7), judged(cell("3.4.1", "CACHING_DISABLED"), idle=6), NOTHING),  # another variant
        (judged(CONTROL, red=7), judged(GREEN, red=1, idle=6), NOTHING),  # red is proof
        (judged(CONTROL, red=7), judged(GREEN, idle_red=1, idle=6), NOTHING),
        (
            judged(CONTROL, red=7),
            judge(GREEN, [TrialEvidence(f"v{n}", n, is_void=True) for n in range(6)], registry()),
            NOTHING,
        ),
    ],
)
def test_a_gap_that_randomness_or_the_variant_explains_is_silent(control, of_cell, past):
    assert "jump" not in weigh([control, of_cell], registry(), past, 0.05)[1].sentence


# --- how many trials of a control are planned


def test_unknown_control_trials_are_planned_whatever_they_showed():
    def lacking(past, *cells, risk=0.05):
        return control_trials_lacking(cells, registry(), past, risk, defaultdict(lambda: HARNESS), MACHINE)

    assert lacking(NOTHING, CONTROL, GREEN) == {CONTROL: 7}
    assert lacking(NOTHING, CONTROL, GREEN, risk=0.25) == {CONTROL: 1}
    assert lacking(NOTHING, CONTROL) == {}  # nothing stands on it
    assert lacking(NOTHING, CONTROL, cell("3.4.1", "NO_LAG_ACCEPTABLE")) == {}  # nor on one that is avoided
    for red in (0, 5):
        assert lacking(Past({place(CONTROL): Tally(red, 5)}), CONTROL, GREEN) == {CONTROL: 2}
    assert lacking(Past({place(CONTROL): Tally(70, 70)}), CONTROL, GREEN) == {CONTROL: 1}
    for other in (place(CONTROL, harness="old"), place(CONTROL, machine="another"), place(CONTROL, machine="")):
        assert lacking(Past({other: Tally(70, 70)}), CONTROL, GREEN) == {CONTROL: 7}
    plants = Past(plants=sensitivities(planted(GREEN, "stale-cache", 0, 7)))
    assert lacking(plants, CONTROL, GREEN) == {}
    assert lacking(plants, CONTROL, GREEN, cell("3.5.0")) == {CONTROL: 7}  # on whose release none was planted


# --- in words, and from the database


def test_the_arithmetic_is_told():
    control, green = weigh([judged(CONTROL, red=3), judged(GREEN, green=2)], registry(), NOTHING, 0.05)
    assert control.arithmetic == (
        "Red in 3 of 3 trials that were exercised, their number fixed beforehand: 44% to 100% (95 %, Wilson)."
    )
    assert green.arithmetic == (
        "2 green trials exclude, with 95 % confidence, bugs that show in 78 % of trials or more. No bug was planted into "
        "3.4.1 itself. Its positive control, the known bug of 3.3.1 × DEFAULT_CONFIG, was red in 3 of 3 trials. If this "
        "cell had a bug as visible, so many reds of the control and 2 green trials here would come together with a "
        "probability of at most 3.5 %; 5 % are allowed."
    )
    assert (green.missed, green.excluded_rate) == pytest.approx((0.0346, 0.7764), abs=1e-4)
    assert green.interval == pytest.approx((0.0, 0.6576), abs=1e-4)


def test_red_avoided_and_error_need_no_control():
    red = judged(GREEN, red=1)
    avoided = judge(cell("3.4.1", "NO_LAG_ACCEPTABLE"), [TrialEvidence("t", 1, all_steps_tried=True)], registry())
    broken = judge(GREEN, [TrialEvidence("t", 1, error="A broker ended.")], registry())
    assert verdicts(red, avoided, broken) == ["regression", "avoided", "error"]


RUN, TONIGHT = "20261120T084500-3f2a", "20261121T084500-3f2a"


def stored(
    home, url, trials, verdict="known", streams="3.3.1", run_id=RUN, broker=CONTROL.broker, anomaly="duplicate-id"
):
    """A judged run of one cell; for each trial: red, exercised, planned, harness, commit."""
    run, where = RunFolder(home / run_id), replace(cell(streams), broker=broker)
    of_run = [Trial(run_id, where, n, n) for n in range(1, len(trials) + 1)]
    plan = [t.to_dict() for t, (_, _, planned, *_) in zip(of_run, trials, strict=True) if planned]
    write_json(run.run_file, {"matrix": "seed", "created": "now", "trials": plan})
    for trial, (red, exercised, planned, harness, commit, *machines) in zip(of_run, trials, strict=True):
        if not planned:
            run.add_trial(trial)
        machine = machines[0] if machines else MACHINE
        attested = {"a": {"streams_version": streams, "streams_commit": commit}}
        outcome = an_outcome(trial, exercised=exercised, attested=attested, harness=harness, machine=machine)
        outcome.write(run.trial(trial).outcome_file)
        a_reading(anomalies={anomaly: 1} if red else {}).write(run.trial(trial).reader_file)
    VerdictRow.write_all(run.verdicts_file, [a_verdict(where, verdict, red=1)])
    store_run(run, url)


FINE = (True, True, True, HARNESS, COMMIT)


def test_the_past_has_planned_exercised_trials_by_place(database_url, tmp_path):
    assert past_of(database_url, TONIGHT, registry()) == NOTHING
    missed = (False, *FINE[1:])
    idle, added, old = (True, False, *FINE[2:]), (True, True, False, HARNESS, COMMIT), (*FINE[:3], None, COMMIT)
    stored(
        tmp_path,
        database_url,
        [FINE, FINE, missed, idle, added, old, (*FINE[:4], "abad1dea"), (*FINE, "another"), (*FINE, None)],
    )
    stored(tmp_path, database_url, [FINE], streams="3.4.1", verdict="regression", run_id="20261119T084500-3f2a")
    stored(tmp_path, database_url, [FINE, missed], verdict="error", run_id="20261118T084500-3f2a")
    stored(tmp_path, database_url, [FINE], verdict="inconclusive", run_id="20261117T084500-3f2a")
    stored(tmp_path, database_url, [FINE], run_id=TONIGHT)  # itself
    stored(tmp_path, database_url, [FINE], run_id="20261122T084500-3f2a")  # later
    store_planted(planted(GREEN, "stale-cache", 2, 3), database_url)
    store_planted(planted(GREEN, "put-lost", 2, 3, machine=""), database_url)  # of before it was noted
    store_planted(planted(GREEN, "eviction-lost", 3, 3), database_url)  # it needs a parameter that no cell has
    store_planted(planted(replace(GREEN, scenario="crash"), "record-twice", 0, 3), database_url)  # it cannot show there
    past = past_of(database_url, TONIGHT, registry())
    assert past.controls == {
        place(CONTROL): Tally(3, 6),  # one each of the runs with an error and without all that must show
        place(CONTROL, commit="abad1dea"): Tally(1, 1),
        place(CONTROL, machine="another"): Tally(1, 1),
    }
    assert past.tried == {where: tally.counted + (where == place(CONTROL)) for where, tally in past.controls.items()}
    [one] = past.plants
    assert (one.plant, one.tally) == ("stale-cache", Tally(2, 3))


def test_what_the_past_shows_by_chance_is_no_hit_either(database_url, tmp_path):
    stored(tmp_path, database_url, [FINE, FINE], streams="3.4.0", anomaly="torn-transaction")  # KAFKA-18943
    assert past_of(database_url, TONIGHT, registry()).controls == {place(cell("3.4.0")): Tally(0, 2)}


def test_trials_on_claimed_brokers_count_only_in_their_run(database_url, tmp_path):
    claimed = replace(GREEN, broker=GREEN.broker.claimed)
    store_planted(planted(GREEN, "stale-cache", 3, 3), database_url)
    stored(tmp_path, database_url, [FINE, FINE], broker=claimed.broker)
    past = past_of(database_url, TONIGHT, registry())
    assert past.controls == {}
    assert control_of(GREEN, {GREEN: judged(GREEN, green=1)}, registry(), past, 0.05).plants
    alone = control_of(claimed, {claimed: judged(claimed, green=1)}, registry(), past, 0.05)
    assert (alone.plants, alone.cell) == ((), None)
