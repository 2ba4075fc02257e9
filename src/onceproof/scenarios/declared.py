"""Your own application, as its file `onceproof.toml` declares it, and its input."""

import json
import random
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from onceproof.model.application import Value as Feature
from onceproof.model.application import read_uses
from onceproof.model.client_properties import KEYS
from onceproof.model.decoding import as_check, decode, half_sentence
from onceproof.model.errors import UsageError
from onceproof.model.extras import PARQUET, require
from onceproof.model.release import Release
from onceproof.model.serde import SERDES, encode, from_text, value_text
from onceproof.scenarios.base import Message

FILE = "onceproof.toml"
CLASS = r"[\w$]+(\.[\w$]+)*(#[\w$]+)?"
COORDINATES = r"[\w.\-]+:[\w.\-]+:[\w.\-]+"
RANGE = re.compile(r"\{(?:n(-\d+)?|(-?\d+)\.\.(-?\d+))\}")
# What the lab sets itself, so that an application cannot.
OURS = ("application.id", "bootstrap.servers", "client.id", "state.dir")
GUARANTEE, EXACTLY_ONCE = "processing.guarantee", "exactly_once_v2"
SERVER = "application.server"
LEAST_HEAP = 32  # MB with which an instance starts
# Configuration of ours, which an instance takes out of Kafka Streams': what its JVM may have at most, as -Xmx takes it,
# and the start whose class path it has.
HEAP, PHASE = "onceproof.heap", "onceproof.phase"
# The configuration that a topic can have: what values look like, and that for people.
CLEANUP, COMPACT = "cleanup.policy", "compact"
TIMESTAMP_TYPE, LOG_APPEND_TIME = "message.timestamp.type", "LogAppendTime"
NUMBER = (r"[1-9]\d{0,9}", "a whole number of bytes")
TOPIC_CONFIG = {
    CLEANUP: ("delete|compact|compact, ?delete|delete, ?compact", "delete, compact, or both with a comma"),
    "compression.type": (
        "uncompressed|gzip|snappy|lz4|zstd|producer",
        "uncompressed, gzip, snappy, lz4, zstd, producer",
    ),
    "max.message.bytes": NUMBER,
    TIMESTAMP_TYPE: (f"CreateTime|{LOG_APPEND_TIME}", "CreateTime or LogAppendTime"),
}
# By these brokers delete or compact records, which are judged when all are there.
REMOVING = ("retention.", "local.retention.", "segment.", "delete.retention.", "max.compaction.", "min.cleanable.")
PREFIX = "{prefix}"  # in a property: what the topics' names begin with


def _serde(name: str) -> str:
    if name not in SERDES:
        raise ValueError(f"must be one of {', '.join(SERDES)}; of any other serde write the bytes in Base64")
    return name


def _not_ours(properties: dict[str, str]) -> dict[str, str]:
    if ours := [name for name in OURS if name in properties]:
        raise ValueError(f"{ours[0]} is set for each instance by Onceproof, leave it out")
    if secret := next((name for name in properties if name.endswith((*KEYS, "password", "secret"))), None):
        raise ValueError(f"{secret} belongs into the file that --brokers names, which is not written down anywhere")
    return properties


@as_check
def _release(text: str) -> str:
    return str(Release.parse(text))


def _heap(text: str) -> str:
    number, unit = int(text[:-1]), text[-1]
    if number * {"m": 1, "g": 1_024}[unit] < LEAST_HEAP:
        raise ValueError(f"an instance does not start with less than {LEAST_HEAP}m")
    return text


def _of_a_topic(config: dict[str, Any]) -> dict[str, Any]:
    for name, value in config.items():
        if name.startswith(REMOVING):
            raise ValueError(f"by {name} brokers remove records that are still to be judged, leave it out")
        if name not in TOPIC_CONFIG:
            raise ValueError(f"{name} cannot be set here; choose from {', '.join(TOPIC_CONFIG)}")
        pattern, takes = TOPIC_CONFIG[name]
        if not re.fullmatch(pattern, _text(value)):
            raise ValueError(f"{name} cannot be {value!r}; it takes {takes}")
    return config


