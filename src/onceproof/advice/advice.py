"""The answer as it is printed: the form of `advise --json`, of which `docs/schemas/` has the schema."""

from dataclasses import dataclass
from enum import StrEnum

from onceproof.model.errors import ExitCode
from onceproof.model.severity import Severity

SCHEMA = 1  # of the JSON; it changes when a field is removed or changes its meaning, not when one is added


class UpgradeAnswer(StrEnum):
    """The answer: how much is known against the change."""

    NOTHING = "nothing known against it"
    SOMETHING = "something known against it"
    UNKNOWN = "not looked at enough"

    @property
    def exit_code(self) -> ExitCode:
        """1 if something is known against the upgrade, 3 if too little was checked."""
        return {
            UpgradeAnswer.NOTHING: ExitCode.OK,
            UpgradeAnswer.SOMETHING: ExitCode.ANOMALY,
            UpgradeAnswer.UNKNOWN: ExitCode.INCONCLUSIVE,
        }[self]


class SourceKind(StrEnum):
    """The kinds of source: a row of the registry, a cell of a run or of the atlas, or what is read elsewhere."""

    ISSUE = "issue"
    CELL = "cell"
    ATLAS = "atlas"
    DOCUMENT = "document"


@dataclass(frozen=True)
class Source:
    """Where a sentence comes from: the key of a row, the key of a cell with its run, or a citation."""

    kind: SourceKind
    name: str
    run: str | None = None
    url: str | None = None


@dataclass(frozen=True)
class Said:
    """A sentence, and what it rests on: never nothing.

    `issue` is the key of the known issue whose symptom or remedy it repeats.
    """

    text: str
    sources: tuple[Source, ...]
    issue: str | None = None


@dataclass(frozen=True)
class Issue:
    """A known issue, as a reason for or against an upgrade."""

    key: str
    title: str
    url: str | None  # its JIRA; null of what is documented
    symptom: str
    condition: str
    remedy: str
    affected: tuple[str, ...]  # ranges of releases, ends included
    fixed: tuple[str, ...]
    sources: tuple[str, ...]
    cells: tuple[Source, ...]  # measured ones of the two releases in which it can show
    severity: Severity


@dataclass(frozen=True)
class MeasuredCell:
    """The last verdict on a cell."""

    cell: str
    scenario: str
    variant: str
    streams: str
    broker: str
    restart_on: str | None
    verdict: str
    sentence: str
    red: int
    counted: int
    excluded_rate: float | None  # of a green: bugs that show so often, or oftener, are excluded with 95 % confidence
    missed: float | None  # of the procedure that called it green: the probability that it misses a bug, at most
    issues: tuple[str, ...]
    run: str
    created: str
    is_current: bool  # by the harness as it is; if not, an earlier one may have found less
    by: str | None = None  # of what was not measured here but is shipped: by which version of Onceproof, and when


@dataclass(frozen=True)
class Gap:
    """A question that was not checked, and why; `is_needed` if the answer depends on it; `cell` would fill the gap."""

    what: str
    why: str
    is_needed: bool
    cell: str | None
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class LeftOut:
    """An issue, or a variant of a scenario, that does not concern the application, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Advice:
    """The answer to: is it safe to go from one release to the other?"""

    schema: int
    current: str
    target: str
    answer: UpgradeAnswer
    exit_code: int
    headline: str
    against: tuple[Said, ...]
    to_do: tuple[Said, ...]
    better_targets: tuple[str, ...]
    left_behind: tuple[Issue, ...]
    gained: tuple[Issue, ...]
    staying: tuple[Issue, ...]
    measured: tuple[MeasuredCell, ...]
    not_looked_at: tuple[Gap, ...]
    application: dict[str, tuple[str | bool, ...]] | None
    left_out: tuple[LeftOut, ...]
    on_the_way: tuple[Issue, ...] = ()  # that neither release has, but both together in one group
    own: tuple[Said, ...] = ()  # what one's own application showed on these releases
    carried: tuple[Issue, ...] = ()  # whose damage on the current release the target trusts, with what prevents that
    remarks: tuple[str, ...] = ()  # counts that stand below the headline
