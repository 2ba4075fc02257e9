"""What is looked for on a release, and a release that does not qualify: its dumper prints something else."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from onceproof.campaigns.qualification import trials as qualification
from onceproof.campaigns.qualification.trials import Wanted, find_wanted, qualify
from onceproof.lab.artifacts import BROKER
from onceproof.lab.builds import name_release
from onceproof.model.errors import ExitCode, HarnessError, NotUnderstoodError, UsageError
from onceproof.model.phrases import PHRASES
from onceproof.model.plants import plants
from onceproof.model.qualification import ControlAim, PhraseAim, Qualification, QualificationPart, Sight, TrialTraces
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.scenarios import SCENARIOS
from tests.conftest import HERE, stood_still, undisturbed
from tests.specimens.builds import patch_brokers

RUN = "20261127T084500-3f2a"


@pytest.fixture
def altered(monkeypatch):
    """What the agent says about a release."""
    fields = {name: ["A.b()"] for name in plants()}
    monkeypatch.setattr(qualification, "alterations", lambda *_: fields)
    monkeypatch.setattr(qualification, "lacking", lambda *_: {"put-lost": ["StreamsProducer.send"]})
    return fields


def looked_for(streams="4.3.1", broker="4.3.1", scenarios=()) -> Wanted:
    return find_wanted(HERE, Release.parse(streams), Release.parse(broker), scenarios)


def test_everything_that_the_harness_goes_by_is_looked_for(altered):
    found = looked_for()
    parts = {
        part: {aim.name for aim in found.aims if aim.part is part} | {r.name for r in found.settled if r.part is part}
        for part in QualificationPart
    }
    assert parts[QualificationPart.SCENARIO] == SCENARIOS.keys()
    assert parts[QualificationPart.PHRASE] == {phrase.name for phrase in PHRASES}
    assert parts[QualificationPart.PLANT] == {name for name, one in plants().items() if one.applies(Release(4, 3, 1))}
    assert len(parts[QualificationPart.DUMP]) == 4
    assert any("KAFKA-21034" in name for name in parts[QualificationPart.CONTROL])
    assert not [row for row in found.settled if row.sight is Sight.MISSING]
    assert len(found.trials) < len(found.aims)  # a trial shows several things


def test_a_plant_whose_methods_have_moved_is_named_with_them(altered):
    altered["put-lost"] = []
    [row] = [row for row in looked_for().settled if row.sight is Sight.MISSING]
    assert (row.name, row.reason) == ("put-lost", "4.3.1 lacks StreamsProducer.send, which it alters")


def test_a_bug_that_does_not_load_is_named_and_others_are_tried(altered, monkeypatch):
    def one_is_broken(_installation, _release, name=None):
        if name in (None, "put-lost"):
            raise HarnessError("On 4.3.1 the agent failed: put-lost breaks the bytecode")
        return {name: altered[name]}

    monkeypatch.setattr(qualification, "alterations", one_is_broken)
    found = looked_for()
    [row] = [row for row in found.settled if row.sight is Sight.MISSING]
    assert (row.name, row.reason) == ("put-lost", "On 4.3.1 the agent failed: put-lost breaks the bytecode")
    assert "record-twice" in {aim.name for aim in found.aims}


def test_what_a_release_cannot_show_is_said(altered):
    untried = {row.name: row.reason for row in looked_for("3.9.1", "3.9.1").settled}
    assert "lacks group.protocol=streams" in untried["exactly-once, streams protocol"]
    assert "4.2.0 or later" in untried["migration"]
    assert "it takes a thread" in untried["not-locked"]
    newest = {row.name: row.reason for row in looked_for().settled}
    assert newest["store-not-empty"] == "the trial need not show it on 4.3.1"
    assert "store-not-empty" in {aim.name for aim in looked_for("3.9.1", "3.9.1").aims}


def test_the_nearest_release_with_a_known_issue_is_the_control(altered, monkeypatch):
    monkeypatch.setattr(qualification, "_control", lambda *_: None)
    [control] = [aim for aim in looked_for("4.2.2", "4.2.2").aims if isinstance(aim, ControlAim)]
    assert str(control.trial.cell.streams) == "4.1.2"
    assert control.name == "KAFKA-20685 on 4.1.2"
    assert {"lost-record", "skipped-wipe"} <= set(control.anomalies)


def test_it_can_be_narrowed_to_scenarios(altered):
    found = looked_for(scenarios=["quota"])
    assert {aim.trial.cell.scenario for aim in found.aims} == {"quota"}
    assert {"throttle", "transactional-request", "throttle-waited-out"} <= {aim.name for aim in found.aims}
    assert found.settled == ()
    with pytest.raises(UsageError, match=r"Nothing is looked for in migration on 3\.9\.1"):
        looked_for("3.9.1", "3.9.1", ["migration"])


@pytest.fixture
def tried(altered, monkeypatch, tmp_path):
    """Runs a qualification whose trials show, one after the other, what is given."""

    class NoCluster:
        @classmethod
        def start(cls, *_):
            return cls()

        def check_alive(self):
            """It is."""

        def stop(self):
            """It does."""

    def run(*shown: TrialTraces) -> Qualification:
        rest, seeds = iter(shown), []
        monkeypatch.setattr(qualification, "EmbeddedCluster", NoCluster)
        monkeypatch.setattr(qualification, "_try", lambda trial, *_: (seeds.append(trial.seed), next(rest))[1])
        found = looked_for(scenarios=["split-batch"])
        one = [aim for aim in found.aims if isinstance(aim, PhraseAim)]
        assert [aim.name for aim in one] == ["batch-split"]
        done = qualify(HERE, RunFolder(tmp_path / RUN), Wanted(found.streams, found.broker, tuple(one), ()), 7)
        assert seeds == [7 + n for n in range(1, len(shown) + 1)]
        assert done.trials == len(shown)
        return done

    return run


SHOWN, NOTHING = TrialTraces(phrases=frozenset({"batch-split"})), TrialTraces(reason="Batches were split 0 times.")


@pytest.mark.parametrize(
    ("shown", "sight", "code"),
    [
        ([SHOWN], Sight.SEEN, ExitCode.OK),
        ([NOTHING, TrialTraces(void="It stood still."), SHOWN], Sight.SEEN, ExitCode.OK),
        ([NOTHING, NOTHING, NOTHING], Sight.MISSING, ExitCode.ANOMALY),
        ([TrialTraces(error="why")] * 3, Sight.FAILED, ExitCode.ERROR),
        ([TrialTraces(void="why")] * 3, Sight.UNKNOWN, ExitCode.INCONCLUSIVE),
        ([TrialTraces(not_understood="why")], Sight.UNKNOWN, ExitCode.INCONCLUSIVE),
    ],
)
def test_what_is_not_seen_is_looked_for_again(tried, shown, sight, code):
    found = tried(*shown)
    assert ([row.sight for row in found.rows], found.exit_code) == ([sight], code)


@pytest.mark.parametrize(
    ("raised", "field"),
    [
        (NotUnderstoodError("DumpLogSegments prints x."), "not_understood"),
        (HarnessError("No space."), "error"),
        (UsageError("No Java."), "error"),
    ],
)
def test_a_trial_that_fails_still_shows_what_its_logs_have(monkeypatch, tmp_path, raised, field):
    folder = TrialFolder(tmp_path)
    folder.instances.mkdir()
    (folder.instances / "instance-1.log").write_text("INFO [a] Triggering the followup rebalance scheduled\n")
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "node-1.log").write_text("Follower a-0 starts at leader epoch 1\nsplitting and retrying\n")
    died = '{"t": 1, "source": "instance-1", "event": "uncaught", "message": "m", "causes": ["x: File too large"]}\n'
    folder.timeline.write_text(died)
    monkeypatch.setattr(qualification, "needs_own_cluster", lambda _: False)

    def fails(*_args, **_kwargs):
        raise raised

    monkeypatch.setattr(qualification, "run_trial", fails)
    unused: Any = None  # by the trial above
    seen = qualification._try(unused, folder, unused, dumps=True)
    assert getattr(seen, field) == str(raised)
    assert seen.phrases == {"follow-up", "follows", "write-refused"}  # a broker says nothing for an instance
    assert seen.events == {"uncaught"}


# --- on real brokers


@pytest.mark.night
@pytest.mark.broker
def test_a_release_with_an_unknown_dump_format_does_not_qualify(tmp_path):
    """Brokers as published, but for one word that their `DumpLogSegments` prints of each batch."""
    patch_brokers(
        tmp_path / "build", "4.3.1", "ddec10000000", "DumpLogSegments", b" producerEpoch: ", b" producerepoch: "
    )
    broker = Release.parse(name_release(HERE, str(tmp_path / "build"), artifact=BROKER))
    streams, numbers = Release.parse("4.3.1"), count()
    found = find_wanted(HERE, streams, broker, ["multirunner"])
    scenario, dump = (
        next(aim for aim in found.aims if aim.part is part)
        for part in (QualificationPart.SCENARIO, QualificationPart.DUMP)
    )

    def attempt() -> Qualification:
        run = RunFolder(Path(tmp_path / f"20261127T084500-3f2{next(numbers)}"))
        return qualify(HERE, run, Wanted(streams, broker, (scenario, dump), ()), 1)

    reported = undisturbed(attempt, void=lambda reported: stood_still(row.reason for row in reported.rows))
    assert reported.exit_code is ExitCode.ANOMALY
    [lesson] = reported.lessons
    assert lesson.startswith("dump at-least-once, streams protocol: DumpLogSegments prints")
    assert " producerepoch: " in lesson
    [exercised] = [row for row in reported.rows if row.part is QualificationPart.SCENARIO]
    assert exercised.sight is Sight.UNKNOWN
    assert "DumpLogSegments prints" in exercised.reason


@pytest.mark.broker
def test_a_release_qualifies_for_a_scenario(tmp_path):
    release, numbers = Release.parse("4.3.1"), count()
    found = find_wanted(HERE, release, release, ["split-batch"])

    def attempt() -> Qualification:
        return qualify(HERE, RunFolder(tmp_path / f"20261127T084500-3f2{next(numbers)}"), found, 1, ["split-batch"])

    reported = undisturbed(attempt, void=lambda reported: stood_still(row.reason for row in reported.rows))
    assert {(row.part, row.name): row.sight for row in reported.rows} == {
        (QualificationPart.PHRASE, "batch-split"): Sight.SEEN,
        (QualificationPart.SCENARIO, "split-batch"): Sight.SEEN,
    }
    assert reported.exit_code is ExitCode.OK
    assert reported.trials == 1
