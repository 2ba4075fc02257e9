"""The promises of a user application whatever happens to it, judged in its runs without a fault, too.

How an output is replayed is known only when such a run has ended, and whether final values are stable when two have. So
these promises are judged here, from what the runs left, and what they show is added to what the readers found.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from onceproof.model.anomaly import Comparison, witnesses_of
from onceproof.model.cell import Trial
from onceproof.model.files import Declared, Outcome, Reading, TrialPlan
from onceproof.model.oracle import Oracle, Outputs
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.timeline import read_timeline
from onceproof.model.topology import Topology
from onceproof.readers.application import (
    COMPARED,
    DIFFERENTIAL,
    ORACLES,
    compare_finals,
    compare_output,
    compare_with,
    is_unstable,
    oracle_records,
    records_of,
    select_declared,
    witness_once,
)
from onceproof.scenarios.app import REPLAYED
from onceproof.scenarios.explaining import count_unexplained_in

UNKNOWN = "what the application consists of, which is not known"


def judge_without_fault(run: RunFolder, trials: Sequence[Trial], oracle: Oracle) -> list[Reading]:
    """Judge runs without a fault, and add what is found to their `reader.json`; returns these.

    Args:
        run: that has them.
        trials: two, and perhaps one that was restarted, where these went straight on.
        oracle: made of the two, with what was replayed.

    Raises:
        HarnessError: what they left is missing or damaged.
    """
    first, second, *restarted = (run.trial(trial) for trial in trials)
    found = [
        list(_compare_replayed(first, oracle)),
        [*_compare_replayed(second, oracle), *_unstable(first, second, oracle)],
        *([*_compare_replayed(folder, oracle), *_compare_restarted(folder, oracle)] for folder in restarted),
    ]
    return [
        _with_more(trial, run.trial(trial), list(witness_once(comparisons)))
        for trial, comparisons in zip(trials, found, strict=True)
    ]


def is_changed_by_restart(first: TrialFolder, oracle: Oracle) -> bool:
    """Whether a run that goes straight on and one that is restarted differ, as far as a restart should change nothing.

    Args:
        first: one of the two.
        oracle: made of both.
    """
    ranks = (*COMPARED, "nothing").index
    return any(
        oracle.ignored.get(role) or ranks(oracle.agreed[role]) > ranks(level)
        for role, level in _compare_restart(first, oracle).items()
    )


def may_cache(topology: Topology | None, config: Mapping[str, str]) -> bool:
    """Whether a record cache may hold updates back; a black box describes no topology, so it may."""
    return topology is None or True in topology.uses(config)["caching"]


def _compare_restart(folder: TrialFolder, oracle: Oracle) -> dict[str, str]:
    """How far each output with the promise `differential` is the same after a clean restart.

    Where a cache holds updates back, it puts them out when it closes: then no more than the final values.
    """
    plan, topology = TrialPlan.read(folder.trial_file), Topology.read_described(read_timeline(folder.timeline))
    is_held_back = may_cache(topology, plan.streams_config)
    return {
        role: "final" if is_held_back and output.compare == "records" else output.compare
        for role, output in _outputs(folder, oracle).items()
        if DIFFERENTIAL in output.promises
    }


def _compare_restarted(folder: TrialFolder, oracle: Oracle) -> Iterator[Comparison]:
    """The output of a run that was restarted, compared with that of a run without a restart."""
    declared = _outputs(folder, oracle)
    outputs, known = Outputs.read(folder.outputs_file), oracle_records(oracle, declared)
    at_least = not Outcome.read(folder.outcome_file).facts["exactly_once"]
    for role, level in _compare_restart(folder, oracle).items():
        agreed = max(level, oracle.agreed[role], key=(*COMPARED, "nothing").index)
        records = records_of(outputs, role, declared[role])
        expected, also = known[f"{role}-oracle"], declared[role].compare_also
        yield from compare_with(expected, records, DIFFERENTIAL, role, agreed, also, at_least=at_least)


def _with_more(trial: Trial, folder: TrialFolder, comparisons: Sequence[Comparison]) -> Reading:
    odd = count_unexplained_in(trial, witnesses_of(comparisons), read_timeline(folder.timeline), tuple)
    reading = Reading.read(folder.reader_file).with_more(comparisons, odd)
    reading.write(folder.reader_file)
    return reading


def _outputs(folder: TrialFolder, oracle: Oracle) -> dict[str, Declared]:
    """The declarations of the outputs of a trial, with what was found out since it ran."""
    declared = select_declared("output", TrialPlan.read(folder.trial_file).roles)
    return {
        role: replace(
            output,
            as_replayed=oracle.as_replayed.get(role),
            ignored=tuple(oracle.ignored.get(role, ())),
            compare_also=tuple(oracle.compare_also.get(role, ())),
        )
        for role, output in declared.items()
    }


def _compare_replayed(folder: TrialFolder, oracle: Oracle) -> Iterator[Comparison]:
    """The output of a run, and of its replays."""
    outputs, declared = Outputs.read(folder.outputs_file), _outputs(folder, oracle)
    at_least = not Outcome.read(folder.outcome_file).facts["exactly_once"]
    known = oracle_records(oracle, declared)
    for role, output in declared.items():
        replays = {f"{role}-{ORACLES[name]}": known.get(f"{role}-{ORACLES[name]}") for name in REPLAYED}
        topics = {name: records for name, records in replays.items() if records is not None}
        only = replace(output, promises=tuple(name for name in output.promises if name in REPLAYED), of=None)
        yield from compare_output(role, only, {**topics, role: records_of(outputs, role, output)}, at_least=at_least)


def _unstable(first: TrialFolder, second: TrialFolder, oracle: Oracle) -> Iterator[Comparison]:
    """The keys whose final values are declared, and differ without a reason."""
    if not Outcome.read(second.outcome_file).facts["exactly_once"] or excuse(second):
        return
    one_run, other_run = (Outputs.read(folder.outputs_file) for folder in (first, second))
    for role, output in _outputs(second, oracle).items():
        if is_unstable(oracle, role, output):
            yield from compare_finals(records_of(one_run, role, output), records_of(other_run, role, output), role)


def excuse(folder: TrialFolder) -> str | None:
    """Why final values may differ from one run to the next; None if nothing in the topology makes it so."""
    topology = Topology.read_described(read_timeline(folder.timeline))
    return UNKNOWN if topology is None else topology.why_final_values_may_differ()


def find_excuse(folder: TrialFolder, oracle: Oracle) -> str | None:
    """A sentence about the outputs whose final values are declared and differ, if there is a reason."""
    outputs = [role for role, output in _outputs(folder, oracle).items() if is_unstable(oracle, role, output)]
    if not outputs or (reason := excuse(folder)) is None:
        return None
    return f"Final values of {', '.join(outputs)} differ without a fault, which may come of {reason}."