Serde = Annotated[str, AfterValidator(_serde)]
Topic = Annotated[str, StringConstraints(pattern=r"^[\w.\-]{1,200}$")]
Value = str | int | float | bool
Class = Annotated[str, StringConstraints(pattern=rf"^{CLASS}$")]
Coordinates = Annotated[str, StringConstraints(pattern=rf"^{COORDINATES}$")]
Heap = Annotated[str, StringConstraints(pattern=r"^\d+[mg]$"), AfterValidator(_heap)]
TopicConfig = Annotated[dict[str, Value], AfterValidator(_of_a_topic)]
Properties = Annotated[dict[str, Value], AfterValidator(_not_ours)]
Written = str | dict[str, Any]  # a record as a line of JSON, or as a row


class _Table(BaseModel):
    """A table of the file, without unknown keys."""

    # Deferred: every task of Airflow imports this module, and few of them need it.
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


Templates = Annotated[tuple[str, ...], Field(min_length=1)]


class Generated(_Table):
    """Random records: `{n}` is the number of a record, `{n-3}` three less, `{1..9}` a random integer.

    Several templates are taken in turn, and `{n}` is the number of the round: so a key can change more than once.
    """

    records: int = Field(ge=1)
    key: str | Templates | None = None
    value: str | Templates
    size: int = Field(default=0, ge=0, le=1_000_000)  # characters that a value has at least, by points at its end


Partitions = Annotated[int, Field(ge=1, le=100)]


class _Topic(_Table):
    """A topic of the application."""

    topic: Topic
    key: Serde = "string"
    value: Serde = "string"
    partitions: Partitions | None = None  # None: as all topics
    config: TopicConfig = {}

    @property
    def written_config(self) -> dict[str, str]:
        """Its configuration, as brokers take it."""
        return {name: _text(value) for name, value in self.config.items()}

    @property
    def is_compacted(self) -> bool:
        """Whether brokers refuse records without a key."""
        return COMPACT in self.written_config.get(CLEANUP, "")


class InputTopic(_Topic):
    """A topic that the application reads, and what is produced to it."""

    is_global: bool = Field(default=False, alias="global")  # read into a global table or store
    file: Path | None = None
    generate: Generated | None = None

    @model_validator(mode="after")
    def _one_source(self) -> "InputTopic":
        if (self.file is None) == (self.generate is None):
            raise ValueError("it takes either a file of records or what to generate")
        if self.is_compacted and self.generate is not None and self.generate.key is None:
            raise ValueError(f"a topic with {CLEANUP} = {COMPACT} takes no record without a key: generate a key")
        return self


class OutputTopic(_Topic):
    """A topic that the application writes to, and what must hold for it."""

    promises: tuple[Literal["differential", "replay", "replay-newest", "unique", "each-input-once"], ...] = (
        "differential",
    )
    of: Topic | None = None  # the input of `each-input-once`, if there are several
    compare: Literal["records", "final", "keys"] = "records"  # key by key, as far as runs without a fault agree
    compare_also: tuple[Literal["timestamp", "headers"], ...] = ()  # of the records, or final values, that are compared

    @model_validator(mode="after")
    def _has_what_is_compared(self) -> "OutputTopic":
        if self.compare_also and self.compare == "keys":
            raise ValueError("compare_also takes compare = records or final, since keys alone have nothing else")
        if "timestamp" in self.compare_also and self.written_config.get(TIMESTAMP_TYPE) == LOG_APPEND_TIME:
            raise ValueError(f"with {TIMESTAMP_TYPE} = {LOG_APPEND_TIME} a timestamp is different in each run")
        return self


class Query(_Table):
    """A store that clients ask by interactive queries, while tasks move and the fault is injected."""

    store: Topic
    key: Serde = "bytes"  # as people are to read it; clients take the serdes of the store
    value: Serde = "bytes"
    partitions: Partitions | None = None  # of its changelog; None: as many as the input with the most


class Phase(_Table):
    """The differences from a start of each instance on; all else stays as it was."""

    start: int = Field(ge=2)  # the first one is the first start, the second one that after the clean restart
    class_: Class | None = Field(default=None, alias="class")
    command: tuple[str, ...] = ()
    sources: tuple[Path, ...] = ()
    jars: tuple[Path, ...] = ()
    dependencies: tuple[Coordinates, ...] = ()
    heap: Heap | None = None
    properties: Properties = {}

    @model_validator(mode="after")
    def _changes_something(self) -> "Phase":
        if not self.model_fields_set - {"start"}:
            raise ValueError("it changes nothing: give it properties, a class, sources, jars, dependencies or a heap")
        if GUARANTEE in self.properties:
            raise ValueError(f"{GUARANTEE} cannot change on the way, because promises hang on it")
        return self

    @property
    def brings_classes(self) -> bool:
        """Whether its class path takes the place of the one before."""
        return bool(self.sources or self.jars or self.dependencies)


