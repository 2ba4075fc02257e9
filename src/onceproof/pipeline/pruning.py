"""Removes folders of old runs and searches. What was red in them stays, as evidence."""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from onceproof.lab.sweep import remove_folder
from onceproof.model.cell import is_run_id
from onceproof.model.errors import HarnessError, OnceproofError
from onceproof.model.files import VerdictRow
from onceproof.model.judged import AppAnswer, Judgement
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline.space import GIB, measure_free
from onceproof.processes.locks import IN_USE, unless_in_use
from onceproof.processes.orphans import find_marked
from onceproof.settings import Settings

QUIET = 24 * 3_600.0  # seconds without a written file after which nothing can be under way: no DAG run may take longer
PRUNED = ".pruned"  # at the end of the name of what is being removed, which is no run for anyone else


@dataclass(frozen=True)
class Old:
    """A folder that can be removed."""

    path: Path
    what: str
    size: int  # bytes on the disk

    def __str__(self) -> str:
        return f"{self.what} {self.path.name}, {in_gib(self.size)}"


@dataclass(frozen=True)
class Pruning:
    """The folders that can be removed, and sentences about those that are old and stay nevertheless."""

    old: Sequence[Old] = ()
    spared: Sequence[str] = ()


@dataclass(frozen=True)
class Space:
    """The room that folders of runs and searches take."""

    folders: int
    size: int  # bytes
    free: int  # bytes of their disk

    def __str__(self) -> str:
        count = f"{self.folders} folder{'' if self.folders == 1 else 's'} of runs and searches"
        return f"{count} take {in_gib(self.size)}; {in_gib(self.free)} of the disk are free."


def in_gib(size: int) -> str:
    """A size for people."""
    return f"{size / GIB:.2f} GiB"


def space_of(settings: Settings) -> Space:
    """The room that run folders and searches take, and what is free on the disk of the home."""
    folders = [folder for place in (settings.runs, settings.explorations) for folder in _folders(place)]
    return Space(len(folders), sum(_measure(folder)[0] for folder in folders), measure_free(settings.home))


def find_old(settings: Settings, keep: int) -> Pruning:
    """Find what can be removed, if the newest `keep` of each kind stay: runs of a matrix, other runs, and searches.

    Nothing is found that may be under way, nor a search with findings. Of a run that is finished, what failed attempts
    at trials left is found, however new it is.
    """
    runs = _folders(settings.runs)
    kinds = {
        "run": [run for run in runs if RunFolder(run).run_file.exists()],
        "trials": [run for run in runs if not RunFolder(run).run_file.exists()],
        "search": _folders(settings.explorations),
    }
    old: list[Old] = []
    spared: list[str] = []
    for what, folders in kinds.items():
        for folder in folders[keep:]:
            size, newest = _measure(folder)
            if reason := _why_spared(folder, newest):
                spared.append(f"{what} {folder.name}: {reason}")
            else:
                old.append(Old(folder, what, size))
        for folder in folders[:keep]:
            old += _attempts(folder)
    for place in (settings.runs, settings.explorations):
        old += [Old(left, "rest of", _measure(left)[0]) for left in sorted(place.glob(f".*{PRUNED}"))]
    return Pruning(old, spared)


def prune(settings: Settings, old: Sequence[Old]) -> Iterator[str]:
    """Remove what was found, if nothing of it has come to life since. Evidence of what was red is written before.

    Yields:
        What was removed, or stays and why, in words.
    """
    for one in old:
        if not one.path.name.endswith(PRUNED) and (reason := _why_spared(one.path, _measure(one.path)[1])):
            yield f"kept {one.what} {one.path.name}: {reason}"
            continue
        try:
            written = _save_evidence(RunFolder(one.path), settings.evidence) if one.what in ("run", "trials") else 0
            going = one.path if one.path.name.endswith(PRUNED) else _rename(one.path)
        except (OnceproofError, OSError) as error:
            yield f"kept {one.what} {one.path.name}: what was red in it could not be kept as evidence: {error}"
            continue
        removed = remove_folder(going)
        left = "" if removed == str(going) else f" ({removed})"
        saved = f"; the evidence of {written} red cells is in {settings.evidence}" if written else ""
        yield f"removed {one}{saved}{left}"


