"""The matrix as a table in the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from onceproof.model.cell import Cell
from onceproof.model.files import VerdictRow
from onceproof.model.matrices import BROKER
from onceproof.model.verdict import Verdict

CHANGES_SHOWN = 8  # of a run in the history

STYLES = {
    Verdict.REGRESSION: "bold white on red",
    Verdict.ERROR: "bold magenta",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.KNOWN: "red",
    Verdict.FIXED: "bold white on green",
    Verdict.PROVISIONAL: "green italic",
    Verdict.CLEAN: "green",
    Verdict.AVOIDED: "cyan",
}


def style(verdict: Verdict, text: str) -> Text:
    """A text in the colours of a verdict."""
    return Text(text, STYLES[verdict])


def verdict_table(verdicts: Sequence[VerdictRow], title: str) -> Table:
    """One row per cell: release, variant, verdict, k/n, counts, anomalies, seconds of a trial."""
    table = Table(title=Text(title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in ("streams", "variant", "verdict"):
        table.add_column(name, no_wrap=True)
    table.add_column("red/counted", justify="right", no_wrap=True)
    table.add_column("records", justify="right", no_wrap=True)
    table.add_column("IDs", justify="right", no_wrap=True)
    table.add_column("what was seen", ratio=1)
    table.add_column("s/trial", justify="right", no_wrap=True)
    shows_broker = len({v.broker for v in verdicts}) > 1 or any(v.as_cell.broker.is_claimed for v in verdicts)
    several_scenarios = len({v.scenario for v in verdicts}) > 1
    for v in verdicts:
        variant = f"{v.scenario} {v.variant}" if several_scenarios else v.variant
        table.add_row(
            f"{v.as_cell.releases} (broker {v.broker})" if shows_broker else v.as_cell.releases,
            Text(variant),
            style(v.verdict, f"{v.verdict.sign} {v.verdict}"),
            f"{v.red}/{v.counted}",
            f"{v.records:,}",
            f"{v.ids:,}" if v.ids else "",
            Text(describe_seen(v)),
            "" if v.seconds is None else f"{v.seconds:.1f}",
        )
    return table


SENSED = {
    "found": ("✔", "green"),
    "equivalent": ("○", "cyan"),
    "survived": ("✘", "bold white on red"),
    "misjudged": ("✘", "bold white on red"),
    "not-fired": ("?", "yellow"),
    "not-exercised": ("?", "yellow"),
    "error": ("!", "bold magenta"),
}


def sensitivity_table(answer: Mapping[str, Any]) -> Table:
    """One row per plant and scenario: what became of it, found/fired with its interval, what was seen, seconds."""
    title = f"Bugs planted into {answer['streams']}, {answer['run']}"
    table = Table(title=Text(title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in ("plant", "scenario", "verdict"):
        table.add_column(name, no_wrap=True)
    table.add_column("found/fired", justify="right", no_wrap=True)
    table.add_column("rate (95 %)", justify="right", no_wrap=True)
    table.add_column("what was seen", ratio=1)
    table.add_column("s/trial", justify="right", no_wrap=True)
    for row in sorted(answer["plants"], key=lambda row: list(SENSED).index(row["verdict"]), reverse=True):
        sign, style = SENSED[row["verdict"]]
        low, high = row["interval"] or (0, 0)
        seen = ", ".join(f"{count:,} {name}" for name, count in row["anomalies"].items())
        table.add_row(
            row["plant"],
            f"{row['scenario']} {row['variant']}",
            Text(f"{sign} {row['verdict']}", style),
            f"{row['found']}/{row['fired']}",
            f"{low:.2f} to {high:.2f}" if row["interval"] else "",
            Text("; ".join([seen or "no anomaly", *row["errors"]])),
            f"{row['seconds']:.1f}",
        )
    return table


def _releases(verdict: Mapping[str, Any]) -> str:
    return Cell.from_dict(verdict).releases


def describe_seen(verdict: VerdictRow) -> str:
    """The observations in a cell, in one line."""
    if verdict.verdict in ("known", "regression"):
        counts = ", ".join(f"{count:,} {name}" for name, count in verdict.anomalies.items())
        return f"{counts} ({', '.join(verdict.issues)})" if verdict.issues else counts
    if verdict.verdict in ("clean", "provisional", "fixed"):
        against = f", though affected by {', '.join(verdict.issues)}" if verdict.verdict == "fixed" else ""
        rate = verdict.excluded_rate
        excluded = "" if rate is None else f"; excludes bugs in ≥ {rate:.0%} of trials".replace("%", " %")
        return f"no anomaly{against}{excluded}"
    if verdict.verdict == "avoided":
        return "no anomaly; the mechanism cannot arise"
    return verdict.sentence


def places(verdicts: Sequence[VerdictRow]) -> list[tuple[str, str]]:
    """Cells that people will want to look into, with the folder of their first trial within the run's."""
    telling = [v for v in verdicts if v.verdict not in ("clean", "provisional", "avoided")]
    return [(f"{v.as_cell.releases} {v.scenario} {v.variant}", v.folders[0]) for v in telling]


