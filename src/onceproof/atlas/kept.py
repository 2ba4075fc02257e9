"""A trial as one file: what was observed of it, so that it can be judged again on any machine, without brokers.

The file is a tar archive, compressed by xz: any Python reads both by its standard library. Topics and log
segments in it are Parquet. Its name ends with a digest of the content.
"""

import hashlib
import io
import json
import lzma
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onceproof.model.cell import Trial
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import Outcome, TrialPlan
from onceproof.model.json_file import replacing
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.timeline import Event
from onceproof.results.redaction import Redaction
from onceproof.scenarios import SCENARIOS
from onceproof.scenarios.resources import PROMISE as RESOURCES

SUFFIX = ".tar.xz"
TEXTS = ("trial.json", "outcome.json", "reader.json", "observations.json", "timeline.jsonl")
PARQUET = ("segments.parquet", "topics/committed.parquet", "topics/all.parquet")
HELD = r"(?:dumps|contents)/\w[\w.\-]*"  # by stores
MEMBERS = re.compile("|".join([*map(re.escape, (*TEXTS, *PARQUET)), HELD]))
MOST_BYTES = 512 * 2**20  # of the content


def pack(run: RunFolder, trial: Trial, folder: Path) -> Path:
    """Write what was observed of a trial into a folder, without paths, hosts and people; returns the file.

    Raises:
        UsageError: it is of a user application, whose messages are not ours to give away.
        HarnessError: it did not end, or did not keep its messages; or the disk is full or read-only.
    """
    if trial.cell.scenario not in SCENARIOS:
        raise UsageError(f"{trial.key} is of your own application, whose messages stay in its run folder.")
    source = run.trial(trial)
    if not source.outcome_file.exists() or not source.topics.exists():
        raise HarnessError(f"{trial.key} did not end, or did not keep its messages, so it cannot be judged again.")
    content = io.BytesIO()
    redaction = Redaction.of(run)
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in _list_files(source):
            data = _read(source.path / name, redaction)
            member = tarfile.TarInfo(name)  # of no one, and of no time: the same trial gives the same bytes
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    digest = hashlib.sha256(content.getvalue()).hexdigest()
    target = folder / f"{trial.key}.{digest[:16]}{SUFFIX}"
    with replacing(target, named=True) as draft:
        draft.write_bytes(lzma.compress(content.getvalue(), preset=6))
    return target


def _list_files(source: TrialFolder) -> Iterator[str]:
    files = sorted(file for file in source.path.rglob("*") if file.is_file())
    names = (file.relative_to(source.path).as_posix() for file in files)
    return (name for name in names if MEMBERS.fullmatch(name))


def _read(file: Path, redaction: Redaction) -> bytes:
    if file.suffix == ".json":
        return json.dumps(redaction.data(json.loads(file.read_text()))).encode()
    if file.suffix == ".jsonl":
        events = map(json.loads, file.read_text().splitlines())
        return "".join(f"{json.dumps(_redact(event, redaction))}\n" for event in events).encode()
    return file.read_bytes()


def _redact(event: Event, redaction: Redaction) -> Any:
    """An event without what must not leave the machine; counts of objects stay, whatever their class is called."""
    return event if event["event"] == RESOURCES else redaction.data(event)


def unpack(file: Path, run: RunFolder) -> Trial:
    """Put a trial that was packed into a run folder, which need not exist; returns the trial.

    Raises:
        UsageError: it is no such file, or the run folder has a trial of this name.
    """
    content = _decompress(file)
    if hashlib.sha256(content).hexdigest()[:16] != file.name.removesuffix(SUFFIX).rpartition(".")[2]:
        raise UsageError(f"{file} is not what its name says it is: it was cut, altered or renamed.")
    members: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            known = member.isreg() and MEMBERS.fullmatch(member.name)
            extracted = archive.extractfile(member) if known else None
            if extracted is None:
                raise UsageError(f"{file} has {member.name!r}, which is no part of a trial.")
            members[member.name] = extracted.read()
    key = file.name.removesuffix(SUFFIX).rpartition(".")[0]
    folder = run.trial(key)
    if folder.path.exists():
        raise UsageError(f"{run.path} already has the trial {key}.")
    for name, data in members.items():
        target = folder.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    trial = TrialPlan.read(folder.trial_file).trial
    if trial.key != key or Outcome.read(folder.outcome_file).trial != trial:
        raise UsageError(f"{file} holds the trial {trial.key}, which its name or its outcome denies.")
    return trial


def _decompress(file: Path) -> bytes:
    """The content of a file, which may not grow without end.

    Raises:
        UsageError: it is no file of this kind.
    """
    try:
        with lzma.open(file) as stream:
            content = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise UsageError(f"{file} is no trial that was kept, or cannot be read: {error}.") from error
    if len(content) > MOST_BYTES:
        raise UsageError(f"{file} holds more than {MOST_BYTES // 2**20} MiB.")
    return content
