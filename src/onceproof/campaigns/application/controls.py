"""Controls of a user application: the promises that a planted bug breaks, and those that none does."""

from collections.abc import Collection, Mapping

from onceproof.model.files import Outcome, TrialPlan
from onceproof.model.judged import PlantedControl
from onceproof.model.oracle import Oracle, Outputs
from onceproof.model.record import Record
from onceproof.model.run_folder import TrialFolder
from onceproof.readers.application import compare_outputs, oracle_records, records_of, select_declared
from onceproof.readers.kafka import token_record
from onceproof.scenarios import scenario

# Plants that can fire in any topology: output that gets lost or doubled, input that is skipped or taken twice.
CONTROLS = ("batch-lost", "output-twice", "record-skipped", "record-twice")
NAMES = {"deliveries": "each-input-once"}  # as people know them, where that is not what readers call them
Broken = Mapping[str, Mapping[str, bool]]  # by topic: each promise that was compared, and whether it is broken


def find_broken_promises(folder: TrialFolder, oracle: Oracle) -> Broken:
    """The promises of each output in a trial that has ended."""
    plan, outcome = TrialPlan.read(folder.trial_file), Outcome.read(folder.outcome_file)
    outputs, declared = Outputs.read(folder.outputs_file), select_declared("output", plan.roles)
    topics = {role: records_of(outputs, role, output) for role, output in declared.items()}
    topics |= oracle_records(oracle, declared)
    topics |= _inputs(plan)
    broken: dict[str, dict[str, bool]] = {}
    for role, comparisons in compare_outputs(plan.roles, topics, outcome.facts).items():
        of_role = broken.setdefault(role, {})
        for comparison in comparisons:
            name = NAMES.get(comparison.promise, comparison.promise)
            of_role[name] = of_role.get(name, False) or comparison.anomaly is not None
    return broken


def _inputs(plan: TrialPlan) -> dict[str, list[Record]]:
    """The records that were produced to each input. Partitions do not matter to promises about keys."""
    messages = scenario(plan.trial.cell.scenario).workload(plan.trial).messages
    return {
        role: [
            token_record(0, place, m.key, m.value, output) for place, m in enumerate(messages) if m.topic == output.name
        ]
        for role, output in select_declared("input", plan.roles).items()
    }


def list_broken(broken: Broken) -> dict[str, tuple[str, ...]]:
    """The promises that are broken, by topic."""
    found = {topic: tuple(sorted(name for name, is_so in of.items() if is_so)) for topic, of in broken.items()}
    return {topic: names for topic, names in found.items() if names}


def vacuous(made: Broken, controls: Collection[PlantedControl]) -> dict[str, tuple[str, ...]]:
    """The promises, by topic, that none of the controls broke; nothing is known if one of them says nothing."""
    if not all(control.says_something for control in controls):
        return {}
    seen = {(topic, name) for control in controls for topic, names in control.broke.items() for name in names}
    left = {topic: tuple(sorted(name for name in of if (topic, name) not in seen)) for topic, of in made.items()}
    return {topic: names for topic, names in left.items() if names}
