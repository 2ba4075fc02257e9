"""Known issues in user applications (`application_issues.toml`): which witnesses they explain.

Nothing is known of such an application but its topology, the releases, the configuration and what happened. An issue is
asked of these as scenarios are asked; without a description it explains nothing.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from onceproof.model.anomaly import Witness
from onceproof.model.application import Application
from onceproof.model.causes import Cause, Causes, outputs_of
from onceproof.model.cell import Trial
from onceproof.model.decoding import Pattern, read_tables
from onceproof.model.errors import HarnessError
from onceproof.model.explaining import Scene
from onceproof.model.known_issues import OF_BROKERS, IssueRegistry, KnownIssue, registry
from onceproof.model.promise import ANOMALIES
from onceproof.model.timeline import Event
from onceproof.model.topology import Topology, collect_uses

FILE = Path(__file__).with_name("application_issues.toml")
UNTHROTTLED = {"quotas": (False,)}  # no producer of such a trial has a quota


@dataclass(frozen=True)
class Shows:
    """The effects of an issue on any topology; see `application_issues.toml`, which has its fields."""

    issue: str
    anomalies: tuple[str, ...]
    faults: tuple[str, ...] = ()
    uncommitted: bool = False
    after: str | None = None
    says: Pattern | None = None
    expects: Pattern | None = None
    store: Pattern | None = None
    returned: bool = False
    stayed: bool = False
    restored: bool = False
    reopened: bool = False
    undisturbed: bool = False
    repartitioned: bool = False
    configured: Pattern | None = None
    unconfigured: Pattern | None = None
    skipped: bool = False
    dropped: bool = False
    unkeyed: bool = False

    def explains(
        self, witness: Witness, scene: Scene, topology: Topology, configs: Sequence[Mapping[str, str]] = ()
    ) -> bool:
        """Whether everything holds that is given."""
        return (
            witness.anomaly in self.anomalies
            and not (self.faults and scene.faults.isdisjoint(self.faults))
            and (not self.uncommitted or _may_be_uncommitted(witness, scene, topology))
            and (self.after is None or scene.has(self.after))
            and bool(re.search(self.says or "", witness.observed) and re.search(self.expects or "", witness.expected))
            and (self.store is None or topology.has_store(self.store, _store_of(witness)))
            and (not self.returned or witness.partition in scene.returned)
            and (not self.stayed or witness.partition in scene.stayed)
            and (not self.restored or witness.partition in scene.restored or bool(topology.internal and scene.restored))
            and (not self.reopened or scene.reopened)
            and not (self.undisturbed and scene.faults)
            and not (self.repartitioned and not topology.internal)
            and (self.configured is None or _is_configured(self.configured, configs))
            and not (self.unconfigured is not None and _is_configured(self.unconfigured, configs))
            and not (self.skipped and not _restores_skipped(witness, scene))
            and not (self.unkeyed and not _count_left_out(witness, scene))
            and not (self.dropped and not any(scene.select_logged("dropped")))
        )


def _store_of(witness: Witness) -> str | None:
    """The store that a witness is of; None if it is of records."""
    found = (re.match(r"(?:active|standby) store (\S+) of ", place) for place in witness.offsets)
    return next((match[1] for match in found if match), None)


def _is_configured(pattern: str, configs: Sequence[Mapping[str, str]]) -> bool:
    """Whether some configuration has a line `name=value` with this pattern."""
    return any(re.search(pattern, f"{name}={value}") for config in configs for name, value in config.items())


def _restores_skipped(witness: Witness, scene: Scene) -> bool:
    """Whether a store that a witness can come of was restored from a topic of which records were skipped."""
    skipped = {event["topic"] for event in scene.select_logged("skipped") if event["partition"] in scene.restored}
    return any(
        witness.anomaly == "thread-died" or outputs_of(witness) & shape.find_fed_by_store(name)
        for _, shape in scene.shapes
        for name, store in shape.stores.items()
        if store.changelog in skipped
    )


def _count_left_out(witness: Witness, scene: Scene) -> int:
    """How many records were left out by joins, as they had no key, of topics that a witness can come of."""
    outputs = outputs_of(witness)

    def is_reached(name: str) -> bool:
        return any(
            outputs & shape.find_fed_by_topic(source)
            for _, shape in scene.shapes
            for part in shape.parts.values()
            for source in part.sources
            if name == source or name.endswith(f"-{source}")  # one that Kafka Streams made has the application's id
        )

    return sum(event["times"] for event in scene.select_logged("unkeyed") if is_reached(event["topic"]))


def _may_be_uncommitted(witness: Witness, scene: Scene, topology: Topology) -> bool:
    """Whether a witness can come of what a fault left on a disk, though it was never committed.

    Where nothing is repartitioned, a record is in the partition of the task that wrote it, and others were not
    affected.
    """
    struck = [
        {int(task.partition("_")[2]) for task in event["observed"].get("tasks", ())}
        for event in scene.events
        if event["event"] == "fault" and event["action"] == "observed" and event["observed"].get("uncommitted_on_disk")
    ]
    if not struck:
        return False
    if topology.internal or not witness.places:
        return True
    return any(place.partition in tasks for place in witness.places for tasks in struck)


def issues_of(trial: Trial, uses: Application, known: IssueRegistry) -> tuple[KnownIssue, ...]:
    """The known issues that concern a trial of an application: its releases have them, and it has what they need."""
    cell = trial.cell
    here = (
        issue
        for issue in known.issues
        if (issue.is_in(cell.streams) or issue.is_in(cell.running) or issue.is_between(cell.streams, cell.running))
        or (issue.culprit == OF_BROKERS and any(cell.broker.within(*affected) for affected in issue.affected))
    )
    return tuple(issue for issue in here if uses.lacks(issue.needs) is None)


@dataclass(frozen=True)
class ExplainedWitnesses:
    """The part that known issues, and causes in the application, explain of the witnesses of a trial."""

    issues: tuple[str, ...]  # keys of those that explain any
    unexplained: Mapping[str, int]  # witnesses that none explains, and no cause, by anomaly
    concerned: tuple[str, ...] = ()  # keys of the other ones that its releases have, and whose needs it meets
    causes: tuple[Cause, ...] = ()  # in the application itself, of witnesses that no issue explains


def explain(
    trial: Trial,
    witnesses: Iterable[Witness],
    events: Sequence[Event],
    *configs: Mapping[str, str],
) -> ExplainedWitnesses:
    """Explain the witnesses of a trial of an application.

    What is planted explains itself, and a black box describes nothing: of these nothing explains anything.

    Args:
        trial: whose they are.
        witnesses: all of them.
        events: its timeline.
        configs: of Kafka Streams, at first and from later starts on.
    """
    all_ = list(witnesses)
    topologies = Topology.all_known(events)
    if not topologies or trial.plant is not None:
        return ExplainedWitnesses((), Counter(witness.anomaly for witness in all_))
    uses = Application({**collect_uses(topologies, configs), **UNTHROTTLED})
    scene = Scene(events, tuple)
    there = {issue.key: issue for issue in issues_of(trial, uses, registry())}
    rows = [row for row in application_issues() if row.issue in there]
    found: set[str] = set()
    left: Counter[str] = Counter()
    own, causes = Causes(scene, configs), dict[Cause, None]()
    lost = 0  # records that joins left out explain as many
    for witness in all_:
        by = {row for row in rows for topology in topologies if row.explains(witness, scene, topology, configs)}
        if witness.anomaly == "lost-record" and any(row.unkeyed for row in by):
            lost += 1
            by = {row for row in by if not row.unkeyed or lost <= _count_left_out(witness, scene)}
        found |= {row.issue for row in by}
        if by:
            continue
        if cause := own.of(witness):
            causes[cause] = None
        else:
            left[witness.anomaly] += 1
    others = tuple(key for key in there if key not in found)
    return ExplainedWitnesses(tuple(key for key in there if key in found), left, others, tuple(causes))


def parse_application_issues(text: str, known: IssueRegistry) -> tuple[Shows, ...]:
    """Read the rows.

    Raises:
        HarnessError: a row has an unknown field, issue or anomaly, says nothing of its witnesses, or has a regular
            expression that is none.
    """
    keys = {issue.key for issue in known.issues}
    [rows] = read_tables(text, FILE.name, shows=Annotated[Shows, AfterValidator(_check)]).values()
    if unknown := next((row.issue for row in rows if row.issue not in keys), None):
        raise HarnessError(f"{FILE.name}: {unknown!r} is no issue of the registry; name one that is.")
    return tuple(rows)


def _check(row: Shows) -> Shows:
    """The same row.

    Raises:
        ValueError: it names an anomaly that there is not, or says nothing of its witnesses.
    """
    if unknown := sorted(set(row.anomalies) - ANOMALIES.keys()):
        raise ValueError(f"there is no anomaly {unknown[0]!r}; docs/reading-a-verdict.md lists them")
    if row == Shows(row.issue, row.anomalies):
        raise ValueError("it says nothing of its witnesses; say what must hold of them")
    return row


@cache
def application_issues() -> tuple[Shows, ...]:
    """The rows of this installation."""
    return parse_application_issues(FILE.read_text(encoding="utf-8"), registry())
