import re
from dataclasses import replace

import pytest

from onceproof.advice.uses import features_of
from onceproof.model.application import Application
from onceproof.model.cell import Cell
from onceproof.model.errors import HarnessError
from onceproof.model.known_issues import OF_BROKERS, Avoidance, KnownIssue, parse_registry, registry
from onceproof.model.matrices import BROKER, MATRICES
from onceproof.model.promise import ANOMALIES
from onceproof.model.release import Release
from onceproof.scenarios import CATALOGUE
from tests.present import present
from tests.published import NEWEST, PUBLISHED

ROW = """
[[issue]]
key = "KAFKA-1"
title = "t"
variants.enumerator = ["DEFAULT_CONFIG"]
variants.crash = ["ENUMERATOR"]
explains = [{ anomalies = ["duplicate-id"], returned = true }]
affected = [{ first = "3.1.0", last = "3.2.3" }, { first = "3.9.0", last = "3.9.0" }]
fixed = ["3.3.0"]
sources = ["JIRA"]
symptom = "s."
condition = "c."
remedy = "r."
needs = { caching = true }
"""


def cell(streams, variant="DEFAULT_CONFIG", scenario="enumerator"):
    return Cell(scenario, variant, Release.parse(streams), Release.parse("3.9.1"))


def test_ranges_are_inclusive_and_may_be_several():
    [issue] = parse_registry(ROW).issues
    affected = [v for v in ("3.0.2", "3.1.0", "3.2.3", "3.3.0", "3.9.0", "3.9.1") if issue.affects(cell(v))]
    assert affected == ["3.1.0", "3.2.3", "3.9.0"]


def test_a_row_says_of_each_scenario_which_variants_show_it():
    [issue] = parse_registry(ROW).issues
    asked = [(scenario, v) for scenario in ("enumerator", "crash", "quota") for v in ("DEFAULT_CONFIG", "ENUMERATOR")]
    affected = [(scenario, variant) for scenario, variant in asked if issue.affects(cell("3.1.0", variant, scenario))]
    assert affected == [("enumerator", "DEFAULT_CONFIG"), ("crash", "ENUMERATOR")]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (ROW.replace('title = "t"', ""), "KAFKA-1 cannot be read: title is missing"),
        (ROW.replace("3.2.3", "3.0.0"), "the range 3.1.0 to 3.0.0 is inverted"),
        (ROW.replace('"3.3.0"', '"3.3"'), "'3.3' is not a Kafka release"),
        (ROW.replace('"3.9.0", last = "3.9.0"', '"3.2.0", last = "3.9.0"'), "begins with 3.2.0 overlaps .* with 3.1.0"),
        (ROW.replace('"3.9.0", last = "3.9.0"', '"3.2.3", last = "3.9.0"'), "begins with 3.2.3 overlaps"),
        (ROW.replace('["3.3.0"]', '["3.3.0", "3.2.0"]'), "3.2.0 is fixed, and yet in an affected range"),
        (ROW.replace('"duplicate-id"', '"duplicate-ids"'), "there is no anomaly 'duplicate-ids'"),
        (
            ROW.replace('["DEFAULT_CONFIG"]', '"DEFAULT_CONFIG"'),
            'variants.enumerator must be a list, not "DEFAULT_CONFIG"',
        ),
        (
            ROW.replace('variants.enumerator = ["DEFAULT_CONFIG"]\nvariants.crash', "variants"),
            r'variants must be a table with a value for each name, not \["ENUMERATOR"\]',
        ),
        (ROW.replace('["JIRA"]', "[]"), "it has no source"),
        (ROW.replace(", returned = true", ""), "an explanation says nothing of its witnesses"),
        (ROW.replace("returned = true", 'after = "crash"'), "it explains every duplicate-id of a trial"),
        (ROW.replace("returned = true", 'returned = true, whole_trial = "w."'), "whole_trial is for explanations that"),
        (ROW.replace("returned = true", "instance = true"), "instance is that of the event after"),
        (ROW.replace("returned = true", 'under = "crash"'), "there is no field 'under'"),
        (ROW.replace("returned = true", 'says = "["'), r'explains.1.says = "\[": it is no regular expression'),
        (
            ROW.replace("returned = true", 'version = "lost"'),
            "explains.1.version must be 'ended', 'too-old' or 'deleted', not \"lost\"",
        ),
        (ROW.replace('{ anomalies = ["duplicate-id"], returned = true }', ""), "it explains nothing"),
        (ROW + 'afected = "3.9.1"', "there is no field 'afected'"),
        (ROW.replace('symptom = "s."', ""), "KAFKA-1 cannot be read: symptom is missing"),
        (ROW.replace("needs = { caching = true }", ""), "KAFKA-1 cannot be read: needs is missing"),
        (ROW.replace('"r."', '"r"'), 'remedy = "r": must be sentences'),
        (ROW.replace("caching = true", "cache = true"), "there is no feature 'cache'"),
        (ROW.replace("caching = true", 'caching = "yes"'), "caching cannot be 'yes'"),
        (ROW + 'culprit = "both"', "culprit must be 'restarted', 'killed', 'mixed' or 'broker'"),
        (ROW + 'culprit = "mixed"', "no release fixes it"),
        (ROW + 'incidental = ["quota"]', "incidental names 'quota', which is not one of its scenarios"),
        (ROW + 'sometimes.quota = ["DEFAULT_CONFIG"]', "sometimes names 'quota', which is not one of the scenarios"),
        (ROW + 'sometimes.enumerator = ["DEFAULT_CONFIG"]', "DEFAULT_CONFIG of enumerator is among its variants and"),
        (ROW + 'must_show.crash = { OTHER = ["duplicate-id"] }', "'OTHER' is not one of its variants"),
        (ROW + 'must_show.quota = { ENUMERATOR = ["duplicate-id"] }', "'ENUMERATOR' is not one of its variants"),
        (ROW + ROW, "KAFKA-1 has more than one row"),
        ("[[isue]]\n", "there is no table 'isue'; did you mean issue"),
        ("[[issue", "the file cannot be read"),
    ],
)
def test_a_damaged_registry_is_refused_by_row(broken, said):
    with pytest.raises(HarnessError, match=said):
        parse_registry(broken)


