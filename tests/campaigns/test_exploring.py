"""A search: its loop, what becomes of a red, and how it continues; the last test is on real brokers."""

import json
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from onceproof.campaigns.search.explorer import BROKEN, Explorer, SharedBrokers, grammar_of, hold, last_of, read_request
from onceproof.campaigns.search.log import ExplorationFolder, Finding, SearchRequest, read_lines
from onceproof.campaigns.search.schedules import DrawableParameters, Grammar
from onceproof.lab.external_brokers import needs_own_cluster
from onceproof.model.coverage import name_reached
from onceproof.model.errors import ExitCode, HarnessError, UsageError
from onceproof.model.release import Release
from onceproof.model.sensitivity import Tally
from tests.conftest import HERE, a_trial
from tests.fakes.world import fake_driver
from tests.present import present
from tests.specimens.files import a_reading, an_outcome

DOMAINS = {"caching": (True, False), "stores": ("rocksdb", "in-memory"), "fault": ("none", "pause")}
ENUMERATOR = Grammar({"enumerator": DrawableParameters("enumerator", DOMAINS)})


def asked(**fields):
    fields = {"streams": "4.3.1", "scenarios": ("enumerator",), "uniform": False, "plant": None, **fields}
    return SearchRequest(run="20260101T000000-0001", broker="3.9.1", seed=1, harness="h", **fields)


def showing(anomalies, explained=False):
    return a_reading(anomalies=anomalies, unexplained={} if explained else anomalies)


class Decreed:
    """Trials of ten seconds that show what is decreed."""

    def __init__(self, shows=lambda trial: a_reading(), fails=lambda trial: None):
        self.shows, self.fails = shows, fails
        self.trials, self.time = [], 0.0

    def __call__(self, trial, folder):
        self.trials.append(trial)
        self.time += 10
        marks = [f"{name}={value}" for name, value in trial.parameters.items()]
        folder.instances.mkdir(parents=True)
        events = [
            {"t": t, "source": "driver", "event": "step", "action": mark, "instance": "i"}
            for t, mark in enumerate(marks)
        ]
        begin = {"t": 0, "source": "driver", "event": "phase", "name": "cluster"}
        folder.timeline.write_text("".join(json.dumps(event) + "\n" for event in [begin, *events]))
        self.shows(trial).write(folder.reader_file)
        if failed := self.fails(trial):
            raise failed
        return an_outcome(trial)


def explorer(path, bench, releases=(), **fields):
    folder = ExplorationFolder(path / "20260101T000000-0001")
    folder.path.mkdir(exist_ok=True)
    said: list[str] = []
    return Explorer(folder, asked(**fields), ENUMERATOR, bench, said.append, lambda: bench.time, releases), folder, said


def lines_of(folder):
    return [json.loads(line) for line in folder.log_file.read_text().splitlines()]


def test_trials_follow_one_another_until_the_time_is_up(tmp_path):
    bench = Decreed()
    search, folder, said = explorer(tmp_path, bench)
    exploration = search.explore(95)
    assert exploration.trials == exploration.searched == exploration.exercised == len(bench.trials) == len(said) == 10
    assert exploration.seconds == 100
    assert (exploration.findings, exploration.known, exploration.errors, exploration.exit_code) == (
        (),
        (),
        0,
        ExitCode.OK,
    )
    assert exploration.coverage == sum(line["gained"] for line in lines_of(folder)) > 0
    assert [line["at"] for line in lines_of(folder)] == [10 * n for n in range(1, 11)]
    assert [trial.number for trial in bench.trials] == list(range(1, 11))
    assert not list((folder.path / "trials").iterdir())  # green ones leave their line only


def test_a_search_that_was_cut_short_continues_unchanged(tmp_path):
    whole = Decreed()
    (tmp_path / "whole").mkdir()
    explorer(tmp_path / "whole", whole)[0].explore(200)
    first, second = Decreed(), Decreed()
    _, folder, _ = explorer(tmp_path, first)
    explorer(tmp_path, first)[0].explore(70)
    with folder.log_file.open("a") as file:
        file.write('{"number": 8, "torn')
    folder.run.trial(f"enumerator-DEFAULT_CONFIG-s4.3.1-b3.9.1-t{len(first.trials) + 1}").path.mkdir(parents=True)
    exploration = explorer(tmp_path, second)[0].explore(130)
    assert [*first.trials, *second.trials] == whole.trials
    assert [trial.parameters for trial in [*first.trials, *second.trials]] == [t.parameters for t in whole.trials]
    assert (exploration.trials, exploration.seconds) == (20, 200)
    assert lines_of(folder) == lines_of(ExplorationFolder(tmp_path / "whole" / folder.path.name))
    assert [path.name for path in (folder.path / "trials").iterdir()] == [
        "enumerator-DEFAULT_CONFIG-s4.3.1-b3.9.1-t8.attempt-1"
    ]


