"""The verbs of the DAG's tasks: each reads the run folder, does one thing, and writes the run folder.

Failures are written down where the judge finds them, so that one cell's failure does not spoil the others' results.
"""

import hashlib
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onceproof.model.anomaly import Findings
from onceproof.model.cell import MARK, Cell, Trial, is_run_id
from onceproof.model.client_properties import ClientProperties
from onceproof.model.decoding import decode
from onceproof.model.errors import HarnessError, OnceproofError, UsageError
from onceproof.model.files import Outcome, Reading, TrialPlan, VerdictRow
from onceproof.model.identity import identity
from onceproof.model.json_file import read_json, write_json
from onceproof.model.known_issues import registry
from onceproof.model.matrix import Expansion, Request, expand, matrix_of, with_controls
from onceproof.model.published import NEWEST, Published
from onceproof.model.release import CLAIMED, Release
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.verdict import Verdict
from onceproof.pipeline.request import CONNECTION, RunRequest
from onceproof.pipeline.space import GIB, measure_free
from onceproof.processes.process import Process
from onceproof.processes.signals import end_by_sigterm
from onceproof.scenarios import CATALOGUE, SCENARIOS
from onceproof.scenarios.prepared import PreparedTrial
from onceproof.settings import get_settings

# This module is imported by the DAG file, which every task parses: heavy modules (Kafka, SQLAlchemy, Great
# Expectations) are imported by the step that needs them.

if TYPE_CHECKING:
    from onceproof.lab.external_brokers import ExternalCluster

Ask = Callable[[], Published]
ClientConfig = Callable[[], ClientProperties]  # of external brokers, if there are any

OWNER_VARIABLE = "ONCEPROOF_OWNER_PID"
UP_SINCE_VARIABLE = "ONCEPROOF_UP_SINCE"
NOBODY = 1  # init: with an Airflow that is not ours, brokers live until the run's teardown
GATE_LINES = 10
CUT_OFF = "The process that drove it was killed."
STOPPED = {Verdict.REGRESSION, Verdict.ERROR}


def no_external_brokers() -> ClientProperties:
    """The configuration for a run on brokers that Onceproof starts: there is none."""
    raise UsageError(f"A release{CLAIMED} is one of brokers of your own: name them with --brokers (docs/brokers.md).")


class GateError(OnceproofError):
    """Something regressed or could not be judged; everything is published, and the message says where."""


def new_run_id(now: datetime, origin: str) -> str:
    """Id of the run of this installation that came from `origin`; a repeated plan has the same, so it finds its run.

    Raises:
        HarnessError: the installation has no id yet, and its home cannot be written.
    """
    digest = hashlib.sha256(f"{identity(get_settings().identity)} {origin}".encode()).hexdigest()
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%S}-{digest[:8]}"


def random_run_id() -> str:
    """Id of a run that begins now, and that no schedule has asked for."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def origin_of_plan() -> dict[str, str]:
    """When and by which installation a plan is made: runs of one id differ in that."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "installation": identity(get_settings().identity),
    }


def was_missed(slot: datetime) -> bool:
    """Whether Airflow was down at a slot of the schedule; it still starts a run for the last such slot."""
    since = os.environ.get(UP_SINCE_VARIABLE)
    return since is not None and slot < datetime.fromisoformat(since)


def is_late(dag_run: Any) -> bool:
    """Whether a DAG run is one of the schedule whose slot was missed; one by hand never is."""
    return dag_run.run_type == "scheduled" and was_missed(dag_run.run_after)


def read_published_here() -> Published:
    """The published releases, as Maven says here; raises as `lab.releases.read_published` does."""
    from onceproof.lab.releases import read_published

    return read_published(get_settings().installation)


def read_published_for(run: RunFolder) -> Published:
    """The releases published when a run was planned; of one that is not, what is published now."""
    planned = read_json(run.run_file) if run.run_file.exists() else {}
    return decode(Published, planned["published"]) if planned.get("published") else read_published_here()


