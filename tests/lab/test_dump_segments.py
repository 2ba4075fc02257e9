"""What `DumpLogSegments` prints, in the words of old and of new brokers, becomes entries; damage is told."""

from pathlib import Path

import pytest

from onceproof.lab.log_dump import LogDump, Logs
from onceproof.lab.segments import (
    drop_repeated,
    of_the_trial,
    read_segments,
    segment_files,
    write_segments,
)
from onceproof.model.errors import HarnessError
from onceproof.model.segments import LogEntry, partition_of_name
from tests.specimens.segments import SPECIMENS

LOGS = Logs("app", {"app-input": "input", "app-output": "output"})
HEAD = "isvalid: true"


def dumping(log: str) -> str:
    return f"Dumping /data-1/{log}/00000000000000000000.log"


def batch(first: int, last: int, sequence: int, *, control: bool = False, epoch: int = 0, more: str = "") -> str:
    of_last = sequence if control else sequence + last - first
    return (
        f"baseOffset: {first} lastOffset: {last} count: {last - first + 1} baseSequence: {sequence} lastSequence: "
        f"{of_last} producerId: 4 producerEpoch: {epoch} partitionLeaderEpoch: 0 isTransactional: true isControl: "
        f"{str(control).lower()} {more}position: 0 CreateTime: 17 size: 78 magic: 2 compresscodec: none crc: 5 isvalid: true"
    )


def record(offset: int, rest: str) -> str:
    return f"| offset: {offset} CreateTime: 17 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] {rest}"


def entries(*lines: str) -> list[LogEntry]:
    return list(LogDump(LOGS).entries(f"{line}\n".encode() for line in lines))


def test_markers_of_other_applications_are_left_out() -> None:
    own = LogEntry("position", "__consumer_offsets", 2, 0, 0, producer=4, epoch=0, of_role="input", position=1)
    ended = LogEntry("COMMIT", "__consumer_offsets", 2, 1, 1, producer=4, epoch=0)
    decided = LogEntry(
        "PrepareAbort", "__transaction_state", 0, 7, 7, producer=5, epoch=0, of_role="__consumer_offsets"
    )
    without_positions = LogEntry("ABORT", "__consumer_offsets", 2, 2, 2, producer=5, epoch=0)
    strange = LogEntry("COMMIT", "__consumer_offsets", 2, 3, 3, producer=6, epoch=0)
    reported = [own, ended, without_positions, decided]
    assert of_the_trial([own, ended, without_positions, strange, decided]) == reported


def test_batches_and_markers_of_a_topic() -> None:
    reported = entries(
        dumping("app-output-2"),
        "Log starting offset: 0",
        batch(0, 1, 0),
        record(0, "key: \x00\x00 payload: \x01"),
        record(1, "key: a payload: baseOffset: no batch"),
        batch(2, 2, -1, control=True, epoch=1, more="deleteHorizonMs: OptionalLong.empty "),
        record(2, "endTxnMarker: COMMIT coordinatorEpoch: 0"),
        batch(3, 3, 0, epoch=1),
        batch(4, 4, -1, control=True, epoch=2),
        record(4, "endTxnMarker: ABORT coordinatorEpoch: 0"),
    )
    assert reported == [
        LogEntry("data", "output", 2, 0, 1, 4, 0, 0, 1),
        LogEntry("COMMIT", "output", 2, 2, 2, 4, 1),
        LogEntry("data", "output", 2, 3, 3, 4, 1, 0, 0),
        LogEntry("ABORT", "output", 2, 4, 4, 4, 2),
    ]


OLD_POSITION = "key: offset_commit::group=app,partition=app-input-1 payload: offset=92,metadata=AgAA"
NEW_POSITION = (
    'key: {"type":"1","data":{"group":"app","topic":"app-input","partition":1}} '
    'payload: {"version":"3","data":{"offset":92,"leaderEpoch":-1,"metadata":"AgAA","commitTimestamp":17}}'
)


@pytest.mark.parametrize("message", [OLD_POSITION, NEW_POSITION])
def test_positions_of_the_application(message: str) -> None:
    others = [
        record(0, message.replace("app,", "other,").replace('"app"', '"other"')),
        record(1, 'key: {"type":"2","data":{"group":"app"}} payload: {"version":"3","data":{}}'),
    ]
    found = entries(dumping("__consumer_offsets-3"), batch(0, 2, 0), *others, record(2, message))
    assert found == [
        LogEntry(
            "position", "__consumer_offsets", 3, 2, 2, 4, 0, of_role="input", of_partition=1, position=92, timestamp=17
        )
    ]  # fmt: skip