def test_what_scenarios_reach_is_counted_apart(tmp_path):
    names = ("enumerator", "multirunner")
    grammar = Grammar({name: DrawableParameters(name, DOMAINS) for name in names})
    bench, folder = Decreed(), ExplorationFolder(tmp_path / asked().run)
    folder.path.mkdir()
    search = Explorer(folder, asked(scenarios=names), grammar, bench, lambda _: None, lambda: bench.time)
    coverage = search.explore(300).coverage
    lines = read_lines(folder.log_file)
    apart = [
        {item for line in lines if line.schedule.scenario == name for item in name_reached(line.marks)}
        for name in names
    ]
    assert coverage == sum(map(len, apart)) > len(set().union(*apart)) > 0


def test_a_damaged_line_is_named(tmp_path):
    bench = Decreed()
    search, folder, _ = explorer(tmp_path, bench)
    search.explore(10)
    folder.log_file.write_text(folder.log_file.read_text() + '{"number": 2}\n')
    with pytest.raises(HarnessError, match=r"exploration\.jsonl is damaged in line 2: purpose, schedule.* are missing"):
        explorer(tmp_path, bench)


def test_a_search_of_a_version_that_varied_schedules_can_be_read(tmp_path):
    search, folder, _ = explorer(tmp_path, Decreed())
    search.explore(30)
    lines = read_lines(folder.log_file)
    varied = [{**line, "parent": None if number < 2 else 1} for number, line in enumerate(lines_of(folder))]
    folder.log_file.write_text("".join(f"{json.dumps(line)}\n" for line in varied))
    assert read_lines(folder.log_file) == lines


def uncached(trial):
    """The bug of a made-up release: without caching, a record is lost."""
    return showing({"lost-record": 3} if trial.parameters.get("caching") is False else {})


def test_a_red_is_repeated_shrunk_and_written(tmp_path):
    bench = Decreed(uncached)
    search, folder, _ = explorer(tmp_path, bench)
    exploration = search.explore(600)
    [finding] = exploration.findings
    assert exploration.exit_code is ExitCode.ANOMALY
    assert finding.anomalies == {"lost-record": 3}
    assert finding.promises == ("identities", "changelog")  # those of the scenario
    assert finding.parameters == {"caching": False}
    assert finding.command == (
        "onceproof trial enumerator --streams 4.3.1 --broker 3.9.1 --variant DEFAULT_CONFIG "
        f"--seed {finding.command.split()[-3]} --set caching=False"
    )
    assert finding.rate == Tally(3, 3)
    assert finding.is_settled
    assert finding.others > 0
    assert (folder.path / finding.folder).is_dir()
    written = folder.path / "findings" / "1-enumerator-lost-record"
    assert Finding.read(written / "finding.json") == finding
    text = (written / "finding.md").read_text()
    assert text.startswith("# lost-record in enumerator on Kafka Streams 4.3.1\n")
    assert f"```\n{finding.command}\n```" in text
    assert "Nothing that is one reduction away showed it." in text
    purposes = [line["purpose"] for line in lines_of(folder)]
    at = purposes.index("repeat")
    assert purposes[at - 1 : at + 3] == ["search", "repeat", "repeat", "repeat"]
    assert set(purposes[at + 3 :]) >= {"shrink", "search"}
    assert len({t.seed for t in bench.trials[at - 1 : at + 3]}) == 4


def test_a_finding_is_told_while_it_is_followed_up(tmp_path):
    seen: list[object] = []

    def shows(trial):
        seen.extend(Finding.read(file).rate for file in folder.findings.glob("*/finding.json"))
        return uncached(trial)

    search, folder, _ = explorer(tmp_path, Decreed(shows))
    search.explore(600)
    assert list(dict.fromkeys(seen)) == [Tally(n, n) for n in range(4)]


