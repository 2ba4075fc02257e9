import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.cell import Cell
from onceproof.model.errors import UsageError
from onceproof.model.release import BUILT, FINAL, SNAPSHOT, Release

parts = st.tuples(st.integers(3, 20), st.integers(0, 20), st.integers(0, 20))
few = st.integers(3, 5)  # so that equal numbers occur
releases = st.builds(Release, few, few, few, st.integers(0, 12) | st.just(FINAL))
commits = st.text("0123456789abcdef", min_size=7, max_size=7)
builds = st.builds(Release, few, few, few, st.integers(0, 12) | st.sampled_from([SNAPSHOT, BUILT]), commits)


@given(releases)
def test_what_is_printed_is_read_again(release):
    assert Release.parse(str(release)) == release
    assert re.fullmatch(r"[0-9.]+(-rc[0-9]+)?", str(release))


@given(builds)
def test_a_build_is_printed_with_its_commit_and_read_again(build):
    assert Release.parse(str(build)) == Release.from_slug(build.slug) == build
    assert str(build) == f"{build.version}@{build.commit}"
    cell = Cell("quota", "DEFAULT_CONFIG", build, build, build)
    assert Cell.parse(cell.key) == Cell.from_dict(cell.to_dict()) == cell
    assert re.fullmatch(r"[A-Za-z0-9._-]+", cell.key)  # as Kafka wants topics


@given(releases | builds)
def test_a_claimed_release_has_its_features_and_another_name(release):
    claimed = release.claimed
    assert Release.of_brokers(str(claimed)) == claimed != release == Release.of_brokers(str(release))
    assert claimed.since(release)
    cell = Cell("quota", "DEFAULT_CONFIG", release, claimed)
    assert Cell.parse(cell.key) == Cell.from_dict(cell.to_dict()) == cell
    assert re.fullmatch(r"[A-Za-z0-9._-]+", cell.key)


def test_only_what_others_bring_is_of_a_claimed_release():
    with pytest.raises(UsageError, match=r"'3\.9\.1-claimed' is not a Kafka release"):
        Release.parse("3.9.1-claimed")
    deployed = Cell.parse("app-DEFAULT_CONFIG-s3.3.1-claimed-b3.9.1-claimed")
    assert (deployed.streams.is_claimed, deployed.broker.is_claimed) == (True, True)
    with pytest.raises(UsageError, match="is no cell"):
        Cell.parse("enumerator-DEFAULT_CONFIG-s3.3.1-r3.4.1-claimed-b3.9.1")


def test_builds_come_before_the_release_whose_version_they_have():
    texts = ["4.3.9", "4.4.0-SNAPSHOT@bbbbbbb", "4.4.0-rc0", "4.4.0-rc0@aaaaaaa", "4.4.0@aaaaaaa", "4.4.0@bbbbbbb"]
    in_order = [Release.parse(text) for text in [*texts, "4.4.0", "4.4.1-SNAPSHOT@aaaaaaa"]]
    assert all(one < other for one, other in pairwise(in_order))


@given(builds, releases, releases)
def test_ranges_go_by_the_version_of_a_build(build, first, last):
    final = Release(build.major, build.minor, build.patch)
    if not first.is_candidate and not last.is_candidate:
        assert build.since(first) == final.since(first)
        assert build.within(first, last) == final.within(first, last)


@given(parts, parts)
def test_order_is_that_of_the_numbers(a, b):
    assert (Release(*a) < Release(*b)) == (a < b)


@given(releases, releases)
def test_candidates_come_before_their_release_and_after_others(a, b):
    numbers_a, numbers_b = ((one.major, one.minor, one.patch) for one in (a, b))
    if numbers_a != numbers_b:
        assert (a < b) == (numbers_a < numbers_b)
    elif a.is_candidate and b.is_candidate:
        assert (a < b) == (a.candidate < b.candidate)
    else:
        assert (a < b) == (a.is_candidate and not b.is_candidate)


