"""Check the findings: their tests on released and on patched Kafka, their patches, and Kafka's own tests.

`KAFKA=/path/to/kafka make findings` prints a table with a row for each finding of `docs/findings/findings.toml`. KAFKA
is a clone of Kafka, bare or not. KAFKA_BRANCHES names the branches to apply the patches to (default "4.4 trunk"). Each
is compiled with the patches; Kafka's own tests of the classes that they touch run on the first one, without and with
them. Without KAFKA these columns say "not looked at". `make findings ARGS="NAME ..."` checks some findings only.

Kafka's build takes Gradle, which Maven's repositories do not serve. So `javac` compiles the sources of Kafka Streams
and of the clients; what Kafka's build generates comes from the published jars of 4.4.0. The classes stay in
`.onceproof/findings`, so that a branch is compiled once.
"""

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from xml.etree import ElementTree

from onceproof.lab.artifacts import read_remembered, replay_class_path
from onceproof.lab.java import FAST_START
from onceproof.lab.maven import DEPENDENCY_PLUGIN, run_maven
from onceproof.model.errors import HarnessError
from onceproof.model.release import Release
from onceproof.settings import get_settings

ROOT = Path(__file__).parents[1]
FINDINGS = ROOT / "docs" / "findings"
HERE = get_settings().installation
AFFECTED, NEWEST = Release.parse("4.3.1"), Release.parse("4.4.0")
GIT = shutil.which("git") or "git"
LAUNCHER = ("org.junit.platform.console.ConsoleLauncher", "execute", "--details=none", "--disable-banner")
UNSEEN = "not looked at"
MAIN, TEST = "src/main/java", "src/test/java"
MODULES = ("streams", "clients")
NAMED = "ImplicitLinkedHashCollection.java"  # javac leaves out the body of its default method if it is not named


