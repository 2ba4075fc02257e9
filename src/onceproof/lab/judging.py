"""The findings of the independent reader in what a drive left behind."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from onceproof.lab.context import TrialContext
from onceproof.lab.input import Input
from onceproof.lab.instance_logs import read_logged
from onceproof.lab.reading import Read, SegmentReading, TopicReading, logs_of, open_for
from onceproof.lab.replay import asks_for_replay, write_input
from onceproof.model.anomaly import Comparison
from onceproof.model.errors import HarnessError, KafkaFailedError
from onceproof.model.files import Outcome, Reading, TrialPlan
from onceproof.model.oracle import Oracle, Outputs
from onceproof.model.promise import LOSSES, PROMISES, map_suites
from onceproof.model.record import Record
from onceproof.model.run_folder import TrialFolder
from onceproof.model.timeline import Event
from onceproof.readers.application import check_application, oracle_records, select_declared
from onceproof.readers.checks import CHECKS
from onceproof.readers.entries import compare_entries
from onceproof.readers.stores import compare_stores
from onceproof.scenarios.built import check_brokers
from onceproof.scenarios.explaining import count_unexplained_in

APART = "Apart from what was found"


def judge(
    context: TrialContext,
    produced: Input,
    topics: TopicReading,
    segments: SegmentReading,
    observe: Callable[[], Sequence[Comparison]],
) -> tuple[Reading, Sequence[Comparison]]:
    """The findings of the independent reader in the topics, the log segments and the stores, and what the
    timeline shows in addition.

    Args:
        context: of the trial.
        produced: its input.
        topics: that are read.
        segments: the same.
        observe: says what the timeline shows, when it is complete.

    Raises:
        HarnessError: they cannot be read, or the input is another than was delivered.
    """
    with context.phase("read"), collector_paused():
        # After a failed drive, open transactions stay open until they time out.
        context.measure(ended=int(context.failure is None))
        segments.begin()  # while the readers work
        if context.failure is None:
            topics.await_topics()
            if place := topics.open_transaction():
                waited = f"{open_for(context.plan):g} s"
                message = f"{place}: {waited} after the application has closed, a transaction is still open"
                context.fail(KafkaFailedError("stuck", place.rpartition("/")[0], "every transaction ends", message))
                keep_ends(context, produced)
        read = topics.read()
        if context.failure is not None:
            context.measure(**_find_ends(context, read))
        _check_ends(context)
        oracle = None
        if context.plan.check not in CHECKS:
            _write_outputs(context, read)
            oracle = find_oracle(context.plan) if context.failure is None else None
            _note_logged(context)
        in_segments = segments.compare(read)
        if context.failure is None and not read.corrupt:
            produced.compare(read.records)
        observed = observe()
        left = Remains(context.plan, context.folder, context.facts, context.failure is not None, context.events)
        return find_anomalies(left, read, in_segments, observed, oracle), observed


@dataclass(frozen=True)
class Remains:
    """The remains of a drive, in addition to topics and log segments.

    Attributes:
        plan: of the trial.
        folder: of the trial, with what its stores held.
        facts: that the checks need to know.
        failed: whether Kafka ended the drive.
        events: the timeline.
    """

    plan: TrialPlan
    folder: TrialFolder
    facts: Mapping[str, int]
    failed: bool
    events: Sequence[Event]


def find_anomalies(
    left: Remains, read: Read, in_segments: Sequence[Comparison], observed: Sequence[Comparison], oracle: Path | None
) -> Reading:
    """The findings of the independent reader, of whatever was read: from brokers, or from what was kept.

    Args:
        left: by the drive.
        read: the records of its topics.
        in_segments: the comparisons with the brokers' log segments.
        observed: those with the timeline.
        oracle: the output of a user application without a fault, if that is known.

    Raises:
        HarnessError: the oracle cannot be read.
    """
    plan = left.plan
    if oracle is not None:
        beside = oracle_records(Oracle.read(oracle), select_declared("output", plan.roles))
        read = replace(read, records={**read.records, **beside})
    check = CHECKS.get(plan.check) or partial(check_application, plan.roles)
    findings = check(_as_far_as_committed(left, read), left.facts)
    findings.add(read.corrupt)
    findings.add(in_segments)
    findings.add(list(compare_stores(left.folder.dumps(), read.records)))
    stores = {role: planned.store for role, planned in plan.roles.items() if planned.store}
    findings.add(list(compare_entries(left.folder.entry_dumps(), read.records, stores)))
    findings.add(observed)
    inputs = (record[:5] for role in plan.inputs for record in read.records[role])
    odd = count_unexplained_in(plan.trial, findings.witnesses, left.events, lambda: inputs)
    return Reading.of(findings, odd)


def _note_logged(context: TrialContext) -> None:
    """Write down what the logs of a user application say of its records."""
    for log in sorted(context.folder.instances.glob("*.log")):
        for fields in read_logged(log):
            context.note("logged", instance=log.stem.partition(".")[0], **fields)


def check_least(plan: TrialPlan, outcome: Outcome, reading: Reading) -> Outcome:
    """Have each promise of a topology of ours compared as often as its suite asks for: else it may be broken unseen.

    What is lost is not compared. So there may be fewer comparisons, with an anomaly that explains it.

    Returns:
        The outcome, whose reason says what was compared less often, if anything was.

    Raises:
        HarnessError: nothing that was found explains it, although all that was delivered was processed and can be read.
    """
    if outcome.void or not reading.is_whole(outcome) or plan.check not in CHECKS:
        return outcome
    short = {
        promise: f"{promise} was compared {made:,} times, and {least:,} are the least"
        for promise in plan.promises
        if (made := reading.promises.get(promise, 0)) < (least := plan.least(promise, outcome.produced))
    }
    for promise, sentence in short.items():
        if not (map_suites()[PROMISES[promise].suite] | LOSSES) & reading.anomalies.keys():
            found = ", ".join(f"{count:,} {name}" for name, count in reading.anomalies.items())
            beside = f" These anomalies were found, and do not explain it: {found}." if found else ""
            raise HarnessError(f"{plan.trial.key}: {sentence}.{beside}")
    reason = outcome.reason.partition(APART)[0].strip()  # of one that is judged again
    return replace(
        outcome, reason=" ".join([reason, *(f"{APART}, {sentence}." for sentence in short.values())]).strip()
    )


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the collector of cycles, of which records have none: it goes over all of them again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _write_outputs(context: TrialContext, read: Read) -> None:
    """Write down what a user application emitted, with which other trials are compared; all that there is, if Kafka
    ended the drive. And its input, if it is to be replayed.
    """
    outputs = select_declared("output", context.plan.roles)
    Outputs.of({role: read.records[role] for role in outputs}).write(context.folder.outputs_file)
    if find_oracle(context.plan) is None and asks_for_replay(outputs):
        write_input(context.folder.replay_file, context.plan.roles, read.records)


def find_oracle(plan: TrialPlan) -> Path | None:
    """The file with the output of a user application without a fault; None if it is not known, or not compared."""
    path = plan.trial.parameters.get("oracle")
    return Path(path) if path else None


def keep_ends(context: TrialContext, produced: Input) -> None:
    """Keep how far the input of a failed drive was committed, and so is to be judged."""
    context.measure(
        **{f"{role}_end/{p}": end for role, ends in produced.count_committed().items() for p, end in ends.items()}
    )


def _find_ends(context: TrialContext, read: Read) -> dict[str, int]:
    """How far committed records are read: a transaction that is open now may have ended by the time Spark looks."""
    roles = logs_of(context.plan).roles
    return {f"{roles[topic]}_read/{p}": end for (topic, p), end in read.ends.items() if topic in roles}


def _check_ends(context: TrialContext) -> None:
    """Check the facts about topics by what their brokers say."""
    plan, sizes, ends = context.plan, context.topics.sizes(), context.ends()
    present = {role: sizes[topic] for role in plan.roles if (topic := plan.topic(role)) in sizes}
    ended = {
        (role, number): ends.get((plan.topic(role), number), 0) for role in present for number in range(present[role])
    }
    declared = {role for role, planned in plan.roles.items() if planned.declared}
    check_brokers(context.facts, present, ended, set(plan.inputs) - declared)


def _as_far_as_committed(left: Remains, read: Read) -> Mapping[str, list[Record]]:
    """The records; if the drive failed, without the input that was never processed."""
    if not left.failed:
        return read.records
    as_far = {
        role: [r for r in read.records[role] if r[1] < left.facts[f"{role}_end/{r[0]}"]] for role in left.plan.inputs
    }
    return {**read.records, **as_far}
