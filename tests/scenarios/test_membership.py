"""How instances are members of their group: which releases support it, and what does not go together."""

import re

import pytest

from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import UsageError
from onceproof.model.release import Release
from onceproof.scenarios import SCENARIOS


@pytest.mark.parametrize("scenario", ["enumerator", "multirunner"])
@pytest.mark.parametrize(
    ("streams", "broker", "why"),
    [
        ("4.1.2", "4.3.1", "^Kafka Streams 4.1.2 lacks group.protocol=streams .KIP-1071, early access in 4.1.; take"),
        ("4.3.1", "3.9.1", "^a broker of Kafka 3.9.1 lacks group.protocol=streams"),
        ("4.3.1", "4.2.0", None),
        ("4.2.0-rc1", "4.2.0", None),
    ],
)
def test_the_streams_protocol_takes_both_sides(scenario, streams, broker, why):
    cell = Cell(scenario, "STREAMS_PROTOCOL", Release.parse(streams), Release.parse(broker))
    told = SCENARIOS[scenario].refuse(cell)
    assert (told is None) if why is None else re.search(why, told)


def test_static_membership_does_not_go_with_the_streams_protocol():
    cell = Cell("enumerator", "STREAMS_PROTOCOL", Release.parse("4.3.1"), Release.parse("4.3.1"))
    with pytest.raises(UsageError, match=r"cannot be run: static membership with group.protocol=streams begins with"):
        SCENARIOS["enumerator"].validate(Trial("", cell, 1, 1, {"static.membership": True}))
