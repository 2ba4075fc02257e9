"""A bisection on real brokers."""

from typing import Any

import pytest

from onceproof.campaigns.bisection.trials import bisect_cell
from onceproof.model.json_file import read_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from tests.conftest import HERE

pytestmark = [pytest.mark.broker, pytest.mark.night]


def test_the_fix_on_a_line_is_found(tmp_path):
    run = RunFolder(tmp_path / "20260101T000000-0001")
    said: list[str] = []
    releases = [Release.parse(text) for text in ("3.4.0", "3.4.1")]
    broker = Release.parse("3.9.1")
    wanted = ["stale-read"]  # KAFKA-18943 may show on 3.4.1, by chance
    found: dict[str, Any] = bisect_cell(
        HERE, run, "multirunner", "SEED_PROGRAM", releases, broker, 1, 10, said.append, wanted
    )
    assert read_json(run.path / "bisect.json") == found
    [boundary] = found["boundaries"]
    missed = boundary.pop("missed")
    assert boundary == {
        "line": "3.4",
        "last_good": None,
        "first_bad": "3.4.0",
        "last_bad": "3.4.0",
        "first_good": "3.4.1",
    }
    assert missed == found["missed"] == 0.0346  # two red trials of a known bad release ask for three green ones
    assert found["sure"]
    assert [line.split(": ")[1] for line in said] == ["3.4.0 red", "3.4.1 green"] + 2 * ["3.4.0 red"] + 2 * [
        "3.4.1 green"
    ]
