from dataclasses import replace
from typing import Any

import pytest

from onceproof.model.errors import UsageError
from onceproof.model.known_issues import LATER, MIXED, OF_BROKERS, registry
from onceproof.model.matrices import BUDGET, MATRICES
from onceproof.model.matrix import Request, expand, with_controls
from onceproof.model.release import Release
from onceproof.scenarios import CATALOGUE
from tests.cases import check_each
from tests.published import NEWEST, expanded


def keys(request):
    return [cell.key for cell in expanded(request).cells]


def test_the_seed_matrix_has_nine_enumerator_cells_bad_one_first():
    cells = [cell for cell in expanded(Request("first-look")).cells if cell.scenario == "enumerator"]
    assert len(cells) == 9
    assert str(cells[0].streams) == "3.3.1"
    assert {c.variant for c in cells} == {"DEFAULT_CONFIG", "CACHING_DISABLED", "NO_LAG_ACCEPTABLE"}


def test_the_seed_matrix_has_a_red_and_a_green_cell_of_others():
    seeds = {block.scenario for block in MATRICES["first-look"].blocks}
    assert seeds == {"enumerator", "multirunner", "crash", "quota", "at-least-once"}
    for scenario in seeds - {"enumerator"}:
        cells = expanded(Request("first-look", scenarios=(scenario,))).cells
        assert [bool(registry().affecting(cell)) for cell in cells] == [True, False], scenario


@pytest.mark.parametrize("name", MATRICES)
def test_every_matrix_can_be_expanded(name):
    cells = expanded(Request(name)).cells
    assert len(cells) == len(set(cells)) > 0


def test_axes_replace_those_of_the_matrix_in_release_order():
    streams = ("3.10.0", "3.9.1", "3.9.1")
    assert keys(Request("first-look", streams, scenarios=("enumerator",), variants=("DEFAULT_CONFIG",))) == [
        "enumerator-DEFAULT_CONFIG-s3.9.1-b3.9.2",
        "enumerator-DEFAULT_CONFIG-s3.10.0-b3.9.2",
    ]


def test_several_brokers_are_an_axis():
    assert len(keys(Request("first-look", scenarios=("enumerator",), brokers=("3.9.1", "4.0.0")))) == 18


def test_a_restart_is_an_axis():
    crash: dict[str, Any] = {"scenarios": ("crash",), "variants": ("DEFAULT_CONFIG",)}
    assert keys(Request("first-look", ("4.1.2",), restarts=("4.3.1", "4.2.0"), **crash)) == [
        "crash-DEFAULT_CONFIG-s4.1.2-r4.2.0-b3.9.2",
        "crash-DEFAULT_CONFIG-s4.1.2-r4.3.1-b3.9.2",
    ]


def test_a_night_has_each_scenario_on_the_newest_and_a_control():
    cells = expanded(Request("nightly")).cells
    newest = {cell.scenario for cell in cells if cell.running == NEWEST}
    assert newest == {cell.scenario for cell in cells if registry().affecting(cell)} == set(CATALOGUE)


def test_the_weekly_matrix_has_what_every_night_has():
    assert set(keys(Request("nightly"))) < set(keys(Request("weekly")))


def test_the_weekly_matrix_restarts_over_more_than_one_line():
    pairs = {(str(c.streams), str(c.restart_on)) for c in expanded(Request("weekly")).cells if c.restart_on}
    assert {("4.1.2", "4.4.0"), ("3.6.2", "4.4.0"), ("3.9.2", "3.6.2"), ("4.3.1", "4.4.0")} <= pairs


def test_the_known_matrix_has_each_issue_on_bad_and_good_ones():
    expansion = expanded(Request("known"))
    cells, refused = expansion.cells, {cell.streams for cell in expansion.refused}
    assert len(cells) <= 190
    assert refused == {Release.parse("3.0.0")}  # it has no versioned stores
    for issue in registry().issues:
        for scenario in issue.provoked:
            own = [cell for cell in cells if cell.scenario == scenario]
            blamed = {cell: str(cell.broker if issue.culprit == OF_BROKERS else cell.running) for cell in own}
            bad = {release for cell, release in blamed.items() if issue.affects(cell)}
            started = {str(cell.streams) for cell in own if issue.affects(cell)} if issue.culprit == MIXED else bad
            ends = {"4.4.0" if end == LATER else str(end) for affected in issue.affected for end in affected}
            assert ends - set(map(str, refused)) <= started, issue.key
            assert set(map(str, issue.fixed)) <= {*blamed.values()} - bad, issue.key


def test_a_cell_that_cannot_exist_is_left_out_with_its_reason():
    expansion = expanded(Request("weekly", ("4.2.0", "4.3.1"), variants=("STATE_UPDATER_DISABLED",)))
    assert {str(cell.streams) for cell in expansion.cells} == {"4.2.0"}
    [reason] = set(expansion.refused.values())
    assert {str(cell.streams) for cell in expansion.refused} == {"4.3.1"}
    assert "no switch for its state updater" in reason


@pytest.mark.parametrize(
    ("scenario", "streams", "restart", "said"),
    [
        ("crash", "4.3.1", "4.2.0", "KIP-1035"),
        ("crash", "4.0.0", "3.9.1", "RocksDB"),
        ("crash", "3.6.2", "3.0.0", "cannot decode the one of 3.6.2"),
        ("crash", "4.1.2", "4.1.2", "is the release that it ran on"),
        ("enumerator", "4.3.1", "4.2.0", "KIP-1035"),
        ("quota", "3.8.1", "3.9.1", "is not restarted"),
    ],
)
def test_a_restart_pair_that_cannot_work_is_refused(scenario, streams, restart, said):
    request_ = Request(
        "first-look", (streams,), scenarios=(scenario,), variants=("DEFAULT_CONFIG",), restarts=(restart,)
    )
    with pytest.raises(UsageError, match=said):
        expanded(request_)


