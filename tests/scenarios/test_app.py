"""Your own application as a scenario: what its topics are called, on brokers of ours and of somebody else."""

from dataclasses import replace
from pathlib import Path

import pytest

from onceproof.model.errors import UsageError
from onceproof.scenarios.app import SCENARIO
from tests.conftest import a_trial

ORDERS = str(Path(__file__).parents[2] / "examples" / "orders")
OURS = a_trial("4.3.1", scenario="app", application=ORDERS)
THEIRS = replace(OURS, cell=replace(OURS.cell, broker=OURS.cell.broker.claimed))


def test_a_fault_of_brokers_on_those_of_somebody_else_is_not_told_to_take_more_of_them():
    trial = replace(THEIRS, parameters={**THEIRS.parameters, "fault": "broker-kill"})
    with pytest.raises(UsageError, match=r"only brokers that Onceproof starts allow: leave out --brokers\."):
        SCENARIO.validate(trial)
    with pytest.raises(UsageError, match="needs 3 brokers, and not 1: add --nodes 3"):
        SCENARIO.validate(replace(trial, cell=OURS.cell))


@pytest.mark.parametrize(("trial", "prefix"), [(OURS, ""), (THEIRS, THEIRS.topic(""))], ids=["ours", "theirs"])
def test_on_brokers_of_somebody_else_all_names_begin_as_those_of_any_trial(trial, prefix):
    named = {role: planned.declared.name for role, planned in SCENARIO.system(trial).topics.items()}
    roles = ("orders", "payments", "accepted-orders", "paid-orders", "revenue")
    assert named == {role: prefix + role for role in roles}
    assert {message.topic for message in SCENARIO.workload(trial).messages} == {prefix + "orders", prefix + "payments"}
    assert SCENARIO.config(trial)["orders.topics.prefix"] == prefix
