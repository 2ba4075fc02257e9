"""Words for releases (`newest`, `previous`, a line such as `4.3`), and what they mean given what is published."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from onceproof.model.errors import UsageError
from onceproof.model.release import Release

NEWEST, PREVIOUS = "newest", "previous"
LINE = r"[0-9]{1,3}\.[0-9]{1,3}"
WORD = rf"(?:{NEWEST}|{PREVIOUS}|{LINE})"


def is_word(text: str) -> bool:
    """Whether a text stands for a release without naming it."""
    return re.fullmatch(WORD, text, re.ASCII) is not None


@dataclass(frozen=True)
class Published:
    """The final releases that are published, in order, and how that is known, as the end of a sentence."""

    releases: tuple[Release, ...]
    source: str

    @classmethod
    def of(cls, releases: Iterable[Release], source: str) -> "Published":
        """Those of the releases that are final: candidates and builds are left out."""
        return cls(tuple(sorted({release for release in releases if not release.is_candidate})), source)

    @property
    def newest_of_lines(self) -> tuple[Release, ...]:
        """The newest patch of each line, in order."""
        return tuple({release.line: release for release in self.releases}.values())  # in order: the last stays

    def resolve(self, word: str) -> Release:
        """The release that a word stands for.

        `newest` is the newest release, `previous` the newest patch of the line before that of the newest, and a line
        is its newest patch. Anything else is read as an exact release.

        Raises:
            UsageError: nothing is published, there is no such line, or the text is neither a word nor a release.
        """
        if not is_word(word):
            return Release.of_brokers(word)
        newest_of = {(release.major, release.minor): release for release in self.newest_of_lines}
        if not newest_of:
            raise UsageError(f"{word} means nothing here: no published release of Kafka is known, {self.source}.")
        lines = sorted(newest_of)
        if word == PREVIOUS and len(lines) == 1:
            raise UsageError(
                f"previous means nothing here: {newest_of[lines[0]].line} is the only line, {self.source}."
            )
        if word in (NEWEST, PREVIOUS):
            return newest_of[lines[-1 if word == NEWEST else -2]]
        major, minor = map(int, word.split("."))
        if (major, minor) not in newest_of:
            there_are = ", ".join(newest_of[line].line for line in lines)
            raise UsageError(f"No release of the line {word} is published, {self.source}; choose from {there_are}.")
        return newest_of[major, minor]

    def meaning(self, word: str) -> str:
        """The meaning of a word, and how that is known; raises as `resolve` does."""
        return f"{word} is {self.resolve(word)}, {self.source}"

    def to_dict(self) -> dict[str, object]:
        """JSON form: releases, source."""
        return {"releases": [str(release) for release in self.releases], "source": self.source}
