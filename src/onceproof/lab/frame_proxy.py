"""A proxy before brokers that knows requests and answers, and drops or delays a single answer on demand.

Run as a script: `python frame_proxy.py`. Each line of its standard input is an order in JSON (`Proxy.obey`), which it
carries out and answers by a line of its standard output. It ends with its input.

On the wire a request and an answer are frames: a length of 4 bytes, and as many bytes. A request begins with the key
and the version of its API, a correlation id and the id of its client; its answer begins with the same correlation id.
All frames pass as they came, but for the one that is chosen.

Standard library only, and started without site-packages: it serves one trial, and is as small as what it must know.
"""

import asyncio
import contextlib
import json
import struct
import sys
import time
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

LENGTH, CORRELATION = struct.Struct(">I"), struct.Struct(">i")
HEADER = struct.Struct(">hhih")  # of a request: key and version of its API, correlation id, size of the client's id
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
PATIENCE = 5.0  # seconds that a broker has to take a connection


class RequestHeader(NamedTuple):
    """The header of a request."""

    api: int
    version: int
    correlation: int
    client: str | None

    @classmethod
    def of(cls, frame: bytes) -> "RequestHeader | None":
        """That of a frame with its length in front; None if it is too short to have one."""
        if len(frame) < LENGTH.size + HEADER.size:
            return None
        api, version, correlation, size = HEADER.unpack_from(frame, LENGTH.size)
        begin = LENGTH.size + HEADER.size
        client = None if size < 0 else frame[begin : begin + size].decode(errors="replace")
        return cls(api, version, correlation, client)


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The next frame with its length; the part of it that came, where the connection ends; nothing at the end."""
    length = b""
    try:
        length = await reader.readexactly(LENGTH.size)
        return length + await reader.readexactly(*LENGTH.unpack(length))
    except asyncio.IncompleteReadError as error:
        return length + error.partial
    except ConnectionError:  # it was reset
        return b""


class Connection:
    """A client's connection, and the one to the broker behind it."""

    def __init__(self, name: str, client: Streams, broker: Streams) -> None:
        """Nothing has passed yet."""
        self.name = name
        self.client, self.broker = client, broker
        self.waiting: dict[int, RequestHeader] = {}  # requests without an answer, by their correlation id
        self.ended = asyncio.Event()  # by the client

    async def pass_requests(self) -> None:
        """Pass what the client sends, until it ends the connection."""
        (reader, _), (_, writer) = self.client, self.broker
        try:
            while frame := await read_frame(reader):
                if request := RequestHeader.of(frame):
                    self.waiting[request.correlation] = request
                writer.write(frame)
                await writer.drain()
        finally:
            self.ended.set()
            _end_writing(writer)

    def request_of(self, frame: bytes) -> RequestHeader | None:
        """The request that a frame of the broker answers."""
        if len(frame) < LENGTH.size + CORRELATION.size:
            return None
        return self.waiting.pop(CORRELATION.unpack_from(frame, LENGTH.size)[0], None)

    def close(self) -> None:
        """End both."""
        for _, writer in (self.client, self.broker):
            writer.close()


class Lost:
    """An answer that is kept from its client, for a time or for good."""

    def __init__(self, connection: Connection, request: RequestHeader, delay: float | None) -> None:
        """It has just come from the broker."""
        self._began = time.monotonic()
        self._connection, self._delay = connection, delay
        self._is_cleared = False
        self.facts: dict[str, Any] = {
            **request._asdict(),
            "name": connection.name,
            "at": round(time.time() * 1_000),  # epoch milliseconds
            "behind": 0,  # answers to later requests of the connection that did not pass either
            "passed_ms": None,  # after how long the client got it
            "ended_ms": None,  # after how long the client ended the connection without it
        }

    async def passes(self) -> bool:
        """Whether it is to be passed after all, as it was only late; waits for that, and returns when the client ends.

        A broker answers the requests of a connection in their order, and TCP delivers the answers so. A client that got
        a later answer without the one before would meet an error that no network causes. So none passes behind one that
        is dropped, until the client ends the connection, as it does when the request has timed out.
        """
        swallowing = asyncio.create_task(self._swallow()) if self._delay is None else None
        try:
            await asyncio.wait_for(self._connection.ended.wait(), self._delay)
        except TimeoutError:
            self._keep_time("passed_ms")
            return True
        if not self._is_cleared:
            self._keep_time("ended_ms")
        if swallowing:
            await swallowing
        return False

    async def _swallow(self) -> None:
        while await read_frame(self._connection.broker[0]):
            self.facts["behind"] += 1

    def _keep_time(self, fact: str) -> None:
        self.facts[fact] = round((time.monotonic() - self._began) * 1_000)

    def clear(self) -> None:
        """End the connection that lacks the answer, if the client has not."""
        if self._delay is None and not self._connection.ended.is_set():
            self._is_cleared = True
            self._connection.close()


