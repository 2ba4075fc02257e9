"""What cells use and look at is what their scenarios configure and promise."""

from onceproof.advice.uses import features_of, find_unused, needs_of, never_used, promises_looked_at
from onceproof.model.application import FEATURES
from onceproof.model.promise import PROMISES
from onceproof.scenarios import CATALOGUE
from tests.cases import check_each

VARIANTS = [(name, variant) for name, offer in CATALOGUE.items() for variant in offer.variants]


@check_each("name, variant", VARIANTS)
def test_every_variant_tells_every_feature_and_its_promises(name, variant):
    own = features_of(name, variant)
    assert list(own) == list(FEATURES)
    assert all(set(values) <= set(FEATURES[feature].values) for feature, values in own.items())
    assert all(set(values) <= set(own[feature]) for feature, values in needs_of(name, variant).items())
    assert promises_looked_at(name, variant) <= set(PROMISES)


def test_what_a_variant_changes_is_seen():
    def seen(name, variant, feature):
        return features_of(name, variant)[feature]

    assert seen("enumerator", "DEFAULT_CONFIG", "caching") == (True,)
    assert (
        seen("enumerator", "CACHING_DISABLED", "caching")
        == seen("enumerator", "CACHE_SIZE_ZERO", "caching")
        == (False,)
    )
    assert seen("multirunner", "AT_LEAST_ONCE", "guarantee") == ("at_least_once",)
    assert seen("multirunner", "NO_STANDBY", "standbys") == (False,)
    assert seen("crash", "DYNAMIC_MEMBERSHIP", "static_membership") == (False,)
    assert seen("crash", "TIMESTAMPED", "stores") == ("rocksdb",)
    assert seen("crash", "PUNCTUATOR", "punctuators") == (True,)


def test_cells_are_bound_to_what_they_are_about():
    assert needs_of("crash", "DEFAULT_CONFIG") == {"guarantee": ("exactly_once_v2",), "stores": ("rocksdb",)}
    assert needs_of("quota", "DEFAULT_CONFIG") == {"guarantee": ("exactly_once_v2",), "quotas": (True,)}
    assert needs_of("multirunner", "AT_LEAST_ONCE")["guarantee"] == ("at_least_once",)
    assert "stores" not in needs_of("multirunner", "SEED_PROGRAM")


def test_only_under_exactly_once_the_log_is_looked_at():
    assert "atomicity" in promises_looked_at("at-least-once", "EXACTLY_ONCE")
    assert "atomicity" not in promises_looked_at("at-least-once", "DEFAULT_CONFIG")


def test_each_feature_has_a_scenario_and_one_alone_lacks_others():
    assert never_used() == {}
    alone = find_unused(
        {name: FEATURES[name].values for name in ("joins", "stores")}, [("as-of-join", "DEFAULT_CONFIG")]
    )
    assert alone == {
        "joins": ("stream-stream", "stream-global-table", "table-table", "foreign-key"),
        "stores": ("in-memory",),
    }
