from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.cell import Cell
from onceproof.model.matrix import Offer, Request
from onceproof.model.release import Release
from onceproof.scenarios import CATALOGUE
from onceproof.scenarios.cover import lacking
from tests.published import expanded

RELEASES = [Release(4, minor, 0) for minor in range(4)]


def pairs(cells):
    """The pairs of values that occur together in some cell."""
    values = [(("v", c.variant), ("s", c.streams), ("b", c.broker)) for c in cells if c.restart_on is None]
    return {pair for row in values for pair in combinations(row, 2)}


@given(
    variants=st.sets(st.sampled_from("ABCD"), min_size=1),
    streams=st.sets(st.sampled_from(RELEASES), min_size=1),
    brokers=st.sets(st.sampled_from(RELEASES), min_size=1),
)
def test_each_variant_and_release_meets_each_broker(variants, streams, brokers):
    cells = [Cell("one", variant, release, Release(3, 9, 1)) for variant in variants for release in streams]
    more = lacking(cells, brokers, {"one": Offer(tuple(variants), ("A", "3.3.1"))})
    every = [Cell("one", v, s, b) for v in variants for s in streams for b in brokers]
    assert pairs(every) <= pairs([*cells, *more])
    assert len(set(more)) == len(more) <= len(every)
    assert not set(cells) & set(more)


def test_cells_that_cannot_be_run_are_left_out():
    cells = [Cell("one", "A", release, RELEASES[0]) for release in RELEASES]
    offer = Offer(("A",), ("A", "3.3.1"), lambda cell: "no" if cell.streams < cell.broker else None)
    more = lacking(cells, RELEASES, {"one": offer})
    assert more
    assert all(cell.streams >= cell.broker for cell in more)


def test_the_matrix_of_brokers_is_what_weekly_lacks():
    cells, more = (expanded(Request(name)).cells for name in ("weekly", "brokers"))
    brokers = [Release.parse(name) for name in ("4.0.2", "4.1.2", "4.4.0")]
    assert {*brokers} <= {cell.broker for cell in more}
    assert len(more) < 2 * len(cells)  # one for each broker would be three times as many
    assert lacking(sorted([*cells, *more], key=lambda cell: cell.scenario), brokers, CATALOGUE) == []
