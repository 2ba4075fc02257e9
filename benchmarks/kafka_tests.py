"""Kafka's own integration tests, as their authors wrote them: the peer of the benchmarks of trials."""

import re
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from onceproof.lab.artifacts import streams_class_path
from onceproof.lab.java import FAST_START, LOG4J
from onceproof.lab.maven import DEPENDENCY_PLUGIN, run_maven
from onceproof.model.errors import HarnessError
from onceproof.model.release import Release
from onceproof.processes.process import open_pipes, spawn, tail
from onceproof.settings import get_settings

POM = Path(__file__).with_name("kafka_tests.pom.xml")
PACKAGE = "org.apache.kafka.streams.integration."
OWN_ARTIFACTS = Release.parse("4.0.0")  # from then on the test jar of kafka-streams lacks the integration tests
LAUNCHER = ("org.junit.platform.console.ConsoleLauncher", "--details=testfeed", "--disable-ansi-colors")
HEAP = "-Xmx2g"  # what Kafka's build gives its tests
WIDTH = 100  # of why a test failed
STOP = 30.0  # seconds that the brokers of a test have to end


@dataclass(frozen=True)
class Feed:
    """What the launcher reported about a class: tests that passed, and the one that failed, if any, and why."""

    passed: int
    failed: str | None


@dataclass(frozen=True)
class Ended:
    """How a class ended: `passed`, `failed`, or `hung` if it was not done within the limit.

    `seconds` are those to the end, or to the first test that failed; `failed` is its name and why. `fired`: how often
    the plant did its harm.
    """

    how: str
    seconds: float
    failed: str | None = None
    fired: int = 0


@cache
def class_path(release: Release) -> str:
    """Kafka's test jars of a release, with all that they need.

    Raises:
        HarnessError: Maven does not find one of them.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "class-path")
        profile = ["-Pown-artifacts"] if release.since(OWN_ARTIFACTS) else []
        options = [f"-Dkafka={release}", f"-Dmdep.outputFile={out}", *profile]
        answer = run_maven(
            get_settings().maven,
            POM,
            f"{DEPENDENCY_PLUGIN}:build-classpath",
            *options,
            to=f"resolve the tests of {release}",
        )
        if not answer.succeeded:
            raise HarnessError(f"Maven could not resolve the integration tests of {release}: {answer.reason}")
        return out.read_text().strip()


def read_feed(lines: Iterable[str]) -> Feed:
    """Read what the launcher reports about each test as it ends, until one fails; the next line says why."""
    passed, rest = 0, iter(lines)
    for line in rest:
        found = re.fullmatch(r"(.+) :: (STARTED|SUCCESSFUL|FAILED|ABORTED|SKIPPED)", line.strip())
        if found and found[2] == "FAILED":
            return Feed(passed, f"{found[1].split(' > ', 2)[-1]}: {next(rest, '').strip()[:WIDTH]}")
        passed += bool(found and found[2] == "SUCCESSFUL")
    return Feed(passed, None)


def run_class(
    release: Release, name: str, limit: float = 600, plant: str | None = None, streams: Release | None = None
) -> Ended:
    """Run a test class of a release, with a plant or without, until a test fails or `limit` seconds are over.

    It tests Kafka Streams of its own release, or of the release `streams`.

    Raises:
        HarnessError: none of its tests ran, though nothing failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        report, log = Path(folder, "fired"), Path(folder, "stderr")
        agent = [f"-javaagent:{get_settings().installation.agent_jar}=plant={plant},report={report}"] if plant else []
        options = [*FAST_START, HEAP, *agent, f"-Djava.io.tmpdir={folder}", f"-Dlog4j.configuration={LOG4J.as_uri()}"]
        under_test = streams_class_path(get_settings().installation, streams) if streams else ()
        first = [str(jar) for jar in under_test if jar.name.startswith("kafka-streams-")]
        tests = ["-cp", ":".join([*first, class_path(release)]), *LAUNCHER, "-c", f"{PACKAGE}{name}"]
        begin = time.monotonic()
        process = spawn([get_settings().java, *options, *tests], log=log, piped=True)
        alarm = threading.Timer(limit, process.kill)
        alarm.start()
        try:
            feed = read_feed(open_pipes(process)[1])
            seconds = time.monotonic() - begin
        finally:
            alarm.cancel()
            process.terminate(STOP)
        fired = int(report.read_text() or 0) if report.is_file() else 0
        if feed.failed:
            return Ended("failed", seconds, feed.failed, fired)
        if seconds >= limit:
            return Ended("hung", seconds, None, fired)
        if process.poll():
            return Ended("failed", seconds, tail(log, 1), fired)
        if not feed.passed:
            raise HarnessError(f"No test of {name} ran on {release}: {tail(log)}")
        return Ended("passed", seconds, None, fired)
