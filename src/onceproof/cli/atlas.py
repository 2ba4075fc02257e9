"""Commands for the atlas: verdicts that leave the machine that reached them."""

import json
import time
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from onceproof.cli.asking import JsonOption, exact_releases
from onceproof.cli.terminal import err, out, print_written
from onceproof.model.cell import is_run_id
from onceproof.model.errors import ExitCode, UsageError
from onceproof.model.json_file import check_target, replacing, write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.settings import get_settings

FileArgument = Annotated[Path | None, typer.Argument(metavar="FILE", help="By default the one that is shipped.")]


def export(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN", show_default=False, help="By default all judged runs that are here.")
    ] = [],
    output: Annotated[Path, typer.Option(metavar="FILE", help="The atlas to write.")] = Path("atlas.sqlite"),
) -> None:
    """Write the verdicts of runs into a file that can be published, without paths, hosts and people.

    The same runs give the same bytes. Exit: 0, 2 usage, 4 error.
    """
    from onceproof.atlas.exporting import export
    from onceproof.atlas.file import write_atlas

    found = export(_find_judged(runs))
    for what, why in found.left_out.items():
        err.print(f"{what} is left out: {why}.", markup=False, soft_wrap=True, highlight=False)
    if not found.measurements:
        raise UsageError("There is nothing to export: no verdict of these runs belongs into an atlas.")
    _report_written(output, write_atlas(output, found.measurements), len(found.measurements))


def _find_judged(names: list[str]) -> list[RunFolder]:
    """The runs of these names, or all judged ones that are here.

    Raises:
        UsageError: there is none.
    """
    from onceproof.results.evidence.case import find_run

    folder = get_settings().runs
    judged = (path.parent.name for path in sorted(folder.glob("*/verdicts.json")))
    names = names or list(filter(is_run_id, judged))
    if not names:
        raise UsageError(f"{folder} has no judged run; `onceproof run` makes one.")
    return [find_run(folder, name) for name in dict.fromkeys(names)]


def merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Atlases, of several machines or nights.")],
    output: Annotated[Path, typer.Option(metavar="FILE", help="The atlas to write.")],
) -> None:
    """Merge atlases; their order does not matter.

    It keeps the newest red verdict of each cell and harness, and the newest other one. Exit: 0, 2 usage, 4 error.
    """
    from onceproof.atlas.file import read_atlas, write_atlas
    from onceproof.atlas.measurement import merge

    found = merge(*map(read_atlas, files))
    _report_written(output, write_atlas(output, found), len(found))


def _report_written(file: Path, checksum: str, number: int) -> None:
    print_written(file)
    measurements = "1 measurement" if number == 1 else f"{number} measurements"
    out.print(f"{measurements}, checksum {checksum}", markup=False, soft_wrap=True, highlight=False)


def rejudge(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN", show_default=False, help="By default all judged runs that are here.")
    ] = [],
) -> None:
    """Judge runs again, by the readers, suites and known issues of now: nothing is driven.

    Topics, log segments, stores and timelines are those that were measured. Afterwards `atlas export` takes the new
    verdicts. Exit: 0 no verdict has changed, 1 one has, 2 usage, 4 error.
    """
    from onceproof.pipeline.rejudging import is_half_replaced, rejudge
    from onceproof.results.database import store_run

    folders = (RunFolder(get_settings().runs / name) for name in runs if is_run_id(name))
    halves = {run.run_id: run for run in folders if is_half_replaced(run)}
    others = [name for name in runs if name not in halves]
    changed = False
    for run in [*halves.values(), *(_find_judged(others) if others or not runs else ())]:
        begin = time.monotonic()
        found = rejudge(run)
        store_run(run, get_settings().database_url)
        seconds = time.monotonic() - begin
        changed |= bool(found.changes)
        out.print(
            f"{found.run}: {found.trials} trials judged again in {seconds:,.0f} s; {len(found.changes)} of "
            f"{found.cells} verdicts changed",
            markup=False,
            soft_wrap=True,
            highlight=False,
        )
        for change in found.changes:
            before = change.before or "not judged"
            out.print(f"  {change.cell}: {before}, now {change.now}: {change.sentence}", markup=False, soft_wrap=True)
    raise typer.Exit(ExitCode.ANOMALY if changed else ExitCode.OK)


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="An atlas, or `shipped`.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="An atlas, or `shipped`.")],
    as_json: JsonOption = False,
) -> None:
    """Print the cells whose verdict differs, for a release note or an alert.

    Exit: 0 nothing is newly red, 1 a cell is newly red or its red is no longer explained, 2 usage.
    """
    from onceproof.atlas.comparing import differences, is_worse
    from onceproof.harness import harness_versions
    from onceproof.results.history import NEW
    from onceproof.results.table import change_line

    changes, gone = differences(_read(old), _read(new), harness_versions())
    rows = [change.to_dict() for change in changes]
    if as_json:
        print(json.dumps({"changes": rows, "gone": [cell.key for cell in gone]}))
    else:
        for line in [change_line(change) for change in rows if change["change"] != NEW]:
            out.print(line, markup=False, soft_wrap=True, highlight=False)
        new_cells = sum(change["change"] == NEW for change in rows)
        changed = len(rows) - new_cells
        counts = f"{changed} changed, {new_cells} new, {len(gone)} gone"
        out.print(f"{counts}.", markup=False, highlight=False)
    raise typer.Exit(ExitCode.ANOMALY if is_worse(changes) else ExitCode.OK)


