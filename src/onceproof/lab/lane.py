"""A warm JVM of one release that runs the cases of a search, one after the other and without brokers."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import IO, Any, Self

from onceproof.installation import Installation
from onceproof.lab.artifacts import replay_class_path, streams_class_path
from onceproof.lab.java import Jvm
from onceproof.lab.replay import SCRATCH, scratch_within
from onceproof.model.errors import HarnessError
from onceproof.model.release import Release
from onceproof.processes.process import open_pipes, spawn, tail

PROGRAM = "onceproof.streams.Lane"
OPTIONS = ("-Xmx512m", "-Donceproof.log.kafka=ERROR")
WITHIN = 60.0  # seconds, for the first answer and for that of a case


class Lane:
    """The JVM; a context manager, which ends it."""

    def __init__(self, installation: Installation, release: Release, log: Path, options: Sequence[str] = ()) -> None:
        """Start it.

        Args:
            installation: what it is run with.
            release: of Kafka Streams and its TopologyTestDriver.
            log: takes what it logs.
            options: further options of the JVM.

        Raises:
            UsageError: the release is not published.
            HarnessError: it could not be started.
        """
        self.release = release
        self._log = log
        beside = replay_class_path(installation, release)
        jars = [installation.application_jar, *streams_class_path(installation, release)]
        log.parent.mkdir(parents=True, exist_ok=True)
        self._scratch = TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}-", dir=scratch_within(log.parent))
        main = (PROGRAM, self._scratch.name)
        # RocksDB unpacks its library there, and leaves it when the JVM is killed.
        given = (*OPTIONS, *options, f"-Djava.io.tmpdir={self._scratch.name}")
        command = Jvm.of(installation, jars).beside(beside).command(main, log.parent, *given)
        self._process = spawn(command, log=log, piped=True)
        self._stdin, stdout = open_pipes(self._process)
        self._lines: SimpleQueue[str] = SimpleQueue()
        Thread(target=self._read, args=(stdout,), daemon=True).start()
        ready = self._answer()
        if ready.get("streams_version") not in (None, release.version):
            raise HarnessError(f"Kafka Streams {ready['streams_version']} was loaded in place of {release}.")

    def run(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """The answer for a case, as `Case.encoded` gives it: `outputs`, or `failed` with a sentence.

        Raises:
            HarnessError: the JVM ended, or gave no answer.
        """
        try:
            self._stdin.write(json.dumps(case) + "\n")
            self._stdin.flush()
        except (OSError, ValueError) as error:  # of a pipe that is broken, or closed
            raise self._explain_end() from error
        return self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._stdin.close()
        self._process.kill()
        self._scratch.cleanup()

    def _read(self, stdout: IO[str]) -> None:
        for line in stdout:
            self._lines.put(line)
        self._lines.put("")

    def _answer(self) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=WITHIN)
        except Empty:
            raise HarnessError(f"{PROGRAM} did not answer within {WITHIN:g} s; see {self._log}.") from None
        if not line:
            raise self._explain_end()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _explain_end(self) -> HarnessError:
        return HarnessError(f"The JVM of {PROGRAM} ended: {self._log} ends with: {tail(self._log)}.")
