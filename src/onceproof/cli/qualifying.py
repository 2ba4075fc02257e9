"""The command that shows whether the harness still sees on a release."""

import json
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from onceproof.cli.asking import (
    JsonOption,
    MavenRepoOption,
    ScenariosOption,
    SeedOption,
    new_run_id,
    resolve_brokers,
    resolve_streams,
    seed_or_random,
)
from onceproof.cli.terminal import out, progress
from onceproof.model.json_file import encode
from onceproof.model.qualification import Qualification, Sight
from onceproof.model.run_folder import RunFolder
from onceproof.settings import get_settings

STYLES = {
    Sight.SEEN: "green",
    Sight.MISSING: "bold white on red",
    Sight.FAILED: "bold magenta",
    Sight.UNKNOWN: "yellow",
}


def qualify(
    release: Annotated[
        str, typer.Argument(metavar="V|DIR", help="Kafka Streams release, e.g. 4.4.0, or the folder of a build.")
    ],
    broker: Annotated[
        str | None, typer.Option("--broker", metavar="V|DIR", help="Broker release, or a build; by default the same.")
    ] = None,
    scenario_: ScenariosOption = [],
    maven_repo: MavenRepoOption = [],
    seed: SeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that Onceproof can detect failures on a release, before judging it.

    It looks for each sign that Onceproof relies on, in a trial that must show it: what the brokers' logs hold, phrases
    of Kafka Streams' logs, injected bugs, known issues.

    Exit: 0 the release qualifies, 1 the harness has to learn what Kafka changed, 2 usage, 3 the trials decide nothing,
    4 error.
    """
    from onceproof.campaigns.qualification import verbs
    from onceproof.campaigns.requests import QualifyRequest
    from onceproof.processes.signals import interruptible

    [streams] = resolve_streams([release], maven_repo)
    [brokers] = resolve_brokers([broker or release], maven_repo)
    request = QualifyRequest(streams=(streams,), broker=brokers, scenario=tuple(scenario_), seed=seed)
    run = RunFolder(get_settings().runs / new_run_id())
    with interruptible(), progress(f"qualification of {streams} on brokers {brokers}") as report:
        found = verbs.qualify(run, request, streams, seed_or_random(seed), report)
    if as_json:
        print(json.dumps({**encode(found), "lessons": found.lessons, "exit_code": int(found.exit_code)}))
    else:
        _print(found, run)
    raise typer.Exit(found.exit_code)


def _print(found: Qualification, run: RunFolder) -> None:
    title = f"{found.streams} on brokers {found.broker}, {found.trials} trials in {found.seconds:,.0f} s"
    table = Table(title=Text(title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in ("part", "name", "sight"):
        table.add_column(name, no_wrap=True)
    table.add_column("trial")
    table.add_column("what was seen", ratio=1)
    for row in found.rows:
        sight = Text(f"{row.sight.sign} {row.sight}", STYLES.get(row.sight, "dim"))
        table.add_row(row.part, Text(row.name), sight, Text(row.trial), Text(row.reason))
    out.print(table)
    if found.lessons:
        out.print("The harness has to learn:")
        for lesson in found.lessons:
            out.print(f"  - {lesson}", markup=False, soft_wrap=True)
    outcome = {0: "qualifies", 1: "does not qualify"}.get(
        found.exit_code, "may qualify or not: the trials cannot decide"
    )
    out.print(f"{found.streams} on brokers {found.broker} {outcome} (harness {found.harness}).", markup=False)
    out.print(f"Folder  {run.path}", markup=False, soft_wrap=True)
