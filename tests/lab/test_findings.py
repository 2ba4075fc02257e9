"""The unit tests of findings (`docs/findings`): red on the releases that have the bug, green where it is mended.

They are written as Kafka's own are, and run on the published jars. The patches are for the branches of 4.4 and trunk,
which `make findings` takes from a clone of Kafka; those that also apply to the published sources of 4.3.1 run here.
"""

import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from docs.check_findings import (
    AFFECTED,
    FINDINGS,
    GIT,
    NEWEST,
    compile_java,
    compile_tests,
    findings,
    joined,
    run_on_release,
    tools,
    touched,
)
from onceproof.lab.artifacts import replay_class_path
from onceproof.model.release import Release
from tests.conftest import HERE, ROOT

pytestmark = pytest.mark.broker  # no brokers, but a JVM and Kafka's jars

JAVA = {("IllegalArgumentException", "")}
TICKETS = sorted(FINDINGS.glob("*/ticket.md"))
BACKPORT = "backport-4.3.patch"  # in place of the patches for the newest branch


def source_jar(module: str) -> Path:
    return next(jar for jar in tools() if jar.name.endswith(f"kafka-{module}-{AFFECTED}-sources.jar"))


@pytest.fixture(scope="module")
def tests(tmp_path_factory) -> dict[Release, Path]:
    """The classes of the tests, compiled once for each release."""
    return {
        release: compile_tests(release, findings(), tmp_path_factory.mktemp("tests")) for release in (AFFECTED, NEWEST)
    }


@pytest.fixture(scope="module")
def patched(tmp_path_factory) -> tuple[Path, set[str]]:
    """The classes of the affected release that patches change, and the findings whose patches apply to it."""
    folder = tmp_path_factory.mktemp("sources")
    subprocess.run([GIT, "init", "--quiet"], cwd=folder, check=True)  # without one of its own `apply` would take ours
    applied = set()
    for finding in findings():
        patches = [*finding.folder.glob(BACKPORT)] or finding.patches
        paths = {path for patch in patches for path in touched(patch) if "/src/main/" in path}
        for path in paths:
            if not (folder / path).exists():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                module, _, name = path.partition("/src/main/java/")
                with zipfile.ZipFile(source_jar(module)) as sources:
                    (folder / path).write_bytes(sources.read(name))
        before = {path: (folder / path).read_bytes() for path in paths}
        if all(
            subprocess.run(
                [GIT, "apply", "--include=*/src/main/*", patch], cwd=folder, check=False, capture_output=True
            ).returncode
            == 0
            for patch in patches
        ):
            applied.add(finding.name)
        else:
            for path, source in before.items():
                (folder / path).write_bytes(source)
    classes = joined(*replay_class_path(HERE, AFFECTED))
    return compile_java(sorted(folder.rglob("*.java")), classes, tmp_path_factory.mktemp("patched")), applied


@pytest.mark.parametrize("release", [AFFECTED, NEWEST], ids=str)
def test_they_are_red_where_the_bug_is_and_say_why(release, tests, tmp_path):
    found = run_on_release(release, tests[release], tmp_path)
    red = {name: said for finding in findings() for name, said in finding.red_on(release).items()}
    assert {name for name, said in found.items() if said} == red.keys()
    for name, said in red.items():
        assert said in found[name], name
    for finding in findings():
        own = [name for name in found if name.partition(".")[0] in {test.stem for test in finding.tests}]
        assert len(own) == (finding.cases if finding.is_run_on(release) else 0), finding.name


def test_they_are_green_with_the_patches_of_the_findings(tests, patched, tmp_path):
    classes, applied = patched
    red = {name for finding in findings() if finding.name not in applied for name in finding.red_on(AFFECTED)}
    found = run_on_release(AFFECTED, tests[AFFECTED], tmp_path, classes)
    assert {name for name, said in found.items() if said} == red
    assert {finding.name for finding in findings()} - applied == {
        "closed-store-answers-with-nothing",
        "half-deleted-store-stops-the-start",
        "suppress-releases-too-early",
        "transactional-stores-switched-on-after-a-kill",
        "waiting-join-loses-records",
    }


@pytest.mark.parametrize("ticket", TICKETS, ids=lambda ticket: ticket.parent.name)
def test_what_a_ticket_names_is_there(ticket):
    """Kafka's classes, their methods, and tests, Kafka's or ours."""
    folders = (FINDINGS, ROOT / "streams_app" / "src" / "test")
    ours = {file.stem: file.read_bytes() for folder in folders for file in folder.rglob("*Test.java")}
    named = set(re.findall(r"`([A-Z]\w*[a-z]\w*[A-Z]\w+)(?:\.(\w+))?[^`]*`", ticket.read_text()))
    assert named
    for name, member in sorted(named - JAVA):
        declared = ours[name] if name in ours else classes(name)
        assert declared, f"There is no class {name}."
        assert not member or member.encode() in declared, f"{name} has no {member}."


def classes(name: str) -> bytes:
    """The bytes of Kafka's classes of that simple name, which have the names of their members as text."""
    found = b""
    for jar in [*replay_class_path(HERE, AFFECTED), *replay_class_path(HERE, NEWEST), *tools()]:
        with zipfile.ZipFile(jar) as archive:
            wanted = [entry for entry in archive.namelist() if re.search(rf"[/$]{name}\.class$", entry)]
            found += b"".join(map(archive.read, wanted))
    return found


def test_each_finding_has_its_page_ticket_test_and_patch():
    others = {"close-waits-for-its-own-member", "README", "checks"}
    assert {page.stem for page in FINDINGS.glob("*.md")} - others == {finding.name for finding in findings()}
    for finding in findings():
        assert f"({finding.name}/ticket.md)" in finding.folder.with_suffix(".md").read_text()
        ticket = (finding.folder / "ticket.md").read_text()
        assert finding.tests, finding.name
        assert finding.patches, finding.name
        assert bool(finding.filing) != bool(finding.instead), finding.name
        for named in (*finding.tests, *finding.patches, *finding.folder.glob(BACKPORT)):
            assert (named.stem if named.suffix == ".java" else f"({named.name})") in ticket, named


def test_a_patch_changes_what_kafkas_tests_of_the_finding_cover():
    for finding in findings():
        assert finding.kafka_tests, finding.name
        assert any("/src/main/" in path for patch in finding.patches for path in touched(patch)), finding.name