def exact_releases(texts: Iterable[str]) -> list[str]:
    """Texts with releases in place of words, which are printed with what they mean (`lab.releases.exact`)."""
    from onceproof.lab.releases import exact

    return list(exact(get_settings().installation, texts))


def expand_request(request: Request, ask: Ask = read_published_here) -> Expansion:
    """The cells of a request, positive controls included; words in it get their meaning from what is published.

    Raises:
        UsageError: the request names something that does not exist.
        HarnessError: a word is in it, and Maven could not reach its registry, and never has.
    """
    from onceproof.scenarios.cover import exact

    return with_controls(expand(exact(request, ask, registry(), CATALOGUE), CATALOGUE), CATALOGUE, registry())


def why_brokers(request: Request, expansion: Expansion) -> str:
    """Which brokers a run takes, and why, in one sentence."""
    taken = ", ".join(map(str, sorted({cell.broker for cell in expansion.cells})))
    matrix = matrix_of(request)
    if request.brokers:
        return f"brokers {taken}, as asked for"
    why = f": {matrix.why_brokers}" if matrix.why_brokers else ""
    return f"brokers {taken}, of the matrix {matrix.name}{why}"


def check_space() -> None:
    """Check that there is room for a run where it would write.

    Raises:
        UsageError: less is free than the settings ask for.
    """
    settings = get_settings()
    free = measure_free(settings.home) / GIB
    if free < settings.least_free:
        raise UsageError(
            f"Of the disk of {settings.home} {free:.1f} GiB are free, and a run begins with {settings.least_free:g} at "
            "least: call `onceproof system prune`, or set ONCEPROOF_LEAST_FREE."
        )


def check_request(request: Request, ask: Ask = read_published_here) -> Expansion:
    """Check that everything in the request exists and can be run here; returns its cells, positive controls included.

    Raises:
        UsageError: the request names something that does not exist, a release is not published, Java is too old, or
            the disk is nearly full.
        SchemaError: the results database has another schema, so the verdicts could not be stored.
        HarnessError: as `expand_request`.
    """
    from onceproof.lab.artifacts import check_published
    from onceproof.lab.java import require_javas
    from onceproof.results.database import check_schema

    check_space()
    check_schema(get_settings().database_url)
    installation, expansion = get_settings().installation, expand_request(request, ask)
    require_javas(installation, [Trial("", cell, 1, 0) for cell in expansion.cells])
    releases = {r for cell in expansion.cells for r in (cell.streams, cell.running, cell.broker)}
    check_published(installation, sorted(release for release in releases if not release.is_claimed))
    return expansion


def plan(
    run_id: str,
    request: Request,
    dag_run: str | None = None,
    connection: str = CONNECTION,
    external: ClientConfig = no_external_brokers,
) -> RunFolder:
    """Expand the matrix, check that all of it can be run, and write it down; nothing is started.

    Brokers whose release is claimed are those of the Airflow connection, whose name stands in the plan; all steps that
    work with them get its client.properties by `external`.

    The plan has exact releases, and what was published when words got their meaning. An interrupted run can be resumed:
    its plan stays, and trials that ended well are not repeated. Brokers that an earlier run of this Airflow left behind
    are stopped, and their data is deleted, so only the last run can be resumed. A run that another Airflow has under
    way in this home keeps its brokers.

    Raises:
        UsageError: the request names something that does not exist, a release that is not published, or a run that
            has its verdicts, cannot be resumed, or was planned with another request; or brokers that do not let a trial
            do what it does.
        HarnessError: the run folder cannot be written.
    """
    from onceproof.lab.external_brokers import check_access

    if not is_run_id(run_id):
        raise UsageError(
            f"{run_id!r} is not a run id: it must read like 20261121T084500-3f2a91c7; leave it empty for a new one."
        )
    settings = get_settings()
    run = RunFolder(settings.runs / run_id)
    ask = cache(lambda: read_published_for(run))
    expansion = check_request(request, ask)
    asked_for = ask() if ask.cache_info().currsize else None  # a request without words needs no Maven
    if asked_for is not None:
        print(f"{asked_for.meaning(NEWEST)}.")
    on_external = [Trial(run_id, cell, 1, 0) for cell in expansion.cells if cell.broker.is_claimed]
    for broker in {trial.cell.broker for trial in on_external}:
        check_access(_external_cluster(broker, external), *on_external)
    if run.verdicts_file.exists() and not run.has_topics:
        raise UsageError(f"Run {run_id} has its verdicts in {run.path}: leave the run id empty for a new one.")
    asked = RunRequest.of(request, run_id)
    if run.run_file.exists():
        _go_on(run, asked)
    else:
        own = {
            "dag_run": dag_run,
            "connection": connection if on_external else None,
            "published": asked_for.to_dict() if asked_for else None,
        }
        write_json(run.run_file, _plan(run, expansion, asked) | own)
    for folder in sorted(settings.runs.glob("*/clusters")):
        other = RunFolder(folder.parent)
        if other.path != run.path and _is_of_another_airflow(other):
            print(f"Run {other.run_id} is under way in another Airflow: its brokers are left alone.")
            continue
        stop_clusters(other)
        if other.path != run.path:
            discard_data(other)
    return run


