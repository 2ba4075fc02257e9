"""The features and promises of the cells of a variant, by the scenario's configuration and promises."""

from collections.abc import Iterable, Mapping
from functools import cache

from onceproof.model.application import FEATURES, Value
from onceproof.model.cell import Cell, Trial
from onceproof.model.known_issues import LATER
from onceproof.model.matrices import BROKER
from onceproof.model.promise import TRANSACTION_ATOMICITY, promises_of
from onceproof.model.release import Release
from onceproof.scenarios import SCENARIOS, scenario

EXACTLY_ONCE = "exactly_once_v2"
# A cell with one of these is about what it does.
BINDING = ("caching", "standbys", "quotas", "global_tables", "grouped_tables", "optimization")


@cache
def features_of(name: str, variant: str) -> Mapping[str, tuple[Value, ...]]:
    """The features of the application of a variant: for each feature the values that apply."""
    return scenario(name).uses(_trial(name, variant))


@cache
def needs_of(name: str, variant: str) -> Mapping[str, tuple[Value, ...]]:
    """The features that an application must use for the cells of a variant to concern it."""
    features, system = features_of(name, variant), scenario(name).system(_trial(name, variant))
    needs = {
        "guarantee": features["guarantee"],
        **{feature: (True,) for feature in BINDING if True in features[feature]},
    }
    if features["joins"]:
        needs["joins"] = features["joins"]
    if "wipe" in system.promises:  # it is about what is on disk
        needs["stores"] = features["stores"]
    return needs


@cache
def promises_looked_at(name: str, variant: str) -> frozenset[str]:
    """The promises that cells of a variant check, on brokers of the lab."""
    system = scenario(name).system(_trial(name, variant))
    exactly_once = EXACTLY_ONCE in features_of(name, variant)["guarantee"]
    log = [promise.name for promise in promises_of(TRANSACTION_ATOMICITY)] if exactly_once else []
    return frozenset([*system.all_promises, *log]) - system.not_looked_at.keys()


@cache
def never_used() -> Mapping[str, tuple[Value, ...]]:
    """The features, and their values, that no variant of any scenario uses; False: without the feature."""
    variants = [(name, variant) for name, scenario_ in SCENARIOS.items() for variant in scenario_.variants]
    return find_unused({name: feature.values for name, feature in FEATURES.items()}, variants)


def find_unused(
    features: Mapping[str, Iterable[Value]], variants: Iterable[tuple[str, str]]
) -> dict[str, tuple[Value, ...]]:
    """The values of these features that none of the variants (scenario, variant) uses; False: without the feature."""
    used = [features_of(name, variant) for name, variant in variants]
    rest = {
        name: tuple(v for v in values if v is not False and not any(v in one[name] for one in used))
        for name, values in features.items()
    }
    return {name: values for name, values in rest.items() if values}


def _trial(name: str, variant: str) -> Trial:
    """A trial on a release that has all that any has."""
    return Trial("", Cell(name, variant, LATER, Release.parse(BROKER)), 1, 0)
