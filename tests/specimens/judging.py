"""What all witnesses say about trials that were planted on a broker: the independent reader, Spark, the suites.

The log segments are looked at by both readers; what they find there has its own suite.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from expectations.checkpoints import validate
from onceproof.lab.cluster import EmbeddedCluster
from onceproof.model.anomaly import Findings, Witness
from onceproof.model.promise import map_suites
from onceproof.model.segments import OFFSETS
from spark_jobs.check import check
from spark_jobs.collect import collect
from tests.specimens.mutations import Mutation
from tests.specimens.planting import Planted, plant, read
from tests.specimens.trials import findings_of


@dataclass
class Judged:
    """A planted trial, and what the two readers and the suites say about it."""

    planted: Planted
    read: Findings
    spoken: Findings
    suites: dict[str, dict[str, object]]  # by name: `success`, `error`, `failed`

    @property
    def due(self) -> Counter[Witness]:
        """What must be found."""
        return Counter(self.planted.witnesses)

    def amiss(self) -> dict[str, object]:
        """What is not as it must be: what was missed, or found in excess, and by whom; normally nothing."""
        due, witnesses = self.due, {"reader": self.read, "Spark": self.spoken}
        found = {name: Counter(map(_witness, findings.witnesses)) for name, findings in witnesses.items()}
        return {
            what: amiss
            for what, amiss in (
                *((f"missed by {name}", due - seen) for name, seen in found.items()),
                *((f"extra by {name}", seen - due) for name, seen in found.items()),
                ("counts", _differing(self.read, self.spoken)),
                ("suites", sorted(self._wrong_suites())),
            )
            if amiss
        }

    def _wrong_suites(self) -> Iterator[str]:
        """Suites that fail where none of their anomalies was planted, or hold where all that could see one hold."""
        planted = {witness.anomaly for witness in self.due}
        failed: set[str] = set()
        for name, outcome in self.suites.items():
            sees = map_suites()[name]
            if outcome["error"] is not None:
                yield f"{name}: {outcome['error']}"
            elif not outcome["success"]:
                failed |= sees
                if not planted & sees:
                    yield f"{name} fails: {outcome['failed']}"
        yield from (f"no suite fails for {anomaly}" for anomaly in planted - failed)


def _witness(witness: Witness) -> Witness:
    """The witness; where a transaction wrote nothing, its place is that of its position, which the planter does not know."""
    [place, *more] = witness.offsets
    return replace(witness, offsets=(OFFSETS,)) if place.startswith(OFFSETS) and not more else witness


def _differing(*found: Findings) -> list[tuple[int, int, int, int]]:
    """How many records, outputs, keys and IDs each has counted, if not the same."""
    counted = [(f.records, f.outputs, f.keys, f.ids) for f in found]
    return counted if len(set(counted)) > 1 else []


def judge(
    spark: SparkSession, cluster: EmbeddedCluster, folder: Path, mutations: Sequence[Mutation], vendor: Path
) -> list[Judged]:
    """Plant the mutations into topics, stores and timelines, and let all witnesses look at them.

    Args:
        spark: with the connector to Kafka.
        cluster: takes the topics.
        folder: of the run; its name is a run's.
        mutations: of clean trials.
        vendor: the unpacked WebJars for the Data Docs.
    """
    run, planted = plant(folder, cluster, mutations)
    found = read(run, cluster, planted)
    collect(spark, run)
    check(spark, run)
    spoken, suites = findings_of(run), validate(run, vendor)
    keys = [trial.trial.key for trial in planted]
    return [Judged(t, f, spoken[key], suites[key]) for t, f, key in zip(planted, found, keys, strict=True)]
