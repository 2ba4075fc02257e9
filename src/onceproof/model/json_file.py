"""JSON files that are written as a whole or not at all, and frozen dataclasses for some of them."""

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

from onceproof.model.errors import HarnessError, UsageError

SHOWN = 60  # characters of a value that is not what it should be


def unwritable(error: OSError, path: Path | str | None = None) -> HarnessError:
    """The sentence for a disk that is full or read-only, or a home that is not a folder."""
    return HarnessError(
        f"{path or error.filename or 'The output'} could not be written ({error.strerror}): make room, or set "
        "ONCEPROOF_HOME to a writable folder."
    )


def check_target(target: Path | None) -> None:
    """Check what can be known of a file before there is something to write.

    Raises:
        UsageError: it is a folder.
    """
    if target is not None and target.is_dir():
        raise UsageError(f"{target} is a folder: name a file to write.")


@contextmanager
def replacing(path: Path, *, named: bool = False) -> Iterator[Path]:
    """A draft to write to, which replaces `path` as a whole or not at all: a file that exists is complete.

    A link stays one, and what it points to is replaced. What is no file, a pipe or a device, is written to as it is.

    Args:
        path: the file.
        named: whether somebody named it: then others may read it as far as the umask allows, else its owner alone. One
            that is there already keeps its mode.

    Raises:
        HarnessError: the disk is full or read-only.
    """
    draft = None
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        target.parent.mkdir(parents=True, exist_ok=True)
        made = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        made.touch(0o666 if named else 0o600, exist_ok=False)
        draft = made
        if target.exists():
            shutil.copymode(target, draft)
        yield draft
        draft.replace(target)
    except OSError as error:
        raise unwritable(error, path) from error
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)  # nothing is left of it if it took its name


def write_json(path: Path, data: Any, *, named: bool = False) -> None:
    """Write as a whole or not at all; `named` as of `replacing`.

    Raises:
        HarnessError: the disk is full or read-only.
    """
    with replacing(path, named=named) as draft, draft.open("w") as file:
        json.dump(data, file, indent=2)
        file.flush()
        if draft != path:  # a pipe has no disk
            os.fsync(file.fileno())


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        HarnessError: it is missing or not JSON.
    """
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise HarnessError(f"{path} could not be read ({error}): the run is incomplete or damaged.") from error


def read_as(kind: Any, path: Path) -> Any:
    """Read what is of this type from a JSON file.

    Raises:
        HarnessError: it is missing, no JSON, or not of this form; then the field is named.
    """
    data = read_json(path)
    try:
        return decoded(kind, data)
    except ValueError as error:
        raise HarnessError(f"{path} is incomplete or damaged, or of another version of Onceproof: {error}.") from error


class JsonFile:
    """Base of a frozen dataclass that is a JSON file: nobody else writes it, nobody else reads it.

    A field with a default may be missing in a file that is older than the field; all others must be there, and no
    further ones. The metadata `formerly` of a field is the name that it has in older files.
    """

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read it from a file.

        Raises:
            HarnessError: it is missing, no JSON, or not of this form; then the field is named.
        """
        read: Self = read_as(cls, path)
        return read

    @classmethod
    def known(cls, path: Path) -> Self | None:
        """Read it from a file; None if it is missing or damaged, which only the judge needs to care about."""
        try:
            return cls.read(path)
        except HarnessError:
            return None

    def write(self, path: Path) -> None:
        """Write it as a whole or not at all.

        Raises:
            HarnessError: the disk is full or read-only.
        """
        write_json(path, encoded(self))


def encoded(value: Any) -> Any:
    """The JSON form: of a dataclass what its `to_dict` says, if it has one, else an entry for each field."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: encoded(entry) for key, entry in value.items()}
    return [encoded(entry) for entry in value] if isinstance(value, list | tuple) else value


def decoded(kind: Any, value: Any, name: str = "all of it") -> Any:
    """The inverse of `encoded`, by type.

    Raises:
        ValueError: it is of another form; half a sentence says where.
    """
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        return _one_of([one for one in arguments if (one is NoneType) == (value is None)], value, name)
    if origin is Mapping and isinstance(value, dict):
        return {key: decoded(arguments[1], entry, f"{name}.{key}") for key, entry in value.items()}
    if origin is tuple and isinstance(value, list):
        kinds = arguments[:1] * len(value) if arguments[-1] is ... else arguments
        if len(kinds) == len(value):
            return tuple(decoded(kinds[n], entry, f"{name}.{n}") for n, entry in enumerate(value))
    elif hasattr(origin, "from_dict") or issubclass(origin, Enum):
        return _made(getattr(origin, "from_dict", origin), value, name)
    elif is_dataclass(origin) and isinstance(value, dict):
        return _object(origin, value, name)
    elif origin is Any or _is_plain(origin, value):
        return value
    raise ValueError(f"{name} is {_shown(value)}")


def _one_of(kinds: Sequence[Any], value: Any, name: str) -> Any:
    """The value of the first type that it fits."""
    for kind in kinds[:-1]:
        with suppress(ValueError):
            return decoded(kind, value, name)
    if not kinds:
        raise ValueError(f"{name} is {_shown(value)}")
    return decoded(kinds[-1], value, name)


def _made(make: Callable[[Any], Any], value: Any, name: str) -> Any:
    try:
        return make(value)
    except (AttributeError, KeyError, TypeError, ValueError, UsageError) as error:
        raise ValueError(f"{name} is {_shown(value)} ({type(error).__name__}: {error})") from error


def _object(kind: Any, data: Mapping[str, Any], name: str) -> Any:
    own = {field.name: field for field in fields(kind)}
    renamed = {field.metadata["formerly"]: field.name for field in own.values() if "formerly" in field.metadata}
    data = {renamed.get(entry, entry): value for entry, value in data.items()}
    if unknown := sorted(data.keys() - own.keys()):
        raise ValueError(f"{name} has {', '.join(unknown)}, which is not known")
    needed = [name for name, field in own.items() if field.default is MISSING and field.default_factory is MISSING]
    if missing := [name for name in needed if name not in data]:
        raise ValueError(f"{name} has no {', '.join(missing)}")
    kinds = _kinds(kind)
    return kind(**{entry: decoded(kinds[entry], value, entry) for entry, value in data.items()})


@cache
def _kinds(kind: Any) -> Mapping[str, Any]:
    """The types of a dataclass's fields."""
    return get_type_hints(kind)


def _is_plain(kind: type, value: Any) -> bool:
    """Whether a plain value is of a plain type; an integer is a float, too, but a boolean is not a number."""
    kinds = (int, float) if kind is float else kind
    return isinstance(value, kinds) and (kind is bool or not isinstance(value, bool))


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
