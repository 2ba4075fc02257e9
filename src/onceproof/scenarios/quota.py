"""Reproduction 003, KAFKA-17455: a producer that is only throttled must not lose its transaction.

One stream thread writes a random value of 1 KiB to its store for each input record, one every 25 to 30 ms, and so
slightly more to the changelog than the quota of its producer allows. It is then throttled a little and falls behind
slowly: that is all. A transactional request that meets the throttle must not wait longer than its transaction may take.
If it does (a whole request timeout, 30 s, instead of the throttle), the broker aborts the transaction, fences the
producer, and the task starts again from its last commit.

A trial is *exercised* when the producer reported throttling, a request of its transactions met the throttle, the load
continued for longer than a failure takes, and the generator was not throttled itself: it is another client, without a
quota. The producer's own log (at DEBUG) says how long each request of a transaction waited until it was sent. One that
waited for much longer than the producer was ever throttled (event `held`: `request`, `ms`) is what the known issue
explains. And the generator shows whether all else was well: if it fell behind its pace, the machine or the brokers were
overloaded, and the trial is void, whatever it showed. It ends at the first exception, or after 45 s of load; then the
quota is lifted and the rest is drained. The checks look at the exceptions in the log by class, at threads that had to
be replaced, and, from the topics alone, at aborted transactions: the changelog is read both with and without
uncommitted records. Every record must be in the changelog once.

Throttle and lag are judged, too. The reproduction expects some 100 ms on average, and a lag that grows slowly. Load and
quota determine how long a throttle may be, and how fast the lag must grow. A throttle lasts as long as the request that
exceeded the quota takes at its rate, a full batch at most, and a second more where the window has just lost one;
`long-throttle` is more than twice that, since a throttle of more than a second can cost two. The longest is judged
and not the average: a producer that waits long sends little, so the average over responses hardly grows with the
    throttle.
`runaway-lag` is more than twice what is sent minus what goes through, plus what comes in a window of the quota, plus
what comes while a thread of the instance is ready to run and waits for a CPU: a machine with too much to do makes that.

How long a trial must be: the first throttled response comes after about 3 s (the lab's brokers measure over
`quota.window.num` = 3 seconds), the failure one request timeout later. And how long it may be: the generator outruns
the quota, so the lag grows forever, and when about 350 records of it fall into one transaction, these take longer than
a transaction may: then every release fails (measured: after 83 s at 25 ms, after 160 to 180 s at 25 to 30 ms). So a
trial is stopped long before.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import Field

from onceproof.model.anomaly import Comparison
from onceproof.model.capability import Capability
from onceproof.model.cell import Trial
from onceproof.model.errors import StoodStillError
from onceproof.model.parameter import BaseParameters
from onceproof.model.phrases import REQUESTED
from onceproof.model.timeline import Event, time_of_line
from onceproof.processes.cpu import longest_wait
from onceproof.scenarios.base import (
    Exercise,
    Role,
    Scenario,
    ScenarioContext,
    System,
    Variant,
    Workload,
    refuse_restarts,
    runs_its_task,
    values_in,
    variants_of,
)

PARTITIONS = 1
NAME = "instance-1"
CHANGELOG = "values-changelog"
ALL = "values-changelog-all"  # the same topic with aborted records
OVERHEAD = 64  # bytes of a record in the changelog besides its value
WINDOW = 3.0  # seconds over which the lab's brokers measure a quota
WINDOW_STEP = 1.0  # seconds in each part of that window, which it loses at once
BATCH = 16_384  # bytes that a request to one partition holds at most, if a single record is no larger; Kafka's own
MET = 50  # ms that a request waits if it met the throttle; otherwise it is sent within a few
BEHIND = 2.0  # seconds by which a generator on a machine with time for it never falls behind
MARGIN = 5.0  # seconds for which the load must continue after a failure would have shown

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(BaseParameters):
    """The producer's quota, and the timeouts that a throttled transaction must keep."""

    rate: int = Field(35_000, ge=1, description="the producer's quota in bytes a second")
    record_bytes: int = Field(1_024, ge=4, description="size of the values that are stored")
    sleep_ms: float = Field(
        27.5, ge=1, description="time between two input records; the reproduction draws 25 to 30 ms"
    )
    commit_interval_ms: int = Field(100, ge=1, description="commit interval")
    transaction_timeout_ms: int = Field(10_000, ge=1_000, description="transaction timeout; Kafka Streams' own is 10 s")
    request_timeout_ms: int = Field(30_000, ge=1_000, description="the producer's request timeout; Kafka's own is 30 s")
    seconds: int = Field(45, ge=1, description="seconds of load, unless it fails before")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "The reproduction's: 35,000 bytes/s, 1 KiB each 25 to 30 ms, Kafka's own timeouts."),
    Variant(
        "SHORT_REQUEST_TIMEOUT",
        "request.timeout.ms of 12 s, so that a trial is short: it fails one request timeout after the throttle.",
        {"request.timeout.ms": 12_000, "seconds": 30},
    ),
    Variant(
        "SLEEP_25",
        "The generator sleeps 25 ms, the reproduction's least: 43,500 bytes/s.",
        {"sleep.ms": 25.0, "seconds": 40},
    ),
    Variant("SLEEP_30", "The generator sleeps 30 ms, the reproduction's most: 36,300 bytes/s.", {"sleep.ms": 30.0}),
    Variant(
        "LONG_TRANSACTION_TIMEOUT",
        "transaction.timeout.ms of 60 s, longer than a request timeout: the broker has no reason to abort.",
        {"transaction.timeout.ms": 60_000},
    ),
    Variant("COMMIT_EVERY_SECOND", "commit.interval.ms of 1 s.", {"commit.interval.ms": 1_000}),
    Variant(
        "LARGE_RECORDS",
        "Values of 4 KiB, a quarter as many.",
        {"record.bytes": 4_096, "sleep.ms": 110.0},
    ),
)


