"""Programs of the application's jar that do one thing and end: they tell of it as instances do, in JSON lines."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from onceproof.lab.artifacts import streams_class_path
from onceproof.lab.class_data import ClassData
from onceproof.lab.java import java_command
from onceproof.lab.processes import await_condition, open_pipes, spawn
from onceproof.model.errors import HarnessError
from onceproof.model.release import Release
from onceproof.settings import get_settings

TIMEOUT = 60.0


def run_program(
    release: Release,
    main: tuple[str, ...],
    log: Path,
    what: str,
    line: str = "",
    check: Callable[[], None] = lambda: None,
    options: Sequence[str] = (),
    beside: Sequence[Path] = (),
) -> dict[str, Any]:
    """Run a program to its end.

    Args:
        release: of Kafka Streams, whose jars it runs with.
        main: its class and its arguments.
        log: takes what it logs.
        what: that it is to bring about, for the sentence if it fails.
        line: for its standard input; may carry credentials.
        check: raises if waiting has become pointless.
        options: of its JVM.
        beside: what stands on its class path behind these jars.

    Returns:
        The first event that it told; nothing if it told none.

    Raises:
        HarnessError: it failed, or did not end.
    """
    jars = [get_settings().application_jar, *streams_class_path(release)]
    command = java_command([*jars, *beside], main, log.parent, ClassData.of(jars), "-Xmx128m", *options)
    process = spawn(command, log=log, piped=True)
    stdin, stdout = open_pipes(process)
    try:
        stdin.write(line + "\n")
        stdin.flush()
        await_condition(what, lambda: not process.alive(), timeout=TIMEOUT, check=check)
    finally:
        process.kill()
    said = stdout.readline()
    told: dict[str, Any] = json.loads(said) if said.startswith("{") else {}
    if process.poll():
        raise HarnessError(f"Waited for {what}, in vain: {told.get('message', f'see {log}')}.")
    return told
