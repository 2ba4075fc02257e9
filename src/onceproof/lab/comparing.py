"""Two releases, or two versions of an application, compared by what becomes of topologies: without brokers."""

from collections.abc import Callable, Sequence
from pathlib import Path

from onceproof.installation import Installation
from onceproof.lab.applications import application_class_path
from onceproof.lab.shapes import shapes_of, steady
from onceproof.model.compared import ChangeEffect, TopologyComparison, compare, report_unbuilt
from onceproof.model.decoding import from_json
from onceproof.model.errors import UsageError
from onceproof.model.release import Release
from onceproof.model.shape import Shape
from onceproof.scenarios.declared import DeclaredApplication
from onceproof.scenarios.net import CorpusCase, case_of, example_cases, programs, scenario_cases

Say = Callable[[str], object]


def net_of(installation: Installation, examples: Path, release: Release, say: Say) -> list[CorpusCase]:
    """All topologies that a release is compared by; an example that it cannot compile is left out, and said.

    Args:
        installation: what they are built with.
        examples: the folder of the examples.
        release: that is compared.
        say: takes a sentence.
    """
    cases = [*scenario_cases(release), *programs()]
    for case in example_cases(examples):
        try:
            application_class_path(installation, str(case.folder), release)
        except UsageError as error:
            say(f"{case.name} is left out: {error}")
        else:
            cases.append(case)
    return cases


def compare_releases(
    installation: Installation,
    releases: tuple[Release, Release],
    nets: tuple[Sequence[CorpusCase], Sequence[CorpusCase]],
) -> tuple[TopologyComparison, ...]:
    """The changes from one release to another, of each topology that is among those of both.

    Raises:
        UsageError: a release is not published, or an application does not compile against it.
        HarnessError: Java could not be run, or the program failed.
    """
    before, after = (shapes_of(installation, release, net) for release, net in zip(releases, nets, strict=True))
    asked = {case.name: case for case in nets[1]}
    common = [case for case in nets[0] if asked.get(case.name) == case and case.name in before and case.name in after]
    found = {case.name: compare(before[case.name], after[case.name]) for case in common}
    doubtful = [case for case in common if found[case.name].has(ChangeEffect.DIFFERS)]
    same = steady(installation, releases[0], doubtful, before)
    return tuple(
        found[case.name] if same.get(case.name, True) else compare(before[case.name], after[case.name], steady=False)
        for case in common
    )


def compare_application(
    installation: Installation, folder: Path, releases: tuple[Release, Release]
) -> TopologyComparison:
    """The changes of an application from one release to another; raises as `compare_releases`.

    Raises:
        UsageError: also, the folder has a command, whose topology cannot be read.
    """
    case = _case(folder)
    [found] = compare_releases(installation, releases, ([case], [case]))
    if found.changes:
        return found
    shape = shapes_of(installation, releases[1], [case]).get(case.name)
    return report_unbuilt(found.name, shape.error) if shape and shape.error else found


def shape_of(installation: Installation, place: Path, release: Release, like: CorpusCase | None = None) -> Shape:
    """The shape of an application, or the one that a file keeps.

    Args:
        installation: what it is built with.
        place: a folder with an `onceproof.toml`, or a file that `release compare --keep` wrote.
        release: of Kafka Streams.
        like: the case whose records it is given; by default its own.

    Raises:
        UsageError: it is neither, the application does not compile, or its file has a command.
        HarnessError: Java could not be run, or the program failed.
    """
    if place.is_file():
        return _read_kept(place)
    case = _case(place)
    as_case = CorpusCase(case.name, case.topology, case.app, case.config, (like or case).records, folder=case.folder)
    return shapes_of(installation, release, [as_case])[case.name]


def compare_versions(
    installation: Installation, places: tuple[Path, Path], release: Release
) -> tuple[TopologyComparison, Shape]:
    """The changes from one version of an application to another, and the shape of the second; raises as `shape_of`.

    Raises:
        UsageError: also, the first version does not build, so that nothing of it is deployed.
    """
    first, second = places
    like = None if first.is_file() else _case(first)
    before, after = shape_of(installation, first, release), shape_of(installation, second, release, like)
    if before.error:
        raise UsageError(
            f"{first} does not build on Kafka Streams {release} ({before.error}), so there is nothing to compare with: "
            "name the version that is deployed, or its release with --streams."
        )
    return compare(before, after), after


def _case(folder: Path) -> CorpusCase:
    application = DeclaredApplication.read(folder)
    if application.declares.command:
        raise UsageError(
            f"{folder} runs a command, whose topology cannot be seen: name a class that gives it in onceproof.toml."
        )
    return case_of(application)


def _read_kept(file: Path) -> Shape:
    try:
        shape: Shape = from_json(Shape, file.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{file} is no shape of a topology ({error}): write it with `onceproof release compare --keep`."
        ) from error
    return shape