def _is_of_another_airflow(run: RunFolder) -> bool:
    """Whether brokers of the run live, or are on another machine, that another Airflow started."""
    from onceproof.lab.cluster import may_serve

    all_ = [read_json(file) for file in sorted(run.path.glob("clusters/*.json"))]
    others = [data for data in all_ if data.get("airflow", _airflow_home()) != _airflow_home()]
    return any("nodes" in data and not data.get("stopped") and may_serve(data) for data in others)


def _plan(run: RunFolder, expansion: Expansion, asked: RunRequest) -> dict[str, object]:
    from onceproof.campaigns.sensitivity.verbs import due

    return {
        "run": run.run_id,
        **origin_of_plan(),
        "matrix": expansion.matrix,
        "request": asked.model_dump(mode="json", exclude={"connection"}),
        "budget": expansion.budget,
        "risk": expansion.risk,
        "brokers": [str(b) for b in sorted({cell.broker for cell in expansion.cells if not _has_own_brokers(cell)})],
        "cells": [{"key": cell.key, "title": cell.title, **cell.to_dict()} for cell in expansion.cells],
        "refused": [{"title": cell.title, "reason": reason} for cell, reason in expansion.refused.items()],
        "trials": [
            new_trial(run, cell, number).to_dict()
            for cell, trials in trials_planned(expansion, run.run_id).items()
            for number in range(1, trials + 1)
        ],
        "plants": [
            {"plant": planting.plant.name, **planting.cell.to_dict()}
            for planting in due(expansion.cells, expansion.plants, expansion.risk, run.run_id)
        ],
    }


def sense(run: RunFolder) -> None:
    """Plant what is due; verdicts of the same run rest on it, too."""
    from onceproof.campaigns.sensitivity.verbs import sense_due

    sense_due(run)


def trials_planned(expansion: Expansion, run_id: str) -> dict[Cell, int]:
    """How many trials each cell gets before any verdict asks for more: positive controls what they lack."""
    from onceproof.harness import harness_versions
    from onceproof.lab.machine import machine
    from onceproof.results.controls import control_trials_lacking
    from onceproof.results.judging import past_before

    settings = get_settings()
    past, here = past_before(run_id, settings.database_url), machine(settings.installation)
    controls = control_trials_lacking(expansion.cells, registry(), past, expansion.risk, harness_versions(), here)
    return {cell: max(expansion.trials, controls.get(cell, 1)) for cell in expansion.cells}


def new_trial(run: RunFolder, cell: Cell, number: int) -> Trial:
    """A trial of the run; its seed follows from the run's id, so that a repeated plan is the same."""
    digest = hashlib.sha256(f"{run.run_id} {cell.key} {number}".encode()).digest()
    prefix = get_settings().prefix if cell.broker.is_claimed else MARK
    return Trial(run.run_id, cell, number, int.from_bytes(digest[:4]) >> 1, prefix=prefix)


