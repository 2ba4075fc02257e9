"""What may be asked of the DAGs, as the JSON schemas of their params, and the translation to and from requests."""

from collections.abc import Mapping
from typing import Any

from onceproof.faults import rolling_bounce
from onceproof.model.errors import UsageError
from onceproof.model.matrices import BROKER, DEFAULT_MATRIX, MATRICES, MAX_TRIALS, Matrix, matrix_from
from onceproof.model.matrix import Request
from onceproof.model.plants import plants
from onceproof.model.published import NEWEST, WORD
from onceproof.model.release import CLAIMED, OLDEST, PATTERN
from onceproof.scenarios import CATALOGUE, app
from onceproof.settings import get_settings

CONNECTION = "onceproof_brokers"  # of Airflow: a client.properties, as JSON in its extra
AXES = ("streams", "restarts", "brokers", "scenarios", "variants")
NUMBERS = ("trials", "budget", "risk")


def _several(description: str, **items: Any) -> dict[str, Any]:
    """Any number of values; none means those of the matrix."""
    schema: dict[str, Any] = {"type": ["array", "null"], "items": {"type": "string", **items}, "uniqueItems": True}
    if "enum" in items:
        schema["examples"] = items["enum"]  # the form offers them
    return {"default": [], **schema, "description": f"{description}. Empty: those of the matrix."}


# A pattern and not a list: a new release can be tried on the day it appears. Words get a meaning when it is planned.
_RELEASE = {"pattern": f"^({WORD}|{PATTERN})$"}
_WORDS = "or newest, previous, or a line such as 4.3, which is its newest patch"

_SEED = {
    "default": None,
    "type": ["integer", "null"],
    "minimum": 0,
    "maximum": 2**31 - 1,
    "description": "Of the first trial. Empty: drawn from the run's id.",
}
_MATRIX = {
    "default": "nightly",
    "type": "string",
    "enum": list(MATRICES),
    "description": " ".join(f"{m.name}: {m.description}" for m in MATRICES.values()),
}
_VARIANTS = sorted({variant for offer in CATALOGUE.values() for variant in offer.variants})

PARAMS: dict[str, dict[str, Any]] = {
    "matrix": _MATRIX,
    "own_matrix": {
        "default": None,
        "type": ["object", "null"],
        "description": "In place of `matrix`: one of your own, as a file of yours has it, and its `name`.",
    },
    "streams": _several(f"Releases of Kafka Streams, one a line, for example 3.4.1, {_WORDS}", **_RELEASE),
    "restarts": _several(
        f"Releases to restart the application on, one a line, for example 4.1.2, {_WORDS}", **_RELEASE
    ),
    "brokers": _several(
        f"Releases of the brokers, one a line, for example 3.9.1, {_WORDS}; 3.9.1{CLAIMED} for brokers of your own, of "
        "which you say so",
        pattern=f"^({WORD}|{PATTERN}({CLAIMED})?)$",
    ),
    "scenarios": _several("Scenarios", enum=list(CATALOGUE)),
    "variants": _several("Variants", enum=_VARIANTS),
    "trials": {
        "default": None,
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": MAX_TRIALS,
        "description": "Trials of each cell, for example 3, whatever they show; more only of positive controls, and "
        "with `budget`. Empty: as many as the matrix says.",
    },
    "budget": {
        "default": None,
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": MAX_TRIALS,
        "description": "Trials of a cell whose verdict needs more, at most. Empty: no more than `trials`; without "
        "these as many as the matrix says.",
    },
    "risk": {
        "default": None,
        "type": ["number", "null"],
        "minimum": 0.01,
        "maximum": 0.5,
        "description": "Of a green: that it misses a bug, at most, for example 0.05. Empty: as the matrix says.",
    },
    "connection": {
        "default": CONNECTION,
        "type": "string",
        "pattern": r"^[\w.\-]{1,200}$",
        "description": f"Airflow connection of the brokers whose release is {CLAIMED[1:]}: docs/brokers.md.",
    },
    "run": {
        "default": None,
        "type": ["string", "null"],
        "pattern": r"^[0-9]{8}T[0-9]{6}-[0-9a-f]{4}$",
        "description": "Name of the run folder, for example 20261121T084500-3f2a. Empty: one is made.",
    },
}

WATCH_PARAMS: dict[str, dict[str, Any]] = {
    "matrix": _MATRIX
    | {"default": "weekly", "description": f"Of the runs that are triggered. {_MATRIX['description']}"},
    "pre_releases": {
        "default": get_settings().pre_releases,
        "type": "boolean",
        "description": "Also candidates, such as 4.4.0-rc1.",
    },
    "catch_up": {
        "default": False,
        "type": "boolean",
        "description": "Also what was published before the first look and never run: up to one run for each release.",
    },
}

BISECT_PARAMS: dict[str, dict[str, Any]] = {
    "scenario": {
        "default": next(iter(CATALOGUE)),
        "type": "string",
        "enum": list(CATALOGUE),
        "description": "Scenario.",
    },
    "variant": {
        "default": "DEFAULT_CONFIG",
        "type": "string",
        "enum": _VARIANTS,
        "description": "One of the scenario's variants.",
    },
    "issue": {
        "default": None,
        "type": ["string", "null"],
        "description": "Key of the known issue that is searched for. Empty: the one that concerns the variant.",
    },
    "from": {"default": str(OLDEST), "type": "string", **_RELEASE, "description": "First release of the range."},
    "to": {
        "default": None,
        "type": ["string", "null"],
        **_RELEASE,
        "description": "Last release of the range. Empty: the newest.",
    },
    "broker": {"default": BROKER, "type": "string", **_RELEASE, "description": "Release of the brokers."},
    "trials": {
        "default": 60,
        "type": "integer",
        "minimum": 2,
        "maximum": 1000,
        "description": "Trials in all, at most.",
    },
    "seed": _SEED,
}


