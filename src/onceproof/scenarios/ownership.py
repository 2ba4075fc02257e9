"""For how long a partition may be idle in a trial, by what had happened to its owner.

The readers measure for how long records waited (`readers.ownership`). What is allowed is the sum of

- what the group needs to know that a member is gone: nothing if it left or if its thread died, since it says so;
  `session.timeout.ms` if it was killed or is to come back, since then its silence is all that there is.
- after a kill under exactly-once, also the transaction that the process left open, since no position behind it is
  read: `transaction.timeout.ms` (Kafka Streams has 10 s), and the 10 s after which the coordinator looks again.
- `AT_ONCE`: two heartbeats of 200 ms by which the others hear of a rebalance, for tasks that a cooperative rebalance
  moves need two; the stores of a task, which are small and are opened and restored; the interval between commits; and
  the seconds that all this takes on a machine with two CPUs. It takes as many times longer as threads of the
  application had too few CPUs. (The seconds for which one waited are no measure: while a rebalance is held up, a stream
  thread spins, and waits for a CPU all the time.)
- the time for which the driver had an instance stand still (SIGSTOP), which holds up a rebalance within its session.
"""

from collections.abc import Sequence
from itertools import pairwise

from onceproof.model.timeline import Event

PROMISE = "ownership"
AT_ONCE = 5.4  # seconds
UNTIL_ABORTED = 20.0  # seconds


def sum_allowed(events: Sequence[Event], slowed: float, missed_after: float = 0.0) -> int:
    """The longest time in ms for which a partition may be idle.

    Args:
        events: of the trial.
        slowed: how many times as long as on CPUs of their own its threads took.
        missed_after: seconds after which the group misses the member that is gone; 0 if it left.
    """
    return round(1_000 * (AT_ONCE * slowed + missed_after)) + _sum_stood_still(events)


def _sum_stood_still(events: Sequence[Event]) -> int:
    """The ms for which instances stood still because the driver had them do so."""
    moved = [event for event in events if event["event"] == "instance" and event["action"] in ("frozen", "thawed")]
    return sum(int(later["t"]) - int(event["t"]) for event, later in pairwise(moved) if event["action"] == "frozen")