def test_a_candidate_has_what_its_release_has():
    [issue] = parse_registry(ROW).issues
    affected = [v for v in ("3.1.0-rc0", "3.2.3-rc1", "3.2.4-rc0", "3.3.0-rc0", "3.9.0-rc2") if issue.affects(cell(v))]
    assert affected == ["3.1.0-rc0", "3.2.3-rc1", "3.9.0-rc2"]


def test_of_an_incidental_issue_nothing_is_expected():
    known = parse_registry(ROW + 'incidental = ["enumerator"]')
    assert (known.affecting(cell("3.1.0")), known.find_concerned(cell("3.1.0"), [])) == ((), ())
    assert known.explaining(cell("3.1.0")) == known.find_concerned(cell("3.1.0"), ["duplicate-id"]) == known.issues


def test_a_variant_with_a_sporadic_issue_expects_nothing():
    known, there = parse_registry(ROW + 'sometimes.enumerator = ["OTHER"]'), cell("3.1.0", "OTHER")
    assert (known.affecting(there), known.find_concerned(there, [])) == ((), ())
    assert known.explaining(there) == known.find_concerned(there, ["duplicate-id"]) == known.issues
    assert known.by_chance(there) == {"duplicate-id"}
    assert known.affecting(cell("3.1.0")) == known.issues
    assert known.explaining(cell("3.1.0", "THIRD")) == ()


def test_an_issue_of_another_guarantee_explains_nothing():
    key = "at_least_once (documented)"
    shown = Cell("at-least-once", "DEFAULT_CONFIG", NEWEST, NEWEST)
    explains = {
        g: key in [i.key for i in registry().explaining(shown, Application({"guarantee": (g,)}))]
        for g in ("at_least_once", "exactly_once_v2")
    }
    assert explains == {"at_least_once": True, "exactly_once_v2": False}


def test_a_varied_trial_may_show_an_issue_of_another_variant():
    known, there = parse_registry(ROW + 'incidental = ["enumerator"]'), replace(cell("3.1.0"), variant="OTHER")
    assert (known.explaining(there), known.explanations(there)) == ((), ())
    assert known.find_concerned(there, ["duplicate-id"]) == ()
    assert known.explaining(there, varied=True) == known.issues
    assert known.explanations(there, varied=True) == known.issues[0].explains
    assert known.find_concerned(there, ["duplicate-id"], varied=True) == known.issues
    assert known.explaining(replace(there, scenario="quota"), varied=True) == ()
    assert known.explaining(replace(there, streams=Release.parse("3.3.0")), varied=True) == ()


