"""Both readers say the same of joined tables: of all specimens, and of records that are drawn."""

import random
from collections import Counter

import pytest
from pyspark.sql import SparkSession

from onceproof.model.anomaly import Witness
from onceproof.model.record import Record
from onceproof.readers.checks import check_table_join
from spark_jobs.transforms import checks
from spark_jobs.transforms.comparisons import comparison_findings
from tests.spark_jobs.test_comparisons import _witness, frames
from tests.specimens.foreign_key_join import Specimen
from tests.specimens.table_join import FIVE, SIX, SPECIMENS

pytestmark = pytest.mark.spark
KEYS = (5, 6, 15, 16, 25, 5_005)


def drawn(seed: int) -> Specimen:
    """A few changes of a few keys, and an output that has little to do with them."""
    rng = random.Random(seed)
    inputs = [
        (0, offset, rng.choice(KEYS), rng.choice((1, -1)) * rng.choice((1, 2, 3, 400, 700))) for offset in range(40)
    ]
    output = [
        (0, offset, rng.choice((*KEYS, FIVE, SIX)), rng.choice((0, 0, 2, 3)), rng.randrange(8)) for offset in range(25)
    ]
    return Specimen(f"drawn {seed}", inputs[: rng.randint(1, 40)], output[: rng.randint(0, 25)], [], rng.randrange(3))


def test_both_readers_say_the_same(spark: SparkSession) -> None:
    trials = dict(enumerate([*SPECIMENS, *map(drawn, range(25))], 1))
    tables = checks.check(*frames(spark, trials, dict.fromkeys(trials, "table-join"))).tables
    found: dict[int, Counter[Witness]] = {trial: Counter() for trial in trials}
    for row in comparison_findings(tables["comparisons"]).collect():
        fields = row.asDict()
        found[fields.pop("trial")][_witness(fields)] += 1
    for trial, specimen in trials.items():
        topics = {role: [Record(*record) for record in records] for role, records in specimen.topics.items()}
        assert found[trial] == Counter(check_table_join(topics, specimen.facts).witnesses), specimen
