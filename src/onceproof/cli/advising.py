"""The command that says whether an upgrade is safe."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from onceproof.cli.asking import JsonOption, exact_releases
from onceproof.cli.terminal import err, out, print_failures, print_written
from onceproof.model.cell import Cell
from onceproof.model.errors import UsageError
from onceproof.model.json_file import encode
from onceproof.model.matrix import Request
from onceproof.model.release import Release
from onceproof.settings import get_settings


def advise_(
    current: Annotated[
        str | None,
        typer.Argument(metavar="A", help="The release of Kafka Streams that you run, e.g. 3.9.1, or a line, 3.9."),
    ] = None,
    target: Annotated[
        str | None, typer.Argument(metavar="B", help="The release that you want to go to, e.g. 4.3.1, or newest.")
    ] = None,
    application: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|DIR",
            help="The features of your application, as TOML (see --template), or its folder, as for `app run`.",
        ),
    ] = None,
    template: Annotated[bool, typer.Option("--template", help="Print such a file, with comments, and stop.")] = False,
    run_: Annotated[
        bool, typer.Option("--run", help="First run the missing cells; their time is printed before.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answer as one page instead of printing it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Decide whether it is safe to go from A to B: known issues, measurements, gaps, what to do.

    Exit: 0 nothing known against it, 1 something, 2 usage, 3 not enough was checked, 4 error.
    """
    from onceproof.advice.advising import advise, lacking
    from onceproof.advice.asking import ask, changes_of, check_releases, find_application, own_runs, read_application
    from onceproof.model.application import template as application_template
    from onceproof.page.upgrade import terminal, write_advice
    from onceproof.pipeline.estimate import about

    if template:
        print(application_template().rstrip())
        return
    if current is None or target is None:
        raise UsageError(
            "Name two releases, the one that you run and the one that you want to go to, e.g. 3.9.1 newest."
        )
    way = (Release.parse(*exact_releases([current])), Release.parse(*exact_releases([target])))
    url = get_settings().database_url
    is_own = application is not None and application.is_dir()
    described = read_application(application) if application and not is_own else None
    own = own_runs(application, get_settings().runs, way) if application and is_own else None
    check_releases(way, url, get_settings().installation)
    changes = None
    if application and is_own:
        described = find_application(get_settings().installation, application, way[1])
        changes = changes_of(get_settings().installation, application, way)
    question = ask(*way, url, described, own, changes)
    if run_ and (cells := lacking(question)):
        _run_cells(cells)
        question = ask(*way, url, described, own, changes)
    if cells := lacking(question):
        question = replace(question, takes=about(_hours(_estimate(cells))))
    advice = advise(question)
    if html is not None:
        write_advice(advice, get_settings().runs, html)
    if as_json:
        print(json.dumps(encode(advice)))
    elif html is not None:
        print_written(html)
    else:
        for part in terminal(advice):
            out.print(part)
    raise typer.Exit(advice.exit_code)


def _estimate(cells: list[Cell]) -> list[tuple[Request, dict[str, Any]]]:
    """The runs that have these cells, each with what it amounts to."""
    from onceproof.advice.asking import requests
    from onceproof.pipeline.estimate import estimate

    return [(request, estimate(request)) for request in requests(cells)]


def _hours(asked: Iterable[tuple[Request, Mapping[str, Any]]]) -> float:
    return float(sum(estimated["hours"] for _, estimated in asked))


def _run_cells(cells: list[Cell]) -> None:
    """Say what it takes to run cells, and run them; progress goes to the error stream."""
    from onceproof.pipeline import run as pipeline
    from onceproof.pipeline.estimate import about, table

    asked = _estimate(cells)
    for cell in cells:
        err.print(f"lacking: {cell.title}", markup=False, soft_wrap=True)
    for _, estimated in asked:
        err.print(table(estimated))
    takes = about(_hours(asked)).capitalize()
    err.print(f"{takes} in all, positive controls and one start of Airflow for each table included.")
    for request, _ in asked:
        print_failures(pipeline.run(request, console=err).failures)
