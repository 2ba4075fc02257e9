"""Find the anomalies in the collected records.

Reads `records`, writes `assignments`, `changelogs`, `transactions`, `comparisons`, `findings` and `counts`, for all
trials at once. A trial that could not be collected has no rows in any of them. Running it again replaces the tables.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from onceproof.model.anomaly import corrupt_record
from onceproof.model.cell import Trial
from onceproof.model.files import Outcome, TrialPlan, read_observations
from onceproof.model.run_folder import RunFolder
from spark_jobs import tables
from spark_jobs.transforms import checks
from spark_jobs.transforms.comparisons import comparison_findings, in_memory
from spark_jobs.transforms.segments import Segments, check_segments

# For a trial whose drive Kafka ended: what was open when the independent reader looked may have been decided since.
READ = "_read/"
COMMITTED = "_end/"  # the input after it was never processed


def check(spark: SparkSession, run_folder: RunFolder) -> None:
    """Write the tables of every trial that was collected."""
    tables.drop(run_folder, *tables.CHECKED)
    unreadable = tables.read_errors(run_folder)
    trials = [trial for trial in run_folder.list_driven() if trial.key not in unreadable]
    facts = {trial.key: Outcome.read(run_folder.trial(trial).outcome_file).facts for trial in trials}
    stated = in_memory(spark, state_trials(run_folder, facts), checks.TRIALS)
    records = tables.read_records(spark, run_folder).withColumnRenamed("trial", "name")
    records = as_far_as(READ, records, facts)
    logs = segments_of(spark, run_folder, trials, records, stated)
    records = as_far_as(COMMITTED, records, facts)
    checked = checks.check(records, stated)
    observed = in_memory(spark, observations_of(run_folder, trials), tables.CHECKED["comparisons"])
    shared = [frame.persist() for frame in (*checked.shared, *logs.shared)]
    made = {**checked.tables, "transactions": logs.transactions}
    for table in tables.CHECKED:
        rows = name_trials(made[table], stated)
        if table == "comparisons":
            rows = rows.unionByName(name_trials(logs.comparisons, stated)).unionByName(observed)
        elif table == "findings":  # reading the comparisons again is quicker than making them again
            rows = rows.unionByName(comparison_findings(tables.read(spark, run_folder, "comparisons")))
        tables.write(run_folder, table, rows.select(*tables.columns_of(table)))
    for frame in shared:
        frame.unpersist()


def state_trials(run_folder: RunFolder, facts: Mapping[str, Mapping[str, int]]) -> list[dict[str, Any]]:
    """The rows of `checks.TRIALS`, from the facts of each trial by its key."""
    rows = []
    for number, (key, known) in enumerate(facts.items()):
        folder = run_folder.trial(key)
        plan = TrialPlan.read(folder.trial_file)
        dumps, entry_dumps = folder.dumps(), folder.entry_dumps()
        stated = checks.state_trial(
            key, number, plan.check, plan.partitions, known, dumps, entry_dumps, plan.byte_stores
        )
        rows.append(stated)
    return rows


def as_far_as(mark: str, records: DataFrame, facts: Mapping[str, Mapping[str, int]]) -> DataFrame:
    """Drop records at or after the offset given by a fact `<role><mark><partition>`, of trials whose drive Kafka ended.

    In and out: records (name, role, partition, offset, ...). `facts` by trial.
    """
    ends = [
        {"name": trial, "role": role, "partition": int(partition), "end": end}
        for trial, known in facts.items()
        for (role, marked, partition), end in ((fact.partition(mark), end) for fact, end in known.items())
        if marked
    ]
    if not ends:
        return records
    places = f.broadcast(in_memory(records.sparkSession, ends, "name string, role string, partition int, end long"))
    far = records.join(places, ["name", "role", "partition"], "left")
    return far.where(f.col("end").isNull() | (f.col("offset") < f.col("end"))).drop("end")


def segments_of(
    spark: SparkSession, run_folder: RunFolder, trials: list[Trial], records: DataFrame, stated: DataFrame
) -> Segments:
    """The findings in the brokers' log segments, for the trials whose segments could be read."""
    keys = [trial.key for trial in trials if run_folder.trial(trial).segments_file.exists()]
    if not keys:
        made = ("transactions", "comparisons")
        transactions, comparisons = (in_memory(spark, [], tables.number_trials(name)) for name in made)
        return Segments(transactions, comparisons, ())
    plans = {key: TrialPlan.read(run_folder.trial(key).trial_file).roles for key in keys}
    roles = [{"name": key, "role": name} for key, of in plans.items() for name, role in of.items() if role.committed]
    wanted = f.broadcast(in_memory(spark, roles, "name string, role string"))
    entries = checks.number_trials(tables.read_segments(spark, run_folder, keys), stated)
    undecoded = [{**c, "name": c["trial"]} for c in tables.read_corrupt(run_folder)]
    places = in_memory(spark, undecoded, "name string, role string, partition int, offset long")
    seen = records.unionByName(places, allowMissingColumns=True).join(wanted, ["name", "role"])
    return check_segments(entries, checks.number_trials(seen, stated), stated)


def observations_of(run_folder: RunFolder, trials: list[Trial]) -> list[dict[str, Any]]:
    """The findings in timelines, and records that cannot be decoded, as rows of the table `comparisons`."""
    files = {trial.key: run_folder.trial(trial).observations_file for trial in trials}
    observations = {key: read_observations(file) for key, file in files.items() if file.exists()}
    rows = [{**vars(comparison), "trial": key} for key, observed in observations.items() for comparison in observed]
    for c in tables.read_corrupt(run_folder):
        if c["trial"] in files:
            comparison = corrupt_record(c["role"], c["partition"], c["offset"], c["fault"])
            rows.append({**vars(comparison), "trial": c["trial"]})
    return rows


def name_trials(rows: DataFrame, trials: DataFrame) -> DataFrame:
    """Rows with the trial's name in place of its number."""
    names = f.broadcast(trials.select("trial", "name"))
    return rows.join(names, "trial").drop("trial").withColumnRenamed("name", "trial")