OLD_DECISION = (
    "key: transaction_metadata::transactionalId=app-8a3f-1 payload: producerId:6,producerEpoch:2,state=PrepareAbort,"
    "partitions=[app-output-1,__consumer_offsets-3],txnLastUpdateTimestamp=17,txnTimeoutMs=10000"
)
NEW_DECISION = (
    'key: {"type":"0","data":{"transactionalId":"app-8a3f-1"}} payload: {"version":"1","data":{"producerId":6,'
    '"producerEpoch":2,"transactionStatus":3,"transactionPartitions":[{"topic":"app-output","partitionIds":[1]},'
    '{"topic":"__consumer_offsets","partitionIds":[3]}]}}'
)


@pytest.mark.parametrize("message", [OLD_DECISION, NEW_DECISION])
def test_decisions_about_transactions_of_the_application(message: str) -> None:
    undecided = message.replace("PrepareAbort", "Ongoing").replace('"transactionStatus":3', '"transactionStatus":1')
    others = [record(0, message.replace("app-8a3f", "app2-8a3f")), record(1, undecided)]
    found = entries(dumping("__transaction_state-0"), batch(0, 2, 0), *others, record(2, message))
    at = ("PrepareAbort", "__transaction_state", 0, 2, 2, 6, 2)
    assert found == [
        LogEntry(*at, of_role="output", of_partition=1),
        LogEntry(*at, of_role="__consumer_offsets", of_partition=3),
    ]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (batch(1, 1, 0), "is not whole"),
        (batch(0, 1, 0).replace("count: 2", "count: 1"), "is not whole"),
        (batch(0, 1, 0).replace("isvalid: true", "isvalid: false"), "is damaged at offset 0"),
        ("baseOffset: 0 in other words", "what Onceproof does not understand"),
    ],
)
def test_a_log_that_cannot_be_judged_is_told(line: str, sentence: str) -> None:
    with pytest.raises(HarnessError, match=sentence):
        entries(dumping("app-output-0"), line)


def test_offsets_continue_over_segments_and_restart_per_log() -> None:
    lines = [dumping("app-output-0"), batch(0, 1, 0), dumping("app-output-0"), batch(2, 2, 2)]
    assert len(entries(*lines, dumping("app-output-1"), batch(0, 0, 0))) == 3


def test_segments_are_taken_from_the_longest_replica(tmp_path: Path) -> None:
    sizes = {"1/app-output-0": 5, "2/app-output-0": 9, "1/other-0": 7, "1/__transaction_state-0": 1}
    sizes |= {f"1/__consumer_offsets-{p}": 3 for p in range(4)}
    for name, size in sizes.items():
        folder = tmp_path / f"data-{name}"
        folder.mkdir(parents=True)
        (folder / "00000000000000000000.log").write_bytes(b"x" * size)
    mine = f"__consumer_offsets-{partition_of_name('app', 4)}"
    found = [(role, file.parent.parent.name, file.parent.name) for role, file in segment_files(tmp_path, LOGS)]
    assert sorted(found) == sorted(
        [
            ("__consumer_offsets", "data-1", mine),
            ("__transaction_state", "data-1", "__transaction_state-0"),
            ("output", "data-2", "app-output-0"),
        ]
    )


def test_a_marker_that_the_next_coordinator_writes_again_is_one() -> None:
    def marker(first: int, kind: str = "COMMIT", epoch: int = 0) -> LogEntry:
        return LogEntry(kind, "output", 0, first, first, 7, epoch)

    def decision(first: int) -> LogEntry:
        return LogEntry("PrepareCommit", "__transaction_state", 1, first, first, 7, 0, of_role="output", of_partition=0)

    batch, other = LogEntry("data", "output", 0, 0, 3, 7, 0), LogEntry("data", "output", 0, 6, 8, 8, 0)
    one, again, aborted = marker(4), marker(5), marker(9, "ABORT", 1)
    assert drop_repeated([batch, one, again, other, aborted, decision(1), decision(2)]) == [
        batch, one, other, aborted, decision(1), decision(2),
    ]  # fmt: skip
    # The second transaction wrote nothing there.
    reported = [batch, one, again, decision(1), decision(2)]
    assert drop_repeated(reported) == reported


def test_a_group_has_its_partition_where_the_brokers_put_it() -> None:
    # Seen on brokers 3.9.1 and 4.3.1; the hash code of the second is negative.
    assert partition_of_name("onceproof.20261121T230000-aaaa.enumerator-DEFAULT_CONFIG-s3.4.1-b3.9.1-t1", 4) == 1
    assert partition_of_name("onceproof.20261121T230000-aaaa.crash-DEFAULT_CONFIG-s4.3.1-b4.3.1-t1", 4) == 3


def test_entries_are_kept_as_they_are(tmp_path: Path) -> None:
    entries = [entry for specimen in SPECIMENS for entry in specimen.entries]
    write_segments(tmp_path / "segments.parquet", entries)
    assert read_segments(tmp_path / "segments.parquet") == entries
