"""What follows from the changes between two shapes of a topology."""

from dataclasses import replace

import pytest

from onceproof.model.compared import ChangeEffect, CompareAnswer, compare, first_words, match, report_unbuilt
from onceproof.model.errors import ExitCode
from onceproof.model.shape import Node, Shape, Store, Subtopology, is_generated, strip_numbers

ON_DISK = ("MeteredTimestampedKeyValueStore", "RocksDBTimestampedStore", "persistent")
IN_MEMORY = ("MeteredTimestampedKeyValueStore", "InMemoryKeyValueStore", "in memory")
WINDOWS = ("MeteredTimestampedWindowStore", "RocksDBTimestampedWindowStore", "persistent")


def part(sources, store=None, sinks=()):
    """A sub-topology: a source, a processor with a store, and sinks."""
    nodes = {
        "source": Node("source", None, (), tuple(sources), ("processor",)),
        "processor": Node("processor", "some.Processor", (store,) if store else (), (), tuple(map(str, sinks))),
        **{sink: Node("sink", None, (), (sink,), ()) for sink in sinks},
    }
    return Subtopology(tuple(sources), tuple(sinks), nodes)


def shape(parts, layers=ON_DISK, repartitions=(), **further):
    names = sorted({store for one in parts.values() for store in one.stores})
    return Shape(
        "app",
        parts=parts,
        stores={name: Store(layers, f"{name}-changelog") for name in names},
        repartitions={topic: {"retention.ms": "-1"} for topic in repartitions},
        changelogs={f"{name}-changelog": {"cleanup.policy": "compact"} for name in names},
        **further,
    )


ONE = shape({"0": part(["in"], "counts")})
SHARED = "counts-repartition"
# Two aggregates, each with a repartition topic of its own; and with one that both share.
TWO_TOPICS = shape(
    {
        "0": part(["in"], None, [SHARED, "sums-repartition"]),
        "1": part([SHARED], "counts"),
        "2": part(["sums-repartition"], "sums"),
    },
    repartitions=[SHARED, "sums-repartition"],
)
BOTH = Subtopology(
    (SHARED,),
    (),
    {
        "source": Node("source", None, (), (SHARED,), ("one", "other")),
        "one": Node("processor", "some.Processor", ("counts",), (), ()),
        "other": Node("processor", "some.Processor", ("sums",), (), ()),
    },
)
ONE_TOPIC = shape({"0": part(["in"], None, [SHARED]), "1": BOTH}, repartitions=[SHARED])


def sentences_of(before, after):
    return " | ".join(change.summary for change in compare(before, after).changes)


def test_what_is_the_same_has_no_changes():
    same = compare(TWO_TOPICS, TWO_TOPICS)
    assert same.changes == ()
    assert (same.of_release, same.of_versions, same.rolls) == (ExitCode.OK, ExitCode.OK, True)


def test_a_topology_that_stops_building_is_refused():
    failed = Shape("app", error="StreamsException: no node for Some{a=b@1f}")
    refused = compare(ONE, failed)
    assert refused.changes[0].summary == "it does not build: StreamsException: no node for Some"
    assert (refused.of_release, refused.of_versions) == (ExitCode.ANOMALY, ExitCode.ANOMALY)
    assert refused.advice == "It cannot be deployed."
    assert compare(failed, ONE).of_release == ExitCode.OK
    assert compare(failed, failed).changes == ()


def test_a_shared_repartition_topic_removes_a_sub_topology():
    found = compare(TWO_TOPICS, ONE_TOPIC)
    sentences = sentences_of(TWO_TOPICS, ONE_TOPIC)
    assert "sub-topology 2 disappears, which reads sums-repartition" in sentences
    assert "repartition topic sums-repartition is gone" in sentences
    assert "repartition topic counts-repartition feeds counts, sums, and fed counts" in sentences
    assert "store sums moves from sub-topology 2 to 1, where it is restored" in sentences
    assert not found.rolls
    assert not found.loses_state
    assert "let everything be processed" in found.advice
    assert (found.of_release, found.of_versions) == (ExitCode.ANOMALY, ExitCode.OK)
    assert "sub-topology 2 is new" in sentences_of(ONE_TOPIC, TWO_TOPICS)


def test_a_generated_name_that_shifts_leaves_the_state_behind():
    old, new = "KSTREAM-AGGREGATE-STATE-STORE-0000000002", "KSTREAM-AGGREGATE-STATE-STORE-0000000003"
    found = compare(shape({"0": part(["in"], old)}), shape({"0": part(["in"], new)}))
    assert found.changes[0].summary == (
        f"store {old} is called {new} now, which begins empty (a generated name that shifts): its state is left "
        f"behind in {old}-changelog"
    )
    assert found.loses_state
    assert found.has(ChangeEffect.RESETS)
    assert found.of_versions == ExitCode.ANOMALY
    assert "Materialized.as" in found.advice


