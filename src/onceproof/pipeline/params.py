"""What may be asked of a run, as the JSON schemas of the DAG's params, and its translation to and from requests."""

from collections.abc import Mapping
from typing import Any

from onceproof.model.matrix import MATRICES, MAX_TRIALS, Request
from onceproof.scenarios import CATALOGUE

AXES = ("streams", "restarts", "brokers", "scenarios", "variants")


def _several(what: str, **items: Any) -> dict[str, Any]:
    """Any number of values; none means: those of the matrix."""
    schema: dict[str, Any] = {"type": ["array", "null"], "items": {"type": "string", **items}, "uniqueItems": True}
    if "enum" in items:
        schema["examples"] = items["enum"]  # the form offers them
    return {"default": [], **schema, "description": f"{what}. Empty: those of the matrix."}


# A pattern and not a list: a new release is to be tried on the day it appears.
_RELEASE = {"pattern": r"^[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}$"}

PARAMS: dict[str, dict[str, Any]] = {
    "matrix": {
        "default": "nightly",
        "type": "string",
        "enum": list(MATRICES),
        "description": " ".join(f"{m.name}: {m.description}" for m in MATRICES.values()),
    },
    "streams": _several("Releases of Kafka Streams, one a line, for example 3.4.1", **_RELEASE),
    "restarts": _several("Releases to restart the application on, one a line, for example 4.1.2", **_RELEASE),
    "brokers": _several("Releases of the brokers, one a line, for example 3.9.1", **_RELEASE),
    "scenarios": _several("Scenarios", enum=list(CATALOGUE)),
    "variants": _several("Variants", enum=sorted({v for offer in CATALOGUE.values() for v in offer.variants})),
    "trials": {
        "default": None,
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": MAX_TRIALS,
        "description": "Trials of each cell, for example 3. Empty: as many as the matrix says.",
    },
    "run": {
        "default": None,
        "type": ["string", "null"],
        "pattern": r"^[0-9]{8}T[0-9]{6}-[0-9a-f]{4}$",
        "description": "Name of the run folder, for example 20261121T084500-3f2a. Empty: one is made.",
    },
}


def request_from_params(params: Mapping[str, Any]) -> Request:
    """The request that the params make."""
    axes = {axis: tuple(params.get(axis) or ()) for axis in AXES}
    return Request(matrix=params["matrix"], trials=params.get("trials"), **axes)


def params_from_request(request: Request, run_id: str) -> dict[str, Any]:
    """The params that make the request, for a run of this id."""
    axes = {axis: list(getattr(request, axis)) for axis in AXES}
    return {"matrix": request.matrix, "trials": request.trials, "run": run_id, **axes}
