"""The systems of reproductions and further known issues, one module each, with the same parts."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from onceproof.faults import Injection, fault, rolling_bounce
from onceproof.model.entry_points import Registry
from onceproof.model.errors import UsageError, choice
from onceproof.model.matrix import Offer
from onceproof.scenarios import (
    app,
    as_of_join,
    at_least_once,
    corrupted_task,
    crash,
    dead_letters,
    endings,
    enumerator,
    far_future,
    foreign_key_join,
    global_join,
    grouped_stream,
    grouped_table,
    idle_task,
    interactive_queries,
    leaks,
    migration,
    multirunner,
    punctuators,
    quota,
    scan,
    split_batch,
    stream_join,
    table_join,
    two_topics,
    windows,
)
from onceproof.scenarios.base import Scenario, rolls

_MODULES = (
    enumerator,
    multirunner,
    crash,
    quota,
    at_least_once,
    global_join,
    scan,
    foreign_key_join,
    stream_join,
    idle_task,
    split_batch,
    corrupted_task,
    grouped_stream,
    grouped_table,
    far_future,
    table_join,
    windows,
    as_of_join,
    punctuators,
    dead_letters,
    two_topics,
    interactive_queries,
    leaks,
    migration,
    endings,
)
# Ours, and those of packages that name a module as an entry point of this group (docs/adding-a-scenario.md).
SCENARIOS = Registry("onceproof.scenarios", "SCENARIO", Scenario, _MODULES)


# What a matrix may ask for.
class Catalogue(Mapping[str, Offer]):
    """By name what each scenario offers."""

    def __getitem__(self, name: str) -> Offer:
        return self._offers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._offers)

    def __len__(self) -> int:
        return len(self._offers)

    @cached_property
    def _offers(self) -> dict[str, Offer]:
        return {
            name: Offer(
                tuple(scenario_.variants),
                scenario_.positive_control,
                scenario_.refuse,
                tuple(
                    variant.name for variant in scenario_.variants.values() if rolls(Injection.of(variant.parameters))
                ),
                scenario_.control_broker,
            )
            for name, scenario_ in SCENARIOS.items()
        }


CATALOGUE = Catalogue()


def module_of(name: str) -> str:
    """The module of a scenario.

    Raises:
        UsageError: there is no scenario of this name.
    """
    scenario(name)
    return app.__name__ if name == app.NAME else SCENARIOS.modules[name]


def scenario(name: str) -> Scenario:
    """The scenario of this name.

    Raises:
        UsageError: there is none.
    """
    if name == app.NAME:  # your own application, so that no matrix has it
        return app.SCENARIO
    try:
        return SCENARIOS[name]
    except KeyError:
        raise UsageError(f"There is no scenario {name!r}; {choice(name, SCENARIOS)}") from None


def parse_settings(name: str, settings: Iterable[str]) -> dict[str, Any]:
    """The parameters of a scenario that texts `name=value` set.

    Raises:
        UsageError: a text has another form, or names no parameter, or no value that it can have; says which scenarios
            have a parameter that this one lacks.
    """
    found, texts = scenario(name), tuple(settings)
    for text in texts:
        parameter = text.partition("=")[0]
        having = [other.name for other in SCENARIOS.values() if parameter in other.settable]
        if having and parameter not in found.settable:
            has = f"only {having[0]} has" if len(having) == 1 else f"{', '.join(having)} have"
            raise UsageError(f"{text!r} sets no parameter of {name}: {has} the parameter {parameter}.")
    return found.parse(texts)


def check_fault(name: str, fault_name: str) -> None:
    """Check that a scenario allows a fault.

    Raises:
        UsageError: there is no such scenario or fault, or it is not allowed; says why, and where it is.
    """
    needs = fault(fault_name).needs
    if not _allows(scenario(name), fault_name):
        others = [other.name for other in SCENARIOS.values() if _allows(other, fault_name)]
        raise UsageError(f"The fault {fault_name} cannot be injected into {name}: {needs}. Take {' or '.join(others)}.")


def rolling_variant(name: str, asked: str) -> str:
    """The variant of a scenario in which the application moves to another release by rolling.

    Args:
        name: of the scenario.
        asked: the variant that is asked for; `DEFAULT_CONFIG` asks for none.

    Raises:
        UsageError: the scenario has none, or the one that is asked for does not do that; says which do.
    """
    check_fault(name, rolling_bounce.NAME)
    rolling = CATALOGUE[name].rolling
    if asked in rolling:
        return asked
    if asked != "DEFAULT_CONFIG":
        raise UsageError(
            f"{asked} of {name} goes over to no other release while it works; {' or '.join(rolling)} does: name it, "
            "and set with --set what is to be otherwise."
        )
    return rolling[0]


def _allows(scenario_: Scenario, fault_name: str) -> bool:
    return any(fault.name == fault_name for fault in scenario_.faults)
