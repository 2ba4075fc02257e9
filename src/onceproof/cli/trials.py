"""Commands that run trials by themselves, without Airflow and Spark."""

import json
import os
import webbrowser
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from onceproof.cli.asking import (
    BrokerOption,
    BrokersOption,
    JsonOption,
    MavenRepoOption,
    PlantOption,
    SeedOption,
    StreamsOption,
    VariantOption,
    cell_of,
    check_own_nodes,
    new_run_id,
    resolve_brokers,
    resolve_streams,
    seed_or_random,
)
from onceproof.cli.completion import complete_fault, complete_issue, complete_scenario
from onceproof.cli.terminal import err, out, progress
from onceproof.model.anomaly import Witness, first_of_each
from onceproof.model.cell import MARK, Cell, Trial
from onceproof.model.errors import ExitCode, UsageError
from onceproof.model.files import FaultOutcome, Outcome, Planted, Reading, TrialPlan
from onceproof.model.json_file import encode
from onceproof.model.known_issues import registry
from onceproof.model.matrices import BROKER
from onceproof.model.plants import plant
from onceproof.model.promise import check_anomaly
from onceproof.model.release import OLDEST, Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import sighting
from onceproof.scenarios import check_fault, rolling_variant
from onceproof.scenarios.explaining import find_concerned_in
from onceproof.settings import get_settings

ENDED = ("exercised", "reason", "steps", "plant", "fault", "attested", "seconds")  # of a trial's outcome


@dataclass(frozen=True, kw_only=True)
class TrialAnswer:
    """The form of `trial --json`."""

    schema: int = 2  # it changes when a field is removed or changes its meaning, not when one is added
    scenario: str
    variant: str
    streams: str
    broker: str
    broker_is_claimed: bool  # the brokers are not ours, and their release is unchecked
    restart_on: str | None
    seed: int
    exercised: bool
    reason: str  # why, or why not
    parameters: Mapping[str, Any]  # that were set
    records: int  # in the input
    outputs: int
    keys: int
    ids: int
    anomalies: Mapping[str, int]  # witnesses of each
    issues: tuple[str, ...]  # keys of known issues that explain some of them
    unexplained: Mapping[str, int]  # witnesses that none explains, by anomaly
    promises: Mapping[str, int]  # comparisons that each had
    not_looked_at: Mapping[str, str]  # promises, and why
    steps: int | None  # that the driver took
    plant: Planted | None
    fault: FaultOutcome | None  # that was injected instead of the scenario's own steps
    attested: Mapping[str, Mapping[str, Any]]  # by start of an instance: what it reports about itself
    seconds: Mapping[str, float]  # by phase, and their total
    folder: str


