"""The links between one instance and the brokers, through a proxy, as a fault disturbs them (`faults.base.Links`)."""

import time
from collections.abc import Callable, Collection, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from onceproof.faults.base import LinkFault
from onceproof.lab.toxiproxy import Toxiproxy, node_name
from onceproof.model.errors import HarnessError

# What is done to the connections, and in which directions: Toxiproxy's words.
TOXICS: Mapping[LinkFault, tuple[str, str, tuple[str, ...]]] = {
    "cut": ("timeout", "timeout", ("upstream", "downstream")),  # of 0 ms: nothing passes until it is removed
    "reset": ("reset_peer", "timeout", ("upstream",)),  # after 0 ms
    "latency": ("latency", "latency", ("upstream",)),
}


class Links:
    """A link to each broker; one instance at a time goes through them, and the timeline records what is done."""

    def __init__(self, proxy: Toxiproxy | None, note: Callable[..., None]) -> None:
        """No instance goes through them yet.

        Args:
            proxy: has one proxy for each broker, by its name; None if there are no links.
            note: records an event.
        """
        self._proxy, self._note = proxy, note
        self._instance: str | None = None

    @property
    def instance(self) -> str | None:
        """The instance that goes through them; None if there is none."""
        return self._instance

    def take(self, name: str, running: Collection[str]) -> Mapping[str, str]:
        """The configuration of a starting instance, so that it goes through them: the first one, or its successor."""
        if self._proxy is None or self._instance in running:
            return {}
        self._instance = name
        return {"bootstrap.servers": ",".join(self._proxy.listens.values())}

    def disturb(self, node: int, how: LinkFault, ms: int = 0) -> Collection[str]:
        """Do something to a link; returns what the proxy then says about it."""
        kind, attribute, streams = TOXICS[how]
        for stream in streams:
            self._running_proxy.disturb(node_name(node), kind, stream, **{attribute: ms})
        self._note("link", instance=self._instance, node=node, action=how)
        return self._running_proxy.toxics(node_name(node))

    def clear(self, node: int) -> None:
        """Let everything pass as before."""
        self._running_proxy.clear(node_name(node))
        self._note("link", instance=self._instance, node=node, action="cleared")

    def swallowed(self, node: int) -> int:
        """Bytes for a broker that entered its link and never left it."""
        return self._running_proxy.swallowed(node_name(node))

    def answered_after(self, node: int, within: float) -> float | None:
        """Seconds until a new client that goes through a link has an answer; None if it gets none."""
        begin = time.monotonic()
        client = AdminClient({"bootstrap.servers": self._running_proxy.listens[node_name(node)], "log_level": 2})
        try:
            client.list_topics(timeout=within)
        except KafkaException:
            return None
        return time.monotonic() - begin

    @property
    def _running_proxy(self) -> Toxiproxy:
        if self._proxy is None:
            raise HarnessError("There is no proxy before these brokers; brokers that a trial has for itself have one.")
        return self._proxy