values = values_in(Parameters, VARIANTS)


def refusal(trial: Trial) -> str | None:
    """Refuses a load under which any release fails: more lag would accumulate than fits into a transaction."""
    cell, parameters = trial.cell, values(trial)
    load = (parameters.record_bytes + OVERHEAD) * 1_000 / parameters.sleep_ms
    backlog, fits = (
        (load - parameters.rate) * parameters.seconds,
        parameters.rate * parameters.transaction_timeout_ms / 1_000,
    )
    if backlog > fits:
        return (
            f"in {parameters.seconds} s the load of {load:,.0f} bytes/s outruns the quota of "
            f"{parameters.rate:,} by {backlog:,.0f} bytes, but only {fits:,.0f} go through within a transaction "
            "timeout: every release would fail; raise rate, or lower seconds or record.bytes."
        )
    return refuse_restarts(cell)


def workload(trial: Trial) -> Workload:
    """Distinct keys in order, one for each time the generator can wake up, each its own value. None is preloaded."""
    parameters = values(trial)
    return Workload([], [(key, key) for key in range(int(parameters.seconds * 1_000 / parameters.sleep_ms))])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `values`."""
    return {
        "input.topic": trial.topic("input"),
        "caching": False,
        "value.bytes": values(trial).record_bytes,
        "on.uncaught": "REPLACE_THREAD",
    }


def config(trial: Trial) -> Mapping[str, str]:
    """One producer without standbys, with the timeouts that the throttle exceeds."""
    parameters = values(trial)
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": str(parameters.commit_interval_ms),
        "producer.transaction.timeout.ms": str(parameters.transaction_timeout_ms),
        "producer.request.timeout.ms": str(parameters.request_timeout_ms),
        # Kafka refuses a delivery timeout below the request timeout.
        "producer.delivery.timeout.ms": str(max(120_000, parameters.request_timeout_ms)),
        "onceproof.log.transactions": "DEBUG",  # when their requests are due, and when they are sent
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Set the quota, let the load flow until it fails or the time is over, lift the quota, drain."""
    parameters = values(lab.trial)
    with lab.phase("start"):
        instance = lab.instances.start(NAME)
        lab.await_("the instance to run its task", lambda: runs_its_task(instance))
        client = f"{lab.trial.application_id}-{NAME}-StreamThread-1-producer"
        lab.limits.set_producer_quota(client, parameters.rate)
    with lab.phase("throttled"):
        watch, before = Watch(lab, GrowingLog(instance.log)), lab.instances.cpu_times()
        load = lab.produce("load", lab.workload.second, 1_000 / parameters.sleep_ms)
        lab.holds_within(parameters.seconds + 5.0, lambda: watch.look(load.delivered) or load.is_done())
        load.stop()
        _require_pace(lab.events, 1_000 / parameters.sleep_ms)
        throttled, (request, waited) = _throttle(lab.events), watch.requests.longest(int(lab.now() * 1_000))
        if waited > 2 * throttled["max"] + 1_000:
            lab.note("held", request=request, ms=waited)
        for failure in watch.failures:
            lab.note("exception", **failure)
        seconds = load.delivered * parameters.sleep_ms / 1_000
        lab.note(
            "load",
            **throttled,
            lag=watch.lag,
            explained=_bound_lag(parameters, seconds),
            generator_throttle_ms=round(load.throttled * 1_000),
            stall_ms=_longest_stall(lab.events),
            waited_ms=round(longest_wait(before, lab.instances.cpu_times()) * 1_000),
        )
    with lab.phase("drain"):
        lab.limits.set_producer_quota(client, None)
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    throttled_for, failing_takes = watch.since_throttle(), parameters.request_timeout_ms / 1_000
    enough = throttled_for >= failing_takes + MARGIN or bool(watch.failures)
    reason = (
        f"The producer was throttled for up to {throttled['max']:,.0f} ms, {throttled['avg']:,.0f} ms on average; the "
        f"load lasted for {throttled_for:.0f} s after the first throttle, of which a failure takes {failing_takes:g}; "
        f"a request of its transactions ({request}) waited for {waited:,} ms until it was sent; the lag was "
        f"{watch.lag:,} records at its end."
    )
    if load.throttled:
        reason += f" The generator was throttled, too, for up to {load.throttled * 1_000:,.0f} ms."
    if watch.early:
        reason += f" It failed {watch.early:,} times before it was throttled, which says nothing of the throttle."
    bit = throttled["max"] > 0 and waited >= MET and enough and not load.throttled and not watch.early
    return Exercise(bit, reason, all_steps_tried=enough)