SENSITIVITY_PARAMS: dict[str, dict[str, Any]] = {
    "streams": {
        "default": [NEWEST],
        "type": "array",
        "items": {"type": "string", **_RELEASE},
        "uniqueItems": True,
        "minItems": 1,
        "description": f"Releases of Kafka Streams that bugs are planted into, one a line: exact ones, {_WORDS}.",
    },
    "broker": {"default": BROKER, "type": "string", **_RELEASE, "description": "Release of the brokers."},
    "scenario": {
        "default": [],
        "type": ["array", "null"],
        "items": {"type": "string", "enum": list(CATALOGUE)},
        "examples": list(CATALOGUE),
        "uniqueItems": True,
        "description": "Scenarios. Empty: all that must find a plant.",
    },
    "plant": {
        "default": [],
        "type": ["array", "null"],
        "items": {"type": "string", "enum": list(plants())},
        "examples": list(plants()),
        "uniqueItems": True,
        "description": "Plants. Empty: all that the release takes.",
    },
    "trials": {
        "default": 3,
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_TRIALS,
        "description": "Trials of each plant in each scenario; they add up over runs.",
    },
    "seed": _SEED,
}


QUALIFY_PARAMS: dict[str, dict[str, Any]] = {
    "streams": SENSITIVITY_PARAMS["streams"] | {"description": "Releases of Kafka Streams to look at, one a line."},
    "broker": {
        "default": None,
        "type": ["string", "null"],
        **_RELEASE,
        "description": "Release of the brokers. Empty: the same as of Kafka Streams.",
    },
    "scenario": SENSITIVITY_PARAMS["scenario"] | {"description": "Empty: all. If there are any, nothing is kept."},
    "seed": _SEED,
}


APPLICATION_PARAMS: dict[str, dict[str, Any]] = {
    "applications": {
        "default": [],
        "type": ["array", "null"],
        "items": {"type": "string", "pattern": r"^[\w.\-]{1,200}$"},
        "uniqueItems": True,
        "description": f"Folders in {get_settings().applications} (ONCEPROOF_APPLICATIONS), one a line. Empty: all.",
    },
    "streams": SENSITIVITY_PARAMS["streams"]
    | {
        "default": [],
        "type": ["array", "null"],
        "minItems": 0,
        "description": "Releases of Kafka Streams to run them on, one a line. Empty: the newest one, and the one that "
        "each one's file says.",
    },
    "broker": SENSITIVITY_PARAMS["broker"],
    "fault": {
        "default": None,
        "type": ["string", "null"],
        "enum": [None, *(name for name in app.PARAMETERS["fault"].choices if name != rolling_bounce.NAME)],
        "description": "The fault to inject (docs/faults.md). Empty: the fault that each one's file names.",
    },
    "controls": {
        "default": True,
        "type": "boolean",
        "description": "Plant bugs where they are green, to see which of their promises these break.",
    },
    "seed": _SEED,
}


EXPLORE_PARAMS: dict[str, dict[str, Any]] = {
    "streams": SENSITIVITY_PARAMS["streams"]
    | {"description": "Releases of Kafka Streams that are searched, one a line."},
    "broker": SENSITIVITY_PARAMS["broker"],
    "scenario": SENSITIVITY_PARAMS["scenario"] | {"description": "Empty: all whose trials do not mostly wait."},
    "set": {
        "default": [],
        "type": ["array", "null"],
        "items": {"type": "string", "pattern": "^[a-z.-]+=.+$"},
        "description": "Parameters that each schedule has, NAME=VALUE, one a line; scenarios without one are left out.",
    },
    "minutes": {
        "default": None,
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": 24 * 60,
        "description": "Of searching, for each release. Empty: until the hour below.",
    },
    "until": {
        "default": "06:00",
        "type": ["string", "null"],
        "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$",
        "description": "Local time at which the night is over, for example 06:00; if no minutes are given.",
    },
    "bisect": {
        "default": True,
        "type": "boolean",
        "description": "Also find the releases that show a finding.",
    },
    "seed": _SEED | {"description": "From which all schedules follow. Empty: drawn from the run's id."},
    "anew": {
        "default": False,
        "type": "boolean",
        "description": "Begin another search, instead of going on with that of the last night.",
    },
}


def refuse_unknown(params: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Check that each of a run's params is one that its DAG knows: Airflow lets any name pass.

    Raises:
        UsageError: one is not; names those that are.
    """
    if unknown := sorted(params.keys() - known.keys()):
        raise UsageError(f"There is no param {unknown[0]!r}; choose from {', '.join(known)}. Trigger the run anew.")


def request_from_params(params: Mapping[str, Any]) -> Request:
    """The request that the params make.

    Raises:
        UsageError: `own_matrix` is no matrix.
    """
    axes: dict[str, Any] = {axis: tuple(params.get(axis) or ()) for axis in AXES}
    numbers: dict[str, Any] = {name: params.get(name) for name in NUMBERS}
    own = params.get("own_matrix")
    return Request(matrix_from(own, "own_matrix", MATRICES) if own else params["matrix"], **numbers, **axes)


def params_from_request(request: Request, run_id: str) -> dict[str, Any]:
    """The params that make the request, for a run of this id."""
    axes = {axis: list(getattr(request, axis)) for axis in AXES}
    numbers = {name: getattr(request, name) for name in NUMBERS}
    own = request.matrix.to_dict() if isinstance(request.matrix, Matrix) else None
    named = DEFAULT_MATRIX if own else request.matrix
    return {"matrix": named, "own_matrix": own, **numbers, "run": run_id, **axes}
