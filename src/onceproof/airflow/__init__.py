"""Onceproof in an Airflow that is there already: its DAGs, its settings, and (in `plugin`) its page.

A file of three lines in the folder of DAGs brings them:

    from onceproof.airflow import dags

    globals().update(dags())
"""

import os
import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from onceproof.model.errors import UsageError
from onceproof.model.extras import PIPELINE, require
from onceproof.settings import Settings, get_settings

VARIABLE = "onceproof"  # of Airflow: settings as JSON, by the names of `onceproof.settings`


def dags(*wanted: str) -> dict[str, object]:
    """The DAGs by their ids, built again at each call; those that are `wanted`, or all.

    Settings come from `ONCEPROOF_*`, and those that are not there from the Airflow variable `onceproof`.

    Raises:
        UsageError: an extra is not installed, there is no such DAG, or the variable has something else in it.
    """
    require(PIPELINE, "A DAG of Onceproof")
    from airflow.sdk import Variable, get_parsing_context

    take_settings(Variable.get(VARIABLE, default=None, deserialize_json=True))
    needed = get_parsing_context().dag_id  # by the process of a task, which is spared the others
    found: dict[str, Any] = {}
    for file in sorted((get_settings().project / "dags").glob("*.py")):
        graph = _module(file).graph
        if graph.dag_id == needed:
            return {needed: graph}
        found[graph.dag_id] = graph
    if unknown := set(wanted) - found.keys():
        raise UsageError(f"There is no DAG {', '.join(sorted(unknown))}: choose among {', '.join(sorted(found))}.")
    return {name: graph for name, graph in found.items() if not wanted or name in wanted}


def take_settings(variable: Any) -> None:
    """Put what stands in the variable into the environment of this process, from which all settings are read.

    Raises:
        UsageError: it is no mapping, or names a setting that does not exist.
    """
    if variable is None:
        return
    if not isinstance(variable, Mapping):
        raise UsageError(
            f'The Airflow variable {VARIABLE} is no JSON object: write it like {{"home": "/data/onceproof"}}.'
        )
    if unknown := variable.keys() - Settings.model_fields.keys():
        raise UsageError(
            f"The Airflow variable {VARIABLE} has {', '.join(sorted(unknown))}, which is no setting: "
            f"choose among {', '.join(Settings.model_fields)}."
        )
    for name, value in variable.items():
        os.environ.setdefault(f"ONCEPROOF_{name.upper()}", str(value))


def _module(file: Path) -> ModuleType:
    name = f"{__name__}.dags.{file.stem}"
    spec = spec_from_file_location(name, file)
    assert spec is not None  # noqa: S101 - of a file that ends with .py there is one
    assert spec.loader is not None  # noqa: S101
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
