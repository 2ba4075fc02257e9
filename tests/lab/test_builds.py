"""Builds that are not released: where they come from, what tells them apart, and what is not a build."""

import hashlib
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from onceproof.lab import builds
from onceproof.lab.artifacts import BROKER, GROUP, STREAMS, check_published, streams_class_path
from onceproof.lab.builds import name_release
from onceproof.model.errors import UsageError
from onceproof.model.release import Release
from onceproof.settings import Settings
from tests.specimens.builds import CLIENTS, place, write_build, write_jar

SNAPSHOT = "4.4.0-SNAPSHOT"
ROCKSDB = (
    "<dependency><groupId>org.rocksdb</groupId><artifactId>rocksdbjni</artifactId><version>9</version>"
    "<exclusions><exclusion><groupId>*</groupId><artifactId>x</artifactId></exclusion></exclusions></dependency>"
)
TEST_ONLY = ROCKSDB.replace("rocksdbjni", "junit").replace("</dependency>", "<scope>test</scope></dependency>")
UPLOADED = """<metadata><versioning><snapshotVersions>
<snapshotVersion><classifier>test</classifier><extension>jar</extension><value>4.4.0-1-test</value></snapshotVersion>
<snapshotVersion><extension>jar</extension><value>4.4.0-20261123.1-7</value></snapshotVersion>
<snapshotVersion><extension>pom</extension><value>4.4.0-20261123.1-7</value></snapshotVersion>
</snapshotVersions></versioning></metadata>"""


@pytest.fixture(autouse=True)
def asked(tmp_path, monkeypatch):
    """Stands in for Maven, with an empty local repository; returns the poms that it was given."""
    poms, jar, command = tmp_path / "poms", tmp_path / "other.jar", tmp_path / "mvn"
    command.write_text(
        f"""#!/bin/sh
for word in "$@"; do
  case "$word" in -Dmdep.outputFile=*) echo "{jar}" > "${{word#*=}}";; *pom.xml) cat "$word" >> "{poms}";; esac
done
"""
    )
    command.chmod(0o755)
    jar.touch()
    poms.touch()
    monkeypatch.setattr(builds, "LOCAL", tmp_path / "m2")
    return poms


@pytest.fixture
def here(tmp_path):
    """An installation with that Maven, and its own home."""
    return Settings(home=tmp_path / "home", maven=str(tmp_path / "mvn")).installation


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    return folder


@pytest.fixture
def served(repository):
    """The URL of the same repository, over HTTP."""
    handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(repository))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_build_is_kept_by_version_and_commit(repository, asked, tmp_path, here):
    write_build(repository, SNAPSHOT, "ab12cd3f00d", needs=ROCKSDB + TEST_ONLY)
    name = name_release(here, str(repository))
    assert name == f"{SNAPSHOT}@ab12cd3"
    kept = here.artifacts / "builds" / name
    wanted = [kept / f"{STREAMS}-{SNAPSHOT}.jar", kept / f"{CLIENTS}-{SNAPSHOT}.jar", tmp_path / "other.jar"]
    assert streams_class_path(here, Release.parse(name)) == wanted
    assert zipfile.is_zipfile(wanted[0])
    pom = asked.read_text()
    assert "rocksdbjni" in pom
    assert "exclusion" in pom  # as in Kafka's own pom
    assert "slf4j-reload4j" in pom
    assert "junit" not in pom
    assert STREAMS not in pom  # Maven would take those of the release


def test_a_kept_build_is_reused_without_maven_and_stays(repository, asked, here):
    write_build(repository, SNAPSHOT, "ab12cd3")
    first = name_release(here, str(repository))
    asked.unlink()
    assert name_release(here, str(repository)) == first
    assert not asked.exists()
    old = streams_class_path(here, Release.parse(first))[0].read_bytes()
    write_build(repository, SNAPSHOT, "fedcba9", classes="of the next commit")
    second = name_release(here, str(repository))
    assert second == f"{SNAPSHOT}@fedcba9"
    assert streams_class_path(here, Release.parse(first))[0].read_bytes() == old
    assert streams_class_path(here, Release.parse(second))[0].read_bytes() != old


@pytest.mark.parametrize("kind", ["folder", "file", "http"])
def test_a_version_of_a_repository_that_is_named_is_a_build(kind, repository, served, here):
    write_build(repository, "4.4.0", "ab12cd3")
    named = {"folder": str(repository), "file": repository.as_uri(), "http": served + "/"}[kind]
    assert name_release(here, "4.4.0", [named]) == "4.4.0@ab12cd3"
    assert name_release(here, "4.3.1", [named]) == "4.3.1"  # which is published


