"""The input of a trial: what was preloaded, and what is produced while it is driven."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from onceproof.lab.cluster import Cluster
from onceproof.lab.load import Bulk
from onceproof.lab.site import Site
from onceproof.lab.world import REAL, World
from onceproof.model.errors import HarnessError
from onceproof.model.files import Produced, TrialPlan
from onceproof.model.record import Record
from onceproof.model.timeline import Timeline
from onceproof.readers.inputs import deviation
from onceproof.scenarios.base import partition_of_key

SETTLED = 0.2  # seconds between two looks that must show the same


def start_bulk(
    plan: TrialPlan,
    cluster: Cluster,
    timeline: Timeline,
    name: str,
    records: Sequence[tuple[int, int]],
    rate: float | None = None,
    timestamps: Sequence[int] | None = None,
    world: World = REAL,
) -> Bulk:
    """Start producing to the trial's input."""
    partition = partial(partition_of_key, partitions=plan.partitions)
    return world.bulk(cluster, plan.trial.topic("input"), partition, name, records, rate, timeline, timestamps)


class Input:
    """Produces records, and knows all that were delivered."""

    def __init__(self, site: Site, preloaded: Sequence[tuple[int, int]]) -> None:
        """Nothing is produced yet but what was preloaded."""
        self._site, self._preloaded = site, preloaded
        self._bulks: list[Bulk] = []

    def produce(
        self, name: str, records: Sequence[tuple[int, int]], rate: float | None, timestamps: Sequence[int] | None
    ) -> Bulk:
        """Send records in the background, as `scenarios.base.Lab.produce` says."""
        site = self._site
        bulk = start_bulk(site.plan, site.cluster, site.timeline, name, records, rate, timestamps, site.world)
        self._bulks.append(bulk)
        return bulk

    def check(self) -> None:
        """Check that every record could be delivered so far.

        Raises:
            HarnessError: one could not.
        """
        for bulk in self._bulks:
            bulk.check()

    def await_delivered(self) -> None:
        """Wait until every record is delivered."""
        for bulk in self._bulks:
            bulk.await_delivered()

    def stop(self) -> None:
        """Send no more."""
        for bulk in self._bulks:
            bulk.stop()

    def end(self) -> None:
        """Send no more, and wait until nothing is under way."""
        for bulk in self._bulks:
            bulk.stop()
            bulk.await_sent()

    def committed(self) -> dict[int, int]:
        """How far each partition is committed, when nothing is written any more."""
        site, topic = self._site, self._site.trial.topic("input")
        seen: tuple[object, object] = (None, None)
        while True:
            before, offsets = seen, site.topics.offsets(topic, site.plan.partitions)
            seen = (offsets, site.ends(committed=True))
            if seen == before:
                return offsets
            site.world.sleep(SETTLED)

    def produced(self) -> Produced:
        """What was delivered, in numbers."""
        delivered = self._site.plan.preloaded + sum(bulk.delivered for bulk in self._bulks)
        return Produced(delivered, len({key for key, _ in self._generated()}))

    def compare(self, inputs: Sequence[Record]) -> None:
        """Check that what was generated and delivered is what stands in the input topic.

        Raises:
            HarnessError: it is not, so the trial says nothing.
        """
        partition = partial(partition_of_key, partitions=self._site.plan.partitions)
        told = deviation(inputs, self._generated(), partition)
        if told is not None:
            raise HarnessError(f"The input topic does not hold what was delivered: {told}.")

    def _generated(self) -> Iterator[tuple[int, int]]:
        """Key and value of all that was delivered, in order."""
        return chain(self._preloaded, *(bulk.sent for bulk in self._bulks))
