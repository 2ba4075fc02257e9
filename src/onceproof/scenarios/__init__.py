"""The systems of the seeds and of further known issues, one module each, always the same parts in the same order."""

from onceproof.model.errors import UsageError
from onceproof.model.matrix import Offer
from onceproof.scenarios import at_least_once, crash, enumerator, global_join, multirunner, quota
from onceproof.scenarios.base import Scenario

_MODULES = (enumerator, multirunner, crash, quota, at_least_once, global_join)
SCENARIOS: dict[str, Scenario] = {module.SCENARIO.name: module.SCENARIO for module in _MODULES}

# What a matrix may ask for.
CATALOGUE: dict[str, Offer] = {name: Offer(tuple(s.variants), s.control, s.refuse) for name, s in SCENARIOS.items()}


def scenario(name: str) -> Scenario:
    """The scenario of this name.

    Raises:
        UsageError: there is none.
    """
    try:
        return SCENARIOS[name]
    except KeyError:
        raise UsageError(f"There is no scenario {name!r}; there is {', '.join(SCENARIOS)}.") from None
