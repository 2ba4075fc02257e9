"""Searches as the command and the DAG ask for them, with trials whose answers are decreed."""

import os
import signal
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from itertools import count
from typing import Any

import pytest

from onceproof.campaigns.requests import ExploreRequest
from onceproof.campaigns.search import explorer
from onceproof.campaigns.search.log import ExplorationFolder, SearchLog, SearchRequest
from onceproof.campaigns.search.verbs import ask_for, complaint, explore, search_of, seconds_left
from onceproof.lab import agent, artifacts, java, releases
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.release import Release
from tests.campaigns.test_exploring import Decreed, uncached
from tests.present import present
from tests.specimens.files import a_finding, a_reading


def request(**values: Any) -> ExploreRequest:
    return ExploreRequest(**{"streams": ["4.3.1"], "scenario": ["enumerator"], "bisect": False, **values})


RUN, LATER = "20260101T000000-0001", "20260102T000000-0002"
EAST = timezone(timedelta(hours=9))


@pytest.fixture
def folder(home):
    return ExplorationFolder(home / "explorations" / RUN)


def asked_in(folder, asking, seed, night="tonight"):
    """What is asked in a folder, whose night begins."""
    found, asked = search_of(folder.path.parent, night, asking, "4.3.1", folder.path.name, seed)
    found.begin(night)
    return asked


@pytest.fixture
def lab(home, monkeypatch):
    """Everything is there; returns the benches, each of which stops the clock at 10 s a trial."""
    monkeypatch.setattr(java, "require_java", lambda *_: None)
    monkeypatch.setattr(artifacts, "check_published", lambda *_: None)
    monkeypatch.setattr(artifacts, "streams_class_path", lambda *_: None)
    monkeypatch.setattr(explorer, "require_toxiproxy", lambda *_: None)  # or draws would depend on this machine
    monkeypatch.setattr(releases, "list_published", lambda _: [Release.parse("4.3.0"), Release.parse("4.3.1")])
    benches: list[Any] = []  # the class first, then each bench

    class Bench(Decreed):
        shows_next = staticmethod(lambda trial: a_reading())
        stopped = False

        def __init__(self, *_):
            super().__init__(lambda trial: Bench.shows_next(trial))
            benches.append(self)

        def stop(self):
            self.stopped = True

    monkeypatch.setattr(explorer, "SharedBrokers", Bench)
    monkeypatch.setattr(explorer, "Explorer", partial(explorer.Explorer, now=lambda: benches[-1].time))
    benches.append(Bench)
    return benches


def test_what_is_asked_follows_from_the_request(lab):
    asked = ask_for(request(), "4.3.1", RUN, seed=7)
    assert (asked.run, asked.streams, asked.scenarios, asked.seed) == (RUN, "4.3.1", ("enumerator",), 7)
    assert (asked.uniform, asked.plant, asked.bisect) == (False, None, False)
    assert ask_for(request(**{"seed": 0}), "4.3.1", RUN, seed=7).seed == 0
    assert ask_for(request(**{"set": ["nodes=3"]}), "4.3.1", RUN, seed=7).settings == ("nodes=3",)
    assert ask_for(request(**{"set": None}), "4.3.1", RUN, seed=7).settings == ()
    every = ask_for(request(**{"scenario": []}), "4.3.1", RUN, seed=7).scenarios
    assert "enumerator" in every
    assert "quota" not in every


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"scenario": ["elevator"]}, "There is no scenario 'elevator'"),
        ({"plant": "weeds"}, "There is no plant 'weeds'"),
    ],
)
def test_what_cannot_be_searched_is_a_sentence(lab, folder, bad, said):
    with pytest.raises(UsageError, match=said):
        ask_for(request(**bad), "4.3.1", RUN, seed=7)
    assert not folder.path.exists()


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("grup.protocol=streams", "Nothing can be searched on 4.3.1: 'grup.protocol=streams' sets no parameter of"),
        ("group.protocol=stream", "Nothing can be searched on 4.3.1: .*'stream'.*classic"),
    ],
)
def test_what_no_scenario_can_be_set_to_is_a_sentence(lab, folder, bad, said):
    with pytest.raises(UsageError, match=said):
        explore(folder, ask_for(request(**{"set": [bad]}), "4.3.1", RUN, seed=7), 50, lambda _: None)
    assert not folder.path.exists()


def test_a_plant_must_fit_the_release(lab, monkeypatch):
    def refuse(*_):
        raise UsageError("It does not fit.")

    monkeypatch.setattr(agent, "check_plantable", refuse)
    with pytest.raises(UsageError, match="It does not fit"):
        ask_for(request(**{"plant": "no-abort"}), "4.3.1", RUN, seed=7)


def test_a_search_goes_on_as_it_was_begun(lab, folder):
    first = explore(folder, asked_in(folder, request(), seed=7), 50, lambda _: None)
    asked = asked_in(folder, request(**{"scenario": []}), seed=8)
    assert asked == SearchRequest.read(folder.asked_file)
    assert asked.seed == 7
    exploration = explore(folder, asked, 50, lambda _: None)
    assert (first.trials, exploration.trials) == (5, 10)
    assert [bench.stopped for bench in lab[1:]] == [True, True]


def test_a_finding_is_bisected_over_what_is_published(lab, folder):
    lab[0].shows_next = staticmethod(uncached)
    [finding] = explore(folder, asked_in(folder, request(**{"bisect": True}), seed=7), 3000, lambda _: None).findings
    assert present(finding.releases).bad == ("4.3.0", "4.3.1")


