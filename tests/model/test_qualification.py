"""What trials of a qualification say about what was looked for, and what follows for the release."""

from dataclasses import replace

import pytest

from onceproof.model.cell import Cell
from onceproof.model.errors import ExitCode, HarnessError
from onceproof.model.qualification import (
    ControlAim,
    DumpAim,
    EventAim,
    PhraseAim,
    PlantAim,
    Qualification,
    QualificationPart,
    QualificationRow,
    QualifyingTrial,
    ScenarioAim,
    Sight,
    TrialTraces,
    rows_of,
)
from onceproof.model.release import Release

TRIAL = QualifyingTrial(Cell("enumerator", "PAUSED", Release(4, 4, 0), Release(4, 4, 0)), {"keys": 3}, "put-lost")
DUMP = DumpAim("exactly-once", TRIAL, ("data", "commit"), ("atomicity",), frozenset({"torn-transaction"}))
PHRASE = PhraseAim("fenced", TRIAL, "StreamThread")
CONTROL = ControlAim("KAFKA-1 on 4.4.0", TRIAL, ("duplicate-id", "wrong-id"))
PRINTED = TrialTraces(entries={"data": 12, "commit": 3}, promises={"atomicity": 3})
NOT_UNDERSTOOD = TrialTraces(not_understood="DumpLogSegments prints what Onceproof does not understand: 'x'.")
FAILED, VOID = TrialTraces(error="The brokers failed."), TrialTraces(void="The machine stood still for 3.0 s.")


@pytest.mark.parametrize(
    ("aim", "seen", "expected"),
    [
        (DUMP, PRINTED, "12 data, 3 commit"),
        (PHRASE, TrialTraces(phrases=frozenset({"fenced", "revoked"})), "by StreamThread"),
        (
            EventAim("restore", TRIAL, "StateRestoreListener"),
            TrialTraces(events=frozenset({"restore"})),
            "by StateRestoreL",
        ),
        (ScenarioAim("crash", TRIAL), TrialTraces(exercised=True, reason="Killed."), "Killed."),
        (
            PlantAim("put-lost", TRIAL, ("A.b()",)),
            TrialTraces(fired=3, anomalies={"wrong-id": 7}),
            "fired 3 times: 7 wrong-id",
        ),
        (PlantAim("put-lost", TRIAL, ("A.b()",)), TrialTraces(fired=1), "fired 1 times: no anomaly"),
        (CONTROL, TrialTraces(anomalies={"wrong-id": 7, "lost-record": 1}, unexplained={"wrong-id": 2}), "5 wrong-id"),
    ],
)
def test_what_a_trial_shows_is_seen_whatever_the_others_show(aim, seen, expected):
    for tries in ([seen], [FAILED, VOID, seen], [NOT_UNDERSTOOD, seen], [TrialTraces(), seen]):
        row = aim.row(tries)
        assert row.sight is Sight.SEEN
        assert row.reason.startswith(expected)
        assert row.trial == "enumerator PAUSED (keys=3, put-lost)"


@pytest.mark.parametrize(
    ("aim", "seen", "expected"),
    [
        (DUMP, replace(PRINTED, entries={"data": 12}), "the log segments show no entry commit"),
        (DUMP, replace(PRINTED, promises={}), "the log segments show nothing to compare for atomicity"),
        (
            DUMP,
            replace(PRINTED, unexplained={"torn-transaction": 2, "lost-record": 9}),
            "the log segments show 2 torn-transaction that nothing explains",
        ),
        (
            PHRASE,
            TrialTraces(phrases=frozenset({"revoked"}), reason="r"),
            "no log has it: StreamThread words it differently",
        ),
        (EventAim("restore", TRIAL, "Listener"), TrialTraces(), "no instance reported it: look at Listener"),
        (
            ScenarioAim("crash", TRIAL),
            TrialTraces(reason="Nothing was on disk."),
            "not exercised: Nothing was on disk.",
        ),
        (PlantAim("put-lost", TRIAL, ("A.b()",)), TrialTraces(), "did not fire, though A.b() was altered"),
    ],
)
def test_what_no_trial_shows_has_to_be_learnt(aim, seen, expected):
    row = aim.row([FAILED, VOID, seen])
    assert row.sight is Sight.MISSING
    assert row.reason.startswith(expected)