def test_a_reused_generated_name_takes_over_the_old_state():
    name = "KSTREAM-AGGREGATE-STATE-STORE-0000000002"
    assert "takes over the state of another operation" in sentences_of(
        shape({"0": part(["orders"], name)}), shape({"0": part(["payments"], name)})
    )
    own = compare(shape({"0": part(["orders"], "counts")}), shape({"0": part(["payments"], "counts")}))
    assert not own.loses_state  # whoever gave the name meant it


@pytest.mark.parametrize(
    ("after", "sentence", "loses"),
    [
        (shape({"0": part(["in"])}), "store counts is gone: its state is left behind in counts-changelog", True),
        (
            shape({"0": part(["in"], "counts")}, WINDOWS),
            "is a window store and was a timestamped key-value store",
            True,
        ),
        (shape({"0": part(["in"], "counts")}, IN_MEMORY), "store counts is in memory now, and is restored", False),
        (
            replace(ONE, stores={"counts": Store(ON_DISK, "in")}, changelogs={}),
            "store counts is restored from in, and was from counts-changelog, which has what it holds",
            False,
        ),
        (
            replace(ONE, stores={"counts": Store(ON_DISK, None)}, changelogs={}),
            "is restored from nothing, and was from counts-changelog: what it holds is not there",
            True,
        ),
    ],
)
def test_what_becomes_of_a_store(after, sentence, loses):
    assert sentence in sentences_of(ONE, after)
    assert compare(ONE, after).loses_state == loses


def test_a_new_store_begins_empty_and_loses_nothing():
    found = compare(shape({"0": part(["in"])}), ONE)
    assert found.changes[0].summary == "store counts is new, and begins empty"
    assert found.of_release == ExitCode.OK


def test_a_table_store_restored_from_its_topic_loses_nothing():
    table = replace(ONE, stores={"counts": Store(ON_DISK, "in")}, changelogs={})
    assert "its state is still in the topic in" in sentences_of(table, shape({"0": part(["in"])}))
    assert not compare(table, shape({"0": part(["in"])})).loses_state
    assert compare(table, ONE).loses_state  # its new changelog is empty


def test_processors_that_are_renumbered_have_no_effect():
    nodes = {name.replace("processor", "KSTREAM-MAP-0000000003"): node for name, node in ONE.parts["0"].nodes.items()}
    one = replace(ONE, parts={"0": Subtopology(("in",), (), nodes)})
    other = {name.replace("0000000003", "0000000004"): node for name, node in nodes.items()}
    found = compare(one, replace(ONE, parts={"0": Subtopology(("in",), (), other)}))
    assert [change.summary for change in found.changes] == ["processors are renumbered"]
    assert found.of_release == ExitCode.OK


def test_different_results_are_reported_unless_random():
    one = replace(ONE, tried=True, outputs={"out": ((1, "aw==", "MQ=="),)}, kept={"counts": (("k", "1"),)})
    other = replace(one, outputs={"out": ((1, "aw==", "Mg=="),)})
    found = compare(one, other)
    assert "the records of out differ: number 1 is (1, 'aw==', 'Mg=='), and was (1, 'aw==', 'MQ==')" in sentences_of(
        one, other
    )
    assert (found.of_release, found.of_versions) == (ExitCode.ANOMALY, ExitCode.OK)
    assert compare(one, other, steady=False).changes == ()
    assert compare(replace(one, tried=False), other).changes == ()
    assert "there are 0, and were 1" in sentences_of(one, replace(one, outputs={}))
    assert "the entries of store counts differ" in sentences_of(one, replace(one, kept={"counts": (("k", "2"),)}))
    assert "with the same records it fails: X" in sentences_of(one, replace(one, failed="X", outputs={}, kept={}))


def test_topic_settings_are_reported_and_partitions_bar_rolling():
    other = replace(TWO_TOPICS, repartitions={**TWO_TOPICS.repartitions, SHARED: {"retention.ms": "9"}})
    assert sentences_of(TWO_TOPICS, other) == f"retention.ms of {SHARED} is 9, and was -1"
    assert compare(TWO_TOPICS, other).rolls
    more = replace(
        TWO_TOPICS, repartitions={**TWO_TOPICS.repartitions, SHARED: {"retention.ms": "-1", "partitions": "4"}}
    )
    assert not compare(TWO_TOPICS, more).rolls


def test_names_are_matched_by_similarity_within_one_form_first():
    like = {"A-0000000001": 1, "A-0000000002": 1, "counts": 1, "A-0000000003": 1, "A-0000000004": 1, "B": 2}.get
    gone, new = ["A-0000000001", "A-0000000002"], ["A-0000000003", "A-0000000004", "counts", "B"]
    assert match(gone, new, like, like) == {"A-0000000001": "A-0000000003", "A-0000000002": "A-0000000004"}
    assert match(["A-0000000001"], ["counts", "B"], like, like) == {"A-0000000001": "counts"}
    assert match(["A-0000000001"], ["B"], like, like) == {}


