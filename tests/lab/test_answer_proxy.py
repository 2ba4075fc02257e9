"""The proxy that loses single answers: frames split anywhere, before a server that answers, and as a process."""

import asyncio
import contextlib
import gc
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onceproof.lab.answer_proxy import AnswerProxy
from onceproof.lab.frame_proxy import Connection, Proxy, RequestHeader, read_frame
from onceproof.lab.links import LabLinks
from onceproof.model.errors import HarnessError
from tests.lab.test_toxiproxy import ANSWERS, SILENT, connected
from tests.present import present

HEARTBEAT, FETCH = 12, 1


def framed(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def request(api: int, correlation: int, client: str | None = "a-client", body: bytes = b"") -> bytes:
    name = struct.pack(">h", -1) if client is None else struct.pack(">h", len(client.encode())) + client.encode()
    return framed(struct.pack(">hhi", api, 4, correlation) + name + body)


def answer(correlation: int, body: bytes = b"") -> bytes:
    return framed(struct.pack(">i", correlation) + body)


# --- frames, split anywhere ------------------------------------------------------------------------------------


class Sink:
    """What a peer has been sent."""

    def __init__(self) -> None:
        self.data, self.has_end = b"", False

    def write(self, data: bytes) -> None:
        assert not self.has_end
        self.data += data

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def write_eof(self) -> None:
        self.has_end = True


async def feed(reader: asyncio.StreamReader, data: bytes, cuts: Sequence[int]) -> None:
    """Deliver bytes in pieces, each of which is looked at before the next one comes."""
    places = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    for begin, end in pairwise(places):
        reader.feed_data(data[begin:end])
        await settle()


async def settle() -> None:
    for _ in range(12):
        await asyncio.sleep(0)


CUTS = st.lists(st.integers(0, 5_000), max_size=25)
ASKED = st.lists(
    st.tuples(st.sampled_from((HEARTBEAT, FETCH, 26)), st.none() | st.text(max_size=8), st.binary(max_size=60)),
    min_size=1,
    max_size=8,
)
RESTS = st.sampled_from((b"", b"\0", b"\0\0\0\5a"))  # of a frame, when the connection ends


@settings(deadline=None)
@given(
    st.data(),
    ASKED,
    st.lists(st.binary(max_size=60), min_size=8, max_size=8),
    st.tuples(CUTS, CUTS),
    st.tuples(RESTS, RESTS),
    st.sampled_from((None, "drop", "delay")),
)
def test_all_frames_but_the_lost_one_pass_however_they_are_split(
    data: st.DataObject,
    asked: Sequence[tuple[int, str | None, bytes]],
    bodies: Sequence[bytes],
    cuts: tuple[Sequence[int], Sequence[int]],
    rests: tuple[bytes, bytes],
    how: str | None,
) -> None:
    ids = data.draw(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=len(asked), max_size=len(asked), unique=True))
    requests = b"".join(
        request(api, number, client, body) for (api, client, body), number in zip(asked, ids, strict=True)
    )
    answers = [answer(number, body) for number, body in zip(ids, bodies, strict=False)]
    lost = next((place for place, (api, *_) in enumerate(asked) if api == HEARTBEAT), None) if how else None

    async def carry() -> tuple[Sink, Sink, dict[str, Any] | None]:
        proxy, client, broker = Proxy(), asyncio.StreamReader(), asyncio.StreamReader()
        to_client, to_broker = Sink(), Sink()
        connection = Connection("node-1", (client, to_client), (broker, to_broker))  # type: ignore[arg-type]
        if how:
            await proxy.obey({"do": "lose", "apis": [HEARTBEAT], "delay_ms": None if how == "drop" else 0})
        carried = asyncio.gather(connection.pass_requests(), proxy.pass_answers(connection))
        await feed(client, requests + rests[0], cuts[0])  # so all are in flight
        await feed(broker, b"".join(answers) + rests[1], cuts[1])
        client.feed_eof()
        await settle()
        broker.feed_eof()
        await asyncio.wait_for(carried, ANSWERS)
        return to_client, to_broker, (await proxy.obey({"do": "lost"})).get("lost")

    to_client, to_broker, found = asyncio.run(carry())
    assert to_broker.data == requests + rests[0]
    assert to_client.has_end
    assert to_broker.has_end
    if lost is None or how == "delay":
        assert to_client.data == b"".join(answers) + rests[1]
    else:
        assert to_client.data == b"".join(answers[:lost])
        assert present(found)["behind"] == len(answers) - lost - 1 + bool(rests[1])
        assert present(found)["ended_ms"] is not None
    if lost is not None:
        api, client, _ = asked[lost]
        reported = {"api": api, "version": 4, "correlation": ids[lost], "client": client, "name": "node-1"}
        assert reported.items() <= present(found).items()


