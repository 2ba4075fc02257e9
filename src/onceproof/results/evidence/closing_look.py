"""The closing look at an archive: words that look random may be secrets that no rule knows, so their places are named.

A random word changes between small letters, capitals and digits at about every second character; a name that people
made changes where its words end. Ids that Kafka and Onceproof write are known by their forms: UUIDs, also as Kafka
writes them in 22 characters, and commits.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

SHORTEST = 20  # characters of a word that is looked at; a shorter one is too often random without a reason
CHANGES = 0.48  # of the neighbours within a word; as many have 87 % of the random words of 24 characters, 95 % of 32
KEPT = 1_000  # words whose places are noted
_WORD = re.compile(rf"(?<![\w+/\-])[A-Za-z0-9+/_\-]{{{SHORTEST},}}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_KAFKA_UUID = re.compile(r"[\w\-]{21}[AQgw]")  # 16 bytes end with one of these
_HEX = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")
COMMIT = 40  # characters


def looks_random(word: str) -> bool:
    """Whether a word may be a secret."""
    if _KAFKA_UUID.fullmatch(word):
        return False
    if _HEX.fullmatch(word):
        return len(word) != COMMIT
    kinds = [_kind(character) for character in word]
    if not {"a", "A", "0"} <= set(kinds):
        return False
    neighbours = [(one, other) for one, other in pairwise(kinds) if one and other]
    return sum(one != other for one, other in neighbours) >= CHANGES * len(neighbours)


def _kind(character: str) -> str:
    if character.isdigit():
        return "0"
    return "" if not character.isalpha() else "a" if character.islower() else "A"


class ClosingLook:
    """Notes where such words stand, each at its first place, while the members of an archive are written."""

    def __init__(self) -> None:
        """Know no word."""
        self._places: dict[str, str] = {}

    def over(self, member: str, parts: Iterable[str]) -> Iterator[str]:
        """Hand on the parts of a member; each ends with a line, but for the last one."""
        line = 1
        for part in parts:
            for number, text in enumerate(part.split("\n"), line):
                for word in _WORD.findall(_UUID.sub("", text)) if len(text) >= SHORTEST else ():
                    if len(self._places) < KEPT and word not in self._places and looks_random(word):
                        self._places[word] = f"{member}:{number}"
            line += part.count("\n")
            yield part

    @property
    def places(self) -> list[str]:
        """File and line of each, as `FILE:LINE`, without the word itself."""
        return list(dict.fromkeys(self._places.values()))