def test_the_smallest_has_a_rate_of_its_own(tmp_path):
    def shows(trial):
        return showing({"lost-record": 1} if trial.parameters else {})

    search, folder, _ = explorer(tmp_path, Decreed(shows))
    finding, *_ = search.explore(1_000).findings
    assert len(finding.parameters) == 1
    of_it = [line for line in lines_of(folder) if line["finding"] == finding.number]
    rated = [line for line in of_it if line["purpose"] == "rate"]
    first = of_it[0]
    if first["schedule"]["parameters"] != finding.parameters:
        assert finding.smallest_rate == Tally(3, 3)
        assert len(rated) == 3
    shrunk = {line["schedule"]["seed"] for line in of_it if line["purpose"] == "shrink"}
    assert shrunk.isdisjoint(line["schedule"]["seed"] for line in rated)


def test_a_red_that_does_not_recur_is_a_finding_with_its_rate(tmp_path):
    once = count()

    def shows(trial):
        return showing({"lost-record": 1} if next(once) == 2 else {})

    search, folder, _ = explorer(tmp_path, Decreed(shows))
    [finding] = search.explore(200).findings
    assert finding.rate == Tally(0, 3)
    assert finding.is_settled
    assert not any(line["purpose"] == "shrink" for line in lines_of(folder))
    text = (folder.path / "findings" / finding.name / "finding.md").read_text()
    assert "red in 0 of 3 further trials" in text
    assert "So it was not shrunk." in text


RELEASES = [Release.parse(text) for text in ("3.9.0", "3.9.1", "4.0.0", "4.0.1", "4.0.2", "4.3.0", "4.3.1")]


def since_401(trial):
    """The same bug, which came with 4.0.1."""
    return uncached(trial) if trial.cell.streams >= Release(4, 0, 1) else showing({})


def test_a_finding_is_bisected_over_releases(tmp_path):
    search, folder, said = explorer(tmp_path, Decreed(since_401), RELEASES)
    [finding] = search.explore(2_000).findings
    found = finding.releases
    assert found.sure
    assert found.bad == ("4.0.1", "4.0.2", "4.3.0", "4.3.1")
    assert found.good == ("3.9.0", "3.9.1", "4.0.0")
    assert [(line["line"], line["last_good"], line["first_bad"]) for line in found.boundaries] == [
        ("4.0", "4.0.0", "4.0.1"),
        ("4.3", None, "4.3.0"),
    ]
    lines = [line for line in lines_of(folder) if line["purpose"] == "bisect"]
    assert len(lines) == found.trials
    assert all(f"--streams {line['streams']} " in line["command"] for line in lines)
    assert all(line["schedule"]["parameters"] == finding.parameters for line in lines)
    assert {line["streams"] for line in lines_of(folder) if line["purpose"] != "bisect"} == {None}
    assert any("bisect: enumerator DEFAULT_CONFIG caching=False on 4.0.0: green" in line for line in said)
    text = (folder.finding(finding) / "finding.md").read_text()
    assert "The first bad release is 4.0.1, the last good one before it 4.0.0; the last bad one is 4.3.1" in text
    assert "\n| 4.0 | 4.0.0 | 4.0.1 | 4.0.2 | — | ≤ " in text
    assert "\nGood: 3.9.0, 3.9.1, 4.0.0.\n" in text
    assert Finding.read(folder.finding(finding) / "finding.json") == finding


def test_the_schedule_that_shows_it_oftener_is_bisected(tmp_path):
    simple = count()
    both: list[object] = []

    def shows(trial):
        if trial.parameters == {"caching": False}:  # once, while the first is shrunk
            return showing({"lost-record": 1} if both and next(simple) == 0 else {})
        both.extend([trial] if {"caching", "stores"} <= trial.parameters.keys() else [])
        return showing({"lost-record": 1} if trial in both else {})

    search, folder, _ = explorer(tmp_path, Decreed(shows), RELEASES)
    finding = search.explore(3_000).findings[0]
    assert (finding.parameters, finding.rate, finding.smallest_rate.red) == ({"caching": False}, Tally(3, 3), 0)
    bisected = [line["schedule"]["parameters"] for line in lines_of(folder) if line["purpose"] == "bisect"]
    assert bisected
    assert all({"caching", "stores"} <= parameters.keys() for parameters in bisected)
    assert "trials of the first schedule: It is in every" in (folder.finding(finding) / "finding.md").read_text()


