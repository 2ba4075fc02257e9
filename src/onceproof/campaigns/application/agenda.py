"""The runs of an application that are under way, and what is left, as one line for people."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from onceproof.lab.context import Report

PHASES = {  # of a trial, as people are to read them
    "provision": "gets its topics",
    "preload": "gets its first records",
    "first": "processes the first records",
    "restart": "is closed and started again",
    "flow": "processes the others",
    "fault": "has its fault, and processes the others",
    "drain": "processes what is left",
    "routes": "says where its stores are",
    "leave": "closes",
    "failure": "is ended",
    "read": "is read",
}


class Agenda:
    """The runs on each release in their order; several may be under way at once, by threads of this process."""

    def __init__(self, runs: Mapping[str, Iterable[str]], report: Report) -> None:
        """Nothing is under way.

        Args:
            runs: by release, in words, the names of its runs; two may have the same.
            report: takes the line.
        """
        self._left = {release: list(names) for release, names in runs.items()}
        self._doing: dict[int, tuple[str, str, str]] = {}  # by number: release, name, phase
        self._report, self._lock, self._count = report, threading.Lock(), 0

    @contextmanager
    def doing(self, release: str, name: str) -> Iterator[Report]:
        """A run is under way in a `with` block; the report takes its phases."""
        with self._lock:
            self._count += 1
            number = self._count
            if name in (names := self._left.get(release, [])):
                names.remove(name)

        def phase(message: str) -> None:
            with self._lock:
                self._doing[number] = (release, name, PHASES.get(message, message))
                line = self._line()
            self._report(line)

        try:
            yield phase
        finally:
            with self._lock:
                self._doing.pop(number, None)

    def over(self, release: str) -> None:
        """Nothing more is run on a release, whatever was left."""
        with self._lock:
            self._left.pop(release, None)

    def _line(self) -> str:
        """A line: the run under way, then what is left of its release, then the other releases."""
        runs: dict[tuple[str, str], list[str]] = {}
        for release, name, phase in self._doing.values():
            runs.setdefault((release, name), []).append(phase)
        under_way = "; ".join(f"{release}, {name}: {_side_by_side(phases)}" for (release, name), phases in runs.items())
        here = {release for release, _ in runs}
        left = [name for release, names in self._left.items() if release in here for name in names]
        left += [release for release, names in self._left.items() if release not in here and names]
        return f"{under_way} (left: {', '.join(left)})" if left else under_way


def _side_by_side(phases: Sequence[str]) -> str:
    """The phase of a run, or those of several."""
    return phases[0] if len(phases) == 1 else ", ".join(f"one {phase}" for phase in phases)
