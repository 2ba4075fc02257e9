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

    In: records (trial, role, partition, offset, key, value); trials (trial, partitions). `trial` may be of any type.
    """
    of_keys = enumerator.keys(records, trials)
    assigned = enumerator.assign(records, of_keys)
    of_ids = enumerator.identities(assigned)
    counter = enumerator.counter_store(records, trials)
    logs = enumerator.ids_store(of_keys).unionByName(counter)
    return Checked(
        tables={
            "assignments": enumerator.assignments(assigned),
            "changelogs": logs,
            "findings": enumerator.findings(of_keys, assigned, of_ids, logs),
            "counts": enumerator.counts(of_keys, of_ids, trials),
        },
        shared=(of_keys, of_ids, counter),
    )


CHECKS: dict[str, Callable[[DataFrame, DataFrame], Checked]] = {"enumerator": check_enumerator}
