"""JSON files that are written as a whole or not at all, and frozen dataclasses for some of them."""

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Self

from onceproof.model.decoding import from_json
from onceproof.model.errors import HarnessError, UsageError


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
        named: whether a user named it: then others may read it as far as the umask allows, else its owner alone. One
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
    try:
        return from_json(kind, path.read_bytes())
    except OSError as error:
        raise HarnessError(f"{path} could not be read ({error}): the run is incomplete or damaged.") from error
    except ValueError as error:
        raise HarnessError(f"{path} is incomplete or damaged, or of another version of Onceproof: {error}.") from error


class JsonFile:
    """Base of a frozen dataclass that is a JSON file: no other program writes or reads it.

    It is read by `onceproof.model.decoding`: a file that is older than a field with a default may lack it.
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
    def read_known(cls, path: Path) -> Self | None:
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
        write_json(path, encode(self))


def encode(value: Any) -> Any:
    """The JSON form: of a dataclass what its `to_dict` says, if it has one, else an entry for each field."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {encode(key): encode(entry) for key, entry in value.items()}
    if isinstance(value, str) and not value.isascii():
        return value.encode(errors="replace").decode()  # half of a character, as Java may have it, no JSON can hold
    return [encode(entry) for entry in value] if isinstance(value, list | tuple) else value
