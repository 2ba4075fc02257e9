"""The benchmark of scale: every reader finds what was planted, and the figures are judged for what they are."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.measuring import Measured, measure
from benchmarks.scale import EQUAL, MEMORY, OURS, PEER, READERS, fill, judge_figures, readings, with_a_dict
from onceproof.lab.cluster import EmbeddedCluster


def took(seconds: float, memory: int = 2**30) -> Measured[Mapping[int, int]]:
    return Measured({}, seconds, seconds, memory)


def test_growth_memory_and_the_plain_consumer_are_judged():
    good = {10**6: {OURS: took(20), PEER: took(21)}, 10**7: {OURS: took(100), PEER: took(210)}}
    assert list(judge_figures(good)) == [
        "1,000,000 to 10,000,000 records, 10 times as many: 5.0 times as long, linear.",
        "Memory: 1.00 GiB at most, within 8 GiB.",
        "1,000,000 records: 1.0 times as long as consumer and dict, faster.",
        "10,000,000 records: 0.5 times as long as consumer and dict, faster.",
    ]
    bad = {10**6: {OURS: took(20), PEER: took(2)}, 2 * 10**6: {OURS: took(51, MEMORY + 2**30), PEER: took(4)}}
    assert list(judge_figures(bad)) == [
        "1,000,000 to 2,000,000 records, 2 times as many: 2.5 times as long, MORE THAN LINEAR.",
        "Memory: 9.00 GiB at most, MORE THAN 8 GiB.",
        "1,000,000 records: 10.0 times as long as consumer and dict, NOT FASTER.",
        "2,000,000 records: 12.8 times as long as consumer and dict, NOT FASTER.",
    ]
    equal = {10**6: {OURS: took(20), EQUAL: took(40), PEER: took(21)}}
    assert "1,000,000 records: 0.5 times as long as consumer, all questions, faster." in judge_figures(equal)
    assert len(list(judge_figures({10**4: {OURS: took(20), PEER: took(1)}}))) == 1, "of few records the start is all"


def test_work_is_measured_in_a_process_of_its_own():
    measurement = measure(sum, range(3 * 10**7))
    assert measurement.result == sum(range(3 * 10**7))
    assert measurement.cpu > 0
    assert measurement.memory > 2**20


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.broker
def test_every_reader_finds_what_was_planted(cluster: EmbeddedCluster, tmp_path: Path):
    filled = fill(tmp_path / "20260101T000000-0000", cluster, 30_000)
    assert readings(filled, READERS).keys() == READERS.keys()
    with pytest.raises(SystemExit) as ended:
        readings(replace(filled, planted={}), {"a dict": with_a_dict})
    assert str(ended.value) == "a dict found {3333: 1, 6666: -1}, and {} was planted."
