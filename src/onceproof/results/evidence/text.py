"""How values are written in the files of an archive."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from onceproof.model.plain import plain

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#~&$]|:(?=//))")
_START = re.compile(r"^(\d*)([-+=.)])(?=[-= ]|$)")  # of a list or of the line below a heading


def as_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def moment(milliseconds: float) -> str:
    """A time in UTC to the millisecond."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def escape(text: str) -> str:
    """A text in a sentence or a cell of a Markdown table, as it is."""
    return _START.sub(r"\1\\\2", " ".join(_MARKDOWN.sub(r"\\\1", plain(text)).split()))


def fence(lines: Iterable[str]) -> str:
    """Lines as they are, in a fence of Markdown that none of them ends."""
    text = "\n".join(lines)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return f"{fence}\n{text}\n{fence}"


def join(value: Any) -> str:
    """A value as one text: several with spaces between, nothing for None."""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)
