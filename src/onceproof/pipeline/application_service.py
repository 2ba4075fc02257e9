"""A service of its own for the applications of people: their code meets no secret, no network, and no other run.

The task of DAG `applications` asks by a Unix socket in a folder that both containers mount (ADR 29). The service runs
one application and ends. The engine starts it again, so an application leaves no process and no file to the next one.
Everything that comes back is data of an application: lines of text, and a run folder of plain files.
"""

import json
import os
import shutil
import signal
import socket
import stat
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedRWPair
from pathlib import Path, PurePosixPath
from typing import Any

from onceproof.campaigns.application import verbs
from onceproof.campaigns.requests import ApplicationRequest
from onceproof.model.errors import ExitCode, HarnessError, OnceproofError, UsageError
from onceproof.model.judged import AppAnswer
from onceproof.model.plain import plain
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline.space import GIB, measure_free
from onceproof.processes.waiting import await_condition
from onceproof.settings import get_settings

START_TIMEOUT = 120.0  # seconds until a service that has ended is there again
LONGEST_LINE = 64 * 1024  # bytes
BLOCK = 4096  # bytes that a file takes at least
DIED = "The service of applications ended without an answer: `docker compose logs applications` says why."


def serve(door: Path) -> None:
    """Run the application that the first request names, at the socket `door`; then return."""
    with _listen(door) as listener:
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb") as stream:
            _send(stream, accepted=True)
            if not (line := stream.readline()):
                return
            asked = json.loads(line)
            threading.Thread(target=_end_with, args=[connection], daemon=True).start()
            run, request = RunFolder(get_settings().runs / asked["run"]), ApplicationRequest.read(asked["request"])
            try:
                wanted = verbs.app_run(run, asked["folder"], request, asked["seed"])
                verbs.claim_folder(run)
                verbs.apply(wanted, report=lambda line: _send(stream, line=line))
                _send(stream, ended=ExitCode.OK, why="")
            except OnceproofError as error:
                _send(stream, ended=error.exit_code, why=str(error))
            with tarfile.open(fileobj=stream, mode="w|") as archive:
                if run.path.is_dir():
                    archive.add(run.path, arcname=".", filter=_plain)


def run_application(
    door: Path,
    run: RunFolder,
    folder: str,
    request: ApplicationRequest,
    seed: int,
    report: Callable[[str], object] = print,
) -> AppAnswer:
    """Let the service at `door` run an application; its run folder is then here.

    A service that is at work takes the next request when it has ended and is there again.

    Args:
        door: the socket of the service.
        run: takes what the application left; its folder is made.
        folder: of the application, at the same place for the service.
        request: names exact releases, of which all that Maven brings is there.
        seed: of records and schedule, if the request has none.
        report: takes a line for each step.

    Raises:
        UsageError: the application, or something that is asked for, is not there or does not fit; or the folder of the
            run is there.
        HarnessError: the service cannot be reached or has died, the harness failed in it, or it sent something else
            than a run folder that has room here.
    """
    asked = {"run": run.path.name, "folder": folder, "seed": seed, "request": request.model_dump(mode="json")}
    verbs.claim_folder(run)
    try:
        while True:
            with _connect(door) as stream:
                if _is_accepted(stream, asked):
                    _take(stream, run, report)
                    return AppAnswer.read(run.app_file)
    except ConnectionError as error:
        raise HarnessError(DIED) from error
    finally:
        with suppress(OSError):
            run.path.rmdir()  # if nothing is in it


def _is_accepted(stream: BufferedRWPair, asked: object) -> bool:
    """Whether the service takes the request; it has ended if not, for it ran another application."""
    with suppress(ConnectionError):
        stream.write(json.dumps(asked).encode() + b"\n")
        stream.flush()
        return bool(_receive(stream))
    return False


def _take(stream: BufferedRWPair, run: RunFolder, report: Callable[[str], object]) -> None:
    """Take what the service sends about an application: lines, how it ended, and the run folder.

    Raises:
        UsageError: it ended with one.
        HarnessError: it ended with another error, or without saying how; or it is no run folder.
    """
    while "ended" not in (message := _receive(stream)):
        if not message:
            raise HarnessError(DIED)
        report(plain(str(message.get("line", ""))))
    draft = run.path.with_name(f".{run.path.name}.draft")
    try:
        _unpack(stream, draft)
        draft.rename(run.path)  # in place of the empty folder
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    if message["ended"] != ExitCode.OK:
        kind = UsageError if message["ended"] == ExitCode.USAGE else HarnessError
        raise kind(plain(str(message.get("why", ""))))


def _unpack(stream: BufferedRWPair, target: Path) -> None:
    """Unpack plain files and folders.

    Raises:
        HarnessError: there is something else, a place outside, or more than there is room for.
    """
    target.mkdir()
    settings = get_settings()
    room = measure_free(target) - settings.least_free * GIB
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                room -= member.size + BLOCK
                if not _is_plain(member):
                    raise HarnessError(f"The service sent {member.name!r}, which is no plain file or folder of a run.")
                if room < 0:
                    raise HarnessError(
                        f"The run folder of the application is too large for the disk of {settings.home}, of which "
                        f"{settings.least_free:g} GiB stay free: make room, or have the application write less."
                    )
                _write(archive, member, target / member.name)
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise HarnessError(f"The run folder of the application could not be taken over: {error}") from error


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """Write a plain file or make a folder; nothing that is there is replaced, and no link is there to be followed."""
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    content = archive.extractfile(member)
    with place.open("xb") as out:
        shutil.copyfileobj(content, out)  # type: ignore[arg-type] # it is a file


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return member if _is_plain(member) else None


def _is_plain(member: tarfile.TarInfo) -> bool:
    """Whether it is a plain file or a folder, within the run's. Python has filters for that from 3.11.4 on."""
    place = PurePosixPath(member.name)
    is_within = not place.is_absolute() and ".." not in place.parts
    return is_within and (member.isreg() or member.isdir()) and not member.issparse()


@contextmanager
def _listen(door: Path) -> Iterator[socket.socket]:
    """A socket at `door`, which is there when a client can connect."""
    draft = door.with_name(f"{door.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(draft))
        listener.listen()
        draft.replace(door)
        yield listener


@contextmanager
def _connect(door: Path) -> Iterator[BufferedRWPair]:
    """A connection to the service, when it is there."""
    connection = socket.socket(socket.AF_UNIX)

    def connects() -> bool:
        with suppress(OSError):
            if stat.S_ISSOCK(door.lstat().st_mode):
                connection.connect(str(door))
                return True
        return False

    with connection:
        await_condition(f"the service of applications at {door}", connects, timeout=START_TIMEOUT, interval=0.2)
        with connection.makefile("rwb") as stream:
            yield stream


def _end_with(connection: socket.socket) -> None:
    """End this process when the other side has gone: its task was ended."""
    with suppress(OSError):
        connection.recv(1, socket.MSG_PEEK)
    os.kill(os.getpid(), signal.SIGTERM)


def _send(stream: BufferedRWPair, **message: object) -> None:
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def _receive(stream: BufferedRWPair) -> dict[str, Any]:
    """The next message; empty if there is none."""
    line = stream.readline(LONGEST_LINE)
    if not line:
        return {}
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise HarnessError(f"The service of applications sent no message: {line[:80]!r}.")
    return message