def test_a_snapshot_that_was_uploaded_has_its_time_in_its_name(repository, served, here):
    write_build(repository, SNAPSHOT, "ab12cd3")
    for artifact in (STREAMS, CLIENTS):
        folder = place(repository, artifact, SNAPSHOT).parent
        (folder / "maven-metadata.xml").write_text(UPLOADED)
        for extension in ("jar", "pom"):
            file = place(repository, artifact, SNAPSHOT, extension)
            file.rename(folder / f"{artifact}-4.4.0-20261123.1-7.{extension}")
    assert name_release(here, SNAPSHOT, [served]) == f"{SNAPSHOT}@ab12cd3"


def test_a_snapshot_is_looked_for_in_the_local_repository(tmp_path, here):
    write_build(tmp_path / "m2", SNAPSHOT, "ab12cd3")
    assert name_release(here, SNAPSHOT) == f"{SNAPSHOT}@ab12cd3"


def test_brokers_are_built_likewise(repository, here):
    write_build(repository, "4.2.0", "ab12cd3")
    write_jar(place(repository, CLIENTS, "4.2.0"), {"kafka/kafka-version.properties": "commitId=c11e7750\n"})
    write_jar(place(repository, BROKER, "4.2.0"), {"K.class": "k"})
    pom = place(repository, STREAMS, "4.2.0", "pom").read_text().replace(STREAMS, BROKER)
    place(repository, BROKER, "4.2.0", "pom").write_text(pom)
    name = name_release(here, str(repository), artifact=BROKER)
    assert name == "4.2.0@c11e775"
    check_published(here, [Release.parse(name)])
    with pytest.raises(UsageError, match=r"kafka-streams of the build 4\.2\.0@c11e775 is not kept here"):
        streams_class_path(here, Release.parse(name))


def test_repacked_classes_are_the_same_build_and_others_are_not(repository, here):
    write_build(repository, SNAPSHOT, "ab12cd3")
    name_release(here, str(repository))
    with zipfile.ZipFile(place(repository, STREAMS, SNAPSHOT), "a") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Built-On: another day\n")
    name_release(here, str(repository))
    write_build(repository, SNAPSHOT, "ab12cd3", classes="changed, not committed")
    with pytest.raises(UsageError, match=r"4\.4\.0-SNAPSHOT@ab12cd3, which is kept with other classes: commit"):
        name_release(here, str(repository))


@pytest.mark.parametrize("commit", [None, "unknown", ""])
def test_a_jar_that_names_no_commit_is_refused(repository, commit, here):
    write_build(repository, SNAPSHOT, commit)
    with pytest.raises(UsageError, match=r"kafka-streams-4\.4\.0-SNAPSHOT\.jar names no commit"):
        name_release(here, str(repository))


def test_what_is_no_jar_is_refused(repository, here):
    write_build(repository, SNAPSHOT, "ab12cd3")
    place(repository, STREAMS, SNAPSHOT).write_text("<html>")
    with pytest.raises(UsageError, match="names no commit"):
        name_release(here, str(repository))


def test_a_part_that_is_missing_is_named(repository, here):
    write_build(repository, SNAPSHOT, "ab12cd3")
    place(repository, CLIENTS, SNAPSHOT).unlink()
    with pytest.raises(UsageError, match=r"lacks the jar of kafka-clients 4\.4\.0-SNAPSHOT: publish all"):
        name_release(here, str(repository))


def test_a_pom_that_is_broken_is_told(repository, here):
    write_build(repository, SNAPSHOT, "ab12cd3")
    place(repository, STREAMS, SNAPSHOT, "pom").write_text("<project>")
    with pytest.raises(UsageError, match="a pom that is no XML"):
        name_release(here, str(repository))


def test_a_folder_with_several_versions_wants_one_named(repository, here):
    write_build(repository, SNAPSHOT, "ab12cd3")
    write_build(repository, "4.3.1", "ab12cd3")
    with pytest.raises(UsageError, match=r"holds kafka-streams 4\.3\.1, 4\.4\.0-SNAPSHOT: name one"):
        name_release(here, str(repository))


def test_what_is_nowhere_is_told(repository, served, here):
    with pytest.raises(UsageError, match=r"repository holds no kafka-streams: .*publishToMavenLocal"):
        name_release(here, str(repository))
    with pytest.raises(UsageError, match=r"/no/folder is neither a folder nor the URL"):
        name_release(here, "/no/folder")
    with pytest.raises(UsageError, match=r"is not a folder: name a version, and --maven-repo http"):
        name_release(here, served)
    with pytest.raises(UsageError, match=r"the local Maven repository has no kafka-streams 4\.4\.0-SNAPSHOT"):
        name_release(here, SNAPSHOT)
    with pytest.raises(UsageError, match=r"4\.4\.0@ab12cd3 is not kept here"):
        streams_class_path(here, Release.parse("4.4.0@ab12cd3"))


