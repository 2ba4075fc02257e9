"""External brokers: people name them, we neither start nor stop them, and leave nothing behind."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from onceproof.installation import Installation
from onceproof.lab.alive import alive, group_of
from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.lab.permissions import check_permissions, check_quotas
from onceproof.lab.plan import check_capabilities
from onceproof.lab.sweep import remove_run
from onceproof.model.capability import BY_PROXY, OF_CLAIMED, Capability
from onceproof.model.cell import Trial
from onceproof.model.client_properties import JAAS, PROTOCOL, SERVERS, ClientProperties, host_of
from onceproof.model.errors import UsageError
from onceproof.model.matrices import BROKER
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.scenarios import scenario

BROKER_RELEASE = Release.parse(BROKER)
REACHED_WITHIN = 10.0  # seconds
# What to check when librdkafka reports an error; for other errors, where the brokers are.
REMEDIES = {
    KafkaError._AUTHENTICATION: f"check {JAAS}",
    KafkaError._SSL: "check the PEM files of ssl.truststore and ssl.keystore, and that they have not expired",
}
REMEDY = f"check {SERVERS}, {PROTOCOL}, and that the brokers let these certificates in"


@dataclass(frozen=True)
class ExternalCluster(Cluster):
    """Brokers of which we know how to reach them, and which release they are claimed to be."""

    is_claimed: ClassVar[bool] = True

    installation: Installation = field(repr=False)
    release: Release
    properties: ClientProperties = field(repr=False)

    @classmethod
    def read(cls, installation: Installation, file: Path, release: Release = BROKER_RELEASE) -> "ExternalCluster":
        """The brokers of a client.properties, which are said to be of this release.

        Raises:
            UsageError: the file cannot be read, or asks for something impossible.
        """
        return cls(installation, release, ClientProperties.read(file))

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities without a hold of the brokers' machine."""
        return OF_CLAIMED

    @property
    def bootstrap_servers(self) -> str:  # type: ignore[override]
        """Where they are."""
        return self.properties.bootstrap_servers

    @property
    def prefix(self) -> str:
        """The one of this installation: a team may have its own."""
        return self.installation.prefix

    def client(self) -> dict[str, Any]:
        """Configuration of a confluent-kafka client."""
        return {**super().client(), **self.properties.librdkafka()}

    def java_client(self, release: Release) -> dict[str, str]:
        """The configuration of a Java client of the release, with the login of the user."""
        return self.properties.java(release)

    def hosts(self) -> tuple[str, ...]:
        """Where they are looked for, and what they call their machines themselves, which clients log."""
        brokers = AdminClient(self.client()).list_topics(timeout=REACHED_WITHIN).brokers.values()
        return tuple(sorted({*map(host_of, self.bootstrap_servers.split(",")), *(broker.host for broker in brokers)}))

    def check_reached(self) -> None:
        """Check that they answer to these credentials.

        Raises:
            UsageError: they do not, within 10 s; says why.
        """
        seen: list[KafkaError] = []
        try:
            admin = AdminClient({**self.client(), "error_cb": seen.append})
        except KafkaException as error:
            raise self._explain_unreached(error.args[0]) from None
        deadline = time.monotonic() + REACHED_WITHIN
        while True:
            try:
                admin.list_topics(timeout=1.0)
            except KafkaException as error:
                admin.poll(0)
                final = [failure for failure in seen if failure.code() in REMEDIES]
                if final or time.monotonic() > deadline:
                    telling = [failure for failure in seen if failure.code() != KafkaError._ALL_BROKERS_DOWN]
                    raise self._explain_unreached([*final, *telling[-1:], error.args[0]][0]) from None
            else:
                return

    def _explain_unreached(self, error: KafkaError) -> UsageError:
        remedy = REMEDIES.get(error.code(), REMEDY)
        return UsageError(f"The brokers at {self.bootstrap_servers} cannot be reached: {error.str()}; {remedy}.")


def check_access(external: ExternalCluster, *trials: Trial) -> None:
    """Check that brokers answer, and allow what every trial does, and what these need in addition.

    Raises:
        UsageError: they do not.
    """
    for trial in trials:
        check_capabilities(trial, external)
    external.check_reached()
    check_permissions(external, external.properties.user)
    sets_quota = (of.cell.streams for of in trials if Capability.ALTER_QUOTAS in scenario(of.cell.scenario).needs(of))
    if release := next(sets_quota, None):
        check_quotas(external, external.properties.user, release)


def needs_own_cluster(trial: Trial) -> bool:
    """Whether a trial cannot share brokers: it needs more than one, or links to them, or disturbs them."""
    scenario_ = scenario(trial.cell.scenario)
    return scenario_.own_brokers or scenario_.values(trial).get("nodes", 1) > 1 or _link_of(trial) is not None


def _link_of(trial: Trial) -> Capability | None:
    """The capability for which its fault takes a proxy, if it takes one."""
    return next(iter(BY_PROXY & scenario(trial.cell.scenario).needs(trial)), None)


@contextmanager
def own_cluster(installation: Installation, trial: Trial, folder: TrialFolder) -> Iterator[Cluster]:
    """Brokers for a trial run on its own, stopped at the end of a `with` block.

    Raises:
        UsageError, HarnessError: they did not start.
    """
    nodes = scenario(trial.cell.scenario).values(trial).get("nodes", 1)
    link = _link_of(trial)
    cluster = EmbeddedCluster.start(installation, trial.cell.broker, folder.path / "cluster", nodes=nodes, link=link)
    try:
        yield cluster
    finally:
        cluster.stop()


@contextmanager
def lend(external: ExternalCluster, run_id: str) -> Iterator[Cluster]:
    """External brokers, from which everything that bears the run's id is removed at the end of a `with` block.

    Until then the run says there that it is alive.

    Raises:
        HarnessError: something was left there.
    """
    try:
        with alive(external.client(), group_of(external, run_id)):
            yield external
    finally:
        remove_run(external, run_id)
