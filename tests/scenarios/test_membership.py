"""How instances are members of their group: which releases support it, and what does not go together."""

from contextlib import nullcontext
from itertools import product

import pytest

from onceproof.faults import bounce
from onceproof.faults.rolling_bounce import STATIC
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import UsageError
from onceproof.model.release import Release
from onceproof.scenarios import SCENARIOS
from onceproof.scenarios.base import PROTOCOL
from tests.cases import check_each

# One ends members itself, one has a single instance, and one has none that is struck but by a kill and on a way.
WITHOUT_FAULTS = {"endings", "leaks", "grouped-table"}
OF_GROUPS = sorted({name for name, scenario in SCENARIOS.items() if PROTOCOL in scenario.settable} - WITHOUT_FAULTS)


BY_BROKER, STATIC_BY_BROKER = {PROTOCOL: "streams"}, {STATIC: True, PROTOCOL: "streams"}
ASKED = [
    (
        BY_BROKER,
        "4.1.2",
        "4.3.1",
        ": Kafka Streams 4.1.2 lacks group.protocol=streams .KIP-1071, early access in 4.1.; ta",
    ),
    (BY_BROKER, "4.3.1", "3.9.1", ": a broker of Kafka 3.9.1 lacks group.protocol=streams"),
    (BY_BROKER, "4.3.1", "4.2.0", None),
    (BY_BROKER, "4.2.0-rc1", "4.2.0", None),
    (STATIC_BY_BROKER, "4.3.1", "4.4.0", ": Kafka Streams 4.3.1 lacks static membership with group.protocol=streams"),
    (
        STATIC_BY_BROKER,
        "4.4.0",
        "4.3.1",
        ": a broker of Kafka 4.3.1 lacks static membership with group.protocol=streams",
    ),
    (STATIC_BY_BROKER, "4.4.0", "4.4.0", None),
]


@check_each("scenario, parameters, streams, broker, why", [(name, *asked) for name in OF_GROUPS for asked in ASKED])
def test_the_streams_protocol_and_static_members_need_both_sides(scenario, parameters, streams, broker, why):
    cell = Cell(scenario, "DEFAULT_CONFIG", Release.parse(streams), Release.parse(broker))
    with nullcontext() if why is None else pytest.raises(UsageError, match=why):
        SCENARIOS[scenario].validate(Trial("", cell, 1, 1, parameters))


@check_each("scenario, fault", product(OF_GROUPS, ["none", "bounce"]))
def test_instances_are_configured_as_their_membership_says(scenario, fault):
    one = SCENARIOS[scenario]
    cell = Cell(scenario, "DEFAULT_CONFIG", Release.parse("4.3.1"), Release.parse("4.3.1"))
    by_broker = one.config(Trial("", cell, 1, 1, {PROTOCOL: "streams", "fault": fault}))
    assert by_broker[PROTOCOL] == "streams"
    assert "group.instance.id" not in by_broker
    static = one.config(Trial("", cell, 1, 1, {STATIC: True, "fault": fault}))
    assert static["group.instance.id"] == "{instance}"
    assert PROTOCOL not in static


def test_each_scenario_whose_group_a_fault_can_strike_has_them():
    assert {name for name, one in SCENARIOS.items() if bounce.FAULT in one.faults} == {*OF_GROUPS}
