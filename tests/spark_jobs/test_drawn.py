"""Both readers name the same in trials of every topology that are drawn: specimens to which anything may have happened.

Specimens say what must be found where somebody thought of it. Here nothing is said: two readers that share no code must
agree, whatever the records are. All trials are judged in one run of Spark, and once more as if their topics were long,
where only the keys that differ are compared.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from onceproof.model.anomaly import Comparison, Witness
from onceproof.model.record import Record
from onceproof.readers.checks import CHECKS
from spark_jobs.transforms import checks, contents
from spark_jobs.transforms.comparisons import comparison_findings
from tests.spark_jobs.test_comparisons import frames
from tests.specimens.drawn import OF_CHECK, Drawn, drawn

pytestmark = pytest.mark.spark

OF_EACH = 12  # trials of a topology


def read(check: str, trial: Drawn) -> Counter[Witness]:
    """What the independent reader names."""
    topics = {role: [Record(*record) for record in topic] for role, topic in trial.topics.items()}
    return Counter(CHECKS[check](topics, trial.facts).witnesses)


@pytest.fixture(scope="module")
def trials() -> dict[int, tuple[str, Drawn]]:
    numbered = enumerate((check, number) for check in OF_CHECK for number in range(OF_EACH))
    return {place: (check, drawn(check, number)) for place, (check, number) in numbered}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, trials: dict[int, tuple[str, Drawn]]) -> tuple[DataFrame, DataFrame]:
    return frames(
        spark,
        {number: trial for number, (_, trial) in trials.items()},
        {number: check for number, (check, _) in trials.items()},
    )


def differing(
    trials: dict[int, tuple[str, Drawn]], one: dict[int, Counter[Any]], other: dict[int, Counter[Any]]
) -> Iterator[tuple[str, Counter[Any], Counter[Any]]]:
    """The trials of which two readings differ, and what only the one and only the other names."""
    for number, (_, trial) in trials.items():
        first, second = one.get(number, Counter()), other.get(number, Counter())
        if first != second:
            yield trial.name, first - second, second - first


def test_both_readers_name_the_same_witnesses_in_what_is_drawn(
    tables: tuple[DataFrame, DataFrame], trials: dict[int, tuple[str, Drawn]]
) -> None:
    found: dict[int, Counter[Any]] = {}
    for row in comparison_findings(checks.check(*tables).tables["comparisons"]).collect():
        columns = row.asDict()
        number = columns.pop("trial")
        witness = Witness(**{**columns, "ids": tuple(columns["ids"]), "offsets": tuple(columns["offsets"])})
        found.setdefault(number, Counter())[witness] += 1
    expected = {number: read(check, trial) for number, (check, trial) in trials.items()}
    assert list(differing(trials, found, expected)) == []
    named = {
        check: sum(bool(expected[number]) for number, (of, _) in trials.items() if of == check) for check in OF_CHECK
    }
    assert min(named.values()) >= OF_EACH // 4, "what is drawn hardly has anomalies"


def test_of_long_topics_what_is_drawn_shows_the_same_in_every_topology(
    tables: tuple[DataFrame, DataFrame], trials: dict[int, tuple[str, Drawn]], monkeypatch: pytest.MonkeyPatch
) -> None:
    records, stated = tables
    numbered = checks.numbered(records, stated)

    def compared() -> dict[int, Counter[Any]]:
        found: dict[int, Counter[Any]] = {}
        for row in contents.compare_contents(numbered, stated, OF_CHECK).where("anomaly is not null").collect():
            columns = row.asDict()
            found.setdefault(columns.pop("trial"), Counter())[Comparison(**columns)] += 1
        return found

    whole = compared()
    monkeypatch.setattr(contents, "FEW", 0)
    assert list(differing(trials, compared(), whole)) == []
    assert len({trials[number][0] for number in whole}) > 10, "hardly a topology differs"
