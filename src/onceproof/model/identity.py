"""The id of an installation: runs of two of them never have one id, however alike their schedules are."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from onceproof.model.json_file import unwritable


def identity(file: Path) -> str:
    """The id of the installation that keeps it in this file, which is made when it is first asked for.

    Raises:
        HarnessError: the disk is full or read-only.
    """
    try:
        if not file.exists():
            _make(file)
        return file.read_text().strip()
    except OSError as error:
        raise unwritable(error, file) from error


def _make(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        draft.write_text(secrets.token_hex(8))
        with suppress(FileExistsError):  # another process was quicker: its id is the one
            os.link(draft, file)
    finally:
        draft.unlink(missing_ok=True)
