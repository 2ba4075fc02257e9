"""Which commands there are: a few at first sight, and the others in groups."""

from collections.abc import Callable, Mapping
from typing import Any

import typer
from typer.core import TyperGroup

from onceproof.cli import (
    advising,
    applications,
    atlas,
    comparing,
    exploring,
    fuzzing,
    installation,
    planting,
    qualifying,
    results,
    runs,
    schemas,
    trials,
    verifying,
)
from onceproof.cli.terminal import err

Command = Callable[..., None]
PANEL = "Groups of commands"  # the heading in `onceproof --help`
# At first sight, in the order of the help: commands, and `app`, whose commands are about one application.
FIRST: Mapping[str, Command | Mapping[str, Command]] = {
    "demo": trials.demo,
    "run": runs.run,
    "advise": advising.advise_,
    "app": {
        "init": applications.init,
        "sample": applications.sample,
        "run": applications.run,
        "advise": applications.advise,
    },
    "trial": trials.trial,
    "bisect": trials.bisect,
    "fuzz": fuzzing.fuzz,
    "page": results.page,
}
GROUPS: Mapping[str, Mapping[str, Command]] = {
    "scenario": {"list": runs.list_, "cover": runs.cover},
    "results": {"history": results.history, "report": results.report, "evidence": results.evidence},
    "release": {
        "list": results.releases,
        "compare": comparing.compare,
        "badge": atlas.badge,
        "qualify": qualifying.qualify,
    },
    "issue": {"explore": exploring.explore, "shrink": trials.shrink, "verify-fix": verifying.verify_fix},
    "atlas": {
        "export": atlas.export,
        "merge": atlas.merge,
        "diff": atlas.diff,
        "show": atlas.show,
        "site": atlas.site,
        "rejudge": atlas.rejudge,
    },
    "check": {"plants": planting.plants_, "sensitivity": planting.sensitivity},
    "system": {
        "setup": installation.setup,
        "up": installation.up,
        "down": installation.down,
        "preflight": installation.preflight,
        "sweep": installation.sweep,
        "prune": installation.prune,
        "schema": schemas.schema_,
    },
}
HELP: Mapping[str, str] = {
    "app": "Run your own application under faults: docs/applications.md.",
    "scenario": "List scenarios, faults and matrices; find cells that a matrix lacks.",
    "results": "Read the results of runs: history, reports, evidence.",
    "release": "List, compare and qualify releases of Kafka Streams.",
    "issue": "Search for an issue, reduce its program, and prove its fix.",
    "atlas": "Read and write files of published verdicts: docs/atlas.md.",
    "check": "Check Onceproof itself with injected bugs.",
    "system": "Set up Onceproof, start and stop Airflow, check brokers, clean up.",
}
# The names of commands before there were groups, each with the words that replace it.
OLD_NAMES: Mapping[str, str] = {
    "releases": "release list",
    "compare": "release compare",
    "badge": "release badge",
    "qualify": "release qualify",
    "list": "scenario list",
    "cover": "scenario cover",
    "history": "results history",
    "report": "results report",
    "evidence": "results evidence",
    "explore": "issue explore",
    "shrink": "issue shrink",
    "verify-fix": "issue verify-fix",
    "plants": "check plants",
    "sensitivity": "check sensitivity",
    "setup": "system setup",
    "up": "system up",
    "down": "system down",
    "preflight": "system preflight",
    "sweep": "system sweep",
    "prune": "system prune",
    "schema": "system schema",
}
OLD_UNTIL = "0.4.0"  # the version that no longer has the old names


class Commands(TyperGroup):
    """The commands of `onceproof`; an old name is replaced by the new one, with a line on the error stream."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Typer gives it
        """The names in the order of the help; Typer lists commands before groups, and `app` is a group."""
        return [*FIRST, *GROUPS]

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command that the first words name; returns its name, itself, and the words that are left."""
        if args and (new := OLD_NAMES.get(args[0])):
            if not ctx.resilient_parsing:  # a shell that completes sets it
                text = f"`onceproof {args[0]}` is now `onceproof {new}`; the old name works until {OLD_UNTIL}."
                err.print(text, markup=False, soft_wrap=True)
            args = [*new.split(), *args[1:]]
        return super().resolve_command(ctx, args)


def add_commands(app: typer.Typer) -> None:
    """Add all commands to the application."""
    for name, command in FIRST.items():
        if isinstance(command, Mapping):
            app.add_typer(_group(name, command), name=name)
        else:
            app.command(name)(command)
    for name, commands in GROUPS.items():
        app.add_typer(_group(name, commands), name=name, rich_help_panel=PANEL)


def _group(name: str, commands: Mapping[str, Command]) -> typer.Typer:
    made = typer.Typer(no_args_is_help=True, help=HELP[name])
    for word, command in commands.items():
        made.command(word)(command)
    return made
