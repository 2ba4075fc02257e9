"""Samples of topics on given brokers: the last committed records, as a file that an application takes."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from onceproof import cli
from onceproof.model.errors import UsageError
from onceproof.scenarios.declared import DeclaredApplication

pytestmark = pytest.mark.broker
PARTITIONS = 3
TOML = """
class = "A"
jars = ["a.jar"]
[[input]]
topic = "orders"
key = "string"
value = "long"
file = "orders.parquet"
[[output]]
topic = "out"
"""


@pytest.fixture(scope="module")
def brokers(cluster, tmp_path_factory):
    """The client.properties of brokers with 30 records of `orders` in three partitions, and ten that were aborted."""
    topics = [NewTopic("orders", PARTITIONS), NewTopic("empty", 1)]
    admin = AdminClient(cluster.client())
    for created in admin.create_topics(topics).values():
        created.result()
    producer = Producer({**cluster.client(), "transactional.id": "test-sampling"})
    producer.init_transactions()
    for commits, numbers in ((True, range(30)), (False, range(30, 40))):
        producer.begin_transaction()
        for number in numbers:
            value, key, headers = number.to_bytes(8, "big"), f"key-{number}".encode(), {"h": b"\xff"}
            producer.produce("orders", value, key, number % PARTITIONS, timestamp=1_000 + number, headers=headers)
            if number < PARTITIONS:  # what is taken before the client knows a partition may come behind what follows
                producer.flush()
        producer.commit_transaction() if commits else producer.abort_transaction()
    file = tmp_path_factory.mktemp("sampled") / "client.properties"
    file.write_text(f"bootstrap.servers={cluster.bootstrap_servers}\n")
    yield file
    for removed in admin.delete_topics([topic.topic for topic in topics]).values():
        removed.result()


def sampled(brokers, file, *options):
    return CliRunner().invoke(cli.app, ["app", "sample", str(file), "--brokers", str(brokers), *options])


def test_the_last_committed_records_become_an_input(brokers, tmp_path):
    file = tmp_path / "orders.parquet"
    done = sampled(brokers, file, "--topic", "orders", "--records", "9")
    assert done.exit_code == 0, done.exception
    (tmp_path / "onceproof.toml").write_text(TOML)
    (tmp_path / "a.jar").touch()
    messages = DeclaredApplication.read(tmp_path).messages(1, 0)
    assert [(m.key, m.value, m.timestamp, m.headers) for m in messages] == [
        (f"key-{n}".encode(), n.to_bytes(8, "big"), 1_000 + n, (("h", b"\xff"),)) for n in range(21, 30)
    ]


@pytest.mark.parametrize(
    ("name", "topic", "sentence"),
    [
        ("a.parquet", "none", "none at .* could not be read: Broker: Unknown topic"),
        ("a.parquet", "empty", "empty at .* has no records to be sampled"),
        ("a.csv", "orders", "does not end in .parquet"),
    ],
)
def test_what_cannot_be_sampled_is_one_sentence(brokers, tmp_path, name, topic, sentence):
    done = sampled(brokers, tmp_path / name, "--topic", topic)
    assert isinstance(done.exception, UsageError)
    with pytest.raises(UsageError, match=sentence):
        raise done.exception
    assert list(tmp_path.iterdir()) == []
