"""The moments at which anomalies arose."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onceproof.model.anomaly import Witness, first_of_each
from onceproof.model.cell import Trial
from onceproof.model.place import Place
from onceproof.model.promise import find_dating
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.timeline import Event
from onceproof.page.timeline.flow import time_processed
from onceproof.results.spark_tables import rows_of_trial

WITNESSES = 20  # of each anomaly


@dataclass(frozen=True)
class Moment:
    """When a witness's anomaly arose."""

    t: int
    witness: Witness


def moments(folder: TrialFolder, trial: Trial, witnesses: Iterable[Witness], events: Sequence[Event]) -> list[Moment]:
    """The moments at which the first witnesses of each anomaly arose, as far as they are known."""
    shown = first_of_each(witnesses, WITNESSES)
    places = {place for witness in shown if (place := _place(witness)) is not None}
    inputs = input_records(folder, trial, places) if places else {}
    found = []
    for witness in shown:
        t = _moment(witness, events, inputs)
        if t is not None:
            found.append(Moment(t, witness))
    return found


def _place(witness: Witness) -> Place | None:
    """The last of its places in a topic: that is where it became wrong."""
    return witness.places[-1] if witness.places else None


def _moment(witness: Witness, events: Sequence[Event], inputs: Mapping[Place, tuple[int, int]]) -> int | None:
    """From what was seen immediately if there is such an event, else from when the record was processed."""
    anomaly, place = witness.anomaly, _place(witness)
    dated = find_dating(anomaly, place.role if place else None)
    if dated is not None:
        times = [_time(event) for event in events if event["event"] in dated.by]
        return (max if dated.last else min)(times, default=None)
    if place is None or place not in inputs:
        return None
    offset, end = inputs[place]
    between = time_processed(events, f"0_{place.partition}", offset, end)
    # A transaction that was aborted was tried again; all else is wrong with what was processed last.
    return None if between is None else between[0 if anomaly == "aborted-by-throttle" else 1]


def _time(event: Event) -> int:
    """When it happened; what was found in a log was found later."""
    return int(event.get("at", event["t"]))


def input_records(folder: TrialFolder, trial: Trial, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
    """For records in any topic: the input record they come from, as its offset and the end of its partition.

    Kafka Streams gives a record the timestamp of the input record that it was made from. So the timestamps show which
    one that was, but not when it was processed.

    Returns:
        The places whose input record is known; none without the run's table `records`.
    """
    table = RunFolder(folder.path.parents[1]).table("records")
    if not table.exists():
        return {}
    from pyarrow.dataset import field as column  # only where there are tables of Spark

    wanted = set(places)
    roles = [form for role, _, _ in wanted for form in (role, f"{role}-all")]  # those of aborted transactions, too
    at_places = column("role").isin(roles) & column("offset").isin([offset for _, _, offset in wanted])
    records = rows_of_trial(table, trial, ("role", "partition", "offset", "timestamp", "key"), at_places)
    if not records:
        return {}
    of_input = column("role") == "input"
    same_time = of_input & column("timestamp").isin({record["timestamp"] for record in records})
    origins: dict[tuple[int, Any], dict[int | None, int]] = defaultdict(dict)  # of each key the last offset
    for row in rows_of_trial(table, trial, ("partition", "offset", "timestamp", "key"), same_time) or []:
        at = origins[row["partition"], row["timestamp"]]
        at[row["key"]] = max(row["offset"], at.get(row["key"], 0))
    ends = Counter(row["partition"] for row in rows_of_trial(table, trial, ("partition",), of_input) or [])
    found = {}
    for record in records:
        place = Place(record["role"].removesuffix("-all"), record["partition"], record["offset"])
        at = origins[record["partition"], record["timestamp"]]
        if at and place in wanted:
            offset = place.offset if place.role == "input" else at.get(record["key"], max(at.values()))
            found[place] = (offset, ends[record["partition"]])
    return found
