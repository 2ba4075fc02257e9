"""Interactive queries while tasks move: the judgement on the specimens, and where instances send clients."""

from collections import Counter

import pytest

from onceproof.scenarios.interactive_queries import SCENARIO, config, observe, workload
from onceproof.scenarios.routes import wrong_routes
from tests.conftest import a_trial

NAME = "interactive-queries"


def test_the_values_of_a_key_are_its_numbers():
    made = workload(a_trial("4.4.0", scenario=NAME, keys=3, first=20, records=30))
    assert (len(made.first), len(made.second)) == (20, 30)
    seen = Counter[int]()
    for key, value in [*made.first, *made.second]:
        seen[key] += 1
        assert value == seen[key]


ROUTES = {"a": {"0": "a", "1": "b"}, "b": {"0": "a", "1": "b"}}


@pytest.mark.parametrize(
    ("owners", "routes", "wrong"),
    [
        ({"a": [0], "b": [1]}, ROUTES, []),
        ({"a": [], "b": [0, 1]}, ROUTES, [("a", 0, "b", "a"), ("b", 0, "b", "a")]),
        ({"a": [0], "b": [1]}, {**ROUTES, "b": {}}, [("b", 0, "a", None), ("b", 1, "b", None)]),
        ({"a": [0], "b": []}, ROUTES, [("a", 1, "nobody", "b"), ("b", 1, "nobody", "b")]),
        ({"a": [0], "b": [0, 1]}, ROUTES, [("a", 0, "a and b", "a"), ("b", 0, "a and b", "a")]),
    ],
)
def test_clients_are_sent_to_the_only_owner(owners, routes, wrong):
    assert wrong_routes(owners, routes) == wrong
    compared = observe(a_trial("4.4.0", scenario=NAME), [{"event": "routed", "owners": owners, "routes": routes}])
    assert len(compared) == 5
    assert [(c.place, c.partition, c.expected, c.observed) for c in compared if c.anomaly == "wrong-route"] == [
        (by, partition, owner, to or "nobody") for by, partition, owner, to in wrong
    ]


def test_only_transactional_stores_keep_an_isolation():
    trial = a_trial("4.4.0", "COMMITTED", scenario=NAME)
    assert SCENARIO.refuse(trial.cell) is None
    assert config(trial)["default.interactive.query.isolation.level"] == "READ_COMMITTED"
    assert "isolation" not in " ".join(config(a_trial("4.4.0", scenario=NAME)))
    bare = a_trial("4.4.0", scenario=NAME, isolation="read_committed")
    assert SCENARIO.refuse_trial(bare) == (
        "isolation=read_committed needs transactional stores, as others show all they have; add "
        "transactional.stores=true."
    )
    assert "no transactional stores (KIP-892)" in str(
        SCENARIO.refuse(a_trial("4.3.1", "COMMITTED", scenario=NAME).cell)
    )
