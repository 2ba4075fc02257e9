"""The command that searches for unknown failures."""

import json
from dataclasses import replace
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from onceproof.campaigns.search.log import Exploration, ExplorationFolder
from onceproof.cli.asking import (
    BrokerOption,
    JsonOption,
    MavenRepoOption,
    PlantOption,
    ScenariosOption,
    new_run_id,
    resolve_brokers,
    resolve_streams,
    seed_or_random,
)
from onceproof.cli.terminal import out, progress
from onceproof.model.errors import UsageError
from onceproof.model.json_file import encode
from onceproof.model.matrices import BROKER
from onceproof.settings import get_settings


def explore(
    streams: Annotated[
        str | None, typer.Option(metavar="V|DIR", help="Kafka Streams release, or newest, or the folder of a build.")
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.1, help="Start no trial after this many minutes.")] = 60.0,
    broker: BrokerOption = BROKER,
    maven_repo: MavenRepoOption = [],
    scenario_: ScenariosOption = [],
    set_: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of every schedule; repeatable."),
    ] = [],
    seed: Annotated[
        int | None, typer.Option(min=0, help="Random seed of all schedules; by default a random one.")
    ] = None,
    uniform: Annotated[
        bool,
        typer.Option(
            "--uniform",
            help="Draw each schedule uniformly from all scenarios, regardless of earlier trials, for comparison.",
        ),
    ] = False,
    plant_: PlantOption = None,
    bisect: Annotated[
        bool, typer.Option("--bisect", help="Also find the releases that show a finding, within the minutes.")
    ] = False,
    resume: Annotated[
        str | None, typer.Option(metavar="ID|last", help="Continue this search, as it was asked for.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Search a release for failures that no known issue explains: docs/exploring.md.

    Exit: 0 none found, 1 at least one, 2 usage, 3 no trial was exercised, 4 error.
    """
    from onceproof.campaigns.requests import ExploreRequest
    from onceproof.campaigns.search import verbs
    from onceproof.campaigns.search.explorer import last_of, read_request
    from onceproof.processes.signals import interruptible

    root = get_settings().explorations
    if resume is not None:
        if streams or broker != BROKER or maven_repo or scenario_ or set_ or seed is not None or plant_ or uniform:
            raise UsageError(
                f"--resume {resume} continues what was asked for then: only --minutes and --bisect can be added."
            )
        folder = last_of(root) if resume == "last" else ExplorationFolder(root / resume)
        asked = read_request(folder)
        asked = replace(asked, bisect=asked.bisect or bisect)
    elif streams is not None:
        folder = ExplorationFolder(root / new_run_id())
        [streams], [broker] = resolve_streams([streams], maven_repo), resolve_brokers([broker], maven_repo)
        request = ExploreRequest(
            streams=(streams,),
            broker=broker,
            scenario=tuple(scenario_),
            settings=tuple(set_),
            seed=seed,
            bisect=bisect,
            uniform=uniform,
            plant=plant_,
        )
        asked = verbs.ask_for(request, streams, folder.path.name, seed_or_random(seed))
    else:
        raise UsageError("Name a release to search with --streams, or a search to continue with --resume.")
    with interruptible(), progress(f"{asked.streams}, seed {asked.seed}") as report:
        exploration = verbs.explore(folder, asked, 60 * minutes, report, named=bool(scenario_))
    if as_json:
        print(json.dumps(encode(exploration)))
    else:
        print_search(exploration)
    raise typer.Exit(exploration.exit_code)


def print_search(exploration: Exploration) -> None:
    """The result of a search, for people."""
    how = ", ".join(["drawn uniformly" if exploration.uniform else "defaults first", *exploration.settings])
    out.print(
        f"[bold]{exploration.streams}[/], seed {exploration.seed}, {how}: {exploration.trials:,} trials in "
        f"{exploration.seconds / 60:.1f} minutes, {exploration.exercised:,} exercised, "
        f"{exploration.errors:,} that say nothing, {exploration.coverage:,} marks and pairs reached"
    )
    if exploration.known:
        table = Table("known", "trials", "after", "first", box=None, pad_edge=True)
        for known in exploration.known:
            table.add_row(", ".join(known.issues), str(known.trials), f"{known.after:,.0f} s", known.command)
        out.print(table)
    for finding in exploration.findings:
        out.print(
            f"[bold red]finding {finding.number}[/]: {escape(finding.title)}, after {finding.after:,.0f} s",
            soft_wrap=True,
        )
        out.print(f"  {finding.command}", markup=False, soft_wrap=True)
        out.print(f"  red in {finding.smallest_rate} more{'' if finding.is_settled else ', not shrunk to the end'}")
        if finding.releases:
            out.print(f"  {finding.releases.summary}", markup=False, soft_wrap=True)
    if not exploration.findings:
        out.print("[green]nothing that no known issue explains[/]")
    for what, why in exploration.left_out.items():
        out.print(f"  [yellow]left out[/]: {escape(f'{what}: {why}')}", soft_wrap=True)
    out.print(f"Folder  {exploration.folder}", markup=False, soft_wrap=True)
