"""A skip is a failure, unless `allowed_skips.toml` allows that test to be skipped, with a reason.

python -m tests.skips RELEASE    reads what Maven's Surefire reports of the application's tests on that Kafka
                                 release; exit code 1 if one was skipped that may not be
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar
from xml.etree import ElementTree

import pytest

from tests.tools import SKIP

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
LIST = Path(__file__).with_name("allowed_skips.toml")
REPORTS = Path(__file__).parents[1] / "streams_app" / "target" / "surefire-reports"


@dataclass(frozen=True)
class AllowedSkip:
    """Tests that may be skipped, and why."""

    tests: Sequence[str]  # as pytest names them, without parameters; of tests in Java class and method
    says: str  # a regular expression: what a test says when it is skipped; of one in Java the release
    reason: str


@cache
def allowed(kind: str = "python", file: Path = LIST) -> tuple[AllowedSkip, ...]:
    """Those of a language, `python` or `java`."""
    return tuple(AllowedSkip(**one) for one in tomllib.loads(file.read_text())[kind])


def refusal(test: str, said: str, among: Sequence[AllowedSkip] | None = None) -> str | None:
    """A sentence if this test may not be skipped; None if it may.

    Args:
        test: its name, with or without parameters.
        said: the reason that it gives; of a test in Java the release that it ran on.
        among: what is allowed; the list's part for Python if it is not given.
    """
    name = test.partition("[")[0]
    if any(name in one.tests and re.fullmatch(one.says, said) for one in (allowed() if among is None else among)):
        return None
    return f"{name} was skipped ({said}), and {LIST.name} does not allow that: have it run, or add it with a reason."


def refused_if_skipped(report: Report) -> Report:
    """The same report, failed if it says that something was skipped that may not be.

    Args:
        report: of pytest, on a test or on what was collected.
    """
    if report.skipped and not hasattr(report, "wasxfail"):
        assert isinstance(report.longrepr, tuple), report.longrepr
        said = report.longrepr[2].removeprefix("Skipped: ")
        if not said.startswith(f"{SKIP} leaves out ") and (sentence := refusal(report.nodeid, said)):
            report.outcome, report.longrepr = "failed", sentence
    return report


def skipped(reports: Path) -> Iterator[str]:
    """Each class and method that Surefire reports as skipped, once.

    Raises:
        FileNotFoundError: there is no report.
    """
    files = sorted(reports.glob("TEST-*.xml"))
    if not files:
        raise FileNotFoundError(f"There is no report of a test in {reports}: run `make test-java`.")
    cases = (case for file in files for case in ElementTree.parse(file).iter("testcase"))  # noqa: S314 - Surefire's
    names = (f"{case.get('classname')}.{case.get('name')}" for case in cases if case.find("skipped") is not None)
    yield from sorted({re.split(r"[({\[]", name)[0] for name in names})


def main() -> int:
    """Print what was skipped on a release and may not be."""
    release = sys.argv[1]
    said = [sentence for test in skipped(REPORTS) if (sentence := refusal(test, release, allowed("java")))]
    print(*said, sep="\n", end="\n" if said else "", file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
