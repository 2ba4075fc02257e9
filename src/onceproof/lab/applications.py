"""The parts of user applications: their class paths, and what is seen of them before a trial."""

import hashlib
import json
import re
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from filelock import FileLock

from onceproof.faults.directory import ROCKSDB
from onceproof.installation import Installation
from onceproof.lab.artifacts import read_remembered, resolve, streams_class_path
from onceproof.lab.maven import dependency
from onceproof.lab.programs import run_program
from onceproof.model.application import Value
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.json_file import unwritable
from onceproof.model.release import Release
from onceproof.model.topology import CACHE_SIZES, Topology
from onceproof.scenarios.declared import FILE, GUARANTEE, PREFIX, Declaration, DeclaredApplication, application_of

COMPILER = "jdk.compiler/com.sun.tools.javac.Main"
COMPILES_WITHIN = 300  # seconds
TOPICS = ("sources", "globals", "sinks")  # of a topology
DEAD_LETTERS = "errors.dead.letter.queue.topic.name"  # written, but not in the topology
# Classes of stores, or of what they wrap: those that clients can ask for a key, and those whose answers are not judged.
ASKED, NOT_ASKED = r"Metered(Timestamped)?KeyValueStore(WithHeaders)?", "Versioned|LRU"
# Properties by which an application is judged, or that a fault needs.
JUDGED_BY = "|".join(
    [
        *map(re.escape, (GUARANTEE, *CACHE_SIZES, ROCKSDB, "num.standby.replicas", "topology.optimization")),
        r"group\.(protocol|instance\.id)",
        r"enable\.transactional\.statestores",
        r"(producer\.)?transaction\.timeout\.ms",
        r".*exception\.handler.*",
    ]
)
RENAMED = Release(3, 4, 0)  # the size of the cache, by KIP-770
COMPILED = ".compiled"  # marks classes that are all there


def application_class_path(installation: Installation, folder: str, release: Release, start: int = 1) -> list[Path]:
    """The application's own part of its class path at a start: its classes, its jars, and what these need.

    Raises:
        UsageError: its sources do not compile against the release, or Maven does not find its dependencies.
        HarnessError: Maven failed, or the disk is full.
    """
    application = application_of(folder)
    declares = application.declares.at(start)
    try:
        classes = [_compile_sources(installation, application, declares, release)] if declares.sources else []
        return [*classes, *application.paths(declares.jars), *_resolve(installation, declares.dependencies)]
    except OSError as error:
        raise unwritable(error) from error


def _compile_sources(
    installation: Installation, application: DeclaredApplication, declares: Declaration, release: Release
) -> Path:
    """The classes of its sources, compiled once for each line of releases, as long as nothing changes.

    Patches of a line have the same interfaces. A candidate or a build has its own.
    """
    roots = application.paths(declares.sources)
    files = sorted(file for root in roots for file in (root.rglob("*.java") if root.is_dir() else [root]))
    if not files:
        raise UsageError(f"{application.folder} has no file *.java where its sources are said to be.")
    jars = [*application.paths(declares.jars), *_resolve(installation, declares.dependencies)]
    interfaces = str(release) if release.is_candidate else release.line
    digest = hashlib.sha256(f"{installation.java} {interfaces} {[*map(str, jars)]}".encode())
    for file in files:
        digest.update(file.read_bytes())
    classes = installation.artifacts / "applications" / digest.hexdigest()[:16]
    if (classes / COMPILED).exists():  # perhaps in a folder that is read-only here
        return classes
    classes.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{classes}.lock"):
        if not (classes / COMPILED).exists():
            against = [*streams_class_path(installation, release), *jars]
            _compile(installation.java, files, against, classes, f"{application.name} against Kafka Streams {release}")
            (classes / COMPILED).touch()
    return classes


