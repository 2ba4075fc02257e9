"""KAFKA-16017: what is generated; the checks are those of `multirunner`."""

from collections import Counter

from onceproof.scenarios.corrupted_task import SCENARIO, workload
from tests.conftest import a_trial


def test_the_nth_record_of_a_key_is_n_across_the_restoration():
    made = workload(a_trial("4.3.1", scenario="corrupted-task", keys=7, records=90, rest=30))
    assert (len(made.first), len(made.second)) == (90, 30)
    numbers = Counter[int]()
    for key, value in [*made.first, *made.second]:
        numbers[key] += 1
        assert value == numbers[key]
    assert numbers.keys() == set(range(7))
    assert made == workload(a_trial("4.3.1", scenario="corrupted-task", keys=7, records=90, rest=30))


def test_its_application_is_not_restarted_on_another_release():
    refusal = SCENARIO.refuse(a_trial("4.3.1", scenario="corrupted-task", restart_on="4.2.0").cell)
    assert refusal == "the application of corrupted-task is not restarted; leave out the release 4.2.0 to restart on."
