"""Runs the suites on the tables of every trial of a run, and builds the Data Docs once.

Three quarters of what a suite takes is GX's own Python, whatever the rows: so each core has its share of the trials.
"""

import ctypes
import os
import shutil
import signal
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from multiprocessing import current_process, get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")

import great_expectations as gx
from great_expectations.core import RunIdentifier
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)

from expectations import first_rows, tables
from expectations.data_docs import localise
from expectations.suites import FLOORS, SUITES, Suite, least
from onceproof.model.cell import Trial
from onceproof.model.errors import HarnessError
from onceproof.model.files import Outcome, TrialPlan
from onceproof.model.json_file import read_json, write_json
from onceproof.model.promise import promises_of, suites_of
from onceproof.model.run_folder import RunFolder

# A suite on one trial takes 0.05 s in pandas and 5 to 8 s in Spark; a trial has 63,000 rows. Beyond this, one trial's
# rows no longer fit comfortably into the memory of a task.
PANDAS_ROWS = 2_000_000
SHARE = 4  # trials that are worth a process
PR_SET_PDEATHSIG = 1  # prctl(2)
SHOWN = 20  # offending rows that Data Docs show for each expectation
INDEX = {
    "assignments": ["partition", "key", "id", "expected_id", "first_offset"],
    "changelogs": ["store", "partition", "key", "changelog_offset", "previous_value"],
    "comparisons": ["partition", "place", "key", "expected", "observed"],
}


Outcomes = dict[str, dict[str, Any]]  # by trial and suite
Suites = Mapping[str, Iterable[str]]  # their names, by trial


def validate(run: RunFolder, vendor: Path) -> Outcomes:
    """Run its suites on every trial that Spark has checked, write their outcomes, build the Data Docs.

    Args:
        run: the run; `validations/<trial>.json` and `data_docs/` are written.
        vendor: the unpacked WebJars, see `data_docs.localise`.

    Returns:
        By trial and suite: success, error (a sentence if an expectation could not be evaluated), evaluated, failed.
    """
    for old in (run.data_docs.parent, run.validations):
        shutil.rmtree(old, ignore_errors=True)
    trials = _select_checked(run)
    suites = {trial.key: suites_of(TrialPlan.read(run.trial(trial).trial_file).promises) for trial in trials}
    with TemporaryDirectory(prefix="validated-", dir=run.path) as results:
        outcomes = _in_shares(run, trials, suites, Path(results))
        context = _context(run, Path(results))
        for name in dict.fromkeys(name for names in suites.values() for name in names):
            _suite(context, SUITES[name], name)  # which has a page, too
        context.build_data_docs()
    _require_pages(run, sum(len(of_trial) for of_trial in outcomes.values()))
    localise(run.data_docs.parent, vendor)
    return outcomes


def _in_shares(run: RunFolder, trials: Sequence[Trial], suites: Suites, results: Path) -> Outcomes:
    """The outcomes of all trials, in their order, by a process for each core if there are trials enough."""
    processes = min(len(os.sched_getaffinity(0)), len(trials) // SHARE)
    sizes = tables.TableReader(run, [trial.key for trial in trials], PANDAS_ROWS)
    large = any(sizes.size(SUITES[name].table, key) > PANDAS_ROWS for key, names in suites.items() for name in names)
    # One Spark at a time; and a task of a Celery worker may not have processes of its own.
    if processes < 2 or large or current_process().daemon:
        return _validate_trials(run, suites, results, PANDAS_ROWS, trials)
    validate_share = partial(_validate_trials, run, suites, results, PANDAS_ROWS // processes)
    # Forked: GX takes seconds to import.
    with ProcessPoolExecutor(processes, get_context("fork"), _die_with_parent, (os.getpid(),)) as pool:
        shares = list(pool.map(validate_share, [trials[n::processes] for n in range(processes)]))
    outcomes = {key: of_trial for share in shares for key, of_trial in share.items()}
    return {trial.key: outcomes[trial.key] for trial in trials}


def _die_with_parent(parent: int) -> None:
    """Ask the kernel for SIGKILL when the parent dies: a pool's process would wait forever."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def _validate_trials(run: RunFolder, suites: Suites, results: Path, at_once: int, trials: Sequence[Trial]) -> Outcomes:
    """The outcomes of these trials, of whose rows so many are held at once; GX's own results go into the folder."""
    first_rows.register()
    context = _context(run, results)
    reader = tables.TableReader(run, [trial.key for trial in trials], at_once)
    outcomes = {}
    for trial in trials:
        outcomes[trial.key] = {
            name: _validate(context, run, reader, trial, SUITES[name], name) for name in suites[trial.key]
        }
        write_json(run.validation_file(trial), outcomes[trial.key])
    return outcomes


def _require_pages(run: RunFolder, results: int) -> None:
    """GX logs a page that it cannot draw, and continues.

    Raises:
        HarnessError: pages are missing.
    """
    pages = sum(1 for _ in run.data_docs.parent.glob("validations/**/*.html"))
    if pages < results:
        raise HarnessError(f"Of {results} pages of the Data Docs {results - pages} were not drawn: the log says why.")


def _select_checked(run: RunFolder) -> list[Trial]:
    unreadable = read_json(run.table("errors.json"))
    return [trial for trial in run.list_driven() if trial.key not in unreadable]


def _context(run: RunFolder, results: Path) -> Any:
    """A context that keeps only the validation results, in their folder, and the Data Docs, below the run folder."""
    stores = InMemoryStoreBackendDefaults()
    stores.stores[stores.validation_results_store_name]["store_backend"] = {
        "class_name": "TupleFilesystemStoreBackend",
        "base_directory": str(results),
    }
    site = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": str(run.data_docs.parent),
        },
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
    }
    config = DataContextConfig(
        store_backend_defaults=stores,
        data_docs_sites={f"Onceproof run {run.run_id}": site},
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False),
    )
    return gx.get_context(mode="ephemeral", project_config=config)


