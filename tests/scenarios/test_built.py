"""The facts that both readers take are those of what was given to the application, and of what it says of itself."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from onceproof.lab.context import list_planned_facts
from onceproof.lab.plan import plan_of
from onceproof.model.errors import HarnessError
from onceproof.model.timeline import Event
from onceproof.scenarios import SCENARIOS
from onceproof.scenarios.base import Workload
from onceproof.scenarios.built import EVENT, SAYINGS, Built, check_brokers, check_built, contradictions
from onceproof.scenarios.net import OF_INSTANCES
from onceproof.scenarios.prepared import PreparedTrial
from tests.conftest import ROOT, a_trial
from tests.fakes.instance import built
from tests.fakes.world import FakeCluster

JAVA = ROOT / "streams_app" / "src" / "main" / "java" / "onceproof" / "streams"
KINDS_OF_SETTINGS = "text|optional|oneOf|count|optionalCount|flag|tables"
OF_YOURS = "app"  # the topology of an application whose settings are none of ours


def known_to_java() -> dict[str, set[str]]:
    """By topology, the settings that its class asks for, itself or in a class to which it passes them on."""
    sources = {file.stem: file.read_text() for file in JAVA.glob("*.java")}
    names = {name: re.search(r'\bNAME = "([\w-]+)"', source) for name, source in sources.items()}
    rows = re.findall(r'Map\.entry\((?:"([\w-]+)"|(\w+)\.NAME), (\w+)::topology\)', sources["Topologies"])
    classes = {text or names[constant][1]: class_ for text, constant, class_ in rows}  # type: ignore[index]
    classes |= {"grouped-table": "GroupedTable"}

    def asked(class_: str, seen: set[str]) -> Iterator[str]:
        if class_ in seen or class_ not in sources:
            return
        seen.add(class_)
        yield from re.findall(rf'\bsettings\s*\.(?:{KINDS_OF_SETTINGS})\(\s*"([^"]+)"', sources[class_])
        for further in re.findall(r"\b([A-Z]\w+)\.\w+\(settings\b", sources[class_]):
            yield from asked(further, seen)

    by_main = re.findall(rf'\basked\.app\.(?:{KINDS_OF_SETTINGS})\("([^"]+)"', sources["Main"])
    return {topology: {*asked(class_, set()), *by_main} for topology, class_ in classes.items()}


def test_variants_configure_what_facts_say_and_java_knows() -> None:
    known = known_to_java()
    for name, scenario in SCENARIOS.items():
        for variant in scenario.variants if name != OF_YOURS else ():
            prepared = PreparedTrial(a_trial("4.3.1", variant, scenario=name, restart_on="4.4.0"))
            vars(prepared)["workload"] = Workload([], [])  # no record is looked at, and to draw them takes a minute
            plan, parameters = plan_of(prepared, FakeCluster()), prepared.parameters
            facts = {**list_planned_facts(plan), **scenario.facts(plan.trial)}
            app, config = dict(plan.app), dict(plan.streams_config)
            assert app.keys() <= known[plan.check] | {*OF_INSTANCES}, (name, variant)
            assert list(contradictions(facts, Built("instance-1", **built(app, config)))) == [], (name, variant)
            assert facts["cached"] == bool(parameters.get("caching", app.get("caching"))), (name, variant)
            assert config["processing.guarantee"] == parameters.get("guarantee", "exactly_once_v2"), (name, variant)
            assert facts.keys() - SAYINGS.keys() == {"partitions"}, (name, variant)


WINDOWS = {
    "kind": "session",
    "suppressed": True,
    "on.close": False,
    "cogrouped": False,
    "size.ms": 300,
    "grace.ms": 200,
    "stores": "rocksdb",
    "caching": True,
}
OF_WINDOWS = {"kind": 2, "suppressed": 1, "cogrouped": 0, "size": 300, "grace": 200, "limit": 0, "cached": 1}
KAFKAS = "org.apache.kafka.streams.kstream.internals."


def windows(**changes: Any) -> Built:
    """What an instance of the topology `windows` has built."""
    fields: dict[str, Any] = {
        "settings": WINDOWS,
        "config": {"processing.guarantee": "exactly_once_v2"},
        "stores": {"windowed-sums": ["MeteredSessionStore", "CachingSessionStore", "RocksDBSessionStore"]},
        "processors": {
            "sums": f"{KAFKAS}KStreamSessionWindowAggregate$KStreamSessionWindowAggregateProcessor",
            "held": f"{KAFKAS}suppress.KTableSuppressProcessorSupplier$KTableSuppressProcessor",
        },
    }
    return Built("instance-1", **{**fields, **changes})


def sentences(facts: dict[str, int], said: Built) -> list[str]:
    return [sentence.partition(": the plan")[0] for sentence in contradictions(facts, said)]


def test_an_instance_built_as_expected_contradicts_nothing() -> None:
    assert sentences({**OF_WINDOWS, "exactly_once": 1, "partitions": 2, "ended": 1}, windows()) == []


@pytest.mark.parametrize(
    ("facts", "changes", "sentence"),
    [
        (
            {},
            {"stores": {"windowed-sums": ["MeteredSessionStore", "RocksDBSessionStore"]}},
            "The checks take cached=1, but of instance-1 the class of a store says cached=0",
        ),
        ({"cached": 0}, {}, "The checks take cached=0, but of instance-1 the class of a store says cached=1"),
        ({"size": 301}, {}, "The checks take size=301, but of instance-1 size.ms says size=300"),
        ({"kind": 3}, {}, "The checks take kind=3, but of instance-1 kind says kind=2"),
        (
            {},
            {"processors": {"sums": f"{KAFKAS}KStreamWindowAggregate$P", "held": f"{KAFKAS}KTableSuppressProcessor"}},
            "The checks take kind=2, but of instance-1 the class of a processor says kind=0",
        ),
        (
            {},
            {"processors": {}},
            "The checks take suppressed=1, but of instance-1 the class of a processor says suppressed=0",
        ),
        (
            {"exactly_once": 1},
            {"config": {"processing.guarantee": "at_least_once"}},
            "The checks take exactly_once=1, but of instance-1 processing.guarantee says exactly_once=0",
        ),
    ],
)
def test_a_fact_that_an_instance_contradicts_is_told(
    facts: dict[str, int], changes: dict[str, Any], sentence: str
) -> None:
    assert sentence in sentences({**OF_WINDOWS, **facts}, windows(**changes))


@pytest.mark.parametrize(("facts", "joins"), [({"join": 0}, True), ({"join": 1}, False), ({"join": 2}, False)])
def test_a_stream_join_is_known_by_its_store_of_waiting_records(facts: dict[str, int], joins: bool) -> None:
    settings = {"join": ["inner", "left", "outer"][facts["join"]], "window.ms": 100, "caching": False}
    stores = {"shared": ["MeteredKeyValueStore", "ListValueStore"]}
    [wrong] = sentences(facts, windows(settings=settings, stores=stores if joins else {}))
    assert wrong.startswith(f"The checks take join={facts['join']}")
    assert sentences(facts, windows(settings=settings, stores={} if joins else stores)) == []


@pytest.mark.parametrize(
    ("class_", "join"), [("KTableKTableInnerJoin$P", 0), ("KTableKTableLeftJoin$P", 1), ("KTableKTableOuterJoin$P", 2)]
)
def test_a_join_of_tables_is_known_by_the_class_of_its_processor(class_: str, join: int) -> None:
    for taken in range(3):
        settings = {"join": ["inner", "left", "outer"][taken], "caching": False}
        found = sentences({"join": taken}, windows(settings=settings, processors={"joined": KAFKAS + class_}))
        assert found == (
            []
            if taken == join
            else [f"The checks take join={taken}, but of instance-1 the class of a processor says join={join}"]
        )


def of_window_stores() -> Iterator[Event]:
    yield {"t": 1, "source": "driver", "event": "phase", "name": "tables"}
    yield {"t": 2, "source": "instance-2", "event": EVENT, **vars(windows())}


def test_a_contradiction_is_an_error_of_the_trial() -> None:
    check_built(OF_WINDOWS, of_window_stores())
    with pytest.raises(HarnessError, match=r"^The checks take size=1, but of instance-2 size\.ms says size=300: the "):
        check_built({**OF_WINDOWS, "size": 1}, of_window_stores())


SIZES = {"input": 2, "output": 1, "seen-changelog": 1}
ENDS = {("input", 0): 5, ("input", 1): 7, ("output", 0): 9, ("seen-changelog", 0): 4}
OF_TOPICS = {"partitions": 2, "input_end/1": 7, "output_read/0": 9, "output_end": 9, "seen_end": 4, "changelog_end": 4}


def test_facts_about_topics_are_those_of_the_brokers() -> None:
    check_brokers({**OF_TOPICS, "ended": 0, "gone_end": 10}, SIZES, ENDS, ["input"])
    with pytest.raises(HarnessError, match=r"partitions=3, but the brokers say that the topic input has 2:"):
        check_brokers({**OF_TOPICS, "partitions": 3}, SIZES, ENDS, ["input"])


@pytest.mark.parametrize(
    ("fact", "taken", "said"),
    [
        ("input_end/1", 8, "input ends at 7"),
        ("output_end", 10, "output ends at 9"),
        ("output_read/0", -1, "output ends at 9"),
        ("seen_end", 5, "seen-changelog ends at 4"),
        ("changelog_end", 5, "seen-changelog ends at 4"),
    ],
)
def test_a_log_never_ended_behind_its_end(fact: str, taken: int, said: str) -> None:
    with pytest.raises(HarnessError, match=rf"take {fact}={taken}, but the brokers say that {said}: it never ended"):
        check_brokers({**OF_TOPICS, fact: taken}, SIZES, ENDS, ["input"])
