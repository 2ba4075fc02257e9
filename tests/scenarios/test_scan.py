"""KAFKA-18326: the independent reader's judgement on the specimens, and which scans can find a ghost."""

import pytest

from onceproof.scenarios.scan import DELETE, PUT, Parameters, scans_behind_others, workload
from tests.conftest import a_trial

PARAMETERS = Parameters.of({"reach": 2, "all.every": 10, "partitions": 2})


def test_each_key_is_put_once_and_then_deleted_once():
    made = workload(a_trial("4.3.1", scenario="scan", keys=50))
    assert sorted(made.first) == [(key, PUT) for key in range(50)]
    assert sorted(made.second) == [(key, DELETE) for key in range(50)]
    assert [key for key, _ in made.first] != [key for key, _ in made.second]


@pytest.mark.parametrize(
    ("there", "deleted", "scans"),
    [
        pytest.param([1, 3], [3], 1, id="a key before it is in the range"),
        pytest.param([1, 3], [1], 0, id="only a key behind it"),
        pytest.param([1, 5], [5], 0, id="a key that is out of reach"),
        pytest.param([2, 3], [3], 0, id="a key of another partition"),
        pytest.param([0, 2, 10], [10], 1, id="the whole store is scanned"),
        pytest.param([1, 3, 5], [1, 3, 5], 0, id="those before it have been deleted"),
        pytest.param([1, 3, 5], [5, 3], 2, id="one after the other"),
    ],
)
def test_a_scan_can_find_a_ghost_behind_an_existing_key(there, deleted, scans):
    puts, deletes = ([(key, value) for key in keys] for keys, value in ((there, PUT), (deleted, DELETE)))
    assert scans_behind_others(puts, deletes, PARAMETERS) == scans
