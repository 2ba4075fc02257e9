"""Which transforms check which scenario."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from spark_jobs.transforms import enumerator


@dataclass(frozen=True)
class Checked:
    """What a check derives from the records: one frame per table of `spark_jobs.tables`, by the table's name.

    `shared` are the frames that several tables are made of: worth keeping while those are written.
    """

    tables: dict[str, DataFrame]
    shared: tuple[DataFrame, ...]


def check_enumerator(records: DataFrame, trials: DataFrame) -> Checked:
    """Check trials of the enumerator.

    In: records (trial, role, partition, offset, key, value); trials (trial, partitions).
    """
    replayed = enumerator.replay(records, trials)
    assigned = enumerator.assign(records, replayed)
    logs = enumerator.changelogs(records, assigned, trials)
    return Checked(
        tables={
            "assignments": enumerator.assignments(assigned),
            "changelogs": logs,
            "findings": enumerator.findings(replayed, assigned, logs),
            "counts": enumerator.counts(replayed, assigned, trials),
        },
        shared=(replayed, assigned, logs),
    )


CHECKS: dict[str, Callable[[DataFrame, DataFrame], Checked]] = {"enumerator": check_enumerator}
