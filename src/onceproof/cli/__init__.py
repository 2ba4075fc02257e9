"""The `onceproof` command: its commands are in modules by subject, and `groups` has their names.

Each subcommand imports what it needs, so that `--help` and usage errors appear at once.
"""

import errno
import json
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Annotated

import typer

from onceproof.cli.terminal import CLOSED, err, flush_output
from onceproof.model.errors import ExitCode, OnceproofError
from onceproof.model.json_file import unwritable


def _report(error: OnceproofError) -> ExitCode:
    """Print an error of ours as one sentence; returns its exit code."""
    if "--json" in sys.argv:
        print(json.dumps({"error": str(error)}))
    err.print("[bold red]onceproof:[/] ", end="")
    err.print(str(error), markup=False, soft_wrap=True)
    return error.exit_code


try:
    from onceproof.cli.groups import Commands, add_commands
except OnceproofError as failed:  # a package that adds a scenario or a fault, which cannot be loaded
    sys.exit(_report(failed))

app = typer.Typer(
    cls=Commands,
    help="Proves or disproves that a Kafka Streams release keeps its promises.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 as expected, 1 anomaly (run: regression), 2 usage, 3 inconclusive, 4 error of the harness.",
)
INTERRUPTED = 130  # Typer's exit code for Ctrl-C
# What `git bisect run` takes for good, bad and could not tell; from STOP on it stops.
GIT_BISECT: Mapping[int, int] = {ExitCode.OK: 0, ExitCode.ANOMALY: 1, ExitCode.INCONCLUSIVE: 125}
STOP = 128
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)
add_commands(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from onceproof.harness import harness_version

        print(f"onceproof {version('onceproof')}, harness {harness_version()}")
        raise typer.Exit


@app.callback()
def options(
    version_: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version, and that of the harness, which trials must share for their evidence to add up.",
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command; each of them ends the call by itself."""


def main() -> None:
    """Entry point: errors of ours end in one sentence and their exit code."""
    try:
        code = _run()
        flush_output()
    except OSError as error:  # of the output, while an error is printed
        code = CLOSED if isinstance(error, BrokenPipeError) else ExitCode.ERROR
    sys.exit(for_git_bisect(code) if "--git-bisect" in sys.argv else code)


def for_git_bisect(code: int) -> int:
    """An exit code of ours as `git bisect run` reads it: a usage error or a failure must not count as a bad commit."""
    return GIT_BISECT.get(code, code if code >= STOP else STOP + code)


def _run() -> int:
    """Run the command; returns its exit code."""
    try:
        try:
            _app()
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            raise unwritable(error) from error
    except OnceproofError as error:
        return _report(error)
    except BrokenPipeError:
        return CLOSED
    except Exception:  # a bug of ours: whatever it is, it must not be taken for an anomaly's exit code
        err.print_exception()
        return ExitCode.ERROR
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            err.print("onceproof: interrupted; everything that was started has been stopped.")
        if isinstance(ended.__context__, BrokenPipeError):  # of which Typer makes 1, an anomaly's exit code
            return CLOSED
        return int(ended.code or 0)
    return ExitCode.OK


def _app() -> None:
    """Run the command until all of its output is written."""
    try:
        app()
    finally:
        flush_output()