@given(releases, releases)
def test_a_candidate_has_what_its_release_has(a, b):
    final = Release(a.major, a.minor, a.patch)
    if not b.is_candidate:
        assert a.since(b) == final.since(b) == (final >= b)
    else:
        assert a.since(b) == (a >= b)


@pytest.mark.parametrize(
    ("text", "first", "last", "inside"),
    [
        ("3.4.0-rc1", "3.0.0", "3.4.0", True),
        ("3.4.1-rc1", "3.0.0", "3.4.0", False),  # it has the fix of 3.4.1
        ("3.5.0-rc0", "3.5.0", "3.5.1", True),
        ("3.4.1", "3.5.0", "3.5.1", False),
        ("4.4.0-rc1", "4.4.0-rc2", "4.4.0", False),  # a range may name candidates themselves
        ("4.4.0-rc3", "4.4.0-rc1", "4.4.0-rc2", False),
        ("4.4.0", "4.4.0-rc1", "4.4.0-rc2", False),
    ],
)
def test_a_range_begins_with_the_candidates_of_its_first_release(text, first, last, inside):
    assert Release.parse(text).within(Release.parse(first), Release.parse(last)) is inside


def test_a_candidate_is_safe_in_keys():
    cell = Cell("quota", "DEFAULT_CONFIG", Release(4, 4, 0, 1), Release(4, 4, 0, 12), Release(4, 4, 1, 0))
    assert cell.key == "quota-DEFAULT_CONFIG-s4.4.0-rc1-r4.4.1-rc0-b4.4.0-rc12"
    assert Cell.from_dict(cell.to_dict()) == cell


@pytest.mark.parametrize(
    "text",
    [
        "3.3",
        "3.3.1; rm -rf /",
        "3.3.1.0",
        "v3.3.1",
        "",
        "3.3.1\n",
        "3.-1.0",
        "३.३.१",
        "latest",
        "3.3.1-rc",
        "3.3.1-rc01",
        "3.3.1-rc1000",
        "3.3.1-SNAPSHOT",
        "3.3.1-SNAPSHOT@abc",
        "3.3.1@ABCDEF0",
        "3.3.1@abcdef01",
        "3.3.1@",
        "3.3.1rc0",
    ],
)
def test_a_malformed_release_is_refused_with_its_text(text):
    with pytest.raises(UsageError) as refused:
        Release.parse(text)
    assert repr(text) in str(refused.value)


def test_a_release_before_kraft_is_refused():
    with pytest.raises(UsageError, match=r"2\.8\.2 is too old"):
        Release.parse("2.8.2")


def test_questions_to_a_release():
    assert Release.parse("3.3.2").cache_size_config == "cache.max.bytes.buffering"
    assert Release.parse("3.4.0").cache_size_config == "statestore.cache.max.bytes"
    assert Release.parse("3.9.1").oldest_java == 11
    assert Release.parse("4.0.0").oldest_java == 17


def test_a_candidate_answers_as_its_release_does():
    assert Release.parse("3.4.0-rc1").cache_size_config == "statestore.cache.max.bytes"
    assert Release.parse("4.0.0-rc0").oldest_java == 17
    assert not Release.parse("4.3.0-rc0").can_do_without_state_updater
    assert not Release.parse("4.1.0-rc3").removed_threads_leave_group
    assert not Release.parse("4.1.2").removed_threads_leave_group
    assert Release.parse("4.2.0-rc0").removed_threads_leave_group
    assert Release.parse("4.0.2").removed_threads_leave_group
    assert Release.parse("4.3.0-rc1").refuse_restart_on(Release.parse("4.2.0"))
    assert Release.parse("4.3.0-rc1").refuse_restart_on(Release.parse("4.3.0")) is None
    assert Release.parse("3.2.0-rc0").decodes_assignments_of_newest
