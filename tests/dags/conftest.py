"""Airflow for tests: a throw-away home, made before Airflow is imported anywhere.

It has a configuration file rather than variables: those would reach the real Airflow of other tests.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.cardboard import home, lab
from tests.pipeline.registry import registry

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

HOME = Path(tempfile.mkdtemp(prefix="onceproof-airflow-"))
DAGS = Path(__file__).parents[2] / "dags"
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ["AIRFLOW_HOME"] = str(HOME)
(HOME / "airflow.cfg").write_text(f"""
[core]
dags_folder = {DAGS}
load_examples = False
[database]
sql_alchemy_conn = sqlite:///{HOME}/airflow.db
[logging]
logging_level = ERROR
[usage_data_collection]
enabled = False
""")

__all__ = ["home", "lab", "registry"]


@pytest.fixture(scope="session")
def bag() -> "DagBag":
    """All DAG files, read as Airflow does."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(DAGS)


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's tables."""
    from airflow.utils.db import initdb

    initdb()
