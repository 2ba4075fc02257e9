"""Advice on an upgrade, as shown in the terminal, on the page *Upgrade*, or as one file."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from onceproof.advice.advice import Advice, Issue, Said, Source, UpgradeAnswer
from onceproof.advice.advising import advise
from onceproof.advice.asking import ask, list_known_releases
from onceproof.model.application import as_toml
from onceproof.model.errors import UsageError
from onceproof.model.json_file import encode, replacing
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import Verdict
from onceproof.page.rendering import PageLinks, inline, render
from onceproof.results.redaction import Redaction
from onceproof.results.table import style

# An answer has the colours and the sign of the verdict that it resembles.
LIKE = {
    UpgradeAnswer.NOTHING: Verdict.CLEAN,
    UpgradeAnswer.SOMETHING: Verdict.KNOWN,
    UpgradeAnswer.UNKNOWN: Verdict.INCONCLUSIVE,
}
TO_DO, REFERENCE = ("gained", "on the way"), "See what to do."  # above the table, which has these issues' remedies


@dataclass(frozen=True)
class _Nowhere(PageLinks):
    """Links of a self-contained file without cells."""

    def _of_run(self, run: str, *path: str) -> str | None:  # noqa: ARG002 - nothing of a run is in the file
        return None


def upgrade_view(url: str, current: str, target: str) -> dict[str, object]:
    """The view of the page on going from one release to another; by default, about going to the newest one.

    Returns:
        releases (of the drop-downs, newest first), current, target, advice with its look, or None and the problem.

    Raises:
        HarnessError: the database refuses.
    """
    releases = list_known_releases(url)
    current = current or str(releases[1])
    target = target or str(releases[0])
    values = {"releases": [str(release) for release in releases], "current": current, "target": target}
    try:
        _check_named((current, target), values["releases"])
        advice = advise(ask(Release.parse(current), Release.parse(target), url))
    except UsageError as error:
        return {**values, "advice": None, "problem": str(error)}
    return {**values, "advice": encode(advice), "look": LIKE[advice.answer]}


def _check_named(chosen: Iterable[str], releases: Sequence[str]) -> None:
    for release in chosen:
        if str(Release.parse(release)) not in releases:
            raise UsageError(f"Nothing here names Kafka {release}: choose one of the list, or use `onceproof advise`.")


def write_advice(advice: Advice, runs: Path, target: Path) -> None:
    """Write advice as one self-contained file, without what must not leave the machine.

    Raises:
        UsageError: the target is a folder.
        HarnessError: it cannot be written.
    """
    if target.is_dir():
        raise UsageError(f"{target} is a folder: name a file for the advice.")
    answer = encode(advice)
    for run in sorted({cell.run for cell in advice.measured if cell.by is None}):
        answer = Redaction.of(RunFolder(runs / run)).data(answer)
    values = {"look": LIKE[advice.answer], "uses": as_toml(advice.application or {}), "style": inline("page.css")}
    page = render("advice.html", _Nowhere("#"), advice=answer, **values)
    with replacing(target, named=True) as draft:
        draft.write_text(page, encoding="utf-8")


def terminal(advice: Advice) -> Iterator[Table | Text]:
    """Advice for a terminal, its headline first."""
    like = LIKE[advice.answer]
    yield Text.assemble(style(like, f" {like.sign} "), f" {advice.headline}", style="bold")
    yield from _sentences("Known against it", advice.against)
    yield from _sentences("What to do", advice.to_do)
    issues = [
        ("gained", advice.gained),
        ("on the way", advice.on_the_way),
        ("left behind", advice.left_behind),
        ("staying", advice.staying),
    ]
    if any(of for _, of in issues):
        yield _issues(issues)
    yield from _sentences("Your application", advice.own)
    if advice.measured:
        yield _tabulate_measured(advice)
    yield Text("\nNot checked", "bold")
    for gap in advice.not_looked_at:
        look = "yellow" if gap.is_needed else "dim"
        names = (f" [{_names(gap.sources)}]", "dim")
        yield Text.assemble(("  ? " if gap.is_needed else "  · ", look), f"{gap.what}. {gap.why}", names)
    if advice.application is not None:
        yield Text("\nWhat it uses", "bold")
        yield from (Text(f"  {line}") for line in as_toml(advice.application))
        yield Text(
            "  Where that is wrong, correct it: in the file that you named, or in onceproof.toml, table [uses].", "dim"
        )
        yield Text("\nLeft out", "bold")
        yield from (Text(f"  {reason.what}: {reason.why}") for reason in advice.left_out)
        if not advice.left_out:
            yield Text("  Nothing: all of it may concern the application.")


def _sentences(title: str, of: Sequence[Said]) -> Iterator[Text]:
    if of:
        yield Text(f"\n{title}", "bold")
    for said in of:
        yield Text.assemble(f"  - {said.text} ", (f"[{_names(said.sources)}]", "dim"))


def _names(sources: Iterable[Source]) -> str:
    return ", ".join(source.name for source in sources)


def _issues(of: Iterable[tuple[str, Sequence[Issue]]]) -> Table:
    """Each issue as a block of lines, so that a narrow terminal shows whole sentences."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")  # what is to be typed stays whole
    for kind, issues in of:
        for issue in issues:
            remedy = REFERENCE if kind in TO_DO else issue.remedy
            table.add_row()
            table.add_row(Text(kind, "bold"), Text(issue.key, "bold"))
            for name, said in (("symptom", issue.symptom), ("condition", issue.condition), ("remedy", remedy)):
                table.add_row(f"  {name}", Text(said))
    return table


def _tabulate_measured(advice: Advice) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title="\nMeasured", title_justify="left")
    for name in ("streams", "scenario", "verdict", "red/counted", "excludes", "run, or who measured it"):
        table.add_column(name, no_wrap=True)
    for cell in advice.measured:
        verdict = Verdict(cell.verdict)
        table.add_row(
            f"{cell.streams} → {cell.restart_on}" if cell.restart_on else cell.streams,
            Text(f"{cell.scenario} {cell.variant}"),
            style(verdict, f"{verdict.sign} {verdict}"),
            f"{cell.red}/{cell.counted}",
            "" if cell.excluded_rate is None else f"≥ {cell.excluded_rate:.0%}".replace("%", " %"),
            (cell.by or cell.run) + ("" if cell.is_current else " (earlier harness)"),
        )
    return table
