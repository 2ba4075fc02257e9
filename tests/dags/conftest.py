"""Airflow for tests: a throw-away home, made before Airflow is imported anywhere.

By a configuration file and not by variables: those would reach the real Airflow of other tests.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from tests.pipeline.cardboard import home, lab

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

__all__ = ["home", "lab"]
