"""The `onceproof` command: one module a group of commands.

What a subcommand needs is imported by it, so that `--help` and errors of usage come at once.
"""

import errno
import json
import sys

import typer

from onceproof.cli import advising, installation, planting, results, runs, schemas, trials
from onceproof.cli.terminal import err
from onceproof.model.errors import ExitCode, OnceproofError
from onceproof.model.json_file import unwritable

app = typer.Typer(
    help="Proves or disproves that a Kafka Streams release keeps its promises.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 as expected, 1 anomaly (run: regression), 2 usage, 3 inconclusive, 4 error of the harness.",
)
INTERRUPTED = 130  # Typer's exit code for Ctrl-C
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)
for module in (trials, planting, runs, advising, results, schemas, installation):
    app.add_typer(module.group)


def main() -> None:
    """Entry point: errors of ours end in one sentence and their exit code."""
    try:
        try:
            app()
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            raise unwritable(error) from error
    except OnceproofError as error:
        if "--json" in sys.argv:
            print(json.dumps({"error": str(error)}))
        err.print("[bold red]onceproof:[/] ", end="")
        err.print(str(error), markup=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except Exception:  # a bug of ours: whatever it is, it must not be taken for an anomaly's exit code
        err.print_exception()
        sys.exit(ExitCode.ERROR)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            err.print("onceproof: interrupted; everything that was started has been stopped.")
        raise
