"""The lines of Kafka Streams by whose branches a red case differs from the nearest green one, by JaCoCo.

JaCoCo's agent connects to us and gives after each case the probes that were hit, in the format of its files
(`org.jacoco.core.data.ExecutionDataWriter`). Its command line makes a report of the lines of the classes that differ.
JaCoCo merges the lines of one source file, so the method of a line is read from the class files (JVMS 4.7.12).
"""

import re
import socket
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from struct import unpack
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Self
from zipfile import ZipFile

from filelock import FileLock

from onceproof.installation import Installation
from onceproof.lab.artifacts import STREAMS, read_remembered, streams_class_path
from onceproof.lab.lane import Lane
from onceproof.lab.maven import build_class_path
from onceproof.model.errors import HarnessError
from onceproof.model.release import Release

JACOCO = "0.8.13"
GROUP = "org.jacoco"
DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version><classifier>{}</classifier>"
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
)
PARTS = {"org.jacoco.agent": "runtime", "org.jacoco.cli": "nodeps"}  # the classifier of each artifact
INCLUDED = "org.apache.kafka.streams.*"
WITHIN = 60.0  # seconds, for an answer of the agent or a report
# Blocks of the stream, by their first byte.
HEADER, SESSION, PROBES, DONE, DUMP = 0x01, 0x10, 0x11, 0x20, 0x40
BEGIN = bytes((HEADER, 0xC0, 0xC0, 0x10, 0x07))  # the version of the format
RED, GREEN, BOTH = "red", "green", "both"
Probes = Mapping[tuple[int, str], Sequence[bool]]  # by the checksum and the name of a class, `/` in it
Lines = Mapping[tuple[str, int], tuple[int, int]]  # by source file and line the instructions and branches that were run


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A line whose instructions or branches are not the same in two cases.

    Attributes:
        at: `Class.method:line`, without the package; nested classes after `$`.
        by: the case that runs what the other one does not: `red` or `green`, or `both` for each another branch.
    """

    at: str
    by: str


class Watched:
    """A lane whose JVM reports the probes that a case hits; a context manager, which ends it."""

    def __init__(self, installation: Installation, release: Release, log: Path) -> None:
        """Start it.

        Args:
            installation: what it is run with.
            release: of Kafka Streams.
            log: takes what it logs.

        Raises:
            UsageError: the release is not published.
            HarnessError: JaCoCo cannot be resolved, or the JVM could not be started.
        """
        agent, _ = jacoco(installation)
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(WITHIN)
            target = f"output=tcpclient,address=127.0.0.1,port={server.getsockname()[1]}"
            options = (f"-javaagent:{agent}={target},includes={INCLUDED},dumponexit=false",)
            self._lane = Lane(installation, release, log, options)
            try:
                self._connection, _ = server.accept()
            except OSError as error:
                self._lane.__exit__()
                raise HarnessError(f"JaCoCo's agent did not connect; see {log}.") from error
        self._connection.settimeout(WITHIN)
        self._answers = self._connection.makefile("rb")
        self._connection.sendall(BEGIN)

    def run(self, case: Mapping[str, Any]) -> Probes:
        """The probes that a case hits.

        Raises:
            HarnessError: the JVM or its agent gave no answer.
        """
        self._take()
        self._lane.run(case)
        return self._take()

    def _take(self) -> Probes:
        """The probes since the last time."""
        try:
            self._connection.sendall(bytes((DUMP, True, True)))  # dump, and reset
            return read_probes(self._answers)
        except OSError as error:
            raise HarnessError(f"JaCoCo's agent gave no answer: {error}.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lane.__exit__()
        self._answers.close()
        self._connection.close()


def differing(
    installation: Installation,
    release: Release,
    red: Mapping[str, Any],
    greens: Sequence[Mapping[str, Any]],
    folder: Path,
) -> tuple[int, tuple[Branch, ...]] | None:
    """The green case that takes the fewest other branches than the red one, but at least one; and these branches.

    Args:
        installation: what it is run with.
        release: of Kafka Streams.
        red: as `Case.encoded` gives it.
        greens: likewise.
        folder: takes the log.

    Returns:
        The place of the green case, and the lines by class and line; None if all take the branches of the red one.

    Raises:
        UsageError: the release is not published.
        HarnessError: JaCoCo cannot be resolved or gives no report, or a JVM ended.
    """
    with Watched(installation, release, folder / f"{release}-coverage.log") as watched:
        for case in (red, *greens):  # so that what is run but once, such as static initializers, is no difference
            watched.run(case)
        first, *others, again = [watched.run(case) for case in (red, *greens, red)]
    unsteady = differing_probes(first, again)
    found = {place: differing_probes(first, other) - unsteady for place, other in enumerate(others)}
    places = sorted((place for place, probes in found.items() if probes), key=lambda place: len(found[place]))
    for place in places:
        if branches := _branches(installation, release, first, others[place], {key for key, _ in found[place]}):
            return place, branches
    return None


def differing_probes(one: Probes, other: Probes) -> set[tuple[tuple[int, str], int]]:
    """The probes that were hit in one of two cases: the class of each, and its place there."""
    hit, hit_too = ({(key, at) for key, all_of in each.items() for at, is_hit in enumerate(all_of) if is_hit}
                    for each in (one, other))  # fmt: skip
    return hit ^ hit_too


# --- JaCoCo ----------------------------------------------------------------------------------------------------------


def jacoco(installation: Installation) -> tuple[Path, Path]:
    """The agent and the command line, resolved by Maven and remembered.

    Raises:
        UsageError: there is neither Maven nor Java.
        HarnessError: it is not found.
    """
    file = installation.artifacts / f"jacoco-{JACOCO}.classpath"
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{file}.lock"):
        if not read_remembered(file):
            listed = [DEPENDENCY.format(GROUP, name, JACOCO, classifier) for name, classifier in PARTS.items()]
            answer = build_class_path(installation, listed, f"-Dmdep.outputFile={file}", to=f"resolve JaCoCo {JACOCO}")
            if not answer.succeeded:
                raise HarnessError(f"Maven could not resolve JaCoCo {JACOCO}: {answer.reason}")
    agent, program = (
        next(jar for jar in read_remembered(file) if jar.name == f"{name}-{JACOCO}-{classifier}.jar")
        for name, classifier in PARTS.items()
    )
    return agent, program


def read_probes(stream: BinaryIO) -> Probes:
    """The probes that JaCoCo writes, until it says that this is all.

    Raises:
        HarnessError: the stream ends before, or is of another format.
    """
    found: dict[tuple[int, str], Sequence[bool]] = {}
    while (block := _take(stream, 1)[0]) != DONE:
        if block == HEADER:
            _take(stream, len(BEGIN) - 1)
        elif block == SESSION:
            _text(stream)
            _take(stream, 16)  # two times
        elif block == PROBES:
            [checksum] = unpack(">q", _take(stream, 8))
            name, count = _text(stream), _number(stream)
            packed = _take(stream, (count + 7) // 8)
            found[checksum, name] = tuple(bool(packed[at // 8] >> at % 8 & 1) for at in range(count))
        else:
            raise HarnessError(f"JaCoCo's agent wrote a block {block:#x}, which is not known.")
    return found


def write_probes(file: Path, probes: Probes) -> None:
    """Write a file of JaCoCo."""
    with file.open("wb") as stream:
        stream.write(BEGIN)
        for (checksum, name), hit in probes.items():
            text, packed = name.encode(), bytearray((len(hit) + 7) // 8)
            for at, is_hit in enumerate(hit):
                packed[at // 8] |= is_hit << at % 8
            stream.write(bytes((PROBES,)) + checksum.to_bytes(8, signed=True) + len(text).to_bytes(2) + text)
            stream.write(_encode_varied(len(hit)) + packed)


def _take(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise HarnessError("JaCoCo's agent ended before it had written all.")
    return data


def _text(stream: BinaryIO) -> str:
    return _take(stream, int.from_bytes(_take(stream, 2))).decode()


def _number(stream: BinaryIO) -> int:
    """A number of seven bits a byte, the lowest first; each but the last one has the eighth bit."""
    number = shift = 0
    while (byte := _take(stream, 1)[0]) & 0x80:
        number |= (byte & 0x7F) << shift
        shift += 7
    return number | byte << shift


def _encode_varied(number: int) -> bytes:
    more = b""
    while number > 0x7F:
        more += bytes((number & 0x7F | 0x80,))
        number >>= 7
    return more + bytes((number,))


# --- lines -----------------------------------------------------------------------------------------------------------


def _branches(
    installation: Installation, release: Release, red: Probes, green: Probes, keys: Iterable[tuple[int, str]]
) -> tuple[Branch, ...]:
    """The lines of some classes by which two cases differ."""
    _, program = jacoco(installation)
    jars = streams_class_path(installation, release)
    jar = next(jar for jar in jars if jar.name.startswith(f"{STREAMS}-"))
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        classes = folder / "classes"
        with ZipFile(jar) as archive:
            there = {f"{name}.class" for _, name in keys} & set(archive.namelist())
            archive.extractall(classes, there)
        if not there:
            return ()
        files = [folder / RED, folder / GREEN]
        for file, probes in zip(files, (red, green), strict=True):
            write_probes(file, {key: hit for key, hit in probes.items() if f"{key[1]}.class" in there})
        by_red, by_green, by_either = (
            _report(installation.java, program, each, classes) for each in (files[:1], files[1:], files)
        )
        methods: dict[tuple[str, int], str] = {}
        for name in sorted(there):
            methods |= {
                line: at for line, at in methods_of((classes / name).read_bytes()).items() if line not in methods
            }
    return compare_lines(by_red, by_green, by_either, methods)


def compare_lines(
    red: Lines, green: Lines, either: Lines, methods: Mapping[tuple[str, int], str]
) -> tuple[Branch, ...]:
    """The lines that differ: what both together have run, one of them has not. Those of the green case alone come last,
    since a case that fails lacks all that comes behind.

    Args:
        red: the lines of the red case.
        green: those of the green one.
        either: those of both, merged by JaCoCo.
        methods: `Class.method` by source file and line.
    """
    found = []
    for line, whole in sorted(either.items()):
        by_red, by_green = green.get(line, (0, 0)) != whole, red.get(line, (0, 0)) != whole
        if (by_red or by_green) and line in methods:
            by = BOTH if by_red and by_green else RED if by_red else GREEN
            found.append(Branch(at=f"{methods[line]}:{line[1]}", by=by))
    return tuple(sorted(found, key=lambda branch: branch.by == GREEN))


def _report(java: str, program: Path, files: Sequence[Path], classes: Path) -> Lines:
    report = classes.with_name("report.xml")
    command = [
        java,
        "-jar",
        str(program),
        "report",
        *map(str, files),
        "--classfiles",
        str(classes),
        "--xml",
        str(report),
    ]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"JaCoCo gave no report: {error}.") from error
    if ended.returncode:
        raise HarnessError(f"JaCoCo gave no report: {ended.stderr.strip()}")
    return read_lines(report.read_text(encoding="utf-8"))


def read_lines(report: str) -> Lines:
    """The lines of JaCoCo's XML of which something was run."""
    return {
        (f"{package.attrib['name']}/{source.attrib['name']}", int(line.attrib["nr"])): counts
        for package in ET.fromstring(report).iter("package")  # noqa: S314 - JaCoCo's own
        for source in package.iter("sourcefile")
        for line in source.iter("line")
        if any(counts := (int(line.attrib["ci"]), int(line.attrib["cb"])))
    }