@dataclass(frozen=True)
class Finding:
    """A failure of released Kafka that Onceproof has found.

    Attributes:
        name: of its page, and of the folder with its test, patches and ticket.
        damage: to users: critical, major or minor.
        silent: whether no error appears.
        harm: what it does to users.
        discovered: by reading, fuzz, trial, exploration or unit test.
        introduced: the first release that has it.
        release: on which it was reproduced last.
        date: when.
        command: which reproduces it.
        by: the change that introduced it.
        culprit: its commit or issue.
        filing: the place of its ticket in the order of filing; 0 if it is not to be filed as a bug of its own.
        instead: what is to be done if it has no place there.
        kafka_tests: Kafka's own test classes of what its patches touch.
        compiles_from: the first release on which its tests compile.
        cases: how many its tests have, red and green.
        mended: tests that are red only before a release.
        begins: tests that are red only from a release on.
        red: its tests that are red on a release that has the bug, and what they say.
    """

    name: str
    damage: str
    silent: bool
    harm: str
    discovered: str
    introduced: str
    release: str
    date: str
    command: str
    by: str = ""
    culprit: str = ""
    filing: int = 0
    instead: str = ""
    kafka_tests: tuple[str, ...] = ()
    cases: int = 0
    compiles_from: str = str(AFFECTED)
    mended: Mapping[str, str] = field(default_factory=dict)
    begins: Mapping[str, str] = field(default_factory=dict)
    red: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Its test, patches and ticket."""
        return FINDINGS / self.name

    @property
    def tests(self) -> list[Path]:
        """The sources of its tests."""
        return sorted(self.folder.glob("*Test.java"))

    @property
    def patches(self) -> list[Path]:
        """For the newest branch, in the order in which they are applied."""
        return sorted(self.folder.glob("fix*.patch"))

    def is_run_on(self, release: Release) -> bool:
        """Whether its tests compile on a release."""
        return release.since(Release.parse(self.compiles_from))

    def red_on(self, release: Release) -> dict[str, str]:
        """Its tests that must be red on a release, and what they say."""
        if not self.is_run_on(release):
            return {}
        green = {test for test, since in self.mended.items() if release.since(Release.parse(since))}
        green |= {test for test, since in self.begins.items() if not release.since(Release.parse(since))}
        return {test: said for test, said in self.red.items() if test not in green}


@cache
def findings() -> tuple[Finding, ...]:
    """All findings, the most harmful first."""
    rows = tomllib.loads((FINDINGS / "findings.toml").read_text())["finding"]
    return tuple(Finding(**row) for row in rows)


@cache
def kafka_commits() -> Mapping[str, str]:
    """The commits of the releases on which findings were reproduced."""
    commits: Mapping[str, str] = tomllib.loads((FINDINGS / "findings.toml").read_text())["commits"]
    return commits


@cache
def tools(profile: str = "pytest") -> list[Path]:
    """What the pom of the findings names in a profile.

    Raises:
        HarnessError: Maven did not find it.
    """
    pom = FINDINGS / "pom.xml"
    out = HERE.artifacts / f"findings-{profile}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:8]}.classpath"
    if jars := read_remembered(out):
        return jars
    options = (f"-Dkafka={NEWEST if profile == 'kafka' else AFFECTED}", f"-P{profile}", f"-Dmdep.outputFile={out}")
    answer = run_maven(
        HERE.maven, pom, f"{DEPENDENCY_PLUGIN}:build-classpath", *options, to="resolve the tests of findings"
    )
    if not answer.succeeded:
        raise HarnessError(answer.reason)
    return read_remembered(out)


def launcher() -> list[Path]:
    """JUnit and Mockito."""
    return [jar for jar in tools() if "org/apache/kafka" not in str(jar) and "slf4j" not in jar.name]


def joined(*paths: Path) -> str:
    """A class path."""
    return ":".join(map(str, paths))


def compile_java(sources: Iterable[Path], class_path: str, into: Path, *options: str) -> Path:
    """The classes of sources, in a folder.

    Raises:
        subprocess.CalledProcessError: they do not compile.
    """
    compiler = Path(HERE.java).with_name("javac") if "/" in HERE.java else Path("javac")
    into.mkdir(parents=True, exist_ok=True)
    plain = (
        "-nowarn",
        "-proc:none",
        "--release",
        "17",
        "-J-Xmx2g",
        "-J-XX:TieredStopAtLevel=1",
        "-J-XX:+UseSerialGC",
        "-encoding",
        "UTF-8",
    )
    sources = list(sources)
    print(f"compile {len(sources)} files", file=sys.stderr)
    subprocess.run([compiler, *plain, *options, "-cp", class_path, "-d", into, *sources], check=True)
    return into


def run_tests(class_path: str, reports: Path, *selected: str, jvm: Sequence[str] = ()) -> dict[str, str]:
    """Tests, run in one JVM: what was wrong with each, or an empty text.

    Raises:
        HarnessError: they did not run to the end.
    """
    print(f"run tests: {reports.name}", file=sys.stderr)
    command = [HERE.java, *FAST_START, "-Xmx1g", *jvm, "-cp", class_path, *LAUNCHER, *selected]
    done = subprocess.run(
        [*command, f"--reports-dir={reports}"], capture_output=True, text=True, errors="replace", check=False
    )
    report = reports / "TEST-junit-jupiter.xml"
    if not report.exists():
        raise HarnessError(done.stdout + done.stderr)
    return dict(_results(report))


def _results(report: Path) -> Iterator[tuple[str, str]]:
    for case in ElementTree.parse(report).getroot().iter("testcase"):  # noqa: S314 - of our own launcher
        if case.find("skipped") is not None:  # Kafka disables a few of its own
            continue
        failure = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)
        said = "" if failure is None else f"{failure.get('message', '')}\n{failure.text}"
        yield f"{case.attrib['classname'].rpartition('.')[2]}.{case.attrib['name']}", said


def run_on_release(release: Release, tests: Path, reports: Path, *first: Path) -> dict[str, str]:
    """The tests of findings on a published release, with classes before its own."""
    class_path = joined(*first, tests, *replay_class_path(HERE, release), *launcher())
    return run_tests(class_path, reports, f"--scan-classpath={tests}")


def compile_tests(release: Release, chosen: Iterable[Finding], into: Path) -> Path:
    """The tests of findings, compiled on a release, as Kafka's own classes are not an interface."""
    sources = [source for finding in chosen if finding.is_run_on(release) for source in finding.tests]
    return compile_java(sources, joined(*replay_class_path(HERE, release), *launcher()), into)