def test_generated_names_and_first_words():
    assert strip_numbers("KSTREAM-FILTER-0000000003-repartition") == "KSTREAM-FILTER-repartition"
    assert is_generated("KSTREAM-FILTER-0000000003")
    assert not is_generated("orders-2024")
    assert [first_words("x" * length) for length in (200, 201)] == ["x" * 200, f"{'x' * 200}…"]


def test_origins_are_followed_through_repartition_topics():
    assert TWO_TOPICS.feeding("sums") == {"in"}
    assert TWO_TOPICS.writers("sums-repartition") == {"in"}
    assert ONE_TOPIC.readers(SHARED) == {"counts", "sums"}
    loop = shape({"0": part(["r"], "counts", ["r"])}, repartitions=["r"])
    assert loop.feeding("counts") == frozenset()


def kinds_of(before, after):
    return [(change.kind, change.effects) for change in compare(before, after).changes]


def test_what_is_told_of_two_topics_that_become_one_is_all():
    drains = (ChangeEffect.DRAINS, ChangeEffect.SPLITS)
    moved = [("sub-topology", (ChangeEffect.SPLITS,)), ("store", (ChangeEffect.SPLITS,))]
    assert kinds_of(TWO_TOPICS, ONE_TOPIC) == [*moved, ("repartition", drains), ("repartition", drains)]
    assert kinds_of(ONE_TOPIC, TWO_TOPICS) == [*moved, ("repartition", (ChangeEffect.SPLITS,)), ("repartition", drains)]


SHIFTING = "KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition"


def through(topic, source="in", store="counts"):
    """A store that is fed through a repartition topic."""
    parts = {"0": part([source], None, [topic]), "1": part([topic], store)}
    return shape(parts, repartitions=[topic])


def test_a_generated_topic_may_pass_on_what_another_wrote():
    found = compare(through(SHIFTING), through(SHIFTING, "other"))
    assert found.changes[-1].summary == (
        f"repartition topic {SHIFTING} is fed by other, and was by in: a generated name that shifts, so it passes on what "
        "another operation wrote"
    )
    assert found.changes[-1].effects == (ChangeEffect.DRAINS, ChangeEffect.SPLITS, ChangeEffect.RESETS)
    assert found.advice.startswith("A rolling deployment cannot keep the state.")
    assert not found.loses_state
    named = compare(through("mine"), through("mine", "other"))  # whoever gave the name meant it
    assert {change.kind for change in named.changes} == {"sub-topology", "store"}
    assert named.advice == "A rolling deployment cannot work. Stop all instances, and start the new ones."
    assert compare(through(SHIFTING), through(SHIFTING)).advice == "A rolling deployment can work."


@pytest.mark.parametrize("topic", ["mine", SHIFTING])
def test_a_topic_that_feeds_a_new_store_alone_drains_nothing(topic):
    last = compare(through(topic), through(topic, store="sums")).changes[-1]
    assert (last.summary, last.effects) == (f"repartition topic {topic} feeds sums, and fed counts", ())


@pytest.mark.parametrize(
    ("layers", "left", "loses"),
    [
        (ON_DISK, "its state is lost, as it has no changelog", True),
        (IN_MEMORY, "it has none that outlives its process", False),
    ],
)
def test_a_store_without_a_changelog_loses_what_it_had_on_disk(layers, left, loses):
    without = replace(ONE, stores={"counts": Store(layers, None)}, changelogs={})
    found = compare(without, shape({"0": part(["in"])}))
    assert [change.summary for change in found.changes] == [f"store counts is gone: {left}"]
    assert found.loses_state == loses


def test_a_generated_name_that_is_gone_has_not_shifted():
    gone = "KSTREAM-AGGREGATE-STATE-STORE-0000000002"
    [change] = compare(shape({"0": part(["in"], gone)}), shape({"0": part(["in"])})).changes
    assert change.summary == f"store {gone} is gone: its state is left behind in {gone}-changelog"


def test_a_sub_topology_that_reads_another_topic_splits_a_group():
    wider = shape({"0": part(["in", "more"], "counts")})
    assert compare(ONE, wider).changes[0].summary == "sub-topology 0 reads in, more; it read in"


def row(value):
    return ((1, "aw==", value),)


