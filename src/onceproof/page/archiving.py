"""Archives of evidence, made outside of the page's process: one at a time, and none of its threads waits."""

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Lock
from typing import BinaryIO

import anyio
from anyio.to_thread import run_sync
from fastapi import HTTPException

from onceproof.model.errors import HarnessError
from onceproof.model.run_folder import RunFolder
from onceproof.page.runs import NotThereError
from onceproof.processes.environment import without_credentials
from onceproof.processes.process import below_reaper
from onceproof.results.evidence.__main__ import ABSENT, FAILED
from onceproof.settings import Settings

WITHIN = 600  # seconds for an archive
AGAIN = 15  # seconds after which another user may ask
PART = 1024 * 1024  # bytes that are sent at once
# Libraries that read tables start threads by the number of cores, and reserve memory that they do not use.
FRUGAL = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
_MAKING = Lock()


async def make_archive(home: Settings, run: RunFolder, cell: str) -> BinaryIO:
    """The archive of a cell, freshly made: an open file that has no name any more.

    Raises:
        HTTPException: 503, another one is being made.
        NotThereError: there is no such cell.
        HarnessError: the run is damaged, the archive takes too much memory or time, or the disk is full.
    """
    if not _MAKING.acquire(blocking=False):
        raise HTTPException(
            503, "Another archive of evidence is being made: ask again in a moment.", {"Retry-After": str(AGAIN)}
        )
    try:
        with tempfile.TemporaryDirectory(prefix="onceproof-") as scratch:
            target = Path(scratch) / "evidence.zip"
            await _write(home, run, cell, target)
            return target.open("rb")
    finally:
        _MAKING.release()


async def _write(home: Settings, run: RunFolder, cell: str, target: Path) -> None:
    command = [sys.executable, "-m", "onceproof.results.evidence", str(run.path), cell, str(target)]
    settings = {"HOME": home.home, "PROJECT": home.project, "JAVA": home.java}
    environment = {**without_credentials(), **FRUGAL}
    environment |= {f"ONCEPROOF_{name}": str(value) for name, value in settings.items()}
    try:
        with anyio.fail_after(WITHIN):
            ended = await anyio.run_process(
                below_reaper(command, os.getpid()),
                stdin=subprocess.DEVNULL,
                stderr=None,  # the server's log
                env=environment,
                check=False,
                start_new_session=True,
            )
    except TimeoutError:
        raise HarnessError(
            f"The evidence of {cell} was not made within {WITHIN // 60} minutes: "
            f"`onceproof results evidence {run.run_id} {cell}` writes it without a limit."
        ) from None
    sentence = ended.stdout.decode(errors="replace").strip()
    if ended.returncode == ABSENT:
        raise NotThereError(sentence)
    if ended.returncode == FAILED:
        raise HarnessError(sentence)
    if ended.returncode:
        raise HarnessError(
            f"The evidence of {cell} could not be made: the process that writes it ended with code "
            f"{ended.returncode}. `onceproof results evidence {run.run_id} {cell}` may say more."
        )


async def parts_of(file: BinaryIO) -> AsyncIterator[bytes]:
    """The content of a file, which is closed then; no thread waits between two parts."""
    with file:
        while part := await run_sync(file.read, PART):
            yield part