def check_resumable(run: RunFolder) -> None:
    """Check that the topics of a run may outlast it.

    Raises:
        UsageError: it has begun on brokers that are not ours, from which they are removed however it ends.
    """
    for broker in read_json(run.run_file)["brokers"]:
        if Release.of_brokers(broker).is_claimed and run.cluster_file(broker).exists():
            raise UsageError(
                f"Run {run.run_id} cannot be resumed: its topics were on brokers of your own ({broker}), where they do "
                "not outlast it; start it again, and `onceproof system sweep --brokers` removes what a kill left there."
            )


def read_request(run: RunFolder) -> RunRequest:
    """The request that a run was planned for.

    Raises:
        HarnessError: its plan is missing or damaged.
    """
    try:
        return RunRequest.read(read_json(run.run_file)["request"])
    except (KeyError, ValueError) as error:
        raise HarnessError(
            f"{run.run_file} is damaged, or of another version of Onceproof: its request cannot be read: {error}."
        ) from error


def _go_on(run: RunFolder, asked: RunRequest) -> None:
    """Prepare an interrupted run, or one whose checks failed, to be resumed: failed trials are open again.

    Raises:
        UsageError: it was planned with another request, or its topics are gone.
    """
    check_resumable(run)
    planned = read_request(run)
    if planned.request != asked.request:
        raise UsageError(
            f"Run {run.run_id} was asked for {planned.differing}, not for {asked.differing}: resume it with what it "
            "was asked for."
        )
    run.verdicts_file.unlink(missing_ok=True)
    run.trials_over.unlink(missing_ok=True)
    for trial in run.trials():
        if (outcome := run.outcome(trial)) is None or not outcome.says_something:
            run.archive_attempt(trial)


def brokers(run: RunFolder) -> list[dict[str, str]]:
    """The releases of the brokers that trials share, and the cells whose trials have brokers of their own."""
    planned = read_json(run.run_file)
    shared = [{"key": broker, "title": f"broker {broker}"} for broker in planned["brokers"]]
    own = [cell for cell in planned["cells"] if SCENARIOS[cell["scenario"]].own_brokers]
    return [*shared, *({"key": cell["key"], "title": f"brokers of {cell['title']}"} for cell in own)]


def cells(run: RunFolder) -> list[dict[str, str]]:
    """The cells of the plan whose trials need the machine; all, if all of them mostly wait."""
    return lanes(run)[0]


