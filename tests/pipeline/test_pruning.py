"""Old folders go, and nothing else: not what is under way, nor the evidence of what was red."""

import os
import pty
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from onceproof.model.run_folder import RunFolder
from onceproof.pipeline.pruning import find_old, prune, prune_by_rule, space_of
from onceproof.processes.locks import in_use
from onceproof.settings import Settings
from tests.commands import onceproof
from tests.results.test_database import make_judged

DAYS = 86_400.0


def ids(count: int) -> list[str]:
    return [f"202601{day:02}T021500-abcd1234" for day in range(1, count + 1)]


def aged(folder: Path, days: float = 3.0) -> Path:
    """A folder in which nothing was written for days."""
    then = time.time() - days * DAYS
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (then, then))
    return folder


def judged_run(home: Path, run_id: str) -> Path:
    """A run with a red cell, some days old."""
    made = make_judged(home / "made").path
    folder = home / "runs" / run_id
    folder.parent.mkdir(parents=True, exist_ok=True)
    made.rename(folder)
    return aged(folder)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Three runs of a matrix, three folders of other commands, and three searches, all of them old."""
    for run_id in ids(3):
        judged_run(tmp_path, run_id)
    for number in range(3):
        for place in (
            tmp_path / "runs" / f"2026020{number + 1}T000000-abcd1234",
            tmp_path / "explorations" / ids(3)[number],
        ):
            (place / "trials" / "a-t1").mkdir(parents=True)
            (place / "trials" / "a-t1" / "outcome.json").write_text("{}" * 5_000)
            aged(place)
    (tmp_path / "runs" / "notes").mkdir()  # of a person
    return tmp_path


def left(home: Path, place: str = "runs") -> set[str]:
    return {path.name for path in (home / place).iterdir() if path.name != "evidence"}


def test_pruning_keeps_the_newest_of_each_kind_and_red_evidence(home):
    settings = Settings(home=home)
    before = space_of(settings)
    found = find_old(settings, 2)
    assert [(one.what, one.path.name) for one in found.old] == [
        ("run", ids(3)[0]),
        ("trials", "20260201T000000-abcd1234"),
        ("search", ids(3)[0]),
    ]
    said = list(prune(settings, found.old))
    assert [sentence.split(",")[0] for sentence in said] == [f"removed {one.what} {one.path.name}" for one in found.old]
    assert f"the evidence of 1 red cells is in {home}/runs/evidence" in said[0]
    assert left(home) == {*ids(3)[1:], "20260202T000000-abcd1234", "20260203T000000-abcd1234", "notes"}
    assert left(home, "explorations") == set(ids(3)[1:])
    [archive] = (home / "runs" / "evidence").iterdir()
    assert archive.name.startswith(f"{ids(3)[0]}-enumerator-")
    assert "verdict.json" in zipfile.ZipFile(archive).namelist()
    after = space_of(settings)
    assert (before.folders, after.folders) == (9, 6)
    assert after.size < before.size
    assert not find_old(settings, 2).old


def test_what_may_be_under_way_stays_and_is_named(home):
    runs = home / "runs"
    first, second, third = (runs / run_id for run_id in ids(3))
    aged(first, days=0.5)
    process = subprocess.Popen(
        [sys.executable, "-c", "input()", f"-Donceproof.mark={second}/clusters/b"], stdin=subprocess.PIPE
    )
    try:
        (third / "trials" / "a-t1").mkdir()
        with in_use(third / "trials" / "a-t1"):
            aged(third)
            judged_run(home, "20260111T021500-abcd1234")
            found = find_old(Settings(home=home), 1)
            assert not [one for one in found.old if one.what == "run"]
            reasons = {sentence.split(": ")[0]: sentence for sentence in found.spared}
            assert "may be under way" in reasons[f"run {first.name}"]
            assert "a process of it runs" in reasons[f"run {second.name}"]
            assert "locked by its driver" in reasons[f"run {third.name}"]
    finally:
        process.communicate()


def test_what_came_to_life_since_it_was_found_stays(home):
    settings = Settings(home=home)
    found = find_old(settings, 1)
    first, second = found.old[:2]
    (first.path / "timeline").touch()
    said = list(prune(settings, [first, second]))
    assert (said[0].startswith(f"kept run {first.path.name}: "), said[1].startswith("removed ")) == (True, True)
    assert first.path.exists()


def test_a_run_whose_evidence_cannot_be_written_stays(home):
    settings = Settings(home=home)
    shutil.rmtree(RunFolder(home / "runs" / ids(3)[0]).path / "trials")
    (home / "runs" / "evidence").write_text("in the way")
    aged(home / "runs")
    said = list(prune(settings, find_old(settings, 2).old))
    assert said[0].startswith(f"kept run {ids(3)[0]}: ")
    assert (home / "runs" / ids(3)[0] / "verdicts.json").exists()


def test_a_search_with_findings_stays_as_do_links(home):
    finding = home / "explorations" / ids(3)[0] / "findings" / "1" / "finding.json"
    finding.parent.mkdir(parents=True)
    finding.write_text("{}")
    aged(home / "explorations")
    elsewhere = home / "elsewhere"
    (home / "runs" / ids(3)[0]).rename(elsewhere)
    (home / "runs" / ids(3)[0]).symlink_to(elsewhere)
    found = find_old(Settings(home=home), 2)
    assert [one.what for one in found.old] == ["trials"]
    assert found.spared == [f"search {ids(3)[0]}: it has findings, which only its folder shows"]


def test_attempts_that_failed_go_from_a_run_that_stays(home):
    attempt = home / "runs" / ids(3)[2] / "trials" / "a-t1.attempt-1"
    attempt.mkdir(parents=True)
    (attempt / "outcome.json").write_text("{}")
    aged(attempt)
    settings = Settings(home=home)
    [found] = find_old(settings, 30).old
    assert found.path == attempt
    assert next(iter(prune(settings, [found]))).startswith("removed attempt in ")
    assert not attempt.exists()


def test_an_interrupted_removal_is_finished_the_next_time(home):
    rest = home / "runs" / f".{ids(3)[0]}.pruned"
    (home / "runs" / ids(3)[0]).rename(rest)
    settings = Settings(home=home)
    found = find_old(settings, 30).old
    assert [one.path for one in found] == [rest]
    assert next(iter(prune(settings, found))).startswith("removed rest of ")
    assert not rest.exists()


def test_the_command_asks_before_it_removes(home):
    everything = left(home)
    shown = onceproof(home, "system", "prune", "--keep", "2", "--dry-run")
    assert (shown.returncode, f"would remove run {ids(3)[0]}, " in shown.stdout) == (0, True)
    assert "9 folders of runs and searches take" in shown.stdout
    command = [sys.executable, "-m", "onceproof.cli", "system", "prune", "--keep", "2"]
    env = {**os.environ, "ONCEPROOF_HOME": str(home)}

    def asked(answer: str | None) -> tuple[int, str]:
        at, of = pty.openpty()
        os.write(at, f"{answer}\n".encode())
        stdin = subprocess.DEVNULL if answer is None else of
        done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, env=env, check=False)
        os.close(at)
        os.close(of)
        return done.returncode, done.stdout + done.stderr

    code, said = asked(None)
    assert (code, "give --yes, or --dry-run" in said) == (2, True)
    assert asked("n")[0] == 0
    assert left(home) == everything
    code, said = asked("y")
    assert (code, f"removed run {ids(3)[0]}" in said) == (0, True)
    assert left(home) != everything
    assert "take" in onceproof(home, "system", "prune", "--keep", "1", "--yes").stdout
    assert left(home) == {ids(3)[2], "20260203T000000-abcd1234", "notes"}


def test_the_rule_of_the_week_removes_nothing_unless_it_is_set(home, capsys):
    everything = left(home)
    prune_by_rule(Settings(home=home))
    assert left(home) == everything
    prune_by_rule(Settings(home=home, keep_runs=1))
    assert left(home) == {ids(3)[2], "20260203T000000-abcd1234", "notes"}
    assert f"removed run {ids(3)[0]}" in capsys.readouterr().out
