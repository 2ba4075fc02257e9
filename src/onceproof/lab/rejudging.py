"""Judges a trial again by what it left: no broker and no JVM is involved, and nothing is driven.

So a reader, a promise or the registry may change, and what was measured keeps its worth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from onceproof.lab.judging import Remains, check_least, find_anomalies, find_oracle
from onceproof.lab.reading import Read, read_kept, select_logged
from onceproof.lab.segments import read_segments
from onceproof.model.anomaly import Comparison
from onceproof.model.errors import HarnessError
from onceproof.model.files import Outcome, Reading, TrialPlan
from onceproof.model.run_folder import TrialFolder
from onceproof.model.timeline import read_timeline
from onceproof.readers.segments import compare_segments
from onceproof.scenarios.observing import observe
from onceproof.scenarios.prepared import PreparedTrial


@dataclass(frozen=True)
class Judged:
    """The judgement of a trial by the readers of today; the fields are what `lab.trial` writes down of one."""

    outcome: Outcome
    reading: Reading
    observed: Sequence[Comparison]


def judge_again(folder: TrialFolder) -> Judged:
    """Judge a trial that was driven to its end, or until Kafka failed.

    Raises:
        HarnessError: it left too little, for example because it is of an older version; or its files are damaged.
    """
    plan, outcome = TrialPlan.read(folder.trial_file), Outcome.read(folder.outcome_file)
    if not folder.messages_file(committed=True).exists():
        raise HarnessError(f"{plan.trial.key} did not keep the messages of its topics, so it cannot be judged again.")
    read, events = read_kept(plan, folder), read_timeline(folder.timeline)
    observed = observe(PreparedTrial(plan.trial), plan, events)
    left = Remains(plan, folder, outcome.facts, outcome.failed is not None, events)
    oracle = None if left.failed else find_oracle(plan)
    reading = find_anomalies(left, read, _compare_segments(left, read), observed, oracle)
    return Judged(check_least(plan, outcome, reading), reading, observed)


def _compare_segments(left: Remains, read: Read) -> list[Comparison]:
    if not left.folder.segments_file.exists():
        return []
    entries = read_segments(left.folder.segments_file)
    return list(compare_segments(entries, select_logged(left.plan, read), left.plan.check, left.facts))
