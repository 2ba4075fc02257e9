"""Somebody else's brokers."""

from dataclasses import replace

from onceproof.lab.external_brokers import ExternalCluster
from onceproof.model.cell import MARK
from onceproof.model.client_properties import ClientProperties
from onceproof.model.release import Release
from tests.conftest import HERE


def external_cluster(servers: str = "127.0.0.1:1", prefix: str = MARK, **values: str) -> ExternalCluster:
    """Brokers that are reached there, by a team with this prefix; by default nobody is there."""
    properties = {"bootstrap.servers": servers, **{key.replace("_", "."): value for key, value in values.items()}}
    return ExternalCluster(replace(HERE, prefix=prefix), Release(3, 9, 1), ClientProperties.of(properties, "a test"))
