"""The verb of `onceproof fuzz`: what is fuzzed, and for how long."""

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from pathlib import Path

from onceproof.campaigns.fuzz.fuzzing import Fuzzed, Fuzzer, read_begun
from onceproof.campaigns.fuzz.grammar import OPERATIONS, SOURCES, Case
from onceproof.campaigns.fuzz.tickets import try_releases
from onceproof.harness import harness_version
from onceproof.lab.coverage import Branch, differing
from onceproof.lab.lane import Lane
from onceproof.lab.releases import list_published
from onceproof.model.errors import UsageError
from onceproof.model.release import OLDEST, Release
from onceproof.settings import get_settings


def fuzz_version() -> str:
    """The version of what draws, runs and judges cases."""
    return harness_version("app", beside=Path(__file__).parent)


def begin(
    run: str,
    streams: str,
    against: str | None,
    seed: int,
    without: Collection[str] = (),
    *,
    uniform: bool = False,
) -> Fuzzed:
    """A fuzzing that begins.

    Args:
        run: its name.
        streams: the release.
        against: the release that its outputs are compared with; None for none.
        seed: from which all cases follow.
        without: operations that are left out.
        uniform: whether each operation is drawn as often as others.

    Raises:
        UsageError: a release is malformed, or both are the same; there is no such operation, or no source is left.
    """
    release = Release.parse(streams)
    if against is not None and release == Release.parse(against):
        raise UsageError(f"{streams} is both releases, so nothing can differ: name another one with --against.")
    left_out = _check(without)
    folder = str(get_settings().fuzzings / run)
    return Fuzzed(
        run=run,
        streams=streams,
        against=against,
        seed=seed,
        without=left_out,
        uniform=uniform,
        harness=fuzz_version(),
        folder=folder,
    )


def _check(without: Collection[str]) -> tuple[str, ...]:
    there = (*SOURCES, *OPERATIONS)
    if unknown := next((one for one in without if one not in there), None):
        raise UsageError(f"There is no operation {unknown} to leave out; --without takes {', '.join(there)}.")
    if not {"stream", "table", "burst"} - set(without):
        raise UsageError("Without stream, table and burst no topology has an input: leave one of them in.")
    return tuple(one for one in there if one in without)


def resume(name: str) -> Fuzzed:
    """The fuzzing of this name, or the `last` one; raises as `read_begun` does."""
    return read_begun(get_settings().fuzzings, name, fuzz_version())


def with_tickets(state: Fuzzed, report: Callable[[str], object] = print) -> Fuzzed:
    """Bisect each finding over all published releases, and write its ticket.

    Raises:
        UsageError: Maven does not say what is published.
        HarnessError: a JVM could not be run, or ended.
    """
    installation, folder = get_settings().installation, Path(state.folder)
    releases = {release for release in list_published(installation) if release.since(OLDEST)}
    releases.add(Release.parse(state.streams))
    done = try_releases(state, releases, lambda release: Lane(installation, release, folder / f"{release}.log"), report)
    done.write(folder / "fuzzed.json")
    return done


def fuzz(state: Fuzzed, seconds: float, report: Callable[[str], object] = print) -> Fuzzed:
    """Fuzz for so many seconds, from where it stands.

    Raises:
        UsageError: a release is not published.
        HarnessError: a JVM could not be run, or ended.
    """
    installation, folder = get_settings().installation, Path(state.folder)
    with ExitStack() as stack:
        lanes = [
            stack.enter_context(Lane(installation, Release.parse(release), folder / f"{release}.log"))
            for release in (state.streams, state.against)
            if release is not None
        ]
        release = Release.parse(state.streams)

        def compares(red: Case, greens: Sequence[Case]) -> tuple[int, tuple[Branch, ...]] | None:
            return differing(installation, release, red.encoded, [green.encoded for green in greens], folder)

        return Fuzzer(folder, state, lanes[0], lanes[1] if state.against else None, compares, report).fuzz(seconds)
