"""From releases as a person names them to the question: what the registry, the matrices and the database know."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

from onceproof.advice.advising import OwnRun, UpgradeQuestion
from onceproof.atlas.shipped import count_releases, select_cells
from onceproof.harness import harness_versions
from onceproof.installation import Installation
from onceproof.lab.applications import uses_on
from onceproof.lab.comparing import compare_application
from onceproof.lab.releases import list_published, read_remembered_releases
from onceproof.model.application import Application, parse_application
from onceproof.model.cell import Cell, is_run_id
from onceproof.model.compared import TopologyComparison
from onceproof.model.errors import UsageError
from onceproof.model.judged import AppAnswer
from onceproof.model.known_issues import registry
from onceproof.model.matrices import MATRICES
from onceproof.model.matrix import Request, by_registry
from onceproof.model.release import CLAIMED, Release
from onceproof.results.seen import read_judged, read_seen
from onceproof.scenarios import CATALOGUE
from onceproof.scenarios.declared import DeclaredApplication as Declared


def ask(
    current: Release,
    target: Release,
    url: str,
    application: Application | None = None,
    own: tuple[OwnRun, ...] | None = None,
    topology: TopologyComparison | None = None,
) -> UpgradeQuestion:
    """The question, with all that is known here.

    `own` are the runs of a user application, and `topology` is what changes of its topology.

    Raises:
        UsageError: both releases are the same.
        HarnessError: the database refuses.
    """
    releases = (current, target)
    cells = select_cells(url, releases, harness_versions())
    known = list_known_releases(url)
    return UpgradeQuestion(current, target, registry(), CATALOGUE, cells, application, known, own, topology=topology)


def list_known_releases(url: str) -> list[Release]:
    """The releases that are named here, newest first: by the registry, a matrix, a run, the atlas or `release_watch`.

    Raises:
        HarnessError: the database refuses.
    """
    planned = {Release.parse(text) for matrix in MATRICES.values() for text in matrix.releases()}
    seen = {*read_judged(url), *read_seen(url), *count_releases()}
    return sorted({*by_registry(registry()).releases, *planned, *seen}, reverse=True)


def check_releases(releases: Iterable[Release], url: str, installation: Installation) -> None:
    """Refuse an unpublished release; Maven is asked only about those that nothing here names.

    Raises:
        UsageError: one is not published.
        HarnessError: the database refuses, or Maven cannot be reached.
    """
    kept = read_remembered_releases(installation)
    known = {*list_known_releases(url), *(kept.releases if kept else ())}
    if not (unknown := [release for release in releases if release not in known]):
        return
    published = list_published(installation, pre_releases=True)
    for release in unknown:
        if release not in published:
            raise UsageError(f"Kafka {release} is not published; `onceproof release list` lists what is.")


def read_application(file: Path) -> Application:
    """The application that a file describes.

    Raises:
        UsageError: the file cannot be read, or names an unknown feature or value.
    """
    try:
        return parse_application(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(
            f"{file} cannot be read ({reason}): name the file that `onceproof advise --template` printed."
        ) from None


def find_application(installation: Installation, folder: Path, release: Release) -> Application | None:
    """The features that a running application uses on a release: found in its topology, and corrected as its file says
    (`uses`).

    None of a command, which describes nothing, if its file does not say anything, either.

    Raises:
        UsageError: the folder has no application, or its topology cannot be built on the release.
    """
    declared = Declared.read(folder)
    corrected = declared.declares.corrected
    found = {} if declared.declares.command else uses_on(installation, declared, release)
    return Application({**found, **corrected}) if found or corrected else None


def changes_of(installation: Installation, folder: Path, way: tuple[Release, Release]) -> TopologyComparison | None:
    """The changes of the topology of an application from one release to another; None of a command, which hides it.

    Raises:
        UsageError: the folder has no application, or its topology cannot be built on a release.
        HarnessError: Java could not be run.
    """
    if Declared.read(folder).declares.command or way[0] == way[1]:
        return None
    return compare_application(installation, folder, way)


def own_runs(folder: Path, runs: Path, releases: Collection[Release]) -> tuple[OwnRun, ...]:
    """The last runs of an application of one's own on each of these releases, or from one to another, by fault.

    A run with a planted bug says nothing about Kafka.

    Raises:
        UsageError: the folder has no application.
    """
    folder = Declared.read(folder).folder
    found: dict[tuple[Release, Release | None, str], OwnRun] = {}
    for file in sorted(runs.glob("*/app.json"), reverse=True):
        answer = AppAnswer.read_known(file)
        if answer is None or Path(answer.application) != folder or not is_run_id(file.parent.name):
            continue
        for row in answer.releases:
            streams = Release.parse(row.streams.removesuffix(CLAIMED))
            to = Release.parse(row.restart_on) if row.restart_on else None
            if row.plant is None and streams in releases and (to is None or to in releases):
                run = OwnRun(streams, to, answer.fault, row.judgement, row.reason, file.parent.name)
                found.setdefault((streams, to, answer.fault), run)
    return tuple(found.values())


def requests(cells: Iterable[Cell]) -> list[Request]:
    """The requests of a run that have these cells; those of one release or pair together.

    The cells of a request are all its variants of all its scenarios, so there may be a few more.
    """
    together: dict[tuple[Release, Release | None], list[Cell]] = defaultdict(list)
    for cell in cells:
        together[cell.streams, cell.restart_on].append(cell)
    return [
        Request(
            streams=(str(streams),),
            restarts=(str(restart),) if restart else (),
            scenarios=tuple(dict.fromkeys(cell.scenario for cell in own)),
            variants=tuple(dict.fromkeys(cell.variant for cell in own)),
        )
        for (streams, restart), own in together.items()
    ]
