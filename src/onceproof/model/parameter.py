"""The parameters of a scenario or a fault: a class declares them, and all else that knows of them reads it there.

A field has a type with its bounds (a `Literal`, `Field(ge=1)`), a default and a description. In commands, variants and
results its name has dots for underscores; that of a fault begins with the fault's name (`name_parameters`). A search
tries what a `Literal` allows, both truth values, and the `examples` of numbers and texts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from inspect import get_annotations
from typing import Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, core_schema

from onceproof.model.decoding import EXPECTED
from onceproof.model.errors import UsageError

Value = int | float | str | bool
Share = Annotated[float, Field(ge=0, le=1)]  # from none to all
STRICT = ConfigDict(strict=True, allow_inf_nan=False)


@dataclass(frozen=True)
class OneOf:
    """Annotates a text that must be one of some that are known when the program runs, as a `Literal` does otherwise."""

    choices: tuple[str, ...]

    def __get_pydantic_core_schema__(self, _source: object, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.literal_schema([*self.choices])


def _make_dotted(name: str) -> str:
    return name.replace("_", ".")


def name_parameters(fault: str) -> ConfigDict:
    """The configuration of the class of a fault's parameters: their names begin with that of the fault."""
    return ConfigDict(alias_generator=lambda name: f"{fault}.{_make_dotted(name)}")


class BaseParameters(BaseModel):
    """Base of what a scenario or a fault can be run with; in a trial its fields have the values there.

    Values that another class declares are kept, so that `of` finds them.
    """

    # Deferred: every command imports these classes, and few of them run one.
    model_config = STRICT | ConfigDict(frozen=True, extra="allow", defer_build=True, alias_generator=_make_dotted)

    @classmethod
    def of(cls, values: "Mapping[str, Any] | BaseParameters") -> Self:
        """These parameters with the values of a trial; one that is not among them has its default.

        Raises:
            UsageError: a value is none that it can have.
        """
        by_name = values.by_name if isinstance(values, BaseParameters) else values
        try:
            return cls.model_validate(by_name)
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            raise UsageError(cls.describe()[str(wrong["loc"][0])].refusal(wrong)) from None

    @property
    def by_name(self) -> dict[str, Any]:
        """All values by the names that commands and results know."""
        return self.model_dump(by_alias=True)

    @classmethod
    def describe(cls) -> "Mapping[str, Parameter]":
        """By name what each of them may be: its own first, then those of its bases, in their order."""
        return _describe(cls)


@dataclass(frozen=True)
class Parameter:
    """A number, a text or a yes/no that a person or a search may choose.

    Attributes:
        name: as commands and results know it.
        default: its value where nothing is chosen.
        description: what it is, as the end of a sentence.
        kind: its type with its bounds.
        least: the least that a number may be, if there is one.
        most: the most that it may be, if there is one.
        choices: the texts that there are, if they are known.
        examples: numbers and texts that a search tries as well.
    """

    name: str
    default: Value
    description: str
    kind: Any
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    examples: tuple[Value, ...] = ()

    @classmethod
    def of(cls, field: FieldInfo) -> "Parameter":
        """The parameter that a field declares."""
        bounds = {
            name: getattr(annotation, name)
            for annotation in field.metadata
            for name in ("ge", "le")
            if hasattr(annotation, name)
        }
        known = next((annotation.choices for annotation in field.metadata if isinstance(annotation, OneOf)), None)
        return cls(
            str(field.alias),
            field.default,
            str(field.description),
            Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation,
            bounds.get("ge"),
            bounds.get("le"),
            known or (get_args(field.annotation) if get_origin(field.annotation) is Literal else ()),
            tuple(field.examples or ()),
        )

    def among(self, choices: tuple[str, ...]) -> "Parameter":
        """The same parameter where it must be one of these."""
        return Parameter(
            self.name, self.default, self.description, Annotated[str, OneOf(choices)], None, None, choices, ()
        )

    @property
    def domain(self) -> tuple[Value, ...]:
        """The values that a search tries, the default first."""
        values = (False, True) if isinstance(self.default, bool) else (*self.choices, *self.examples)
        return (self.default, *(value for value in values if value != self.default))

    def parse(self, text: str) -> Value:
        """The value that the text means.

        Raises:
            UsageError: it is of another type, out of bounds, or not one of the choices; says what it must be.
        """
        if isinstance(self.default, bool) and text.lower() not in ("true", "false"):  # and not the library's `yes`
            raise UsageError(self._refusal(text, EXPECTED["bool_type"]))
        try:
            value: Value = self._adapter.validate_strings(text)
        except ValidationError as error:
            raise UsageError(self.refusal(error.errors(include_url=False)[0])) from None
        return value

    def check(self, value: object) -> None:
        """Check that it may have the value.

        Raises:
            UsageError: as `parse`.
        """
        try:
            self._adapter.validate_python(value)
        except ValidationError as error:
            raise UsageError(self.refusal(error.errors(include_url=False)[0])) from None

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.kind, config=STRICT)

    def refusal(self, wrong: ErrorDetails) -> str:
        """The sentence about a value that the library refuses: the value, what it must be, and what it is for."""
        expected = {
            "greater_than_equal": self.bounds,
            "less_than_equal": self.bounds,
            "finite_number": "a finite number",
            "literal_error": f"one of {', '.join(self.choices)}",
            **EXPECTED,
        }
        return self._refusal(wrong["input"], expected.get(wrong["type"], wrong["msg"]))

    @property
    def bounds(self) -> str:
        """The bounds of a number, in words; empty if it has none."""
        if self.most is None:
            return "" if self.least is None else f"at least {self.least:g}"
        return f"at most {self.most:g}" if self.least is None else f"from {self.least:g} to {self.most:g}"

    def _refusal(self, value: object, expected: str) -> str:
        return f"{self.name} is {value!r}, but must be {expected}: {self.description}."


@cache
def _describe(kind: type[BaseParameters]) -> dict[str, Parameter]:
    fields = kind.model_fields
    names = dict.fromkeys(name for base in kind.__mro__ for name in get_annotations(base) if name in fields)
    parameters = [Parameter.of(fields[name]) for name in names]
    return {parameter.name: parameter for parameter in parameters}