def prune_by_rule(settings: Settings) -> None:
    """Remove what the setting `keep_runs` leaves, if it is set."""
    if settings.keep_runs is not None:
        found = find_old(settings, settings.keep_runs)
        for sentence in (*(f"kept {spared}" for spared in found.spared), *prune(settings, found.old)):
            print(sentence)


def _folders(place: Path) -> list[Path]:
    """The folders of runs or searches there, newest first; a link belongs to another program."""
    folders = (path for path in place.glob("*") if is_run_id(path.name) and path.is_dir() and not path.is_symlink())
    return sorted(folders, key=lambda path: path.name, reverse=True)


def _attempts(folder: Path) -> Iterator[Old]:
    run = RunFolder(folder)
    with suppress(HarnessError):  # verdicts that cannot be read: nothing is known of it
        if not run.is_finished:
            return
        for attempt in sorted(folder.glob("trials/*.attempt-*")):
            size, newest = _measure(attempt)
            if time.time() - newest > QUIET:
                yield Old(attempt, f"attempt in {folder.name}:", size)


def _why_spared(folder: Path, newest: float) -> str | None:
    """Why a folder stays that is old enough; None if it does not."""
    if time.time() - newest < QUIET:
        return "something was written in it within a day, so it may be under way"
    if any(True for _ in find_marked(folder)):
        return "a process of it runs"
    for lock in (*folder.glob(f"trials/*/{IN_USE}"), *folder.glob(f"planted/trials/*/{IN_USE}")):
        with unless_in_use(lock.parent) as unused:
            if not unused:
                return f"{lock.parent.name} is locked by its driver"
    if any(folder.glob("findings/*/finding.json")):
        return "it has findings, which only its folder shows"
    return None


def _measure(folder: Path) -> tuple[int, float]:
    """The bytes of a folder on the disk, and when something in it was last written."""
    size, newest = 0, folder.stat().st_mtime
    for place, _, names in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in names)):  # noqa: PTH118 - there are very many
            with suppress(FileNotFoundError):
                found = os.lstat(path)
                size, newest = size + found.st_blocks * 512, max(newest, found.st_mtime)
    return size, newest


def _save_evidence(run: RunFolder, target: Path) -> int:
    """Keep the evidence of all that was red in a run outside of its folder; returns of how many cells."""
    from onceproof.results.evidence.archive import write_evidence

    red = _red_cells(run)
    for cell in red:
        file, made = target / f"{run.run_id}-{cell}.zip", run.path / "evidence" / f"{run.run_id}-{cell}.zip"
        if not file.exists():
            target.mkdir(parents=True, exist_ok=True)
            if made.exists():
                shutil.move(made, file)
            else:
                write_evidence(run, cell, file)
    return len(red)


def _red_cells(run: RunFolder) -> list[str]:
    """The keys of cells with a red trial.

    Raises:
        HarnessError: what the run says of that is damaged, or a trial of it was removed.
    """
    from onceproof.results.evidence.case import cell_of

    if run.verdicts_file.exists():
        return [row.cell for row in VerdictRow.read_all(run.verdicts_file) if row.red]
    if not run.app_file.exists():
        return []
    cells = [
        cell_of(run, result) for result in AppAnswer.read(run.app_file).releases if result.judgement is Judgement.RED
    ]
    if None in cells:
        raise HarnessError("files of a trial that was red are gone")
    return [cell.key for cell in cells if cell]


def _rename(folder: Path) -> Path:
    """Give the folder a name by which it is no run, so that half of one is never shown."""
    going = folder.with_name(f".{folder.name}{PRUNED}")
    return folder.rename(going)
