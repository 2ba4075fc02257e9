"""The links between one instance and the brokers, through a proxy, as a fault disturbs them (`faults.base.Links`)."""

import time
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from onceproof.faults.base import LinkFault, LostAnswer
from onceproof.lab.answer_proxy import AnswerProxy
from onceproof.lab.proxies import BrokersProxy, node_name, node_of
from onceproof.lab.toxiproxy import Toxiproxy
from onceproof.model.errors import HarnessError

# What is done to the connections, and in which directions: Toxiproxy's words.
TOXICS: Mapping[LinkFault, tuple[str, str, tuple[str, ...]]] = {
    "cut": ("timeout", "timeout", ("upstream", "downstream")),  # of 0 ms: nothing passes until it is removed
    "reset": ("reset_peer", "timeout", ("upstream",)),  # after 0 ms
    "latency": ("latency", "latency", ("upstream",)),
}

P = TypeVar("P", Toxiproxy, AnswerProxy)


class LabLinks:
    """A link to each broker; one instance at a time goes through them, and the timeline records what is done."""

    def __init__(self, proxy: BrokersProxy | None, note: Callable[..., None]) -> None:
        """No instance goes through them yet.

        Args:
            proxy: has one proxy for each broker, by its name; None if there are no links.
            note: records an event.
        """
        self._proxy, self._note = proxy, note
        self._instance: str | None = None
        self._noted = False  # the answer that was lost

    @property
    def instance(self) -> str | None:
        """The first instance that was started, or its successor; None before that."""
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
            self._toxiproxy.disturb(node_name(node), kind, stream, **{attribute: ms})
        self._note("link", instance=self._instance, node=node, action=how)
        return self._toxiproxy.toxics(node_name(node))

    def clear(self, node: int) -> None:
        """Let everything pass as before."""
        self._toxiproxy.clear(node_name(node))
        self._note("link", instance=self._instance, node=node, action="cleared")

    def count_swallowed(self, node: int) -> int:
        """Bytes for a broker that entered its link and never left it."""
        return self._toxiproxy.count_swallowed(node_name(node))

    def time_answer(self, node: int, within: float) -> float | None:
        """Seconds until a new client that goes through a link has an answer; None if it gets none."""
        begin = time.monotonic()
        client = AdminClient({"bootstrap.servers": self._toxiproxy.listens[node_name(node)], "log_level": 2})
        try:
            client.list_topics(timeout=within)
        except KafkaException:
            return None
        return time.monotonic() - begin

    def lose_answer(self, apis: Collection[int], delay_ms: int | None) -> None:
        """Drop or delay the next answer to a request of these APIs, from whichever broker."""
        self._answer_proxy.lose([*apis], delay_ms)
        self._noted = False

    def report_lost_answer(self) -> LostAnswer | None:
        """The answer that was lost; None as long as none came by."""
        found = self._answer_proxy.report_lost()
        if found is None:
            return None
        lost = LostAnswer(node=node_of(found.pop("name")), **found)
        if not self._noted:
            self._noted = True
            self._note("answer", instance=self._instance, **lost.request)
        return lost

    def lose_no_more(self) -> None:
        """Let all answers pass again."""
        self._answer_proxy.clear()

    @property
    def _toxiproxy(self) -> Toxiproxy:
        return _of_kind(Toxiproxy, self._proxy)

    @property
    def _answer_proxy(self) -> AnswerProxy:
        return _of_kind(AnswerProxy, self._proxy)


def _of_kind(kind: type[P], proxy: BrokersProxy | None) -> P:
    if not isinstance(proxy, kind):
        raise HarnessError(
            f"There is no {kind.__name__} before these brokers; brokers that a trial has for itself have one."
        )
    return proxy