@dataclass(frozen=True)
class Branch:
    """A branch of Kafka: its sources, and their classes without and with the patches of findings.

    Attributes:
        repository: a clone of Kafka.
        name: the branch.
    """

    repository: Path
    name: str

    @cached_property
    def commit(self) -> str:
        """Its newest commit; a fork may have trunk as master, and a stale trunk next to it."""
        names = (self.name, "master") if self.name == "trunk" else (self.name,)
        refs = [f"refs/{kind}/{name}" for kind in ("heads", "remotes/origin") for name in names]
        newest = self._git("for-each-ref", "--sort=-committerdate", "--count=1", "--format=%(objectname)", *refs)
        if not newest.stdout:
            raise SystemExit(f"{self.repository} has no branch {self.name}: see KAFKA_BRANCHES.")
        return newest.stdout.decode().strip()

    def _git(self, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([GIT, "-C", self.repository, *arguments], capture_output=True, check=check)

    @cached_property
    def sources(self) -> Path:
        """Its sources of Kafka Streams and the clients, with their tests."""
        folder = ROOT / ".onceproof" / "findings" / self.commit[:10]
        if not (folder / ".whole").exists():
            archive = self._git("archive", self.commit, *(f"{module}/src" for module in MODULES)).stdout
            with tarfile.open(fileobj=io.BytesIO(archive)) as members:
                members.extractall(folder / "kafka", filter="data")
            self._git_in(folder / "kafka", "init", "--quiet")  # without a repository of its own `apply` would take ours
            (folder / ".whole").touch()
        return folder

    @staticmethod
    def _git_in(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([GIT, *arguments], cwd=folder, capture_output=True, text=True, check=False)

    def takes(self, patch: Path) -> bool:
        """Whether a patch applies to it as it is."""
        return self._git_in(self.sources / "kafka", "apply", "--check", patch).returncode == 0

    @cached_property
    def classes(self) -> Path:
        """Its classes; those of the clients as far as Kafka Streams or their own tests need them."""
        sources = [self.sources / "kafka" / "streams" / MAIN, *(self.sources / "kafka" / "clients" / MAIN).rglob(NAMED)]
        return self._compiled("classes", sources, (MAIN,), joined(*_generated(), *_own_tools()))

    def tests_of_kafka(self, names: Iterable[str]) -> Path:
        """Kafka's own test classes of these names, with all that they need."""
        found = [file for name in sorted(set(names)) for file in (self.sources / "kafka").rglob(f"{name}.java")]
        roots = (TEST, "src/testFixtures/java")
        return self._compiled("tests", found, roots, joined(self.classes, *_generated(), *_own_tools()))

    def _compiled(self, name: str, what: Sequence[Path], roots: Sequence[str], class_path: str) -> Path:
        """Classes that are compiled once."""
        files = [file for path in what for file in ([path] if path.suffix else sorted(path.rglob("*.java")))]
        key = hashlib.sha256("\n".join(map(str, files)).encode()).hexdigest()[:8]
        folder = self.sources / f"{name}-{key}"
        if not (folder / ".whole").exists():
            along = joined(*(self.sources / "kafka" / module / root for module in MODULES for root in roots))
            options = ("-Xprefer:source", "-implicit:class", "-sourcepath", along)
            compile_java(files, class_path, folder, *options)
            (folder / ".whole").touch()
        return folder

    def patched(self, chosen: Sequence[Finding]) -> "Patched":
        """The classes that all patches of findings change, Kafka's and those of its tests."""
        patches = [patch for finding in chosen for patch in finding.patches]
        key = hashlib.sha256(b"".join(patch.read_bytes() for patch in patches)).hexdigest()[:8]
        folder = self.sources / f"patched-{key}"
        if not (folder / ".whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            for path in {path for patch in patches for path in touched(patch)}:
                source = self.sources / "kafka" / path
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                if source.exists():  # else a patch makes it, or says that it lacks it
                    shutil.copy(source, folder / path)
            self._git_in(folder, "init", "--quiet")
            for patch in patches:
                done = self._git_in(folder, "apply", patch)
                if done.returncode:
                    raise SystemExit(f"{patch.relative_to(ROOT)} does not apply after those before it: {done.stderr}")
            class_path = joined(self.classes, *_generated())
            compile_java(sorted(folder.glob(f"*/{MAIN}/**/*.java")), class_path, folder / "main")
            (folder / ".whole").touch()
        return Patched(self, folder, tuple(chosen))


@dataclass(frozen=True)
class Patched:
    """A branch with patches.

    Attributes:
        branch: the branch.
        folder: the changed sources, and their classes.
        findings: whose patches it has.
    """

    branch: Branch
    folder: Path
    findings: tuple[Finding, ...]

    def run_findings(self, reports: Path) -> dict[str, str]:
        """The tests of the findings."""
        first = (self.folder / "main", self.branch.classes, *_generated(), *_shaded())
        tests = compile_java(
            [test for finding in self.findings for test in finding.tests],
            joined(*first, *launcher()),
            reports / "tests",
        )
        return run_tests(joined(tests, *first, *launcher()), reports, f"--scan-classpath={tests}")

    def run_kafkas(self, reports: Path, *, is_patched: bool) -> dict[str, str]:
        """Kafka's own tests of the classes that the patches touch, without or with the patches."""
        names = sorted({name for finding in self.findings for name in finding.kafka_tests})
        tests = self.branch.tests_of_kafka(names)
        first = [tests, self.branch.classes]
        if is_patched:
            changed = sorted(self.folder.glob(f"*/{TEST}/**/*.java"))
            if changed and not (self.folder / "tests").exists():
                class_path = joined(self.folder / "main", *first, *_generated(), *_own_tools())
                compile_java(changed, class_path, self.folder / "tests")
            first = [self.folder / "tests", self.folder / "main", *first]
        resources = [self.branch.sources / "kafka" / module / "src/test/resources" for module in MODULES]
        selected = (f"--include-classname=.*[.]({'|'.join(names)})", f"--scan-classpath={tests}")
        class_path = joined(*first, *resources, *_generated(), *_own_tools())
        return run_tests(class_path, reports, *selected, jvm=("-Dfile.encoding=UTF-8",))


def _generated() -> list[Path]:
    """Published jars with what Kafka's build generates."""
    return [jar for jar in replay_class_path(HERE, NEWEST) if "reload4j" not in jar.name]


def _shaded() -> list[Path]:
    """Jars with what the published clients have under names of their own."""
    return [jar for jar in tools("kafka") if jar.name.startswith(("opentelemetry-", "protobuf-"))]


def _own_tools() -> list[Path]:
    """What Kafka's sources and own tests take; they read what is logged, so that it must not go nowhere."""
    return [jar for jar in tools("kafka") if "slf4j-nop" not in jar.name]


def touched(patch: Path) -> list[str]:
    """The files that a patch changes."""
    return re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(), re.MULTILINE)


def _said(finding: Finding, results: Mapping[str, str], red: Mapping[str, str]) -> str:
    """Whether the tests of a finding passed and failed as expected."""
    classes = {test.stem for test in finding.tests}
    own = {name: said for name, said in results.items() if name.partition(".")[0] in classes}
    failed = {name for name, said in own.items() if said}
    if not own:
        return "does not compile" if not finding.is_run_on(AFFECTED) else "no test"
    if len(own) != finding.cases:
        return f"**not as expected**: {len(own)} cases, not {finding.cases}"
    if failed != red.keys() or any(said not in own[name] for name, said in red.items()):
        return f"**not as expected**: {', '.join(sorted(failed ^ red.keys())) or 'another message'}"
    return f"red: {len(red)} of {len(own)}" if red else f"green: {len(own)}"


def _of_patches(finding: Finding, branch: Branch) -> str:
    """Which patches of a finding apply to a branch as it is."""
    refused = [patch.name for patch in finding.patches if not branch.takes(patch)]
    return f"**no**: {', '.join(refused)}" if refused else "yes"


def _of_kafka(finding: Finding, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """How many of Kafka's own tests pass, and which fail only with the patches."""

    def chosen(results: Mapping[str, str]) -> dict[str, str]:
        return {name: said for name, said in results.items() if name.partition(".")[0] in finding.kafka_tests}

    was, now = chosen(before), chosen(after)
    broken = sorted(name for name, said in now.items() if said and not was.get(name))
    passed = sum(not said for said in now.values())
    failing = f", {sum(bool(said) for said in now.values()) - len(broken)} fail without it, too"
    failing = "" if failing.startswith(", 0 ") else failing
    return f"{passed} passed{failing}" + (f", **broken: {', '.join(broken)}**" if broken else "")


def check_findings(
    chosen: Sequence[Finding], repository: Path | None, branches: Sequence[str], work: Path
) -> list[str]:
    """The rows of the table, with its head."""
    on = {
        release: run_on_release(release, compile_tests(release, chosen, work / f"tests-{release}"), work / f"{release}")
        for release in (AFFECTED, NEWEST)
    }
    kafka = [Branch(repository, name) for name in branches] if repository else []
    patched, *_ = [branch.patched(chosen) for branch in kafka] or [None]  # the others are only to compile
    own = patched.run_findings(work / "patched") if patched else {}
    without = patched.run_kafkas(work / "kafka", is_patched=False) if patched else {}
    with_them = patched.run_kafkas(work / "kafka-patched", is_patched=True) if patched else {}
    head = [
        "finding",
        *(f"released {release}" for release in on),
        f"patched {branches[0]}",
        *(f"applies to {name}" for name in branches),
        "Kafka's own tests",
    ]
    seen = [f"{branch.name} is {branch.commit[:10]}" for branch in kafka]
    rows = [*([f"{', '.join(seen)}.", ""] if seen else []), f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for finding in chosen:
        cells = [finding.name, *(_said(finding, on[release], finding.red_on(release)) for release in on)]
        cells.append(_said(finding, own, {}) if patched else UNSEEN)
        cells += [_of_patches(finding, branch) for branch in kafka] or ([UNSEEN] * len(branches))
        cells.append(_of_kafka(finding, without, with_them) if patched else UNSEEN)
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def main(names: list[str]) -> int:
    """Print the table; 1 if something in it is not as expected."""
    chosen = [finding for finding in findings() if finding.tests and (not names or finding.name in names)]
    kafka = os.environ.get("KAFKA")
    branches = os.environ.get("KAFKA_BRANCHES", "4.4 trunk").split()
    work = ROOT / ".onceproof" / "findings" / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    rows = check_findings(chosen, Path(kafka) if kafka else None, branches, work)
    print("\n".join(rows))
    return int(any("**" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