def test_sigterm_stops_the_brokers_and_keeps_the_lines(lab, folder):
    calls = count(1)

    def shows(trial):
        if next(calls) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return a_reading()

    lab[0].shows_next = staticmethod(shows)
    with pytest.raises(KeyboardInterrupt):
        explore(folder, asked_in(folder, request(), seed=7), 600, lambda _: None)
    assert lab[1].stopped
    assert len(SearchLog(folder.log_file).lines) == 2


def test_nobody_else_is_at_the_same_search(lab, folder):
    asked = asked_in(folder, request(), seed=7)
    with explorer.hold(folder), pytest.raises(UsageError, match="is under way"):
        explore(folder, asked, 50, lambda _: None)


# --- night after night --------------------------------------------------------------------------------------


def night(folder, name, run, drawn=7, **params):
    """Search in a night; returns the run of its search, the seconds before it, and what it came to."""
    found, asked = search_of(folder.path.parent, name, request(**params), "4.3.1", run, drawn)
    found.begin(name)
    return found.path.name, found.sum_spent_before(name), explore(found, asked, 50, lambda _: None)


def test_a_night_goes_on_with_the_search_of_the_last_one(lab, folder):
    first, nothing, _ = night(folder, "monday", RUN)
    again, before, exploration = night(folder, "tuesday", LATER, drawn=8)
    assert (first, nothing, again, before) == (RUN, 0, RUN, 50)
    assert (exploration.seed, exploration.trials, exploration.seconds) == (7, 10, 100)
    assert folder.nights == {"monday": 0, "tuesday": 50}
    assert night(folder, "tuesday", LATER)[:2] == (RUN, 50), "a part of it is no night"
    assert night(folder, "wednesday", LATER, drawn=9)[:2] == (RUN, 150)


@pytest.mark.parametrize("other", [{"anew": True}, {"seed": 8}, {"scenario": ["crash"]}, {"bisect": True}])
def test_a_night_with_another_request_begins_its_own_search(lab, folder, other):
    night(folder, "monday", RUN)
    assert night(folder, "tuesday", LATER, **other)[:2] == (LATER, 0)
    assert night(folder, "tuesday", LATER, **other)[:2] == (LATER, 0), "and goes on with that"


def test_a_night_with_the_same_seed_goes_on(lab, folder):
    night(folder, "monday", RUN, seed=3)
    assert night(folder, "tuesday", LATER, seed=3)[:2] == (RUN, 50)
    assert night(folder, "wednesday", LATER)[:2] == (RUN, 100)


def test_what_another_version_has_searched_is_left(lab, folder, monkeypatch):
    night(folder, "monday", RUN)
    monkeypatch.setattr("onceproof.campaigns.search.explorer.search_version", lambda _: "another")
    assert night(folder, "tuesday", LATER)[:2] == (LATER, 0)


def test_a_search_that_no_night_asked_for_is_left(lab, folder):
    explore(folder, ask_for(request(), "4.3.1", RUN, 7), 50, lambda _: None)
    assert night(folder, "tuesday", LATER)[:2] == (LATER, 0)


# --- how long ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "now", "hours"),
    [
        ("2026-01-02T03:30", "2026-01-02T04:30", 1.5),
        ("2026-01-02T03:30", "2026-01-02T06:30", -0.5),  # others had the machine all night
        ("2026-01-01T22:00", "2026-01-01T22:00", 8),
        ("2026-01-02T06:00", "2026-01-02T06:00", 24),
    ],
)
def test_the_night_ends_at_its_hour(since, now, hours):
    times = [datetime.fromisoformat(text).replace(tzinfo=EAST) for text in (since, now)]
    assert seconds_left(request(**{"until": "06:00"}), 0, *times) == hours * 3600


def test_minutes_count_search_time_and_not_the_clock():
    now = datetime(2026, 1, 2, 7, tzinfo=UTC)
    assert seconds_left(request(**{"minutes": 10}), 0, now, now) == 600
    assert seconds_left(request(**{"minutes": 10}), 450.0, now, now + timedelta(hours=5)) == 150


def test_without_either_nobody_knows_how_long():
    now = datetime(2026, 1, 2, 7, tzinfo=UTC)
    with pytest.raises(UsageError, match="set minutes or until"):
        seconds_left(request(**{"until": None}), 0, now, now)


# --- what is said --------------------------------------------------------------------------------------------


def test_findings_are_told_in_one_sentence_with_a_command(folder):
    assert complaint(folder) is None
    one, two = a_finding(), a_finding(number=2, anomalies={"duplicate-id": 1})
    for finding in (one, two):
        finding.write(folder.finding(finding) / "finding.json")
    sentence = present(complaint(folder))
    assert f"No known issue explains {one.title}; {two.title}: {one.command} repeats it" in sentence


def test_what_was_found_before_is_not_told_again(folder):
    finding = a_finding()
    finding.write(folder.finding(finding) / "finding.json")
    assert complaint(folder, finding.after - 1)
    assert complaint(folder, finding.after) is None


def test_a_finding_that_cannot_be_read_is_told(folder):
    file = folder.finding(a_finding()) / "finding.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    with pytest.raises(HarnessError, match=r"finding\.json is incomplete or damaged"):
        complaint(folder)
