"""The one decoder of JSON and TOML: it makes what a dataclass or a model declares, or says in half a sentence why not.

What is checked is declared where the data is: in types, and in `pydantic`'s annotations of them. Nothing is converted
but what JSON cannot say: a list is a tuple, a text may be an enum, a path or a release. A field with a default may be
missing; all others must be there, and no further ones.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, time
from functools import cache, wraps
from typing import Annotated, Any, NoReturn, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, ConfigDict, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, core_schema

from onceproof.model.errors import HarnessError, UsageError, choice

SHOWN = 60  # characters of a value that is not what it should be
UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
MISSING = ("missing", "missing_argument", "missing_keyword_only_argument")
OURS = "value_error"  # raised by a check of ours, which says it all
# By type of error, where the library's words are those of Python.
EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a table with a value for each name",
    "mapping_type": "a table with a value for each name",
    "dataclass_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "arguments_type": "a table",
}

P = ParamSpec("P")
T = TypeVar("T")


def decode(kind: Any, data: object) -> Any:
    """The value of this type in data that JSON or TOML gave.

    Raises:
        ValueError: it is of another form; half a sentence, without a full stop, says where and why.
    """
    return from_json(kind, json.dumps(data, default=_no_json))


def from_json(kind: Any, text: str | bytes) -> Any:
    """The value of this type in a text of JSON; raises as `decode`, also if it is no JSON."""
    try:
        [made] = _decoder(kind).validate_json(b"[%b]" % (text.encode() if isinstance(text, str) else text))
    except ValidationError as error:
        raise ValueError(half_sentence(error, tuple[kind], below=1)) from error
    return made


@cache
def _decoder(kind: Any) -> TypeAdapter[Any]:
    """A decoder of a list of one: that way the configuration holds for dataclasses, which cannot have one."""
    return TypeAdapter(tuple[kind], config=ConfigDict(extra="forbid", strict=True))


def _no_json(value: object) -> NoReturn:
    """Refuse what TOML has and JSON has not.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{value} is a {'date or a time' if isinstance(value, date | time) else 'value'} without quotes")


def half_sentence(error: ValidationError, kind: Any, below: int = 0) -> str:
    """The first thing that is wrong: its place, the reason and the remedy; no full stop ends it.

    Args:
        error: the library's.
        kind: the type that was asked for.
        below: parts at the beginning of a place that stand in no file.
    """
    all_wrong = error.errors(include_url=False)
    wrong = min(all_wrong, key=lambda detail: detail["type"] not in UNKNOWN)  # a slip of the pen first
    parts = [part for part in wrong["loc"][below:] if not _is_of_union(part)]
    if wrong["type"] in UNKNOWN:
        *above, name = parts
        at = f"{_place(above)}: " if above else ""
        known = _fields(kind, wrong["loc"][:-1])
        return f"{at}there is no field {str(name)!r}; {choice(str(name), known)}".removesuffix(".")
    if wrong["type"] in MISSING:
        beside = [
            detail["loc"]
            for detail in all_wrong
            if detail["type"] in MISSING and detail["loc"][:-1] == wrong["loc"][:-1]
        ]
        missing = [_place(place[below:]) for place in beside]
        return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    return _of_value(wrong, _place(parts))


def _of_value(wrong: ErrorDetails, place: str) -> str:
    said = wrong["msg"].removeprefix("Value error, ").removesuffix(".")
    value = _show(wrong["input"])
    if wrong["type"] == OURS:
        is_whole = not place or isinstance(wrong["input"], Mapping)
        return said if not place else f"{place}: {said}" if is_whole else f"{place} = {value}: {said}"
    expected = EXPECTED.get(wrong["type"], said.removeprefix("Input should be "))
    if expected == said:  # another sentence of the library
        return f"{place or 'all of it'} = {value}: {said[:1].lower()}{said[1:]}"
    return f"{place or 'all of it'} must be {expected}, not {value}"


def _place(parts: Sequence[str | int]) -> str:
    """The way to a value; entries of a list are counted from 1."""
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in parts)


def _is_of_union(part: str | int) -> bool:
    """Whether a part of a place names a type among several, and nothing that was written."""
    return isinstance(part, str) and (part in ("str", "int", "float", "bool") or "[" in part)


def _fields(kind: Any, place: Sequence[str | int]) -> tuple[str, ...]:
    """The names of the fields of what is at a place of a type."""
    for part in place:
        kind = _part(kind, part)
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    own = getattr(kind, "model_fields", None)
    return (
        tuple(getattr(kind, "_fields", ()))
        if own is None
        else tuple(str(own[name].validation_alias or name) for name in own)
    )


def _part(kind: Any, part: str | int) -> Any:
    """The type of a part of a type."""
    arguments = get_args(kind)
    if get_origin(kind) is Annotated:
        return _part(arguments[0], part)
    if isinstance(part, str) and not arguments:
        return get_type_hints(kind, include_extras=True).get(part)
    return arguments[0] if isinstance(part, int) else arguments[-1]


def _show(value: object) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def as_check(check: Callable[P, T]) -> Callable[P, T]:
    """The same function as a check of a field: what it refuses as a usage error is a value error."""

    @wraps(check)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return check(*args, **kwargs)
        except UsageError as error:
            raise ValueError(str(error)) from error

    return call


class AsText:
    """Annotates a type whose JSON form is a text: how it is read and written."""

    def __init__(self, parse: Callable[[str], object], write: Callable[[Any], str] = str) -> None:
        """How; `parse` may raise a `UsageError`."""
        self._parse, self._write = as_check(parse), write

    def __get_pydantic_core_schema__(self, source: Any, _: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        of_text = core_schema.no_info_after_validator_function(self._parse, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=of_text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(source), of_text]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                self._write, return_schema=core_schema.str_schema()
            ),
        )


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"it is no regular expression ({error})") from error
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]  # a regular expression


def read_tables(text: str, file: str, **tables: Any) -> dict[str, tuple[Any, ...]]:
    """The rows of the tables of a TOML file of ours.

    Args:
        text: of the file.
        file: its name.
        tables: by name of the table the type of its rows, whose first field names a row.

    Raises:
        HarnessError: it is not TOML, has another table, or a row is of another form; names the row.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HarnessError(f"{file}: the file cannot be read: {error}.") from error
    if unknown := sorted(data.keys() - tables):
        raise HarnessError(f"{file}: there is no table {unknown[0]!r}; {choice(unknown[0], tables)}")
    return {
        name: tuple(_row(kind, row, f"{file}: {name}") for row in data.get(name, ())) for name, kind in tables.items()
    }


def _row(kind: Any, row: Mapping[str, Any], where: str) -> Any:
    named = row.get(_fields(kind, ())[0], "without a name")
    name = ", ".join(named) if isinstance(named, Mapping) else named
    try:
        return decode(kind, row)
    except ValueError as error:
        raise HarnessError(f"{where} {name} cannot be read: {error}.") from error
