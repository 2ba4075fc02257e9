"""The consoles of the commands: results to the output, progress to the error stream."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.text import Text

from onceproof.model.plain import plain

WIDTH = None if sys.stdout.isatty() else 140  # a file or a pipe has no width of its own
A_MINUTE = 60.0  # seconds
CLOSED = 141  # exit code: the output has no reader any more, as of a command that SIGPIPE ends


_COMMAND = re.compile(r"^(\s*:)(?=:)|(?<=#)(?=#\[)", re.MULTILINE)  # to GitHub's runner, which reads what is printed


def _harmless(text: str) -> str:
    """A text of others as a part of what a command prints."""
    text = plain(text)
    return _COMMAND.sub(r"\1 ", text) if os.environ.get("GITHUB_ACTIONS") else text


class _Console(Console):
    """Prints texts of others so that they command neither a terminal nor GitHub's runner.

    It ends the command whose output has no reader, but not with an anomaly's exit code, as Rich does.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else _harmless(text), style, control)

    def on_broken_pipe(self) -> None:
        with suppress(SystemExit):
            super().on_broken_pipe()
        raise SystemExit(CLOSED)


out, err = _Console(highlight=False, width=WIDTH), _Console(stderr=True, highlight=False)


def flush_output() -> None:
    """Write what is held back. If that fails it is dropped, as Python would fail with it once more at its end.

    Raises:
        OSError: it has no reader, or the disk is full.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


@contextmanager
def progress(title: str, every: float = 0.0) -> Iterator[Callable[[str], None]]:
    """Show the phase that is under way, on the terminal's error stream.

    Elsewhere, where each line stays, one is printed when `every` seconds have passed since the last one.
    """
    if not err.is_terminal:
        last: float | None = None

        def print_now_and_then(phase: str) -> None:
            nonlocal last
            if last is None or monotonic() - last >= every:
                last = monotonic()
                err.print(f"{title}: {phase}", markup=False, soft_wrap=True)

        yield print_now_and_then
        return
    with err.status(Text(title)) as status:
        yield lambda phase: status.update(Text.assemble(f"{title}: ", (phase, "bold")))


def print_written(file: Path) -> None:
    """Print the name of a file that was asked for; nothing of a pipe, which may be the output itself."""
    if file.is_file():
        out.print(f"{file} ({file.stat().st_size / 1024:,.0f} KiB)", markup=False, soft_wrap=True)


def print_failures(failures: Iterable[str]) -> None:
    """Report what went wrong on the way, on the error stream."""
    for failure in failures:
        err.print(f"[bold magenta]![/] {escape(failure)}", soft_wrap=True)
