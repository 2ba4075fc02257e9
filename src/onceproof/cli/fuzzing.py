"""The command that searches without brokers, by topologies that it draws."""

import json
from collections.abc import Mapping
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from onceproof.campaigns.fuzz.fuzzing import Fuzzed, Searched
from onceproof.cli.asking import JsonOption, exact_releases, new_run_id, seed_or_random
from onceproof.cli.terminal import out, progress
from onceproof.model.errors import UsageError
from onceproof.model.json_file import encode


def fuzz(
    streams: Annotated[str | None, typer.Option(metavar="V", help="Kafka Streams release, or newest.")] = None,
    against: Annotated[
        str | None, typer.Option(metavar="V", help="Also compare its output with that of this release.")
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.01, help="Start no case after this many minutes.")] = 10.0,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed of all cases; by default a random one.")] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="OPERATION", help="Draw none of these: docs/fuzzing.md. Repeatable.")
    ] = None,
    uniform: Annotated[
        bool, typer.Option("--uniform", help="Draw each operation as often as the others, for comparison.")
    ] = False,
    resume: Annotated[
        str | None, typer.Option(metavar="ID|last", help="Continue this fuzzing, as it was asked for.")
    ] = None,
    tickets: Annotated[
        bool, typer.Option("--tickets", help="Bisect each finding over all releases, and write its ticket.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Draw topologies and records, run them without brokers, and judge them by what they mean: docs/fuzzing.md.

    Exit: 0 none is red, 1 at least one finding, 2 usage, 3 no case was run, 4 error.
    """
    from onceproof.campaigns.fuzz import verbs
    from onceproof.processes.signals import interruptible

    if resume is not None:
        if streams or against or without or uniform or seed is not None:
            raise UsageError(f"--resume {resume} continues what was asked for then: only --minutes can be added.")
        state = verbs.resume(resume)
    elif streams is not None:
        [streams], against = exact_releases([streams]), exact_releases([against])[0] if against else None
        state = verbs.begin(new_run_id(), streams, against, seed_or_random(seed), without or (), uniform=uniform)
    else:
        raise UsageError("Name a release to fuzz with --streams, or a fuzzing to continue with --resume.")
    with interruptible(), progress(f"{state.streams}, seed {state.seed}") as report:
        fuzzed = verbs.fuzz(state, 60 * minutes, report)
        if tickets and fuzzed.findings:
            fuzzed = verbs.with_tickets(fuzzed, report)
    if as_json:
        print(json.dumps(encode(fuzzed)))
    else:
        print_fuzzed(fuzzed)
    raise typer.Exit(fuzzed.exit_code)


def _make_table(searched: Mapping[str, Searched]) -> Table:
    table = Table("searched", *("cases", "judged", "red"), box=None, pad_edge=True)
    for name, one in searched.items():
        table.add_row(name, f"{one.cases:,}", f"{one.judged:,}", f"{one.red:,}")
    return table


def print_fuzzed(fuzzed: Fuzzed) -> None:
    """The result of a fuzzing, for people."""
    against = f" against {fuzzed.against}" if fuzzed.against else ""
    out.print(
        f"[bold]{fuzzed.streams}[/]{against}, seed {fuzzed.seed}: {fuzzed.cases:,} cases in "
        f"{fuzzed.seconds / 60:.1f} minutes, {fuzzed.red:,} red"
    )
    for finding in fuzzed.findings:
        found = f"case {finding.case_number}, after {finding.after:,.0f} s, {finding.reds:,} like it"
        out.print(f"[bold red]finding {finding.number}[/]: {escape(finding.title)} ({found})", soft_wrap=True)
        for difference in finding.differences:
            out.print(f"  {difference.topic}, {difference.kind}: {difference.shown}", markup=False, soft_wrap=True)
        if finding.bisected:
            out.print(f"  {finding.bisected}", markup=False, soft_wrap=True)
        out.print(f"  {finding.folder}", markup=False, soft_wrap=True)
    for known in fuzzed.issues:
        seen = f"{known.reds:,} red, the first one case {known.case_number}, after {known.after:,.0f} s"
        out.print(f"[yellow]known[/]: {known.issue} ({seen})", soft_wrap=True)
    if not fuzzed.findings:
        others = ", but for known issues" if fuzzed.issues else ""
        out.print(f"[green]every case emits what its operations mean{others}[/]")
    if fuzzed.searched:
        out.print(_make_table(fuzzed.searched))
    for reason, count in fuzzed.left_out.items():
        out.print(f"  [yellow]not judged[/], {count:,} outputs: {escape(reason)}", soft_wrap=True)
    out.print(f"Folder  {fuzzed.folder}", markup=False, soft_wrap=True)
