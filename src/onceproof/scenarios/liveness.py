"""A promise of every scenario: the application runs until it is asked to end, and then ends cleanly.

Instances report threads that died (`uncaught`, streams_app/README.md), the driver the rest (`failure`). A thread that
dies of what a fault does to its instance, and says so, breaks no promise (`excused`).
"""

import re
from collections.abc import Iterator, Sequence

from onceproof.model.anomaly import Comparison
from onceproof.model.timeline import Event

PROMISE = "liveness"
RUNS_ON = "runs until it is asked to end"


def compare_liveness(events: Sequence[Event]) -> Iterator[Comparison]:
    """Each start of an instance; also each thread that died, and what ended the drive if that was Kafka's doing.

    Raises:
        KeyError: an event lacks a field of the protocol.
    """
    explained = find_explained_deaths(events)
    for event in events:
        if event["event"] == "instance" and event["action"] == "started":
            yield Comparison(PROMISE, None, 0, None, event["name"], RUNS_ON, f"started on {event['release']}")
        elif event in explained:
            observed = f"{death_text(event)}, which the fault explains"
            yield Comparison(PROMISE, None, 0, None, event["source"], RUNS_ON, observed)
        elif event["event"] == "uncaught":
            yield Comparison(PROMISE, "thread-died", 0, None, event["source"], RUNS_ON, death_text(event))
        elif event["event"] == "failure" and event["anomaly"] != "thread-died":
            yield Comparison(PROMISE, event["anomaly"], 0, None, event["place"], event["expected"], event["observed"])


def find_explained_deaths(events: Sequence[Event]) -> list[Event]:
    """The threads that died of what a fault did to their instance.

    It is excused until it has been started again as often as the event `excused` says (`starts`, none by default).
    """
    explained = []
    excused: dict[str, str] = {}
    starts: dict[str, int] = {}
    for event in events:
        if event["event"] == "excused":
            excused[event["instance"]] = event["of"]
            starts[event["instance"]] = event.get("starts", 0)
        elif event["event"] == "instance" and event["action"] == "started":
            starts[event["name"]] = starts.get(event["name"], 0) - 1
            if starts[event["name"]] < 0:
                excused.pop(event["name"], None)
        elif event["event"] == "uncaught" and event["source"] in excused:
            said = " ".join([str(event["message"]), *event["causes"]])
            if re.search(excused[event["source"]], said):
                explained.append(event)
    return explained


def death_text(uncaught: Event) -> str:
    """Which thread died of which exception, by what cause and where."""
    causes = f", caused by {uncaught['causes'][-1]}" if uncaught["causes"] else ""
    frame = f", at {uncaught['frame']}" if uncaught["frame"] else ""
    thread = re.sub(r"^.*?(?=(Global)?StreamThread)", "", uncaught["thread"], count=1)
    return f"{thread} died of {uncaught['exception']}: {uncaught['message']}{causes}{frame}"
