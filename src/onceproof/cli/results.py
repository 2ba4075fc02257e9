"""Commands that show what was run."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from onceproof.campaigns.search.log import Exploration
from onceproof.cli.asking import JsonOption, JunitOption, SummaryOption
from onceproof.cli.exploring import print_search
from onceproof.cli.terminal import out, print_written, progress
from onceproof.model.errors import UsageError
from onceproof.results.table import cells_table, history_table
from onceproof.settings import get_settings

if TYPE_CHECKING:
    from onceproof.page.exports import RunReport


def releases(
    pre_releases: Annotated[bool, typer.Option("--pre-releases", help="Also candidates, such as 4.4.0-rc1.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the published releases of Kafka Streams, what was run on each or is in the atlas, and what was seen.

    Exit: 0, 4 Maven could not be asked.
    """
    from onceproof.atlas.shipped import count_releases
    from onceproof.lab.releases import list_published
    from onceproof.results.database import runs_of_releases
    from onceproof.results.seen import SeenRelease, read_seen

    with progress("asking Maven") as report:
        report("published releases")
        published = list_published(get_settings().installation, pre_releases)
    url = get_settings().database_url
    runs, seen, there = runs_of_releases(url), read_seen(url), count_releases()
    rows = [
        {
            "release": str(release),
            **runs.get(str(release), {"cells": 0, "last_run": None}),
            "in_atlas": there.get(release, 0),
            **seen.get(release, SeenRelease(release)).to_dict(),
        }
        for release in published
    ]
    if as_json:
        print(json.dumps(rows))
        return
    table = Table("release", "cells run", "last run", "in the atlas", "release_watch", box=None)
    for release, row in zip(published, rows, strict=True):
        watched = seen[release].summary if release in seen else ""
        counts = str(row["cells"] or ""), row["last_run"] or "[yellow]never[/]", str(row["in_atlas"] or "")
        table.add_row(row["release"], *counts, Text(watched))
    out.print(table)


def history(
    cell: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Cells whose releases, scenario and variant have all these words."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many runs are shown, the newest first.")] = 20,
    export: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all that is stored to a file.")] = None,
    import_: Annotated[
        Path | None, typer.Option("--import", metavar="FILE", help="Store what another database has exported.")
    ] = None,
    migrate: Annotated[
        bool,
        typer.Option(
            "--migrate", help="Bring the database of an older version to the schema of this one; keep a copy."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the runs and what each of them changed; with --cell, the verdicts of cells, here and in the atlas.

    Exit: 0, 2 the database has the schema of another version, 4 error.
    """
    from onceproof.atlas.shipped import read_shipped_runs
    from onceproof.pipeline.pruning import space_of
    from onceproof.results.history import cells_over_time, changes, newest_first, read_runs

    if migrate:
        _migrate()
        return
    if export is not None or import_ is not None:
        _transfer(export, import_)
        return
    runs = read_runs(get_settings().database_url)
    run_report: list[dict[str, Any]]
    if cell is None:
        changed = changes(runs)
        run_report = [run.to_dict(changed[run.id]) for run in runs[:limit]]
    else:
        runs = newest_first([*runs, *read_shipped_runs(cell, {run.id for run in runs})])
        run_report = [
            {**found.to_dict(), "cell": found.key, "verdicts": [{"created": r.created, **c.to_dict()} for r, c in past]}
            for found, past in (cells_over_time(runs, cell, limit) if runs else {}).items()
        ]
    if as_json:
        print(json.dumps({"runs" if cell is None else "cells": run_report}))
    elif not runs:
        out.print("No run is stored yet.")
    else:
        out.print(history_table(run_report) if cell is None else cells_table(run_report))
        if cell is None:
            out.print(str(space_of(get_settings())), highlight=False, soft_wrap=True)


def _migrate() -> None:
    from onceproof.results.database import is_missing, migrate

    url = get_settings().database_url
    if is_missing(url):
        out.print("No run is stored yet.")
        return
    done = migrate(url)
    out.print(str(done or "It has the schema of this version already."), soft_wrap=True, highlight=False)


def _transfer(export: Path | None, import_: Path | None) -> None:
    from onceproof.results.transfer import export_to, import_from

    url = get_settings().database_url
    if export is not None and import_ is not None:
        raise UsageError("One database is exported, and another one imports: give --export or --import.")
    if export is not None:
        count = export_to(export, url)
        out.print(f"{count} run{'' if count == 1 else 's'} exported to {export}.", soft_wrap=True, highlight=False)
    if import_ is not None:
        new, old = import_from(import_, url)
        out.print(f"{new} run{'' if new == 1 else 's'} imported, {old} {'was' if old == 1 else 'were'} there already.")


def evidence(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, or `last` for the newest judged one.")],
    cell: Annotated[
        str, typer.Argument(metavar="CELL", help="Key of a cell, or any part of it that no other cell has.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="The zip; default in `evidence/` of the run folder.")
    ] = None,
) -> None:
    """Write all that is known about a cell into one archive that can be attached to a JIRA issue as it is.

    CELL is a release if the run is one of `app run`.
    """
    from onceproof.results.evidence.archive import write_evidence
    from onceproof.results.evidence.case import find_run

    written = write_evidence(find_run(get_settings().runs, run_id, applications=True), cell, output)
    print_written(written)


def page(
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="On 127.0.0.1; 0 for any.")] = 8766,
) -> None:
    """Serve the results page without Airflow and its login, on this machine only."""
    from onceproof.page.serve import serve

    serve(get_settings(), port, lambda url: out.print(f"The page is at {url}, until Ctrl-C.", soft_wrap=True))


def report(
    run_id: Annotated[
        str, typer.Argument(metavar="RUN", help="Id of a run or a search, or `last` for the newest judged run.")
    ] = "last",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all of it, timelines included, as one page instead.")
    ] = None,
    junit: JunitOption = None,
    summary: SummaryOption = None,
    vote: Annotated[bool, typer.Option("--vote", help="Print plain text for the vote on a release instead.")] = False,
) -> None:
    """Print the matrix of a run, or what a search came to, or write the whole of it as one self-contained page."""
    from onceproof.page.exploring import find_known_search
    from onceproof.page.exports import report_of
    from onceproof.page.exports import vote as as_vote
    from onceproof.page.report import show_run, terminal, write_report, write_search
    from onceproof.results.evidence.case import find_run

    settings = get_settings()
    if (search := find_known_search(settings.explorations, run_id)) is not None:
        if junit or summary or vote:
            raise UsageError(f"{run_id} is a search, which has no verdicts: give --html alone, or nothing.")
        if html is None:
            print_search(Exploration.of(search.folder, search.asked, search.lines, search.findings.values()))
        else:
            write_search(search, html)
            print_written(html)
        return
    found, url = find_run(settings.runs, run_id), settings.database_url
    if junit or summary or vote:
        run_report = report_of(found)
        write_exports(run_report, junit, summary)
        if vote:
            print(as_vote(run_report))
            return
        for written in filter(None, (junit, summary)):
            print_written(written)
    if html is not None:
        write_report(found, url, html)
        print_written(html)
    elif not (junit or summary):
        for part in terminal(show_run(found, url)):
            out.print(part)


def write_exports(run_report: "RunReport", junit: Path | None, summary: Path | None) -> None:
    """Write a run in the forms that are asked for."""
    from onceproof.page.exports import write_junit, write_summary

    for write, target in ((write_junit, junit), (write_summary, summary)):
        if target is not None:
            write(run_report, target)
