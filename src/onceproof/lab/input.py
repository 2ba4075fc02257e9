"""The input of a trial: what was preloaded, and what is produced while it is driven."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

from onceproof.lab.cluster import Cluster
from onceproof.lab.context import TrialContext
from onceproof.lab.load import LabBulk
from onceproof.lab.world import REAL
from onceproof.model.errors import HarnessError
from onceproof.model.files import Produced, TrialPlan
from onceproof.model.record import Topics
from onceproof.model.timeline import Timeline
from onceproof.readers.inputs import deviation
from onceproof.readers.kafka import token
from onceproof.scenarios.base import Workload, partition_of_key

SETTLED = 0.2  # seconds between two looks that must agree
ANSWERED_WITHIN = 10.0  # seconds that the coordinator of a group has to report its positions


def start_first(plan: TrialPlan, cluster: Cluster, timeline: Timeline, workload: Workload) -> LabBulk:
    """Start producing what a trial begins with to its input."""
    topic, partition = _topic(plan, workload), _partition_of(plan)
    return REAL.bulk(cluster, topic, partition, "first", workload.first, None, timeline, None, workload)


def _topic(plan: TrialPlan, workload: Workload, role: str = "input") -> str:
    """Where records go; messages name their topics themselves."""
    return " and ".join(plan.topics_of("input")) if workload.messages else plan.topic(role)


def _partition_of(plan: TrialPlan) -> Callable[[int], int]:
    return partial(partition_of_key, partitions=plan.partitions)


class Input:
    """Produces records, and knows all that were delivered."""

    def __init__(self, context: TrialContext, workload: Workload) -> None:
        """Nothing is produced yet except what was preloaded."""
        self._context, self._workload = context, workload
        self._of_role: dict[str, list[LabBulk]] = defaultdict(list)

    @property
    def _bulks(self) -> Iterator[LabBulk]:
        return chain.from_iterable(self._of_role.values())

    def produce(
        self,
        name: str,
        records: Sequence[tuple[int, int]],
        rate: float | None,
        timestamps: Sequence[int] | None,
        role: str = "input",
    ) -> LabBulk:
        """Send records in the background, as `scenarios.base.ScenarioContext.produce` says."""
        context = self._context
        topic, partition = _topic(context.plan, self._workload, role), _partition_of(context.plan)
        bulk = context.world.bulk(
            context.cluster, topic, partition, name, records, rate, context.timeline, timestamps, self._workload
        )
        self._of_role[role].append(bulk)
        return bulk

    def check(self) -> None:
        """Check that every record so far could be delivered.

        Raises:
            HarnessError: one could not.
        """
        for bulk in self._bulks:
            bulk.check()

    def await_delivered(self) -> None:
        """Wait for the producers of all topics that are being filled."""
        for bulk in self._bulks:
            bulk.await_delivered()

    def stop(self) -> None:
        """Stop the producers of all topics that are being filled."""
        for bulk in self._bulks:
            bulk.stop()

    def end(self) -> None:
        """Send no more, and wait until nothing is in flight."""
        for bulk in self._bulks:
            bulk.stop()
            bulk.await_sent()

    def count_committed(self) -> dict[str, dict[int, int]]:
        """How far each partition of each input is committed, by role, once nothing more is written."""
        context, plan = self._context, self._context.plan
        seen: tuple[object, object] = (None, None)
        patience = ANSWERED_WITHIN
        while True:
            before = seen
            offsets = {
                role: context.topics.last_offsets(plan.topic(role), plan.partitions_of(role), patience)
                for role in plan.inputs
            }
            patience = 0.0
            seen = (offsets, context.ends(committed=True))
            if seen == before:
                return offsets
            context.world.sleep(SETTLED)

    def count_produced(self) -> Produced:
        """The numbers of delivered records; one more input is not counted."""
        delivered = self._context.plan.preloaded + sum(bulk.delivered for bulk in self._of_role["input"])
        return Produced(delivered, len({key for key, _ in self._list_delivered("input")}))

    def compare(self, topics: Topics) -> None:
        """Check that what was generated and delivered is what the input topics hold.

        Raises:
            HarnessError: it is not, so the trial says nothing.
        """
        plan = self._context.plan
        for role in plan.inputs:
            generated: Iterable[tuple[int | None, int | None]] = self._list_delivered(role)
            home = None
            if messages := self._workload.messages:
                sent = (messages[place] for _, place in self._list_delivered("input"))
                generated = [(token(m.key), token(m.value)) for m in sent if m.topic == plan.topic(role)]
            else:
                home = _partition_of(plan)
            deviating = deviation(topics[role], generated, home)
            if deviating is not None:
                raise HarnessError(f"The topic {plan.topic(role)} does not hold what was delivered: {deviating}.")

    def _list_delivered(self, role: str) -> Iterator[tuple[int, int]]:
        """Key and value of all that was delivered to an input, in order; the first bulk and messages are in `input`."""
        return chain(self._workload.first if role == "input" else (), *(bulk.sent for bulk in self._of_role[role]))
