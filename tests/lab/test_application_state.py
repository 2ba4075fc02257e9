"""What a store of an application holds on disk, beside what its changelog says."""

import pytest

from onceproof.lab.application_state import differing
from onceproof.lab.task_directory import StoreOnDisk
from onceproof.model.timeline import Event
from onceproof.scenarios.app import observe
from tests.conftest import a_trial

CHANGES = [(0, b"a", b"1"), (1, b"b", b"2"), (3, b"a", b"3"), (4, b"b", None), (5, b"c", b"5")]
HELD = {b"a": b"3", b"c": b"5"}


def on_disk(
    entries: dict[bytes, bytes], position: int | None = 6, *, segments: bool = False, unknown: tuple[str, ...] = ()
) -> StoreOnDisk:
    return StoreOnDisk("1_2", "sums", position, segments, unknown, entries)


def test_the_partition_is_that_of_its_task():
    assert on_disk({}).partition == 2


@pytest.mark.parametrize(
    ("store", "wrong"),
    [
        (on_disk(HELD), []),
        (on_disk({b"a": b"1", b"b": b"2"}, 3), []),  # up to the offset that it claims
        (on_disk(HELD | {b"a": b"1"}), [(b"a", b"3", b"1")]),
        (on_disk({b"c": b"5"}), [(b"a", b"3", None)]),
        (on_disk(HELD | {b"b": b"2"}), [(b"b", None, b"2")]),
        (on_disk({b"a": b"3", b"d": b"9"}, segments=True), []),  # either drops what is old
        (on_disk({b"a": b"1"}, segments=True), [(b"a", b"3", b"1")]),
        (on_disk({}, segments=True), []),
        (
            on_disk({b"\0a": b"3"}, segments=True),
            "it has none of the keys of its changelog, so it writes them in a form of its own",
        ),
        (on_disk(HELD, None), "it does not claim up to which offset it has its changelog"),
        (on_disk(HELD, unknown=("a", "b")), "Onceproof does not understand its column families a, b"),
    ],
)
def test_a_store_is_what_its_changelog_folds_to(store, wrong):
    assert differing(store, CHANGES) == wrong


def a_store(**fields: object) -> Event:
    held = {"instance": "instance-1", "type": "active", "store": "sums", "partition": 2, "position": 6, "entries": 2}
    return {"t": 1, "source": "driver", "event": "store", **held, "wrong": 0, "first": [], **fields}


@pytest.mark.parametrize(
    ("expected", "anomaly", "observed"),
    [
        ({}, None, "2 entries"),
        ({"wrong": 1, "first": ["a: 1, where its changelog says 3"]}, "wrong-store", "1 that differ: a: 1, where"),
        ({"wrong": 1, "first": ["a"], "type": "standby"}, "wrong-standby", "1 that differ: a"),
    ],
)
def test_a_store_that_differs_is_an_anomaly(expected, anomaly, observed):
    [compared] = observe(a_trial("4.3.1"), [{"t": 0, "source": "driver", "event": "phase"}, a_store(**expected)])
    assert (compared.promise, compared.anomaly) == ("stores", anomaly)
    assert compared.observed.startswith(observed)
    assert compared.place == f"{expected.get('type', 'active')} store sums of instance-1, partition 2, at offset 6"
