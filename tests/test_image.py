"""The image of the pipeline, at each change: built from all that it copies, without a container engine."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from hatch_build import FOLDERS, INSIDE
from tests.docker.image import build_image, copied, make_context
from tests.docker.inputs import LOCKS
from tests.present import present
from tests.wheels import outside

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]
DAGS = """import json, sys
from pathlib import Path
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
print(json.dumps([bag.import_errors, sorted({Path(dag.fileloc).name for dag in bag.dags.values()})]))
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The folder /opt/onceproof of the image."""
    folder = tmp_path_factory.mktemp("image")
    context = folder / "context"
    make_context(context)
    yield build_image(folder, (Path(__file__).parents[1] / "Dockerfile").read_text(), context)
    shutil.rmtree(folder)


def said_by(image, *command):
    """What a command of the image prints, outside of the checkout."""
    home = image.parent / "home"
    home.mkdir(exist_ok=True)
    more = {"ONCEPROOF_HOME": str(home), "AIRFLOW_HOME": str(home / "airflow")}
    environment = outside(image / ".venv" / "bin", **more, AIRFLOW__CORE__LOAD_EXAMPLES="False")
    done = subprocess.run(
        [image / ".venv" / "bin" / command[0], *command[1:]],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_command_knows_the_scenarios(image):
    assert "enumerator" in said_by(image, "onceproof", "scenario", "list")


def test_it_has_all_that_is_shipped_with_the_package(image, project):
    [inside] = image.glob(f".venv/lib/python3.*/site-packages/{INSIDE}")
    command = [present(shutil.which("git")), "ls-files", "--", *FOLDERS]
    files = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [file for file in files if not (inside / file).exists()] == []
    assert {file.partition("/")[0] for file in files} >= {"dags", "expectations", "spark_jobs"}
    assert len(list(inside.rglob("target/*.jar"))) == 3


def test_its_dags_can_be_imported(image, project):
    [dags] = image.glob(".venv/lib/python3.*/site-packages/onceproof/_project/dags")  # which the Dockerfile links
    errors, files = json.loads(said_by(image, "python", "-c", DAGS, str(dags)).splitlines()[-1])
    assert errors == {}
    with_dags = {file.name for file in (project / "dags").glob("*.py") if "@dag" in file.read_text()}
    assert set(files) == with_dags
    assert files


def test_what_the_dockerfile_copies_is_let_into_its_context(tmp_path, project):
    make_context(tmp_path)
    names = copied((project / "Dockerfile").read_text())
    assert names >= {".", "streams_app", "src/onceproof/pipeline/health.py"}
    assert [name for name in names if not (tmp_path / name).exists()] == []


def test_each_lock_of_the_dockerfile_makes_container_tests_due(project):
    assert {name for name in copied((project / "Dockerfile").read_text()) if name.endswith(".lock")} == set(LOCKS)
