"""The benchmark of the pipeline under fire: what it draws, and what it calls wrong."""

import os
import subprocess
import sys
from functools import partial

import psutil
import pytest

from benchmarks.chaos import (
    BLOWS,
    VICTIMS,
    Home,
    Struck,
    Tree,
    Undisturbed,
    differing,
    draw,
    has_no_owner,
    lost,
    strays,
    until_struck,
)
from onceproof.lab.processes import REAPER, await_condition
from onceproof.pipeline.supervisor import TREE

RIGHT = {"3.3.1": "known", "3.4.1": "fixed"}
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.mark.parametrize(
    ("told", "resumed", "wrong"),
    [
        (RIGHT, False, []),
        (RIGHT, True, []),
        ({"3.3.1": "known"}, False, []),
        ({"3.3.1": "known", "3.4.1": "error"}, False, []),
        ({"3.3.1": "inconclusive", "3.4.1": "inconclusive"}, True, []),
        ({"3.3.1": "fixed", "3.4.1": "fixed"}, False, ["3.3.1 is fixed, undisturbed known"]),
        ({"3.3.1": "known", "3.4.1": "regression"}, False, ["3.4.1 is regression, undisturbed fixed"]),
        ({"3.3.1": "known", "3.4.1": "error"}, True, ["3.4.1 is error although it was resumed"]),
        ({"3.3.1": "known"}, True, ["3.4.1 is missing although it was resumed"]),
        ({**RIGHT, "4.0.0": "clean"}, False, ["4.0.0 is clean, undisturbed None"]),
    ],
)
def test_a_verdict_that_says_something_must_be_the_undisturbed_one(told, resumed, wrong):
    assert list(differing(told, RIGHT, resumed=resumed)) == wrong


def test_what_was_stored_must_be_there_and_the_same():
    before = {"a": "known", "b": "fixed", "c": "clean"}
    assert list(lost(before, {"a": "known", "b": "clean", "d": "known"})) == [
        "b was fixed and is clean",
        "c was clean and is gone",
    ]


def test_from_a_seed_follow_victim_blow_and_the_rest():
    victim, blow, rng = draw(7, BLOWS)
    again = draw(7, BLOWS)
    assert (victim, blow) == again[:2]
    assert rng.random() == again[2].random() != draw(8, BLOWS)[2].random()
    assert {draw(seed, BLOWS)[:2] for seed in range(len(BLOWS))} == set(BLOWS)


def test_a_run_that_was_over_too_early_is_repeated_at_its_own_pace():
    lifetimes = []

    def run(home, victim, blow, rng, lifetime, undisturbed, late=2):
        lifetimes.append(lifetime)
        return Struck(victim, blow, None if len(lifetimes) <= late else 1.0, seconds=50.0)

    undisturbed = Undisturbed(RIGHT, {"spark": 80.0}, 100.0)
    struck = list(until_struck(None, 0, [("spark", "SIGKILL")], undisturbed, run))
    assert [(one.moment, one.wrong) for one in struck] == [(None, []), (None, []), (1.0, [])]
    assert lifetimes == [80.0, 40.0, 40.0]
    lifetimes.clear()
    *_, last = until_struck(None, 0, [("spark", "SIGKILL")], undisturbed, partial(run, late=9))
    assert (len(lifetimes), last.wrong) == (3, ["the moment never came"])


def test_a_row_names_what_is_wrong():
    struck = Struck("broker", "SIGKILL", 3.04, "exit 4", "yes", RIGHT, ["java"], ["left: java"], 61.2)
    assert struck.row(3, 12) == (
        "| 3 | 12 | broker | SIGKILL | 3.0 | exit 4; **left: java** | yes | 3.3.1 known, 3.4.1 fixed | 1 | 61 |"
    )
    assert "| too late | ran on | no | none | 0 | 0 |" in Struck("task", "SIGSTOP").row(1, 1)


def test_a_reaper_without_its_owner_is_an_orphan():
    words = [sys.executable, "-I", "-S", str(REAPER), "4711", "java"]
    assert has_no_owner(words, lambda pid: pid != 4711)
    assert not has_no_owner(words, lambda pid: pid == 4711)
    assert not has_no_owner(["java", "4711"], lambda _: False)


def test_what_runs_for_a_home_and_belongs_to_nobody_is_a_stray(tmp_path):
    home = Home(tmp_path, tmp_path, {})
    mine = {**os.environ, "ONCEPROOF_HOME": str(tmp_path)}
    stray, command, other = (subprocess.Popen(SLEEP, env=env) for env in (mine, mine, dict(os.environ)))
    try:
        found = list(strays(home, psutil.Process(command.pid)))
        assert [process.pid for process in found] == [stray.pid]
    finally:
        for process in (stray, command, other):
            process.kill()
            process.wait()


def test_keepers_and_their_component_are_told_apart(tmp_path):
    keeper = [sys.executable, "-I", "-S", str(TREE), str(os.getpid())]
    script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    command = subprocess.Popen([sys.executable, "-c", script, *keeper, "sleep", "60"])
    try:
        below = psutil.Process(command.pid)
        await_condition("all four", lambda: len(below.children(recursive=True)) == 3, timeout=10)
        await_condition("sleep", lambda: Tree.of(below).component("sleep")[0].name() == "sleep", timeout=10)
        tree = Tree.of(below)
        assert len(tree.keepers("sleep")) == 2
        assert VICTIMS["command"](tree) == [below]
        assert VICTIMS["broker"](tree) == []
    finally:
        for process in psutil.Process(command.pid).children():
            process.kill()
        command.kill()
        command.wait()
