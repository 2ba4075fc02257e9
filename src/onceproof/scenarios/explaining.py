"""The witnesses of a trial that known issues explain: an issue occurs only where parameters give what it needs."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from onceproof.model.anomaly import Witness
from onceproof.model.application import Application
from onceproof.model.application_issues import explain
from onceproof.model.cell import Trial
from onceproof.model.explaining import Scene, count_unexplained
from onceproof.model.files import since
from onceproof.model.history import Input
from onceproof.model.known_issues import KnownIssue, registry
from onceproof.model.timeline import Event
from onceproof.model.topology import Topology
from onceproof.scenarios import SCENARIOS, app


def count_unexplained_in(
    trial: Trial, witnesses: Iterable[Witness], events: Sequence[Event], inputs: Callable[[], Iterable[Input]]
) -> Counter[str]:
    """For each anomaly of a trial, the witnesses that no known issue explains.

    Args:
        trial: whose they are.
        witnesses: of either reader.
        events: its timeline.
        inputs: gives the records of the input.
    """
    scenario = SCENARIOS.get(trial.cell.scenario)
    if scenario is None:  # your own application; a black box describes nothing, and nothing explains it
        # Its configuration may change at a restart (`[[phase]]`), and an issue counts if any of them has what it needs.
        configs = (
            since(app.SCENARIO.config(trial), app.SCENARIO.later(trial)) if Topology.read_described(events) else []
        )
        return Counter(explain(trial, witnesses, events, *configs).unexplained)
    # A trial with parameters of its own may do what another variant does, so explanations of any variant count for it.
    # That opens no door: each still asks for what its issue needs, which `uses` takes from the parameters themselves.
    known = registry().explanations(trial.cell, Application(scenario.uses(trial)), varied=trial.is_varied)
    return count_unexplained(witnesses, known, Scene(events, inputs, scenario.values(trial)))


def find_concerned_in(trial: Trial, anomalies: Iterable[str]) -> tuple[KnownIssue, ...]:
    """The known issues that explain any of these anomalies of a trial of a scenario."""
    names, application = set(anomalies), Application(SCENARIOS[trial.cell.scenario].uses(trial))
    there = registry().find_concerned(trial.cell, names, application, varied=trial.is_varied)
    return tuple(issue for issue in there if names & set(issue.anomalies))
