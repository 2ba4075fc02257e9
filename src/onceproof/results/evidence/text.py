"""How values are written in the files of an archive."""

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any


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


def joined(value: Any) -> str:
    """A value as one text: several with spaces between, nothing for None."""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)
