"""The parameters that a search may draw of a scenario: what it and its faults declare, and nothing else."""

from collections.abc import Collection, Sequence
from functools import partial

from onceproof.campaigns.search.schedules import DrawableParameters, Settings
from onceproof.campaigns.shrinking.reductions import NUMBERS
from onceproof.faults import FAULTS, NONE, rolling_bounce
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import UsageError
from onceproof.model.release import Release
from onceproof.scenarios import SCENARIOS, scenario
from onceproof.scenarios.base import JAVA, Scenario

FAULT, NODES = "fault", "nodes"
LEFT_OUT = {NODES, JAVA}  # what a fault needs, and what is no matter of Kafka
OWNERS = {name: fault.name for fault in FAULTS.values() for name in fault.parameters.describe()}  # whose a parameter is
SIZES = (*NUMBERS, "committed", "burst")


def quick() -> tuple[str, ...]:
    """The scenarios of a search that names none: those whose trials do not mostly wait, and are not about brokers."""
    return tuple(name for name, known in SCENARIOS.items() if not known.mostly_waits and known.control_broker is None)


def story(
    name: str, streams: Release, broker: Release, never: Collection[str] = (), settings: Sequence[str] = ()
) -> DrawableParameters:
    """The parameters that can be drawn of a scenario.

    Args:
        name: of the scenario.
        streams: release of Kafka Streams.
        broker: that of the brokers.
        never: faults that cannot be had here.
        settings: texts `name=value`, of parameters that are the same in each schedule.

    Raises:
        UsageError: there is no such scenario, or no such parameter of it, or it cannot be run on these releases at
            all; says why.
    """
    searched = scenario(name)
    fixed = searched.parse(settings)
    plain = next(iter(searched.variants.values()))
    if reason := refusal(searched, streams, broker, plain.name, tidy(fixed, plain.parameters)):
        raise UsageError(f"{name} cannot be searched on {streams}: {reason}")
    without = {rolling_bounce.NAME, *never}  # which takes a second release
    parameters = {name: parameter for name, parameter in searched.settable.items() if name not in LEFT_OUT}
    domains = {name: _domain(searched, name, without) for name in parameters}
    variants = {
        variant.name: variant.parameters
        for variant in searched.variants.values()
        if all(value in domains.get(name, ()) for name, value in variant.parameters.items())
        and all(fixed.get(name, value) == value for name, value in variant.parameters.items())
    }
    domains |= {name: domains[name][:1] for name in fixed.keys() & domains.keys()}
    sizes = {
        name: NUMBERS.get(name, int(parameters[name].least or 1))
        for name in SIZES
        if name in parameters and name not in fixed and isinstance(parameters[name].default, int)
    }
    return DrawableParameters(
        name, domains, variants, partial(tidy, fixed), partial(refusal, searched, streams, broker), sizes
    )


def _domain(searched: Scenario, name: str, without: Collection[str]) -> tuple[object, ...]:
    """The values of a parameter that are tried, the default first: those declared, and those of the variants."""
    of_variants = (variant.parameters[name] for variant in searched.variants.values() if name in variant.parameters)
    values = dict.fromkeys((*searched.settable[name].domain, *of_variants))
    return tuple(value for value in values if name != FAULT or value not in without)


def tidy(fixed: Settings, settings: Settings) -> Settings:
    """With what is fixed, as many brokers as the fault needs, and without parameters of other faults."""
    whole = {**settings, **fixed}
    fault_name = whole.get(FAULT, NONE)
    kept = {
        name: value for name, value in whole.items() if name != NODES and OWNERS.get(name, fault_name) == fault_name
    }
    nodes = max(FAULTS[fault_name].nodes if fault_name != NONE else 1, fixed.get(NODES, 1))
    return kept | ({NODES: nodes} if nodes > 1 else {})


def refusal(searched: Scenario, streams: Release, broker: Release, variant: str, settings: Settings) -> str | None:
    """Why a variant cannot be run with these values of parameters on these releases, if it cannot."""
    return searched.refuse_trial(Trial("", Cell(searched.name, variant, streams, broker), 1, 0, settings))
