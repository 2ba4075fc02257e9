"""The record of the nights of a checkout: a line of `nights.jsonl` for each step of `make test-night` that ended."""

import json
from dataclasses import dataclass
from pathlib import Path

from onceproof.model.decoding import from_json
from onceproof.model.errors import HarnessError
from onceproof.model.json_file import encode, unwritable


@dataclass(frozen=True)
class NightStep:
    """A step that ended: of which version of the code, when, and how."""

    version: str
    step: str
    proves: str
    ended: str  # ISO 8601
    code: int
    seconds: int

    @property
    def became(self) -> str:
        """The result, for people."""
        return "passed" if self.code == 0 else f"failed (exit code {self.code})"


def note_step(file: Path, step: NightStep) -> None:
    """Add a step to the record.

    Raises:
        HarnessError: the disk is full or read-only.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as lines:
            lines.write(json.dumps(encode(step)) + "\n")
    except OSError as error:
        raise unwritable(error, file) from error


def read_nights(file: Path) -> list[NightStep]:
    """The steps of a record, the last first; none if there is no record.

    Raises:
        HarnessError: a line is damaged.
    """
    if not file.exists():
        return []
    try:
        return [from_json(NightStep, line) for line in reversed(file.read_text().splitlines())]
    except ValueError as error:
        raise HarnessError(f"{file} is damaged: {error}. Move it away; the next night begins another one.") from error
