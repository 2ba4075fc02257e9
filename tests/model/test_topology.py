"""What a topology uses, and whether its final values may hang on an order: by what Kafka Streams says it consists of."""

import pytest

from onceproof.model.topology import Topology, collect_uses

KAFKA = "org.apache.kafka.streams.kstream.internals."
ROCKSDB = (
    "MeteredTimestampedKeyValueStore",
    "ChangeLoggingTimestampedKeyValueBytesStore",
    "RocksDBTimestampedStore",
    "persistent",
)
CACHED = ("MeteredTimestampedKeyValueStore", "CachingKeyValueStore", "RocksDBTimestampedStore", "persistent")
FK = (f"{KAFKA}foreignkeyjoin.ForeignTableJoinProcessorSupplier$KTableKTableJoinProcessor", ("s",))
TABLE, JOINED = (
    (f"{KAFKA}KTableSource$KTableSourceProcessor", ("s",)),
    (f"{KAFKA}KTableKTableInnerJoin$KTableKTableJoinProcessor", ("s",)),
)
WITH_TABLE, WITH_GLOBAL = (f"{KAFKA}KStreamKTableJoinProcessor", ("s",)), (f"{KAFKA}KStreamKTableJoinProcessor", ())
STREAMS, WINDOWS = (f"{KAFKA}KStreamKStreamJoinRightSide$P", ("w",)), (f"{KAFKA}KStreamWindowAggregate$P", ("w",))
OWN = ("shop.Dedup", ("s",))


def topology(*nodes, sources=("in",), kinds=None, internal=(), globals_=()):
    """As an instance describes it; nodes are classes with the stores of each."""
    named = {f"node-{number}": node for number, node in enumerate(nodes)}
    return Topology.of(
        {
            "parts": [{"sources": [*sources], "nodes": {name: [*stores] for name, (_, stores) in named.items()}}],
            "processors": {name: class_ for name, (class_, _) in named.items()},
            "kinds": kinds or {},
            "internal": [*internal],
            "globals": [*globals_],
        }
    )


@pytest.mark.parametrize(
    ("nodes", "joins"),
    [
        ((), ()),
        ((FK, TABLE), ("foreign-key",)),  # its processor has the name of one that joins tables
        ((JOINED,), ("table-table",)),
        ((WITH_TABLE,), ("stream-table",)),
        ((WITH_GLOBAL,), ("stream-global-table",)),
        ((STREAMS, WITH_TABLE), ("stream-stream", "stream-table")),
    ],
)
def test_joins_are_known_by_their_processors(nodes, joins):
    assert topology(*nodes).joins == joins


@pytest.mark.parametrize(
    ("expected", "config", "feature", "values"),
    [
        ({"kinds": {"s": ROCKSDB}}, {}, "stores", ("rocksdb",)),
        ({"kinds": {"s": ("MeteredKeyValueStore", "InMemoryKeyValueStore", "in memory")}}, {}, "stores", ("in-memory",)),
        ({"kinds": {"s": ("MeteredVersionedKeyValueStore", "RocksDBVersionedStore", "persistent")}}, {}, "stores", ("rocksdb", "versioned")),
        ({}, {}, "stores", ()),
        ({"kinds": {"s": CACHED}}, {}, "caching", (True,)),
        ({"kinds": {"s": CACHED}}, {"statestore.cache.max.bytes": "0"}, "caching", (False,)),
        ({"kinds": {"s": CACHED}}, {"cache.max.bytes.buffering": "0"}, "caching", (False,)),
        ({"kinds": {"s": ROCKSDB}}, {}, "caching", (False,)),
        ({}, {"num.standby.replicas": "1"}, "standbys", (True,)),
        ({}, {}, "standbys", (False,)),
        ({}, {"processing.guarantee": "exactly_once_v2"}, "guarantee", ("exactly_once_v2",)),
        ({}, {}, "guarantee", ("at_least_once",)),
        ({}, {"__state.updater.enabled__": "false"}, "state_updater", (False,)),
        ({"globals_": ["rates"]}, {}, "global_tables", (True,)),
    ],
)  # fmt: skip
def test_features_are_found_in_topology_and_configuration(expected, config, feature, values):
    assert topology(**expected).uses(config)[feature] == values


def test_windows_are_found_and_own_code_hides_punctuators():
    assert topology(WINDOWS).uses({})["windows"] == (True,)
    assert topology(WINDOWS).uses({})["punctuators"] == (False,)
    assert "punctuators" not in topology(OWN).uses({})


@pytest.mark.parametrize(
    ("expected", "why"),
    [
        (topology(WITH_TABLE, sources=("orders", "rates")), "a stream-table join"),
        (topology(STREAMS, sources=("one", "other")), "a stream-stream join"),
        (topology(OWN, sources=("one", "other")), "tasks that read one and other side by side"),
        (topology(OWN, TABLE, sources=("one", "other")), "tasks that read one and other side by side"),
        (
            topology(WINDOWS, sources=("sums-repartition",), internal=("sums-repartition",)),
            "the topic sums-repartition",
        ),
        (topology(JOINED, TABLE, TABLE, sources=("one", "other")), None),
        (topology(FK, TABLE, sources=("one", "x-subscription-topic"), internal=("x-subscription-topic",)), None),
        (topology(OWN), None),
    ],
)
def test_final_values_may_depend_on_order_only_without_ordering(expected, why):
    found = expected.why_final_values_may_differ()
    assert found is None if why is None else found.startswith(why)


def test_a_black_box_describes_nothing():
    assert Topology.read_described([{"t": 1, "event": "state"}]) is None


def test_features_of_phases_are_those_of_topology_and_settings():
    stores = [topology(OWN, kinds={"seen": ROCKSDB}), topology(FK, TABLE, kinds={"s": ROCKSDB})]
    uses = collect_uses(stores, [{"group.protocol": "classic"}, {"enable.transactional.statestores": "true"}])
    assert uses["transactional_stores"] == (False, True)
    assert set(uses["joins"]) == {"foreign-key"}
    assert "punctuators" not in uses  # the first has code of its own
    assert collect_uses(stores[:1], [{}]) == stores[0].uses({})