def test_an_issue_may_show_by_parameters_only():
    known = parse_registry(ROW.replace('variants.enumerator = ["DEFAULT_CONFIG"]', "variants.enumerator = []"))
    assert known.explaining(cell("3.1.0")) == ()
    assert known.explaining(cell("3.1.0"), varied=True) == known.issues
    by_faults = ROW.replace("returned = true", 'faults = ["bounce"], whole_trial = "w."')
    only_faults = parse_registry(by_faults).issues[0].explains
    assert only_faults[0].faults == ("bounce",)


def test_an_explanation_of_variants_holds_in_a_varied_trial():
    for variants in ('["OTHER"]', "[]"):
        known = parse_registry(ROW.replace("returned = true", f"returned = true, variants = {variants}"))
        explained = [known.explanations(cell("3.1.0"), varied=varied) for varied in (False, True)]
        assert explained == [(), known.issues[0].explains]


def test_an_explanation_of_some_scenarios_holds_in_no_other():
    known = parse_registry(ROW.replace("returned = true", 'returned = true, scenarios = ["crash"]'))
    asked = [cell("3.1.0"), cell("3.1.0", "ENUMERATOR", "crash")]
    assert [known.explanations(one) for one in asked] == [(), known.issues[0].explains]
    assert known.explanations(asked[0], varied=True) == ()


def test_an_incidental_issue_may_be_of_either_release():
    incidental = parse_registry(ROW + 'incidental = ["enumerator"]').issues[0]
    expected = parse_registry(ROW).issues[0]
    for one, other in (("3.1.0", "3.9.1"), ("3.9.1", "3.1.0")):
        both = replace(cell(one), restart_on=Release.parse(other))
        assert (incidental.affects(both), expected.affects(both)) == (True, other == "3.1.0")


def test_an_issue_of_two_releases_together_is_in_neither():
    closed = ROW.replace(', { first = "3.9.0", last = "3.9.0" }', "").replace('["3.3.0"]', "[]")
    [issue] = parse_registry(closed + 'culprit = "mixed"').issues
    one, other = Release.parse("3.2.3"), Release.parse("3.3.0")
    assert (issue.is_in(one), issue.is_in(other), issue.affects(cell("3.2.3"))) == (False, False, False)
    ways = [("3.2.3", "3.3.0"), ("3.3.0", "3.1.0"), ("3.1.0", "3.2.3"), ("3.3.0", "3.9.1")]
    assert [issue.affects(replace(cell(a), restart_on=Release.parse(b))) for a, b in ways] == [True, True, False, False]


def test_a_fix_pending_on_a_branch_ends_the_range_only_there():
    """KAFKA-20685 is mended in the branch 4.1, after 4.1.2, and in none before."""
    [issue] = [issue for issue in registry().issues if issue.key == "KAFKA-20685"]
    releases = ("3.7.2", "3.8.0", "3.9.3", "4.0.3", "4.1.2", "4.1.3-rc0", "4.1.3", "4.2.0", "4.2.1", "4.2.2", "4.4.0")
    affected = [release for release in releases if issue.is_in(Release.parse(release))]
    assert affected == ["3.8.0", "3.9.3", "4.0.3", "4.1.2", "4.2.0", "4.2.1"]


def test_a_cell_is_blind_for_what_all_later_releases_show_there():
    known = parse_registry(ROW.replace('first = "3.9.0", last = "3.9.0"', 'first = "3.9.0"'))
    assert [known.blind(cell(v)) for v in ("3.1.0", "3.3.0", "3.9.0", "5.0.0")] == [(), (), known.issues, known.issues]
    assert known.blind(cell("5.0.0", "OTHER")) == ()
    by_chance = parse_registry(ROW.replace('"3.9.0", last = "3.9.0"', '"3.9.0"') + 'incidental = ["enumerator"]')
    assert by_chance.blind(cell("5.0.0")) == ()


def test_an_explanation_is_told_in_the_words_of_the_registry():
    [issue] = [issue for issue in registry().issues if issue.key == "KIP-889, restored (no JIRA)"]
    [explanation] = issue.explanations("as-of-join", "REVIVED")
    assert explanation.summary == "wrong-value, wrong-entry (given ended; restored; version deleted)"


