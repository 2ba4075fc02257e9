"""What is planted into topics, stores and timelines is found by all witnesses, as what it is, and nothing else is."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceproof.lab.cluster import EmbeddedCluster
from tests.specimens.catalogue import one_of_each_anomaly
from tests.specimens.judging import judge
from tests.specimens.mutations import untouched
from tests.specimens.trials import kept_trials

KEPT = kept_trials()


@pytest.mark.spark
@pytest.mark.broker
def test_all_witnesses_find_exactly_what_was_planted(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path, project: Path
) -> None:
    # `benchmarks/mutations.py` plants all kinds at many places.
    mutations = [*one_of_each_anomaly(KEPT), *map(untouched, KEPT)]
    vendor = project / ".onceproof" / "artifacts" / "data-docs-vendor"
    judged = judge(spark, cluster, tmp_path / "20261121T084500-3f2a", mutations, vendor)
    amiss = {f"{j.planted.mutation.clean.name}: {j.planted.mutation.kind}": j.amiss() for j in judged}
    assert {name: told for name, told in amiss.items() if told} == {}
