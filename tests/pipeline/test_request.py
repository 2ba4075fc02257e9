"""Params and requests say the same thing."""

import json

import jsonschema
import pytest

from onceproof.campaigns.requests import (
    ApplicationRequest,
    BisectRequest,
    ExploreRequest,
    QualifyRequest,
    SensitivityRequest,
)
from onceproof.model.cell import is_run_id
from onceproof.model.errors import UsageError
from onceproof.model.matrix import Request
from onceproof.pipeline.request import RunRequest, WatchRequest
from tests.published import PUBLISHED

RUN = "20261121T084500-3f2a"
PARAMS = RunRequest.params(matrix="nightly")


def accepts(name: str, value: object) -> bool:
    try:
        jsonschema.validate(value, PARAMS[name])
    except jsonschema.ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    "request_",
    [
        Request(),
        Request("nightly", streams=("3.4.1", "4.9.0"), brokers=("3.9.1",), trials=3),
        Request("nightly", streams=("newest", "4.3"), brokers=("previous", "3.9.1-claimed"), restarts=("newest",)),
        Request("first-look", scenarios=("enumerator",), variants=("DEFAULT_CONFIG", "CACHING_DISABLED")),
    ],
)
def test_a_request_survives_the_way_through_the_params(request_):
    params = RunRequest.of(request_, RUN).model_dump(mode="json")
    assert params.keys() == PARAMS.keys()
    assert all(accepts(name, value) for name, value in params.items())
    assert RunRequest.of_params(params).request == request_


def test_a_name_that_no_param_has_is_refused():
    given = RunRequest.of(Request(), RUN).model_dump(mode="json")
    assert RunRequest.of_params(given).run == RUN
    with pytest.raises(
        UsageError, match=r"there is no field 'trails'; did you mean trials\? Choose from matrix, own_m"
    ):
        RunRequest.of_params({**given, "trails": 3})


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"trials": 0}, "trials must be greater than or equal to 1, not 0"),
        ({"own_matrix": {"name": "team", "description": "d"}}, "team: it has neither blocks nor cells"),
        ({"run": "../etc"}, 'run = "../etc": string should match pattern'),
    ],
)
def test_a_value_that_cannot_be_is_refused_where_no_form_did(bad, said):
    with pytest.raises(UsageError, match=said):
        RunRequest.of_params(bad)


def test_a_plan_of_the_previous_version_still_says_the_request():
    """As 0.1.0 wrote it into `run.json`."""
    kept = {
        "matrix": "seed",
        "own_matrix": None,
        "trials": 2,
        "budget": None,
        "risk": 0.1,
        "run": RUN,
        "streams": ["3.4.1"],
        "restarts": [],
        "brokers": ["3.9.1"],
        "scenarios": ["enumerator"],
        "variants": [],
    }
    assert RunRequest.read(kept).request == Request(
        "first-look", ("3.4.1",), ("3.9.1",), ("enumerator",), trials=2, risk=0.1
    )


def test_the_defaults_are_accepted_and_mean_the_nightly_matrix():
    defaults = {name: schema["default"] for name, schema in PARAMS.items()}
    assert all(accepts(name, value) for name, value in defaults.items())
    assert RunRequest.of_params(defaults).request == Request("nightly")


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("matrix", "everything"),
        ("streams", ["3.3.x"]),
        ("streams", ["3.3.1; rm -rf /"]),
        ("streams", ["3.3.1", "3.3.1"]),
        ("streams", "3.3.1"),
        ("streams", ["4.4.0-rc"]),
        ("streams", ["4.4.0-SNAPSHOT"]),
        ("brokers", ["trunk"]),
        ("scenarios", ["elevator"]),
        ("variants", ["default_config"]),
        ("trials", 0),
        ("trials", 101),
        ("trials", "3"),
        ("run", "../../etc"),
    ],
)
def test_what_cannot_be_run_is_refused_by_the_form(name, bad):
    assert not accepts(name, bad)


def test_a_release_that_nobody_has_heard_of_may_be_asked_for():
    assert accepts("streams", ["9.9.9", "9.9.9-rc0"])


BUILDS = ["4.4.0-SNAPSHOT@ab12cd3", "4.4.0@ab12cd3", "4.4.0-rc1@ab12cd3", "4.4.0-SNAPSHOT", "4.4.0@xyz"]


@pytest.mark.parametrize(
    "text",
    [
        "3.4.1",
        "4.4.0-rc0",
        "4.4.0-rc01",
        "4.4.0-rc1000",
        "٣.4.1",
        *BUILDS,
        "4.4",
        "newest",
        "previous",
        "last",
        "4.",
        "٣.4",
    ],
)
def test_the_form_accepts_releases_and_words_of_the_language(text):
    try:
        PUBLISHED.resolve(text)
    except UsageError:
        assert not accepts("streams", [text])
    else:
        assert accepts("streams", [text])


@pytest.mark.parametrize(
    "kind",
    [WatchRequest, BisectRequest, SensitivityRequest, QualifyRequest, ApplicationRequest, ExploreRequest],
)
def test_the_defaults_of_the_other_dags_are_accepted(kind):
    params = json.loads(json.dumps(kind.params()))
    for schema in params.values():
        jsonschema.validate(schema["default"], schema)
    assert kind.of_params({name: schema["default"] for name, schema in params.items()}) == kind()


def test_the_pattern_of_run_ids_is_that_of_the_language():
    assert accepts("run", RUN)
    assert is_run_id(RUN)