def test_an_explanation_is_told_with_a_value_that_is_0():
    [issue] = [issue for issue in registry().issues if issue.key == "KAFKA-19208"]
    assert issue.explains[0].summary == "lost-record, torn-transaction (sent 0)"


def test_conditions_of_the_trial_suffice_for_its_single_witness():
    stuck = ROW.replace("duplicate-id", "stuck").replace("returned = true", 'after = "crash"')
    assert parse_registry(stuck).issues[0].explains[0].is_of_trial


def test_ranges_that_touch_do_not_overlap():
    beside = ROW.replace('"3.9.0", last = "3.9.0"', '"3.2.4", last = "3.2.9"')
    assert len(parse_registry(beside).issues[0].affected) == 2


def test_the_registry_names_only_what_exists_and_its_sources():
    rows: tuple[KnownIssue | Avoidance, ...] = (*registry().issues, *registry().avoided)
    for row in rows:
        assert all(set(names) <= set(CATALOGUE[scenario].variants) for scenario, names in row.variants.items())
        assert row.sources
    for issue in registry().issues:
        assert set(issue.anomalies) <= set(ANOMALIES)
        assert all(set(names) <= set(CATALOGUE[scenario].variants) for scenario, names in issue.sometimes.items())


def test_each_row_states_its_needs_and_its_own_trials_meet_them():
    for issue in registry().issues:
        # No feature says that an application replaces stream threads, suppresses by time, groups or filters a table, has
        # large groups, or values that are lists.
        without = (
            *("KAFKA-20398", "KIP-328, held again (no JIRA)", "uncached count (no JIRA)"),
            *("KAFKA-20873", "KAFKA-20845", "KAFKA-20769"),
        )
        assert issue.needs or issue.key in without, issue.key
        for scenario, variants in issue.variants.items():
            for variant in variants:
                own = features_of(scenario, variant)
                assert all(set(values) & set(own[name]) for name, values in issue.needs.items()), (issue.key, variant)


# The release in which each KIP came whose failures the registry has, by the release plans of Kafka; 3.0.0: or before.
KIPS = {
    "KIP-213": "3.0.0",
    "KIP-328": "3.0.0",
    "KIP-450": "3.0.0",
    "KIP-562": "3.0.0",
    "KIP-796": "3.2.0",
    "KIP-825": "3.3.0",
    "KIP-889": "3.5.0",
    "KIP-892": "4.4.0",
    "KIP-904": "3.5.0",
    "KIP-923": "3.6.0",
    "KIP-954": "3.7.0",
    "KIP-1034": "4.2.0",
    "KIP-1035": "4.3.0",
    "KIP-1153": "4.2.0",
}
EARLIER = {  # rows that begin before their KIP, and why
    "KIP-825, sessions (no JIRA)": "final results of suppress have it, too",
    "KIP-825, sessions up to 3.3 (no JIRA)": "final results of suppress have it, too",
    "KIP-904 (documented)": "releases before it do not understand what later ones write",
}


def test_no_row_begins_before_the_release_of_its_kip():
    rows = [
        (present(re.match(r"KIP-\d+", issue.key)).group(), issue)
        for issue in registry().issues
        if issue.key[:4] == "KIP-"
    ]
    assert {kip for kip, _ in rows} == KIPS.keys()
    assert {issue.key for kip, issue in rows if issue.affected[0].first < Release.parse(KIPS[kip])} == EARLIER.keys()


def test_default_brokers_are_the_newest_patch_without_issues():
    default = Release.parse(BROKER)
    assert default == max(release for release in PUBLISHED.releases if release.line == default.line)
    assert MATRICES["first-look"].brokers == (BROKER,)
    assert known_of_brokers(default) == []
    assert known_of_brokers(Release.parse("3.9.1")) == ["KAFKA-19690"]


def known_of_brokers(release):
    """The issues that brokers of a release have."""
    rows = (issue for issue in registry().issues if issue.culprit == OF_BROKERS)
    return [issue.key for issue in rows if any(release.within(*affected) for affected in issue.affected)]


def test_what_nothing_here_has_shown_says_why():
    unseen = [issue for issue in registry().issues if not issue.shown and not issue.variants]
    assert len(unseen) > 10
    assert not [issue.key for issue in unseen if not issue.sources[-1].startswith("Shown by nothing here: ")]
