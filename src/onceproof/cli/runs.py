"""Commands that list cells and run them under Airflow."""

import json
import os
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from onceproof.cli.asking import (
    BrokersOption,
    JsonOption,
    JunitOption,
    MavenRepoOption,
    ScenariosOption,
    SummaryOption,
    exact_releases,
    resolve_brokers,
    resolve_streams,
)
from onceproof.cli.results import write_exports
from onceproof.cli.terminal import err, out, print_failures
from onceproof.faults import FAULTS
from onceproof.model.errors import ExitCode, HarnessError, OnceproofError, UsageError
from onceproof.model.files import VerdictRow
from onceproof.model.json_file import check_target, encode
from onceproof.model.known_issues import registry
from onceproof.model.matrices import BROKER, DEFAULT_MATRIX, MATRICES, Matrix, read_matrix
from onceproof.model.matrix import Request, expand
from onceproof.model.published import NEWEST
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.results.qualified import distinct
from onceproof.results.table import change_line, places, verdict_table
from onceproof.scenarios import CATALOGUE, SCENARIOS, scenario
from onceproof.scenarios.base import Scenario
from onceproof.settings import get_settings

if TYPE_CHECKING:
    from onceproof.lab.external_brokers import ExternalCluster

FAULT = "fault"  # the parameter that names the fault that is injected
MATRIX, WHICH_MATRIX = "NAME|FILE", "One that `onceproof scenario list` names, or a TOML file with yours."


def list_(
    names: Annotated[
        list[str], typer.Argument(metavar="SCENARIO", show_default=False, help="Show these only, and no matrices.")
    ] = [],
) -> None:
    """Show scenarios with their variants and parameters, then faults with theirs, then matrices."""
    shown = [scenario(name) for name in names] or list(SCENARIOS.values())
    for scenario_ in shown:
        _list_scenario(scenario_)
    _list_faults({fault.name for scenario_ in shown for fault in scenario_.faults})
    if not names:
        _list_matrices()


def _list_scenario(scenario_: Scenario) -> None:
    table = Table(
        "variant",
        "what it changes",
        title=f"scenario {scenario_.name}: {scenario_.title}",
        title_justify="left",
        box=None,
    )
    for variant in scenario_.variants.values():
        table.add_row(variant.name, variant.description)
    out.print(table)
    of_faults = {name for fault in FAULTS.values() for name in fault.parameters.describe()}
    table = Table("parameter", "default", "what it is", box=None)
    for name, parameter in scenario_.settable.items():
        if name not in of_faults:
            may_be = f": {', '.join(parameter.choices)}" if name == FAULT else ""
            table.add_row(name, str(parameter.default), f"{parameter.description}{may_be}")
    out.print(table, "")


def _list_faults(names: Collection[str]) -> None:
    """The faults of these names, each with its parameters: once for all scenarios that allow it."""
    table = Table("fault", "parameter", "default", "what it is", box=None)
    for fault in FAULTS.values():
        if fault.name in names:
            table.add_row(fault.name, "", "", fault.effect)
            for name, parameter in fault.parameters.describe().items():
                table.add_row("", name, str(parameter.default), parameter.description)
    if table.row_count:
        out.print(table, "")


def _list_matrices() -> None:
    """The matrices, with what their words mean as far as that is known without asking Maven, which takes seconds."""
    from onceproof.atlas.plan import read_published
    from onceproof.scenarios.cover import exact

    table = Table("matrix", "cells", "what it is for", title_justify="left", box=None)
    known = read_published(get_settings().installation)
    for matrix in MATRICES.values():
        cells = expand(exact(Request(matrix.name), lambda: known, registry(), CATALOGUE), CATALOGUE).cells
        name = f"{matrix.name} (default)" if matrix.name == DEFAULT_MATRIX else matrix.name
        releases = ", ".join(map(str, sorted({release for cell in cells for release in (cell.streams, cell.running)})))
        table.add_row(name, str(len(cells)), f"{matrix.description} Streams {releases}.")
    out.print(table)
    out.print(known.meaning(NEWEST), markup=False, highlight=False, soft_wrap=True)