def test_a_control_that_is_explained_by_nobody_is_not_seen():
    row = CONTROL.row([TrialTraces(anomalies={"wrong-id": 7}, unexplained={"wrong-id": 7})])
    assert (row.sight, row.reason) == (
        Sight.UNKNOWN,
        "it does not show: it is fixed there, or not seen any more; unexplained are 7 wrong-id",
    )


def test_an_unreadable_dump_is_named_and_hides_the_rest():
    assert DUMP.row([NOT_UNDERSTOOD]).sight is Sight.MISSING
    assert DUMP.row([NOT_UNDERSTOOD]).reason == NOT_UNDERSTOOD.not_understood
    assert PHRASE.row([NOT_UNDERSTOOD]).sight is Sight.UNKNOWN
    assert PHRASE.row([replace(NOT_UNDERSTOOD, phrases=frozenset({"fenced"}))]).sight is Sight.SEEN


@pytest.mark.parametrize("aim", [DUMP, PHRASE, CONTROL])
def test_a_trial_that_failed_says_nothing_about_kafka(aim):
    assert (aim.row([FAILED, VOID]).sight, aim.row([FAILED]).reason) == (Sight.FAILED, "The brokers failed.")
    assert (aim.row([VOID]).sight, aim.row([VOID]).reason) == (Sight.UNKNOWN, VOID.void)


def row(part: QualificationPart, sight: Sight, name: str = "it") -> QualificationRow:
    return QualificationRow(part, name, sight, "why")


def qualification(*rows: QualificationRow) -> Qualification:
    return Qualification(
        run="r",
        streams="4.4.0",
        broker="4.4.0",
        harness="0.1.0+1",
        scenarios=(),
        trials=3,
        seconds=1.5,
        rows=rows,
    )


def test_one_green_control_may_be_fixed_and_none_red_means_blind():
    lost, red = row(QualificationPart.CONTROL, Sight.UNKNOWN), row(QualificationPart.CONTROL, Sight.SEEN)
    assert [one.sight for one in rows_of([lost, red])] == [Sight.UNKNOWN, Sight.SEEN]
    assert [one.sight for one in rows_of([lost, lost])] == [Sight.MISSING, Sight.MISSING]
    assert rows_of([row(QualificationPart.PLANT, Sight.UNKNOWN)])[0].sight is Sight.UNKNOWN
    assert [one.part for one in rows_of([lost, row(QualificationPart.DUMP, Sight.SEEN)])] == [
        QualificationPart.DUMP,
        QualificationPart.CONTROL,
    ]


@pytest.mark.parametrize(
    ("sights", "code"),
    [
        ([Sight.SEEN, Sight.UNTRIED], ExitCode.OK),
        ([Sight.SEEN, Sight.UNKNOWN], ExitCode.INCONCLUSIVE),
        ([Sight.SEEN, Sight.UNKNOWN, Sight.FAILED], ExitCode.ERROR),
        ([Sight.SEEN, Sight.FAILED, Sight.MISSING], ExitCode.ANOMALY),
        ([Sight.UNTRIED], ExitCode.INCONCLUSIVE),
        ([], ExitCode.INCONCLUSIVE),
    ],
)
def test_the_exit_code_is_of_what_weighs_most(sights, code):
    assert qualification(*(row(QualificationPart.PHRASE, sight) for sight in sights)).exit_code is code


def test_it_is_a_file(tmp_path):
    found = qualification(
        row(QualificationPart.PHRASE, Sight.MISSING, "fenced"), row(QualificationPart.PLANT, Sight.FAILED)
    )
    found.write(tmp_path / "qualification.json")
    assert Qualification.read(tmp_path / "qualification.json") == found
    assert found.lessons == ["phrase fenced: why"]
    assert [one.part for one in found.doubtful] == [QualificationPart.PLANT]
    older = (tmp_path / "qualification.json").read_text().replace('"reason"', '"told"')  # as older versions wrote it
    (tmp_path / "qualification.json").write_text(older)
    assert Qualification.read(tmp_path / "qualification.json") == found
    (tmp_path / "qualification.json").write_text('{"schema": 1}')
    with pytest.raises(HarnessError, match=r"run, .* are missing"):
        Qualification.read(tmp_path / "qualification.json")