@pytest.mark.parametrize("more", [10, 50, 110])
def test_a_bisection_goes_on_where_it_was_left(tmp_path, more):
    whole = Decreed(since_401)
    (tmp_path / "whole").mkdir()
    uncut = explorer(tmp_path / "whole", whole, RELEASES)[0].explore(600)
    begins = next(
        line["at"] for line in lines_of(ExplorationFolder(tmp_path / "whole" / asked().run)) if line["streams"]
    )
    bench = Decreed(since_401)
    cut = explorer(tmp_path, bench, RELEASES)[0].explore(begins - 10 + more)
    assert "Trials or time were used up before it was tried." in cut.findings[0].releases.unknown.values() or more > 50
    assert not cut.findings[0].releases.sure
    rest = Decreed(since_401)
    rest.time = bench.time
    exploration = explorer(tmp_path, rest, RELEASES)[0].explore(600 - bench.time)
    assert [*bench.trials, *rest.trials] == whole.trials
    assert exploration.findings == uncut.findings
    assert exploration.findings[0].releases.sure


def test_what_was_not_asked_to_be_bisected_can_be_later(tmp_path):
    bench = Decreed(since_401)
    [finding] = explorer(tmp_path, bench)[0].explore(600).findings
    assert finding.releases is None
    [finding] = explorer(tmp_path, bench, RELEASES)[0].explore(600).findings
    assert finding.releases.sure


def test_a_release_that_fails_or_differs_is_unknown(tmp_path):
    def shows(trial):
        return showing({"duplicate-id": 1}, explained=True) if trial.cell.streams.line == "3.9" else since_401(trial)

    def fails(trial):
        return HarnessError("no class path") if trial.cell.streams.line == "4.0" else None

    search, folder, _ = explorer(tmp_path, Decreed(shows, fails), RELEASES)
    [finding] = search.explore(2_000).findings
    found = finding.releases
    assert (found.bad, found.good, found.sure) == (("4.3.0", "4.3.1"), (), False)
    assert dict.fromkeys(["4.0.0", "4.0.1", "4.0.2"], "no class path").items() <= found.unknown.items()
    assert found.unknown["3.9.0"].startswith("known: ")
    assert found.summary == "It is in every release that was tried: 4.3.0, 4.3.1. Not all of this is sure."
    assert "Not known: 4.0.0, 4.0.1, 4.0.2: no class path" in (folder.finding(finding) / "finding.md").read_text()


def test_a_release_that_refuses_the_schedule_is_not_tried(tmp_path):
    def shows(trial):
        return showing({"lost-record": 1} if trial.parameters.get("group.protocol") == "streams" else {})

    folder = ExplorationFolder(tmp_path / "20260101T000000-0001")
    folder.path.mkdir()
    bench, grammar = (
        Decreed(shows),
        Grammar({"enumerator": DrawableParameters("enumerator", {"group.protocol": ("classic", "streams")})}),
    )
    request = replace(asked(), broker="4.3.1")
    search = Explorer(folder, request, grammar, bench, lambda _: None, lambda: bench.time, RELEASES)
    [finding] = search.explore(1_000).findings
    assert "lacks group.protocol=streams" in present(finding.releases).unknown["4.0.0"]
    assert {str(trial.cell.streams) for trial in bench.trials} == {"4.3.0", "4.3.1"}


def test_what_does_not_come_again_is_not_bisected(tmp_path):
    once = count()
    bench = Decreed(lambda trial: showing({"lost-record": 1} if next(once) == 2 else {}))
    [finding] = explorer(tmp_path, bench, RELEASES)[0].explore(300).findings
    assert finding.releases is None


def test_brokers_that_die_after_a_trial_take_nothing_of_it_along(tmp_path, monkeypatch):
    class Dead:
        def __init__(self, *_):
            self.closed = False

        def delete(self):
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

        def close(self):
            self.closed = True

    given: Any = object()  # nobody asks it for anything
    bench, stopped = SharedBrokers(HERE, Release.parse("3.9.1"), tmp_path), []
    monkeypatch.setattr("onceproof.campaigns.search.explorer.ApplicationTopics", Dead)
    monkeypatch.setattr(bench, "_serving", lambda: given)
    monkeypatch.setattr(bench, "stop", lambda: stopped.append(True))
    with bench._lend(a_trial("4.3.1")) as brokers:
        assert brokers is given
    assert stopped == [True]  # the next trial gets others


