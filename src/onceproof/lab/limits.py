"""Limits that brokers enforce for a trial: topics that refuse records, and quotas. All are lifted in the end."""

from contextlib import suppress

from onceproof.lab.site import Site
from onceproof.model.errors import HarnessError


class Limits:
    """Sets limits and lifts them."""

    def __init__(self, site: Site) -> None:
        """None is set yet."""
        self._site = site
        self._clients: set[str] = set()  # that have a quota

    def alter_topic(self, role: str, **config: str) -> None:
        """Change the configuration of a topic, for example `min_insync_replicas="2"`."""
        named = {key.replace("_", "."): value for key, value in config.items()}
        self._site.topics.alter(self._site.trial.topic(role), named)
        self._site.note("topic", role=role, config=config)

    def set_producer_quota(self, client: str, bytes_per_second: int | None) -> None:
        """Limit what the producer of this client id may send; None lifts the limit."""
        site = self._site
        log = site.folder.path / "quota.log"
        self._clients.add(client)
        site.world.set_producer_quota(site.cluster, site.trial.cell.streams, client, bytes_per_second, log)
        if bytes_per_second is None:
            self._clients.discard(client)
        site.note("quota", client=client, bytes_per_second=bytes_per_second)

    def lift(self) -> None:
        """Lift what a drive that ended early left: a marker refused by a topic holds up those of other trials."""
        with suppress(HarnessError):  # the brokers are gone
            for name, planned in self._site.plan.roles.items():
                if planned.may_refuse:
                    self._site.topics.alter(self._site.trial.topic(name), {"min.insync.replicas": "1"})
        with suppress(HarnessError):
            for client in sorted(self._clients):
                self.set_producer_quota(client, None)
