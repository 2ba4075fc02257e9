"""The words that shells complete in arguments and options."""

from collections.abc import Iterator

from onceproof.faults import FAULTS
from onceproof.model.known_issues import registry
from onceproof.model.plants import plants
from onceproof.scenarios import SCENARIOS


def complete_scenario(incomplete: str) -> Iterator[tuple[str, str]]:
    """The scenarios that begin so, each with its title."""
    return ((name, scenario_.title) for name, scenario_ in SCENARIOS.items() if name.startswith(incomplete))


def complete_fault(incomplete: str) -> Iterator[tuple[str, str]]:
    """The faults that begin so, each with its effect."""
    return ((name, fault.effect) for name, fault in FAULTS.items() if name.startswith(incomplete))


def complete_plant(incomplete: str) -> Iterator[tuple[str, str]]:
    """The bugs that can be planted and begin so, each with its effect."""
    return ((name, plant_.effect) for name, plant_ in plants().items() if name.startswith(incomplete))


def complete_issue(incomplete: str) -> Iterator[tuple[str, str]]:
    """The known issues whose keys begin so, each with its title."""
    return ((issue.key, issue.title) for issue in registry().issues if issue.key.startswith(incomplete))