@pytest.mark.parametrize(
    ("trial", "alone"),
    [
        (a_trial("4.3.1"), False),
        (a_trial("4.3.1", fault="broker-kill", nodes=3), True),
        (a_trial("4.3.1", fault="partition"), True),
        (a_trial("4.3.1", fault="lost-answer"), True),
        (a_trial("4.3.1", scenario="migration"), True),
    ],
)
def test_a_trial_that_disturbs_brokers_or_needs_more_has_its_own(trial, alone):
    assert needs_own_cluster(trial) is alone


@pytest.mark.parametrize("cut", [30, 60, 90, 120])
def test_a_finding_is_settled_where_it_was_left(tmp_path, cut):
    whole = Decreed(uncached)
    (tmp_path / "whole").mkdir()
    uncut = explorer(tmp_path / "whole", whole)[0].explore(400)
    bench = Decreed(uncached)
    begun = explorer(tmp_path, bench)[0].explore(cut)
    for finding in begun.findings:
        if not finding.is_settled:
            text = (tmp_path / asked().run / "findings" / finding.name / "finding.md").read_text()
            assert "onceproof issue explore --resume" in text
    rest = Decreed(uncached)
    rest.time = bench.time
    exploration = explorer(tmp_path, rest)[0].explore(400 - cut)
    assert [*bench.trials, *rest.trials] == whole.trials
    assert exploration.findings == uncut.findings
    assert exploration.findings[0].is_settled


def two_bugs(trial):
    """One that loses without caching, one that doubles in memory."""
    found = {"lost-record": 1} if trial.parameters.get("caching") is False else {}
    return showing(found | ({"duplicate-id": 2} if trial.parameters.get("stores") == "in-memory" else {}))


def test_a_finding_that_was_not_repeated_stays_as_written(tmp_path):
    bench = Decreed(two_bugs)
    before = explorer(tmp_path, bench)[0].explore(2_000).findings[1]
    assert before.is_settled
    search, folder, _ = explorer(tmp_path, bench, RELEASES)
    assert search.explore(10).findings[1] == before  # while the first one is bisected
    assert Finding.read(folder.finding(before) / "finding.json") == before


def test_reds_that_look_alike_are_one_finding(tmp_path):
    search, _, _ = explorer(tmp_path, Decreed(two_bugs))
    found = search.explore(2_000).findings
    assert [finding.parameters for finding in found] in (
        [{"caching": False}, {"stores": "in-memory"}],
        [{"stores": "in-memory"}, {"caching": False}],
    )


def test_one_anomaly_of_two_causes_is_two_findings(tmp_path):
    def shows(trial):
        own = trial.parameters
        return showing({"lost-record": 1} if own.get("caching") is False or own.get("stores") == "in-memory" else {})

    search, folder, _ = explorer(tmp_path, Decreed(shows))
    one, other = search.explore(2_000).findings
    assert sorted([*one.parameters.items(), *other.parameters.items()]) == [("caching", False), ("stores", "in-memory")]
    assert one.others > 0
    for line in lines_of(folder):
        if line["purpose"] == "search" and line["finding"]:
            finding = one if line["finding"] == one.number else other
            assert finding.parameters.items() <= line["schedule"]["parameters"].items()


def test_a_finding_that_shrank_to_another_bug_keeps_no_reds(tmp_path):
    plain = count()

    def shows(trial):
        if not trial.parameters:  # once, and not in the first trial
            return showing({"lost-record": 1} if next(plain) == 2 else {})
        return showing({"lost-record": 1} if trial.parameters.keys() & {"caching", "stores"} else {})

    search, folder, _ = explorer(tmp_path, Decreed(shows))
    found = search.explore(2_000).findings
    slid = next(finding for finding in found if not finding.parameters)
    assert (slid.rate, slid.smallest_rate) == (Tally(3, 3), Tally(0, 3))
    first = next(line["schedule"]["parameters"] for line in lines_of(folder) if line["finding"] == slid.number)
    of_it = [line for line in lines_of(folder) if (line["finding"], line["purpose"]) == (slid.number, "search")]
    assert all(first.items() <= line["schedule"]["parameters"].items() for line in of_it)
    assert len(found) > 1


