"""A Spark cluster makes the same tables of the same topics as local threads do."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from onceproof.lab.cluster import EmbeddedCluster, free_ports
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline.health import trouble
from onceproof.processes.process import spawn, tail
from onceproof.processes.waiting import await_condition
from onceproof.spark import collect_and_check
from tests.conftest import a_run_id
from tests.specimens.catalogue import one_of_each_anomaly
from tests.specimens.planting import plant
from tests.specimens.trials import kept_trials

SPARK_CLASS = str(Path(sys.executable).with_name("spark-class"))
ENVIRONMENT = {"SPARK_LOCAL_IP": "127.0.0.1", "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"}


def answers(port: str) -> bool:
    """Whether Spark's page is there."""
    return trouble(f"http://127.0.0.1:{port}/json/") is None


@pytest.fixture
def master(tmp_path: Path, project: Path) -> Iterator[str]:
    """A master and a worker as processes of their own, on loopback."""
    port, ui, worker_ui = map(str, free_ports(3))
    url = f"spark://127.0.0.1:{port}"
    paths = {**ENVIRONMENT, "PYTHONPATH": f"{project / 'src'}:{project}"}
    services = {
        "Master": ("--host", "127.0.0.1", "--port", port, "--webui-port", ui),
        "Worker": ("--host", "127.0.0.1", "--webui-port", worker_ui, "--work-dir", str(tmp_path / "work"), url),
    }
    started = []
    try:
        for (name, arguments), at in zip(services.items(), (ui, worker_ui), strict=True):
            command = [SPARK_CLASS, f"org.apache.spark.deploy.{name.lower()}.{name}", *arguments]
            process = spawn(command, log=tmp_path / f"{name}.log", env=paths)
            started.append(process)
            await_condition(
                f"Spark's {name.lower()}",
                partial(answers, at),
                timeout=60,
                last_seen=partial(tail, tmp_path / f"{name}.log"),
                interval=0.2,
            )
        yield url
    finally:
        for process in started:
            process.terminate(timeout=5)


def tables_of(run: RunFolder) -> dict[str, list[str]]:
    """Every row of every table, in an order of its own."""
    return {
        folder.name: sorted(map(repr, ds.dataset(folder, partitioning="hive").to_table().to_pylist()))
        for folder in sorted(run.table("records").parent.iterdir())
        if folder.is_dir()
    }


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.broker
def test_a_cluster_makes_the_same_tables(cluster: EmbeddedCluster, master: str, tmp_path: Path) -> None:
    run, planted = plant(tmp_path / a_run_id(), cluster, one_of_each_anomaly(kept_trials()[:3]))
    collect_and_check(run)
    alone = tables_of(run)
    collect_and_check(run, master)
    assert tables_of(run) == alone
    assert len(alone["findings"]) >= len(planted)
    executors = list((tmp_path / "work").glob("app-*/0/stderr"))
    assert len(executors) == 1  # of the second application, and it had work
    assert "Running task" in executors[0].read_text()
