"""The causes of a red that lie in an application itself: each explains what its mechanism can do, and no more."""

from dataclasses import replace

import pytest

from onceproof.model.anomaly import Witness
from onceproof.model.application_issues import explain
from onceproof.model.causes import Causes
from onceproof.model.explaining import Scene
from onceproof.model.json_file import encode
from onceproof.model.shape import Store
from tests.model.test_application_issues import EXACTLY, HELD, RESTORED, killed, topology_of, trial
from tests.model.test_compared import IN_MEMORY, ON_DISK, part, shape
from tests.model.test_topology import OWN, ROCKSDB

OF_KAFKA = "org.apache.kafka.common.serialization."
OLD, NEW = "KSTREAM-AGGREGATE-STATE-STORE-0000000001", "KSTREAM-AGGREGATE-STATE-STORE-0000000002"
WRONG = Witness("wrong-value", 1, 7, (), ("counts/1@5",), "'a': 9", "'a': 4")
LOST = replace(WRONG, anomaly="lost-record", offsets=("counts, 'a' is not there",))
DIED = Witness("thread-died", 0, None, (), ("instance-1",), "runs until it is asked to end", "")
STUCK = Witness("stuck", 0, None, (), ("instance-1",), "records to be committed", "Waited 120 s")
STORE = Witness("wrong-store", 1, 7, (), ("active store journal of instance-1, partition 1, at offset 9",), "a", "ab")


def counting(store, *, serdes=(), repartitions=(), layers=ON_DISK):
    """A count, and beside it another one that is not touched."""
    parts = {"0": part(["clicks"], store, ["counts"]), "1": part(["orders"], "sums", ["totals"])}
    made = shape(parts, layers, repartitions)
    return replace(made, stores={**made.stores, store: replace(made.stores[store], serdes=serdes)})


def keyed(topic, partitions=None):
    """A count behind a repartition topic."""
    parts = {"0": part(["clicks"], None, [topic]), "1": part([topic], "by-key", ["counts"])}
    config = {"retention.ms": "-1"} | ({"partitions": partitions} if partitions else {})
    return replace(shape(parts), repartitions={topic: config})


def started(*shapes, instance="instance-1"):
    """The events of the starts of an instance, each with its shape."""
    for event, made in zip([topology_of(OWN, kinds={"s": ROCKSDB})] * len(shapes), shapes, strict=True):
        described = {name: value for name, value in encode(made).items() if name not in ("name",)}
        yield {**event, "source": instance, "shape": described}


def logged(what, **fields):
    return {"t": 3, "source": "driver", "event": "logged", "instance": "instance-1", "what": what, **fields}


def summary(witness, *events, config=EXACTLY):
    cause = Causes(Scene(list(events), tuple), [config]).of(witness)
    return cause.summary if cause else ""


TEXTS, NUMBERS = (tuple(f"{OF_KAFKA}{kind}Deserializer" for kind in ("String", value)) for value in ("String", "Long"))
RENUMBERED = tuple(started(counting(OLD), counting(NEW)))
READ_AS_LONG = tuple(started(counting("tally", serdes=TEXTS), counting("tally", serdes=NUMBERS)))
SPLIT = tuple(started(keyed("by-repartition", "2"), keyed("by-repartition", "4")))
MOVED = tuple(started(keyed("KSTREAM-MAP-0000000001-repartition"), keyed("KSTREAM-MAP-0000000002-repartition")))
INVALID = replace(DIED, observed="Existing internal topic app-by-repartition has invalid partitions: expected: 4")
GARBLED = replace(DIED, observed="caused by SerializationException: Size of data received by LongDeserializer is not 8")
CIRCLE = logged("fenced", place="orders-0", offset=780, times=16, apart=7_200, late=0)
FAILURE = {"t": 4, "source": "driver", "event": "failure", "anomaly": "stuck"}
LATE = {**CIRCLE, "late": 15, "apart": 4_000}
PATIENCE = {**EXACTLY, "producer.transaction.timeout.ms": "4000", "max.poll.interval.ms": "3000"}
DROPPED = logged("dropped", topic="onceproof.app-journal-changelog", task="0_1", times=20)
JOURNAL = tuple(started(shape({"0": part(["events"], "journal", ["counts"])})))


@pytest.mark.parametrize(
    ("witness", "events", "says"),
    [
        (WRONG, RENUMBERED, f"the topology changed between start 1 and 2: store {OLD} is called {NEW} now"),
        (LOST, RENUMBERED, "begins empty"),
        (WRONG, started(counting("a"), counting("a"), counting("b")), "changed between start 2 and 3: store a is called b"),
        (WRONG, READ_AS_LONG, "store tally reads its values as Long, and they were written as String"),
        (GARBLED, READ_AS_LONG, "store tally reads its values as Long"),
        (WRONG, started(counting("t", serdes=("a.Old", "a.Old")), counting("t", serdes=("a.Old", "b.New"))), "as b.New"),
        (INVALID, SPLIT, "partitions of by-repartition is 4, and was 2"),
        (LOST, MOVED, "what is in it and not processed is left behind"),
        (STORE, (*JOURNAL, DROPPED), "dropped records of a changelog, 20 of journal-changelog, partition 1"),
        (replace(STORE, offsets=("journal-changelog/1@7",)), (*JOURNAL, DROPPED), "the store has what no"),
        (WRONG, (*JOURNAL, DROPPED, RESTORED), "dropped records of a changelog"),
    ],
)  # fmt: skip
def test_a_cause_is_named_where_its_mechanism_can_act(witness, events, says):
    assert says in summary(witness, *events)


