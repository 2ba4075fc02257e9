"""The `onceproof` command.

What a subcommand needs is imported by it, so that `--help` and errors of usage come at once.
"""

import errno
import json
import os
import random
import secrets
import sys
import time
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from onceproof.model.anomaly import Witness, first_of_each
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import ExitCode, HarnessError, OnceproofError, UsageError
from onceproof.model.files import Reading, TrialPlan, VerdictRow
from onceproof.model.json_file import encoded, unwritable
from onceproof.model.known_issues import registry
from onceproof.model.matrix import BROKER, DEFAULT_MATRIX, MATRICES, Request, expand
from onceproof.model.plants import plant, plants
from onceproof.model.release import OLDEST, Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import is_red
from onceproof.results.table import cells_table, change_line, history_table, places, sensitivity_table, verdict_table
from onceproof.scenarios import CATALOGUE, SCENARIOS, scenario
from onceproof.settings import get_settings

if TYPE_CHECKING:
    from onceproof.page.exports import Told

app = typer.Typer(
    help="Proves or disproves that a Kafka Streams release keeps its promises.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 as expected, 1 anomaly (run: regression), 2 usage, 3 inconclusive, 4 error of the harness.",
)
INTERRUPTED = 130  # Typer's exit code for Ctrl-C
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)
WIDTH = None if sys.stdout.isatty() else 140  # a file or a pipe has no width of its own
out, err = Console(highlight=False, width=WIDTH), Console(stderr=True, highlight=False)


