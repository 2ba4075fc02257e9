"""Whether a build has the fix of a known issue: the scenarios in which it shows, on the builds before and after."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from onceproof.campaigns.verify_fix.answer import FixAnswer, compare, whole
from onceproof.model.cell import Cell
from onceproof.model.errors import UsageError
from onceproof.model.known_issues import LATER, MIXED, OF_BROKERS, KnownIssue, registry
from onceproof.model.matrices import RISK
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.scenarios import scenario
from onceproof.settings import get_settings


@dataclass(frozen=True)
class FixQuestion:
    """Which cells are compared, for which issue; everything can be run."""

    issue: KnownIssue
    before: Release
    build: Release
    broker: Release
    trials: int  # of each scenario, at most
    seed: int

    @property
    def title(self) -> str:
        """The issue, and the release and the build that are compared."""
        return f"verify-fix {self.issue.key}, {self.before} to {self.build}"

    @property
    def command(self) -> str:
        """The command that asks it again, on this machine, where the builds are kept."""
        words = [
            "onceproof",
            "issue",
            "verify-fix",
            self.issue.key,
            "--before",
            str(self.before),
            "--build",
            str(self.build),
        ]
        words += ["--broker", str(self.broker), "--trials", str(self.trials), "--seed", str(self.seed)]
        return shlex.join(words)

    def cells(self) -> Iterator[tuple[Cell, Cell]]:
        """Before and after, in the variant of each scenario that shows the issue best; not where it is incidental."""
        for name, variants in self.issue.provoked.items():
            before = Cell(name, variants[0], self.before, self.broker)
            yield before, replace(before, streams=self.build)


def issue_of(key: str) -> KnownIssue:
    """The known issue of a key.

    Raises:
        UsageError: the registry has none, or no scenario shows it reliably, or it takes two releases, or brokers.
    """
    issues = {issue.key: issue for issue in registry().issues}
    if key not in issues:
        known = ", ".join(key for key, issue in issues.items() if issue.url)
        raise UsageError(
            f"{key!r} is no known issue: choose from {known}; docs/adding-a-known-issue.md says how to add it."
        )
    if not issues[key].provoked:
        raise UsageError(
            f"{key} shows only incidentally, and no scenario provokes it, so a green of one would prove nothing."
        )
    if issues[key].culprit == MIXED:
        raise UsageError(f"{key} occurs between two releases, so no build alone can have its fix.")
    if issues[key].culprit == OF_BROKERS:
        [name] = issues[key].provoked
        raise UsageError(
            f"{key} is one of brokers, and a build of Kafka Streams cannot have its fix: try `onceproof trial {name}` "
            "with --broker before and after."
        )
    return issues[key]


def last_bad(issue: KnownIssue) -> str:
    """The last release that has an issue.

    Raises:
        UsageError: it is not fixed in any.
    """
    last = max(last for _, last in issue.affected)
    if last == LATER:
        raise UsageError(f"No release is without {issue.key}, so none is the last that has it: name one by --before.")
    return str(last)


def ask(issue: KnownIssue, before: str, build: str, broker: str, trials: int, seed: int) -> FixQuestion:
    """The question, once everything in it exists and can be run here; `before` and `build` are names of releases or
    builds.

    Raises:
        UsageError: it does not, or cannot.
    """
    from onceproof.lab.artifacts import check_published
    from onceproof.lab.java import require_java

    old, new, brokers = map(Release.parse, (before, build, broker))
    question = FixQuestion(issue, old, new, brokers, trials, seed)
    installation = get_settings().installation
    require_java(installation.java, question.broker.oldest_java, f"a broker of Kafka {broker}")
    check_published(installation, {question.before, question.build, question.broker})
    for cell in (cell for pair in question.cells() for cell in pair):
        if reason := scenario(cell.scenario).refuse(cell):
            raise UsageError(f"{cell.title} cannot be run: {reason}")
    return question


def verify(run: RunFolder, question: FixQuestion, report: Callable[[str], None] = print) -> FixAnswer:
    """Run the trials that the answer needs; `fix.json` in the run folder is what is returned.

    Raises:
        HarnessError: the brokers could not be started.
    """
    from onceproof.campaigns.bisection.trials import probing

    pairs = list(question.cells())
    compared = []
    cells = [cell for pair in pairs for cell in pair]
    installation, anomalies = get_settings().installation, question.issue.anomalies
    with probing(installation, run, cells, question.seed, report, anomalies) as probe:
        for before, after in pairs:
            compared.append(compare(before, after, probe, RISK, question.trials))
            report(f"{after.scenario}: {compared[-1].proof}: {compared[-1].reason}")
    answer = FixAnswer(
        issue=question.issue.key,
        title=question.issue.title,
        before=str(question.before),
        build=str(question.build),
        broker=str(question.broker),
        proof=whole([one.proof for one in compared]),
        scenarios=tuple(compared),
        risk=RISK,
        seed=question.seed,
        command=question.command,
        folder=str(run.path),
    )
    answer.write(run.fix_file)
    return answer