class Proxy:
    """A server before each broker."""

    def __init__(self) -> None:
        """Before none yet."""
        self._servers: list[asyncio.Server] = []
        self._serving: set[asyncio.Task[None] | None] = set()  # asyncio keeps none whose client has ended its side
        self._apis: Collection[int] = ()  # of which the next answer is lost
        self._delay: float | None = None  # seconds; None: for good
        self._lost: Lost | None = None

    async def obey(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Carry out an order; returns the answer to it.

        `add` (`name`, `host`, `port`) puts a server before a broker, and answers where it listens. `lose` (`apis`,
        `delay_ms`) drops the next answer to a request of these APIs, or delays it. `lost` answers which one that was.
        `clear` takes `lose` back, and ends the connection that lacks an answer.
        """
        match order["do"]:
            case "add":
                server = await asyncio.start_server(partial(self._serve, order), "127.0.0.1")
                self._servers.append(server)
                return {"port": server.sockets[0].getsockname()[1]}
            case "lose":
                self._apis, self._lost = order["apis"], None
                self._delay = None if order["delay_ms"] is None else order["delay_ms"] / 1_000
            case "lost":
                return {"lost": self._lost and self._lost.facts}
            case "clear":
                self._apis = ()
                if self._lost:
                    self._lost.clear()
        return {}

    async def _serve(
        self, behind: Mapping[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        self._serving.add(task)
        try:
            await self._serve_connection(behind, (reader, writer))
        finally:
            self._serving.discard(task)

    async def _serve_connection(self, behind: Mapping[str, Any], client: Streams) -> None:
        try:
            opened = asyncio.open_connection(behind["host"], behind["port"])
            connection = Connection(behind["name"], client, await asyncio.wait_for(opened, PATIENCE))
        except OSError:  # it could not be reached in time
            client[1].close()
            return
        try:
            with contextlib.suppress(ConnectionError):
                await asyncio.gather(connection.pass_requests(), self.pass_answers(connection))
        finally:
            connection.close()

    async def pass_answers(self, connection: Connection) -> None:
        """Pass what the broker sends, until it ends the connection."""
        (reader, _), (_, writer) = connection.broker, connection.client
        try:
            while frame := await read_frame(reader):
                lost = self._loses(connection, connection.request_of(frame))
                if lost and not await lost.passes():
                    return
                writer.write(frame)
                await writer.drain()
        finally:
            _end_writing(writer)

    def _loses(self, connection: Connection, request: RequestHeader | None) -> Lost | None:
        """The answer to this request, if it is the one that is to be lost; no other is."""
        if request is None or request.api not in self._apis:
            return None
        self._apis, self._lost = (), Lost(connection, request, self._delay)
        return self._lost


def _end_writing(writer: asyncio.StreamWriter) -> None:
    """Say that nothing more comes; who listens may be gone already."""
    with contextlib.suppress(OSError, RuntimeError):
        writer.write_eof()


async def main() -> None:
    """Obey until the input ends."""
    proxy, orders = Proxy(), asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while order := await orders.readline():
        print(json.dumps(await proxy.obey(json.loads(order))), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
