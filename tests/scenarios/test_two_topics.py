"""A join of two topics: the independent reader's judgement on the specimens, what is generated, how long tasks wait."""

import pytest

from onceproof.scenarios.two_topics import config, stream, table, workload
from tests.conftest import a_trial


def test_all_times_differ_and_each_topic_is_ordered_by_time():
    trial = a_trial("4.3.1", scenario="two-topics", records=500, entries=3)
    made = stream(trial), table(trial)
    assert [len(records) for records in made] == [500, 1_500]
    times = [[record.at for record in records] for records in made]
    assert all(of_topic == sorted(of_topic) for of_topic in times)
    assert len({*times[0], *times[1]}) == 2_000
    assert workload(trial).second == [record[:2] for record in made[0]]
    assert made == (stream(trial), table(trial))


@pytest.mark.parametrize(
    ("variant", "waits"),
    [("DEFAULT_CONFIG", "0"), ("LAGGING", "600000"), ("UNORDERED", "-1"), ("STREAMS_PROTOCOL", "0")],
)
def test_tasks_wait_as_the_variant_says(variant, waits):
    assert config(a_trial("4.4.0", variant, scenario="two-topics"))["max.task.idle.ms"] == waits
