"""The command that searches for failures that nobody knows."""

import json
from dataclasses import replace
from typing import Annotated

import typer
from rich.table import Table

from onceproof.cli.asking import (
    BrokerOption,
    JsonOption,
    MavenRepoOption,
    ScenariosOption,
    named_brokers,
    named_streams,
    new_run_id,
    seed_or_random,
)
from onceproof.cli.terminal import out, progress
from onceproof.model.errors import UsageError
from onceproof.model.explored import Asked, Exploration, ExplorationFolder
from onceproof.model.json_file import encoded
from onceproof.model.matrices import BROKER
from onceproof.model.plants import plant
from onceproof.model.release import Release
from onceproof.settings import get_settings

group = typer.Typer()


@group.command()
def explore(
    streams: Annotated[
        str | None, typer.Option(metavar="V|DIR", help="Kafka Streams release, e.g. 4.3.1, or the folder of a build.")
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.1, help="No trial begins after so many.")] = 60.0,
    broker: BrokerOption = BROKER,
    maven_repo: MavenRepoOption = [],
    scenario_: ScenariosOption = [],
    seed: Annotated[
        int | None, typer.Option(min=0, help="From which all schedules follow; by default a random one.")
    ] = None,
    uniform: Annotated[
        bool, typer.Option("--uniform", help="Draw each schedule afresh, whatever the ones before have reached.")
    ] = False,
    plant_: Annotated[
        str | None, typer.Option("--plant", metavar="NAME", help="Put this bug into the release: `onceproof plants`.")
    ] = None,
    bisect: Annotated[
        bool, typer.Option("--bisect", help="Also find the releases that show a finding, within the minutes.")
    ] = False,
    resume: Annotated[
        str | None, typer.Option(metavar="ID|last", help="Go on with this search, as it was asked for.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Search a release for failures that no known issue explains: docs/exploring.md.

    Exit: 0 none found, 1 at least one, 2 usage, 3 no trial was exercised, 4 error.
    """
    from onceproof.lab.exploring import Explorer, SharedBrokers, begun, grammar_of, held, last_of
    from onceproof.lab.processes import interruptible
    from onceproof.lab.releases import published_releases

    settings = get_settings()
    if resume is not None:
        if streams or broker != BROKER or maven_repo or scenario_ or seed is not None or plant_ or uniform:
            raise UsageError(
                f"--resume {resume} goes on with what was asked for then: give --minutes or --bisect beside it."
            )
        root = settings.explorations
        folder = last_of(root) if resume == "last" else ExplorationFolder(root / resume)
        asked = begun(folder)
    elif streams is not None:
        folder = ExplorationFolder(settings.explorations / new_run_id())
        asked = _asked(folder.path.name, streams, broker, maven_repo, scenario_, seed, plant_, uniform=uniform)
    else:
        raise UsageError("Name a release to search with --streams, or a search to go on with by --resume.")
    asked = replace(asked, bisect=asked.bisect or bisect)
    if asked.bisect and asked.plant:
        raise UsageError(
            f"{asked.plant} is only in the release that it is planted into: leave out --bisect, or the plant."
        )
    grammar, left_out = grammar_of(settings.installation, asked, named=bool(scenario_))
    releases = published_releases(settings.installation) if asked.bisect else ()
    bench = SharedBrokers(settings.installation, Release.parse(asked.broker), folder.path)
    with interruptible(), held(folder), progress(f"{asked.streams}, seed {asked.seed}") as report:
        asked.write(folder.asked_file)
        try:
            explorer = Explorer(folder, asked, grammar, bench, report, releases=releases)
            told = explorer.explore(60 * minutes, left_out)
        finally:
            bench.stop()
    if as_json:
        print(json.dumps(encoded(told)))
    else:
        _print(told)
    raise typer.Exit(told.exit_code)


def _asked(
    run: str,
    streams: str,
    broker: str,
    maven_repo: list[str],
    scenarios: list[str],
    seed: int | None,
    plant_: str | None,
    *,
    uniform: bool,
) -> Asked:
    """What is asked for, when the releases are there and the bug can be planted.

    Raises:
        UsageError: they are not, or it cannot.
    """
    from onceproof.harness import harness_version
    from onceproof.lab.agent import check_plantable
    from onceproof.lab.artifacts import check_published, streams_class_path
    from onceproof.lab.java import require_java
    from onceproof.scenarios import scenario
    from onceproof.scenarios.exploring import quick

    for name in scenarios:
        scenario(name)
    planted = None if plant_ is None else plant(plant_)
    installation = get_settings().installation
    [named], [brokers] = named_streams([streams], maven_repo), named_brokers([broker], maven_repo)
    release, of_brokers = Release.parse(named), Release.parse(brokers)
    require_java(installation.java, of_brokers.oldest_java, f"a broker of Kafka {brokers}")
    check_published(installation, {release, of_brokers})
    streams_class_path(installation, release)
    if planted is not None:
        check_plantable(installation, planted, release)
    return Asked(
        run=run,
        streams=named,
        broker=brokers,
        scenarios=tuple(dict.fromkeys(scenarios)) or quick(),
        seed=seed_or_random(seed),
        uniform=uniform,
        plant=plant_,
        harness=harness_version(),
    )


def _print(told: Exploration) -> None:
    """What a search came to, for people."""
    how = "drawn uniformly" if told.uniform else "steered"
    out.print(
        f"[bold]{told.streams}[/], seed {told.seed}, {how}: {told.trials:,} trials in {told.seconds / 60:.1f} minutes, "
        f"{told.exercised:,} exercised, {told.errors:,} that say nothing, {told.coverage:,} marks and pairs reached"
    )
    if told.known:
        table = Table("known", "trials", "after", "first", box=None, pad_edge=True)
        for known in told.known:
            table.add_row(", ".join(known.issues), str(known.trials), f"{known.after:,.0f} s", known.command)
        out.print(table)
    for finding in told.findings:
        out.print(
            f"[bold red]finding {finding.number}[/]: {finding.title}, after {finding.after:,.0f} s", soft_wrap=True
        )
        out.print(f"  {finding.command}", markup=False, soft_wrap=True)
        out.print(f"  red in {finding.smallest_rate} more{'' if finding.is_settled else ', not shrunk to the end'}")
        if finding.releases:
            out.print(f"  {finding.releases.told}", markup=False, soft_wrap=True)
    if not told.findings:
        out.print("[green]nothing that no known issue explains[/]")
    for what, why in told.left_out.items():
        out.print(f"  [yellow]left out[/]: {what}: {why}", soft_wrap=True)
    out.print(f"Folder  {told.folder}", markup=False, soft_wrap=True)