def show(file: FileArgument = None, as_json: JsonOption = False) -> None:
    """Print how many cells of the matrix `atlas` are measured, by release.

    Exit: 0, 2 usage.
    """
    from onceproof.atlas.comparing import coverage
    from onceproof.atlas.plan import possible_cells
    from onceproof.harness import harness_versions

    found = _read(file)
    rows = coverage(found, possible_cells(get_settings().installation), harness_versions())
    if as_json:
        print(json.dumps({"measurements": len(found), "releases": [_row(row) for row in rows]}))
        return
    table = Table("release", "measured", "possible", "by this harness", "verdicts", box=None)
    for row in rows:
        numbers = (str(row.measured), str(row.possible), str(row.current))
        counts = "  ".join(f"{verdict.sign} {count}" for verdict, count in row.counts.items())
        table.add_row(str(row.release), *numbers, Text(counts))
    out.print(table)
    measured, possible = sum(row.measured for row in rows), sum(row.possible for row in rows)
    days = sorted({measurement.day for measurement in found})
    when = f", measured from {days[0]} to {days[-1]}" if days else ""
    versions = ", ".join(sorted({measurement.version for measurement in found}))
    summary = f"{measured} of {possible} cells{when}, by Onceproof {versions}."
    out.print(summary if found else "It has no cell.", markup=False, soft_wrap=True, highlight=False)


def site(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="An empty folder, or one with an earlier site.")],
    file: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="An atlas; by default the one that is shipped.")
    ] = None,
    url: Annotated[str, typer.Option(metavar="URL", help="The address where it will be published, for the feed.")] = "",
) -> None:
    """Write the atlas as static pages, which need no server: releases, known issues, upgrades, a search and a feed.

    Exit: 0, 2 usage, 4 error.
    """
    from onceproof.atlas.plan import possible_cells, read_published
    from onceproof.harness import harness_versions
    from onceproof.model.known_issues import registry
    from onceproof.page.atlas import Atlas, write_site

    installation = get_settings().installation
    known, possible = read_published(installation), possible_cells(installation)
    found = Atlas(tuple(_read(file)), known.releases, possible, registry(), harness_versions(), url)
    size = write_site(found, folder)
    out.print(f"{folder / 'index.html'}, {size / 2**20:.1f} MiB in all", markup=False, soft_wrap=True, highlight=False)


def badge(
    release: Annotated[str, typer.Argument(metavar="V", help="A release, or newest, previous, a line.")],
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it as a picture.")] = None,
    endpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answer of an endpoint for shields.io.")
    ] = None,
) -> None:
    """Print in one line what the registry, your runs and the atlas know of a release, or write it as a badge.

    Exit: 0, 2 usage, 4 error.
    """
    from onceproof.advice.asking import check_releases
    from onceproof.atlas.shipped import select_cells
    from onceproof.harness import harness_versions
    from onceproof.model.known_issues import registry
    from onceproof.page.badge import Badge

    for target in (svg, endpoint):
        check_target(target)
    wanted = Release.parse(*exact_releases([release]))
    check_releases([wanted], get_settings().database_url, get_settings().installation)
    cells = select_cells(get_settings().database_url, [wanted], harness_versions())
    made = Badge.of(wanted, [measurement.verdict for measurement in cells if measurement.is_decided], registry())
    if svg is not None:
        with replacing(svg, named=True) as draft:
            draft.write_text(made.svg(), encoding="utf-8")
        print_written(svg)
    if endpoint is not None:
        write_json(endpoint, made.endpoint(), named=True)
        print_written(endpoint)
    if svg is None and endpoint is None:
        out.print(f"{made.label}: {made.message}", markup=False, soft_wrap=True, highlight=False)


def _row(row: Any) -> dict[str, object]:
    counts = {str(verdict): count for verdict, count in row.counts.items()}
    numbers = {"measured": row.measured, "possible": row.possible, "current": row.current}
    return {"release": str(row.release), **numbers, "verdicts": counts}


def _read(file: Path | None) -> Collection[Any]:
    """The measurements of a file, or of the one that is shipped."""
    from onceproof.atlas.file import read_atlas
    from onceproof.atlas.shipped import SHIPPED, read_shipped

    return read_shipped() if file is None or str(file) == SHIPPED else read_atlas(file)
