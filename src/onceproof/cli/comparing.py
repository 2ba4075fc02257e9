"""The command that compares topologies on two releases, or of two versions of an application."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from onceproof.cli.asking import JsonOption, exact_releases
from onceproof.cli.terminal import err, out, print_written
from onceproof.model.compared import CompareAnswer, TopologyComparison
from onceproof.model.errors import ExitCode, UsageError
from onceproof.model.json_file import encode, write_json
from onceproof.model.release import Release
from onceproof.settings import get_settings

EACH = 3  # topologies that are named of each kind of change


def compare(
    before: Annotated[
        str, typer.Argument(metavar="A", help="The release that you run, or the folder of your application.")
    ],
    after: Annotated[str, typer.Argument(metavar="B", help="The release to go to, or the folder of the new version.")],
    application: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Compare your application on the two releases, not the net.")
    ] = None,
    streams: Annotated[
        str | None, typer.Option("--streams", metavar="V", help="The release for two folders; by default the newest.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the shape of the version B, to be an A later.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the topologies that two releases build, without brokers, in seconds.

    Two releases: hundreds of topologies, with and without optimization. Two folders, or a shape that --keep wrote and a
    folder: which state is lost, and how to deploy. Exit for releases: 0 the same, 1 a topology, its state or its
    results differ, 2 usage, 4 error. Exit for folders: 0, 1 state would be lost or it does not build, 2 usage, 4 error.
    """
    places = [Path(place) for place in (before, after)]
    if all(place.exists() for place in places):
        if application is not None:
            raise UsageError("--application compares on two releases; name two folders, or two releases with it.")
        code = _versions(places[0], places[1], streams or "newest", keep, as_json=as_json)
    else:
        if streams is not None or keep is not None:
            raise UsageError(
                "--streams and --keep are for two folders; name two folders that are there, or leave them out."
            )
        if lone := next((place for place in places if place.is_dir()), None):
            raise UsageError(f"{lone} is a folder and the other is none; name two folders, or two releases.")
        code = _releases((_release(before), _release(after)), application, as_json=as_json)
    raise typer.Exit(code)


def _release(text: str) -> Release:
    return Release.parse(*exact_releases([text]))


def _versions(one: Path, other: Path, streams: str, keep: Path | None, *, as_json: bool) -> ExitCode:
    from onceproof.lab.comparing import compare_versions

    release = _release(streams)
    comparison, shape = compare_versions(get_settings().installation, (one, other), release)
    if keep is not None:
        write_json(keep, encode(replace(shape, tried=False, failed=None, outputs={}, kept={})), named=True)
    if as_json:
        print(json.dumps(encode(CompareAnswer.of([comparison], str(one), str(other), str(release)))))
    else:
        out.print(f"{one} to {other} on Kafka Streams {release}:", markup=False, soft_wrap=True)
        _print(comparison)
        out.print(f"  {comparison.advice}", markup=False, soft_wrap=True)
        if keep is not None:
            print_written(keep)
    return comparison.of_versions


def _releases(releases: tuple[Release, Release], application: Path | None, *, as_json: bool) -> ExitCode:
    from onceproof.lab.comparing import compare_application, compare_releases, net_of

    settings = get_settings()
    if releases[0] == releases[1]:
        raise UsageError(f"{releases[0]} is both releases, so nothing changes: name two.")
    if application is not None:
        comparisons: Sequence[TopologyComparison] = [compare_application(settings.installation, application, releases)]
    else:
        examples = settings.project / "examples"
        nets = [net_of(settings.installation, examples, release, _say) for release in releases]
        comparisons = compare_releases(settings.installation, releases, (nets[0], nets[1]))
    one, other = map(str, releases)
    if as_json:
        print(json.dumps(encode(CompareAnswer.of(comparisons, one, other))))
    elif application is not None:
        out.print(f"{application} from Kafka Streams {one} to {other}:", markup=False, soft_wrap=True)
        _print(comparisons[0])
        out.print(f"  {comparisons[0].advice}", markup=False, soft_wrap=True)
    else:
        _print_net(comparisons, one, other)
    return max(comparison.of_release for comparison in comparisons)


def _say(sentence: str) -> None:
    err.print(sentence, markup=False, soft_wrap=True)


def _print(comparison: TopologyComparison) -> None:
    for change in comparison.changes:
        effects = f" ({'; '.join(change.effects)})" if change.effects else ""
        out.print(f"  {change.summary}{effects}", markup=False, soft_wrap=True)
    if not comparison.changes:
        out.print("  nothing changes.")


def _print_net(comparisons: Sequence[TopologyComparison], one: str, other: str) -> None:
    grave = [comparison for comparison in comparisons if comparison.grave]
    noted = sum(bool(comparison.changes) for comparison in comparisons) - len(grave)
    out.print(
        f"{one} to {other}: of {len(comparisons)} topologies {len(grave)} differ, {noted} more in what has no effect.",
        soft_wrap=True,
    )
    shown: Counter[tuple[object, ...]] = Counter()
    for comparison in grave:
        alike = comparison.alike
        shown[alike] += 1
        if shown[alike] <= EACH:
            out.print(comparison.name, markup=False, style="bold", soft_wrap=True)
            _print(replace(comparison, changes=comparison.grave))
    if more := sum(max(0, number - EACH) for number in shown.values()):
        out.print(f"{more} more are like these; --json has all.")
