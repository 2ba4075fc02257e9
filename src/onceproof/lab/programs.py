"""Programs of the application's jar that do one thing and end: they report as instances do, in JSON lines."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from onceproof.installation import Installation
from onceproof.lab.artifacts import streams_class_path
from onceproof.lab.java import Jvm
from onceproof.model.errors import HarnessError
from onceproof.model.release import Release
from onceproof.processes.process import open_pipes, spawn, tail
from onceproof.processes.waiting import await_condition

TIMEOUT = 60.0


def run_program(
    installation: Installation,
    release: Release,
    main: tuple[str, ...],
    log: Path,
    what: str,
    line: str = "",
    check: Callable[[], None] = lambda: None,
    options: Sequence[str] = (),
    beside: Sequence[Path] = (),
    timeout: float = TIMEOUT,
) -> dict[str, Any]:
    """Run a program to its end.

    Args:
        installation: what it is run with.
        release: of Kafka Streams, whose jars it runs with.
        main: its class and its arguments.
        log: takes what it logs.
        what: its purpose, for the sentence if it fails.
        line: for its standard input; may carry credentials.
        check: raises if waiting has become pointless.
        options: of its JVM.
        beside: what follows these jars on its class path.
        timeout: seconds within which it ends.

    Returns:
        The first event that it reported, if any.

    Raises:
        HarnessError: it failed, or did not end.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="tmp-", dir=log.parent) as scratch:
        # RocksDB unpacks its library there, and programs end at once, without removing it.
        options = ("-Xmx128m", f"-Djava.io.tmpdir={scratch}", *options)
        jars = [installation.application_jar, *streams_class_path(installation, release)]
        command = Jvm.of(installation, jars).beside(beside).command(main, log.parent, *options)
        return _run(command, log, what, line, check, timeout, user_code=bool(beside))


def _run(
    command: Sequence[str],
    log: Path,
    what: str,
    line: str,
    check: Callable[[], None],
    timeout: float,
    *,
    user_code: bool,
) -> dict[str, Any]:
    process = spawn(command, log=log, piped=True, user_code=user_code)
    stdin, stdout = open_pipes(process)
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(stdout.readline)  # while it runs: it would wait until a full pipe is emptied
        try:
            stdin.write(line + "\n")
            stdin.flush()
            await_condition(what, lambda: not process.alive(), timeout=timeout, check=check)
        finally:
            process.kill()
    said = reading.result()
    answer: dict[str, Any] = json.loads(said) if said.startswith("{") else {}
    if process.poll():
        raise HarnessError(
            f"Waited for {what}, without success: {answer.get('message') or f'{log} ends with: {tail(log)}'}."
        )
    return answer
