"""A parameter of a scenario or a fault."""

import math
from dataclasses import dataclass

from onceproof.model.errors import UsageError


@dataclass(frozen=True)
class Parameter:
    """A number, a text or a yes/no that a scenario or a fault can be run with. The type is the default's.

    A search tries the `choices`, both truth values, and of numbers and texts what is tried `also`, beside the default.
    """

    default: int | float | str | bool
    description: str
    least: float | None = None
    choices: tuple[str, ...] = ()
    also: tuple[int | float | str, ...] = ()

    @property
    def domain(self) -> tuple[int | float | str | bool, ...]:
        """The values that a search tries, the default first."""
        values = (False, True) if isinstance(self.default, bool) else (*self.choices, *self.also)
        return (self.default, *(value for value in values if value != self.default))

    def parse(self, name: str, text: str) -> int | float | str | bool:
        """The value that the text means.

        Raises:
            UsageError: it is not of the default's type, below the least, or not one of the choices.
        """
        kind = type(self.default)
        wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}[kind]
        try:
            value = {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)
        except (KeyError, ValueError):
            raise UsageError(f"{name} is {text!r}, but must be {wanted}: {self.description}") from None
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{name} is {text!r}, but must be a finite number: {self.description}")
        if self.least is not None and float(value) < self.least:
            raise UsageError(f"{name} is {text}, but must be at least {self.least:g}: {self.description}")
        if self.choices and value not in self.choices:
            raise UsageError(f"{name} is {text!r}, but must be one of {', '.join(self.choices)}: {self.description}")
        return value