def _require_pace(events: Sequence[Event], rate: float) -> None:
    """Check that the generator kept its pace, `rate` records/s.

    Raises:
        StoodStillError: it fell behind, so others were given too little time as well.
    """
    begin = next(event["t"] for event in events if event["event"] == "bulk" and event["name"] == "load")
    produced = (event for event in events if event["event"] == "produced" and event["name"] == "load")
    behind = max(((e["t"] - begin) / 1_000 - (e["records"] + 1) / rate for e in produced), default=0.0)
    if behind > BEHIND:
        raise StoodStillError(
            f"The machine or its brokers had too much to do: the generator, which has no quota, fell {behind:.1f} s "
            "behind its pace."
        )


def _bound_lag(parameters: Parameters, seconds: float) -> int:
    """Records of lag that a load of this many seconds leaves, if the quota lets through what it promises."""
    bytes_each = parameters.record_bytes + OVERHEAD
    return max(0, int(seconds * 1_000 / parameters.sleep_ms - seconds * parameters.rate / bytes_each))


def _bound_throttle(parameters: Parameters) -> float:
    """The longest throttle in ms that one request can ask for: the broker reads the next one only after it."""
    seconds: float = max(BATCH, parameters.record_bytes + OVERHEAD) / parameters.rate
    return 1_000 * (WINDOW_STEP + seconds)


def _throttle(events: Sequence[Event]) -> dict[str, float]:
    """The largest throttle times that the producers reported, in ms."""
    producers = [producer for e in events if e["event"] == "throttle" for producer in e["producers"]]
    return {
        short: max((p[f"produce_throttle_time_{short}"] for p in producers), default=0.0) for short in ("max", "avg")
    }


