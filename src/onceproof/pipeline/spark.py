"""Our Spark application (`spark_jobs`), run without Airflow."""

import sys
from collections.abc import Mapping
from pathlib import Path

from onceproof.model.errors import HarnessError
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline.environment import spark_environment
from onceproof.pipeline.steps import connector_jars
from onceproof.settings import get_settings

MASTER = "local[*]"
TIMEOUT = 1_800.0  # seconds


def collect_and_check(
    run: RunFolder, master: str = MASTER, timeout: float = TIMEOUT, env: Mapping[str, str] | None = None
) -> None:
    """Run the application over a run folder, to its end; its log is `spark.log` there.

    Args:
        run: its folder.
        master: where Spark runs.
        timeout: in seconds.
        env: further variables of its environment.

    Raises:
        HarnessError: it failed, or did not end within so many seconds.
        UsageError: Spark's Kafka connector has not been fetched.
    """
    from onceproof.lab.processes import await_condition, spawn, tail

    settings = get_settings()
    jobs = settings.project / "spark_jobs"
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", master]
    command += ["--properties-file", str(jobs / "spark.conf"), "--jars", connector_jars()]
    command += [str(jobs / "collect_and_check.py"), "--run-folder", str(run.path)]
    log = run.path / "spark.log"
    process = spawn(command, log=log, env=spark_environment(settings) | dict(env or {}))
    try:
        await_condition("Spark to collect and check", lambda: not process.alive(), timeout=timeout)
    finally:
        process.terminate()
    if process.poll():
        raise HarnessError(f"Spark could not collect and check the trials; its log {log} ends with:\n{tail(log)}")