def _validate(
    context: Any, run: RunFolder, reader: tables.TableReader, trial: Trial, ours: Suite, name: str
) -> dict[str, object]:
    label = f"{trial.key} {name}"
    with _batch(context, run, reader, trial, ours) as (batch, data):
        suite = _suite(context, ours, name)
        definition = context.validation_definitions.add(gx.ValidationDefinition(name=label, data=batch, suite=suite))
        checkpoint = gx.Checkpoint(
            name=label,
            validation_definitions=[definition],
            result_format={
                "result_format": "SUMMARY",
                "partial_unexpected_count": SHOWN,
                "unexpected_index_column_names": INDEX[ours.table],
            },
        )
        result = context.checkpoints.add(checkpoint).run(
            batch_parameters={"dataframe": data},
            expectation_parameters=_parameters(run, trial, name),
            # GX reads a run's name as a time if it can: the end of 20261121T084500-3099 would be a time zone.
            run_id=RunIdentifier(run_name=f"run {run.run_id}", run_time=datetime.now(UTC)),
        )
    [validated] = result.run_results.values()
    return outcome(validated.to_json_dict())


def _suite(context: Any, ours: Suite, name: str) -> gx.ExpectationSuite:
    """The suite of this name, once per context."""
    known = {suite.name: suite for suite in context.suites.all()}
    return known[name] if name in known else context.suites.add(ours.make())


@contextmanager
def _batch(context: Any, run: RunFolder, reader: tables.TableReader, trial: Trial, ours: Suite) -> Any:
    """The trial's rows as a batch of the engine that fits their number; Data Docs name it by release and variant."""
    sources = context.data_sources
    named = ", ".join(ours.promises) or ours.table
    if reader.size(ours.table, trial.key) <= PANDAS_ROWS:
        asset = sources.add_or_update_pandas(named).add_dataframe_asset(trial.title)
        rows = tables.in_pandas(reader.rows(ours.table, trial.key), ours.table, ours.promises)
        yield asset.add_batch_definition_whole_dataframe("trial"), rows
        return
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName(f"validate {run.run_id}").getOrCreate()
    try:
        asset = sources.add_or_update_spark(f"{named} in Spark", persist=False).add_dataframe_asset(trial.title)
        frame = tables.in_spark(spark, run, ours.table, trial.key, ours.promises)
        yield asset.add_batch_definition_whole_dataframe("trial"), frame
    finally:
        spark.stop()


def _parameters(run: RunFolder, trial: Trial, suite: str) -> dict[str, int]:
    """The records that the producer delivered.

    Returns:
        `keys`; `entries` that the changelogs must at least show; `least_<promise>`, the
        comparisons that the suite must at least see.
    """
    folder = run.trial(trial)
    plan, produced = TrialPlan.read(folder.trial_file), Outcome.read(folder.outcome_file).produced
    rows = {least(promise.name): plan.least(promise.name, produced) for promise in promises_of(suite)}
    return {"keys": produced.keys, "entries": produced.keys + plan.partitions, **rows}


def outcome(validated: dict[str, Any]) -> dict[str, object]:
    """The result of a suite that is kept; an expectation that could not be evaluated is an error, not a failure."""
    failed = [result for result in validated["results"] if not result["success"]]
    errors = [message for result in failed if (message := _exception(result))]
    return {
        "success": validated["success"],
        "error": errors[0] if errors else None,
        "evaluated": len(validated["results"]),
        "failed": [
            {
                "expectation": result["expectation_config"]["type"],
                "floor": result["expectation_config"]["type"] in FLOORS,
                "description": result["expectation_config"].get("description"),
                "unexpected_count": result["result"].get("unexpected_count"),
                "observed_value": result["result"].get("observed_value"),
                "sample": result["result"].get("partial_unexpected_index_list") or [],
            }
            for result in failed
        ],
    }


def _exception(result: dict[str, Any]) -> str | None:
    """First line of what an expectation raised. GX keys it by metric if a metric could not be computed."""
    info = result.get("exception_info") or {}
    for entry in [info, *(value for value in info.values() if isinstance(value, dict))]:
        if entry.get("raised_exception"):
            return f"{result['expectation_config']['type']}: {str(entry['exception_message']).splitlines()[0]}"
    return None
