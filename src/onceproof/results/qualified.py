"""Which releases qualified, with which version of the harness: a file for each release and its brokers."""

import re
from collections.abc import Iterable
from pathlib import Path

from onceproof.harness import harness_version
from onceproof.model.cell import Cell
from onceproof.model.errors import ExitCode
from onceproof.model.qualification import Qualification
from onceproof.model.release import Release

_NOT_SHOWN = "It is not shown that this version of the harness sees on"
NOT_SHOWN = re.compile(rf"{_NOT_SHOWN} ([^:]+): `[^`]+` shows it\.")  # with the releases that it is about


def keep(found: Qualification, folder: Path) -> None:
    """Keep what was found about a release on its brokers, in the place of what an earlier one found.

    Raises:
        HarnessError: the disk is full or read-only.
    """
    found.write(_file(folder, found.streams, found.broker))


def read_kept(folder: Path, streams: Release, broker: Release) -> Qualification | None:
    """The last result about a release on its brokers; None if nothing was, or another version wrote it."""
    return Qualification.read_known(_file(folder, str(streams), str(broker)))


def explain_unqualified(folder: Path, cell: Cell) -> str:
    """Why this version of the harness may be blind in a cell, in a sentence; empty if its releases qualified.

    Brokers of which the release is only claimed are not asked about: nothing of theirs can be qualified here.
    """
    if cell.broker.is_claimed:
        return ""
    sentences = (
        _explain_unqualified(folder, streams, cell.broker) for streams in dict.fromkeys((cell.streams, cell.running))
    )
    return " ".join(filter(None, sentences))


def distinct(sentences: Iterable[str]) -> list[str]:
    """The sentences about all cells, each once; one for all releases about which nothing is shown."""
    found = sorted({sentence for sentence in sentences if sentence})
    where = list(dict.fromkeys(one for sentence in found for one in NOT_SHOWN.findall(sentence)))
    if len(where) < 2:
        return found
    others = [left for sentence in found if (left := NOT_SHOWN.sub("", sentence).strip())]
    listed = f"{', '.join(where[:-1])} and {where[-1]}"
    return [
        f"{_NOT_SHOWN} {listed}: `onceproof release qualify RELEASE --broker BROKERS` shows it.",
        *dict.fromkeys(others),
    ]


def _explain_unqualified(folder: Path, streams: Release, broker: Release) -> str:
    where, command = f"{streams} on brokers {broker}", f"`onceproof release qualify {streams} --broker {broker}`"
    found = read_kept(folder, streams, broker)
    if found is None or found.harness != harness_version():
        return f"{_NOT_SHOWN} {where}: {command} shows it."
    if found.exit_code is ExitCode.OK:
        return ""
    reasons = found.lessons or [f"{row.part} {row.name}: {row.reason}" for row in found.doubtful]
    more = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return f"{where} does not qualify: {reasons[0]}{more}; {command} looks again."


def _file(folder: Path, streams: str, broker: str) -> Path:
    return folder / f"{streams}-b{broker}.json"
