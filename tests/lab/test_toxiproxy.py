"""Toxiproxy before a server that echoes what it gets; and what happens where there is none."""

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from onceproof.lab.cluster import free_ports
from onceproof.lab.external_brokers import own_cluster
from onceproof.lab.links import LabLinks
from onceproof.lab.toxiproxy import Toxiproxy
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.run_folder import TrialFolder
from onceproof.settings import Settings, get_settings
from tests.conftest import a_trial
from tests.present import present


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while said := self.request.recv(1_000):
                self.request.sendall(said)


@pytest.fixture
def echo() -> Iterator[str]:
    """The address of a server that echoes."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Toxiproxy]:
    """A Toxiproxy."""
    command = get_settings().toxiproxy
    [port] = free_ports(1)
    started = Toxiproxy.start(command, port, tmp_path / "toxiproxy.log")
    yield started
    started.stop()


ANSWERS, SILENT = 30.0, 0.2  # seconds: for an answer that comes, and until one counts as not coming


def connected(address: str, patience: float = ANSWERS) -> socket.socket:
    """A connection that waits so long for an answer."""
    host, _, port = address.partition(":")
    client = socket.create_connection((host, int(port)))
    client.settimeout(patience)
    return client


@pytest.mark.toxiproxy
def test_a_cut_link_passes_nothing_and_a_healed_one_everything(proxy: Toxiproxy, echo: str) -> None:
    reported: list[dict[str, object]] = []
    links = LabLinks(proxy, lambda event, **fields: reported.append({"event": event, **fields}))
    address = proxy.add("node-1", echo)
    assert links.take("instance-1", ()) == {"bootstrap.servers": address}
    assert links.take("instance-2", ["instance-1"]) == {}
    with connected(address) as before:
        before.sendall(b"before")
        assert before.recv(10) == b"before"
        assert links.disturb(1, "cut") == ["timeout-downstream", "timeout-upstream"]
        with connected(address) as meanwhile:
            for client in (before, meanwhile):
                client.settimeout(SILENT)
                client.sendall(b"lost")
                with pytest.raises(TimeoutError):
                    client.recv(10)
            links.clear(1)
    with connected(address) as after:
        after.sendall(b"after")
        assert after.recv(10) == b"after"
    assert links.count_swallowed(1) == len(b"lostlost")
    assert proxy.toxics("node-1") == []
    assert [event["action"] for event in reported] == ["cut", "cleared"]


@pytest.mark.toxiproxy
def test_connections_are_reset(proxy: Toxiproxy, echo: str) -> None:
    links, address = LabLinks(proxy, lambda *_, **__: None), proxy.add("node-1", echo)
    links.disturb(1, "reset")
    with connected(address) as client:
        client.sendall(b"any")
        with pytest.raises(ConnectionResetError):
            client.recv(10)


@pytest.mark.toxiproxy
def test_what_is_slow_comes_late(proxy: Toxiproxy, echo: str) -> None:
    links, address = LabLinks(proxy, lambda *_, **__: None), proxy.add("node-1", echo)
    links.disturb(1, "latency", 5_000)
    with connected(address, SILENT) as client:
        client.sendall(b"any")
        with pytest.raises(TimeoutError):
            client.recv(10)


@pytest.mark.toxiproxy
def test_no_broker_answers_through_a_link_to_nowhere(proxy: Toxiproxy) -> None:
    proxy.add("node-1", "127.0.0.1:1")
    assert LabLinks(proxy, lambda *_, **__: None).time_answer(1, 0.1) is None


@pytest.mark.toxiproxy
def test_errors_of_toxiproxy_name_its_log(proxy: Toxiproxy) -> None:
    with pytest.raises(HarnessError, match=r"^Toxiproxy did not do GET /proxies/none/toxics \(.*404.*toxiproxy\.log"):
        proxy.toxics("none")
    for child in psutil.Process(proxy.process.pid).children():
        child.kill()
    present(proxy.process.popen).wait(10)
    with pytest.raises(HarnessError, match=r"^Toxiproxy ended .*toxiproxy\.log ends with"):
        proxy.toxics("none")


def test_without_toxiproxy_nothing_starts_and_a_remedy_is_given(tmp_path: Path) -> None:
    installation = Settings(toxiproxy="no-such-proxy").installation
    remedy = r"^No Toxiproxy: 'no-such-proxy' is not on the PATH; .*`go install github\.com/.*set ONCEPROOF_TOXIPROXY"
    trial = a_trial("4.3.1", fault="partition")
    with pytest.raises(UsageError, match=remedy), own_cluster(installation, trial, TrialFolder(tmp_path)):
        pass
    assert not list(tmp_path.iterdir())
