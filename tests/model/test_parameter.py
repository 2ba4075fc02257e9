"""The parameters of scenarios and faults: declared once, by a class."""

from dataclasses import replace
from operator import attrgetter
from typing import Annotated, Literal

import pytest
from pydantic import Field

from onceproof.faults import FAULTS, Injection, pause
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import UsageError
from onceproof.model.parameter import BaseParameters, OneOf, Share, name_parameters
from onceproof.model.release import Release
from onceproof.scenarios import SCENARIOS, app
from onceproof.scenarios.base import Scenario, Variant
from tests.cases import check_each


class Base(BaseParameters):
    by_base: bool = Field(True, description="whether a base declares it")


class Whole(Base):
    records_per_step: int = Field(100, ge=1, examples=[7], description="records to be processed before the next step")
    rate: float = Field(20.0, ge=5, description="records a second")
    late: Share = Field(0.0, description="share of these that is too late")
    kind: Literal["tumbling", "hopping"] = Field("tumbling", description="kind of the windows")
    beside: Annotated[str, OneOf(("none", "pause"))] = Field("none", description="a second fault")


class OfFault(BaseParameters):
    model_config = name_parameters("broker-kill")
    orderly_end: bool = Field(False, description="whether it shuts down")


def test_names_have_dots_and_a_fault_prefix_with_own_ones_first() -> None:
    assert [*Whole.describe()] == ["records.per.step", "rate", "late", "kind", "beside", "by.base"]
    assert [*OfFault.describe()] == ["broker-kill.orderly.end"]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("records.per.step", "3", 3),
        ("rate", "5", 5.0),
        ("late", "1", 1.0),
        ("kind", "hopping", "hopping"),
        ("beside", "pause", "pause"),
        ("by.base", "False", False),
    ],
)
def test_a_text_means_a_value_of_the_declared_type(name: str, text: str, value: object) -> None:
    parsed = Whole.describe()[name].parse(text)
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("records.per.step", "many", "is 'many', but must be a whole number: records to be processed before the next"),
        ("records.per.step", "0", "is '0', but must be at least 1: records to be processed before the next step."),
        ("records.per.step", "1.5", "is '1.5', but must be a whole number"),
        ("rate", "4.9", "is '4.9', but must be at least 5: records a second."),
        ("rate", "inf", "is 'inf', but must be a finite number"),
        ("late", "1.5", "is '1.5', but must be from 0 to 1: share of these that is too late."),
        ("kind", "hoping", "is 'hoping', but must be one of tumbling, hopping: kind of the windows."),
        ("beside", "bounce", "is 'bounce', but must be one of none, pause: a second fault."),
        ("by.base", "yes", "is 'yes', but must be true or false: whether a base declares it."),
    ],
)
def test_a_text_without_a_value_is_refused_with_what_is_allowed(name: str, text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        Whole.describe()[name].parse(text)
    assert str(raised.value).startswith(f"{name} {sentence}")


def test_values_are_read_by_their_class_and_kept_for_others() -> None:
    values = Whole.of({"records.per.step": 3, "broker-kill.orderly.end": True})
    assert (values.records_per_step, values.rate) == (3, 20.0)
    assert OfFault.of(values).orderly_end
    assert not OfFault.of(Whole.of({})).orderly_end
    with pytest.raises(UsageError, match=r"^rate is 'fast', but must be a number: records a second\.$"):
        Whole.of({"rate": "fast"})


def test_a_search_tries_what_is_declared() -> None:
    tried = {name: parameter.domain for name, parameter in Whole.describe().items()}
    assert tried["records.per.step"] == (100, 7)
    assert tried["by.base"] == (True, False)
    assert tried["kind"] == ("tumbling", "hopping")


ALL = {**SCENARIOS, app.NAME: app.SCENARIO}


@check_each("one", ALL.values(), named=attrgetter("name"))
def test_a_scenario_and_its_faults_say_what_each_parameter_is(one: Scenario) -> None:
    for name, parameter in one.settable.items():
        assert parameter.name == name
        assert parameter.description not in ("", "None")
        parameter.check(parameter.default)
    assert set(one.settable) >= {name for fault in one.faults for name in fault.parameters.describe()}
    assert issubclass(one.parameters, Injection) == bool(one.faults)


def test_no_two_faults_have_a_parameter_of_the_same_name() -> None:
    names = [name for fault in FAULTS.values() for name in fault.parameters.describe()]
    assert len(names) == len(set(names))


@check_each("one", SCENARIOS.values(), named=attrgetter("name"))
def test_each_variant_sets_values_that_there_are(one: Scenario) -> None:
    for variant in one.variants.values():
        for name, value in variant.parameters.items():
            one.settable[name].check(value)


def test_a_variant_that_sets_no_parameter_is_refused() -> None:
    scan = SCENARIOS["scan"]
    wrong = {"DEFAULT_CONFIG": Variant("DEFAULT_CONFIG", "It is wrong.", {"cachin": False})}
    with pytest.raises(
        UsageError, match="DEFAULT_CONFIG of scan sets no parameter with 'cachin'; did you mean caching"
    ):
        replace(scan, variants=wrong)


def test_a_trial_with_impossible_values_is_refused_at_once() -> None:
    cell = Cell("enumerator", "DEFAULT_CONFIG", Release.parse("4.3.1"), Release.parse("3.9.1"))
    refuse = SCENARIOS["enumerator"].refuse_trial
    assert refuse(Trial("", cell, 1, 1, {"fault": "pause", "pause.seconds": 6.0})) is None
    reason = refuse(Trial("", cell, 1, 1, {"fault": "pause", "pause.seconds": 0.1}))
    assert (
        reason
        == "pause.seconds is 0.1, but must be at least 0.5: "
        + pause.Parameters.describe()["pause.seconds"].description
        + "."
    )
    assert "fault is 'held-rebalance', but must be one of none, pause, " in (
        refuse(Trial("", cell, 1, 1, {"fault": "held-rebalance"})) or ""
    )
