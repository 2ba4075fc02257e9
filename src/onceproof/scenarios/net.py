"""A net of topologies that releases are compared by: those of the scenarios, and programs of a small grammar.

The grammar puts operations of the DSL together: a chain on one input, a merge with others, and what is made of it. A
program is what `onceproof.streams.Dsl` reads.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from onceproof.model.cell import Cell, Trial
from onceproof.model.release import OLDEST, Release
from onceproof.scenarios import SCENARIOS
from onceproof.scenarios.base import Scenario
from onceproof.scenarios.declared import FILE, DeclaredApplication

OPTIMIZATION = "topology.optimization"
OPTIMIZED = " (optimized)"
BEGIN = 1_795_000_000_000  # epoch milliseconds, of the first record
STEP = 100  # milliseconds from record to record
RECORDS = 10  # of each topology that is generated, and of a scenario's
OF_YOURS = 100  # records of an application, at most
# Since which the DSL takes stores in memory by configuration (KIP-591): the driver has RocksDB write a file for each
# record, so that programs would take minutes.
IN_MEMORY = Release(3, 2, 0)
WINDOWED = Release(3, 1, 0)  # since which a join of two streams waits for its windows to close
OF_INSTANCES = ("on.uncaught", "restore.pause.ms", "contents.folder")  # settings that no topology has
Line = tuple[str, int, str | None, str | None]  # topic, timestamp, key and value in Base64


@dataclass(frozen=True)
class CorpusCase:
    """A topology that is built on releases, and the records that it is given.

    Attributes:
        name: for people; each is there once.
        topology: its name in the application's jar.
        app: its settings.
        config: of Kafka Streams.
        records: for whatever of these topics it reads.
        since: the first release that has what it uses.
        tried_since: the first release on which it is given the records.
        folder: of the application of one's own that it is of.
    """

    name: str
    topology: str
    app: Mapping[str, Any]
    config: Mapping[str, str] = field(default_factory=dict)
    records: tuple[Line, ...] = ()
    since: Release = OLDEST
    tried_since: Release = OLDEST
    folder: Path | None = None

    @property
    def optimized(self) -> "CorpusCase":
        """The same with all optimizations of its topology."""
        return replace(self, name=f"{self.name}{OPTIMIZED}", config={**self.config, OPTIMIZATION: "all"})


# --- programs --------------------------------------------------------------------------------------------------------

CHAINS: Mapping[str, Sequence[str]] = {
    "": (),
    "filter": ("filter",),
    "mapValues": ("mapValues",),
    "selectKey": ("selectKey",),
    "selectKey, filter": ("selectKey", "filter"),
    "filter, selectKey": ("filter", "selectKey"),
    "map, flatMapValues": ("map", "flatMapValues"),
    "selectKey, repartition": ("selectKey", "repartition"),
}
MERGES: Mapping[str, Sequence[str]] = {  # of `x`, the chain on `left`, with others into `y`
    "": ("y = filter x",),
    "merge right": ("y = merge x right",),
    "merged into right": ("y = merge right x",),
    "merge selectKey right": ("z = selectKey right", "y = merge x z"),
    "merge selectKey right, merge third": ("z = selectKey right", "w = merge x z", "y = merge w third"),
    "merge right, merge selectKey third": ("w = merge x right", "z = selectKey third", "y = merge w z"),
}
ENDS: Mapping[str, Sequence[str]] = {  # what is made of `y`, after each chain and merge
    "count": ("a = count y", "to a counts"),
    "count by a named group": ("a = countGrouped y grp", "to a counts"),
    "two aggregates": ("a = count y", "b = aggregate y sums", "to a counts", "to b sums-out"),
    "join table": ("t = table people", "a = join y t", "to a joined"),
}
FURTHER: Mapping[str, Sequence[str]] = {  # after a chain alone
    "to a topic": ("to y copied",),
    "reduce into a named store": ("a = reduce y latest", "to a reduced"),
    "reduce": ("a = reduce y", "to a reduced"),
    "tumbling windows": ("a = tumbling y", "to a counts"),
    "hopping windows": ("a = hopping y", "to a counts"),
    "sliding windows": ("a = sliding y", "to a counts"),
    "sessions": ("a = session y", "to a counts"),
    "suppressed windows": ("a = suppressed y", "to a counts"),
    "cogroup": ("a = cogroup y right", "to a groups"),
    "repartition, then two aggregates": ("r = repartition y", "a = count r", "b = tumbling r", "to a counts"),
    "named repartition": ("r = repartition y named", "a = count r", "to a counts"),
    "toTable": ("a = toTable y", "to a latest"),
    "toTable, filtered": ("t = toTable y", "a = filterTable t kept", "to a latest"),
    "toTable, grouped": ("t = toTable y", "a = groupTable t", "to a groups"),
    "toTable, joined": ("t = toTable y", "u = table people", "a = join t u", "to a joined"),
    "leftJoin table": ("t = table people", "a = leftJoin y t", "to a joined"),
    "join two tables": ("t = table people", "u = table places", "a = join y t", "b = leftJoin a u", "to b joined"),
    "join global table": ("g = globalTable people", "a = join y g", "to a joined"),
    "leftJoin global table": ("g = globalTable people", "a = leftJoin y g", "to a joined"),
    "join, then count": ("t = table people", "a = join y t", "b = count a", "to b counts"),
    "count, joined with its input": ("a = aggregate y sums", "b = join y a", "to b joined"),
}
JOINS: Mapping[str, Sequence[str]] = {  # of two streams
    "join stream": ("a = join y right", "to a joined"),
    "leftJoin stream": ("a = leftJoin y right", "to a joined"),
    "outerJoin stream": ("a = outerJoin y right", "to a joined"),
    "join itself": ("a = join y y", "to a joined"),
    "join stream, then count": ("a = join y right", "b = count a", "to b counts"),
    "join both sides keyed": ("z = selectKey right", "a = join y z", "to a joined"),
}
STREAMED = ("t = table people", "s = toStream t")
BOTH = ("t = table people", "u = table places")
TABLES: Mapping[str, Sequence[str]] = {
    "table": ("t = table people", "to t copied"),
    "table, filtered": ("t = table people", "a = filterTable t", "to a latest"),
    "table, mapped into a named store": ("t = table people", "a = mapTable t kept", "to a latest"),
    "table, mapped and filtered": ("t = table people", "a = mapTable t", "b = filterTable a", "to b latest"),
    "table, grouped": ("t = table people", "a = groupTable t", "to a groups"),
    "table, grouped twice": ("t = table people", "a = groupTable t", "b = groupTable a", "to b groups"),
    "tables joined": (*BOTH, "a = join t u", "to a joined"),
    "tables left joined": (*BOTH, "a = leftJoin t u", "to a joined"),
    "tables outer joined": (*BOTH, "a = outerJoin t u", "to a joined"),
    "tables joined, then grouped": (
        "t = table people",
        "u = table places",
        "a = join t u",
        "b = groupTable a",
        "to b groups",
    ),
    "tables joined by a foreign key": (*BOTH, "a = foreignKeyJoin t u", "to a joined"),
    "table joined with itself, filtered": ("t = table people", "u = filterTable t", "a = join t u", "to a joined"),
    "table as a stream, counted": (
        "t = table people",
        "s = toStream t",
        "k = selectKey s",
        "a = count k",
        "to a counts",
    ),
    "table and a global one": (
        "t = table people",
        "g = globalTable places",
        "s = toStream t",
        "a = join s g",
        "to a joined",
    ),
}
STREAMS = ("left", "right", "third")
TOPICS = (*STREAMS, "people", "places")


@cache
def programs() -> tuple[CorpusCase, ...]:
    """The programs of the grammar, each as it is and optimized."""
    found = list(_programs())
    return tuple(each_way for case in found for each_way in (case, case.optimized))


def _programs() -> Iterator[CorpusCase]:
    for chain in CHAINS:
        for merge in MERGES:
            for end, lines in ENDS.items():
                yield _program((chain, merge, end), [*MERGES[merge], *lines])
        keyed = chain in ("", "selectKey", "selectKey, filter")
        for end, lines in FURTHER.items() if keyed else ():
            yield _program((chain, "", end), [*MERGES[""], *lines])
        for end, lines in JOINS.items() if keyed else ():
            yield replace(_program((chain, "", end), [*MERGES[""], *lines]), since=WINDOWED)
    for end, lines in TABLES.items():
        yield _case(end, lines)


def _program(names: tuple[str, str, str], lines: Iterable[str]) -> CorpusCase:
    chain = [f"x{n + 1} = {operation} {f'x{n}' if n else 'left'}" for n, operation in enumerate(CHAINS[names[0]])]
    last = f"x{len(chain)}" if chain else "left"
    text = [line.replace(" x ", f" {last} ") if " x " in line else line for line in (f"{line} " for line in lines)]
    return _case(", ".join(name for name in names if name), [*chain, *(line.strip() for line in text)])


def _case(name: str, lines: Sequence[str]) -> CorpusCase:
    operands = {word for line in lines for word in line.split()}
    sources = [f"{topic} = stream {topic}" for topic in STREAMS if topic in operands]
    program = "\n".join([*sources, *lines])
    return CorpusCase(f"DSL: {name}", "dsl", {"program": program}, records=_texts(), tried_since=IN_MEMORY)


@cache
def _texts() -> tuple[Line, ...]:
    """Records whose keys and values are texts; the third table record of a key deletes it."""
    return tuple(
        (topic, BEGIN + place * STEP, _base64(b"abcde"[turn % 5 : turn % 5 + 1]), _base64(_value(topic, turn)))
        for place, (turn, topic) in enumerate((turn, topic) for turn in range(RECORDS) for topic in TOPICS)
    )


def _value(topic: str, turn: int) -> bytes | None:
    is_deletion = topic in ("people", "places") and turn % 7 == 6
    return None if is_deletion else f"{'edcba'[turn % 4]}{turn}".encode()


# --- scenarios -------------------------------------------------------------------------------------------------------


def scenario_cases(release: Release) -> list[CorpusCase]:
    """The topologies of the scenarios whose variants run on a release, each once."""
    found: dict[tuple[str, str], CorpusCase] = {}
    for name, scenario in SCENARIOS.items():
        for variant in scenario.variants:
            cell = Cell(name, variant, release, release)
            if scenario.refuse(cell) is None:
                case = _of_scenario(scenario, cell)
                found.setdefault((case.topology, str(sorted(case.app.items()))), case)
    return list(found.values())


def _of_scenario(scenario: Scenario, cell: Cell) -> CorpusCase:
    trial = Trial("net", cell, 1, 0)

    def strip_release(value: Any) -> Any:
        """Without the release, which the names of topics have in a trial."""
        return value.replace(trial.application_id, "net") if isinstance(value, str) else value

    system = scenario.system(trial)
    app = {name: strip_release(value) for name, value in scenario.app(trial).items() if name not in OF_INSTANCES}
    sizes = {strip_release(trial.topic(role.topic or name)): role.value_bytes for name, role in system.roles.items()}
    inputs = {value for name, value in app.items() if name.endswith("topic") and not name.startswith("output")}
    return CorpusCase(
        f"{cell.scenario} {cell.variant}",
        system.topology,
        app,
        records=tuple(
            (
                topic,
                BEGIN + turn * STEP,
                _base64(_integer(turn % 5, 4)),
                _base64(_integer(turn + 1, sizes.get(topic, 4))),
            )
            for turn in range(RECORDS)
            for topic in sorted(inputs)
        ),
    )


def _integer(value: int, size: int) -> bytes:
    return value.to_bytes(min(size, 4), "big").ljust(size, b"\0") if size > 8 else value.to_bytes(size, "big")


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


# --- applications of one's own ---------------------------------------------------------------------------------------


def case_of(application: DeclaredApplication, seed: int = 0) -> CorpusCase:
    """The topology of an application, with its own configuration and the first records of its inputs."""
    messages = application.messages(seed, BEGIN)[:OF_YOURS]
    records = tuple(
        (message.topic, message.timestamp, _base64(message.key), _base64(message.value)) for message in messages
    )
    app = {"application": str(application.folder), "class": application.declares.class_}
    config = application.properties("")
    return CorpusCase(application.name, "app", app, config, records, folder=application.folder)


def example_cases(folder: Path) -> list[CorpusCase]:
    """The applications of a folder that have a topology, each as it is and optimized; none of a black box."""
    applications = [DeclaredApplication.read(file.parent) for file in sorted(folder.glob(f"*/{FILE}"))]
    cases = [case_of(application) for application in applications if not application.declares.command]
    named = [replace(case, name=f"example {case.name}") for case in cases]
    return [each_way for case in named for each_way in (case, case.optimized)]
