"""What shows a planted bug, and what may be there by chance."""

import pytest

from onceproof.campaigns.sensitivity.plantings import Planting
from onceproof.model.cell import Cell
from onceproof.model.plants import plant
from onceproof.model.release import Release


@pytest.mark.parametrize(
    ("name", "scenario", "streams", "anomalies", "unexplained", "found"),
    [
        # KAFKA-20685 has wrong-value of as-of-join by chance up to 4.2.1.
        ("restore-ends-early", "as-of-join", "3.9.1", {"wrong-value": 2}, {}, False),
        ("restore-ends-early", "as-of-join", "3.9.1", {"wrong-value": 2}, {"wrong-value": 1}, True),
        ("restore-ends-early", "as-of-join", "4.3.1", {"wrong-value": 2}, {}, True),
        ("record-twice", "enumerator", "3.9.0", {"duplicate-output": 1}, {}, False),  # KAFKA-18943
        ("record-twice", "enumerator", "3.9.0", {"duplicate-output": 1, "duplicate-id": 1}, {}, True),
        ("record-twice", "enumerator", "4.3.1", {"torn-transaction": 1}, {}, False),  # no promise of the claim
        ("migrated-once", "enumerator", "3.9.0", {"torn-transaction": 1}, {}, False),  # it cannot show, and did not
        ("migrated-once", "enumerator", "4.3.1", {"torn-transaction": 1}, {}, True),
    ],
)
def test_an_incidental_known_issue_does_not_find_an_injected_bug(
    name, scenario, streams, anomalies, unexplained, found
):
    cell = Cell(scenario, "DEFAULT_CONFIG", Release.parse(streams), Release.parse("3.9.1"))
    planting = Planting(plant(name), cell, plant(name).claim(scenario))
    assert planting.is_shown_by(anomalies, unexplained) is found