def _longest_stall(events: Sequence[Event]) -> int:
    """The longest time in which no record was processed, in ms; one that has not ended counts until now."""
    times = [e["t"] for e in events if e["event"] == "progress"]
    times += [events[-1]["t"]] if times else []
    return max((later - earlier for earlier, later in pairwise(times)), default=0)


# --- forensics -----------------------------------------------------------------------------------------------

FAILURES = (
    "TaskCorruptedException",
    "TaskMigratedException",
    "InvalidProducerEpochException",
    "ProducerFencedException",
    "InvalidTxnStateException",
    "TimeoutException",
)
# A request of the transaction that is not answered in time; other timeouts are another matter.
_TRANSACTIONAL = re.compile(r"AddOffsetsToTxn|AddPartitionsToTxn|EndTxn|InitProducerId|TxnOffsetCommit")
_FAILURE = re.compile(rf"\b({'|'.join(FAILURES)}): (.*?)(?: \([\w.$]+\))?$")  # the logger stands at the end


def failures(lines: Iterable[tuple[int, str]]) -> Iterator[dict[str, Any]]:
    """Exceptions of the classes that a throttled producer must not see, in the order of the log.

    Args:
        lines: of the log, each with its time.

    Yields:
        at (epoch ms), exception, message.
    """
    for at, line in lines:
        failure = _FAILURE.search(line)
        if failure and (failure.group(1) != "TimeoutException" or _TRANSACTIONAL.search(failure.group(2))):
            yield {"at": at, "exception": failure.group(1), "message": failure.group(2).strip()}


@dataclass
class GrowingLog:
    """A log that grows."""

    path: Path
    position: int = 0
    t: int = 0

    def read_grown(self) -> list[tuple[int, str]]:
        """The lines that came since the last look, each with its time (epoch ms), or else that of the line before."""
        lines = []
        with self.path.open("rb") as log:
            log.seek(self.position)
            for raw in log:
                if not raw.endswith(b"\n"):  # the rest of it is still to come
                    break
                self.position += len(raw)
                line = raw.decode(errors="replace").rstrip("\n")
                stamp = time_of_line(line)
                self.t = self.t if stamp is None else stamp
                lines.append((self.t, line))
        return lines


@dataclass
class Requests:
    """How long requests of transactions waited until they were sent, by the producer's log."""

    due: dict[str, int] = field(default_factory=dict)  # not sent yet, since when (epoch ms)
    waits: list[tuple[int, str]] = field(default_factory=list)  # ms, request

    def take(self, lines: Iterable[tuple[int, str]]) -> None:
        """Take in lines of the log; a retried request has waited since its first attempt."""
        for at, line in lines:
            if found := REQUESTED.pattern.search(line):
                step, request = found.groups()
                if step == "Enqueuing":
                    self.due.setdefault(request, at)
                elif request in self.due:
                    self.waits.append((at - self.due.pop(request), request))

    def longest(self, now: int) -> tuple[str, int]:
        """The request that waited longest, and for how many ms; one that still waits does so until now."""
        waiting = ((now - since, request) for request, since in self.due.items())
        ms, request = max([*self.waits, *waiting], default=(0, "none"))
        return request, ms


@dataclass
class Watch:
    """Looks, while the load flows, at the instance's log and at its lag."""

    lab: ScenarioContext
    log: GrowingLog
    sampled: float = 0.0
    ended: float = 0.0
    lag: int = 0
    early: int = 0  # failures before the first throttle
    seen: list[dict[str, Any]] = field(default_factory=list)  # failures
    failures: list[dict[str, Any]] = field(default_factory=list)  # those since the first throttle
    requests: Requests = field(default_factory=Requests)

    def look(self, delivered: int) -> bool:
        """Take a look; whether a throttled producer has failed.

        An overloaded machine may cause failures before the throttle, or without one: these are no anomaly, and the
            trial
        is not exercised.
        """
        self.ended = self.lab.now()
        if self.ended - self.sampled >= 1.0:  # the lag over time
            self.sampled = self.ended
            self.lag = delivered - self.lab.count_committed()
            self.lab.note("lag", records=self.lag)
        lines = self.log.read_grown()
        self.requests.take(lines)
        self.seen += failures(lines)
        since = first_throttle(self.lab.events)
        self.failures = [failure for failure in self.seen if since is not None and failure["at"] >= since]
        self.early = len(self.seen) - len(self.failures)
        return bool(self.failures)

    def since_throttle(self) -> float:
        """Seconds of load after the first throttle."""
        since = first_throttle(self.lab.events)
        return 0.0 if since is None else self.ended - since / 1_000


