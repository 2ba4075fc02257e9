"""The shapes that releases make of topologies, without brokers: one JVM a release, kept by checksums of its jars."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import FileLock

from onceproof.installation import Installation
from onceproof.lab.applications import application_class_path
from onceproof.lab.artifacts import replay_class_path, streams_class_path
from onceproof.lab.programs import run_program
from onceproof.lab.replay import SCRATCH, scratch_within
from onceproof.model.decoding import from_json
from onceproof.model.errors import HarnessError
from onceproof.model.json_file import replacing
from onceproof.model.release import Release
from onceproof.model.shape import Shape
from onceproof.scenarios.net import CorpusCase

PROGRAM = "onceproof.streams.Shapes"
WITHIN = 600.0  # seconds
HEAP = "-Xmx512m"
APPLICATION_ID = "net"


def shapes_of(
    installation: Installation, release: Release, cases: Iterable[CorpusCase], *, anew: bool = False
) -> dict[str, Shape]:
    """The shapes that a release makes of topologies, by name.

    Args:
        installation: what they are built with.
        release: of Kafka Streams and its TopologyTestDriver.
        cases: the topologies; those that are younger than the release are left out.
        anew: whether it is to be seen again even if it is known.

    Raises:
        UsageError: the release is not published, or an application does not compile against it.
        HarnessError: Java could not be run, or the program failed.
    """
    lines = [_line(installation, release, case) for case in cases if release.since(case.since)]
    if not lines:
        return {}
    folder = installation.artifacts / "shapes"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{_digest(installation, release, lines)}.jsonl"
    with FileLock(f"{file}.lock"):
        if anew or not file.exists():
            _see(installation, release, lines, file)
        return {shape.name: shape for shape in _read(file)}


def _line(installation: Installation, release: Release, case: CorpusCase) -> str:
    """A case as the program reads it."""
    user_jars = application_class_path(installation, str(case.folder), release) if case.folder else []
    config = {"application.id": APPLICATION_ID, "bootstrap.servers": "localhost:1", **case.config}
    line = {"name": case.name, "topology": case.topology, "app": case.app, "config": config}
    records = case.records if release.since(case.tried_since) else None
    return json.dumps({**line, "input": records, "classPath": [str(path) for path in user_jars]})


def _digest(installation: Installation, release: Release, lines: Sequence[str]) -> str:
    """A digest of all that the answer hangs on: the release's jars, ours, those of applications, and the question."""
    digest = hashlib.sha256("\n".join(lines).encode())
    user_jars = [Path(path) for line in lines for path in json.loads(line)["classPath"]]  # a folder's name is a digest
    ours = [installation.application_jar, *streams_class_path(installation, release)]
    for jar in (*ours, *replay_class_path(installation, release), *user_jars):
        if jar.is_file():
            digest.update(jar.read_bytes())
    return digest.hexdigest()[:24]


def _see(installation: Installation, release: Release, lines: Sequence[str], file: Path) -> None:
    beside = replay_class_path(installation, release)
    with TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}-", dir=scratch_within(file.parent)) as scratch:
        asked, answers = Path(scratch, "asked.jsonl"), Path(scratch, "told.jsonl")
        asked.write_text("".join(f"{line}\n" for line in lines))
        main = (PROGRAM, str(asked), str(answers), str(Path(scratch, "state")))
        what = f"{len(lines)} topologies to be built on Kafka Streams {release}"
        log = Path(scratch, "program.log")
        run_program(installation, release, main, log, what, options=(HEAP,), beside=beside, timeout=WITHIN)
        with replacing(file) as draft:
            draft.write_bytes(answers.read_bytes())


def _read(file: Path) -> Iterator[Shape]:
    for line in file.read_text().splitlines():
        try:
            yield from_json(Shape, line)
        except ValueError as error:
            raise HarnessError(
                f"{file} is of another version of Onceproof, or damaged ({error}): delete it."
            ) from error


def steady(
    installation: Installation, release: Release, cases: Iterable[CorpusCase], shapes: Mapping[str, Shape]
) -> dict[str, bool]:
    """Whether each topology makes the same of the same records once more: only then two releases can be compared by it.

    Raises as `shapes_of` does.
    """
    again = shapes_of(installation, release, cases, anew=True)
    return {
        name: (shape.outputs, shape.kept) == (shapes[name].outputs, shapes[name].kept) for name, shape in again.items()
    }
