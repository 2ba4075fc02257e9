"""Toxiproxy between an instance and the brokers: a server of ours on loopback, controlled by its HTTP API."""

import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from onceproof.model.errors import HarnessError, UsageError
from onceproof.processes.process import Process, spawn
from onceproof.processes.waiting import await_condition

MODULE = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"
READY_TIMEOUT = 20.0
ANSWERED_WITHIN = 10.0
# Bytes by proxy, counted when a connection ends: `toxiproxy_proxy_sent_bytes_total{direction="upstream",...} 12`.
BYTES = re.compile(r'^toxiproxy_proxy_(received|sent)_bytes_total\{direction="upstream",.*proxy="([^"]+)".*\} (\S+)$')


def require_toxiproxy(command: str) -> None:
    """Check that there is a Toxiproxy.

    Raises:
        UsageError: there is none.
    """
    if shutil.which(command) is None:
        raise UsageError(
            f"No Toxiproxy: {command!r} is not on the PATH; install toxiproxy-server 2, for example by "
            f"`go install {MODULE}`, or set ONCEPROOF_TOXIPROXY to it."
        )


@dataclass(frozen=True)
class Toxiproxy:
    """A running server. Each of its proxies listens on a port of its own, and connects to one upstream."""

    process: Process
    api: httpx.Client
    listens: dict[str, str] = field(default_factory=dict)  # by the proxy's name, where

    @classmethod
    def start(cls, command: str, port: int, log: Path) -> "Toxiproxy":
        """Start a server whose API listens on this port; it dies with this process.

        Raises:
            HarnessError: it did not start.
        """
        argv = [command, "-host", "127.0.0.1", "-port", str(port), "-proxy-metrics"]
        api = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=ANSWERED_WITHIN, trust_env=False)
        proxy = cls(spawn(argv, log=log), api)
        try:
            await_condition("Toxiproxy to answer", proxy._answers, timeout=READY_TIMEOUT, check=proxy.check_alive)
        except BaseException:
            proxy.stop()
            raise
        return proxy

    def _answers(self) -> bool:
        try:
            return self.api.get("/version").is_success
        except httpx.TransportError:
            return False

    def check_alive(self) -> None:
        """Raise a HarnessError with the exit code of `toxiproxy-server` if it has ended."""
        if not self.process.alive():
            raise HarnessError(f"Toxiproxy {self.process.describe_end()}")

    def add(self, name: str, upstream: str) -> str:
        """Add a proxy; returns the address where it listens.

        Raises:
            HarnessError: it was refused.
        """
        made = self._ask("POST", "/proxies", {"name": name, "listen": "127.0.0.1:0", "upstream": upstream})
        self.listens[name] = made.json()["listen"]
        return self.listens[name]

    def disturb(self, name: str, kind: str, stream: str, **attributes: int) -> None:
        """Put a toxic on one direction of a proxy's connections, open and future ones.

        Raises:
            HarnessError: it was refused.
        """
        toxic = {"name": f"{kind}-{stream}", "type": kind, "stream": stream, "attributes": attributes}
        self._ask("POST", f"/proxies/{name}/toxics", toxic)

    def clear(self, name: str) -> None:
        """Remove all toxics of a proxy.

        Raises:
            HarnessError: it was refused.
        """
        for toxic in self.toxics(name):
            self._ask("DELETE", f"/proxies/{name}/toxics/{toxic}")

    def toxics(self, name: str) -> list[str]:
        """The toxics of a proxy, as it reports them.

        Raises:
            HarnessError: it did not answer.
        """
        return sorted(toxic["name"] for toxic in self._ask("GET", f"/proxies/{name}/toxics").json())

    def count_swallowed(self, name: str) -> int:
        """Bytes that clients sent to a proxy and that it never passed on, on connections that have ended.

        Raises:
            HarnessError: it did not answer.
        """
        counts = {"received": 0, "sent": 0}
        for way, proxy, count in filter(None, map(_parse_count, self._ask("GET", "/metrics").text.splitlines())):
            if proxy == name:
                counts[way] += count
        return counts["received"] - counts["sent"]

    def stop(self) -> None:
        """Close the connection to its API and end it; it has 5 s."""
        self.api.close()
        self.process.terminate(timeout=5)

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        try:
            return self.api.request(method, path, json=body).raise_for_status()
        except httpx.HTTPError as error:
            self.check_alive()
            said = str(error).partition("\n")[0]
            raise HarnessError(
                f"Toxiproxy did not do {method} {path} ({said}); its log is {self.process.log}."
            ) from error


def _parse_count(line: str) -> tuple[str, str, int] | None:
    found = BYTES.match(line)
    return (found[1], found[2], round(float(found[3]))) if found else None
