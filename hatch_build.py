"""Puts into the wheel what stands beside the package in the repository: jars, jobs, suites, DAGs, an example.

An editable install has none of it, since the repository is there. Jars are built with a JDK and Maven, unless they are
there and newer than their sources.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSIDE = "onceproof/_project"  # where `onceproof.installation` looks for it
JAVA = ("streams_app", "streams_agent")  # whose sources are shipped, too
RESOLVER = "resolver"
FOLDERS = ("spark_jobs", "expectations", "dags", "examples/wordcount")
NOT_SHIPPED = {"__pycache__", "target"}


class BesideThePackage(BuildHookInterface):
    """The build hook."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files; `version` is `standard` or `editable`."""
        if version == "editable":
            return
        root = Path(self.root)
        jars = [_built(root / module) for module in (*JAVA, RESOLVER)]
        # The harness version is made of the sources of what drives a trial (`onceproof.harness`).
        folders = [*FOLDERS, *(f"{module}/src/main" for module in JAVA)]
        for file in [*jars, *(file for folder in folders for file in _files(root / folder))]:
            build_data["force_include"][str(file)] = f"{INSIDE}/{file.relative_to(root).as_posix()}"


def _built(module: Path) -> Path:
    """The jar of a Maven project, built if it is missing or older than a source of it.

    Raises:
        RuntimeError: there is no Maven, or it could not build it.
    """
    jar = module / "target" / f"onceproof-{module.name.replace('_', '-')}.jar"
    sources = [module / "pom.xml", *_files(module / "src" / "main")]
    if jar.exists() and jar.stat().st_mtime >= max(source.stat().st_mtime for source in sources):
        return jar
    if (maven := shutil.which("mvn")) is None:
        raise RuntimeError(
            f"{jar.name} is not built, and there is no mvn: install a JDK 17 and Maven 3.8 or later, or take the wheel."
        )
    command = [maven, "-q", "-B", "-ntp", "-C", "-f", str(module / "pom.xml"), "package", "-DskipTests"]
    if subprocess.run(command, check=False).returncode:
        raise RuntimeError(f"Maven could not build {jar.name}: its output above says why.")
    return jar


def _files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not NOT_SHIPPED & set(file.relative_to(folder).parts):
            yield file
