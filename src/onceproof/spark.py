"""Our Spark application (`spark_jobs`): its environment, and a run of it without Airflow."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.run_folder import RunFolder
from onceproof.settings import Settings, get_settings

MASTER = "local[*]"
TIMEOUT = 1_800.0  # seconds
# For a JVM whose queries each run once, over a few rows: a compiler with all optimisations does not pay. The other one
# has 48 MB for code by default; the queries of three trials filled them, and Spark died of it.
QUICKLY_COMPILED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m"
FEW = 20  # trials of a scenario's length for which that pays


def collect_and_check(
    run: RunFolder,
    master: str = MASTER,
    timeout: float = TIMEOUT,
    env: Mapping[str, str] | None = None,
    *,
    kept: bool = False,
) -> None:
    """Run the application over a run folder, to its end; its log is `spark.log` there.

    Args:
        run: its folder.
        master: where Spark runs.
        timeout: in seconds.
        env: further variables of its environment.
        kept: whether it reads what the trials kept of their topics, not brokers.

    Raises:
        HarnessError: it failed, or did not end within so many seconds.
        UsageError: Spark's Kafka connector has not been fetched.
    """
    from onceproof.processes.process import spawn, tail
    from onceproof.processes.waiting import await_condition

    settings = get_settings()
    script = str(settings.project / "spark_jobs" / "collect_and_check.py")
    words = ("--run-folder", str(run.path), *(["--kept"] if kept else []))
    command = submit_command("--jars", connector_jars(), script, *words, master=master)
    log = run.path / "spark.log"
    process = spawn(command, log=log, env=spark_environment(settings) | dict(env or {}))
    try:
        await_condition("Spark to collect and check", lambda: not process.alive(), timeout=timeout)
    finally:
        process.terminate()
    if process.poll():
        raise HarnessError(f"Spark could not collect and check the trials; its log {log} ends with:\n{tail(log)}")


def submit_command(*arguments: str, master: str = MASTER) -> list[str]:
    """A command of spark-submit with our settings: further options, a script and its arguments."""
    conf = get_settings().project / "spark_jobs" / "spark.conf"
    spark_submit = Path(sys.executable).with_name("spark-submit")
    return [str(spark_submit), "--master", master, "--properties-file", str(conf), *arguments]


def connector_jars() -> str:
    """Spark's Kafka connector and what it needs, for spark-submit's `--jars`.

    Raises:
        UsageError: they have not been fetched.
    """
    folder = get_settings().artifacts / "spark-connector"
    jars = sorted(folder.glob("*.jar"))
    if not jars:
        raise UsageError(f"Spark's Kafka connector is not in {folder}: run `onceproof system setup`.")
    return ",".join(str(jar) for jar in jars)


def spark_environment(settings: Settings, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment in which spark-submit finds itself, our packages and Java, on top of `environ`."""
    environment = {
        "SPARK_LOCAL_IP": environ.get("SPARK_LOCAL_IP", settings.host),
        "PATH": _prepend(str(Path(sys.executable).parent), environ.get("PATH", os.defpath)),
        "PYTHONPATH": _prepend(f"{settings.project / 'src'}:{settings.project}", environ.get("PYTHONPATH", "")),
    }
    if (java := Path(settings.java)).is_absolute():
        environment["JAVA_HOME"] = str(java.resolve().parents[1])  # Spark knows no other way
    return environment


def choose_compiler(trials: int, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The options of spark-submit for so many trials: a compiler that fits."""
    if trials > FEW:
        return {}
    return {"SPARK_SUBMIT_OPTS": f"{QUICKLY_COMPILED} {environ.get('SPARK_SUBMIT_OPTS', '')}".rstrip()}


def _prepend(first: str, rest: str) -> str:
    return f"{first}:{rest}" if rest else first