def methods_of(code: bytes) -> dict[tuple[str, int], str]:
    """`Class.method` by source file and line of a class file; a lambda is named after the method that has it."""
    stream = BytesIO(code)
    stream.seek(8)
    texts, classes = _constants(stream)
    _, this, _, interfaces = unpack(">4H", stream.read(8))
    package, _, name = texts[classes[this]].rpartition("/")
    stream.seek(2 * interfaces, 1)
    for _ in range(_short(stream)):  # fields
        stream.seek(6, 1)
        _attributes(stream, texts)
    lines: list[tuple[int, str]] = []
    for _ in range(_short(stream)):
        _, method, _ = unpack(">3H", stream.read(6))
        numbers = _line_numbers(_attributes(stream, texts).get("Code"), texts)
        lines += [(number, _name_method(texts[method], name)) for number in numbers]
    source = texts[int.from_bytes(_attributes(stream, texts)["SourceFile"])]
    found: dict[tuple[str, int], str] = {}
    for number, at in lines:
        found.setdefault((f"{package}/{source}", number), f"{name}.{at}")
    return found


def _constants(stream: BinaryIO) -> tuple[dict[int, str], dict[int, int]]:
    """The texts of a class file by their places, and of its classes the places of their names (JVMS 4.4)."""
    sizes = {3: 4, 4: 4, 5: 8, 6: 8, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
    texts, classes = {}, {}
    count, at = _short(stream), 1
    while at < count:
        tag = stream.read(1)[0]
        if tag == 1:
            texts[at] = stream.read(_short(stream)).decode(errors="replace")
        elif tag == 7:
            classes[at] = _short(stream)
        else:
            stream.seek(sizes[tag], 1)
        at += 2 if tag in (5, 6) else 1  # numbers of eight bytes take two places
    return texts, classes


def _attributes(stream: BinaryIO, texts: Mapping[int, str]) -> dict[str, bytes]:
    return {texts[_short(stream)]: stream.read(int.from_bytes(stream.read(4))) for _ in range(_short(stream))}


def _line_numbers(code: bytes | None, texts: Mapping[int, str]) -> Sequence[int]:
    """The lines of a `Code` attribute (JVMS 4.7.3); none of an abstract method."""
    if code is None:
        return ()
    stream = BytesIO(code)
    stream.seek(4)
    stream.seek(int.from_bytes(stream.read(4)), 1)
    stream.seek(8 * _short(stream), 1)  # exceptions
    table = _attributes(stream, texts).get("LineNumberTable", b"\0\0")
    return [int.from_bytes(table[at : at + 2]) for at in range(4, len(table), 4)]


def _name_method(method: str, name: str) -> str:
    """The method of people: a constructor by the name of its class, a lambda by the method that has it."""
    if method == "<init>":
        return name.rpartition("$")[2]
    return re.sub(r"^lambda\$(\w+)\$\d+$", r"\1", method)


def _short(stream: BinaryIO) -> int:
    return int.from_bytes(stream.read(2))
