"""Mutants of a toy: what kills them, what does not, and what is none."""

import json
import subprocess
import sys
from textwrap import dedent

import pytest

from tests.mutants import ROOT, Score, table

TOY = """
from functools import cache

LIMIT = 3

@cache
def is_small(number: int | None) -> bool:
    return number is not None and number < LIMIT

def unseen(number):
    return number + 1

class Countdown:
    @property
    def steps(self) -> list[int]:
        left, found = 3, []
        while left:
            found.append(left)
            left = left - 1
        return found
"""
TESTS = """
import toy

def test_small():
    assert [toy.is_small(n) for n in (None, 2, 3)] == [False, True, False]

def test_steps():
    assert toy.Countdown().steps == [3, 2, 1]
"""
DRIVER = """
import json, sys
from pathlib import Path
from tests import mutants
root = Path(sys.argv[1])
mutants.ROOT, mutants.SOURCE, mutants.PATIENCE = root, root / "src" / "onceproof", 2.0
mutants.GROUPS = {"toy": mutants.Group(("toy.py",), ("test_toy.py",))}
sys.path.insert(0, str(mutants.SOURCE))
mutants.tried("toy", root, 2 if len(sys.argv) > 2 else None)
seen = [(mutants.Altered(m).line, r.is_killed, r.output) for m, r in mutants._completed(root, "toy")]
print(json.dumps(seen))
"""


@pytest.fixture
def toy(tmp_path):
    """What became of the mutants of the toy: by line, whether it was killed, and how."""
    for file, text in (("src/onceproof/toy.py", TOY), ("tests/test_toy.py", TESTS)):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(dedent(text))

    def tried(*more):
        command = [sys.executable, "-c", DRIVER, str(tmp_path), *more]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return {line: (is_killed, output) for line, is_killed, output in json.loads(done.stdout.splitlines()[-1])}

    return tried


def test_a_test_kills_a_mutant_of_what_it_reaches_and_no_other(toy):
    assert len(toy("some")) == 2  # and the next call goes on
    seen = toy()
    assert seen["return number is not None and number <= LIMIT"] == (True, "")
    assert seen["LIMIT = 4"] == (True, "")  # which is imported anew
    assert seen["return number - 1"] == (False, "")
    assert seen["left = left + 1"] == (True, "timeout")
    assert not any("&" in line for line in seen)  # annotations


def test_the_score_leaves_out_what_no_test_can_kill():
    scores = {"a.py": Score(10, killed=6, survived=1, timeouts=2, equivalent=1), "b.py": Score(1, survived=1)}
    assert scores["a.py"].share == pytest.approx(8 / 9)
    shown = table({"group": scores})
    assert [list(column.cells) for column in shown.columns][-1] == ["88.9 %", "0.0 %", "80.0 %"]
