import os
import socket
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from onceproof.lab.cluster import REGISTERED, EmbeddedCluster, free_ports
from onceproof.model.capability import Capability
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.release import Release
from onceproof.processes import identity
from onceproof.processes.identity import boot_id, read_start
from onceproof.processes.process import Process
from tests.conftest import HERE


def test_free_ports_differ():
    assert len(set(free_ports(10))) == 10


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(UsageError, match=r"^ONCEPROOF_HOST=192\.0\.2\.1: brokers cannot listen there .*leave it out"):
        free_ports(1, "192.0.2.1")  # TEST-NET-1 (RFC 5737)


def test_brokers_of_another_machine_are_used_but_not_touched(monkeypatch):
    me = Process.attach(os.getpid(), read_start(os.getpid()), Path("log"))
    mine = EmbeddedCluster(HERE, Release(3, 9, 1), "lab:1", Path("brokers"), [me])
    written = mine.to_dict()
    here = EmbeddedCluster.from_dict(HERE, written)
    assert here.nodes[0].alive()
    assert here.capabilities == set(Capability)
    monkeypatch.setattr(socket, "gethostname", lambda: "a-worker")
    there = EmbeddedCluster.from_dict(HERE, written)
    assert not there.nodes  # its process has an id that is somebody else's here
    assert there.capabilities == set(Capability) - {Capability.KILL_NODE, Capability.CUT_LINK, Capability.LOSE_ANSWER}
    there.check_alive()
    with pytest.raises(HarnessError, match="do not allow"):
        there.kill_node(1)


def test_a_process_from_before_the_reboot_is_no_broker(monkeypatch, tmp_path):
    me = Process.attach(os.getpid(), read_start(os.getpid()), Path("log"), boot_id())
    written = EmbeddedCluster(HERE, Release(3, 9, 1), "lab:1", Path("brokers"), [me]).to_dict()
    older = {**written, "nodes": [{name: text for name, text in written["nodes"][0].items() if name != "boot"}]}
    assert EmbeddedCluster.from_dict(HERE, written).nodes[0].alive()
    (tmp_path / "boot_id").write_text("another\n")
    monkeypatch.setattr(identity, "BOOT_ID", tmp_path / "boot_id")
    assert not EmbeddedCluster.from_dict(HERE, written).nodes[0].alive()
    assert EmbeddedCluster.from_dict(HERE, older).nodes[0].alive()  # as far as it knows


def test_brokers_without_data_have_nobody_registered(tmp_path):
    (tmp_path / REGISTERED).touch()
    (tmp_path / "data-1").mkdir()
    EmbeddedCluster.delete_data(tmp_path)
    assert not list(tmp_path.iterdir())


def position_of(cluster: EmbeddedCluster, group: str) -> int:
    """What the group has committed for the topic `kept`; below 0 if it has committed nothing."""
    consumer = Consumer({**cluster.client(), "group.id": group})
    try:
        [place] = consumer.committed([TopicPartition("kept", 0)], timeout=30)
        return int(place.offset)
    finally:
        consumer.close()


@pytest.mark.broker
def test_brokers_listen_where_others_reach_them(tmp_path):
    host = "127.0.0.7"
    cluster = EmbeddedCluster.start(replace(HERE, host=host), Release.parse("3.9.1"), tmp_path)
    try:
        metadata = AdminClient(cluster.client()).list_topics(timeout=30)
        assert {broker.host for broker in metadata.brokers.values()} == {host}
        listening = {
            connection.laddr.ip
            for process in psutil.Process(cluster.nodes[0].pid).children()
            for connection in process.net_connections()
            if connection.status == psutil.CONN_LISTEN
        }
        assert {address.removeprefix("::ffff:") for address in listening} == {host}
    finally:
        cluster.stop()


@pytest.mark.broker
def test_brokers_with_kept_data_continue_except_for_groups(tmp_path):
    release = Release.parse("3.9.1")
    cluster = EmbeddedCluster.start(HERE, release, tmp_path)
    admin = AdminClient(cluster.client())
    admin.create_topics([NewTopic("kept", 1)])["kept"].result(30)
    producer = Producer(cluster.client())
    producer.produce("kept", b"value")
    assert producer.flush(30) == 0
    committing = Consumer({**cluster.client(), "group.id": "cut-off"})
    committing.commit(offsets=[TopicPartition("kept", 0, 1)], asynchronous=False)
    committing.close()
    assert position_of(cluster, "cut-off") == 1
    cluster.stop(keep_data=True)
    assert EmbeddedCluster.has_data(tmp_path)
    cluster = EmbeddedCluster.start(HERE, release, tmp_path)
    try:
        consumer = Consumer({**cluster.client(), "group.id": "any"})
        consumer.assign([TopicPartition("kept", 0, 0)])
        [message] = consumer.consume(1, timeout=30)
        assert message.value() == b"value"
        consumer.commit(message, asynchronous=False)  # the log is made anew
        assert position_of(cluster, "cut-off") < 0 < position_of(cluster, "any")
        consumer.close()
    finally:
        cluster.stop()
    assert not EmbeddedCluster.has_data(tmp_path)


@pytest.mark.broker
def test_a_dead_broker_is_made_again_after_an_interruption(tmp_path):
    cluster = EmbeddedCluster.start(HERE, Release.parse("3.9.1"), tmp_path)
    try:
        number = cluster.dead_broker()
        (tmp_path / REGISTERED).unlink()  # as if killed at the end; its data folder is prepared, as before
        assert cluster.dead_broker() == number
        assert (tmp_path / REGISTERED).exists()
        assert set(AdminClient(cluster.client()).list_topics(timeout=30).brokers) == {1}
    finally:
        cluster.stop()
