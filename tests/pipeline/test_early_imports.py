"""What a component of Airflow imports when it starts, in a process of its own."""

import os
import subprocess
import sys

import pytest

COMPONENT = "from airflow.jobs.job import Job; Job()"
TASK = """
from airflow.sdk.execution_time.task_runner import TaskRunnerMarker
from airflow.sdk.listener import get_listener_manager
get_listener_manager().hook.on_starting(component=TaskRunnerMarker())
"""


@pytest.mark.parametrize(("starts", "imported"), [(COMPONENT, True), (TASK, False)], ids=["component", "task"])
def test_a_component_imports_for_forks_and_a_task_for_itself(project, tmp_path, starts, imported):
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(project / "plugins"),
        "PYTHONPATH": str(project / "src"),
    }
    asked = (
        f"import sys\n{starts}\nprint('onceproof.airflow.plugin' in sys.modules, 'onceproof.lab.trial' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", asked], env=environment, capture_output=True, check=True, text=True)
    assert done.stdout.splitlines()[-1] == f"True {imported}"
