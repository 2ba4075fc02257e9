"""An instance is RUNNING only when its active stores are restored, a listener hears the truth about them, and standbys
catch up.

Load balancers and operators take RUNNING for readiness, and a `StateRestoreListener` for progress: an instance that
counts as ready too early answers from stores that lack what is committed. A standby that stands still saves nothing:
when it is promoted, its task waits until all is restored that it lacks.

Sources: `KafkaStreams.State` and `StateRestoreListener` in the Javadoc; KIP-869; KIP-535.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onceproof.model.anomaly import Comparison
from onceproof.model.timeline import Event

PROMISE = "readiness"
ENDS = ("restored", "suspended")
STANDBYS = "standbys"  # the event with `stores`: `instance`, `store`, `partition`, `position` and `end`, as offsets
CATCHES_UP = 40.0  # seconds within which a standby must have the whole changelog, once nothing is written any more
MARKER = 1  # offset behind the last record of a transaction, which no store takes in


@dataclass(frozen=True)
class Restoration:
    """A restoration of a store of an active task that has ended, or was left.

    Attributes:
        start: the event `restore`: `store`, `partition`, and the offsets `from` and `end`.
        end: the event `restored` or `suspended`: `records`, and the offset `last` of the last of them.
        running: the event `state` by which the instance was RUNNING meanwhile, if it was.
    """

    start: Event
    end: Event
    running: Event | None

    @property
    def place(self) -> str:
        """Instance, store and partition."""
        return f"{self.start['source']}, store {self.start['store']}, partition {self.start['partition']}"


def restorations(events: Sequence[Event]) -> Iterator[Restoration]:
    """Those of all instances. One that begins again before it has ended is not among them."""
    open_: dict[tuple[str, str, int], tuple[Event, Event | None]] = {}
    state: dict[str, Event] = {}
    for event in events:
        name = event["source"]
        if event["event"] == "instance" and event["action"] == "started":
            state.pop(event["name"], None)
            open_ = {place: begun for place, begun in open_.items() if place[0] != event["name"]}
        elif event["event"] == "state":
            state[name] = event
            if event["to"] == "RUNNING":
                open_ = {
                    place: (start, running or event) if place[0] == name else (start, running)
                    for place, (start, running) in open_.items()
                }
        elif event["event"] == "restore":
            now = state.get(name)
            running = now if now is not None and now["to"] == "RUNNING" else None
            open_[name, event["store"], event["partition"]] = event, running
        elif event["event"] in ENDS and (begun := open_.pop((name, event["store"], event["partition"]), None)):
            yield Restoration(begun[0], event, begun[1])


def is_behind(store: Mapping[str, Any]) -> bool:
    """Whether a store lacks records of its changelog: its `position` is before the last transaction's end."""
    return bool(store["end"] - store["position"] > MARKER)


def compare_readiness(events: Sequence[Event]) -> Iterator[Comparison]:
    """One comparison for the state and one for the numbers of each restoration that ended, and one for each standby at
    rest; one for all if there is none.

    Raises:
        KeyError: an event lacks a field of the protocol.
    """
    ended = [restoration for restoration in restorations(events) if restoration.end["event"] == "restored"]
    standbys = [store for event in events if event["event"] == STANDBYS for store in event["stores"]]
    if not ended and not standbys:
        yield Comparison(PROMISE, None, 0, None, "no restoration", "none", "none")
    for store in standbys:
        place = f"standby of store {store['store']} of {store['instance']}"
        anomaly = "standby-behind" if is_behind(store) else None
        due = f"at offset {store['end']}, or just before the marker"
        yield Comparison(PROMISE, anomaly, store["partition"], None, place, due, f"at offset {store['position']}")
    for restoration in ended:
        start, end, partition = restoration.start, restoration.end, restoration.start["partition"]
        place, early = restoration.place, restoration.running is not None
        found = "RUNNING before" if early else "not RUNNING before"
        anomaly = "early-running" if early else None
        yield Comparison(PROMISE, anomaly, partition, None, place, "not RUNNING before the restoration ends", found)
        due = f"as many records as in its batches, of offsets {start['from']} to {start['end'] - 1}"
        found = f"{end['records']} records, {end['batched']} in batches, the last at {end['last']}"
        most = start["end"] - start["from"]
        is_right = end["records"] == end["batched"] <= most and end["last"] < start["end"]
        is_right = is_right and (end["records"] == 0 or start["from"] <= end["last"])
        yield Comparison(PROMISE, None if is_right else "wrong-progress", partition, None, place, due, found)