def test_a_repository_that_does_not_answer_is_told(served, here):
    closed = "http://127.0.0.1:9"
    with pytest.raises(UsageError, match=r"http://127\.0\.0\.1:9 does not answer \(.*refused"):
        name_release(here, "4.4.0", [closed])
    with pytest.raises(UsageError, match="with a user, which would be seen") as error:
        name_release(here, "4.4.0", ["https://me:hidden@example.org/repository"])
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize("host", ["example.org", "10.1.2.3", "localhost.example.org", "[2001:db8::1]:8080"])
def test_what_is_run_is_not_asked_for_by_http(host, here):
    with pytest.raises(UsageError, match=r"is asked by http:, .* name it by https:"):
        name_release(here, "4.4.0", [f"http://{host}/repository"])


@pytest.mark.parametrize("kind", ["folder", "http"])
def test_a_file_has_the_checksum_that_lies_beside_it(kind, repository, served, here):
    write_build(repository, "4.4.0", "ab12cd3")
    [jar] = repository.rglob(f"{CLIENTS}-4.4.0.jar")
    beside = jar.with_name(f"{jar.name}.sha1")
    named = {"folder": str(repository), "http": served}[kind]
    beside.write_text(f"{'0' * 40}  {jar.name}\n")
    with pytest.raises(UsageError, match=rf"The jar of {CLIENTS} 4\.4\.0 in .* has not the checksum"):
        name_release(here, "4.4.0", [named])
    beside.write_text(hashlib.sha1(jar.read_bytes(), usedforsecurity=False).hexdigest().upper())
    assert name_release(here, "4.4.0", [named]) == "4.4.0@ab12cd3"


def test_a_file_that_never_ends_is_not_read_to_its_end(repository, served, here, monkeypatch):
    write_build(repository, "4.4.0", "ab12cd3")
    monkeypatch.setattr("onceproof.lab.builds.LARGEST", 100)
    with pytest.raises(UsageError, match="is larger than"):
        name_release(here, "4.4.0", [served])


def test_an_artifact_does_not_leave_the_folder_of_its_build(repository, here):
    needs = (
        f"<dependency><groupId>{GROUP}</groupId><artifactId>../../x</artifactId><version>4.4.0</version></dependency>"
    )
    write_build(repository, "4.4.0", "ab12cd3", needs=needs)
    with pytest.raises(UsageError, match=r"names an artifact '\.\./\.\./x'"):
        name_release(here, "4.4.0", [str(repository)])


def test_a_repository_that_refuses_is_told(repository, monkeypatch, here):
    handler = type(
        "No", (SimpleHTTPRequestHandler,), {"do_GET": lambda self: self.send_error(403), "log_message": _mute}
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(UsageError, match=r"does not answer \(403 Forbidden\)"):
            name_release(here, "4.4.0", [f"http://127.0.0.1:{server.server_port}"])
        server.shutdown()


def _mute(*_):
    """Say nothing."""


@pytest.mark.parametrize("origin", ["downloaded", "built in its place", "built", "installed", "downloaded, unchecked"])
def test_a_build_is_not_taken_for_the_release_of_its_version(origin, tmp_path, here):
    write_build(tmp_path / "m2", "4.4.0", "ab12cd3")
    jar = place(tmp_path / "m2", STREAMS, "4.4.0")
    if origin.startswith(("downloaded", "built in")):
        checksum = hashlib.sha1(jar.read_bytes(), usedforsecurity=False).hexdigest()
        if origin != "downloaded, unchecked":
            jar.with_name(f"{jar.name}.sha1").write_text(checksum)
        jar.with_name("_remote.repositories").write_text(f"#comment\n{jar.name}>central=\n")
    if origin == "built in its place":
        write_build(tmp_path / "m2", "4.4.0", "ab12cd3", classes="other")
    if origin == "installed":
        jar.with_name("_remote.repositories").write_text(f"#comment\n{jar.name}>=\n")
    file = here.artifacts / f"{STREAMS}-4.4.0.classpath"
    file.parent.mkdir(parents=True)
    file.write_text(str(jar))
    if origin.startswith("downloaded"):
        assert streams_class_path(here, Release(4, 4, 0)) == [jar]
        return
    with pytest.raises(UsageError, match=r"built here, so it is not what is published as Kafka 4\.4\.0") as error:
        check_published(here, [Release(4, 4, 0)])
    assert str(error.value).endswith(f"--maven-repo {tmp_path / 'm2'}.")