def test_a_frame_that_is_too_short_asks_nothing() -> None:
    assert RequestHeader.of(framed(b"\0\1\0\4\0")) is None


def test_a_connection_that_is_reset_has_no_further_frame() -> None:
    async def read() -> bytes:
        reader = asyncio.StreamReader()
        reader.set_exception(ConnectionResetError())
        return await read_frame(reader)

    assert asyncio.run(read()) == b""


# --- as a process ----------------------------------------------------------------------------------------------


class _Broker(socketserver.StreamRequestHandler):
    """Answers each request by its correlation id and its body."""

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while length := self.rfile.read(4):
                frame = self.rfile.read(*struct.unpack(">I", length))
                self.wfile.write(framed(frame[4:8] + frame[10:]))


@pytest.fixture
def broker() -> Iterator[str]:
    """The address of a server that answers."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Broker) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[AnswerProxy]:
    """A proxy."""
    started = AnswerProxy.start(tmp_path / "answer-proxy.log")
    yield started
    started.stop()
    assert not started.process.alive()
    assert (tmp_path / "answer-proxy.log").read_text() == ""


Events = list[dict[str, Any]]


@pytest.fixture
def links(proxy: AnswerProxy) -> tuple[LabLinks, Events]:
    """Its links, and what they note."""
    events: Events = []
    return LabLinks(proxy, lambda event, **fields: events.append({"event": event, **fields})), events


def exchange(client: socket.socket, api: int, correlation: int) -> bytes:
    asked = request(api, correlation, body=b"body")
    client.sendall(asked)
    return client.recv(100)


def test_one_answer_is_dropped_and_a_retry_gets_the_next(
    links: tuple[LabLinks, Events], proxy: AnswerProxy, broker: str
) -> None:
    of_instance, events = links
    address = proxy.add("node-3", broker)
    assert of_instance.take("instance-1", ()) == {"bootstrap.servers": address}
    of_instance.lose_answer([HEARTBEAT, 68], None)
    assert of_instance.report_lost_answer() is None
    with connected(address) as other, connected(address) as client:
        assert exchange(client, FETCH, 7) == answer(7, b"a-clientbody")
        client.settimeout(SILENT)
        for api, correlation in ((HEARTBEAT, 8), (FETCH, 9)):
            with pytest.raises(TimeoutError):
                exchange(client, api, correlation)
        assert exchange(other, HEARTBEAT, 8) == answer(8, b"a-clientbody")
        lost = present(of_instance.report_lost_answer())
        assert (lost.node, lost.api, lost.version, lost.correlation, lost.client) == (3, HEARTBEAT, 4, 8, "a-client")
        assert (lost.behind, lost.passed_ms, lost.ended_ms) == (1, None, None)
    with connected(address) as again:
        assert exchange(again, HEARTBEAT, 10) == answer(10, b"a-clientbody")
        lost = present(of_instance.report_lost_answer())
    assert present(lost.ended_ms) >= 2 * SILENT * 1_000
    assert events == [{"event": "answer", "instance": "instance-1", **lost.request}]


def test_an_answer_that_is_late_keeps_back_those_behind_it(
    links: tuple[LabLinks, Events], proxy: AnswerProxy, broker: str
) -> None:
    of_instance, _ = links
    address = proxy.add("node-1", broker)
    of_instance.lose_answer([HEARTBEAT], 300)
    with connected(address) as client:
        client.sendall(request(HEARTBEAT, 1) + request(HEARTBEAT, 2))
        expected = answer(1, b"a-client") + answer(2, b"a-client")
        received = b""
        while len(received) < len(expected):
            received += client.recv(100)
        assert received == expected
        lost = present(of_instance.report_lost_answer())
    assert (lost.correlation, lost.ended_ms) == (1, None)
    assert present(lost.passed_ms) >= 300


def test_a_connection_that_lacks_an_answer_ends_with_the_fault(
    links: tuple[LabLinks, Events], proxy: AnswerProxy, broker: str
) -> None:
    of_instance, _ = links
    address = proxy.add("node-1", broker)
    of_instance.lose_answer([HEARTBEAT], None)
    with connected(address) as client:
        client.settimeout(SILENT)
        with pytest.raises(TimeoutError):
            exchange(client, HEARTBEAT, 1)
        of_instance.lose_no_more()
        client.settimeout(ANSWERS)
        assert client.recv(100) == b""
    lost = present(of_instance.report_lost_answer())
    assert (lost.passed_ms, lost.ended_ms) == (None, None)
    of_instance.lose_answer([HEARTBEAT], None)
    of_instance.lose_no_more()
    with connected(address) as client:
        assert exchange(client, HEARTBEAT, 2) == answer(2, b"a-clientbody")
    assert of_instance.report_lost_answer() is None


def test_a_half_closed_connection_stays_until_the_broker_ends_it() -> None:
    complaints: list[dict[str, Any]] = []

    async def carry() -> bytes:
        asyncio.get_running_loop().set_exception_handler(lambda _, complaint: complaints.append(complaint))
        proxy, has_asked = Proxy(), asyncio.Event()

        async def answer_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            assert await reader.read() == request(FETCH, 1)
            has_asked.set()
            await collected.wait()
            writer.write(answer(1))
            writer.close()

        collected = asyncio.Event()
        async with await asyncio.start_server(answer_late, "127.0.0.1") as broker:
            port = broker.sockets[0].getsockname()[1]
            added = await proxy.obey({"do": "add", "name": "node-1", "host": "127.0.0.1", "port": port})
            reader, writer = await asyncio.open_connection("127.0.0.1", added["port"])
            writer.write(request(FETCH, 1))
            writer.write_eof()
            await asyncio.wait_for(has_asked.wait(), ANSWERS)
            for _ in range(3):
                gc.collect()
                await settle()
            collected.set()
            return await asyncio.wait_for(reader.read(), ANSWERS)

    assert (asyncio.run(carry()), complaints) == (answer(1), [])


def test_a_connection_without_a_broker_ends(proxy: AnswerProxy) -> None:
    with connected(proxy.add("node-1", "127.0.0.1:1")) as client:
        assert client.recv(10) == b""


def test_a_proxy_that_ended_is_named_with_its_log(tmp_path: Path) -> None:
    proxy = AnswerProxy.start(tmp_path / "answer-proxy.log")
    proxy.check_alive()
    proxy.add("node-1", "127.0.0.1:1")  # so it is there
    for child in psutil.Process(proxy.process.pid).children():
        child.kill()
    present(proxy.process.popen).wait(10)
    with pytest.raises(
        HarnessError, match=r"^The proxy before the brokers ended \(exit code 137\); .*answer-proxy\.log"
    ):
        proxy.check_alive()
    with pytest.raises(HarnessError, match=r"^The proxy before the brokers did not do clear; .*answer-proxy\.log"):
        proxy.clear()
    proxy.stop()


@pytest.mark.parametrize("proxied", [True, False])
def test_links_without_the_proxy_of_a_fault_are_told(proxy: AnswerProxy, proxied: bool) -> None:
    links = LabLinks(proxy if proxied else None, lambda *_, **__: None)
    with pytest.raises(HarnessError, match=r"^There is no Toxiproxy before these brokers"):
        links.clear(1)
    with pytest.raises(HarnessError, match=r"^There is no AnswerProxy before these brokers"):
        LabLinks(None, lambda *_, **__: None).lose_no_more()