def _compile(java: str, files: list[Path], class_path: list[Path], classes: Path, what: str) -> None:
    command = [java, "-m", COMPILER, "-d", str(classes), "-proc:none", "-encoding", "UTF-8"]
    command += ["-cp", ":".join(map(str, class_path)), *map(str, files)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILES_WITHIN, check=False)
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"{what} did not compile within {COMPILES_WITHIN} s; try again.") from error
    if done.returncode and "jdk.compiler not found" in done.stdout + done.stderr:
        raise UsageError(
            f"{what} cannot be compiled: {java!r} is a Java without a compiler; install a JDK, or compile the "
            "sources elsewhere and name the jar."
        )
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr.strip()[:200])
        raise UsageError(f"{what} does not compile: {first or 'the compiler gave no reason'}")


def _resolve(installation: Installation, dependencies: Collection[str]) -> list[Path]:
    """The jars of Maven coordinates and of what these need, resolved once."""
    if not dependencies:
        return []
    digest = hashlib.sha256("\n".join(dependencies).encode()).hexdigest()[:16]
    file = installation.artifacts / f"application-{digest}.classpath"
    if jars := read_remembered(file):
        return jars
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{file}.lock"):
        if not read_remembered(file):
            wanted = [(group, artifact, version) for group, artifact, version in (d.split(":") for d in dependencies)]
            file.write_text(resolve(installation, wanted[0], map(dependency, wanted)))
    return read_remembered(file)


def check_topology(
    installation: Installation, application: DeclaredApplication, release: Release, prefix: str = ""
) -> None:
    """Check, before anything is started, that the topology can be built on a release, from what the file declares.

    So can those of later phases, which have the same topics.

    Raises:
        UsageError: it cannot, or it reads or writes other topics, or some without the prefix, or reads them into other
            tables, or clients cannot ask one of the stores that they are to ask.
        HarnessError: Java could not be run.
    """
    for start in application.declares.starts:
        config = _config(application, prefix, start)
        described = _describe(installation, application, release, config, start)
        topology = f"{application.name} on Kafka Streams {release}{_since(start)}: its topology"
        _check_set(topology, described.get("set", {}), config)
        described["dead letters"] = [config[DEAD_LETTERS]] if DEAD_LETTERS in config else []
        _check_topics(topology, _without(prefix, topology, described) if prefix else described, application.declares)
        for query in application.declares.query:
            _check_store(topology, described["kinds"], query.store, config, release)


def _since(start: int) -> str:
    return f", from start {start} on" if start > 1 else ""


def uses_on(
    installation: Installation, application: DeclaredApplication, release: Release
) -> dict[str, tuple[Value, ...]]:
    """The features that an application uses of a release of Kafka Streams, as far as its topology and its properties
    show.

    Raises:
        UsageError: the topology cannot be built.
    """
    config = _config(application, "")
    described = _describe(installation, application, release, config)
    return Topology.of(described).uses(config | described.get("set", {}))


def _config(application: DeclaredApplication, prefix: str, start: int = 1) -> dict[str, str]:
    config = {"application.id": "described", "bootstrap.servers": "localhost:1", GUARANTEE: "exactly_once_v2"}
    return config | application.properties(prefix, start)


def _describe(
    installation: Installation,
    application: DeclaredApplication,
    release: Release,
    config: Mapping[str, str],
    start: int = 1,
) -> dict[str, Any]:
    """The description of the topology by `onceproof.streams.Describe`.

    Raises:
        UsageError: it cannot be built.
    """
    app = {"application": str(application.folder), "class": application.declares.at(start).class_}
    line = json.dumps({"topology": "app", "app": app, "config": config})
    beside = application_class_path(installation, str(application.folder), release, start)
    with TemporaryDirectory() as scratch:
        log = Path(scratch, "described", "log")
        log.parent.mkdir()
        try:
            main = ("onceproof.streams.Describe",)
            return run_program(installation, release, main, log, "the topology to be built", line, beside=beside)
        except HarnessError as error:
            raise UsageError(f"{application.name} on Kafka Streams {release}{_since(start)}: {error}") from error


