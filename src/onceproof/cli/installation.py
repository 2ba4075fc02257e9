"""Commands that start, stop, set up and clean this installation."""

import sys
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onceproof.cli.asking import BrokersOption, RequiredBrokersOption
from onceproof.cli.terminal import out, progress
from onceproof.model.errors import ExitCode, UsageError
from onceproof.model.extras import PIPELINE, is_installed
from onceproof.model.known_issues import registry
from onceproof.model.matrices import DEFAULT_MATRIX
from onceproof.model.matrix import Request, matrix_of, resolve
from onceproof.model.release import Release
from onceproof.settings import get_settings

if TYPE_CHECKING:
    from onceproof.lab.external_brokers import ExternalCluster


def up(
    foreground: Annotated[bool, typer.Option(help="Stay until Ctrl-C, for service managers.")] = False,
) -> None:
    """Start Airflow and its pages, to browse results and to trigger and schedule runs.

    A results database of an older version comes to the schema of this one before, if it is an SQLite file, of which a
    copy is kept.
    """
    from onceproof.pipeline import services

    _bring_up_to_date()
    if foreground:
        services.serve(get_settings(), lambda airflow: _print_airflow(airflow, "is up"))
        return
    with progress("Airflow") as report:
        report("starting")
        airflow, started = services.up(get_settings())
    _print_airflow(airflow, "is up" if started else "was up already")


def _bring_up_to_date() -> None:
    from onceproof.results.database import is_file, migrate

    url = get_settings().database_url
    if is_file(url) and (migrated := migrate(url)):
        out.print(str(migrated), soft_wrap=True, highlight=False)


def _print_airflow(airflow: Any, state: str) -> None:
    out.print(f"Airflow {state}: {airflow.url}", soft_wrap=True)
    out.print(f"User {airflow.username}, the password is in {airflow.password_file}", soft_wrap=True)


def down() -> None:
    """Stop what `onceproof system up` started."""
    from onceproof.pipeline import services

    out.print("Airflow is down." if services.down(get_settings()) else "Airflow was not up.")


def setup() -> None:
    """Resolve what the default matrix and the demo need, so that no registry is needed afterwards."""
    from onceproof.demo import RELEASES
    from onceproof.lab.artifacts import broker_class_path, streams_class_path
    from onceproof.lab.jars import install_jars
    from onceproof.pipeline.steps import read_published_here

    settings = get_settings()
    installation = settings.installation
    with progress("setup") as report:
        report("published releases")
        matrix = matrix_of(resolve(Request(DEFAULT_MATRIX), read_published_here, registry()))
        for version in dict.fromkeys((*matrix.releases(), *RELEASES)):
            report(f"Kafka Streams {version}")
            streams_class_path(installation, Release.parse(version))
        for version in matrix.brokers:
            report(f"Kafka brokers {version}")
            broker_class_path(installation, Release.parse(version))
        if is_installed(PIPELINE):
            report("Spark's Kafka connector, the Data Docs' scripts")
            install_jars(installation, settings.project)


def preflight(brokers: RequiredBrokersOption) -> None:
    """Check that your own brokers allow what every trial needs, and print commands for what is missing.

    It also reports whether they let a trial set quotas, as the scenario quota does.

    Exit: 0 every trial's needs are met, 2 something is missing, or they cannot be reached, 4 error.
    """
    from onceproof.lab.external_brokers import ExternalCluster
    from onceproof.lab.permissions import acl_commands, check_quotas, find_missing

    cluster = ExternalCluster.read(get_settings().installation, brokers)
    cluster.check_reached()
    found = find_missing(cluster)
    for command in acl_commands(cluster, cluster.properties.user, found.missing):
        out.print(command, markup=False, soft_wrap=True)
    if found.left:
        out.print(f"The topic {found.left} was created and cannot be deleted.", soft_wrap=True)
    if found.missing:
        out.print("Some of what every trial needs is not allowed: the commands above allow it.")
        raise typer.Exit(ExitCode.USAGE)
    out.print(f"The brokers at {cluster.bootstrap_servers} allow what every trial needs.", soft_wrap=True)
    try:
        check_quotas(cluster, cluster.properties.user, cluster.release)
    except UsageError as refused:
        out.print(str(refused), markup=False, soft_wrap=True)


