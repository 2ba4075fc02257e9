"""The systems of the seeds, one module each, always the same parts in the same order."""

from onceproof.model.errors import UsageError
from onceproof.scenarios import enumerator
from onceproof.scenarios.base import Scenario

SCENARIOS: dict[str, Scenario] = {module.SCENARIO.name: module.SCENARIO for module in (enumerator,)}

# Scenario -> its variants: what a matrix may ask for.
CATALOGUE: dict[str, tuple[str, ...]] = {name: tuple(s.variants) for name, s in SCENARIOS.items()}


def scenario(name: str) -> Scenario:
    """The scenario of this name.

    Raises:
        UsageError: there is none.
    """
    try:
        return SCENARIOS[name]
    except KeyError:
        raise UsageError(f"There is no scenario {name!r}; there is {', '.join(SCENARIOS)}.") from None
