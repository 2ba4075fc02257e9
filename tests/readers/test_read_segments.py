"""Transactions are judged from the log exactly as each specimen says."""

from operator import attrgetter

from onceproof.model.anomaly import witnesses_of
from onceproof.readers.segments import compare_segments
from tests.cases import check_each
from tests.specimens.segments import ANOMALOUS, HEALTHY, LOOK_ALIKES, SPECIMENS, Specimen


def compared(specimen: Specimen):
    return list(compare_segments(specimen.entries, specimen.topics, "counting", specimen.facts))


@check_each("specimen", SPECIMENS, named=attrgetter("name"))
def test_each_specimen_gives_its_witnesses_and_no_others(specimen: Specimen) -> None:
    found = witnesses_of(compared(specimen))
    assert sorted(found, key=str) == sorted(specimen.witnesses, key=str)


def test_every_anomaly_is_planted_and_look_alikes_have_none() -> None:
    planted = {witness.anomaly for specimen in ANOMALOUS for witness in specimen.witnesses}
    assert planted == {
        "torn-transaction",
        "hanging-transaction",
        "isolation-breach",
        "fencing-breach",
        "idle-partition",
    }
    assert not any(specimen.witnesses for specimen in LOOK_ALIKES)


def test_each_transaction_log_and_writer_is_compared_once() -> None:
    reported = [(c.promise, c.place, c.expected, c.observed) for c in compared(HEALTHY)]
    offsets = [("__consumer_offsets/0@0", "committed"), ("__consumer_offsets/0@2", "committed")]
    assert [t[1:3] for t in reported if t[0] == "atomicity"] == offsets
    assert len([t for t in reported if t[0] == "isolation"]) == 5  # two in the output, two in the changelog, the input
    assert len([t for t in reported if t[0] == "fencing"]) == 4  # the writers of three logs, and the input's positions


def test_an_unknown_topology_is_judged_by_its_markers_only() -> None:
    torn = next(s for s in ANOMALOUS if "belongs to an input that the next one commits" in s.name)
    assert not witnesses_of(compare_segments(torn.entries, torn.topics, "somebody's own", {"ended": 1}))