def _check_set(topology: str, set_: Mapping[str, str], config: Mapping[str, str]) -> None:
    """Check that what the application is judged by is not set by its code alone.

    Raises:
        UsageError: it is.
    """
    for name, value in set_.items():
        if re.fullmatch(JUDGED_BY, name) and value != config.get(name):
            raise UsageError(
                f'{topology} is built by code that sets {name} to {value}, by which it is judged: write "{name}" = '
                f'"{value}" into [properties] of {FILE}, too, or leave it to that.'
            )


def _without(prefix: str, topology: str, topics: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """The same topics of a topology, without the prefix that all of them must bear.

    Raises:
        UsageError: one does not, or they are chosen while it runs.
    """
    if topics["open"]:
        raise UsageError(
            f"{topology} chooses topics while it runs ({', '.join(topics['open'])}), which may be some of yours; leave "
            "out --brokers."
        )
    named = (topic for kind in (*TOPICS, "dead letters") for topic in topics[kind] if topic not in topics["internal"])
    if bare := [topic for topic in named if not topic.startswith(prefix)]:
        raise UsageError(
            f"{topology} has the topic {bare[0]}, which may be one of yours; have it take the names, or what all of "
            f"them begin with, from its properties, where {PREFIX} stands for that (docs/applications.md), or leave "
            "out --brokers."
        )
    bare_names = {kind: [topic.removeprefix(prefix) for topic in topics[kind]] for kind in TOPICS}
    return {**bare_names, "internal": topics["internal"]}


def _check_store(
    topology: str, kinds: Mapping[str, Sequence[str]], store: str, config: Mapping[str, str], release: Release
) -> None:
    """Check that the answers of a store can be compared with its changelog.

    Raises:
        UsageError: they cannot.
    """
    layers = kinds.get(store)
    if layers is None:
        others = ", ".join(sorted(kinds)) or "none"
        raise UsageError(f"{topology} has no store {store} (it has {others}); correct [[query]] in {FILE}.")
    if not any(re.fullmatch(ASKED, layer) for layer in layers) or any(re.search(NOT_ASKED, layer) for layer in layers):
        raise UsageError(
            f"{topology} has a store {store} of {layers[0]}, and only the answers of key-value stores can be judged, "
            "without versions and without a limit of entries; leave it out of [[query]]."
        )
    if not any(layer.startswith("ChangeLogging") for layer in layers):
        raise UsageError(
            f"{topology} has a store {store} without a changelog of its own, against which answers could be held; "
            "leave it out of [[query]]."
        )
    if any(layer.startswith("Caching") for layer in layers) and all(config.get(name) != "0" for name in CACHE_SIZES):
        raise UsageError(
            f"{topology} has a store {store} with a record cache, which answers with what no changelog ever has; set "
            f'"{CACHE_SIZES[release < RENAMED]}" = 0 in [properties], or leave it out of [[query]].'
        )


def _check_topics(topology: str, described: Mapping[str, Sequence[str]], declares: Declaration) -> None:
    """Check that a topology, as `onceproof.streams.Describe` describes it, has the topics that are declared.

    Raises:
        UsageError: it has others, or reads them into other tables.
    """
    globals_ = {topic.topic for topic in declares.input if topic.is_global}
    if undeclared := sorted(set(described["globals"]) - globals_):
        raise UsageError(
            f"{topology} reads {undeclared[0]} into a global table or store; declare it as an input with global = true."
        )
    if unknown := sorted(globals_ - set(described["globals"])):
        raise UsageError(f"{topology} has no global table or store of {unknown[0]}; leave out global = true.")
    inputs, outputs = {topic.topic for topic in declares.input} - globals_, {topic.topic for topic in declares.output}
    for kind, topics in (("sources", inputs), ("sinks", outputs)):
        named = [topic for topic in described[kind] if topic not in described["internal"]]
        if unknown := sorted(topics - set(named) if named else ()):
            raise UsageError(
                f"{topology} has no {unknown[0]} among its {kind} ({', '.join(named)}); correct the topics in "
                "onceproof.toml."
            )
        if undeclared := sorted(set(named) - inputs - outputs):
            raise UsageError(
                f"{topology} has {undeclared[0]} among its {kind}, which onceproof.toml does not declare, so there "
                "would be no such topic; add it."
            )
