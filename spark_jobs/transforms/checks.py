"""Which promises are checked in which topology of the application, and the tables that result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from onceproof.model.files import StorePlan
from onceproof.model.run_folder import StoreDump
from spark_jobs.transforms import contents, enumerator
from spark_jobs.transforms.answers import compare_answers, compare_published
from spark_jobs.transforms.contents import Log
from spark_jobs.transforms.deliveries import compare_deliveries, count_deliveries
from spark_jobs.transforms.entries import STORES, compare_entries
from spark_jobs.transforms.groups import GROUPED_TABLE
from spark_jobs.transforms.joins import AS_OF_JOIN, FOREIGN_KEY_JOIN, GLOBAL_JOIN, TABLE_JOIN
from spark_jobs.transforms.matches import compare_matches
from spark_jobs.transforms.punctuations import compare_punctuations
from spark_jobs.transforms.queries import compare_queries
from spark_jobs.transforms.reads import compare_reads
from spark_jobs.transforms.scans import compare_scans
from spark_jobs.transforms.state import compare_state
from spark_jobs.transforms.stores import DUMPS, compare_stores
from spark_jobs.transforms.time_order import compare_time_order
from spark_jobs.transforms.transactions import compare_transactions
from spark_jobs.transforms.windows import compare_windows

ENUMERATOR = "enumerator"  # has its own tables in addition to its promises
Facts = Mapping[str, int]


def _is_cached(facts: Facts) -> bool:
    return bool(facts.get("cached", 1))


def _of_enumerator(facts: Facts) -> list[Log]:
    logs = [
        Log("output-order", "output", judged="nothing", counted=True),
        Log("changelog", "ids-changelog", "first", "nothing", folded=_is_cached(facts), counted=True),
    ]
    if not _is_cached(facts):
        logs.append(Log("changelog", "counter-changelog", "first", "nothing", key=0, counted=True))
    return logs


def _of_counting(facts: Facts) -> list[Log]:
    return [
        Log("output-order", "output", judged="number", counted=True),
        Log("changelog", "last-changelog", folded=_is_cached(facts), beside="output", history=True),
    ]


def _of_dedup(facts: Facts) -> list[Log]:
    cached, punctuated = _is_cached(facts), bool(facts.get("punctuated"))
    return [
        Log("output-order", "output", "first", counted=True),
        Log(
            "changelog", "seen-changelog", "first", folded=cached, beside="output", punctuated=punctuated, history=True
        ),
    ]


def _of_dead_letters(facts: Facts) -> list[Log]:
    skipped = Log("dead-letters", "dead-letters", "skipped", handled=True)
    return [Log("skipping", "output", "taken"), *([skipped] if facts.get("queue") else [])]


def _of_deleter(facts: Facts) -> list[Log]:
    folded = _is_cached(facts) or bool(facts.get("downstream"))
    return [
        Log("output-order", "output", "delete", "answer", counted=True),
        Log("changelog", "records-changelog", judged="change", folded=folded, history=True),
    ]


def _of_outbox(_: Facts) -> list[Log]:
    return [
        Log("output-order", "output", judged="number", counted=True),
        Log("changelog", "buffer-changelog", puts=True),
    ]


def _of_scans(facts: Facts) -> list[Log]:
    return [
        Log("output-order", "output", "delete", "nothing", counted=True),
        Log("changelog", "records-changelog", judged="change", folded=_is_cached(facts), history=True),
    ]


def _of_as_of_join(_: Facts) -> list[Log]:
    return [
        Log("output-order", "output", judged="gives", counted=True),
        Log("changelog", "versions-changelog", "version", "version"),
    ]


@dataclass(frozen=True)
class Check:
    """The promises that are checked in a topology, and what a replay of the input says about its logs, given the facts.

    `delivered` is the role in which its records are emitted; `once`: each key is emitted once, however often it went
    in.
    """

    promises: tuple[str, ...]
    logs: Callable[[Facts], list[Log]]
    delivered: str = "output"
    once: bool = False


CHECKS = {
    AS_OF_JOIN: Check(("deliveries", "entries"), _of_as_of_join),
    ENUMERATOR: Check(("state", "stores"), _of_enumerator),
    "copy": Check(("deliveries",), lambda _: [Log("output-order", "output", counted=True)]),
    "counting": Check(("deliveries", "reads", "stores"), _of_counting),
    "dedup": Check(("deliveries", "state", "stores"), _of_dedup, once=True),
    "dead-letters": Check((), _of_dead_letters),
    "deleter": Check(("answers", "published", "stores"), _of_deleter),
    FOREIGN_KEY_JOIN: Check(("stores", "entries"), lambda _: [Log("joined", "output", judged="result", folded=True)]),
    GLOBAL_JOIN: Check(("deliveries",), lambda _: [Log("output-order", "output", judged="gives", counted=True)]),
    GROUPED_TABLE: Check(("stores",), lambda _: [Log("grouped", "output", judged="gives", folded=True)]),
    "interactive-queries": Check(("deliveries", "reads", "queries", "stores"), _of_counting),
    "outbox": Check(("punctuations", "stores"), _of_outbox),
    "scans": Check(("scans", "stores"), _of_scans),
    TABLE_JOIN: Check(("stores", "entries"), lambda _: [Log("joined", "output", judged="result", folded=True)]),
    "stream-join": Check(("matches", "entries"), lambda _: []),
    "two-topics": Check(("time-order",), lambda _: []),
    "values": Check(
        ("deliveries", "transactions", "stores"),
        lambda facts: [Log("changelog", "values-changelog", folded=_is_cached(facts), counted=True, history=True)],
        delivered="values-changelog",
    ),
    "windows": Check(("windows", "entries"), lambda _: []),
}

# Each promise compares the records (see `number_trials`) of all trials that make it, whatever their topology: what
# takes time in a run of a few trials is not their records but the number of queries.
PROMISES: dict[str, Callable[[DataFrame, DataFrame], DataFrame]] = {
    "matches": compare_matches,
    "punctuations": compare_punctuations,
    "reads": compare_reads,
    "scans": compare_scans,
    "state": compare_state,
    "stores": compare_stores,
    "entries": compare_entries,
    "time-order": compare_time_order,
    "windows": compare_windows,
    "queries": compare_queries,
    "answers": lambda records, _: compare_answers(records),
    "published": compare_published,
    "transactions": lambda records, _: compare_transactions(records, "values-changelog", "values-changelog-all"),
}

TRIALS = (
    "name string, trial int, check string, promises array<string>, delivered string, once boolean, partitions int, "
    f"facts map<string, long>, logs array<{contents.LOG}>, dumps {DUMPS}, entry_dumps {DUMPS}, entry_stores {STORES}"
)


def state_trial(
    name: str,
    number: int,
    check: str,
    partitions: int,
    facts: Facts,
    dumps: Sequence[StoreDump] = (),
    entry_dumps: Sequence[StoreDump] = (),
    entry_stores: Mapping[str, StorePlan] | None = None,
) -> dict[str, Any]:
    """A row of `TRIALS`.

    A promise is left out where a trial has nothing to judge it by: stores that no dump shows, or the state of a
    process that was not killed, so that no fact says where its changelogs ended.
    """
    chosen = CHECKS[check]
    judged = {
        "state": any(fact.endswith("_end") for fact in facts),
        "stores": bool(dumps),
        "entries": bool(entry_dumps),
    }
    return {
        "name": name,
        "trial": number,
        "check": check,
        "promises": [promise for promise in chosen.promises if judged.get(promise, True)],
        "delivered": chosen.delivered,
        "once": chosen.once,
        "partitions": partitions,
        "facts": list(facts.items()),
        "logs": [asdict(log) for log in chosen.logs(facts)],
        "dumps": [_row(dump) for dump in dumps],
        "entry_dumps": [_row(dump) for dump in entry_dumps],
        "entry_stores": [{"store": store, **asdict(of)} for store, of in (entry_stores or {}).items()],
    }


def _row(dump: StoreDump) -> dict[str, Any]:
    return {name: getattr(dump, name) for name in ("store", "partition", "task_type", "offset", "title")}


@dataclass(frozen=True)
class Checked:
    """The tables derived from the records: one frame per table of `spark_jobs.tables`, by the table's name.

    `findings` does not have the anomalies among the `comparisons` yet. `shared` are the frames from which several
    tables are made: worth keeping while those are written.
    """

    tables: dict[str, DataFrame]
    shared: tuple[DataFrame, ...]


def check(records: DataFrame, trials: DataFrame) -> Checked:
    """Check the records of all trials.

    In: records (name, role, partition, offset, key, value) and trials, both with the trial's name; trials as `TRIALS`.
    """
    looked_at = trials.select("check", "promises").collect()
    present = {row["check"] for row in looked_at}
    promised = {promise for row in looked_at for promise in row["promises"]}
    own, counts, shared = check_enumerator(records, trials.where(f.col("check") == ENUMERATOR))
    comparisons = [contents.compare_contents(number_trials(records, trials), trials, present)]
    if present - {ENUMERATOR}:
        others = trials.where(f.col("check") != ENUMERATOR)
        deliveries = count_deliveries(number_trials(records, others))
        comparisons.append(compare_deliveries(deliveries, trials.where(makes("deliveries"))))
        counts = counts.unionByName(count(deliveries, others))
        shared = (*shared, deliveries)
    for promise, compare in PROMISES.items():
        if promise in promised:
            promising = trials.where(makes(promise))
            comparisons.append(compare(number_trials(records, promising), promising))
    return Checked(
        tables={**own, "comparisons": reduce(DataFrame.unionByName, comparisons), "counts": counts}, shared=shared
    )


def makes(promise: str) -> Column:
    """Whether a trial makes the promise."""
    return f.array_contains("promises", promise)


def number_trials(records: DataFrame, trials: DataFrame) -> DataFrame:
    """The records of these trials, with the trial's number in place of its name.

    A trial's name has some 50 characters; without it the rows, all of which are moved and sorted, are a third as long.
    """
    return records.join(f.broadcast(trials.select("name", "trial")), "name").drop("name")


def check_enumerator(
    records: DataFrame, trials: DataFrame
) -> tuple[dict[str, DataFrame], DataFrame, tuple[DataFrame, ...]]:
    """Check trials of the topology `enumerator`. In: as `check`. Out: its tables, its counts, the frames they share."""
    integers = number_trials(records, trials).withColumn("value", f.col("value").cast("int"))
    of_keys = enumerator.keys(integers, trials)
    assigned = enumerator.assign(integers, of_keys)
    of_ids = enumerator.identities(assigned)
    counter = enumerator.counter_store(integers, trials)
    suspects = enumerator.suspects(assigned, of_ids)
    logs = enumerator.ids_store(of_keys).unionByName(counter)
    made = {
        "assignments": enumerator.assignments(assigned),
        "changelogs": logs,
        "findings": enumerator.findings(of_keys, suspects, logs),
    }
    return made, enumerator.counts(of_keys, of_ids, trials), (of_keys, of_ids, counter, suspects)


def count(deliveries: DataFrame, trials: DataFrame) -> DataFrame:
    """The table `counts`, with a row for every trial, even one without any record.

    In: what `count_deliveries` gives.
    """
    sums = deliveries.groupBy("trial").agg(
        f.sum("inputs").alias("records"),
        f.sum("outputs").alias("outputs"),
        f.count_if(f.col("inputs") > 0).alias("keys"),
    )
    numbers = (f.coalesce(name, f.lit(0)).alias(name) for name in ("records", "outputs", "keys"))
    return trials.join(sums, "trial", "left").select("trial", *numbers, f.lit(0).cast("long").alias("ids"))