class Declaration(_Table):
    """`onceproof.toml`."""

    class_: Class | None = Field(default=None, alias="class")
    # As it is deployed, a black box; then neither the class path nor the configuration is ours.
    command: tuple[str, ...] = ()
    sources: tuple[Path, ...] = ()
    jars: tuple[Path, ...] = ()
    dependencies: tuple[Coordinates, ...] = ()
    heap: Heap | None = None  # of each instance; None: what all trials have
    partitions: Partitions = 2
    instances: int = Field(default=2, ge=1, le=9)
    rate: int = Field(default=2_000, ge=1)
    fault: str = "instance-kill"
    settle: float = Field(default=0.0, ge=0.0, le=60.0)  # seconds without output after which it is complete
    # Of Kafka Streams, on which it runs now: that is run, too, if no release is named; of a command, which it brings.
    release: Annotated[str, AfterValidator(_release)] | None = None
    uses: dict[str, Any] = {}  # features that its topology does not show, or not as they are (`model.application`)
    properties: Properties = {}
    phase: tuple[Phase, ...] = ()
    input: tuple[InputTopic, ...] = Field(min_length=1)
    output: tuple[OutputTopic, ...] = Field(min_length=1)
    query: tuple[Query, ...] = ()

    @model_validator(mode="after")
    def _hangs_together(self) -> "Declaration":
        as_check(read_uses)(self.uses, "uses")
        names = [*(topic.topic for topic in self.input), *(topic.topic for topic in self.output)]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"the topic {twice} is there twice")
        if (self.class_ is None) == (not self.command):
            raise ValueError("it takes either a class that gives the topology, or a command that runs the application")
        if self.command:
            self._is_as_deployed()
        elif not (self.sources or self.jars or self.dependencies):
            raise ValueError("it takes sources, jars or dependencies, in which the class is")
        self._phases_follow()
        self._can_be_asked()
        inputs = [topic.topic for topic in self.input if not topic.is_global]
        if not inputs:
            raise ValueError("each input is global, so there is nothing to process")
        for output in self.output:
            if output.of is not None and output.of not in inputs:
                raise ValueError(f"{output.topic} is of {output.of}, which is no input")
            if "each-input-once" in output.promises and output.of is None and len(inputs) > 1:
                raise ValueError(f"each-input-once of {output.topic} needs `of`, one of {', '.join(inputs)}")
        return self

    def _is_as_deployed(self) -> None:
        """Check that nothing is said about a command that only holds for a class."""
        if self.sources or self.jars or self.dependencies:
            raise ValueError("a command brings its own class path: leave out sources, jars and dependencies")
        if refused := [name for name in self.properties if name != GUARANTEE]:
            raise ValueError(
                f"{refused[0]} is for the command's own configuration, of which only {GUARANTEE} must be known here"
            )
        if self.heap is not None:
            raise ValueError("heap is for a class; a command gives its own JVM the heap (-Xmx)")

    def _phases_follow(self) -> None:
        """Check that each phase begins after the one before, and is of a class, or of a command, as the file is."""
        for number, (before, phase) in enumerate(zip((None, *self.phase), self.phase, strict=False), 1):
            if before is not None and phase.start <= before.start:
                raise ValueError(
                    f"phase {number} begins with start {phase.start}, and the one before it with start {before.start}: "
                    "put them in the order of their starts"
                )
            if self.command and phase.model_fields_set - {"start", "command"}:
                raise ValueError(f"phase {number} of a command can only have another command")
            if phase.command and not self.command:
                raise ValueError(f"phase {number} has a command, and the application a class: give it a class")

    def _can_be_asked(self) -> None:
        """Check that what is said about queries holds for a class under exactly-once."""
        if not self.query:
            return
        names = [query.store for query in self.query]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"the store {twice} is asked twice")
        if self.command:
            raise ValueError("query is for a class: the stores of a command are its own, and only it can ask them")
        if self.properties.get(GUARANTEE, EXACTLY_ONCE) != EXACTLY_ONCE:
            raise ValueError(
                f"query takes {GUARANTEE} = {EXACTLY_ONCE}: after a crash without transactions a store goes back"
            )
        if any(SERVER in properties for properties in (self.properties, *(phase.properties for phase in self.phase))):
            raise ValueError(f"{SERVER} names each instance for the routes of queries, leave it out")

    def partitions_of(self, query: Query) -> int:
        """How many partitions the changelog of a store has that is asked."""
        return query.partitions or max(topic.partitions or self.partitions for topic in self.input)

    def at(self, start: int) -> "Declaration":
        """The same, as it holds when an instance starts for this time (the first is 1)."""
        declares = self
        for phase in self.phase:
            if phase.start <= start:
                changed = {name: value for name in ("class_", "command", "heap") if (value := getattr(phase, name))}
                if phase.brings_classes:
                    changed |= {name: getattr(phase, name) for name in ("sources", "jars", "dependencies")}
                changed["properties"] = {**declares.properties, **phase.properties}
                declares = declares.model_copy(update=changed)
        return declares

    @property
    def starts(self) -> tuple[int, ...]:
        """The starts of an instance with which something changes, the first one among them."""
        return (1, *(phase.start for phase in self.phase))

    @property
    def corrected(self) -> dict[str, tuple[Feature, ...]]:
        """The features that its file states, each with the values that apply."""
        return read_uses(self.uses, "uses")

    def promises(self, name: str) -> bool:
        """Whether this is promised of some output."""
        return any(name in topic.promises for topic in self.output)

    @property
    def what(self) -> str:
        """The program, for people: its class, or its command."""
        return self.class_ or shlex.join(self.command)