def sweep(
    brokers: BrokersOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also the topics of runs that could be resumed; afterwards they cannot.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --brokers: only say what would be removed there, and stop.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --brokers: remove it there without a question.")] = False,
) -> None:
    """Remove leftovers of Onceproof: processes without an owner, data of brokers, state of instances.

    The topics of an interrupted run stay, so that `run --resume` can continue it, unless --all is given.

    With --brokers, topics, groups and quotas there, too, with the prefix ONCEPROOF_PREFIX: of runs that began more than
    an hour ago and of which no group has a member. It names them and asks before it removes them.
    """
    from onceproof.lab.external_brokers import ExternalCluster
    from onceproof.lab.sweep import find_kept
    from onceproof.lab.sweep import sweep as sweep_lab
    from onceproof.processes.orphans import end_orphans

    settings = get_settings()
    cluster = None if brokers is None else ExternalCluster.read(settings.installation, brokers)
    if (dry_run or yes) and cluster is None:
        raise UsageError("--dry-run and --yes are about brokers of your own: name them with --brokers.")
    if cluster is not None:
        _sweep_brokers(cluster, dry_run=dry_run, yes=yes)
        if dry_run:
            return
    of_runs = sweep_lab(settings.runs, topics=everything)
    for removed in chain(end_orphans(settings.home), of_runs, sweep_lab(settings.explorations)):
        out.print(f"removed {removed}", markup=False, soft_wrap=True)
    for run in find_kept(settings.runs):
        out.print(
            f"kept the topics of run {run.run_id}: `onceproof run --resume {run.run_id}` continues it, "
            "`onceproof system sweep --all` removes them",
            soft_wrap=True,
        )


def prune(
    keep: Annotated[int, typer.Option(min=1, metavar="N", help="How many of each kind stay, the newest.")] = 30,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed, and stop.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it without a question.")] = False,
) -> None:
    """Remove folders of old runs and searches, and what failed attempts at trials left.

    The newest of each kind stay: runs of a matrix, folders of other commands, searches. So does all in which something
    was written within a day, or that a process uses, and each search with findings. Evidence of what was red is written
    to `runs/evidence` in ONCEPROOF_HOME before. Verdicts stay in the results database.

    Exit: 0, 2 no terminal to ask and no --yes.
    """
    from onceproof.pipeline.pruning import find_old, in_gib, space_of
    from onceproof.pipeline.pruning import prune as prune_old

    settings = get_settings()
    found = find_old(settings, keep)
    for sentence in found.spared:
        out.print(f"kept {sentence}", markup=False, soft_wrap=True)
    for one in found.old:
        out.print(f"{'would remove' if dry_run else 'old:'} {one}", markup=False, soft_wrap=True)
    out.print(str(space_of(settings)), highlight=False)
    if dry_run or not found.old:
        return
    total = in_gib(sum(one.size for one in found.old))
    if not yes and not sys.stdin.isatty():
        raise UsageError(f"There is no terminal to ask whether {total} may be removed: give --yes, or --dry-run.")
    if yes or typer.confirm(f"Remove all of that, {total}?"):
        for removed in prune_old(settings, found.old):
            out.print(removed, markup=False, soft_wrap=True)


def _sweep_brokers(cluster: "ExternalCluster", *, dry_run: bool, yes: bool) -> None:
    """Remove what runs that are over have left on brokers that are not ours, if the person at the terminal agrees."""
    from onceproof.lab.sweep import find_left_on, sweep_brokers

    cluster.check_reached()
    found = find_left_on(cluster)
    for one in found:
        out.print(f"{'would remove' if dry_run else 'left there:'} {one}", markup=False, soft_wrap=True)
    if dry_run or not any(found):
        return
    if not yes and not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask whether all of that may be removed: give --yes, or --dry-run.")
    if yes or typer.confirm(f"Remove all of that from the brokers at {cluster.bootstrap_servers}?"):
        for removed in sweep_brokers(cluster, found):
            out.print(f"removed {removed}", markup=False, soft_wrap=True)
