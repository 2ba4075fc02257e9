"""Which plants a run tries on its own: a few about which too little is known, whatever they showed."""

from dataclasses import replace
from typing import Any

import pytest

from onceproof.campaigns.sensitivity import plantings, verbs
from onceproof.campaigns.sensitivity.verbs import due
from onceproof.harness import harness_version
from onceproof.lab.machine import machine
from onceproof.model.cell import Cell
from onceproof.model.json_file import read_json
from onceproof.model.matrix import Request
from onceproof.model.plants import plants
from onceproof.model.release import Release
from onceproof.model.sensitivity import PlantedTrial
from onceproof.pipeline import steps
from onceproof.results.sensitivity import read_planted_trials, store_planted
from onceproof.settings import get_settings

RUN, BEFORE = "20261121T084500-3f2a", "20261120T084500-3f2a"
GREEN = Cell("enumerator", "DEFAULT_CONFIG", Release(4, 3, 1), Release(3, 9, 1))
AFFECTED = replace(GREEN, streams=Release(3, 3, 1))
NAMES = [
    one.name
    for one in plants().values()
    if one.applies(GREEN.streams) and (claim := one.claim("enumerator")) and not claim.parameters
]


def known(plant, exercised, idle=0, found=True, harness=None, where=None, cell=GREEN):
    one = PlantedTrial(BEFORE, "", plant, cell, "c0ffee", harness or harness_version(cell.scenario), 1, 3, True, found)
    one = replace(one, machine=machine(get_settings().installation) if where is None else where)
    trials = [replace(one, trial=f"{plant}-t{n}") for n in range(exercised)]
    trials += [replace(one, trial=f"{plant}-i{n}", fired=0, exercised=False) for n in range(idle)]
    store_planted(trials, get_settings().database_url)


def names(*cells, most=2, risk=0.05):
    return [one.plant.name for one in due(cells, most, risk, RUN)]


def test_as_many_as_the_matrix_says_where_greens_are(home):
    assert names(GREEN) == NAMES[:2]
    assert names(GREEN, replace(GREEN, variant="CACHING_DISABLED")) == NAMES[:2]  # once for the scenario and release
    assert names(AFFECTED) == []
    assert names(GREEN, most=0) == []


@pytest.mark.parametrize("found", [True, False])
def test_one_is_done_before_the_next_is_begun_whatever_it_showed(home, found):
    known(NAMES[4], 6, found=found)
    known(NAMES[3], 7, found=found)  # enough is known
    known(NAMES[5], 6, harness="0.0.9+00000000")
    assert names(GREEN) == [NAMES[4], NAMES[0]]
    assert names(GREEN, risk=0.25) == NAMES[:2]  # then one red trial is enough


def test_one_that_never_fires_does_not_keep_the_others_waiting(home):
    known(NAMES[0], 0, idle=3)
    assert names(GREEN) == NAMES[1:3]


@pytest.mark.parametrize("found", [True, False])
def test_well_known_bugs_are_drawn_again_least_tried_first(home, found):
    cells = {one.plant.name: one.cell for one in due([GREEN], 99, 0.05, RUN)}  # each in the variant that shows it
    for name in NAMES:
        known(name, 7 + (name in NAMES[:2]), found=found, cell=cells[name])
    assert names(GREEN) == NAMES[2:4]
    known(NAMES[2], 6, idle=3, found=found, cell=cells[NAMES[2]])  # tried oftener
    assert names(GREEN) == NAMES[3:5]
    known(NAMES[3], 6, found=found, harness="0.0.9+00000000", cell=cells[NAMES[3]])  # of which 1 is left
    assert names(GREEN) == NAMES[3:5]


@pytest.mark.parametrize("elsewhere", ["Linux 6.8 x86_64, 64 cores, 256 GiB or more, AMD EPYC, Java 17", ""])
def test_what_another_machine_found_does_not_count(home, elsewhere):
    known(NAMES[4], 6, where=elsewhere)
    assert names(GREEN) == NAMES[:2]


def test_bugs_with_a_parameter_or_hidden_by_issues_are_not_tried(home):
    assert "eviction-lost" not in names(GREEN, most=99)
    assert [
        one.cell.variant
        for one in due(
            [replace(GREEN, scenario="crash", streams=Release(4, 1, 2), variant="DURING_RESTORATION")], 1, 0.05, RUN
        )
    ] == ["STATE_UPDATER_DISABLED"]


def test_a_run_tries_and_stores_them_under_its_own_name(lab, home, monkeypatch):
    def try_planned(_installation, run, plan, broker, report, each, then):
        return [
            PlantedTrial(
                t.run, t.key, t.plant, t.cell, "c0ffee", harness_version(t.cell.scenario), t.seed, 3, True, True
            )
            for _, t in plan
        ]

    monkeypatch.setattr(plantings, "try_planned", try_planned)
    monkeypatch.setattr(verbs, "read_by_both", lambda planted, tried: [trial for _, trial in tried])
    axes: dict[str, Any] = {"brokers": ("3.9.1",), "scenarios": ("enumerator",), "variants": ("DEFAULT_CONFIG",)}
    run = steps.plan(RUN, Request("weekly", ("3.3.2", "4.3.1"), **axes))
    assert [one["plant"] for one in read_json(run.run_file)["plants"]] == NAMES[:2]
    steps.sense(run)
    stored = read_planted_trials(get_settings().database_url)
    assert [(one.run, one.plant, one.cell) for one in stored] == [(RUN, name, GREEN) for name in sorted(NAMES[:2])]


def test_nothing_is_planted_for_brokers_of_ones_own(home):
    assert names(GREEN, most=1)
    assert names(replace(GREEN, broker=GREEN.broker.claimed), most=99) == []


def test_a_first_look_plants_nothing(lab, home, capsys):
    run = steps.plan(
        RUN, Request("first-look", ("3.3.1", "4.3.1"), scenarios=("enumerator",), variants=("DEFAULT_CONFIG",))
    )
    steps.sense(run)
    assert "No plant is due" in capsys.readouterr().out
    assert read_planted_trials(get_settings().database_url) == []