@dataclass(frozen=True)
class DeclaredApplication:
    """Your own application."""

    folder: Path
    declares: Declaration

    @classmethod
    def read(cls, folder: Path) -> "DeclaredApplication":
        """Read the file of a folder, and check that what it names is there.

        Raises:
            UsageError: it cannot be read or says something impossible; one sentence that names it.
        """
        folder = folder.absolute()
        file = folder / FILE
        try:
            declares = decode(Declaration, tomllib.loads(file.read_text(encoding="utf-8")))
        except OSError as error:
            raise UsageError(f"{file} could not be read: {error.strerror}; `onceproof app init` writes one.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} is no TOML: {error}.") from None
        except ValueError as error:
            raise UsageError(f"{file}: {error}.") from None
        files = [topic.file for topic in declares.input if topic.file is not None]
        of_phases = [path for phase in declares.phase for path in (*phase.sources, *phase.jars)]
        for named in (*declares.sources, *declares.jars, *of_phases, *files):
            if not (folder / named).exists():
                raise UsageError(
                    f"{file} names {named}, which is not there: paths begin at its folder; build it first."
                )
        return cls(folder, declares)

    @property
    def name(self) -> str:
        """Its folder's."""
        return self.folder.name

    def paths(self, names: tuple[Path, ...]) -> list[Path]:
        """Paths of the file, from anywhere."""
        return [self.folder / name for name in names]

    def properties(self, prefix: str, start: int = 1) -> dict[str, str]:
        """Its configuration of Kafka Streams at a start, if the names of topics begin with a prefix."""
        properties = self.declares.at(start).properties
        return {name: _text(value).replace(PREFIX, prefix) for name, value in properties.items()}

    def messages(self, seed: int, begin: int, prefix: str = "") -> list[Message]:
        """The records of all inputs in the order in which they flow: side by side, each input evenly.

        Those of global tables come first: an application has all of them before it processes anything.

        Args:
            seed: by which records are drawn.
            begin: timestamp of the first of those that have none of their own, in epoch milliseconds.
            prefix: of the names of topics.

        Raises:
            UsageError: a record is not of the serdes; names its line.
        """
        rng = random.Random(seed)
        side_by_side = []
        for number, topic in enumerate(self.declares.input):
            records = list(self._of_file(topic) if topic.generate is None else _generate(topic, topic.generate, rng))
            turns = (0 if topic.is_global else (place + 1) / len(records) for place in range(len(records)))
            side_by_side += [
                (turn, number, topic, nth, drawn) for nth, (turn, drawn) in enumerate(zip(turns, records, strict=True))
            ]
        side_by_side.sort(key=lambda item: item[:2])
        return [
            Message(
                prefix + topic.topic,
                drawn.key,
                drawn.value,
                begin + place * 1_000 // self.declares.rate if drawn.timestamp is None else drawn.timestamp,
                None if drawn.key is not None else nth % (topic.partitions or self.declares.partitions),
                drawn.headers,
            )
            for place, (_, _, topic, nth, drawn) in enumerate(side_by_side)
        ]

    def _of_file(self, topic: InputTopic) -> Iterator["_Drawn"]:
        file = self.folder / (topic.file or "")
        is_table = file.suffix == ".parquet"
        rows: list[tuple[int, Written]] = list(_rows(file) if is_table else _lines(file))
        if not rows:
            raise UsageError(f"{file} has no records: each takes a value, and perhaps a key.")
        for number, row in rows:
            try:
                yield _parse(topic, row)
            except ValueError as error:
                raise UsageError(f"{file}, {'row' if is_table else 'line'} {number}: {error}.") from None


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not blank, numbered from 1."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} could not be read: {error}.") from None
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def _rows(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a Parquet file, numbered from 1, without what is null."""
    require(PARQUET, str(file))
    import pyarrow as pa  # heavy, see `_Table`
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{file} could not be read: {error}.") from None
    for number, row in enumerate(table.to_pylist(), 1):
        yield number, {name: value for name, value in row.items() if value is not None}


@dataclass(frozen=True)
class _Drawn:
    """A record of an input, before its place in the flow is known."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class _Row(_Table):
    """A line or a row of a file of records."""

    key: Any = None
    value: Any = None
    timestamp: int | None = Field(default=None, ge=0)
    headers: dict[str, str | None] | list[tuple[str, str | bytes | None]] = {}  # one of a name, or several


def _parse(topic: InputTopic, row: Written) -> _Drawn:
    """The record in a line of JSON, or in a row.

    Raises:
        ValueError: it is not a record; says why.
    """
    try:
        read = _Row.model_validate(json.loads(row) if isinstance(row, str) else row)
    except ValidationError as error:
        raise ValueError(half_sentence(error, _Row)) from None
    except ValueError:
        raise ValueError(f"{value_text(str(row))} is no JSON") from None
    fields = {}
    for name, serde, value in (("key", topic.key, read.key), ("value", topic.value, read.value)):
        try:
            fields[name] = encode(serde, value)
        except ValueError as error:
            raise ValueError(f"the {name} {error}, which the serde {serde} of {topic.topic} asks for") from None
    if topic.is_compacted and fields["key"] is None:
        raise ValueError(f"it has no key, which {topic.topic} asks for, as its {CLEANUP} is {COMPACT}")
    named = read.headers.items() if isinstance(read.headers, dict) else read.headers
    headers = tuple((name, text.encode() if isinstance(text, str) else text) for name, text in named)
    return _Drawn(fields["key"], fields["value"], read.timestamp, headers)


def _generate(topic: InputTopic, drawn: Generated, rng: random.Random) -> Iterator[_Drawn]:
    keys, values = (((text,) if text is None or isinstance(text, str) else text) for text in (drawn.key, drawn.value))
    turns = max(len(keys), len(values))
    try:
        for place in range(drawn.records):
            number, turn = divmod(place, turns)
            template = keys[turn % len(keys)]
            key = None if template is None else from_text(topic.key, _fill(template, number, rng))
            value = _fill(str(values[turn % len(values)]), number, rng)
            yield _Drawn(key, from_text(topic.value, value.ljust(drawn.size, ".")))
    except ValueError as error:
        raise UsageError(f"What is generated for {topic.topic} does not fit its serdes: {error}.") from None


def _fill(template: str, number: int, rng: random.Random) -> str:
    def fill(found: re.Match[str]) -> str:
        if found[2] is None:
            return str(number + int(found[1] or 0))
        least, most = int(found[2]), int(found[3])
        return str(rng.randint(min(least, most), max(least, most)))

    return RANGE.sub(fill, template)


@lru_cache(maxsize=8)
def application_of(folder: str) -> DeclaredApplication:
    """The application of a folder; read once by a process."""
    return DeclaredApplication.read(Path(folder))
