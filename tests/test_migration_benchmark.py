"""The benchmark of KAFKA-20254: how it reads `__consumer_offsets`, and what it takes for the broker's words."""

import struct
from dataclasses import dataclass

import pytest

from benchmarks.migration import CELLS, GROUP, SAID, kind_of, told
from onceproof.model.release import Release


@dataclass
class Record:
    """A record of the log, of which only the key is looked at."""

    version: int
    group: str

    def key(self) -> bytes:
        """As Kafka's `GroupMetadataKey` and its like begin: a version, and the group's id with its size."""
        return struct.pack(">hh", self.version, len(self.group)) + self.group.encode() + b"\0\5input\0\0\0\1"


@pytest.mark.parametrize(
    ("version", "kind"), [(0, "position"), (1, "position"), (2, "classic"), (17, "streams"), (23, "streams")]
)
def test_a_record_of_the_group_is_known_by_the_version_of_its_key(version, kind):
    assert kind_of(Record(version, GROUP)) == [kind]


@pytest.mark.parametrize("group", ["another", f"{GROUP}-2", GROUP[:-1], ""])
def test_a_record_of_another_group_is_left_out(group):
    assert kind_of(Record(2, group)) == []


def test_what_is_held_is_told_in_the_order_of_the_log():
    assert told(["position", "position", "streams", "position"]) == "3 position, 1 streams"
    assert told([]) == ""


def test_what_the_broker_says_is_found_in_its_log():
    log = (
        "[2026-11-24] ERROR [GroupCoordinator id=1] Failed to load metadata from __consumer_offsets-0 due to "
        f"java.lang.IllegalStateException: Group {GROUP} is not a streams group. (a)\n"
    )
    assert SAID.findall(log) == [f"Group {GROUP} is not a streams group."]
    assert SAID.findall(log.replace("streams", "consumer")) == []


def test_each_cell_has_brokers_and_an_application_that_know_the_streams_protocol():
    assert all(Release.parse(r).has_streams_protocol for broker, streams, _ in CELLS for r in (broker, streams))
    assert {name for _, _, name in CELLS} == {"migrated", "not compacted", "not migrated"}
