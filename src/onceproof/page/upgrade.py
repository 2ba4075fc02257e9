"""Advice on an upgrade, as shown in the terminal, on the page *Upgrade*, or as one file."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from onceproof.advice.advice import Advice, Issue, Said, Source, UpgradeAnswer
from onceproof.advice.advising import advise
from onceproof.advice.asking import ask, list_known_releases
from onceproof.model.application import FEATURES, Application, Value, as_toml, read_uses
from onceproof.model.errors import UsageError
from onceproof.model.json_file import encode, replacing
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import Verdict
from onceproof.page.rendering import FileLinks, inline, render
from onceproof.results.redaction import Redaction
from onceproof.results.table import style

# An answer has the colours and the sign of the verdict that it resembles.
LIKE = {
    UpgradeAnswer.NOTHING: Verdict.CLEAN,
    UpgradeAnswer.SOMETHING: Verdict.KNOWN,
    UpgradeAnswer.UNKNOWN: Verdict.INCONCLUSIVE,
}
NO_FEATURES = ("current", "target", "theme")  # the other parameters of the page
WORDS = {"true": True, "false": False}  # of a parameter, as in TOML
NONE = "none"  # of a feature that has several values


def upgrade_view(url: str, query: Sequence[tuple[str, str]]) -> dict[str, object]:
    """The view of the page on going from one release to another; by default, about going to the newest one.

    Args:
        url: of the results database.
        query: the names and values of the page's parameters: both releases, and the features of an application.

    Returns:
        releases (of the drop-downs, newest first), current, target, `show_advice`, or advice None and the problem.

    Raises:
        HarnessError: the database refuses.
    """
    releases = list_known_releases(url)
    named = {name: text for name, text in query if text}
    current = named.get("current", str(releases[1]))
    target = named.get("target", str(releases[0]))
    values = {"releases": [str(release) for release in releases], "current": current, "target": target}
    try:
        _check_named((current, target), values["releases"])
        advice = advise(ask(Release.parse(current), Release.parse(target), url, read_features(query)))
    except UsageError as error:
        return {**values, "advice": None, "problem": str(error), "features": _offer({}), "uses": []}
    return {**values, **show_advice(advice)}


def show_advice(advice: Advice) -> dict[str, object]:
    """The values of the template of an answer, which says each thing once.

    Returns:
        advice (as JSON), look, worst (the issues against it), features (of the filter), uses (the features in TOML).
    """
    features = _offer(advice.application or {})
    worst = encode(worst_first(advice))
    uses = as_toml(advice.application or {})
    return {"advice": encode(advice), "look": LIKE[advice.answer], "worst": worst, "features": features, "uses": uses}


def worst_first(advice: Advice) -> list[Issue]:
    """The known issues against it, the worst first."""
    return sorted((*advice.gained, *advice.carried), key=lambda issue: issue.severity.rank)


def read_features(query: Iterable[tuple[str, str]]) -> Application | None:
    """The application whose features a filter has; None if it has none.

    Raises:
        UsageError: it names an unknown feature or value.
    """
    chosen: dict[str, list[Value]] = defaultdict(list)
    for name, text in query:
        if text and name not in NO_FEATURES:
            chosen[name].append(WORDS.get(text, text))
    data = {name: _as_toml_value(name, values) for name, values in chosen.items()}
    return Application(read_uses(data, "The filter")) if data else None


def _as_toml_value(name: str, values: list[Value]) -> object:
    """The values of a parameter as a file of `--application` has them."""
    if name in FEATURES and FEATURES[name].several:
        return [] if values == [NONE] else values
    return values[0] if len(values) == 1 else values


def _offer(uses: Mapping[str, Collection[Value]]) -> list[dict[str, object]]:
    """The features that a filter offers: name, title, sentence, several, and each value with whether it is chosen."""
    offered = []
    for name, feature in FEATURES.items():
        used = uses.get(name)
        values = [(*_word(value), used is not None and value in used) for value in feature.values]
        if feature.several:
            values.append((NONE, NONE, used is not None and not used))
        title = name.replace("_", " ")
        more = {"sentence": feature.sentence, "several": feature.several, "values": values}
        offered.append({"name": name, "title": title, **more})
    return offered


def _word(value: Value) -> tuple[str, str]:
    """A value as a parameter, and for people."""
    return (str(value).lower(), "yes" if value else "no") if isinstance(value, bool) else (value, value)


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
    shown = show_advice(advice)
    for run in sorted({cell.run for cell in advice.measured if cell.by is None}):
        shown = Redaction.of(RunFolder(runs / run)).data(shown)
    page = render("advice.html", FileLinks(""), **shown, style=inline("page.css"))
    with replacing(target, named=True) as draft:
        draft.write_text(page, encoding="utf-8")


def terminal(advice: Advice) -> Iterator[Table | Text]:
    """Advice for a terminal, its headline first."""
    like = LIKE[advice.answer]
    yield Text.assemble(style(like, f" {like.sign} "), f" {advice.headline}", style="bold")
    if advice.remarks:
        yield Text(" ".join(advice.remarks), "dim")
    if advice.against:
        yield Text("\nKnown against it", "bold")
        yield from _sentences(_without_issues(advice.against))
        yield _tabulate_issues(
            ("carried" if issue in advice.carried else "gained", issue) for issue in worst_first(advice)
        )
    yield Text("\nWhat to do", "bold")
    yield from _sentences(_without_issues(advice.to_do))
    carried = {issue.key for issue in advice.carried}
    others = [("on the way", advice.on_the_way), ("left behind", advice.left_behind), ("staying", advice.staying)]
    yield _tabulate_issues((kind, issue) for kind, of in others for issue in of if issue.key not in carried)
    if advice.own:
        yield Text("\nYour application", "bold")
        yield from _sentences(advice.own)
    if advice.measured:
        yield _tabulate_measured(advice)
    yield Text("\nNot checked", "bold")
    for gap in advice.not_looked_at:
        look = "yellow" if gap.is_needed else "dim"
        text = f"{gap.what}. {gap.why}"
        yield Text.assemble(("  ? " if gap.is_needed else "  · ", look), text, _cite(text, gap.sources))
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


def _sentences(of: Iterable[Said]) -> Iterator[Text]:
    for said in of:
        yield Text(f"  - {said.text}").append_text(_cite(said.text, said.sources))


def _without_issues(of: Iterable[Said]) -> Iterator[Said]:
    """The sentences that do not repeat a known issue, which stands in a table."""
    return (said for said in of if said.issue is None)


def _cite(text: str, sources: Iterable[Source]) -> Text:
    """The sources that a text does not name itself."""
    names = [source.name for source in sources if source.name not in text]
    return Text(f" [{', '.join(names)}]" if names else "", "dim")


def _tabulate_issues(of: Iterable[tuple[str, Issue]]) -> Table:
    """Each issue as a block of lines, so that a narrow terminal shows whole sentences."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")  # what is to be typed stays whole
    for kind, issue in of:
        table.add_row()
        table.add_row(Text(kind, "bold"), Text.assemble((issue.key, "bold"), f", {issue.severity}"))
        for name, said in (("symptom", issue.symptom), ("condition", issue.condition), ("remedy", issue.remedy)):
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
