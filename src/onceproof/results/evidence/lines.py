"""Files of any size, as lines and blocks of a bounded size."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from onceproof.model.timeline import time_of_line

LONGEST = 1024 * 1024  # bytes of a line that are read
LARGEST = 50 * 1024 * 1024  # characters of a file that are shown
BLOCK = 64 * 1024  # characters that are redacted at once
MARGIN = 4 * 1024  # characters at the cut of a line, where half of a secret may stand that is not recognised


class Line(NamedTuple):
    """A line, or several; behind what is cut off stands a note in its place."""

    text: str
    note: str = ""


def lines_of(file: Path) -> Iterator[Line]:
    """The lines of a file; what is no UTF-8 is replaced, and one that is too long is cut."""
    with file.open("rb") as source:
        while start := source.readline(LONGEST):
            left_out, piece = 0, start
            while len(piece) == LONGEST and not piece.endswith(b"\n"):
                piece = source.readline(LONGEST)
                left_out += len(piece)
            note = f" [{left_out + MARGIN:,} bytes of this line are left out]\n" if left_out else ""
            yield Line(start.decode(errors="replace"), note)


def shorten(lines: Callable[[], Iterable[Line]], largest: int = LARGEST) -> Iterator[Line]:
    """All lines, or the first and the last of those that are too many, with a sentence between them.

    After the sentence comes a line that begins with a time: it continues no secret whose key is left out.
    """
    total = sum(len(line.text) for line in lines())
    if total <= largest:
        yield from lines()
        return
    at = left_out = 0
    is_end = False
    for line in lines():
        if not is_end and at >= total - largest // 2 and time_of_line(line.text) is not None:
            is_end = True
            yield _gap(left_out, total)
        at += len(line.text)
        if is_end or at <= largest // 2:
            yield line
        else:
            left_out += len(line.text)
    if not is_end:
        yield _gap(left_out, total)


def _gap(left_out: int, total: int) -> Line:
    return Line("", f"\n[{left_out:,} of {total:,} characters are left out here: the file is too large]\n\n")


def blocks_of(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines, many at once; a value that continues in the next line and a PEM block are not divided."""
    block: list[str] = []
    size, in_pem = 0, False
    for line in lines:
        if line.note:
            if block:
                yield Line("".join(block))
            yield line
            block, size, in_pem = [], 0, False
            continue
        block.append(line.text)
        size += len(line.text)
        begin, end = line.text.rfind("-----BEGIN "), line.text.rfind("-----END ")
        in_pem = begin > end or (in_pem and end < 0)
        is_open = in_pem or line.text.endswith(("\\\n", "\\\r\n"))
        if size >= LONGEST or (size >= BLOCK and not is_open):
            yield Line("".join(block))
            block, size = [], 0
    if block:
        yield Line("".join(block))
