"""Which cell gets another trial."""

from typing import Any

import pytest

from onceproof.model.cell import Cell, Trial
from onceproof.model.json_file import write_json
from onceproof.model.known_issues import registry
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.sensitivity import Stratum, Tally
from onceproof.results.controls import Past
from onceproof.results.sequential import cell_that_wants_more
from tests.specimens.files import a_reading, an_outcome

RUN = "20261121T084500-3f2a"
ATTESTED = {"a": {"streams_version": "3.3.1", "streams_commit": "c0ffee"}}
RED, GREEN, IDLE, BROKEN, VOID = "red", "green", "idle", "broken", "void"
PART, ODD = "a part of what must show", "what no issue explains"


def cell(streams, variant="DEFAULT_CONFIG", scenario="enumerator"):
    return Cell(scenario, variant, Release.parse(streams), Release.parse("3.9.1"))


CRASH = cell("4.1.2", scenario="crash")
NOTHING = Past()
CONTROL, FIXED, NO_LAG = cell("3.3.1"), cell("3.4.1"), cell("3.3.1", "NO_LAG_ACCEPTABLE")
OFTEN = Past({Stratum.of(CONTROL, "c0ffee", "0.1.0+1", "m"): Tally(40, 40)})


@pytest.fixture
def wanting(tmp_path):
    """The cell that wants another trial, after the given trials by cell; None in place of a trial: not driven yet."""

    def next_cell(shown, budget=6, past=OFTEN):
        run = RunFolder(tmp_path / RUN)
        trials = [(Trial(RUN, of, n, n), how) for of, hows in shown.items() for n, how in enumerate(hows, 1)]
        write_json(run.run_file, {"trials": [trial.to_dict() for trial, _ in trials]})
        for trial, how in trials:
            if how is not None:
                fields: dict[str, Any] = {
                    "error": "It broke." if how == BROKEN else None,
                    "exercised": how in (RED, GREEN, PART, ODD),
                }
                fields |= {"all_steps_tried": how != VOID, "attested": ATTESTED, "harness": "0.1.0+1", "machine": "m"}
                an_outcome(trial, **fields).write(run.trial(trial).outcome_file)
                anomalies = {RED: {"duplicate-id": 1}, PART: {"stale-checkpoint": 1}, ODD: {"lost-record": 1}}
                a_reading(anomalies=anomalies.get(how, {})).write(run.trial(trial).reader_file)
        return cell_that_wants_more(run, budget, registry(), past, 0.05)

    return next_cell


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ({FIXED: [GREEN], CONTROL: [RED]}, None),  # with the history one is enough
        ({FIXED: [GREEN], CONTROL: [GREEN]}, CONTROL),  # the control first: without it a green says nothing
        ({FIXED: [GREEN], CONTROL: [GREEN] * 6}, None),  # it had its budget, and more greens would say nothing
        ({FIXED: [IDLE], CONTROL: [RED]}, FIXED),
        ({FIXED: [IDLE] * 6, CONTROL: [RED]}, None),
        ({FIXED: [BROKEN], CONTROL: [RED]}, None),
        ({FIXED: [RED], CONTROL: [RED]}, None),  # a red stops at once
        ({FIXED: [VOID], CONTROL: [RED]}, FIXED),
        ({NO_LAG: [VOID], CONTROL: [RED]}, NO_LAG),
        ({NO_LAG: [IDLE], CONTROL: [RED]}, None),  # the mechanism cannot arise
        ({FIXED: [GREEN]}, None),  # there is no control
        ({CRASH: [PART]}, CRASH),  # it must show more
        ({FIXED: [GREEN], CONTROL: [ODD]}, None),  # a regression is not what a control must show
        ({FIXED: [GREEN], CONTROL: [GREEN], cell("3.3.2"): [RED]}, None),  # the claim `fixed` would stand
        ({FIXED: [GREEN, None], CONTROL: [RED]}, FIXED),  # interrupted before it was driven
    ],
)
def test_a_cell_gets_trials_until_its_claim_holds_or_budget_ends(wanting, shown, expected):
    assert wanting(shown) == expected


def test_without_a_history_three_red_trials_demand_two_greens(wanting):
    assert wanting({FIXED: [GREEN], CONTROL: [RED] * 3}, past=NOTHING) == FIXED
    assert wanting({FIXED: [GREEN] * 2, CONTROL: [RED] * 3}, past=NOTHING) is None


def test_a_budget_that_cannot_suffice_is_not_begun(wanting):
    assert wanting({FIXED: [GREEN], CONTROL: [RED]}, past=NOTHING) is None  # it takes seven
    assert wanting({FIXED: [GREEN], CONTROL: [RED]}, budget=7, past=NOTHING) == FIXED
