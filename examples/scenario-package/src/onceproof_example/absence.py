"""An instance is closed cleanly and stays away for a while, as for the maintenance of its machine.

As in `bounce` it leaves the group, and the others take its tasks over. Here they work without it for some seconds, so
that it comes back to stores that are far behind, or that somebody else has by then.
"""

from dataclasses import replace
from math import inf

from pydantic import Field

from onceproof.faults import bounce
from onceproof.faults.base import FaultContext
from onceproof.faults.outside import see_outside
from onceproof.model.parameter import BaseParameters, name_parameters

NAME = "absence"


class Parameters(BaseParameters):
    """For how long an instance stays away."""

    model_config = name_parameters(NAME)
    seconds: float = Field(10.0, ge=1, description=f"seconds for which `{NAME}` keeps an instance away, at least")


class Absence(bounce.Bounce):
    """An instance that holds active tasks leaves cleanly, stays away and comes back."""

    def __init__(self, lab: FaultContext) -> None:
        """Nothing is done yet."""
        super().__init__(lab)
        self._seconds = Parameters.of(lab.parameters).seconds
        self.patience += self._seconds
        self._since = inf

    def apply(self) -> str:
        """Close an instance that holds active tasks; it leaves its group."""
        name = super().apply()
        self._since = self.lab.now()
        return name

    def has_taken_effect(self) -> bool:
        """Whether it was away for long enough, and others go on with all of its tasks, if there are others."""
        return self.lab.now() - self._since >= self._seconds and super().has_taken_effect()


FAULT = replace(
    bounce.FAULT,
    name=NAME,
    effect="An instance is closed cleanly, leaves the group and stays away.",
    new_run=see_outside(Absence, orderly=True),
    parameters=Parameters,
    lasts=24.0,
)
