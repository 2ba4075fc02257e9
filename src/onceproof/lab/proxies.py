"""The proxies between an instance and the brokers: what any of them does."""

from collections.abc import Mapping
from typing import Protocol


class BrokersProxy(Protocol):
    """A running proxy, which listens on a port of its own for each broker behind it."""

    @property
    def listens(self) -> Mapping[str, str]:
        """Where, by the broker's name there."""

    def add(self, name: str, upstream: str) -> str:
        """Put it before a broker; returns the address where it listens.

        Raises:
            HarnessError: it was refused.
        """

    def check_alive(self) -> None:
        """Raise a HarnessError if it has ended."""

    def stop(self) -> None:
        """Stop it."""


def node_name(node: int) -> str:
    """The name of a broker there."""
    return f"node-{node}"


def node_of(name: str) -> int:
    """The node id of the broker of this name."""
    return int(name.removeprefix("node-"))
