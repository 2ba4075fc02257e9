"""Files of a trial that ended well, as its rooms write them; each test states what it is about."""

from dataclasses import replace
from typing import Any

from onceproof.campaigns.bisection.boundaries import Bisected
from onceproof.campaigns.fuzz.fuzzing import Fuzzed, Searched
from onceproof.campaigns.fuzz.fuzzing import FuzzFinding as FuzzFinding
from onceproof.campaigns.fuzz.relational import Difference
from onceproof.campaigns.search.log import Exploration, Finding, KnownTrial
from onceproof.campaigns.verify_fix.answer import ComparedVariant, FixAnswer, Proof
from onceproof.cli.trials import TrialAnswer
from onceproof.model.cell import Cell, Trial
from onceproof.model.files import Outcome, Produced, Reading, TopicPlan, TrialPlan, VerdictRow
from onceproof.model.judged import AppAnswer, Judgement, OnRelease, Output
from onceproof.model.promise import least_of
from onceproof.model.sensitivity import Tally
from onceproof.model.verdict import Verdict

ROLES = {role: TopicPlan(role, 4) for role in ("input", "output", "counter-changelog", "ids-changelog")}


def an_outcome(trial: Trial, **fields: Any) -> Outcome:
    """The outcome of a trial that was exercised."""
    ended = Outcome(
        trial=trial,
        exercised=True,
        reason="why",
        all_steps_tried=True,
        produced=Produced(5, 5),
        attested={},
        seconds={"total": 9.5},
    )
    return replace(ended, **fields)


def a_plan(trial: Trial, **fields: Any) -> TrialPlan:
    """The plan of a trial of the enumerator."""
    planned = TrialPlan(
        trial=trial,
        application_id=trial.application_id,
        description="what it is",
        partitions=2,
        roles=ROLES,
        check="enumerator",
        promises=least_of(["identities", "counters"]),
        app={},
        streams_config={},
        producer_config={},
        broker_config={},
    )
    return replace(planned, **fields)


def a_reading(**fields: Any) -> Reading:
    """What the independent reader found in a trial in which nothing is wrong."""
    return replace(Reading(records=5, outputs=5, keys=5, ids=5, anomalies={}, witnesses=()), **fields)


def a_verdict(cell: Cell, verdict: str, /, **fields: Any) -> VerdictRow:
    """The verdict on a cell of one trial, which was exercised."""
    row = VerdictRow(
        **cell.to_dict(),
        cell=cell.key,
        verdict=Verdict(verdict),
        sentence="why",
        red=0,
        counted=1,
        trials=1,
        anomalies={},
        issues=(),
        errors={},
        seeds=(1,),
        seconds=9.5,
        records=5,
        keys=5,
        ids=5,
        folders=("trials/1",),
    )
    return replace(row, **fields)


def an_answer(**fields: Any) -> TrialAnswer:
    """What `trial --json` says about a trial with an anomaly."""
    answer = TrialAnswer(
        scenario="crash",
        variant="V",
        streams="4.1.2",
        broker="3.9.2",
        broker_is_claimed=False,
        restart_on="4.3.1",
        seed=1,
        exercised=True,
        reason="why",
        parameters={"burst": 20_000},
        records=5,
        outputs=4,
        keys=5,
        ids=0,
        anomalies={"lost-record": 1},
        issues=(),
        unexplained={"lost-record": 1},
        promises={"state": 8},
        not_looked_at={},
        steps=None,
        plant=None,
        fault=None,
        attested={"instance-1": {"version": "4.1.2"}},
        seconds={"total": 9.5},
        folder="trials/1",
    )
    return replace(answer, **fields)


def an_answer_about_a_fix(**fields: Any) -> FixAnswer:
    """A fix that is proven."""
    why = "3.4.0 shows it, 3.4.1@ab12cd3 does not."
    proven = ComparedVariant(
        "enumerator", "DEFAULT_CONFIG", Proof.PROVEN, why, Tally(2, 2), (0.3424, 1.0), Tally(0, 3), 3, 0.0346, 0.6316
    )
    answer = FixAnswer(
        issue="KAFKA-14172",
        title="State stores lose state",
        before="3.4.0",
        build="3.4.1@ab12cd3",
        broker="3.9.2",
        proof=Proof.PROVEN,
        scenarios=(proven,),
        risk=0.05,
        seed=1,
        command="onceproof issue verify-fix KAFKA-14172 --before 3.4.0 --build 3.4.1@ab12cd3",
        folder="runs/20260101T000000-0001",
    )
    return replace(answer, **fields)