@pytest.mark.parametrize(
    ("witness", "events"),
    [
        pytest.param(replace(WRONG, offsets=("totals/1@5",)), RENUMBERED, id="an output that the store does not reach"),
        pytest.param(WRONG, RENUMBERED[:1], id="the second start never came"),
        pytest.param(WRONG, started(counting(OLD), counting(OLD)), id="the same topology"),
        pytest.param(WRONG, started(counting("a"), counting("a", layers=IN_MEMORY)), id="a change without a loss"),
        pytest.param(replace(WRONG, anomaly="torn-transaction"), RENUMBERED, id="what a lost store cannot do"),
        pytest.param(GARBLED, RENUMBERED, id="it dies of reading, and reads as before"),
        pytest.param(replace(DIED, observed="NullPointerException"), READ_AS_LONG, id="it dies of something else"),
        pytest.param(replace(INVALID, observed=INVALID.observed.replace("by-", "other-")), SPLIT, id="another topic"),
        pytest.param(WRONG, SPLIT, id="partitions that change make threads die, and no value wrong"),
        pytest.param(
            WRONG,
            started(*(counting("t", serdes=(None, f"{OF_KAFKA}{raw}Deserializer")) for raw in ("Bytes", "ByteArray"))),
            id="two classes that read the same",
        ),
        pytest.param(STORE, JOURNAL, id="nothing was dropped"),
        pytest.param(replace(STORE, partition=0), (*JOURNAL, DROPPED), id="another partition"),
        pytest.param(STORE, (*JOURNAL, {**DROPPED, "topic": "counts"}), id="an output was dropped"),
        pytest.param(replace(STORE, offsets=("other-changelog/1@7",)), (*JOURNAL, DROPPED), id="another store"),
        pytest.param(WRONG, (*JOURNAL, DROPPED), id="the store was not restored"),
        pytest.param(replace(WRONG, offsets=("other/1@5",)), (*JOURNAL, DROPPED, RESTORED), id="another output"),
    ],
)  # fmt: skip
def test_and_nothing_that_differs_in_one_thing(witness, events):
    assert summary(witness, *events) == ""


@pytest.mark.parametrize(
    ("events", "config", "says"),
    [
        ([CIRCLE], PATIENCE, "fenced 16 times at the same position, offset 780 of orders-0, each after 7.2 s or more; "
                             "transaction.timeout.ms is 4000"),
        ([LATE], PATIENCE, "max.poll.interval.ms is 3000"),
        ([{**CIRCLE, "apart": 11_000}], EXACTLY, "transaction.timeout.ms is 10000"),
        ([CIRCLE], EXACTLY, ""),  # it is fenced sooner than a time-out would
        ([{**LATE, "apart": 2_000}], PATIENCE, ""),
        ([{**CIRCLE, "times": 2}], PATIENCE, ""),
        ([CIRCLE, HELD], PATIENCE, ""),  # the fault may have done it
    ],
)  # fmt: skip
def test_a_standstill_with_fencing_at_one_place_is_a_circle(events, config, says):
    events = [*events, FAILURE]
    found = summary(STUCK, *events, config=config)
    assert says in found if says else found == ""
    assert summary(replace(STUCK, anomaly="wrong-value"), *events, config=config) == ""


def test_without_transactions_a_circle_emits_uncommitted_output():
    came = replace(WRONG, anomaly="unexpected-record")
    patient = {**PATIENCE, "processing.guarantee": "at_least_once"}
    assert "max.poll.interval.ms is 3000" in summary(came, LATE, FAILURE, config=patient)
    assert summary(came, LATE, FAILURE, config=PATIENCE) == ""
    assert summary(came, LATE, config=patient) == ""  # it ended well
    assert summary(came, {**LATE, "times": 2}, FAILURE, config=patient) == ""


def test_a_cause_explains_only_what_no_issue_explains():
    found = explain(trial("4.4.0"), [WRONG, replace(WRONG, anomaly="corrupt-record")], list(RENUMBERED), EXACTLY)
    assert found.issues == ()
    assert [cause.summary for cause in found.causes] == [summary(WRONG, *RENUMBERED)]
    assert found.unexplained == {"corrupt-record": 1}
    of_issue = replace(WRONG, anomaly="wrong-store")
    assert explain(trial("4.1.2"), [of_issue], [*RENUMBERED, *killed()], EXACTLY).causes == ()


def test_stores_that_read_as_before_have_no_change_of_serdes():
    assert Store(ON_DISK, "c") == Store(ON_DISK, "c", ())
    assert summary(WRONG, *started(counting("t"), counting("t", serdes=NUMBERS))) == ""  # of the first nothing is known
