"""The verb of DAG `bisect`: which releases are searched, and the search."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from onceproof.campaigns.bisection.boundaries import COLUMNS, row
from onceproof.campaigns.requests import BisectRequest
from onceproof.model.errors import UsageError
from onceproof.model.known_issues import KnownIssue, registry
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.processes.signals import end_by_sigterm
from onceproof.scenarios import scenario
from onceproof.settings import get_settings

if TYPE_CHECKING:
    from onceproof.lab.external_brokers import ExternalCluster

# As in `steps`: heavy modules are imported by the verb that needs them.


@dataclass(frozen=True)
class BisectionSearch:
    """A bisection that can be carried out: everything exists, and Java is new enough for the brokers."""

    scenario: str
    variant: str
    releases: tuple[Release, ...]
    broker: Release
    trials: int
    seed: int
    issue: KnownIssue | None  # whose anomalies are searched for; None if no known issue concerns the variant: any

    @property
    def title(self) -> str:
        """The scenario, the issue if one is asked for, and both ends of the range."""
        what = f" ({self.issue.key})" if self.issue else ""
        return f"bisect {self.scenario} {self.variant}{what}, {self.releases[0]} to {self.releases[-1]}"


def search_for(request: BisectRequest, seed: int) -> BisectionSearch:
    """The search that is asked for; `seed` is taken if the request has none.

    Raises:
        UsageError: there is no such scenario, variant or issue, no release in the range, no Maven, or Java is too old.
        HarnessError: Maven could not list the releases.
    """
    from onceproof.lab.java import require_java
    from onceproof.lab.releases import exact, list_published

    scenario(request.scenario).variant(request.variant)
    issue = _issue(request.scenario, request.variant, request.issue)
    installation = get_settings().installation
    first, broker = (Release.parse(*exact(installation, [name])) for name in (request.first, request.broker))
    last = Release.parse(*exact(installation, [request.last])) if request.last else None
    require_java(installation.java, broker.oldest_java, f"a broker of Kafka {broker}")
    ends = [release for release in (first, last) if release is not None]
    published = list_published(installation, pre_releases=any(end.is_candidate and not end.commit for end in ends))
    within = {release for release in published if first <= release and (last is None or release <= last)}
    releases = tuple(sorted(within.union(end for end in ends if end.commit)))
    if not releases:
        raise UsageError(
            f"No release is published from {first} to {last or 'the newest'}; see `onceproof release list`."
        )
    return BisectionSearch(
        request.scenario, request.variant, releases, broker, request.trials, request.seed_or(seed), issue
    )


def _issue(scenario_name: str, variant: str, key: str | None) -> KnownIssue | None:
    """The known issue whose anomalies are searched for: the one of this key, or the only one that must show there.

    Raises:
        UsageError: none of this key concerns the variant, or several do and none is named.
    """
    issues = {i.key: i for i in registry().issues if i.concerns(scenario_name, variant)}
    expected = [issue for issue in issues.values() if variant in issue.provoked.get(scenario_name, ())]
    if key is None and len(expected) <= 1:
        return next(iter(expected), None)
    if key not in issues:
        there_is = ", ".join(issues) or "none"
        what = f"No known issue {key} concerns" if key else "More than one known issue concerns"
        raise UsageError(f"{what} {scenario_name} {variant}: name one with --issue; choose from {there_is}.")
    return issues[key]


def bisect(
    run: RunFolder,
    search: BisectionSearch,
    report: Callable[[str], None] = print,
    external: "ExternalCluster | None" = None,
) -> dict[str, object]:
    """Find the boundaries between good and bad releases; `bisect.json` in the run folder is what is returned.

    Raises:
        UsageError: the `external` brokers cannot be reached, or do not allow what the trials need.
        HarnessError: the brokers could not be started.
    """
    from onceproof.campaigns.bisection.trials import bisect_cell

    count = f"{len(search.releases)} release{'' if len(search.releases) == 1 else 's'}"
    report(f"{count}, at most {search.trials} trials, seed {search.seed}")
    with end_by_sigterm():
        return bisect_cell(
            get_settings().installation,
            run,
            search.scenario,
            search.variant,
            list(search.releases),
            search.broker,
            search.seed,
            search.trials,
            report,
            search.issue.anomalies if search.issue else None,
            external,
        )


def as_table(found: Mapping[str, Any], title: str) -> str:
    """A bisection as text: the boundaries, one row per release line, and what is good or unknown."""
    table = Table(*(name.replace("_", " ") for name in COLUMNS), title=title, title_justify="left", box=None)
    for boundary in found["boundaries"]:
        table.add_row(*row(boundary))
    console = Console(width=120, highlight=False)
    with console.capture() as text:
        console.print(table)
        console.print(f"{found['trials']} trials; good: {', '.join(found['good']) or 'none'}")
        for release, (red, trials) in found["controls"].items():
            console.print(
                f"What the greens are worth: {release}, once known to be bad, was red in {red} of {trials} trials"
            )
        if found["missed"] is None:
            console.print(
                "Nothing was red, so it is not known what the greens are worth: widen the range to a bad release."
            )
        for release, reason in found["unknown"].items():
            console.print(f"? {release}: {reason}", markup=False)
    return "\n".join(line.rstrip() for line in text.get().splitlines())