def test_known_issues_are_counted_and_the_search_continues(tmp_path):
    def shows(trial):
        return showing({"duplicate-id": 3} if trial.parameters.get("caching") is not False else {}, explained=True)

    bench = Decreed(shows)
    search, folder, said = explorer(tmp_path, bench, streams="3.4.0")
    exploration = search.explore(300)
    assert (exploration.findings, exploration.exit_code) == ((), ExitCode.OK)
    [known] = exploration.known
    assert known.issues == ("KAFKA-14172",)
    assert known.trials > 1
    assert known.command.startswith("onceproof trial enumerator --streams 3.4.0")
    assert exploration.trials == exploration.searched == 30
    assert len(list((folder.path / "trials").iterdir())) == 1  # evidence of the first
    assert sum("known: KAFKA-14172 (3 duplicate-id)" in line for line in said) == known.trials


def test_an_issue_of_another_variant_is_known_by_parameters(tmp_path):
    def shows(trial):
        return showing({"thread-died": 1} if "stores" in trial.parameters else {}, explained=True)

    search, _, _ = explorer(tmp_path, Decreed(shows), streams="4.2.0")
    [known] = search.explore(300).known
    assert known.issues[0] == "KAFKA-20731"  # of the variant TOPOLOGY_PAUSED; others have threads that die, too


def test_unexplained_witnesses_are_a_finding_besides_a_known_one(tmp_path):
    def shows(trial):
        return a_reading(anomalies={"duplicate-id": 3, "lost-record": 1}, unexplained={"lost-record": 1})

    search, _, _ = explorer(tmp_path, Decreed(shows), streams="3.4.0")
    [finding] = search.explore(100).findings
    assert finding.anomalies == {"lost-record": 1}
    assert finding.issues == ("KAFKA-14172",)


def test_what_is_only_told_is_no_finding(tmp_path):
    search, _, _ = explorer(tmp_path, Decreed(lambda trial: showing({"stale-checkpoint": 1})))
    assert search.explore(50).exit_code is ExitCode.OK


def test_a_trial_that_fails_says_nothing_and_is_kept(tmp_path):
    fails = count()
    bench = Decreed(uncached, lambda trial: HarnessError("no luck") if next(fails) % 2 else None)
    search, folder, said = explorer(tmp_path, bench)
    exploration = search.explore(100)
    assert exploration.errors == 5
    assert [line["error"] for line in lines_of(folder)][1::2] == 5 * ["no luck"]
    assert all((folder.path / line["folder"]).is_dir() for line in lines_of(folder) if line["error"])
    assert any("no luck" in line for line in said)


def test_a_void_trial_says_nothing(tmp_path):
    class Void(Decreed):
        def __call__(self, trial, folder):
            super().__call__(trial, folder)
            return an_outcome(trial, void="the machine stood still")

    exploration = explorer(tmp_path, Void(uncached))[0].explore(30)
    assert (exploration.errors, exploration.exercised, exploration.findings, exploration.coverage) == (3, 0, (), 0)
    assert exploration.exit_code is ExitCode.INCONCLUSIVE


def test_a_search_in_which_everything_fails_ends(tmp_path):
    bench = Decreed(fails=lambda trial: HarnessError("no Java"))
    search, folder, _ = explorer(tmp_path, bench)
    with pytest.raises(HarnessError, match=f"{BROKEN} trials failed one after the other.*no Java"):
        search.explore(1_000)
    assert len(lines_of(folder)) == BROKEN


def test_a_plant_must_have_fired_to_be_exercised(tmp_path):
    bench = Decreed()
    exploration = explorer(tmp_path, bench, plant="no-abort")[0].explore(20)
    assert {trial.plant for trial in bench.trials} == {"no-abort"}
    assert exploration.exercised == 0


