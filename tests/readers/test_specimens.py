"""The independent reader's judgement on the specimens of each check; `tests/spark_jobs/test_comparisons.py` has Spark's."""

from collections import Counter

import pytest

from onceproof.model.record import Record
from onceproof.readers.checks import CHECKS
from tests.cases import check_each
from tests.specimens import interactive_queries
from tests.specimens.by_check import OF_CHECK, called, counts_of


@pytest.mark.parametrize("name", OF_CHECK)
def test_every_specimen_is_judged_exactly(name: str) -> None:
    @check_each("specimen", OF_CHECK[name].SPECIMENS, named=called)
    def judge(specimen):
        topics = {role: [Record(*record) for record in records] for role, records in specimen.topics.items()}
        found = CHECKS[name](topics, specimen.facts)
        assert Counter(found.witnesses) == Counter(specimen.witnesses)
        counted = {"records": found.records, "outputs": found.outputs, "keys": found.keys, "ids": found.ids}
        assert counted == counts_of(name, specimen)

    judge()


@check_each("specimen", interactive_queries.SPECIMENS, named=called)
def test_each_answer_to_a_query_is_compared(specimen):
    found = CHECKS["interactive-queries"](specimen.topics, specimen.facts)
    assert found.promises.get("queries", 0) == len(specimen.answers)