def a_finding(**fields: Any) -> Finding:
    """Lost records under a fault."""
    command = "onceproof trial enumerator --streams 4.3.1 --broker 3.9.1 --variant PAUSED --seed 1"
    finding = Finding(
        number=1,
        streams="4.3.1",
        broker="3.9.2",
        plant=None,
        scenario="enumerator",
        promises=("output",),
        anomalies={"lost-record": 3},
        issues=(),
        after=95.5,
        trials_before=4,
        first=command,
        rate=Tally(2, 3),
        is_settled=True,
        variant="PAUSED",
        parameters={"caching": False},
        command=command,
        smallest_rate=Tally(3, 3),
        others=2,
        folder="trials/5",
    )
    return replace(finding, **fields)


def a_bisection(**fields: Any) -> Bisected:
    """What came with a release."""
    boundary = {"line": "4.1", "last_good": None, "first_bad": "4.1.0", "last_bad": "4.1.2", "first_good": None}
    found = Bisected(
        boundaries=({**boundary, "missed": None},),
        trials=12,
        sure=True,
        missed=0.035,
        bad=("4.1.0", "4.1.2", "4.3.1"),
        good=("4.0.0", "4.0.1"),
        controls={"4.1.0": (3, 3)},
        unknown={},
    )
    return replace(found, **fields)


def an_exploration(**fields: Any) -> Exploration:
    """A search that found a known issue and something else."""
    known = KnownTrial(
        issues=("KAFKA-14172",), trials=3, anomalies={"duplicate-id": 2}, after=10.5, command="onceproof trial"
    )
    searched = Exploration(
        run="20260101T000000-0001",
        streams="4.3.1",
        broker="3.9.2",
        scenarios=("enumerator",),
        left_out={"global-join": "why"},
        seed=1,
        uniform=False,
        settings=("group.protocol=streams",),
        plant=None,
        seconds=600.5,
        trials=30,
        searched=20,
        exercised=25,
        errors=1,
        coverage=400,
        known=(known,),
        findings=(a_finding(),),
        folder="explorations/20260101T000000-0001",
    )
    return replace(searched, **fields)


def on_release(**fields: Any) -> OnRelease:
    """What a release showed of an application: nothing wrong."""
    found = OnRelease(
        streams="4.3.1",
        restart_on=None,
        judgement=Judgement.GREEN,
        reason="why",
        exercised=True,
        anomalies={},
        witnesses=(),
        promises={"differential": 1},
        not_looked_at={},
        outputs={"out": Output("records")},
        records=1,
        plant=None,
        fault=None,
        seconds=1.0,
        folders=("a",),
    )
    return replace(found, **fields)


def an_app_answer(*releases: OnRelease, **fields: Any) -> AppAnswer:
    """What an application showed on releases."""
    found = AppAnswer(
        application="folder/shop",
        class_name="A",
        broker="3.9.2",
        fault="pause",
        parameters={"fault": "pause", "pause.seconds": 7},
        seed=1,
        releases=releases,
    )
    return replace(found, **fields)


def a_fuzzing(**fields: Any) -> Fuzzed:
    """A fuzzing with one finding."""
    finding = FuzzFinding(
        number=1,
        title="unexpected of burst, table, foreignKeyJoin",
        case_number=7,
        cases=8,
        after=1.5,
        reds=2,
        differences=(Difference("n0", "unexpected", "a = a|0/a|0"),),
        case="s0 = burst in0",
        folder="fuzzings/1/findings/1",
    )
    fuzzed = Fuzzed(
        run="1",
        streams="3.9.1",
        against="3.9.0",
        seed=1,
        harness="0.2.0+00000000",
        cases=100,
        seconds=10.0,
        red=2,
        searched={"foreignKeyJoin": Searched(cases=40, judged=38, red=2)},
        left_out={"it is not determined": 3},
        findings=(finding,),
        folder="fuzzings/1",
    )
    return replace(fuzzed, **fields)