def lanes(run: RunFolder) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The cells of the plan that tasks of their own drive, and those that are driven in parallel to them."""
    lane: dict[bool, list[dict[str, str]]] = {False: [], True: []}
    for cell in read_json(run.run_file)["cells"]:
        lane[SCENARIOS[cell["scenario"]].mostly_waits].append({"key": cell["key"], "title": cell["title"]})
    return (lane[False], lane[True]) if lane[False] else (lane[True], [])


def start_cluster(run: RunFolder, broker: str, external: ClientConfig = no_external_brokers) -> None:
    """Start the brokers of one release; if the run was interrupted, with the topics that they had.

    External brokers are up. `broker` is a release, or the key of a cell with brokers of its own. Then only brokers that
    existed before an interruption are restarted; the task that drives a trial starts new ones, as it must own their
    processes. If brokers do not serve, the cluster's file gets the reason, which becomes the outcome of their trials.
    """
    if own := _trials(run, broker):
        for trial in own:
            if run.cluster_file(trial.key).exists():
                _start_brokers(run, trial.key, trial.cell.broker, [trial])
        return
    release = Release.of_brokers(broker)
    if release.is_claimed:
        _hold_external(run, broker, external())
        return
    sharing = [t for t in run.trials() if t.cell.broker == release and not _has_own_brokers(t.cell)]
    _start_brokers(run, broker, release, sharing)


def _hold_external(run: RunFolder, broker: str, properties: ClientProperties) -> None:
    """Say on external brokers that the run is alive, until they are stopped, as the others are."""
    from onceproof.lab.alive import hold

    file, cluster = run.cluster_file(broker), _external_cluster(Release.of_brokers(broker), lambda: properties)
    try:
        holder = hold(cluster, run.run_id, folder=run.cluster_folder(broker), owner=_owner())
    except HarnessError as error:
        print(error)
        write_json(file, {"release": broker, "error": str(error)})
        return
    alive = {"pid": holder.pid, "started": holder.started, "boot": holder.boot, "log": str(holder.log)}
    write_json(file, {"release": broker, "bootstrap_servers": properties.bootstrap_servers, "alive": alive})


def _start_brokers(run: RunFolder, name: str, release: Release, trials: list[Trial]) -> None:
    from onceproof.lab.cluster import EmbeddedCluster
    from onceproof.lab.plan import needs_dead_broker

    file, folder = run.cluster_file(name), run.cluster_folder(name)
    if not EmbeddedCluster.has_data(folder):
        for trial in trials:  # their topics are gone
            run.archive_attempt(trial)
        shutil.rmtree(folder, ignore_errors=True)
    with end_by_sigterm():
        try:
            cluster = EmbeddedCluster.start(get_settings().installation, release, folder, _owner())
            if any(map(needs_dead_broker, trials)):
                cluster.dead_broker()  # while it lives, it would be assigned partitions of other trials' topics
        except OnceproofError as error:
            print(error)
            write_json(file, {"release": str(release), "error": str(error)})
            return
        write_json(file, cluster.to_dict() | {"airflow": _airflow_home()})


def _airflow_home() -> str:
    """The folder by which this Airflow differs from others."""
    return str(Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser())


def _has_own_brokers(cell: Cell) -> bool:
    return SCENARIOS[cell.scenario].own_brokers


def _owner() -> int:
    """The process with which brokers die."""
    return int(os.environ.get(OWNER_VARIABLE, NOBODY))


def stop_clusters(run: RunFolder, external: ClientConfig | None = None) -> None:
    """Stop all brokers of the run, and keep their data; those that are gone already do no harm.

    From external brokers, all that the run has created is removed; from those of an earlier run, for which `external`
    is None, nothing.
    """
    from onceproof.lab.cluster import EmbeddedCluster
    from onceproof.lab.sweep import remove_run

    for file in sorted(run.path.glob("clusters/*.json")):
        data = read_json(file)
        if "error" in data or data.get("stopped"):
            continue
        release = Release.of_brokers(data["release"])
        if holder := data.get("alive"):
            Process.attach(holder["pid"], holder["started"], Path(holder["log"]), holder["boot"]).terminate()
        if not release.is_claimed:
            EmbeddedCluster.from_dict(get_settings().installation, data).stop(keep_data=True)
        elif external is not None:
            remove_run(_external_cluster(release, external), run.run_id)
        else:
            continue
        write_json(file, data | {"stopped": True})


def discard_data(run: RunFolder) -> None:
    """Delete what the brokers of the run stored; the run can no longer be resumed."""
    from onceproof.lab.cluster import EmbeddedCluster

    for file in sorted(run.path.glob("clusters/*.json")):
        EmbeddedCluster.delete_data(run.cluster_folder(file.stem))


def prepare(run: RunFolder, external: ClientConfig = no_external_brokers) -> None:
    """Create the topics of the trials that tasks of their own drive, and produce their first records.

    Trials that have an outcome are left alone. Those with brokers of their own get their topics when they are driven.
    """
    driven = {cell["key"] for cell in cells(run)}
    _prepare(run, [trial for trial in run.trials() if trial.cell.key in driven], external)


def _prepare(run: RunFolder, trials: Iterable[Trial], external: ClientConfig) -> None:
    from onceproof.lab import trial as lab

    def prepare_one(trial: Trial, cluster: Any, folder: Any) -> None:
        prepared = PreparedTrial(trial)
        lab.preload(prepared, lab.provision(prepared, cluster, folder), cluster, folder)

    _for_each_open_trial(run, [trial for trial in trials if not _has_own_brokers(trial.cell)], prepare_one, external)


def drive(
    run: RunFolder, cell: str, external: ClientConfig = no_external_brokers, report: Callable[[str], None] = print
) -> None:
    """Run the cell's trials one after the other; one that has an outcome is not repeated.

    Raises:
        HarnessError: a trial has failed; the others have run nevertheless.
    """
    from onceproof.lab import trial as lab

    def drive_one(trial: Trial, cluster: Any, folder: Any) -> None:
        report(f"trial {trial.number}")
        if _has_own_brokers(trial.cell):
            lab.run_trial(trial, folder, report, cluster=cluster)
        else:
            lab.drive(PreparedTrial(trial), TrialPlan.read(folder.trial_file), cluster, folder, report)

    _for_each_open_trial(run, _trials(run, cell), drive_one, external)
    errors = [error for error in _errors(run, cell) if error]
    if errors:
        raise HarnessError(f"{len(errors)} of {len(_trials(run, cell))} trials failed: {errors[0]}")


def drive_waiting_cells(run: RunFolder, external: ClientConfig = no_external_brokers) -> None:
    """Prepare and drive the cells whose trials mostly wait, in parallel to those that need the machine.

    Raises:
        HarnessError: trials have failed; the others have run nevertheless.
    """
    failed = []
    for cell in lanes(run)[1]:
        try:
            _prepare(run, _trials(run, cell["key"]), external)
            drive(run, cell["key"], external)
        except HarnessError as error:
            failed.append(f"{cell['title']}: {error}")
    if failed:
        raise HarnessError("\n".join(failed))


def add_trials(
    run: RunFolder, external: ClientConfig = no_external_brokers, report: Callable[[str], None] = print
) -> None:
    """Give cells further trials until their claims stand or their budget ends, the positive controls first.

    A cell that was red gets no more: one witness is proof. Nor does one whose trials failed, or that cannot be
    exercised in a variant that avoids the mechanism. A trial whose process was killed, on whatever machine, is void,
    and another one takes its place: it has topics, group and transactions of its own, so nothing has to be undone.
    """
    from onceproof.lab import trial as lab
    from onceproof.results.judging import past_before, risk_of
    from onceproof.results.sequential import cell_that_wants_more

    def drive_one(trial: Trial, cluster: Any, folder: Any) -> None:
        report(trial.title)
        lab.run_trial(trial, folder, report, cluster=cluster)

    replace_cut_off(run)
    budget = read_json(run.run_file)["budget"]
    past, risk = past_before(run.run_id, get_settings().database_url), risk_of(run)
    while (cell := cell_that_wants_more(run, budget, registry(), past, risk)) is not None:
        own = _trials(run, cell.key)
        if all(run.trial(trial).outcome_file.exists() for trial in own):
            run.add_trial(new_trial(run, cell, len(own) + 1))
        _for_each_open_trial(run, _trials(run, cell.key), drive_one, external)


def replace_cut_off(run: RunFolder) -> None:
    """Have each trial that was cut off void, and add another one of its cell."""
    for cut_off in [trial for trial in run.trials() if _is_cut_off(run.trial(trial))]:
        _write_void(cut_off, run.trial(cut_off))
        another = new_trial(run, cut_off.cell, len(_trials(run, cut_off.cell.key)) + 1)
        run.add_trial(another, planned=cut_off.key in run.list_planned_keys())


def _is_cut_off(folder: TrialFolder) -> bool:
    return folder.timeline.exists() and not folder.outcome_file.exists()


def _write_void(trial: Trial, folder: TrialFolder) -> None:
    Reading.of(Findings(0, 0, 0, 0), {}).write(folder.reader_file)
    Outcome.of_void(trial, CUT_OFF).write(folder.outcome_file)


def end_trials(run: RunFolder) -> None:
    """Signal to Spark, which waits for it, that no further trial will be driven."""
    run.trials_over.touch()


def validate(run: RunFolder) -> None:
    """Run the Great Expectations suites on the tables and build the Data Docs."""
    if (project := str(get_settings().project)) not in sys.path:  # in an Airflow that is not ours
        sys.path.insert(0, project)
    from expectations.checkpoints import validate as validate_run

    validate_run(run, get_settings().artifacts / "data-docs-vendor")


def judge(run: RunFolder) -> None:
    """Write one verdict per cell."""
    from onceproof.results.judging import judge_run

    judge_run(run, get_settings().database_url, get_settings().qualifications)


def publish(run: RunFolder) -> None:
    """Store the run in the results database; until then, and if a verdict is an error, it can be resumed."""
    from onceproof.results.database import store_run

    store_run(run, get_settings().database_url)
    if run.is_finished:
        discard_data(run)


def extend_atlas(run: RunFolder) -> None:
    """Add the run to the atlas of the settings, if there is one; if that fails, gate and alert speak nevertheless."""
    from onceproof.atlas.exporting import append

    if (atlas := get_settings().atlas) is not None:
        append(atlas, run)


def gate(run: RunFolder) -> None:
    """Pass a run in which no cell regressed, none is in error, and all positive controls were red.

    Raises:
        GateError: says which, in ten lines at most, and where everything is.
    """
    bad = [v for v in VerdictRow.read_all(run.verdicts_file) if v.verdict in STOPPED or _is_silent_control(v)]
    if not bad:
        return
    shown = bad[: GATE_LINES - 2]
    what = "regressed, failed, or are controls that were not red"
    lines = [f"{len(bad)} of the run's cells {what}; everything is published in {run.path}"]
    lines += [f"{v.verdict}: {v.cell}: {_first_line(v.sentence)}" for v in shown]
    if len(bad) > len(shown):
        lines.append(f"and {len(bad) - len(shown)} more in {run.verdicts_file}")
    raise GateError("\n".join(lines))


def _is_silent_control(verdict: VerdictRow) -> bool:
    return bool(verdict.issues) and verdict.verdict is Verdict.INCONCLUSIVE


def _trials(run: RunFolder, cell: str) -> list[Trial]:
    return [trial for trial in run.trials() if trial.cell.key == cell]


def _for_each_open_trial(
    run: RunFolder, trials: Iterable[Trial], verb: Callable[[Trial, Any, Any], object], external: ClientConfig
) -> None:
    """Apply the verb to those trials that have no outcome yet; an error becomes the outcome of its trial."""
    for trial in trials:
        folder = run.trial(trial)
        if folder.outcome_file.exists():
            continue
        try:
            with end_by_sigterm():
                verb(trial, _cluster(run, trial, external), folder)
        except Exception as error:
            sentence = str(error) if isinstance(error, OnceproofError) else f"{type(error).__name__}: {error}"
            print(f"{trial.key}: {sentence}")
            if not folder.outcome_file.exists():
                Outcome.of_error(trial, sentence).write(folder.outcome_file)


def _errors(run: RunFolder, cell: str) -> list[str | None]:
    """How each trial of the cell failed; None for one that has not, or not yet."""
    outcomes = [run.outcome(trial) for trial in _trials(run, cell)]
    return [outcome.error if outcome else None for outcome in outcomes]


def _cluster(run: RunFolder, trial: Trial, external: ClientConfig) -> Any:
    from onceproof.lab.cluster import EmbeddedCluster

    broker = trial.cell.broker
    if broker.is_claimed:
        return _external_cluster(broker, external)
    if _has_own_brokers(trial.cell) and not run.cluster_file(trial.key).exists():
        _start_brokers(run, trial.key, broker, [trial])
    file = run.cluster_file(run.cluster_of(trial))
    data = read_json(file)
    if "error" in data:
        raise HarnessError(data["error"])
    return EmbeddedCluster.from_dict(get_settings().installation, data, file, _owner())


def _external_cluster(release: Release, external: ClientConfig) -> "ExternalCluster":
    from onceproof.lab.external_brokers import ExternalCluster

    return ExternalCluster(get_settings().installation, release, external())


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""
