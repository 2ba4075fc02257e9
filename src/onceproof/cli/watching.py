"""Rounds of work on an application: the first one at once, and another one each time that it has changed."""

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from watchfiles import Change, DefaultFilter, watch

from onceproof.model.errors import HarnessError, UsageError
from onceproof.scenarios.declared import FILE, application_of

QUIET_MS, AT_MOST_MS = 500, 10_000  # a build writes for a while: without a change for so long it is over
ANSWERS_MS = 200  # within which a watch begins, and ends


def list_watched(folder: Path) -> list[Path]:
    """The files and folders that make an application: its file, and what that names, as far as it can be read."""
    files = [folder / FILE]
    try:
        declares = application_of(str(folder)).declares
    except UsageError:
        return files
    named = [*declares.sources, *declares.jars, *(topic.file for topic in declares.input if topic.file is not None)]
    files += [folder / path for path in named]
    return files + [folder / word for word in declares.command if (folder / word).is_file()]


class _Named(DefaultFilter):
    """Changes of these files, and in these folders; not of what editors and tools keep next to them."""

    def __init__(self, files: list[Path]) -> None:
        super().__init__()
        self._files = files

    def __call__(self, change: Change, path: str) -> bool:
        return super().__call__(change, path) and any(Path(path).is_relative_to(file) for file in self._files)


@contextmanager
def _watch(folder: Path) -> Iterator[threading.Event]:
    """Watch an application in a `with` block; the event is set when it changes."""
    files = [file.resolve() for file in list_watched(folder)]
    home = folder.resolve()
    # The folder itself, since what is in it may go and come back; of other files the folder that they are in.
    roots = {home, *(file if file.is_dir() else file.parent for file in files if not file.is_relative_to(home))}
    begun, changed, over = threading.Event(), threading.Event(), threading.Event()
    failed: list[Exception] = []

    def look() -> None:
        try:
            look_on()
        except Exception as error:  # of the operating system, as where it watches too much already
            failed.append(error)
        finally:
            begun.set()
            changed.set()

    def look_on() -> None:
        for changes in watch(
            *sorted(root for root in roots if root.is_dir()),
            watch_filter=_Named(files),
            step=QUIET_MS,
            debounce=AT_MOST_MS,
            rust_timeout=ANSWERS_MS,
            yield_on_timeout=True,
            stop_event=over,
            raise_interrupt=False,
        ):
            begun.set()
            if changes:
                changed.set()

    looking = threading.Thread(target=look, name="watch", daemon=True)
    looking.start()
    begun.wait()
    try:
        yield changed
    finally:
        over.set()
        looking.join()
        if failed:
            raise HarnessError(f"{folder} cannot be watched: {failed[0]}; run it without --watch.")


def rounds(folder: Path) -> Generator[None]:
    """Yield at once, and then whenever an application has changed since its last round began; never ends by itself."""
    while True:
        application_of.cache_clear()
        with _watch(folder) as changed:
            yield
            changed.wait()  # set, too, if the watch is over