def first_throttle(events: Sequence[Event]) -> int | None:
    """When a producer first reported that it was throttled, in epoch ms."""
    return next((e["t"] for e in events if e["event"] == "throttle" and e["producers"]), None)


def observe(trial: Trial, events: Sequence[Event]) -> list[Comparison]:
    """The facts of the timeline: exceptions by class, and how throttle and lag went."""
    begin = next((e["t"] for e in events if e["event"] == "bulk" and e["name"] == "load"), 0)
    seen = [e for e in events if e["event"] == "exception"]
    rows = []
    for name in FAILURES:
        of_class = [e for e in seen if e["exception"] == name]
        if of_class:
            after = (of_class[0]["at"] - begin) / 1_000
            observed = f"{len(of_class)} lines in the log, the first after {after:.1f} s: {of_class[0]['message']}"
            rows.append(_comparison("aborted-by-throttle", f"no {name}", observed))
    for e in events:
        if e["event"] == "load":
            observed = (
                f"throttled for up to {e['max']:,.0f} ms; lag {e['lag']:,} records; nothing processed for up to "
                f"{e['stall_ms'] / 1_000:.1f} s; {len(seen)} exceptions"
            )
            rows.append(_comparison(None, "slight throttling, slowly growing lag, no exception", observed))
            rows += _compare_slowdown(e, values(trial))
    return rows


def _compare_slowdown(load: Event, parameters: Parameters) -> Iterator[Comparison]:
    """Throttle and lag of a load, compared with what the parameters explain."""
    longest, explained = load["max"], _bound_throttle(parameters)
    slight = f"throttled for {explained:,.0f} ms at most, which the quota explains, or twice that"
    yield _comparison(
        "long-throttle" if longest > 2 * explained else None,
        slight,
        f"{longest:,.0f} ms at most, {load['avg']:,.0f} on average",
        "slowdown",
    )
    of_machine = WINDOW * 1_000 + load.get("waited_ms", 0)
    lag, allowed = load["lag"], 2 * load["explained"] + int(of_machine / parameters.sleep_ms)
    slow = f"a lag of about {load['explained']:,} records, which the quota explains, {allowed:,} at most"
    yield _comparison("runaway-lag" if lag > allowed else None, slow, f"{lag:,} records", "slowdown")


def _comparison(anomaly: str | None, expected: str, observed: str, promise: str = "throttle") -> Comparison:
    return Comparison(promise, anomaly, 0, None, NAME, expected, observed)


# --- system --------------------------------------------------------------------------------------------------


def system(trial: Trial) -> System:
    """The topology `values` with values of the trial's size."""
    size = values(trial).record_bytes
    return System(
        topology="values",
        roles={
            "input": Role(),
            CHANGELOG: Role(value_bytes=size),
            ALL: Role(value_bytes=size, topic=CHANGELOG, committed=False),
        },
        promises=("throttle", "slowdown", "transactions", "deliveries", "changelog", "stores"),
        requires=frozenset({Capability.ALTER_QUOTAS}),
    )


SCENARIO = Scenario(
    name="quota",
    title="A throttled producer keeps its transaction (reproduction 003, KAFKA-17455)",
    parameters=Parameters,
    variants=VARIANTS,
    system=system,
    partitions=lambda _: PARTITIONS,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "3.8.1"),
    observe=observe,
    refusal=refusal,
    mostly_waits=True,
    seconds=45,
    features=frozenset({"quotas"}),
)