def test_a_simulated_search_reaches_what_its_trials_reach(tmp_path):
    def bench(trial, folder):
        driver = fake_driver(trial, folder.path)
        exercise = driver.drive()
        driver.stop()
        a_reading().write(folder.reader_file)
        return an_outcome(trial, exercised=exercise.exercised, reason=exercise.reason)

    clock = count()
    folder = ExplorationFolder(tmp_path / "20260101T000000-0001")
    folder.path.mkdir()
    grammar = Grammar({"enumerator": DrawableParameters("enumerator", {"fault": ("none", "pause")})})
    search = Explorer(folder, asked(), grammar, bench, lambda _: None, lambda: next(clock))
    exploration = search.explore(14)
    assert exploration.exercised > 0
    marks = {mark for line in lines_of(folder) for mark in line["marks"]}
    assert {"instance-started", "add-thread", "promoted", "recycled", "pause", "fenced", "pause-over"} <= marks


# --- a folder ------------------------------------------------------------------------------------------------


def test_the_last_search_is_the_one_that_goes_on(tmp_path):
    with pytest.raises(UsageError, match="There is no search in"):
        last_of(tmp_path)
    for name in ("20260101T000000-0001", "20260102T000000-0001"):
        asked().write(tmp_path / name / "exploration.json")
    (tmp_path / "20260103T000000-0001").mkdir()
    assert last_of(tmp_path).path.name == "20260102T000000-0001"


def test_a_search_of_another_version_does_not_go_on(tmp_path):
    folder = ExplorationFolder(tmp_path / "s")
    with pytest.raises(UsageError, match="is no search to continue"):
        read_request(folder)
    asked().write(folder.asked_file)
    with pytest.raises(UsageError, match="was begun by h, and this is"):
        read_request(folder)


def test_two_cannot_go_on_with_one_search(tmp_path):
    folder = ExplorationFolder(tmp_path / "s")
    with hold(folder), pytest.raises(UsageError, match="The search s is under way"), hold(folder):
        pass
    with hold(folder):
        pass


def test_unsearchable_scenarios_are_left_out_or_refused_by_name():
    both = asked(streams="3.4.0", scenarios=("enumerator", "global-join"))
    grammar, left_out = grammar_of(HERE, both, named=False)
    assert list(grammar.stories) == ["enumerator"]
    assert left_out["global-join"].startswith("global-join cannot be searched on 3.4.0")
    with pytest.raises(UsageError, match="global-join cannot be searched"):
        grammar_of(HERE, both, named=True)
    with pytest.raises(UsageError, match=r"Nothing can be searched on 3\.4\.0"):
        grammar_of(HERE, asked(streams="3.4.0", scenarios=("global-join",)), named=False)
    with pytest.raises(UsageError, match="There is no scenario 'x'"):
        grammar_of(HERE, asked(scenarios=("x",)), named=False)


def test_a_scenario_that_is_left_out_takes_no_fault_from_others():
    both = asked(streams="3.4.0", scenarios=("global-join", "enumerator"))
    alone, _ = grammar_of(HERE, asked(streams="3.4.0", scenarios=("enumerator",)), named=False)
    beside, left_out = grammar_of(HERE, both, named=False)
    assert "global-join" in left_out
    assert beside.stories["enumerator"].domains == alone.stories["enumerator"].domains


def test_scenarios_without_a_parameter_that_is_set_are_left_out():
    both = asked(streams="4.3.1", scenarios=("enumerator", "scan"), settings=("group.protocol=classic",))
    grammar, left_out = grammar_of(HERE, both, named=False)
    assert list(grammar.stories) == ["enumerator"]
    assert left_out["scan"].startswith("'group.protocol=classic' sets no parameter of scan")


# --- real brokers --------------------------------------------------------------------------------------------


@pytest.mark.broker
def test_a_known_issue_is_found_on_brokers_that_trials_share(tmp_path):
    folder = ExplorationFolder(tmp_path / "20260101T000000-0001")
    folder.path.mkdir()
    join = Grammar({"scan": DrawableParameters("scan", {"partitions": (2, 1)})})
    bench = SharedBrokers(HERE, Release.parse("3.9.1"), folder.path)
    clock = count(step=5)
    try:
        search = Explorer(folder, asked(streams="3.9.0", scenarios=("scan",)), join, bench, print, lambda: next(clock))
        exploration = search.explore(25)  # the clock is asked at the start, and twice per trial
    finally:
        bench.stop()
    assert exploration.trials == 2
    assert [known.issues for known in exploration.known] == [("KAFKA-18326",)]
    assert exploration.findings == ()
    assert not list(folder.path.glob("cluster-*/data-*"))
