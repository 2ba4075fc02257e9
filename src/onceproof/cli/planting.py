"""Commands that plant bugs."""

import json
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from onceproof.cli.asking import (
    BrokerOption,
    JsonOption,
    MavenRepoOption,
    ScenariosOption,
    SeedOption,
    StreamsOption,
    new_run_id,
    resolve_brokers,
    resolve_streams,
    seed_or_random,
)
from onceproof.cli.completion import complete_plant
from onceproof.cli.terminal import out, progress
from onceproof.model.extras import PIPELINE, require
from onceproof.model.matrices import BROKER
from onceproof.model.plants import plants
from onceproof.model.run_folder import RunFolder
from onceproof.results.table import sensitivity_table
from onceproof.settings import get_settings


def plants_(as_json: JsonOption = False) -> None:
    """Show the bugs that can be injected: what each does, and by which promises which scenarios must find it."""
    if as_json:
        print(json.dumps([plant_.to_dict() for plant_ in plants().values()]))
        return
    table = Table("plant", "what it does", "resembles", "releases", "found in, by", box=None, padding=(0, 2, 1, 0))
    for plant_ in plants().values():
        must = [f"{claim.scenario}: {', '.join(claim.promises)}" for claim in plant_.claims]
        cannot = [f"[dim]{name}: cannot show. {escape(why)}[/]" for name, why in plant_.equivalent.items()]
        table.add_row(plant_.name, plant_.effect, plant_.resembles or "", plant_.releases, "\n".join(must + cannot))
    out.print(table)


def sensitivity(
    streams: StreamsOption,
    scenario_: ScenariosOption = [],
    plant_: Annotated[
        list[str],
        typer.Option(
            "--plant", metavar="NAME", help="See `onceproof check plants`; repeatable.", autocompletion=complete_plant
        ),
    ] = [],
    trials: Annotated[int, typer.Option(min=1, help="Trials of each plant in each scenario.")] = 1,
    broker: BrokerOption = BROKER,
    maven_repo: MavenRepoOption = [],
    seed: SeedOption = None,
    again: Annotated[bool, typer.Option("--again", help="Start afresh, even if such a call was interrupted.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Plant bugs into a release, and see which of them its trials find; an interrupted call is resumed.

    Exit: 0 all found or unable to show, as declared, 1 one survived, 2 usage, 3 one did not fire, 4 error.
    """
    from onceproof.campaigns.requests import SensitivityRequest
    from onceproof.campaigns.sensitivity import verbs
    from onceproof.processes.signals import interruptible

    require(PIPELINE, "`onceproof check sensitivity`, of which Spark is one reader,")

    [streams], [broker] = resolve_streams([streams], maven_repo), resolve_brokers([broker], maven_repo)
    request = SensitivityRequest(
        streams=(streams,), broker=broker, scenario=tuple(scenario_), plant=tuple(plant_), trials=trials, seed=seed
    )
    asked = verbs.sense_for(request, streams, seed_or_random(seed))
    begun = None if again else verbs.find_unfinished(asked, seed)
    run, asked = begun or (RunFolder(get_settings().runs / new_run_id()), asked)
    with interruptible(), progress(asked.title) as report:
        answer = verbs.sense(run, asked, report)
    if as_json:
        print(json.dumps(answer))
    else:
        out.print(sensitivity_table(answer))
        for what, why in answer["masked"].items():
            out.print(f"{what}: {why}", markup=False, soft_wrap=True)
        out.print(f"Folder  {run.path}", markup=False, soft_wrap=True)
    raise typer.Exit(answer["exit_code"])