def main() -> None:
    """Entry point: errors of ours end in one sentence and their exit code."""
    try:
        try:
            app()
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            raise unwritable(error) from error
    except OnceproofError as error:
        if "--json" in sys.argv:
            print(json.dumps({"error": str(error)}))
        err.print("[bold red]onceproof:[/] ", end="")
        err.print(str(error), markup=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except Exception:  # a bug of ours: whatever it is, it must not be taken for an anomaly's exit code
        err.print_exception()
        sys.exit(ExitCode.ERROR)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            err.print("onceproof: interrupted; everything that was started has been stopped.")
        raise


def _now() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S")


def new_run_id() -> str:
    """An id for a run that begins now."""
    return f"{_now()}-{secrets.token_hex(2)}"


StreamsOption = Annotated[str, typer.Option("--streams", metavar="V", help="Kafka Streams release, e.g. 3.3.1.")]
JunitOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the verdicts as JUnit XML, a test case for each cell.")
]
SummaryOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the run as Markdown, for a pull request or a job summary.")
]
BrokerOption = Annotated[str, typer.Option("--broker", metavar="V", help="Broker release.")]
VariantOption = Annotated[str, typer.Option("--variant", metavar="NAME", help="See `onceproof list`.")]
SeedOption = Annotated[
    int | None, typer.Option("--seed", min=0, help="Seed of the first trial; by default a random one.")
]
ScenariosOption = Annotated[list[str], typer.Option("--scenario", metavar="S", help="Repeatable.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@app.command()
def trial(
    name: Annotated[str, typer.Argument(metavar="SCENARIO", help="See `onceproof list`.")],
    streams: StreamsOption,
    broker: BrokerOption = BROKER,
    variant: VariantOption = "DEFAULT_CONFIG",
    restart_on: Annotated[
        str | None, typer.Option(metavar="V", help="Restart the application on this Kafka Streams release.")
    ] = None,
    program: Annotated[
        str | None, typer.Option(metavar="'1 2 3'", help="For multirunner: instances to start or stop, or `random`.")
    ] = None,
    set_: Annotated[
        list[str], typer.Option("--set", metavar="NAME=VALUE", help="A parameter, see `onceproof list`; repeatable.")
    ] = [],
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the schedule; by default a random one.")] = None,
    plant_: Annotated[
        str | None, typer.Option("--plant", metavar="NAME", help="Put this bug into the release: `onceproof plants`.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run one trial on brokers of its own, without Airflow and Spark.

    Exit: 0 no anomaly, 1 anomaly, 2 usage, 3 inconclusive (also if what is planted did not fire), 4 error.
    """
    from onceproof.lab.agent import check_plantable
    from onceproof.lab.processes import interruptible
    from onceproof.lab.trial import run_trial

    settings = [*set_, *([f"program={program}"] if program is not None else [])]
    cell, parameters = _asked(name, variant, streams, broker, restart_on, settings)
    drawn = _drawn(seed)
    what = Trial(new_run_id(), cell, 1, drawn, parameters, plant_)
    scenario(name).validate(what)
    if plant_ is not None:
        check_plantable(plant(plant_), cell.running)
    folder = RunFolder(get_settings().runs / what.run).trial(what)
    with interruptible(), _progress(f"{cell.title}, seed {drawn}") as report:
        outcome = run_trial(what, folder, report)
    found = Reading.read(folder.reader_file)
    shown = {
        **cell.to_dict(),
        "seed": drawn,
        "exercised": outcome.exercised,
        "reason": outcome.reason,
        "parameters": parameters,
        **{count: getattr(found, count) for count in ("records", "outputs", "keys", "ids", "anomalies", "promises")},
        "not_looked_at": TrialPlan.read(folder.trial_file).not_looked_at,
        "steps": outcome.steps,
        "plant": encoded(outcome.plant),
        "attested": outcome.attested,
        "seconds": outcome.seconds,
        "folder": str(folder.path),
    }
    avoided = registry().avoidance(cell) is not None and outcome.all_steps_tried
    if as_json:
        print(json.dumps(shown))
    else:
        _print_trial(shown, found.witnesses)
    if is_red(cell, found.anomalies, registry()):
        raise typer.Exit(ExitCode.ANOMALY)
    if outcome.plant and not outcome.plant.fired:
        raise typer.Exit(ExitCode.INCONCLUSIVE)
    if not outcome.exercised and not avoided:
        raise typer.Exit(ExitCode.INCONCLUSIVE)


@app.command()
def demo(
    seed: SeedOption = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page with the timelines in a browser.")] = False,
) -> None:
    """Show the bug of KAFKA-14172 in two real trials: red on Kafka Streams 3.4.0, green on 3.4.1.

    Exit: 0 as told, 1 an anomaly on 3.4.1, 2 usage, 3 no anomaly on 3.4.0 or not exercised on 3.4.1, 4 error.
    """
    from onceproof.demo import RELEASES, tell
    from onceproof.lab.processes import interruptible

    drawn = _drawn(seed)
    cells = [_asked("enumerator", "DEFAULT_CONFIG", release, BROKER, None, [])[0] for release in RELEASES]
    run, target = RunFolder(get_settings().runs / new_run_id()), get_settings().home / "demo.html"
    with interruptible():
        told = tell([Trial(run.run_id, cell, 1, drawn) for cell in cells], run, target, out, _progress)
    out.print(f"Both timelines are in {target.as_uri()}", markup=False, soft_wrap=True)
    has_display = {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()
    if open_ and not (has_display and webbrowser.open(target.as_uri())):
        err.print("There is no display here on which a browser could open it.")
    raise typer.Exit(told)


@app.command()
def shrink(
    name: Annotated[str, typer.Argument(metavar="SCENARIO", help="Only multirunner has programs.")],
    streams: StreamsOption,
    program: Annotated[str, typer.Option(metavar="'1 2 3'", help="A program that is red.")],
    broker: BrokerOption = BROKER,
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
    from onceproof.lab.processes import interruptible
    from onceproof.lab.shrink import shrink_program

    if name != "multirunner":
        raise UsageError(f"{name!r} has no program that could be shrunk; multirunner has.")
    cell, parameters = _asked(name, variant, streams, broker, None, [*set_, f"program={program}"])
    first = Trial(new_run_id(), cell, 1, _drawn(seed), parameters)
    scenario(name).validate(first)
    with interruptible(), _progress(f"shrink {cell.title}") as report:
        shrunk = shrink_program(first, trials, budget, report)
    if as_json:
        print(json.dumps(shrunk))
    elif shrunk["red"]:
        out.print(f"[bold]{shrunk['program']}[/] on {streams}: red in {shrunk['red']} of {shrunk['trials']} trials")
        out.print("  " + ", ".join(f"{n} {shrunk['parameters'][n]:,}" for n in shrunk["parameters"] if n != "program"))
        out.print(f"  {shrunk['tried']} candidates in {shrunk['seconds']:.0f} s. Run it again:")
        out.print(f"  {shrunk['command']}", soft_wrap=True)
    else:
        out.print(f"{program} on {streams} was not red in {shrunk['trials']} trials: there is nothing to shrink.")
    raise typer.Exit(ExitCode.ANOMALY if shrunk["red"] else ExitCode.INCONCLUSIVE)


@app.command()
def bisect(
    name: Annotated[str, typer.Argument(metavar="SCENARIO", help="See `onceproof list`.")],
    variant: VariantOption = "DEFAULT_CONFIG",
    issue: Annotated[
        str | None, typer.Option(metavar="KEY", help="The known issue to search for, if several concern the variant.")
    ] = None,
    from_: Annotated[str, typer.Option("--from", metavar="V", help="First release.")] = str(OLDEST),
    to: Annotated[str | None, typer.Option(metavar="V", help="Last release; by default the newest.")] = None,
    broker: BrokerOption = BROKER,
    trials: Annotated[int, typer.Option(min=2, help="At most so many trials in all.")] = 60,
    seed: SeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find, on each release line, where a scenario's anomaly begins and ends.

    Exit: 0 all of it stands, 2 usage, 3 some releases are not sure, or nothing was red, 4 error.
    """
    from onceproof.lab.processes import interruptible
    from onceproof.pipeline import bisecting

    search = bisecting.search_from_params(
        {
            "scenario": name,
            "variant": variant,
            "issue": issue,
            "from": from_,
            "to": to,
            "broker": broker,
            "trials": trials,
            "seed": seed,
        },
        _drawn(seed),
    )
    run = RunFolder(get_settings().runs / new_run_id())
    with interruptible(), _progress(search.title) as report:
        found = bisecting.bisect(run, search, report)
    if as_json:
        print(json.dumps(found))
    else:
        print(bisecting.told(found, search.title))
        out.print(f"Folder  {run.path}", soft_wrap=True)
    raise typer.Exit(ExitCode.OK if found["sure"] else ExitCode.INCONCLUSIVE)


@app.command("plants")
def plants_(as_json: JsonOption = False) -> None:
    """Show the bugs that can be planted into a release: what each does, and which scenarios must find it by what."""
    if as_json:
        print(json.dumps([one.to_dict() for one in plants().values()]))
        return
    table = Table("plant", "what it does", "resembles", "releases", "found in, by", box=None, padding=(0, 2, 1, 0))
    for one in plants().values():
        must = [f"{claim.scenario}: {', '.join(claim.promises)}" for claim in one.claims]
        cannot = [f"[dim]{name}: cannot show. {escape(why)}[/]" for name, why in one.equivalent.items()]
        table.add_row(one.name, one.what, one.resembles or "", one.releases, "\n".join(must + cannot))
    out.print(table)


@app.command()
def sensitivity(
    streams: StreamsOption,
    scenario_: ScenariosOption = [],
    plant_: Annotated[
        list[str], typer.Option("--plant", metavar="NAME", help="See `onceproof plants`; repeatable.")
    ] = [],
    trials: Annotated[int, typer.Option(min=1, help="Trials of each plant in each scenario.")] = 1,
    broker: BrokerOption = BROKER,
    seed: SeedOption = None,
    again: Annotated[bool, typer.Option("--again", help="Start afresh, even if such a call was interrupted.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Plant bugs into a release, and see which of them its trials find; an interrupted call is resumed.

    Exit: 0 all found or unable to show, as declared, 1 one survived, 2 usage, 3 one did not fire, 4 error.
    """
    from onceproof.lab.processes import interruptible
    from onceproof.pipeline import sensing

    params = {"streams": streams, "broker": broker, "scenario": scenario_, "plant": plant_}
    asked = sensing.sense_from_params({**params, "trials": trials, "seed": seed}, _drawn(seed))
    begun = None if again else sensing.unfinished(asked, seed)
    run, asked = begun or (RunFolder(get_settings().runs / new_run_id()), asked)
    with interruptible(), _progress(asked.title) as report:
        told = sensing.sense(run, asked, report)
    if as_json:
        print(json.dumps(told))
    else:
        out.print(sensitivity_table(told))
        for what, why in told["masked"].items():
            out.print(f"{what}: {why}", markup=False, soft_wrap=True)
        out.print(f"Folder  {run.path}", markup=False, soft_wrap=True)
    raise typer.Exit(told["exit_code"])


@app.command()
def releases(
    pre_releases: Annotated[bool, typer.Option("--pre-releases", help="Also candidates, such as 4.4.0-rc1.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the published releases of Kafka Streams, what was run on each, and what `release_watch` saw.

    Exit: 0, 4 Maven could not be asked.
    """
    from onceproof.lab.releases import published_releases
    from onceproof.results.database import runs_of_releases
    from onceproof.results.seen import Seen, seen_releases

    with _progress("asking Maven") as report:
        report("published releases")
        published = published_releases(pre_releases)
    url = get_settings().database_url
    runs, seen = runs_of_releases(url), seen_releases(url)
    rows = [
        {
            "release": str(release),
            **runs.get(str(release), {"cells": 0, "last_run": None}),
            **seen.get(release, Seen(release)).to_dict(),
        }
        for release in published
    ]
    if as_json:
        print(json.dumps(rows))
        return
    table = Table("release", "cells run", "last run", "release_watch", box=None)
    for release, row in zip(published, rows, strict=True):
        watched = seen[release].told if release in seen else ""
        table.add_row(row["release"], str(row["cells"] or ""), row["last_run"] or "[yellow]never[/]", Text(watched))
    out.print(table)


def _asked(
    name: str, variant: str, streams: str, broker: str, restart_on: str | None, settings: list[str]
) -> tuple[Cell, dict[str, Any]]:
    """The cell and the parameters that are asked for, when all of it exists and can be run here.

    Raises:
        UsageError: it does not, or cannot.
    """
    from onceproof.lab.artifacts import check_published, streams_class_path
    from onceproof.lab.java import require_java

    restarts = (restart_on,) if restart_on else ()
    wanted = Request(DEFAULT_MATRIX, (streams,), (broker,), (name,), (variant,), restarts=restarts)
    [cell] = expand(wanted, CATALOGUE).cells
    parameters = scenario(name).parse(settings)
    require_java(get_settings().java, cell.broker.oldest_java, f"a broker of Kafka {broker}")
    check_published({cell.streams, cell.running, cell.broker})
    for release in {cell.streams, cell.running}:
        streams_class_path(release)
    return cell, parameters


def _drawn(seed: int | None) -> int:
    return random.SystemRandom().randrange(2**31) if seed is None else seed


@contextmanager
def _progress(title: str) -> Iterator[Callable[[str], None]]:
    """Show the phase that is under way, on the terminal's error stream."""
    if not err.is_terminal:
        yield lambda phase: err.print(f"{title}: {phase}", markup=False, soft_wrap=True)
        return
    with err.status(Text(title)) as status:
        yield lambda phase: status.update(Text.assemble(f"{title}: ", (phase, "bold")))


def _print_trial(shown: dict[str, Any], witnesses: Iterable[Witness]) -> None:
    """A trial for people: what was seen, a few witnesses, where the time went."""
    where = f"{shown['scenario']}, broker {shown['broker']}, seed {shown['seed']}"
    out.print(f"[bold]{Cell.from_dict(shown).releases} {shown['variant']}[/] ({where})")
    seen = ", ".join(f"[bold red]{count:,} {name}[/]" for name, count in shown["anomalies"].items())
    counts = f"{shown['records']:,} records, {shown['keys']:,} keys"
    counts += f", {shown['ids']:,} IDs" if shown["ids"] else ""
    out.print(f"  {seen or '[green]no anomaly[/]'} in {counts}")
    if planted := shown.get("plant"):
        what = plant(planted["name"]).what
        out.print(f"  [magenta]planted: {planted['name']}[/], fired {planted['fired']:,} times. {what}", soft_wrap=True)
    out.print(f"  {'exercised' if shown['exercised'] else '[yellow]not exercised[/]'}: {escape(shown['reason'])}")
    if witnesses:
        table = Table("anomaly", "key", "ids", "expected", "observed", "where", box=None, pad_edge=True)
        for w in first_of_each(witnesses, 3):
            ids, key = ", ".join(map(str, w.ids)), "" if w.key is None else str(w.key)
            told = (w.anomaly, key, ids, w.expected, w.observed, " ".join(w.offsets))
            table.add_row(*map(Text, told))
        out.print(table)
    out.print("  seconds: " + ", ".join(f"{name} {seconds:g}" for name, seconds in shown["seconds"].items()))
    out.print(f"  folder: {shown['folder']}", markup=False, soft_wrap=True)


@app.command("list")
def list_() -> None:
    """Show scenarios, variants, matrices."""
    for what in SCENARIOS.values():
        table = Table(
            "variant",
            "what it changes",
            title=f"scenario {what.name}: {what.title}",
            title_justify="left",
            box=None,
        )
        for variant in what.variants.values():
            table.add_row(variant.name, variant.description)
        out.print(table)
        table = Table("parameter", "default", "what it is", box=None)
        for name, parameter in what.parameters.items():
            table.add_row(name, str(parameter.default), parameter.description)
        out.print(table, "")
    table = Table("matrix", "cells", "what it is for", title_justify="left", box=None)
    for matrix in MATRICES.values():
        cells = expand(Request(matrix.name), CATALOGUE).cells
        name = f"{matrix.name} (default)" if matrix.name == DEFAULT_MATRIX else matrix.name
        table.add_row(name, str(len(cells)), f"{matrix.description} Streams {', '.join(matrix.releases())}.")
    out.print(table)


@app.command()
def run(
    matrix: Annotated[str, typer.Option(metavar="NAME", help="See `onceproof list`.")] = DEFAULT_MATRIX,
    streams: Annotated[list[str], typer.Option(metavar="V", help="Kafka Streams release; repeatable.")] = [],
    restart_on: Annotated[
        list[str], typer.Option(metavar="V", help="Release to restart the application on; repeatable.")
    ] = [],
    broker: Annotated[list[str], typer.Option(metavar="V", help="Broker release; repeatable.")] = [],
    scenario_: ScenariosOption = [],
    variant: Annotated[list[str], typer.Option(metavar="N", help="Repeatable.")] = [],
    trials: Annotated[
        int | None, typer.Option(min=1, help="Exactly so many trials of each cell, whatever they show.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(min=1, help="At most so many trials of a cell whose verdict needs more.")
    ] = None,
    risk: Annotated[
        float | None,
        typer.Option(
            min=0.01, max=0.5, metavar="P", help="How probable it may be that a green misses a bug, e.g. 0.05."
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Resume this interrupted run; `last` is the newest."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show cells, trials and hours without starting anything.")
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

    if plant_ is not None:
        raise UsageError(
            f"{plant_!r} cannot be planted into a run: its cells are evidence about Kafka as it was published. Use "
            "`onceproof trial --plant` or `onceproof sensitivity`."
        )
    request = Request(
        matrix, tuple(streams), tuple(broker), tuple(scenario_), tuple(variant), trials, tuple(restart_on), budget, risk
    )
    interrupted = None
    if resume is not None:
        if request != Request():
            raise UsageError(f"--resume {resume} resumes that run as it was requested; leave the other options out.")
        interrupted, request = pipeline.find_interrupted(resume)
    if dry_run:
        from onceproof.pipeline.estimate import estimate, table

        told = estimate(request)
        if as_json:
            print(json.dumps(told))
        else:
            out.print(table(told))
        return
    begin = time.monotonic()
    finished = pipeline.run(request, console=err, interrupted=interrupted)
    verdicts = VerdictRow.read_all(finished.run.verdicts_file)
    changes, failures = None, list(finished.failures)
    try:
        changes = [change.to_dict() for change in changes_of(finished.run, get_settings().database_url)]
    except HarnessError as error:  # the verdicts stand without it
        failures.append(f"What changed is not known. {error}")
    if as_json:
        told = {"verdicts": encoded(verdicts), "changes": changes}
        shown = {"run": finished.run.run_id, "exit_code": finished.exit_code, **told}
        paths = {"folder": str(finished.run.path), "data_docs": str(finished.run.data_docs)}
        print(json.dumps({**shown, "failures": failures, **paths, "seconds": _since(begin)}))
    else:
        title = f"Run {finished.run.run_id}: {len(verdicts)} cells in {_since(begin):.0f} s"
        out.print(verdict_table(verdicts, title))
        for change in changes or ():
            out.print(change_line(change), markup=False, soft_wrap=True)
        for failure in failures:
            err.print(f"[bold magenta]![/] {escape(failure)}", soft_wrap=True)
        out.print(f"Data Docs   {finished.run.data_docs.as_uri()}", markup=False, soft_wrap=True)
        out.print(f"Run folder  {finished.run.path}", markup=False, soft_wrap=True)
        for cell, folder in places(verdicts):
            out.print(f"  {cell}: {folder}", markup=False, soft_wrap=True)
    annotated = os.environ.get("GITHUB_ACTIONS") == "true"
    if junit or summary or annotated:
        from onceproof.page.exports import annotations, told_of

        whole = told_of(finished.run)
        _export(whole, junit, summary)
        for line in annotations(whole) if annotated else ():
            print(line, file=sys.stderr)  # stdout may be JSON
    raise typer.Exit(finished.exit_code)


def _export(told: "Told", junit: Path | None, summary: Path | None) -> None:
    from onceproof.page.exports import write_junit, write_summary

    for write, target in ((write_junit, junit), (write_summary, summary)):
        if target is not None:
            write(told, target)


def _since(begin: float) -> float:
    return round(time.monotonic() - begin, 1)


@app.command(name="advise")
def advise_(
    current: Annotated[
        str | None, typer.Argument(metavar="A", help="The release of Kafka Streams that you run.")
    ] = None,
    target: Annotated[str | None, typer.Argument(metavar="B", help="The release that you want to go to.")] = None,
    application: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What your application uses, as TOML: see --template.")
    ] = None,
    template: Annotated[bool, typer.Option("--template", help="Print such a file, with comments, and stop.")] = False,
    schema_: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of --json, and stop.")] = False,
    run_: Annotated[
        bool, typer.Option("--run", help="Run the cells that the answer lacks first; their time is told before.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answer as one page instead of printing it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell whether it is safe to go from A to B: known issues, what was measured, what was not, what to do.

    Exit: 0 nothing known against it, 1 something, 2 usage, 3 not looked at enough, 4 error.
    """
    from onceproof.advice.advice import schema
    from onceproof.advice.advising import advise, lacking
    from onceproof.advice.asking import ask, check_releases, read_application
    from onceproof.model.application import template as application_template
    from onceproof.page.upgrade import terminal, write_advice

    if template or schema_:
        print(application_template().rstrip() if template else json.dumps(schema(), indent=2))
        return
    if current is None or target is None:
        raise UsageError(
            "Name two releases, the one that you run and the one that you want to go to, e.g. 3.9.1 4.3.1."
        )
    url, way = get_settings().database_url, (Release.parse(current), Release.parse(target))
    described = read_application(application) if application else None
    question = ask(*way, url, described)
    check_releases(way, url)
    if run_ and (cells := lacking(question)):
        _run_cells(cells)
        question = ask(*way, url, described)
    advice = advise(question)
    if html is not None:
        write_advice(advice, get_settings().runs, html)
    if as_json:
        print(json.dumps(encoded(advice)))
    elif html is not None:
        out.print(f"{html} ({html.stat().st_size / 1024:,.0f} KiB)", markup=False, soft_wrap=True)
    else:
        for part in terminal(advice):
            out.print(part)
    raise typer.Exit(advice.exit_code)


def _run_cells(cells: list[Cell]) -> None:
    """Tell what it takes to run cells, and run them; progress goes to the error stream."""
    from onceproof.advice.asking import requests
    from onceproof.pipeline import run as pipeline
    from onceproof.pipeline.estimate import estimate, table

    asked = requests(cells)
    for cell in cells:
        err.print(f"lacking: {cell.title}", markup=False, soft_wrap=True)
    for request in asked:
        err.print(table(estimate(request)))
    for request in asked:
        pipeline.run(request, console=err)


@app.command()
def history(
    cell: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Cells whose releases, scenario and variant have all its words.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many runs are shown, the newest first.")] = 20,
    export: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all that is stored to a file.")] = None,
    import_: Annotated[
        Path | None, typer.Option("--import", metavar="FILE", help="Store what another database has exported.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the runs and what each of them changed; with --cell, the verdicts of cells over time."""
    from onceproof.results.history import cells_over_time, changes, stored_runs

    if export is not None or import_ is not None:
        _transfer(export, import_)
        return
    runs = stored_runs(get_settings().database_url)
    told: list[dict[str, Any]]
    if cell is None:
        changed = changes(runs)
        told = [one.to_dict(changed[one.id]) for one in runs[:limit]]
    else:
        told = [
            {**found.to_dict(), "cell": found.key, "verdicts": [{"created": r.created, **c.to_dict()} for r, c in past]}
            for found, past in (cells_over_time(runs, cell, limit) if runs else {}).items()
        ]
    if as_json:
        print(json.dumps({"runs" if cell is None else "cells": told}))
    elif not runs:
        out.print("No run is stored yet.")
    else:
        out.print(history_table(told) if cell is None else cells_table(told))


def _transfer(export: Path | None, import_: Path | None) -> None:
    from onceproof.results.transfer import export_to, import_from

    url = get_settings().database_url
    if export is not None and import_ is not None:
        raise UsageError("One database is exported, and another one imports: give --export or --import.")
    if export is not None:
        count = export_to(export, url)
        out.print(f"{count} run{'' if count == 1 else 's'} exported to {export}.", soft_wrap=True, highlight=False)
    if import_ is not None:
        new, old = import_from(import_, url)
        out.print(f"{new} run{'' if new == 1 else 's'} imported, {old} {'was' if old == 1 else 'were'} there already.")


@app.command()
def evidence(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, or `last` for the newest judged one.")],
    cell: Annotated[
        str, typer.Argument(metavar="CELL", help="Key of a cell, or any part of it that no other cell has.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="The zip; default in `evidence/` of the run folder.")
    ] = None,
) -> None:
    """Write all that is known about a cell into one archive that can be attached to a JIRA issue as it is."""
    from onceproof.results.evidence import find_run, write_evidence

    written = write_evidence(find_run(get_settings().runs, run_id), cell, output)
    out.print(f"{written} ({written.stat().st_size / 1024:,.0f} KiB)", markup=False, soft_wrap=True)


@app.command()
def page(
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="On 127.0.0.1; 0 for any.")] = 8766,
) -> None:
    """Serve the results page without Airflow and its login, on this machine only."""
    from onceproof.page.serve import serve

    serve(get_settings(), port, lambda url: out.print(f"The page is at {url}, until Ctrl-C.", soft_wrap=True))


@app.command()
def report(
    run_id: Annotated[
        str, typer.Argument(metavar="RUN", help="Id of a run, or `last` for the newest judged one.")
    ] = "last",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write matrix, cells and timelines as one page instead.")
    ] = None,
    junit: JunitOption = None,
    summary: SummaryOption = None,
    vote: Annotated[bool, typer.Option("--vote", help="Print plain text for the vote on a release instead.")] = False,
) -> None:
    """Print the matrix of a run, or write the whole run as one self-contained page."""
    from onceproof.page.exports import told_of
    from onceproof.page.exports import vote as as_vote
    from onceproof.page.report import shown_run, terminal, write_report
    from onceproof.results.evidence import find_run

    found, url = find_run(get_settings().runs, run_id), get_settings().database_url
    if junit or summary or vote:
        told = told_of(found)
        _export(told, junit, summary)
        if vote:
            print(as_vote(told))
            return
    if html is not None:
        write_report(found, url, html)
        out.print(f"{html} ({html.stat().st_size / 1024:,.0f} KiB)", markup=False, soft_wrap=True)
    elif not (junit or summary):
        for part in terminal(shown_run(found, url)):
            out.print(part)


@app.command()
def up(
    foreground: Annotated[bool, typer.Option(help="Stay until Ctrl-C, for service managers.")] = False,
) -> None:
    """Start Airflow and its pages, to browse results and to trigger and schedule runs."""
    from onceproof.pipeline import services

    if foreground:
        services.serve(get_settings(), lambda airflow: _print_airflow(airflow, "is up"))
        return
    with _progress("Airflow") as report:
        report("starting")
        airflow, started = services.up(get_settings())
    _print_airflow(airflow, "is up" if started else "was up already")


def _print_airflow(airflow: Any, state: str) -> None:
    out.print(f"Airflow {state}: {airflow.url}", soft_wrap=True)
    out.print(f"User {airflow.username}, the password is in {airflow.password_file}", soft_wrap=True)


@app.command()
def down() -> None:
    """Stop what `onceproof up` started."""
    from onceproof.pipeline import services

    out.print("Airflow is down." if services.down(get_settings()) else "Airflow was not up.")


@app.command()
def setup() -> None:
    """Resolve what the default matrix and the demo need, so that afterwards they need no registry."""
    from onceproof.demo import RELEASES
    from onceproof.lab.artifacts import broker_class_path, streams_class_path
    from onceproof.lab.jars import install_jars

    matrix = MATRICES[DEFAULT_MATRIX]
    with _progress("setup") as report:
        for version in dict.fromkeys((*matrix.releases(), *RELEASES)):
            report(f"Kafka Streams {version}")
            streams_class_path(Release.parse(version))
        for version in matrix.brokers:
            report(f"Kafka brokers {version}")
            broker_class_path(Release.parse(version))
        report("Spark's Kafka connector, the Data Docs' scripts")
        install_jars()


@app.command()
def sweep() -> None:
    """Remove leftovers of Onceproof: processes without an owner, data of brokers, state of instances."""
    from onceproof.lab.sweep import sweep as sweep_lab

    for removed in sweep_lab(get_settings().runs):
        out.print(f"removed {removed}", soft_wrap=True)


if __name__ == "__main__":
    main()