def cover(
    matrix: Annotated[str, typer.Argument(metavar=MATRIX, help=WHICH_MATRIX)],
    broker: Annotated[list[str], typer.Option(metavar="V", help="Broker release; repeatable.")],
    scenario_: ScenariosOption = [],
) -> None:
    """Print the cells that a matrix lacks so that each of its variants and releases meets each of these brokers.

    Far fewer than all: each pair meets once. They belong under `cells` of the matrix, which `run --matrix` reads.
    """
    from onceproof.pipeline.steps import read_published_here
    from onceproof.scenarios.cover import exact, lacking

    brokers = [Release.parse(name) for name in exact_releases(broker)]
    asked = exact(Request(find_matrix(matrix), scenarios=tuple(scenario_)), read_published_here, registry(), CATALOGUE)
    cells = expand(asked, CATALOGUE).cells
    lines = [f'  "{cell.key}",' for cell in lacking(cells, brokers, CATALOGUE)]
    print("\n".join(["cells = [", *lines, "]"]))


def find_matrix(matrix: str) -> str | Matrix:
    """The requested matrix: by its name, or from a file."""
    return read_matrix(Path(matrix)) if matrix.endswith(".toml") else matrix


def run(
    matrix: Annotated[str, typer.Option(metavar=MATRIX, help=WHICH_MATRIX)] = DEFAULT_MATRIX,
    streams: Annotated[
        list[str],
        typer.Option(
            metavar="V|DIR", help="Kafka Streams release, or newest, previous, a line; or a build; repeatable."
        ),
    ] = [],
    restart_on: Annotated[
        list[str], typer.Option(metavar="V|DIR", help="Release to restart the application on; repeatable.")
    ] = [],
    broker: Annotated[list[str], typer.Option(metavar="V|DIR", help="Broker release, or a build; repeatable.")] = [],
    brokers: BrokersOption = None,
    maven_repo: MavenRepoOption = [],
    scenario_: ScenariosOption = [],
    variant: Annotated[list[str], typer.Option(metavar="N", help="Repeatable.")] = [],
    trials: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Exactly this many trials of each cell, whatever they show; more only of positive controls, so that a "
            "green can be earned, and with --budget.",
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(min=1, help="At most this many trials of a cell whose verdict needs more.")
    ] = None,
    risk: Annotated[
        float | None,
        typer.Option(min=0.01, max=0.5, metavar="P", help="Accepted probability that a green misses a bug, e.g. 0.05."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Resume this interrupted run; `last` is the newest."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Only the I-th of N parts of the cells, for several machines; `atlas merge` joins them."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say which cells and how many trials that makes, and how long it takes.")
    ] = False,
    junit: JunitOption = None,
    summary: SummaryOption = None,
    plant_: Annotated[str | None, typer.Option("--plant", hidden=True)] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the regression matrix under Airflow and print its verdicts.

    Positive controls are added where the request has none, and trials where a verdict needs more of them.

    Exit: 0 as the registry of known issues expects, 1 a regression, 2 usage, 3 something inconclusive, 4 an error.
    """
    from onceproof.pipeline import run as pipeline
    from onceproof.results.history import changes_of

    for target in (junit, summary):
        check_target(target)
    if plant_ is not None:
        raise UsageError(
            f"{plant_!r} cannot be planted into a run: its cells are evidence about Kafka as it was published. Use "
            "`onceproof trial --plant` or `onceproof check sensitivity`."
        )
    external = None if brokers is None else _external(brokers, resolve_brokers(broker, maven_repo))
    request = Request(
        matrix=find_matrix(matrix),
        streams=resolve_streams(streams, maven_repo),
        restarts=resolve_streams(restart_on, maven_repo),
        brokers=(str(external.release),) if external else resolve_brokers(broker, maven_repo),
        scenarios=tuple(scenario_),
        variants=tuple(variant),
        trials=trials,
        budget=budget,
        risk=risk,
    )
    interrupted = None
    if resume is not None:
        interrupted, requested = pipeline.find_interrupted(resume)
        if request != Request() or shard is not None:
            raise UsageError(f"--resume {resume} resumes that run as it was requested; leave the other options out.")
        request = requested
    if shard is not None:
        request = _of_shard(request, shard)
    if dry_run:
        from onceproof.pipeline.estimate import estimate, table

        estimated = estimate(request)
        if as_json:
            print(json.dumps(estimated))
        else:
            out.print(table(estimated))
            for key in estimated["keys"]:
                out.print(key, markup=False, highlight=False, soft_wrap=True)
            out.print(estimated["brokers"], markup=False, highlight=False, soft_wrap=True)
        return
    begin = time.monotonic()
    finished = pipeline.run(request, console=err, interrupted=interrupted, external=external)
    verdicts = VerdictRow.read_all(finished.run.verdicts_file)
    code, changes, failures = finished.exit_code, None, list(finished.failures)
    try:
        changes = [change.to_dict() for change in changes_of(finished.run, get_settings().database_url)]
    except HarnessError as error:  # the verdicts stand without it
        failures.append(f"What changed is not known. {error}")
    try:
        _export(finished.run, junit, summary)
    except OnceproofError as error:
        failures.append(str(error))
        code = code if code is ExitCode.ANOMALY else ExitCode.ERROR  # what is proved outweighs what failed
    if as_json:
        estimated = {"verdicts": encode(verdicts), "changes": changes}
        shown = {"run": finished.run.run_id, "exit_code": code, **estimated}
        paths = {"folder": str(finished.run.path), "data_docs": str(finished.run.data_docs)}
        print(json.dumps({**shown, "failures": failures, **paths, "seconds": _since(begin)}))
    else:
        title = f"Run {finished.run.run_id}: {len(verdicts)} cells in {_since(begin):.0f} s"
        out.print(verdict_table(verdicts, title))
        for sentence in distinct(verdict.unqualified for verdict in verdicts):
            out.print(sentence, markup=False, soft_wrap=True)
        for change in changes or ():
            out.print(change_line(change), markup=False, soft_wrap=True)
        print_failures(failures)
        out.print(f"Data Docs   {finished.run.data_docs.as_uri()}", markup=False, soft_wrap=True)
        out.print(f"Run folder  {finished.run.path}", markup=False, soft_wrap=True)
        for cell, folder in places(verdicts):
            out.print(f"  {cell}: {folder}", markup=False, soft_wrap=True)
    raise typer.Exit(code)


def _of_shard(request: Request, shard: str) -> Request:
    from onceproof.atlas.plan import Shard, select_shard
    from onceproof.pipeline.steps import read_published_here
    from onceproof.scenarios.cover import exact

    wanted = Shard.parse(shard)
    return select_shard(exact(request, read_published_here, registry(), CATALOGUE), wanted)


def _export(run: RunFolder, junit: Path | None, summary: Path | None) -> None:
    """Report to a build server what a run found, first by what cannot fail."""
    from onceproof.page.exports import annotations, report_of

    annotated = os.environ.get("GITHUB_ACTIONS") == "true"
    if junit or summary or annotated:
        report = report_of(run)
        for line in annotations(report) if annotated else ():
            print(line, file=sys.stderr)  # stdout may be JSON
        write_exports(report, junit, summary)


def _external(file: Path, releases: Sequence[str]) -> "ExternalCluster":
    from onceproof.lab.external_brokers import ExternalCluster

    if len(releases) > 1:
        raise UsageError(
            f"The brokers of {file} are of one release, and not of {' and '.join(releases)}; leave out all but one."
        )
    return ExternalCluster.read(get_settings().installation, file, Release.parse((*releases, BROKER)[0]).claimed)


def _since(begin: float) -> float:
    return round(time.monotonic() - begin, 1)
