"""Commands for user applications."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from onceproof.cli.asking import (
    BrokerOption,
    BrokersOption,
    JsonOption,
    MavenRepoOption,
    RequiredBrokersOption,
    check_own_nodes,
    new_run_id,
    resolve_brokers,
    resolve_streams,
    seed_or_random,
)
from onceproof.cli.completion import complete_fault, complete_plant
from onceproof.cli.terminal import A_MINUTE, err, out, print_failures, progress
from onceproof.faults import rolling_bounce
from onceproof.model.errors import OnceproofError, UsageError
from onceproof.model.extras import PARQUET, require
from onceproof.model.json_file import encode, replacing, unwritable
from onceproof.model.judged import AppAnswer, Judgement, OnRelease, PlantedControl
from onceproof.model.matrices import BROKER
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.settings import get_settings

COLOURS = {Judgement.RED: "bold red", Judgement.INCONCLUSIVE: "yellow", Judgement.GREEN: "green"}
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Its folder, with an onceproof.toml.")]


def init(folder: FolderArgument) -> None:
    """Write a commented onceproof.toml and an example that runs, word count, into a folder.

    Exit: 0, 2 usage, 4 error.
    """
    from onceproof.scenarios.declared import FILE

    example = get_settings().project / "examples" / "wordcount"
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} is {'not empty' if folder.is_dir() else 'a file'}; name another folder.")
        folder.mkdir(parents=True, exist_ok=True)
        for part in sorted(example.iterdir()):  # each by itself, since a tree hands on its own mode
            copy = shutil.copytree if part.is_dir() else shutil.copy
            copy(part, folder / part.name)
    except OSError as error:
        raise unwritable(error, folder) from error
    out.print(f"{folder / FILE} is an application that runs; make it yours, or try it:", soft_wrap=True)
    out.print(f"onceproof app run {folder} --streams {BROKER}", markup=False, soft_wrap=True)


def sample(
    file: Annotated[Path, typer.Argument(metavar="FILE.parquet", help="Takes the records; must not be there yet.")],
    brokers: RequiredBrokersOption,
    topic: Annotated[str, typer.Option(metavar="NAME", help="The topic.")],
    records: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many, at most.")] = 10_000,
) -> None:
    """Write the last records of a topic into a file, for the input of an application.

    Exit: 0, 2 usage, 4 error.
    """
    require(PARQUET, "`onceproof app sample`")
    import pyarrow.parquet as pq

    from onceproof.lab import sampling
    from onceproof.lab.external_brokers import ExternalCluster

    if file.suffix != ".parquet" or file.exists():
        raise UsageError(f"{file} {'is there already' if file.exists() else 'does not end in .parquet'}; name another.")
    table = sampling.sample(ExternalCluster.read(get_settings().installation, brokers), topic, records)
    with replacing(file, named=True) as draft:
        pq.write_table(table, draft)
    out.print(
        f"{len(table):,} records of {topic} are in {file}; in onceproof.toml: file = {str(file.absolute())!r}",
        markup=False,
    )


def run(
    folder: FolderArgument,
    streams: Annotated[
        list[str],
        typer.Option(
            "--streams",
            metavar="V|DIR",
            help="Kafka Streams release, or the folder of a build; repeatable. For a command: the release that it "
            "brings. By default the newest, and the one that its file says.",
        ),
    ] = [],
    broker: BrokerOption = BROKER,
    brokers: BrokersOption = None,
    maven_repo: MavenRepoOption = [],
    fault: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The fault to inject (docs/faults.md), or none; by default what its file says.",
            autocompletion=complete_fault,
        ),
    ] = None,
    roll_to: Annotated[
        str | None,
        typer.Option(metavar="V|DIR", help="Change to this release instance by instance; takes the place of a fault."),
    ] = None,
    set_: Annotated[
        list[str], typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the fault; repeatable.")
    ] = [],
    nodes: Annotated[int | None, typer.Option(min=1, help="Brokers; by default one.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of records and schedule; by default random.")] = None,
    plant_: Annotated[
        str | None,
        typer.Option(
            "--plant",
            metavar="NAME",
            help="Put this bug into the trial with the fault: `onceproof check plants`.",
            autocompletion=complete_plant,
        ),
    ] = None,
    controls: Annotated[
        bool,
        typer.Option("--controls", help="Where it is green, plant bugs to see which of its promises they break."),
    ] = False,
    known_is_ok: Annotated[
        bool, typer.Option("--known-is-ok", help="Exit with 0 where known issues explain all that is red.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Run it again whenever its file, sources, jars or records change.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run your application twice without a fault and once with it, on each release, and say whether it differs.

    Exit: 0 green on all, 1 an anomaly (known ones, too, unless --known-is-ok), 2 usage, 3 inconclusive on one, 4 error.
    With --watch Ctrl-C ends it.
    """
    from onceproof.campaigns.application import verbs
    from onceproof.campaigns.requests import ApplicationRequest
    from onceproof.lab.external_brokers import ExternalCluster
    from onceproof.processes.signals import interruptible

    if roll_to is not None and fault not in (None, rolling_bounce.NAME):
        raise UsageError(f"--roll-to {roll_to} takes the place of --fault {fault}: take one.")
    check_own_nodes(brokers, nodes)
    [broker], names = resolve_brokers([broker], maven_repo), resolve_streams(streams, maven_repo)
    [rolled] = resolve_streams([roll_to], maven_repo) if roll_to else [None]
    external = None
    if brokers is not None:
        external = ExternalCluster.read(get_settings().installation, brokers, Release.parse(broker).claimed)
    seed = seed_or_random(seed)
    request = ApplicationRequest(
        streams=tuple(names),
        broker=broker,
        fault=fault,
        controls=controls,
        settings=(*set_, *([f"nodes={nodes}"] if nodes else [])),
        roll_to=rolled,
        plant=plant_,
    )

    def one_round() -> AppAnswer:
        wanted = verbs.app_run(
            RunFolder(get_settings().runs / new_run_id()),
            str(folder.absolute()),
            request,
            seed,
            external,
        )
        for warning in wanted.warnings:
            err.print(warning, markup=False, soft_wrap=True)
        with interruptible(), progress(wanted.title, A_MINUTE) as report:
            answer = verbs.apply(wanted, report)
        if as_json:
            print(json.dumps(encode(answer)), flush=True)
        else:
            for release in answer.releases:
                _print(release)
        return answer

    if not watch:
        raise typer.Exit(one_round().exit_code(known_is_ok=known_is_ok))
    with interruptible():
        _watch(folder.absolute(), one_round)


