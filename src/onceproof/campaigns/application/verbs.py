"""The verb of DAG `applications`, and of `app run`: a user application on releases."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from onceproof.campaigns.requests import ApplicationRequest
from onceproof.faults import NONE, rolling_bounce
from onceproof.model.cell import MARK, Cell
from onceproof.model.errors import StoodStillError, UsageError
from onceproof.model.json_file import unwritable
from onceproof.model.judged import AppAnswer
from onceproof.model.plants import plant
from onceproof.model.published import NEWEST
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.processes.signals import end_by_sigterm
from onceproof.scenarios import check_fault
from onceproof.scenarios.app import BESIDE, NAME, SCENARIO, prefix
from onceproof.scenarios.declared import FILE, DeclaredApplication, application_of
from onceproof.settings import get_settings

# As in `steps`: heavy modules are imported by the verb that needs them.
if TYPE_CHECKING:
    from onceproof.campaigns.application.run import ReleaseTrials
    from onceproof.lab.external_brokers import ExternalCluster


@dataclass(frozen=True)
class AppRun:
    """An application that can be run: it can be built on each of the releases, and all of them exist."""

    application: DeclaredApplication
    broker: Release
    settings: Mapping[str, Any]  # parameters that were set
    asked: tuple["ReleaseTrials", ...]  # by release
    external: "ExternalCluster | None" = None  # that allow all of it
    warnings: tuple[str, ...] = ()  # what changes of its topology on the way to the other release, a sentence each

    @property
    def title(self) -> str:
        """The name of the application, with the seed that repeats the run."""
        return f"{self.application.name}, seed {self.asked[0].seed}"

    @property
    def fault(self) -> str:
        """The fault that is injected into it."""
        return str(self.asked[0].parameters["fault"])


def app_run(
    run: RunFolder,
    folder: str,
    request: ApplicationRequest,
    seed: int,
    external: "ExternalCluster | None" = None,
) -> AppRun:
    """The application run, when all of it exists.

    Args:
        run: takes the trials.
        folder: of the application.
        request: releases of Kafka Streams (none: the one that its file says, and the newest) and of the brokers,
            parameters, the release to which it goes over instance by instance, and bugs that are planted.
        seed: of records and schedule, if the request has none.
        external: brokers to run on, of a claimed release; None for brokers of its own.

    Raises:
        UsageError: the application, a release, the fault, a parameter or the plant is not there or does not fit; or the
            external brokers do not answer, or do not allow what a trial does.
        HarnessError: Maven or Java failed.
    """
    from onceproof.campaigns.application.controls import CONTROLS
    from onceproof.campaigns.application.run import ReleaseTrials, fault_of
    from onceproof.lab.agent import check_plantable
    from onceproof.lab.applications import check_topology
    from onceproof.lab.artifacts import check_published, replay_class_path
    from onceproof.lab.external_brokers import check_access
    from onceproof.lab.java import require_java
    from onceproof.lab.releases import exact

    installation, application = get_settings().installation, application_of(folder)
    streams, roll_to, plant_name, controls = request.streams, request.roll_to, request.plant, request.controls
    seed = request.seed_or(seed)
    chosen = SCENARIO.parse([*request.all_settings, *([f"fault={rolling_bounce.NAME}"] if roll_to else [])])
    parameters = {**chosen, "application": str(application.folder)}
    parameters["fault"] = fault_of(parameters)
    if parameters["fault"] != NONE:
        check_fault(NAME, parameters["fault"])
    elif parameters.get(BESIDE, NONE) != NONE:
        raise UsageError(f"{BESIDE}={parameters[BESIDE]} is a second fault, and there is no first one: add --fault.")
    brokers = external.release if external else Release.parse(*exact(installation, [request.broker]))
    restart_on = Release.parse(*exact(installation, [roll_to])) if roll_to else None
    declares = application.declares
    releases, newest = _releases_of(application, streams)
    if application.declares.command:
        check_command(application, releases, plant_name, controls=controls)
        releases = [release.claimed for release in releases]
    cells = [Cell(NAME, "DEFAULT_CONFIG", release, brokers, restart_on) for release in releases]
    names = external.prefix if external else MARK
    asked = tuple(ReleaseTrials(run, cell, 1, seed, parameters, plant_name, newest, controls, names) for cell in cells)
    also = {newest} if newest and _replays_newest(application) else set()
    needed = {release for cell in cells for release in (cell.streams, cell.running) if not release.is_claimed} | also
    if external is None:
        require_java(installation.java, brokers.oldest_java, f"a broker of Kafka {brokers}")
        needed.add(brokers)
    check_published(installation, needed)
    application.messages(seed, 0)
    for wanted in asked:
        SCENARIO.validate(wanted.whole)
        if wanted.cell.streams.is_claimed:
            continue
        for release in sorted({wanted.cell.streams, wanted.cell.running} | also):
            check_topology(installation, application, release, prefix(wanted.whole))
        for release in ({wanted.cell.streams} if declares.promises("replay") else set()) | also:
            replay_class_path(installation, release)
        for name in [*([plant_name] if plant_name else []), *(CONTROLS if controls else [])]:
            for release in {wanted.cell.streams, wanted.cell.running}:
                check_plantable(installation, plant(name), release)
    if external is not None:
        check_access(external, *(wanted.whole for wanted in asked))
    return AppRun(application, brokers, chosen, asked, external, tuple(_warnings(application, cells)))


def resolve_releases(folder: str, request: ApplicationRequest) -> ApplicationRequest:
    """The request with exact releases, when all that Maven brings for them is here. No code of the application runs.

    Raises:
        UsageError: the application, a release or a dependency is not there, or its sources do not compile.
        HarnessError: Maven failed.
    """
    from onceproof.lab.applications import application_class_path
    from onceproof.lab.artifacts import broker_class_path, check_published, dumper_class_path, replay_class_path
    from onceproof.lab.releases import exact

    installation, application = get_settings().installation, application_of(folder)
    brokers = Release.parse(*exact(installation, [request.broker]))
    releases, newest = _releases_of(application, request.streams)
    also = {newest} if newest and _replays_newest(application) else set()
    if not application.declares.command:
        check_published(installation, {*releases, *also})
        for release in {*releases, *also}:
            for start in application.declares.starts:
                application_class_path(installation, folder, release, start)
        for release in {*(releases if application.declares.promises("replay") else ()), *also}:
            replay_class_path(installation, release)
    broker_class_path(installation, brokers)
    dumper_class_path(installation, brokers)
    return request.model_copy(update={"streams": tuple(map(str, releases)), "broker": str(brokers)})


def _releases_of(application: DeclaredApplication, named: Sequence[str]) -> tuple[list[Release], Release | None]:
    """The releases to run an application on, and the newest one, where that is asked for or replayed."""
    from onceproof.lab.releases import exact, read_published

    installation = get_settings().installation
    newest = read_published(installation).resolve(NEWEST) if _replays_newest(application) or not named else None
    if newest and not named:
        return default_releases(application, newest), newest
    return [Release.parse(name) for name in exact(installation, named)], newest


def _replays_newest(application: DeclaredApplication) -> bool:
    return application.declares.promises("replay-newest") and not application.declares.command


def _warnings(application: DeclaredApplication, cells: Sequence[Cell]) -> Iterator[str]:
    """The changes of its topology on the way to another release, and what to do about it, a sentence for each way."""
    from onceproof.lab.comparing import compare_application

    if application.declares.command:
        return
    for cell in cells:
        if cell.restart_on is None or cell.restart_on == cell.streams:
            continue
        changes = compare_application(get_settings().installation, application.folder, (cell.streams, cell.restart_on))
        if changes.grave:
            changed = "; ".join(change.summary for change in changes.grave)
            yield f"Its topology changes between {cell.streams} and {cell.restart_on}: {changed}. {changes.advice}"


def default_releases(application: DeclaredApplication, newest: Release) -> list[Release]:
    """The releases on which an application is run if none is named: its own, if its file has it, and the newest.

    Raises:
        UsageError: it is a command, and its file does not say which release that brings.
    """
    declares = application.declares
    declared = [Release.parse(declares.release)] if declares.release else []
    if not declares.command:
        return list(dict.fromkeys([*declared, newest]))
    if not declared:
        raise UsageError(
            f"{application.name} is a command: name the release that it brings, by --streams or in {FILE}."
        )
    return declared


def check_command(
    application: DeclaredApplication, releases: Sequence[Release], plant_name: str | None, *, controls: bool
) -> None:
    """Check that what is asked for needs no class path, which a command has of its own.

    Raises:
        UsageError: it does.
    """
    if len(releases) > 1:
        raise UsageError(
            f"{application.name} is a command, which brings its own release, but {len(releases)} are named: name the "
            "one that it brings."
        )
    if plant_name or controls:
        raise UsageError(
            f"{application.name} is a command, and {plant_name or 'controls'} can only be planted into a class path "
            "that is known here: leave out --plant and --controls, or give a class instead of a command."
        )


def apply(wanted: AppRun, report: Callable[[str], None] = print) -> AppAnswer:
    """Run the application on each release; `app.json` in the run folder is what is returned, and what there is so far.

    Raises:
        HarnessError: the harness failed.
    """
    from onceproof.campaigns.application.brokers import ApplicationBrokers
    from onceproof.campaigns.application.run import agenda_of, not_run, run_on_release

    first = wanted.asked[0]
    answer = AppAnswer(
        application=str(wanted.application.folder),
        class_name=wanted.application.declares.what,
        broker=str(wanted.broker),
        fault=wanted.fault,
        parameters=wanted.settings,
        seed=first.seed,
        releases=(),
    )
    installation, agenda = get_settings().installation, agenda_of(wanted.asked, report)
    with end_by_sigterm(), ApplicationBrokers(installation, first.run, wanted.external) as brokers:
        for asked in wanted.asked:
            try:
                found = run_on_release(installation, asked, brokers, agenda)
            except StoodStillError as error:  # which says nothing of the other releases
                found = not_run(asked, str(error))
            answer = replace(answer, releases=(*answer.releases, found))
            answer.write(first.run.app_file)
    return answer


def applications(named: Sequence[str]) -> list[str]:
    """Folders of the applications that are run every night, or of those of these names.

    Raises:
        UsageError: there is none of a name; names those that are.
    """
    root = get_settings().applications
    there = {file.parent.name: str(file.parent) for file in sorted(root.glob(f"*/{FILE}"))}
    if unknown := [name for name in named if name not in there]:
        raise UsageError(
            f"There is no application {unknown[0]!r} in {root} (ONCEPROOF_APPLICATIONS); there is "
            f"{', '.join(there) or 'none'}."
        )
    return [there[name] for name in named or there]


def claim_folder(run: RunFolder) -> None:
    """Make the folder of a run, which no other run has.

    Raises:
        UsageError: it is there: another run has it, or this one was begun before.
        HarnessError: the disk is full or read-only.
    """
    try:
        run.path.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(
            f"{run.path} is there already, and a run would write over what it holds: trigger a new run."
        ) from None
    except OSError as error:
        raise unwritable(error, run.path) from error


def complaint(answer: AppAnswer) -> str:
    """The complaint, in a sentence, where not all is green."""
    worst = next(release for release in answer.releases if release.judgement is answer.judgement)
    explained = f", {worst.explained}" if worst.explained else ""
    return f"{answer.name} on {worst.streams}: {worst.judgement}{explained}: {worst.reason} {worst.advice}".rstrip()