def test_a_variant_outside_the_matrix_runs_on_the_same_releases():
    assert keys(Request("first-look", variants=("REPEATED_KEYS",))) == [
        f"enumerator-REPEATED_KEYS-s{release}-b3.9.2" for release in ("3.3.1", "3.4.1", "4.4.0")
    ]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request("hourly"), "There is no matrix 'hourly'"),
        (Request(streams=("3.3.x",)), "'3.3.x' is not a Kafka release"),
        (Request(scenarios=("enum",)), "There is no scenario 'enum'"),
        (Request(variants=("DEFAULT",)), "There is no variant 'DEFAULT'"),
        (Request(trials=0), "0 trials cannot be run"),
        (Request(trials=101), "101 trials cannot be run"),
    ],
)
def test_a_request_that_cannot_be_carried_out_is_refused(request_, said):
    with pytest.raises(UsageError, match=said):
        expanded(request_)


def controlled(request):
    cells = with_controls(expanded(request), CATALOGUE, registry()).cells
    return [cell.key for cell in cells]


def test_a_scenario_without_an_affected_cell_gets_its_control():
    asked = Request(scenarios=("enumerator", "crash"), streams=("4.3.1",), variants=("DEFAULT_CONFIG",))
    assert controlled(asked) == [
        *keys(asked),
        "enumerator-DEFAULT_CONFIG-s3.3.1-b3.9.2",
        "crash-DEFAULT_CONFIG-s4.1.2-b3.9.2",
    ]


def test_a_scenario_with_an_affected_cell_is_its_own_control():
    asked = Request(scenarios=("enumerator",), streams=("3.4.0", "4.3.1"), variants=("DEFAULT_CONFIG",))
    assert controlled(asked) == keys(asked)
    assert controlled(Request("first-look")) == keys(Request("first-look"))
    lacking = {name: {*controlled(Request(name))} - {*keys(Request(name))} for name in ("nightly", "weekly")}
    assert lacking["weekly"] == lacking["nightly"]


def test_a_variant_with_a_known_issue_has_a_control_of_its_own():
    asked = Request(scenarios=("crash",), streams=("4.3.1",), variants=("ENUMERATOR", "STATE_UPDATER_DISABLED"))
    weak = Request(scenarios=("crash",), streams=("4.1.2",), variants=("DYNAMIC_MEMBERSHIP",))
    with pytest.raises(UsageError):
        expand(Request(scenarios=("crash",), streams=("4.3.1",), variants=("STATE_UPDATER_DISABLED",)), CATALOGUE)
    assert controlled(asked)[-1] == "crash-ENUMERATOR-s4.1.2-b3.9.2"
    assert controlled(weak) == keys(weak)


def test_every_broker_has_its_controls():
    asked = Request(scenarios=("quota",), streams=("4.3.1",), variants=("DEFAULT_CONFIG",), brokers=("3.9.1", "4.1.2"))
    assert controlled(asked)[2:] == ["quota-DEFAULT_CONFIG-s3.8.1-b3.9.1", "quota-DEFAULT_CONFIG-s3.8.1-b4.1.2"]


@check_each("name", CATALOGUE)
def test_every_control_must_be_red(name):
    variant, release, *to = CATALOGUE[name].positive_control
    brokers = tuple(filter(None, [CATALOGUE[name].control_broker]))
    asked = Request(scenarios=(name,), streams=(release,), brokers=brokers, variants=(variant,), restarts=tuple(to))
    [cell] = expanded(asked).cells
    assert cell == CATALOGUE[name].control(name, cell.broker)
    assert registry().affecting(cell)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (Request(), BUDGET),
        (Request(trials=20), 20),
        (Request(trials=3), 3),  # exactly: no verdict asks for more
        (Request(trials=2, budget=9), 9),
        (Request(budget=1), 1),
        (Request(replace(MATRICES["first-look"], trials=BUDGET + 1)), BUDGET + 1),
    ],
)
def test_a_budget_is_the_given_trials_or_that_of_the_matrix(request_, expected):
    assert expanded(request_).budget == expected


def test_a_budget_below_the_trials_is_refused():
    with pytest.raises(UsageError, match="A budget of 2 trials is not possible: ask for 3 to 100"):
        expand(Request(trials=3, budget=2), CATALOGUE)


def test_controls_run_on_external_brokers_within_their_limits():
    scenarios = ("enumerator", "at-least-once")
    request = Request("nightly", ("4.3.1",), ("3.9.1-claimed",), scenarios, ("DEFAULT_CONFIG", "STREAMS_PROTOCOL"))
    expansion = with_controls(expanded(request), CATALOGUE, registry())
    assert [cell.key for cell in expansion.cells] == [
        "enumerator-DEFAULT_CONFIG-s4.3.1-b3.9.1-claimed",
        "enumerator-DEFAULT_CONFIG-s3.3.1-b3.9.1-claimed",
    ]
    fields = {(cell.scenario, cell.variant): reason for cell, reason in expansion.refused.items()}
    assert "to let a topic refuse records" in fields["at-least-once", "DEFAULT_CONFIG"]
    ours = expanded(replace(request, brokers=("4.3.1",)))
    assert "STREAMS_PROTOCOL" in {cell.variant for cell in ours.cells}
    on_external = expanded(replace(request, brokers=("4.3.1-claimed",)))
    refused = {cell.variant: reason for cell, reason in on_external.refused.items() if cell.scenario == "enumerator"}
    assert "to set the configuration of a group" in refused["STREAMS_PROTOCOL"]