def trial(
    name: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="See `onceproof scenario list`.", autocompletion=complete_scenario)
    ],
    streams: StreamsOption,
    broker: BrokerOption = BROKER,
    brokers: BrokersOption = None,
    maven_repo: MavenRepoOption = [],
    variant: VariantOption = "DEFAULT_CONFIG",
    restart_on: Annotated[
        str | None, typer.Option(metavar="V|DIR", help="Restart the application on this Kafka Streams release.")
    ] = None,
    roll_to: Annotated[
        str | None,
        typer.Option(metavar="V|DIR", help="Change to this release instance by instance, while records flow."),
    ] = None,
    program: Annotated[
        str | None, typer.Option(metavar="'1 2 3'", help="For multirunner: instances to start or stop, or `random`.")
    ] = None,
    set_: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter, see `onceproof scenario list`; repeatable."),
    ] = [],
    fault: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The fault to inject: docs/faults.md lists them.", autocompletion=complete_fault
        ),
    ] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Brokers; by default one.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the schedule; by default a random one.")] = None,
    plant_: PlantOption = None,
    anomaly: Annotated[
        list[str],
        typer.Option("--anomaly", metavar="NAME", help="Look for this anomaly only; repeatable."),
    ] = [],
    git_bisect: Annotated[
        bool,
        typer.Option(
            "--git-bisect",
            help="Exit as `git bisect run` expects: 0 good, 1 bad, 125 could not tell, 128 and more: stop.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run one trial on its own brokers, or on yours, without Airflow and Spark.

    Exit: 0 no anomaly, 1 anomaly, 2 usage, 3 inconclusive (also if the injected bug did not fire), 4 error. With
    --anomaly others make it inconclusive, unless an incidental known issue explains them.
    """
    del git_bisect  # `main` maps all exit codes, including those of errors
    from onceproof.lab.agent import check_plantable
    from onceproof.lab.external_brokers import ExternalCluster, check_access, lend, own_cluster
    from onceproof.lab.trial import run_alone
    from onceproof.processes.signals import interruptible

    check_own_nodes(brokers, nodes)
    for wanted in anomaly:
        check_anomaly(wanted)
    settings = [*set_, *([f"program={program}"] if program is not None else [])]
    if fault is not None:
        check_fault(name, fault)
        settings.append(f"fault={fault}")
    if nodes is not None:
        settings.append(f"nodes={nodes}")
    if roll_to is not None:
        if restart_on is not None:
            raise UsageError(f"--roll-to {roll_to} and --restart-on {restart_on} exclude each other: give one of them.")
        variant, restart_on = rolling_variant(name, variant), roll_to
    [streams], [broker] = resolve_streams([streams], maven_repo), resolve_brokers([broker], maven_repo)
    [restart_on] = resolve_streams([restart_on], maven_repo) if restart_on else [None]
    cell, parameters = cell_of(name, variant, streams, broker, restart_on, settings)
    drawn = seed_or_random(seed)
    installation = get_settings().installation
    external = None if brokers is None else ExternalCluster.read(installation, brokers, cell.broker)
    prefix = external.prefix if external else MARK
    trial_ = Trial(new_run_id(), cell, 1, drawn, parameters, plant_, prefix)
    if plant_ is not None:
        check_plantable(installation, plant(plant_), cell.running)
    if external is not None:
        check_access(external, trial_)
    folder = RunFolder(get_settings().runs / trial_.run).trial(trial_)
    with interruptible(), progress(f"{cell.title}, seed {drawn}") as report:
        cluster = own_cluster(installation, trial_, folder) if external is None else lend(external, trial_.run)
        outcome = run_alone(trial_, folder, cluster, report)
    found, plan = Reading.read(folder.reader_file), TrialPlan.read(folder.trial_file)
    answer = TrialAnswer(
        **cell.to_dict(),
        seed=drawn,
        parameters=parameters,
        **{name: getattr(outcome, name) for name in ENDED},
        **{count: getattr(found, count) for count in ("records", "outputs", "keys", "ids", "anomalies", "promises")},
        issues=tuple(issue.key for issue in find_concerned_in(trial_, found.explained)),
        unexplained={name: count for name, count in found.unexplained.items() if count},
        broker_is_claimed=plan.broker_is_claimed,
        not_looked_at=plan.not_looked_at,
        folder=str(folder.path),
    )
    if as_json:
        print(json.dumps(encode(answer)))
    else:
        _print_trial(answer, found.witnesses)
    raise typer.Exit(_exit_code(cell, outcome, found, anomaly))


def _exit_code(cell: Cell, outcome: Outcome, found: Reading, looked_for: Collection[str]) -> ExitCode:
    """The exit code of a trial, if only some anomalies are looked for, or all if none is named."""
    seen = sighting(cell, found.anomalies, found.unexplained, registry(), looked_for or found.anomalies)
    if seen.red:
        return ExitCode.ANOMALY
    if seen.others:
        return ExitCode.INCONCLUSIVE
    if outcome.plant and not outcome.plant.fired:
        return ExitCode.INCONCLUSIVE
    avoided = registry().avoidance(cell) is not None and outcome.all_steps_tried
    return ExitCode.OK if outcome.exercised or avoided else ExitCode.INCONCLUSIVE


def _print_trial(answer: TrialAnswer, witnesses: Iterable[Witness]) -> None:
    """A trial as text: what was seen, a few witnesses, where the time went."""
    claimed = " (claimed)" if answer.broker_is_claimed else ""
    where = f"{answer.scenario}, broker {answer.broker}{claimed}, seed {answer.seed}"
    out.print(f"[bold]{Cell.from_dict(vars(answer)).releases} {answer.variant}[/] ({where})")
    seen = ", ".join(f"[bold red]{count:,} {name}[/]" for name, count in answer.anomalies.items())
    counts = f"{answer.records:,} records, {answer.keys:,} keys"
    counts += f", {answer.ids:,} IDs" if answer.ids else ""
    out.print(f"  {seen or '[green]no anomaly[/]'} in {counts}")
    if answer.issues:
        out.print(f"  known: {'; '.join(answer.issues)}", markup=False, soft_wrap=True)
    if answer.unexplained and not answer.plant:
        left = ", ".join(f"{count:,} {name}" for name, count in answer.unexplained.items())
        out.print(f"  [bold red]no known issue explains[/] {left}", soft_wrap=True)
    if planted := answer.plant:
        effect = plant(planted.name).effect
        out.print(f"  [magenta]planted: {planted.name}[/], fired {planted.fired:,} times. {effect}", soft_wrap=True)
    if answer.fault:
        bit = "it took effect" if answer.fault.bit else "it did not take effect"
        out.print(f"  [magenta]fault: {answer.fault.name}[/], {bit}")
    out.print(f"  {'exercised' if answer.exercised else '[yellow]not exercised[/]'}: {escape(answer.reason)}")
    if witnesses:
        table = Table("anomaly", "key", "ids", "expected", "observed", "where", box=None, pad_edge=True)
        for w in first_of_each(witnesses, 3):
            ids, key = ", ".join(map(str, w.ids)), "" if w.key is None else str(w.key)
            cells = (w.anomaly, key, ids, w.expected, w.observed, " ".join(w.offsets))
            table.add_row(*map(Text, cells))
        out.print(table)
    for promise, reason in answer.not_looked_at.items():
        out.print(f"  [yellow]not checked[/]: {escape(f'{promise}: {reason}')}", soft_wrap=True)
    out.print("  seconds: " + ", ".join(f"{name} {seconds:g}" for name, seconds in answer.seconds.items()))
    out.print(f"  folder: {answer.folder}", markup=False, soft_wrap=True)


def demo(
    seed: SeedOption = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page with the timelines in a browser.")] = False,
) -> None:
    """Show the bug of KAFKA-14172 in two real trials: red on Kafka Streams 3.4.0, green on 3.4.1.

    Exit: 0 red on 3.4.0 and green on 3.4.1; 1 an anomaly on 3.4.1; 2 usage; 3 no anomaly on 3.4.0, or not exercised on
    3.4.1; 4 error.
    """
    from onceproof.demo import RELEASES, tell
    from onceproof.processes.signals import interruptible

    drawn = seed_or_random(seed)
    cells = [cell_of("enumerator", "DEFAULT_CONFIG", release, BROKER, None, [])[0] for release in RELEASES]
    settings = get_settings()
    run, target = RunFolder(settings.runs / new_run_id()), settings.home / "demo.html"
    with interruptible():
        code = tell(
            settings.installation, [Trial(run.run_id, cell, 1, drawn) for cell in cells], run, target, out, progress
        )
    out.print(f"Both timelines are in {target.as_uri()}", markup=False, soft_wrap=True)
    has_display = {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()
    if open_ and not (has_display and webbrowser.open(target.as_uri())):
        err.print("There is no display here on which a browser could open it.")
    raise typer.Exit(code)


def shrink(
    name: Annotated[str, typer.Argument(metavar="SCENARIO", help="Only multirunner has programs.")],
    streams: StreamsOption,
    program: Annotated[str, typer.Option(metavar="'1 2 3'", help="A program that is red.")],
    broker: BrokerOption = BROKER,
    maven_repo: MavenRepoOption = [],
    variant: VariantOption = "DEFAULT_CONFIG",
    set_: Annotated[list[str], typer.Option("--set", metavar="NAME=VALUE", help="As in `trial`; repeatable.")] = [],
    trials: Annotated[int, typer.Option(min=1, help="Trials of a smaller program, all of which must be red.")] = 2,
    budget: Annotated[
        float, typer.Option(min=1, help="Seconds after which the smallest program so far is taken.")
    ] = 900.0,
    seed: SeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reduce a red program of multirunner to a smallest one that is still red, and print it with its rate.

    Exit: 1 a smallest program was found, 2 usage, 3 the program was not red to begin with, 4 error.
    """
    from onceproof.campaigns.shrinking.trials import shrink_program
    from onceproof.processes.signals import interruptible

    if name != "multirunner":
        raise UsageError(f"{name!r} has no program that could be shrunk; multirunner has.")
    [streams], [broker] = resolve_streams([streams], maven_repo), resolve_brokers([broker], maven_repo)
    cell, parameters = cell_of(name, variant, streams, broker, None, [*set_, f"program={program}"])
    first = Trial(new_run_id(), cell, 1, seed_or_random(seed), parameters)
    run, installation = RunFolder(get_settings().runs / first.run), get_settings().installation
    with interruptible(), progress(f"shrink {cell.title}") as report:
        shrunk = shrink_program(installation, run, first, trials, budget, report)
    if as_json:
        print(json.dumps(shrunk))
    elif shrunk["red"]:
        seen = ", ".join(f"{name} in {times}" for name, times in shrunk["anomalies"].items())
        rate = f"{shrunk['red']} of {shrunk['trials']} trials"
        out.print(f"[bold]{shrunk['program']}[/] on {streams}: red in {rate} ({seen})")
        out.print("  " + ", ".join(f"{n} {shrunk['parameters'][n]:,}" for n in shrunk["parameters"] if n != "program"))
        out.print(f"  {shrunk['tried']} candidates in {shrunk['seconds']:.0f} s. Run it again:")
        out.print(f"  {shrunk['command']}", soft_wrap=True)
    else:
        out.print(f"{program} on {streams} was not red in {shrunk['trials']} trials: there is nothing to shrink.")
    raise typer.Exit(ExitCode.ANOMALY if shrunk["red"] else ExitCode.INCONCLUSIVE)


def bisect(
    name: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="See `onceproof scenario list`.", autocompletion=complete_scenario)
    ],
    variant: VariantOption = "DEFAULT_CONFIG",
    issue: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="The known issue to search for, if several concern the variant.",
            autocompletion=complete_issue,
        ),
    ] = None,
    from_: Annotated[str, typer.Option("--from", metavar="V|DIR", help="First release.")] = str(OLDEST),
    to: Annotated[str | None, typer.Option(metavar="V|DIR", help="Last release; by default the newest.")] = None,
    maven_repo: MavenRepoOption = [],
    broker: BrokerOption = BROKER,
    brokers: BrokersOption = None,
    trials: Annotated[int, typer.Option(min=2, help="At most this many trials in all.")] = 60,
    seed: SeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find, on each release line, where a scenario's anomaly begins and ends.

    Exit: 0 all boundaries are established, 2 usage, 3 some releases are undecided, or nothing was red, 4 error.
    """
    from onceproof.campaigns.bisection import verbs
    from onceproof.campaigns.requests import BisectRequest
    from onceproof.lab.external_brokers import ExternalCluster
    from onceproof.processes.signals import interruptible

    [from_], [broker] = resolve_streams([from_], maven_repo), resolve_brokers([broker], maven_repo)
    [to] = resolve_streams([to], maven_repo) if to else [None]
    external = (
        None if brokers is None else ExternalCluster.read(get_settings().installation, brokers, Release.parse(broker))
    )
    request = BisectRequest(
        scenario=name, variant=variant, issue=issue, first=from_, last=to, broker=broker, trials=trials, seed=seed
    )
    search = verbs.search_for(request, seed_or_random(seed))
    run = RunFolder(get_settings().runs / new_run_id())
    with interruptible(), progress(search.title) as report:
        found = verbs.bisect(run, search, report, external)
    if as_json:
        print(json.dumps(found))
    else:
        print(verbs.as_table(found, search.title))
        out.print(f"Folder  {run.path}", soft_wrap=True)
    raise typer.Exit(ExitCode.OK if found["sure"] else ExitCode.INCONCLUSIVE)
