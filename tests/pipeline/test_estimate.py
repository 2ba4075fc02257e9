"""How long a run will take: cells, trials and hours, before anything starts."""

from typing import Any

import pytest

from onceproof.advice import asking
from onceproof.model.errors import UsageError
from onceproof.model.matrix import Request
from onceproof.model.release import Release
from onceproof.pipeline.estimate import AFTERWARDS, START, about, estimate, table
from onceproof.results import history
from onceproof.scenarios import SCENARIOS

ENUMERATOR: dict[str, Any] = {
    "scenarios": ("enumerator",),
    "streams": ("3.3.1", "3.4.1"),
    "variants": ("DEFAULT_CONFIG",),
}


def test_a_control_of_which_nothing_is_known_gets_its_trials(lab, home):
    reported = estimate(Request("first-look", **ENUMERATOR, risk=0.05))
    [row] = reported["scenarios"]
    assert (reported["cells"], reported["trials"], row["seconds"], row["measured"]) == (
        2,
        8,
        SCENARIOS["enumerator"].seconds,
        0,
    )
    seconds = START + 8 * (SCENARIOS["enumerator"].seconds / 2 + AFTERWARDS)  # two at once
    assert reported["hours"] == pytest.approx(seconds / 3600, abs=0.005)
    assert not (home / "runs").exists()  # nothing was begun
    assert estimate(Request("first-look", **ENUMERATOR))["trials"] == 2  # at the risk of the matrix


def test_local_measurements_outweigh_assumptions(lab, home, monkeypatch):
    monkeypatch.setattr(history, "seconds_by_scenario", lambda _: {"enumerator": [5.0, 100.0, 6.0]})
    [row] = estimate(Request("first-look", **ENUMERATOR))["scenarios"]
    assert (row["seconds"], row["measured"]) == (6.0, 3)


def test_several_trials_at_once_take_less(lab, home, monkeypatch):
    two = estimate(Request("nightly"))["hours"]
    monkeypatch.setenv("ONCEPROOF_DRIVE_SLOTS", "4")
    from onceproof.settings import get_settings

    get_settings.cache_clear()
    assert estimate(Request("nightly"))["hours"] < two


@pytest.mark.parametrize(
    ("hours", "expected"),
    [(0.0, "about 1 minute"), (0.07, "about 4 minutes"), (1.9, "about 114 minutes"), (2.25, "about 2.2 hours")],
)
def test_a_time_is_told_in_minutes_below_two_hours(hours, expected):
    assert about(hours) == expected


def test_what_is_told_is_a_number_of_cells_and_a_time(lab, home):
    assert table(estimate(Request("first-look", **ENUMERATOR))).title == (
        "matrix first-look: 2 cells, 2 trials and 0 planted, about 1 minute; a green may miss a bug with a probability of 25 %"
    )


def test_what_cannot_be_run_is_not_estimated(lab, home):
    with pytest.raises(UsageError):
        estimate(Request("nightly", streams=("3.3.x",)))


def test_unpublished_releases_are_not_estimated(lab, home, monkeypatch):
    asked = []
    monkeypatch.setattr(asking, "list_published", lambda *_, **__: asked.append(1) or [Release.parse("4.4.0")])
    estimate(Request("nightly"))
    assert asked == []
    assert estimate(Request(streams=("4.4.0",)))["cells"]
    for unknown in (Request(streams=("9.9.9",)), Request(brokers=("9.9.9",))):
        with pytest.raises(UsageError, match=r"Kafka 9\.9\.9 is not published; `onceproof release list` lists what is"):
            estimate(unknown)


def test_a_build_that_is_not_kept_is_not_estimated(home):
    with pytest.raises(UsageError, match="is not kept here: name the Maven repository that it is in"):
        estimate(Request(streams=("4.4.0@ab12cd3",)))