def change_line(change: Mapping[str, Any]) -> str:
    """A change of a cell since the last run in one line, for example `newly red: 3.8.1 quota DEFAULT_CONFIG`."""
    line = f"{change['change']}: {_releases(change)} {change['scenario']} {change['variant']}"
    if change["broker"] != BROKER:
        line += f" (broker {change['broker']})"
    if change["change"] == "slower":
        line += f", {change['seconds']:.1f} s a trial instead of {change['usual_seconds']:.1f}"
    return line


def history_table(runs: Sequence[Mapping[str, Any]]) -> Table:
    """One row per run: id, time, matrix, how many cells have which verdict, what changed since earlier runs."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("run", "when (UTC)", "matrix", "verdicts"):
        table.add_column(name, no_wrap=True)
    table.add_column("what changed", ratio=1)
    for run in runs:
        verdicts = {Verdict(name): count for name, count in run["counts"].items()}
        counts = [style(verdict, f"{verdict.sign} {count}") for verdict, count in verdicts.items()]
        table.add_row(
            run["run"], _minute(run["created"]), Text(run["matrix"]), Text("  ").join(counts), _describe_changes(run)
        )
    return table


def _describe_changes(run: Mapping[str, Any]) -> Text:
    """The changes, one per line; cells that are merely new are counted."""
    new = [change for change in run["changes"] if change["change"] == "new cell"]
    lines = [change_line(change) for change in run["changes"] if change not in new]
    if len(lines) > CHANGES_SHOWN:
        lines = [*lines[: CHANGES_SHOWN - 1], f"and {len(lines) - CHANGES_SHOWN + 1} more, see --json"]
    if new:
        lines.append(change_line(new[0]) if len(new) == 1 else f"{len(new)} new cells")
    return Text("\n".join(lines))


def cells_table(cells: Sequence[Mapping[str, Any]]) -> Table:
    """One row per cell: its verdicts in the runs that had any of the cells, the newest at the right."""
    runs = sorted({(v["created"], v["run"]) for cell in cells for v in cell["verdicts"]})
    title = f"{len(runs)} runs from {_minute(runs[0][0])} to {_minute(runs[-1][0])} UTC, the newest at the right"
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in ("streams", "scenario", "variant", "broker"):
        table.add_column(name, no_wrap=True)
    table.add_column("verdicts")
    table.add_column("red/counted", justify="right", no_wrap=True)
    table.add_column("s/trial", justify="right", no_wrap=True)
    table.add_column("known issues")
    for cell in cells:
        by_run = {v["run"]: v for v in cell["verdicts"]}
        last = cell["verdicts"][0]
        table.add_row(
            _releases(cell),
            Text(cell["scenario"]),
            Text(cell["variant"]),
            cell["broker"],
            Text(" ").join(_sign(by_run.get(run)) for _, run in runs),
            f"{last['red']}/{last['counted']}",
            "" if last["seconds"] is None else f"{last['seconds']:.1f}",
            Text(", ".join(last["issues"])),
        )
    return table


def _sign(verdict: Mapping[str, Any] | None) -> Text:
    """As wide as the widest, so that the runs are aligned in columns."""
    if verdict is None:
        return Text("· ", "dim")
    judged = Verdict(verdict["verdict"])
    text = style(judged, judged.sign)
    text.pad_right(2 - len(judged.sign))
    return text


def _minute(created: str) -> str:
    return created[:16].replace("T", " ")
