"""Tests that are repeated beside other work: what failed how often, and nothing goes on for ever."""

import sys

import psutil
import pytest
from rich.console import Console

from tests import java_coverage, repeat

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir")


def repeated(folder, code, **asked):
    test = folder / "test_it.py"
    test.write_text(code)
    options = {"times": 2, "load": 1, "minutes": 5.0, **asked}
    result = repeat.repeat([*PYTEST, str(folder), str(test)], folder / "told", **options)
    console = Console(record=True, width=200)
    console.print(repeat.table(result))
    return result, console.export_text()


def test_a_flaky_test_is_counted_and_others_are_not(tmp_path):
    flag = tmp_path / "flag"
    result, shown = repeated(
        tmp_path,
        f"""
from pathlib import Path

def test_good(): pass

def test_by_chance():
    there, flag = Path({str(flag)!r}).exists(), Path({str(flag)!r}).touch()
    assert there, "not yet"
""",
    )
    assert [[one.test for one in failed] for failed in result] == [["test_it::test_by_chance"], []]
    assert "not yet" in shown
    assert "1 of 2 repetitions without a failure" in shown
    assert "test_good" not in shown


@pytest.mark.parametrize(
    ("code", "minutes", "said"),
    [
        ("import os\nos._exit(7)", 5.0, "ended with exit code 7"),
        ("import time\ndef test_it(): time.sleep(600)", 0.05, "took longer than 0.05 minutes"),
    ],
)
def test_what_leaves_no_report_or_does_not_end_has_failed(tmp_path, code, minutes, said):
    result, shown = repeated(tmp_path, code, times=1, minutes=minutes)
    assert repeat.WHOLE in [one.test for one in result[0]]
    assert said in shown


def test_the_load_is_there_and_ends():
    with repeat.busy(2) as processes:
        assert all(psutil.Process(process.pid).is_running() for process in processes)
    assert all(process.returncode is not None for process in processes)
    assert not any(psutil.pid_exists(process.pid) for process in processes)


@pytest.mark.parametrize("wrong", [["--times", "0"], ["--times", "51"], ["--load", "65"], []])
def test_it_is_bounded(wrong):
    with pytest.raises(SystemExit):
        repeat.main([*wrong, *(["pytest"] if wrong else [])])


def test_java_classes_are_listed_least_covered_first_with_nested():
    rows = [
        {"PACKAGE": package, "CLASS": name, "LINE_MISSED": missed, "LINE_COVERED": reached}
        for package, name, missed, reached in [
            ("onceproof.streams", "Copy", "0", "10"),
            ("onceproof.streams", "Main", "1", "1"),
            ("onceproof.streams", "Main.Inner", "2", "4"),
            ("onceproof.streams", "Marker", "0", "0"),
            ("onceproof.agent", "Fired", "9", "1"),
            ("onceproof.agent.bytebuddy.pool", "TypePool", "100", "0"),
        ]
    ]
    found = java_coverage.covered(rows)
    assert [(one.name, one.reached, one.missed) for one in found] == [
        ("onceproof.agent.Fired", 1, 9),
        ("onceproof.streams.Main", 5, 3),
        ("onceproof.streams.Copy", 10, 0),
    ]
    console = Console(record=True, width=100)
    console.print(java_coverage.table(found))
    shown = console.export_text()
    assert "57%" in shown.splitlines()[-3]  # 16 of 28 lines
    assert "1 class is covered wholly" in shown
