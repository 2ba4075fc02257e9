"""The benchmark of the pipeline under fire: what it draws, and what it calls wrong."""

import json
import os
import random
import subprocess
import sys
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import psutil
import pytest

from benchmarks.chaos import (
    BLOWS,
    VICTIMS,
    Fire,
    Results,
    Struck,
    Undisturbed,
    differing,
    draw,
    find_lost,
    has_no_owner,
    strays,
    until_struck,
)
from onceproof.processes.process import REAPER, below_reaper
from onceproof.processes.waiting import await_condition
from tests.homes import Home, Tree

RIGHT = {"3.3.1": "known", "3.4.1": "fixed"}
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.mark.parametrize(
    ("expected", "resumed", "wrong"),
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
def test_a_conclusive_verdict_must_be_the_undisturbed_one(expected, resumed, wrong):
    assert list(differing(expected, RIGHT, resumed=resumed)) == wrong


def test_what_was_stored_must_be_there_and_the_same():
    before = {"a": "known", "b": "fixed", "c": "clean"}
    assert list(find_lost(before, {"a": "known", "b": "clean", "d": "known"})) == [
        "b was fixed and is clean",
        "c was clean and is gone",
    ]


def test_from_a_seed_follow_victim_blow_and_the_rest():
    victim, blow, rng = draw(7, BLOWS)
    again = draw(7, BLOWS)
    assert (victim, blow) == again[:2]
    assert rng.random() == again[2].random() != draw(8, BLOWS)[2].random()
    assert {draw(seed, BLOWS)[:2] for seed in range(len(BLOWS))} == set(BLOWS)


def test_a_run_that_ended_too_early_is_repeated_at_its_own_pace(tmp_path):
    home = Home(tmp_path, tmp_path, {})
    lifetimes = []

    def run(home, victim, blow, rng, lifetime, undisturbed, late=2):
        lifetimes.append(lifetime)
        return Struck(victim, blow, None if len(lifetimes) <= late else 1.0, seconds=50.0)

    undisturbed = Undisturbed(RIGHT, {"spark": 80.0}, 100.0)
    struck = list(until_struck(home, 0, [("spark", "SIGKILL")], undisturbed, run))
    assert [(one.moment, one.wrong) for one in struck] == [(None, []), (None, []), (1.0, [])]
    assert lifetimes == [80.0, 40.0, 40.0]
    lifetimes.clear()
    *_, last = until_struck(home, 0, [("spark", "SIGKILL")], undisturbed, partial(run, late=9))
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


def test_an_adopted_process_without_an_owner_is_a_stray(tmp_path):
    """A component that starts a process which starts another one and ends; one of two runs below a reaper."""
    orphans = f"sleep 60 & {sys.executable} {REAPER} {os.getpid()} sleep 60 & sleep 0"
    component = [
        sys.executable,
        "-c",
        f"import subprocess, time; subprocess.run(['sh', '-c', '{orphans}']); time.sleep(60)",
    ]
    reaper = below_reaper(component, os.getpid(), twice=True)
    starts = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    environment = {**os.environ, "ONCEPROOF_HOME": str(tmp_path)}
    command, home = (
        subprocess.Popen([sys.executable, "-c", starts, *reaper], env=environment),
        Home(tmp_path, tmp_path, {}),
    )
    below = psutil.Process(command.pid)

    def asleep() -> int:
        return sum(words == ["sleep", "60"] for words in Tree.of(below).below.values())

    try:
        await_condition("both to sleep", lambda: asleep() == 2, timeout=30)
        await_condition("a stray", lambda: list(strays(home, below)), timeout=30)
        assert [one.cmdline() for one in strays(home, below)] == [["sleep", "60"]]
    finally:
        for process in home.processes():
            with suppress(psutil.NoSuchProcess):  # its reaper was quicker
                process.kill()
        command.wait()


def test_a_stray_is_an_orphan_after_ten_seconds(tmp_path, monkeypatch):
    now, found = 0.0, {"old", "gone"}
    monkeypatch.setattr("benchmarks.chaos.time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr("benchmarks.chaos.strays", lambda *_: iter(found))
    monkeypatch.setattr("benchmarks.chaos.described", str.upper)
    monkeypatch.setattr("benchmarks.chaos._of", lambda _: None)
    fire = Fire(Home(tmp_path, tmp_path, {}), Struck("task", "SIGKILL"), random.Random(1), 0.0)
    fire._at = 0.0  # it has struck
    with subprocess.Popen([sys.executable, "-c", ""], text=True) as process:
        for now in (2.0, 6.0, 11.0, 12.5):
            fire.look(process)
            assert fire.orphans == ({"old": "OLD"} if now > 12 else {})
            found = {"old", "new"}


def test_what_was_told_must_be_stored(tmp_path):
    home = Home(tmp_path, tmp_path, {})
    (tmp_path / "stdout").touch()
    assert home.not_stored() == []  # it was killed and told nothing
    verdicts = [{"variant": "DEFAULT_CONFIG", "verdict": "known"}]
    (tmp_path / "stdout").write_text(json.dumps({"run": "20261121T084500-3f2a", "verdicts": verdicts}))
    assert home.not_stored() == ["20261121T084500-3f2a DEFAULT_CONFIG"]


def test_results_continue_and_failures_are_repeated(tmp_path):
    file, made = tmp_path / "results", Undisturbed(RIGHT, {"spark": 80.0}, 100.0)
    first = Results(file)
    assert first.get_undisturbed(lambda: made) == made
    assert first.pace(made) == 1.0
    first.add(14, Struck("spark", "SIGKILL", None, seconds=50.0))  # too late
    assert first.pace(made) == 0.5
    first.add(14, Struck("spark", "SIGKILL", 1.0, resumed="yes", seconds=60.0))
    first.add(15, Struck("spark", "SIGSTOP", 1.0, wrong=["left: java"], orphans=["java"], seconds=70.0))
    again = Results(file)
    assert again.get_undisturbed(lambda: pytest.fail("it is known")) == made
    assert again.rows == first.rows
    assert again.pace(made) == 0.5  # the others were resumed, or failed
    assert again.has_passed(14, "spark", "SIGKILL")
    assert not again.has_passed(14, "task", "SIGKILL")  # with another --only
    assert not again.has_passed(15, "spark", "SIGSTOP")
    assert not again.has_passed(16, "broker", "SIGKILL")
    again.add(15, Struck("spark", "SIGSTOP", 1.0, seconds=80.0))
    assert Results(file).has_passed(15, "spark", "SIGSTOP")
    assert list(Results(file).summary()) == [
        "| spark | SIGKILL | 1 | 0 | 1 | 0 | 0 | 0 | 60 |",
        "| spark | SIGSTOP | 2 | 2 | 0 | 0 | 1 | 1 | 75 |",
        "| all |  | 3 | 2 | 1 | 0 | 1 | 1 | 70 |",
    ]
    assert list(Results(None).summary()) == ["| all |  | 0 | 0 | 0 | 0 | 0 | 0 | - |"]


def test_reapers_and_their_component_are_told_apart(tmp_path):
    reaper = below_reaper(["sleep", "60"], os.getpid(), twice=True)
    script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    command = subprocess.Popen([sys.executable, "-c", script, *reaper])
    try:
        below = psutil.Process(command.pid)
        await_condition("all four", lambda: len(below.children(recursive=True)) == 3, timeout=30)
        await_condition("sleep", lambda: Tree.of(below).component("sleep")[0].name() == "sleep", timeout=30)
        tree = Tree.of(below)
        assert len(tree.reapers("sleep")) == 2
        assert VICTIMS["command"](tree) == [below]
        assert VICTIMS["broker"](tree) == []
    finally:
        for process in psutil.Process(command.pid).children():
            process.kill()
        command.kill()
        command.wait()
