"""Where a record is: the role that its topic plays, the partition, the offset."""

import re
from typing import NamedTuple

_PLACE = re.compile(r"(.+)/(\d+)@(\d+)")


class Place(NamedTuple):
    """A place in a topic; as text, in tables and witnesses, `role/partition@offset`."""

    role: str
    partition: int
    offset: int

    def __str__(self) -> str:
        """As `role/partition@offset`."""
        return f"{self.role}/{self.partition}@{self.offset}"

    @classmethod
    def parse(cls, text: str) -> "Place | None":
        """The place that the text means; None for one in words, which is not in a topic."""
        found = _PLACE.fullmatch(text)
        return cls(found[1], int(found[2]), int(found[3])) if found else None
