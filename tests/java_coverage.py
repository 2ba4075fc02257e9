"""Which lines of the Java code no test reaches, the least covered class first: `make coverage`.

    python -m tests.java_coverage

The application's own tests run on its oldest and its newest Kafka Streams. The agent has none of its own: it weaves and
loads all plants on three releases, as `tests/lab/test_agent.py` has it do. Neither trials nor JVMs that
tests start are counted.
"""

import csv
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from onceproof.lab.artifacts import streams_class_path
from onceproof.lab.maven import DEPENDENCY_PLUGIN, run_maven
from onceproof.model.errors import HarnessError
from onceproof.settings import get_settings
from tests.published import NEWEST, OF_EACH_CHANGE

ROOT = Path(__file__).parents[1]
JACOCO = "0.8.13"
VENDORED = "onceproof.agent.bytebuddy"


@dataclass(frozen=True)
class Covered:
    """How many lines of a class were reached."""

    name: str
    reached: int
    missed: int

    @property
    def share(self) -> float:
        """The part that was reached, from 0 to 1."""
        return self.reached / (self.reached + self.missed)


def covered(rows: Iterable[Mapping[str, str]]) -> list[Covered]:
    """The classes of JaCoCo's CSV, nested ones with those around them; the least covered first.

    Args:
        rows: with the columns PACKAGE, CLASS, LINE_MISSED and LINE_COVERED.
    """
    lines: dict[str, tuple[int, int]] = {}
    for row in rows:
        if row["PACKAGE"].startswith(VENDORED):
            continue
        name = f"{row['PACKAGE']}.{row['CLASS'].partition('.')[0]}"
        reached, missed = lines.get(name, (0, 0))
        lines[name] = reached + int(row["LINE_COVERED"]), missed + int(row["LINE_MISSED"])
    found = [Covered(name, *counts) for name, counts in lines.items() if sum(counts)]
    return sorted(found, key=lambda one: (one.share, one.name))


def table(classes: Sequence[Covered]) -> Table:
    """What is not wholly covered, and the sum of all."""
    shown = Table("class", "lines", "missed", "cover")
    partly = [one for one in classes if one.missed]
    whole = Covered("all", *(sum(counts) for counts in zip(*((c.reached, c.missed) for c in classes), strict=True)))
    for one in [*partly, whole]:
        if one is whole:
            shown.add_section()
        shown.add_row(one.name, f"{one.reached + one.missed:,}", f"{one.missed:,}", f"{one.share:.0%}")
    whole_ones = len(classes) - len(partly)
    shown.caption = f"{whole_ones} {'class is' if whole_ones == 1 else 'classes are'} covered wholly"
    return shown


def measure(folder: Path) -> list[Covered]:
    """Run what there is to run with JaCoCo's agent, and read its report.

    Args:
        folder: takes JaCoCo and what it writes.

    Raises:
        HarnessError: a test fails, or Maven or JaCoCo does.
    """
    shutil.rmtree(folder, ignore_errors=True)
    watcher, reporter = (_artifact(folder, *names) for names in (("agent", "runtime"), ("cli", "nodeps")))
    watched = f"-javaagent:{watcher}=destfile={folder / 'jacoco.exec'},includes=onceproof.*"
    app = ["mvn", "-q", "-B", "-ntp", "-f", "streams_app/pom.xml", "test", f"-DargLine={watched}"]
    _run(app)
    _run([*app, f"-Dkafka.version={NEWEST}"])
    here = get_settings().installation
    for release in OF_EACH_CHANGE:
        jars = ":".join(map(str, [here.agent_jar, *streams_class_path(here, release)]))
        _run([here.java, watched, "-cp", jars, "onceproof.agent.Check"])
    classes = [
        word for path in (ROOT / "streams_app/target/classes", here.agent_jar) for word in ("--classfiles", path)
    ]
    reported = folder / "jacoco.csv"
    _run([here.java, "-jar", reporter, "report", folder / "jacoco.exec", *classes, "--csv", reported])
    with reported.open(newline="") as rows:
        return covered(csv.DictReader(rows))


def _artifact(folder: Path, part: str, classifier: str) -> Path:
    artifact = f"org.jacoco:org.jacoco.{part}:{JACOCO}:jar:{classifier}"
    pom, options = ROOT / "streams_app/pom.xml", (f"-Dartifact={artifact}", f"-DoutputDirectory={folder}")
    answer = run_maven("mvn", pom, f"{DEPENDENCY_PLUGIN}:copy", *options, to=f"resolve {artifact}")
    if not answer.succeeded:
        raise HarnessError(f"Maven could not resolve {artifact}: {answer.reason}")
    return folder / f"org.jacoco.{part}-{JACOCO}-{classifier}.jar"


def _run(command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HarnessError(f"{command[0]} failed (exit code {done.returncode}):\n{done.stdout}{done.stderr}")


def main() -> int:
    """Measure, and print the table."""
    try:
        Console().print(table(measure(get_settings().home / "java-coverage")))
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
