"""The net: which of its trials have passed with the sources as they are.

A trial of the net is a part of each change that could alter what it shows, and it drives real brokers, which takes
minutes. So a trial that passes is noted in `net.json`, which is committed, with a digest of the sources behind it. The
next change runs it if the digest is another one, or after some days; else the night does.

The digest is of what drives trials of the scenario (`onceproof.harness`), and of the trial. What reads them does not
count: each change is judged by the corpus of kept trials (`tests.kept_trials`). Nor do comments and docstrings, nor the
tests: who corrects one need not drive all trials again.

Each process that runs tests decides for itself which trials are due, and all must decide alike: so nothing that differs
between two processes is part of a digest (no order of a set), and the time is that of the process that schedules.
"""

import hashlib
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from onceproof.harness import PACKAGE, Sources
from onceproof.installation import PROJECT
from onceproof.model.json_file import read_json, write_json
from tests.track_record import MOST_DAYS

RECORD = Path(__file__).with_name("net.json")
BEGAN = "ONCEPROOF_TESTS_BEGAN"  # in the environment: when the process that schedules began, for those that it starts
NOTED = "net"  # a property of a test: its trial, and the digest of the sources when it began


def digest_of(scenario: str, trial: str, sources: Sources | None = None) -> str:
    """Twelve digits that change with what could alter how a trial of the net ends.

    Args:
        scenario: its scenario.
        trial: all that distinguishes it from others, with the release and the brokers.
        sources: those behind trials; ours by default.
    """
    sources = sources or Sources(PACKAGE, PROJECT)
    driving = (files := sources.of_scenario(scenario)) - sources.select_judging(files)
    return hashlib.sha256(f"{sources.digest(driving)}\0{trial}".encode()).hexdigest()[:12]


def is_due(name: str, digest: str, record: Path = RECORD, now: datetime | None = None) -> bool:
    """Whether a trial of the net is a part of this change.

    Args:
        name: of the trial.
        digest: of the sources behind it.
        record: the trials that passed.
        now: the time; by default when the tests began.
    """
    noted = _read(record).get(name)
    if noted is None or noted["digest"] != digest:
        return True
    return (now or _began()) - datetime.fromisoformat(noted["passed"]) > timedelta(days=MOST_DAYS)


def _began() -> datetime:
    """When the tests began: `NetRecord` is made before other processes are started, which inherit it."""
    return datetime.fromisoformat(os.environ.setdefault(BEGAN, datetime.now(UTC).isoformat()))


def _read(record: Path) -> dict[str, Mapping[str, str]]:
    """By trial the digest with which it passed, and when."""
    return dict(read_json(record)) if record.exists() else {}


class NetRecord:
    """A plugin of pytest that notes the trials of the net that have passed."""

    def __init__(self, record: Path = RECORD) -> None:
        self._record = record
        _began()
        self._passed: dict[str, Mapping[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """See what became of a test, whichever worker ran it."""
        noted = dict(report.user_properties).get(NOTED)
        if noted is not None and report.when == "call" and report.passed:
            name, digest = str(noted).split()
            self._passed[name] = {"digest": digest, "passed": datetime.now(UTC).isoformat(timespec="seconds")}

    def pytest_sessionfinish(self) -> None:
        """Write it down."""
        if self._passed:
            write_json(self._record, dict(sorted((_read(self._record) | self._passed).items())))