@pytest.mark.parametrize(
    ("before", "after", "differ"),
    [
        ({"a-repartition": row("1"), "out": row("1")}, {"out": row("2")}, ["out"]),  # only one has the internal topic
        ({"out": row("1")}, {"b-changelog": row("1"), "out": row("2")}, ["out"]),
        ({"c-topic": row("1")}, {}, []),
        ({"a-repartition": row("1")}, {"a-repartition": row("2")}, ["a-repartition"]),
        ({"counts-changelog": row("1")}, {"counts-changelog": row("2")}, ["counts-changelog"]),
        ({"mine": row("1")}, {}, []),
        ({"a": row("1"), "b": row("1")}, {"b": row("2")}, ["a", "b"]),
    ],
)
def test_internal_topics_are_compared_where_both_have_them(before, after, differ):
    one = replace(through("mine"), tried=True, outputs=before)
    found = compare(one, replace(one, outputs=after)).changes
    assert [change.summary.split()[3] for change in found] == differ
    assert {change.kind for change in found} <= {"records"}


def test_only_what_both_were_given_or_list_is_compared():
    one = replace(ONE, tried=True, outputs={"out": row("1")}, kept={"counts": (("k", "1"),)})
    assert compare(one, replace(one, kept={"others": (("k", "1"),)})).changes == ()
    assert compare(one, ONE).changes == ()
    long = replace(one, outputs={"out": row("x" * 100)})
    assert (
        compare(one, long).changes[0].summary.endswith(f"is {str(row('x' * 100)[0])[:100]}…, and was (1, 'aw==', '1')")
    )


def test_records_say_nothing_more_where_a_store_changes():
    one = replace(through("mine"), tried=True, outputs={"out": row("1")})
    other = {"tried": True, "outputs": {"out": row("2")}}
    renamed, rerouted = (replace(after, **other) for after in (through("mine", store="sums"), through("yours")))
    assert "records" not in dict(kinds_of(one, renamed))
    assert kinds_of(one, rerouted)[-1] == ("records", (ChangeEffect.DIFFERS,))


def test_a_topology_that_fails_alike_on_both_sides_is_the_same():
    failing = replace(ONE, tried=True, failed="StreamsException: Some@1f")
    assert compare(failing, replace(failing, failed="StreamsException: Some@2e")).changes == ()
    works = replace(failing, failed=None)
    assert sentences_of(failing, works) == "with the same records it does not fail"
    assert compare(failing, replace(failing, failed="Other")).changes[0].effects == (ChangeEffect.DIFFERS,)


def test_the_answer_counts_what_has_effects_of_what_it_compares():
    renamed = compare(ONE, shape({"0": part(["in"], "sums")}))
    without_effects = compare(shape({"0": part(["in"])}), ONE)
    of_all = [renamed, without_effects, compare(ONE, ONE), report_unbuilt("app", "Some@1f")]
    answer = CompareAnswer.of(of_all, "4.3.1", "4.4.0")
    assert (answer.schema, answer.compared, answer.differing, len(answer.changed)) == (2, 4, 2, 3)
    assert answer.changed[-1].changes[0].summary == "it builds on neither: Some"


def test_origins_are_followed_past_a_node_that_several_lead_to():
    nodes = {
        "first": Node("source", None, (), ("a",), ("both",)),
        "second": Node("source", None, (), ("b",), ("left", "both")),
        "left": Node("processor", "some.Processor", (), (), ("both",)),
        "both": Node("processor", "some.Processor", ("counts",), (), ("back",)),
        "back": Node("processor", "some.Processor", ("counts",), (), ("both", "r")),
        "r": Node("sink", None, (), ("r",), ()),
        "astray": Node("sink", None, (), ("elsewhere",), ()),
    }
    circle = shape(
        {"0": Subtopology(("a", "b"), ("r", "elsewhere"), nodes), "1": part(["r"], "sums")}, repartitions=["r"]
    )
    assert circle.feeding("counts") == {"a", "b"}
    assert circle.feeding("sums") == circle.writers("r") == {"a", "b"}
    assert circle.readers("r") == {"sums"}


def test_a_store_read_by_other_classes_is_lost():
    def read_by(*readers):
        return replace(ONE, stores={"counts": Store(ON_DISK, "counts-changelog", readers)})

    of_kafka = "org.apache.kafka.common.serialization.{}Deserializer".format
    found = compare(read_by(of_kafka("String"), of_kafka("String")), read_by(of_kafka("String"), of_kafka("Long")))
    assert [(one.summary, one.of) for one in found.changes] == [
        ("store counts reads its values as Long, and they were written as String", ("counts",))
    ]
    assert (found.loses_state, found.rolls) == (True, False)
    assert "by the classes that wrote it" in found.advice
    yours = compare(read_by("shop.Old", None), read_by("shop.New", None))
    assert [(one.kind, one.effects) for one in yours.changes] == [("serde", ())]
    of_streams = "org.apache.kafka.streams.kstream.TimeWindowedDeserializer"
    assert compare(read_by(of_streams, None), read_by("org.apache.kafka.streams.Other", None)).changes == ()
