"""Limits that brokers enforce for a trial: topics that refuse records, and quotas. All are lifted in the end."""

from contextlib import suppress

from onceproof.lab.context import TrialContext
from onceproof.model.errors import HarnessError


class LabLimits:
    """Sets limits and lifts them."""

    def __init__(self, context: TrialContext) -> None:
        """None is set yet."""
        self._context = context
        self._clients: set[str] = set()  # that have a quota

    def alter_topic(self, role: str, **config: str) -> None:
        """Change the configuration of a topic, for example `min_insync_replicas="2"`."""
        named = {key.replace("_", "."): value for key, value in config.items()}
        self._context.topics.alter(self._context.trial.topic(role), named)
        self._context.note("topic", role=role, config=config)

    def set_producer_quota(self, client: str, bytes_per_second: int | None) -> None:
        """Set or lift a quota of the brokers; what is still set is lifted when the trial ends."""
        context = self._context
        log = context.folder.path / "quota.log"
        self._clients.add(client)
        context.world.set_producer_quota(context.cluster, context.trial.cell.streams, client, bytes_per_second, log)
        if bytes_per_second is None:
            self._clients.discard(client)
        context.note("quota", client=client, bytes_per_second=bytes_per_second)

    def lift(self) -> None:
        """Lift what a drive that ended early left: a marker refused by a topic holds up those of other trials."""
        with suppress(HarnessError):  # the brokers are gone
            for name, planned in self._context.plan.roles.items():
                if planned.may_refuse:
                    self._context.topics.alter(self._context.trial.topic(name), {"min.insync.replicas": "1"})
        with suppress(HarnessError):
            for client in sorted(self._clients):
                self.set_producer_quota(client, None)