def _watch(folder: Path, one_round: Callable[[], object]) -> None:
    """Do a round at once, and another one for each change; problems of the application are printed."""
    from onceproof.cli.watching import rounds

    for _ in rounds(folder):
        try:
            one_round()
        except OnceproofError as error:
            print_failures([str(error)])
        err.print(f"Watching {folder}: a change runs it again, Ctrl-C ends this.", markup=False, soft_wrap=True)


def advise(
    folder: FolderArgument,
    current: Annotated[str, typer.Argument(metavar="A", help="The release of Kafka Streams that it runs on.")],
    target: Annotated[str, typer.Argument(metavar="B", help="The release that you want to go to.")],
    run_: Annotated[bool, typer.Option("--run", help="First run the missing cells.")] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answer as one page instead of printing it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Decide whether it is safe for your application to go from A to B: `onceproof advise A B --application DIR`.

    Exit: 0 nothing known against it, 1 something, 2 usage, 3 not enough was checked, 4 error.
    """
    from onceproof.cli.advising import advise_

    advise_(current, target, application=folder, template=False, run_=run_, html=html, as_json=as_json)


def _effect(control: PlantedControl) -> str:
    """The promises that a planted bug broke."""
    if not control.fired:
        return "never fired"
    if control.failed:
        return f"ends the trial, so nothing was compared: {control.failed}"
    broke = "; ".join(f"{', '.join(names)} of {topic}" for topic, names in control.broke.items())
    return f"breaks {broke}" if broke else "breaks nothing"


def _print(release: OnRelease) -> None:
    """The result of an application on a release, for people."""
    explained = f", {release.explained}" if release.explained else ""
    out.print(
        Text.assemble((release.releases, "bold"), " ", (str(release.judgement), COLOURS[release.judgement]), explained),
        soft_wrap=True,
    )
    out.print(f"  {release.reason}", markup=False, soft_wrap=True)
    if release.advice:
        out.print(f"  next: {release.advice}", markup=False, soft_wrap=True)
    if release.concerned and release.judgement is not Judgement.RED:
        keys = "; ".join(release.concerned)
        out.print(f"  not seen, and known there of such a topology: {keys}", markup=False, soft_wrap=True)
    for topic, output in release.outputs.items():
        ignored = f", without the fields {', '.join(output.ignored)}" if output.ignored else ""
        differ = f", and differ in {' and '.join(output.differ)}" if output.differ else ""
        text = f"  {topic}: runs without a fault agree on {output.agreed}{ignored}{differ}"
        out.print(text, markup=False, soft_wrap=True)
    if release.witnesses:
        table = Table("anomaly", "expected", "observed", "where", box=None, pad_edge=True)
        for witness in release.witnesses:
            cells = (witness.anomaly, witness.expected, witness.observed, " ".join(witness.offsets))
            table.add_row(*map(Text, cells))
        out.print(table)
    for control in release.controls:
        out.print(f"  {control.plant}, planted: {_effect(control)}", markup=False, soft_wrap=True)
    for topic, names in release.vacuous.items():
        what = escape(f"{', '.join(names)} of {topic}")
        out.print(f"  [yellow]vacuous[/]: {what}: nothing planted breaks it", soft_wrap=True)
    for promise, reason in release.not_looked_at.items():
        out.print(f"  [yellow]not checked[/]: {escape(f'{promise}: {reason}')}", soft_wrap=True)
    out.print(f"  folders: {' '.join(release.folders)}", markup=False, soft_wrap=True)
