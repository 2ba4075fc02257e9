"""A trial with all that its scenario makes of it, each part made once, when it is first asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from onceproof.faults import Injection
from onceproof.faults.base import Fault
from onceproof.model.cell import Trial
from onceproof.scenarios import scenario
from onceproof.scenarios.base import Scenario, System, Workload


@dataclass(frozen=True)
class PreparedTrial:
    """A trial and its scenario."""

    trial: Trial

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario.

        Raises:
            UsageError: there is none of this name.
        """
        return scenario(self.trial.cell.scenario)

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """By name the values of its parameters."""
        return self.scenario.values(self.trial)

    @cached_property
    def fault(self) -> Fault | None:
        """The fault that is to be injected; None if the scenario has steps of its own."""
        return Injection.of(self.parameters).injected

    @cached_property
    def system(self) -> System:
        """The topology, its topics, and how they are judged."""
        return self.scenario.system(self.trial)

    @cached_property
    def workload(self) -> Workload:
        """The records, drawn from its seed."""
        return self.scenario.workload(self.trial)
