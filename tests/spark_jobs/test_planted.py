"""What is planted into topics, stores and timelines is found by all witnesses, as what it is, and nothing else is."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceproof.lab.cluster import EmbeddedCluster
from tests.conftest import a_run_id
from tests.specimens.catalogue import one_of_each_anomaly
from tests.specimens.judging import judge
from tests.specimens.mutations import untouched
from tests.specimens.trials import kept_trials


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.parametrize(
    "how_many",
    [
        "each trial once",  # it is planted into, where anything is
        pytest.param("all", marks=[pytest.mark.night, pytest.mark.timeout(1800)]),
    ],
)
def test_all_witnesses_find_exactly_what_was_planted(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path, project: Path, how_many: str
) -> None:
    kept = kept_trials()
    mutations = [*map(untouched, kept), *one_of_each_anomaly(kept)]  # `benchmarks/mutations.py` has all, at many places
    if how_many == "each trial once":
        mutations = list({mutation.clean.name: mutation for mutation in mutations}.values())
    vendor = project / ".onceproof" / "artifacts" / "data-docs-vendor"
    judged = judge(spark, cluster, tmp_path / a_run_id(), mutations, vendor)
    amiss = {f"{j.planted.mutation.clean.name}: {j.planted.mutation.kind}": j.amiss() for j in judged}
    assert {name: witnesses for name, witnesses in amiss.items() if witnesses} == {}
