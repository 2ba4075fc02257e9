"""The errors a person sees: one sentence that names the value, the reason and the remedy."""

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of the `onceproof` command; the same numbers for every subcommand."""

    OK = 0  # no anomaly; a run: everything as the registry of known issues expects
    ANOMALY = 1  # a trial: an anomaly was seen; a run: a regression
    USAGE = 2  # the request cannot be carried out as asked; nothing was started
    INCONCLUSIVE = 3  # the evidence does not carry a verdict
    ERROR = 4  # the harness failed; says nothing about Kafka


class OnceproofError(Exception):
    """Base of all errors that end in one sentence; `exit_code` is what the command returns."""

    exit_code = ExitCode.ERROR


class UsageError(OnceproofError):
    """The request cannot be carried out as asked: a bad value or a missing prerequisite."""

    exit_code = ExitCode.USAGE


class HarnessError(OnceproofError):
    """The harness failed while it worked: a broker died, a wait timed out, artifacts are incomplete."""


class SchemaError(HarnessError):
    """The results database has another schema than this version: nothing is read or written."""

    exit_code = ExitCode.USAGE


class NotUnderstoodError(HarnessError):
    """Kafka prints or logs something that the harness does not know: it has to learn it before it can judge."""


class KafkaFailedError(OnceproofError):
    """Kafka failed, not the harness: an anomaly of the promise `liveness`. It ends a trial's drive, and is judged."""

    exit_code = ExitCode.ANOMALY

    def __init__(self, anomaly: str, place: str, expected: str, observed: str) -> None:
        """Name what was seen; the arguments are those of a `Comparison`."""
        super().__init__(f"{anomaly}: {place}: {observed}")
        self.anomaly, self.place, self.expected, self.observed = anomaly, place, expected, observed


class StoodStillError(OnceproofError):
    """The machine, or a process of the trial, got no CPU time: the trial is void."""

    exit_code = ExitCode.INCONCLUSIVE


def choice(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that there is not: the one that may be meant, and those that there are."""
    names = {known_name.casefold(): known_name for known_name in known}
    near = get_close_matches(name.casefold(), names, 1)
    there_are = ", ".join(names.values())
    return f"did you mean {names[near[0]]}? Choose from {there_are}." if near else f"choose from {there_are}."
