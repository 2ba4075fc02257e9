"""The features of an application: the file that names them, and what they mean for what needs some of them."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.application import FEATURES, Application, check_needs, parse_application, template
from onceproof.model.errors import UsageError

VALUES = {name: st.sets(st.sampled_from(feature.values), min_size=1) for name, feature in FEATURES.items()}
NEEDS = st.fixed_dictionaries({}, optional=VALUES)
APPLICATIONS = st.fixed_dictionaries({}, optional=VALUES).map(
    lambda uses: Application({name: tuple(values) for name, values in uses.items()})
)


def test_the_template_lists_every_feature_and_can_be_read():
    assert list(tomllib.loads(template())) == list(FEATURES)
    assert template().count("\n# ") == len(FEATURES)
    assert set(parse_application(template(), "app.toml").uses) == set(FEATURES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("guarantee = ", "app.toml is not TOML .*; `onceproof advise --template` prints one"),
        ('garantee = "exactly_once_v2"', "there is no feature 'garantee'; choose from guarantee, stores"),
        (
            'guarantee = "exactly_once"',
            'guarantee cannot be \'exactly_once\'; write "exactly_once_v2" or "at_least_once"',
        ),
        ("caching = 1", "caching cannot be 1; write true or false"),
        ('caching = "true"', "caching cannot be 'true'; write true or false"),
        ('guarantee = ["at_least_once"]', r"guarantee cannot be \['at_least_once'\]"),
        ('joins = ["outer"]', "joins cannot be 'outer'; write a list of "),
        ("[stores]", "stores cannot be {}"),
    ],
)
def test_what_is_not_known_is_one_sentence_with_the_remedy(text, said):
    with pytest.raises(UsageError, match=said) as refused:
        parse_application(text, "app.toml")
    assert "\n" not in str(refused.value)


def test_a_single_value_may_stand_for_a_list_of_one():
    assert parse_application('joins = "foreign-key"', "f").uses == {"joins": ("foreign-key",)}
    assert check_needs({"stores": "rocksdb", "caching": True}) == {"stores": ("rocksdb",), "caching": (True,)}


def test_an_application_without_any_of_something_lacks_it():
    none = parse_application("stores = []\ncaching = false", "f")
    assert none.lacks({"stores": ("rocksdb",)}) == "it needs stores rocksdb, and the application has no stores"
    assert none.lacks({"caching": (True,)}) == "it needs caching, and the application has no caching"


@given(APPLICATIONS, NEEDS)
def test_only_what_is_stated_can_be_lacking(application, needs):
    lacking = [name for name in needs if name in application.uses and not needs[name] & set(application.uses[name])]
    assert (application.lacks(needs) is None) == (lacking == [])
    assert Application().lacks(needs) is None


@given(APPLICATIONS, NEEDS, st.data())
def test_who_uses_more_lacks_no_more(application, needs, data):
    more = {name: {*values, *data.draw(VALUES[name])} for name, values in application.uses.items()}
    if application.lacks(needs) is None:
        assert Application({name: tuple(values) for name, values in more.items()}).lacks(needs) is None
