"""Orphans: processes of ours whose owner is gone.

A process of the lab has an owner as long as a reaper stands above it, and is recognised by the mark on its command.
Those of an Airflow are recognised by the environment that all of it inherits, which names its supervisor. Airflow's
tasks hide theirs from all but root. They are recognised by their session, each of which is written down.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from onceproof.model.cell import MARK
from onceproof.model.json_file import read_json, write_json
from onceproof.processes.identity import boot_id, is_alive, read_start
from onceproof.processes.process import REAPER
from onceproof.processes.reaper import BELOW, TWICE

OWNER, OWNER_STARTED = "ONCEPROOF_OWNER_PID", "ONCEPROOF_OWNER_STARTED"  # in the environment: whose Airflow it is
ROUNDS = 5  # of killing: what is killed may have started others meanwhile


def find_marked(folder: Path) -> Iterator[tuple[psutil.Process, Path]]:
    """Our processes that bear a mark below `folder`, with the marked folder, but not their reapers."""
    prefix = f"-D{MARK}.mark="
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if is_reaper(command):
            continue
        for word in command:
            place = Path(word.removeprefix(prefix))
            if word.startswith(prefix) and place.is_relative_to(folder):
                yield process, place


def has_reaper(process: psutil.Process) -> bool:
    """Whether a reaper of its own stands above it, which ends it with its owner."""
    try:
        parent = process.parent()
        return parent is not None and is_reaper(words := parent.cmdline()) and not is_reaper_of_tree(words)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def is_reaper(words: Sequence[str]) -> bool:
    """Whether a command line is a reaper's."""
    return str(REAPER) in words


def is_reaper_of_tree(words: Sequence[str]) -> bool:
    """Whether a command line is of one of the two reapers above a tree, which adopt what loses a reaper of its own."""
    return is_reaper(words) and words[words.index(str(REAPER)) + 2] in (TWICE, BELOW)


def note_session(home: Path, leader: int) -> None:
    """Write down that this process is responsible for a session, by the process that leads it."""
    file = sessions_file(home)
    known = read_json(file)["sessions"] if file.exists() else []
    owner = {"pid": os.getpid(), "started": read_start(os.getpid()), "boot": boot_id()}
    write_json(file, {"owner": owner, "sessions": [*known, {"leader": leader, "started": read_start(leader)}]})


def sessions_file(home: Path) -> Path:
    """The sessions of the last supervisor of a home."""
    return home / "airflow" / "sessions.json"


def end_orphans(home: Path) -> list[str]:
    """Kill what runs for a home without an owner; returns what was removed, in words."""
    removed = []
    for _ in range(ROUNDS):
        if not (found := list(_orphans(home))):
            break
        for process in found:
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.kill()
                removed.append(f"process {process.pid}")
        psutil.wait_procs(found, timeout=1)
    return removed


def _orphans(home: Path) -> Iterator[psutil.Process]:
    """Never ourselves, nor what has started us."""
    me, sessions = psutil.Process(), _sessions_without_owner(home)
    for process in set(psutil.process_iter()) - {me, *me.parents()}:
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            try:
                env = process.environ()
            except psutil.AccessDenied:
                is_ours = os.getsid(process.pid) in sessions and process.status() != psutil.STATUS_ZOMBIE
            else:
                is_ours = env.get("ONCEPROOF_HOME") == str(home) and _has_no_owner(env)
            if is_ours:
                yield process


def _has_no_owner(env: Mapping[str, str]) -> bool:
    """Whether an environment is of an Airflow whose supervisor is gone."""
    return OWNER_STARTED in env and not is_alive(int(env[OWNER]), float(env[OWNER_STARTED]))


def _sessions_without_owner(home: Path) -> set[int]:
    """Ids of the sessions that a supervisor left which is gone."""
    file = sessions_file(home)
    if not file.exists():
        return set()
    noted = read_json(file)
    owner = noted["owner"]
    if owner["boot"] != boot_id() or is_alive(owner["pid"], owner["started"]):
        return set()
    return {session["leader"] for session in noted["sessions"] if _may_still_be(session["leader"], session["started"])}


def _may_still_be(leader: int, started: float) -> bool:
    """Whether no other process has the id of a session's leader: none can, as long as a process is in the session."""
    try:
        return abs(read_start(leader) - started) < 1
    except psutil.NoSuchProcess:
        return True
