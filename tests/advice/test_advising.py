"""The answer: from the registry, the scenarios and what was measured."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onceproof.advice.advice import SourceKind, UpgradeAnswer
from onceproof.advice.advising import OwnRun, UpgradeQuestion, advise, better_targets, lacking
from onceproof.advice.asking import own_runs, requests
from onceproof.model.application import FEATURES, Application
from onceproof.model.cell import Cell
from onceproof.model.compared import ChangeEffect, TopologyChange, TopologyComparison
from onceproof.model.errors import UsageError
from onceproof.model.files import Planted
from onceproof.model.json_file import encode
from onceproof.model.judged import Judgement
from onceproof.model.known_issues import IssueRegistry, parse_registry, registry
from onceproof.model.matrix import expand
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.severity import OF_ANOMALIES, Severity
from onceproof.model.verdict import Verdict
from onceproof.results.measured import Measured
from onceproof.scenarios import CATALOGUE
from tests.published import NEWEST
from tests.specimens.files import an_app_answer, on_release

PUBLISHED = (
    *("3.0.0", "3.3.1", "3.4.0", "3.4.1", "3.5.0", "3.7.2", "3.8.0", "3.8.1", "3.9.0", "3.9.1", "3.9.2"),
    *("4.0.0", "4.0.1", "4.0.2", "4.1.0", "4.1.1", "4.1.2", "4.2.0", "4.2.1", "4.3.0", "4.3.1", str(NEWEST)),
)
RELEASES = [Release.parse(text) for text in PUBLISHED]
RUN = "20261120T021500-bbbb"
STATELESS = Application(
    {"guarantee": ("exactly_once_v2",), "stores": (), "global_tables": (False,), "quotas": (False,)}
)


def question(current, target, measured=(), application=None):
    way = (Release.parse(current), Release.parse(target))
    return UpgradeQuestion(*way, registry(), CATALOGUE, measured, application, RELEASES)


def own_run(streams, judgement="green", restart=None, fault="instance-kill"):
    way = Release.parse(streams), Release.parse(restart) if restart else None
    return OwnRun(*way, fault, Judgement(judgement), "As it was.", RUN)


def advice_with(*runs):
    return advise(replace(question("3.9.1", "4.3.1", all_of("3.9.1", "4.3.1")), own=runs))


@pytest.mark.parametrize(
    ("runs", "against"),
    [
        ([own_run("4.3.1")], 0),
        ([own_run("4.3.1", "red")], 1),
        ([own_run("4.3.1", "red"), own_run("3.9.1", "red")], 0),  # it is as red now
        ([own_run("4.3.1", "red"), own_run("3.9.1", "red", fault="pause")], 1),
        ([own_run("3.9.1", "red")], 0),
        ([own_run("3.9.1", "red", "4.3.1", "rolling-bounce")], 1),
        ([own_run("4.3.1", "inconclusive")], 0),
    ],
)
def test_what_an_application_of_ones_own_showed_is_evidence(runs, against):
    with_it, without = advice_with(*runs), advise(question("3.9.1", "4.3.1", all_of("3.9.1", "4.3.1")))
    assert len(with_it.against) - len(without.against) == against
    assert [said.text.partition(".")[0] for said in with_it.own] == [run.said.text.partition(".")[0] for run in runs]
    assert without.own == ()


def test_the_answer_waits_for_a_run_of_it_on_the_target():
    needed = {gap.what for gap in advice_with().not_looked_at if gap.is_needed}
    assert needed == {"4.3.1: your application"}
    assert advice_with().answer is not UpgradeAnswer.NOTHING
    looked_at = advice_with(own_run("4.3.1"), own_run("3.9.1", restart="4.3.1")).not_looked_at
    assert not [gap for gap in looked_at if "your application" in gap.what]
    [gap, _] = [gap for gap in advice_with(own_run("4.3.1", "inconclusive")).not_looked_at if "your appl" in gap.what]
    assert "`onceproof app run DIR --streams 4.3.1`" in gap.why


def test_the_last_runs_of_an_application_are_found_by_its_folder(tmp_path, project):
    folder, runs = project / "examples" / "orders", tmp_path / "runs"
    planted = Planted("put-lost", (), 1)

    def ran(run, *releases, **fields):
        file = RunFolder(runs / run).app_file
        file.parent.mkdir(parents=True)
        an_app_answer(*releases, **{"application": str(folder), **fields}).write(file)

    ran("20260101T000000-aaaa", on_release(streams="4.3.1", judgement=Judgement.RED), on_release(streams="3.8.1"))
    ran("20260102T000000-aaaa", on_release(streams="4.3.1-claimed"), on_release(streams="3.9.1", restart_on="4.3.1"))
    ran("20260103T000000-aaaa", on_release(streams="4.3.1", judgement=Judgement.RED, plant=planted))
    ran("20260104T000000-aaaa", on_release(streams="4.3.1", judgement=Judgement.RED), application="elsewhere")
    ran("20260105T000000-aaaa", on_release(streams="4.3.1", judgement=Judgement.INCONCLUSIVE), fault="bounce")
    found = own_runs(folder, runs, [Release.parse("3.9.1"), Release.parse("4.3.1")])
    assert [(str(run.streams), run.fault, str(run.judgement), run.run[:8]) for run in found] == [
        ("4.3.1", "bounce", "inconclusive", "20260105"),
        ("4.3.1", "pause", "green", "20260102"),
        ("3.9.1", "pause", "green", "20260102"),
    ]
    with pytest.raises(UsageError, match=r"onceproof\.toml could not be read"):
        own_runs(tmp_path, runs, [])


def a_cell(scenario, streams, restart=None, variant="DEFAULT_CONFIG"):
    restart = Release.parse(restart) if restart else None
    return Cell(scenario, variant, Release.parse(streams), Release.parse("3.9.2"), restart)


def said(cell, verdict="clean", **other):
    issues = tuple(issue.key for issue in registry().affecting(cell)) if verdict == "known" else ()
    reported = Measured(
        cell, Verdict(verdict), "As it was.", 0, 1, 0.95, 0.05, issues, RUN, "2026-11-20T02:15:00+00:00", True
    )
    return replace(reported, **other)


def all_of(current, target, application=None):
    """What would fill all gaps, as the registry expects."""
    cells = lacking(question(current, target, application=application))
    return [said(cell, "known" if registry().affecting(cell) else "clean") for cell in cells]


ROW = """
[[issue]]
key = "KAFKA-{number}"
title = "t"
variants.enumerator = ["DEFAULT_CONFIG"]
explains = [{{ anomalies = ["duplicate-id"], returned = true }}]
affected = [{affected}]
fixed = []
culprit = "{culprit}"
sources = ["JIRA"]
symptom = "s."
condition = "c."
remedy = "r."
needs = {{}}
"""


def few_issues() -> IssueRegistry:
    """A registry of seven issues, by their numbers."""
    affected: dict[int, Any] = {
        1: ("restarted", ("3.0.0", "3.4.0"), ("4.1.0", "4.1.1")),
        2: ("restarted", ("3.5.0", None)),
        3: ("restarted", ("3.0.0", None)),
        4: ("restarted", ("3.8.0", "3.9.2"), ("4.2.0", None)),
        5: ("mixed", ("3.0.0", "3.4.0")),
        6: ("broker", ("3.0.0", None)),
        7: ("restarted", ("4.1.0", "4.1.2")),
    }
    rows = []
    for number, (culprit, *ranges) in affected.items():
        ends = [f'first = "{first}"' + (f', last = "{last}"' if last else "") for first, last in ranges]
        rows.append(ROW.format(number=number, culprit=culprit, affected=", ".join(f"{{ {end} }}" for end in ends)))
    return parse_registry("".join(rows))


def of_few(current, target, releases=RELEASES):
    return replace(question(current, target), registry=few_issues(), releases=releases)


def keys(issues):
    return [issue.key for issue in issues]


@pytest.mark.parametrize(
    ("current", "target", "left", "gained", "staying", "way"),
    [
        ("3.4.0", "3.4.1", [1], [], [3], [5]),
        ("3.9.1", "4.1.1", [4], [1, 7], [2, 3], []),
        ("4.1.1", "3.4.0", [2, 7], [], [1, 3], [5]),
        ("3.9.0", "4.2.0", [], [], [2, 3, 4], []),
    ],
)
def test_issues_are_left_gained_kept_or_met_on_the_way(current, target, left, gained, staying, way):
    advice = advise(of_few(current, target))
    for issues, numbers in zip(
        (advice.left_behind, advice.gained, advice.staying, advice.on_the_way),
        (left, gained, staying, way),
        strict=True,
    ):
        assert keys(issues) == [f"KAFKA-{number}" for number in numbers]


@given(st.sampled_from(RELEASES), st.sampled_from(RELEASES))
@example(Release(3, 0, 0), Release(3, 5, 0))  # 3.4.1 differs from 3.5.0 by a feature that it lacks
@settings(max_examples=60, deadline=None)
def test_a_downgrade_mirrors_the_upgrade_with_its_sources(one, other):
    if one == other:
        return
    forth, back = advise(question(str(one), str(other))), advise(question(str(other), str(one)))
    assert (forth.left_behind, forth.gained, forth.staying) == (back.gained, back.left_behind, back.staying)
    assert forth.on_the_way == back.on_the_way
    assert all(said.sources for said in (*forth.against, *forth.to_do))
    assert all(gap.sources for gap in forth.not_looked_at)
    for issue in (*forth.gained, *forth.left_behind, *forth.staying):
        assert issue.symptom
        assert issue.condition
        assert issue.remedy
        assert issue.sources
        assert issue.url or issue.key.endswith(("(documented)", "(no JIRA)"))


USES = st.fixed_dictionaries(
    {}, optional={name: st.sets(st.sampled_from(feature.values)) for name, feature in FEATURES.items()}
)


@given(st.sampled_from(RELEASES), st.sampled_from(RELEASES), USES)
@settings(max_examples=60, deadline=None)
def test_an_application_takes_away_and_says_what(one, other, uses):
    if one == other:
        return
    application = Application({name: tuple(values) for name, values in uses.items()})
    whole = advise(question(str(one), str(other)))
    own = advise(question(str(one), str(other), application=application))
    out = {left.what for left in own.left_out}
    for name in ("left_behind", "gained", "staying", "on_the_way"):
        assert set(keys(getattr(own, name))) == set(keys(getattr(whole, name))) - out


@given(st.sampled_from(RELEASES), st.sampled_from(RELEASES))
@settings(max_examples=30, deadline=None)
def test_what_is_lacking_fills_the_gaps(one, other):
    if one == other:
        return
    cells = all_of(str(one), str(other))
    filled = question(str(one), str(other), cells)
    assert lacking(filled) == []
    assert advise(filled).answer is (UpgradeAnswer.SOMETHING if advise(filled).against else UpgradeAnswer.NOTHING)


def test_nothing_known_against_it_is_0_and_not_looked_at_is_3():
    assert advise(question("3.4.1", "3.5.0")).exit_code == 3
    advice = advise(question("3.4.1", "3.5.0", all_of("3.4.1", "3.5.0")))
    assert (advice.answer, advice.exit_code) == (UpgradeAnswer.NOTHING, 0)
    assert advice.headline == "3.4.1 to 3.5.0: nothing known against it."
    assert advice.remarks == ("1 known issue applies on the way.",)
    without = Application({"grouped_tables": (False,)})
    reported = advise(question("3.4.1", "3.5.0", all_of("3.4.1", "3.5.0", without), without))
    assert reported.headline == "3.4.1 to 3.5.0: nothing known against it."
    assert reported.remarks == ()


@pytest.mark.parametrize(
    ("current", "target", "met"),
    [("3.4.1", "4.3.1", True), ("3.9.1", "3.0.0", True), ("3.0.0", "3.4.1", False), ("3.5.0", "4.3.1", False)],
)
def test_an_issue_of_two_releases_is_met_on_the_way_only(current, target, met):
    advice = advise(question(current, target))
    documented = "KIP-904 (documented)"
    assert keys(advice.on_the_way) == ([documented] if met else [])
    assert documented not in keys((*advice.gained, *advice.left_behind, *advice.staying))
    assert not [said for said in advice.against if documented in said.text]  # who follows the remedy is safe
    assert [one.sources[0].name for one in advice.to_do if one.text.startswith("On the way, against KIP")] == (
        [documented] if met else []
    )
    own = advise(question(current, target, application=Application({"grouped_tables": (False,)})))
    assert own.on_the_way == ()
    assert (documented in {left.what for left in own.left_out}) == met


def test_an_issue_of_the_way_names_the_cell_that_shows_it():
    cell = a_cell("grouped-table", "3.4.1", "4.3.1")
    assert cell in lacking(question("3.4.1", "4.3.1"))
    [issue] = advise(question("3.4.1", "4.3.1", [said(cell, "known", red=1)])).on_the_way
    assert [one.name for one in issue.cells] == [cell.key]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"verdict": Verdict.INCONCLUSIVE}, "The last verdict is inconclusive (DEFAULT_CONFIG)."),
        ({"verdict": Verdict.ERROR}, "The last verdict is error (DEFAULT_CONFIG)."),
    ],
)
def test_a_cell_that_says_nothing_does_not_count(changed, why):
    cells = [
        replace(one, **changed) if one.cell == a_cell("crash", "3.5.0") else one for one in all_of("3.4.1", "3.5.0")
    ]
    asked = question("3.4.1", "3.5.0", cells)
    [gap] = [gap for gap in advise(asked).not_looked_at if gap.is_needed]
    assert (gap.what, gap.cell) == ("3.5.0: crash", "crash-DEFAULT_CONFIG-s3.5.0-b3.9.2")
    assert gap.why.startswith(why)
    assert gap.sources[0].run == RUN
    assert advise(asked).exit_code == 3


def test_a_control_that_cannot_be_red_is_no_look_at_a_scenario():
    cells = [one for one in all_of("3.4.1", "3.5.0") if one.cell.scenario != "enumerator" or one.cell.restart_on]
    asked = question("3.4.1", "3.5.0", [*cells, said(a_cell("enumerator", "3.5.0", variant="CACHING_DISABLED"))])
    assert lacking(asked) == [a_cell("enumerator", "3.5.0")]


def test_a_crash_issue_survives_the_upgrade_and_names_its_cell():
    restarted = said(a_cell("crash", "3.9.1", "4.3.1"), "known", red=1)
    advice = advise(question("3.9.1", "4.3.1", [*all_of("3.9.1", "4.3.1"), restarted]))
    assert advice.exit_code == 1
    sentence = "What a crash on 3.9.1 leaves behind is trusted by 4.3.1, too (KAFKA-20685)"
    assert any(sentence in against.text for against in advice.against)
    close = next(one for one in advice.to_do if one.text.startswith("Close the application cleanly"))
    assert [(source.kind, source.name) for source in close.sources][:2] == [
        (SourceKind.ISSUE, "KAFKA-20685"),
        (SourceKind.CELL, "crash-DEFAULT_CONFIG-s3.9.1-r4.3.1-b3.9.2"),
    ]


def test_issues_against_it_are_the_worst_first():
    advice = advise(question("3.4.1", "4.4.0"))
    severities = [issue.severity for issue in advice.gained]
    assert severities == sorted(severities, key=lambda severity: severity.rank)
    assert set(severities) == set(Severity)
    assert f", at worst {Severity.LOST}." in advice.headline


def test_sentences_that_repeat_an_issue_name_it():
    advice = advise(question("3.9.1", "4.3.1"))
    against, way = {issue.key for issue in (*advice.gained, *advice.carried)}, {one.key for one in advice.on_the_way}
    assert {said.issue for said in advice.against if said.issue} == against
    assert {said.issue for said in advice.to_do if said.issue} == against | way
    [carried] = advice.carried
    assert carried.remedy == "Close the application cleanly before the change: a crash on 3.9.1 survives it."
    assert not any(carried.remedy in said.text for said in advice.to_do if said.issue is None)


def test_every_known_issue_has_a_severity():
    issues = registry().issues
    assert not [issue.key for issue in issues if not issue.anomalies and issue.severity is None]
    assert OF_ANOMALIES.keys() <= {anomaly for issue in issues for anomaly in issue.anomalies}


def test_an_issue_is_as_bad_as_its_worst_anomaly():
    of = {issue.key: issue.harm for issue in registry().issues}
    assert of["KAFKA-20685"] is Severity.LOST  # which also has wrong values
    assert of["KAFKA-18943"] is Severity.WRONG
    assert of["KAFKA-17455"] is Severity.STUCK  # and a thread dies
    assert of["KAFKA-20808"] is Severity.LOUD
    assert of["KAFKA-19943"] is Severity.WRONG  # by its row: a lost record comes of a key that was deleted


def test_the_best_release_of_the_line_and_of_all_are_named():
    advice = advise(of_few("3.9.1", "4.1.1"))
    assert advice.better_targets == ("4.1.2", "4.0.2")
    assert advice.to_do[0].text == (
        "Consider 4.1.2. It has 3 known issues, 1 of them new; 4.1.1 has 4, 2 of them new. Only 4.1.1 has KAFKA-1."
    )
    assert better_targets(of_few("4.1.1", "4.1.0")) == []  # going on is not a way back


def test_an_unfixed_issue_names_the_cells_that_are_blind_for_it():
    gaps = {gap.what: gap for gap in advise(question("3.9.1", "4.3.1")).not_looked_at if "Blind here" in gap.what}
    assert gaps.keys() >= {
        "Blind here: global-join KILLED",
        "Blind here: as-of-join RESTARTED, LATE, ROLLING, TRANSACTIONAL",
    }
    killed = gaps["Blind here: global-join KILLED"]
    assert killed.why == "KAFKA-21034 shows thread-died there, on 4.3.1 and all later releases."
    assert (killed.is_needed, [source.name for source in killed.sources]) == (False, ["KAFKA-21034"])
    assert not any("at-least-once TIMED_OUT" in what for what in gaps)  # which 4.4.0 mends
    before = advise(question("3.9.1", "4.2.2")).not_looked_at
    assert not any("global-join" in gap.what for gap in before if "Blind here" in gap.what)


def test_of_as_many_issues_fewer_new_ones_are_better():
    few = [Release.parse(text) for text in ("3.9.1", "3.9.2", "4.0.3-rc0", "4.1.2")]
    advice = advise(of_few("3.9.1", "4.1.2", few))
    assert advice.better_targets == ("3.9.2",)
    assert advice.to_do[0].text == (
        "Consider 3.9.2. It has 3 known issues, 0 of them new; 4.1.2 has 3, 1 of them new. Only 3.9.2 has KAFKA-4. "
        "Only 4.1.2 has KAFKA-7."
    )
    assert better_targets(of_few("4.2.0", "4.3.1")) == []  # on the way there is what has as many


def test_a_downgrade_over_a_store_format_names_the_remedy():
    advice = advise(question("4.3.1", "4.2.0"))
    assert "(a downgrade)" in advice.headline
    assert advice.against[0].text.startswith("4.2.0 cannot continue with the state of 4.3.1: 4.3.1 keeps the offsets")
    assert any(one.text.startswith("Before the change stop each instance") for one in advice.to_do)
    assert {gap.what for gap in advice.not_looked_at if "→" in gap.what} == {
        "4.2.0 → 4.3.1: enumerator, crash",
        *(
            f"4.2.0 → 4.3.1, rolling: {scenario}"
            for scenario in (
                *("enumerator", "multirunner", "crash", "grouped-table", "table-join", "windows"),
                *("stream-join", "foreign-key-join", "global-join", "as-of-join", "punctuators", "dead-letters"),
                *("two-topics", "interactive-queries"),
            )
        ),
        # There stores can be in memory.
        "4.3.1 → 4.2.0: enumerator",
        "4.3.1 → 4.2.0, rolling: multirunner",
        "4.3.1 → 4.2.0, rolling: dead-letters",
        "4.3.1 → 4.2.0, rolling: two-topics",
    }
    up = advise(question("4.2.0", "4.3.1"))
    assert any(one.text.startswith("Should you have to go back to 4.2.0, first stop") for one in up.to_do)


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (("3.4.1", "3.9.1"), "Bounce each instance twice: on 3.9.1 with upgrade.from=3.4, then on 3.9.1 without it."),
        (("3.9.1", "3.4.1"), "Bounce each instance twice: on 3.9.1 with upgrade.from=3.4, then on 3.4.1 without it."),
        (("3.4.1", "3.5.0"), "Stop all instances before the first one starts on 3.5.0: it takes upgrade.from=3.4"),
    ],
)
def test_what_a_rolling_upgrade_takes_is_told(way, said):
    assert any(one.text.startswith(said) for one in advise(question(*way)).to_do)
    once = "Bounce each instance once: from 3.9.1 to 4.3.1 upgrade.from is not needed."
    assert [once in one.text for one in advise(question("3.9.1", "4.3.1")).to_do].count(True) == 1
    assert not any("instance once" in one.text for one in advise(question(*way)).to_do)


def test_a_restart_does_not_stand_for_a_rolling_upgrade():
    cells = all_of("3.9.1", "4.3.1")
    kinds = {one.cell.variant.startswith("ROLLING") for one in cells if one.cell.scenario == "crash"}
    assert kinds == {True, False}
    for rolling in kinds:
        left = [one for one in cells if one.cell.variant.startswith("ROLLING") == rolling]
        lacks = lacking(question("3.9.1", "4.3.1", left))
        assert {cell.variant.startswith("ROLLING") for cell in lacks} == {not rolling}


def test_an_application_without_stores_on_disk_can_go_back():
    advice = advise(question("4.3.1", "4.2.1", application=STATELESS))
    [against] = advice.against
    assert "KAFKA-20428" in against.text  # which is no matter of stores
    assert "KAFKA-20685" in {out.what for out in advice.left_out}
    assert not any("state directory" in one.text for one in advice.to_do)


def test_an_unexplained_red_of_an_older_harness_counts_against():
    red = said(a_cell("quota", "3.5.0"), "regression", red=1, is_current=False)
    [against] = advise(question("3.4.1", "3.5.0", [red])).against
    assert "showed what no known issue explains (by an earlier harness): As it was." in against.text
    assert advise(question("3.5.0", "3.5.1", [red])).against == ()  # the upgrade leaves that one behind


def test_an_error_of_this_machine_is_not_shown():
    failed = said(a_cell("quota", "3.5.0"), "error", sentence="/home/me/broker died")
    assert "/home/me" not in str(encode(advise(question("3.4.1", "3.5.0", [failed]))))


def test_an_at_least_once_application_gets_its_own_cells_only():
    own = Application({"guarantee": ("at_least_once",), "quotas": (False,)})
    assert {(cell.scenario, cell.variant) for cell in lacking(question("3.4.1", "3.5.0", application=own))} == {
        ("multirunner", "AT_LEAST_ONCE"),
        ("at-least-once", "DEFAULT_CONFIG"),
        ("scan", "AT_LEAST_ONCE"),
        ("foreign-key-join", "AT_LEAST_ONCE"),
        ("stream-join", "AT_LEAST_ONCE"),
        ("windows", "EXTENDED"),
        ("split-batch", "DEFAULT_CONFIG"),
        ("dead-letters", "AT_LEAST_ONCE"),
    }
    out = {one.what: one.why for one in advise(question("3.4.1", "3.5.0", application=own)).left_out}
    assert "crash" in out
    assert out["KAFKA-18943"] == (
        "It needs guarantee exactly_once_v2, and the application has guarantee at_least_once."
    )


def test_a_feature_that_no_cell_had_is_reported_as_not_checked():
    own = Application({"guarantee": ("exactly_once_v2",), "joins": ("stream-table",), "windows": (False,)})
    others = [said for said in all_of("3.4.1", "3.5.0", own) if said.cell.scenario not in ("as-of-join", "two-topics")]
    advice = advise(question("3.4.1", "3.5.0", others, own))
    gaps = [gap.what for gap in advice.not_looked_at if gap.is_needed]
    assert gaps == ["3.5.0: as-of-join", "3.5.0: two-topics", "An application with joins stream-table"]
    assert advice.exit_code == 3


def test_a_variant_that_there_is_not_any_more_is_not_told():
    gone = said(a_cell("crash", "3.5.0", variant="GONE"))
    assert advise(question("3.4.1", "3.5.0", [gone])).measured == ()


def test_one_release_is_no_way():
    with pytest.raises(UsageError, match=r"3\.9\.1 is both releases"):
        question("3.9.1", "3.9.1")


def test_what_is_lacking_can_be_asked_of_a_run():
    cells = lacking(question("3.9.1", "4.3.1"))
    asked = [cell for request in requests(cells) for cell in expand(request, CATALOGUE).cells]
    assert set(cells) <= set(asked)
    assert {(cell.streams, cell.restart_on) for cell in asked} == {(cell.streams, cell.restart_on) for cell in cells}


def test_brokers_that_are_to_blame_are_told_to_whom_they_concern():
    def reported(application):
        return [gap for gap in advise(question("4.2.0", "4.2.1", (), application)).not_looked_at if "20254" in gap.why]

    [gap] = reported(None)
    assert (gap.what, gap.is_needed) == ("Brokers 4.2.0", False)
    assert gap.why.startswith("They have KAFKA-20254, whatever Kafka Streams runs on them: After a broker")
    assert [source.url for source in gap.sources] == ["https://issues.apache.org/jira/browse/KAFKA-20254"]
    assert reported(Application({"protocol": ("classic",)})) == []
    gained = advise(question("4.2.1", "4.2.0"))
    assert "KAFKA-20254" not in {issue.key for issue in (*gained.gained, *gained.left_behind)}


def test_a_change_of_the_own_topology_counts_against_the_target():
    lost = TopologyChange("store", "store kept is gone", (ChangeEffect.LOSES,))
    noted = TopologyChange("processors", "a filter is merged", ())
    asked = replace(question("3.9.1", "4.3.1"), topology=TopologyComparison("app", (noted, lost)))
    advice = advise(asked)
    [against] = [said for said in advice.against if said.text.startswith("Your topology")]
    assert against.text == "Your topology changes: store kept is gone (state is lost)."
    assert any(said.text.startswith("Your topology changes. A rolling deployment cannot keep") for said in advice.to_do)
    same = advise(replace(asked, topology=TopologyComparison("app", (noted,))))
    assert not any(said.text.startswith("Your topology") for said in (*same.against, *same.to_do))
