"""The matrix as a table in the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from onceproof.model.cell import Cell

# A sign beside the colour: readable without colours, too.
LOOK = {
    "clean": ("✔", "green"),
    "known": ("✘", "red"),
    "regression": ("✘✘", "bold white on red"),
    "avoided": ("○", "cyan"),
    "inconclusive": ("?", "yellow"),
    "error": ("!", "bold magenta"),
}


def verdict_table(verdicts: Sequence[Mapping[str, Any]], title: str) -> Table:
    """One row per cell: release, variant, verdict, k/n, counts, anomalies, seconds of a trial."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in ("streams", "variant", "verdict"):
        table.add_column(name, no_wrap=True)
    table.add_column("red/counted", justify="right", no_wrap=True)
    table.add_column("records", justify="right", no_wrap=True)
    table.add_column("IDs", justify="right", no_wrap=True)
    table.add_column("what was seen", ratio=1)
    table.add_column("s/trial", justify="right", no_wrap=True)
    several_brokers = len({v["broker"] for v in verdicts}) > 1
    several_scenarios = len({v["scenario"] for v in verdicts}) > 1
    for v in verdicts:
        sign, style = LOOK[v["verdict"]]
        variant = f"{v['scenario']} {v['variant']}" if several_scenarios else v["variant"]
        table.add_row(
            f"{_releases(v)} (broker {v['broker']})" if several_brokers else _releases(v),
            variant,
            Text(f"{sign} {v['verdict']}", style),
            f"{v['red']}/{v['counted']}",
            f"{v['records']:,}",
            f"{v['ids']:,}" if v["ids"] else "",
            _seen(v),
            "" if v["seconds"] is None else f"{v['seconds']:.1f}",
        )
    return table


def _releases(verdict: Mapping[str, Any]) -> str:
    return Cell.from_dict(verdict).releases


def _seen(verdict: Mapping[str, Any]) -> str:
    if verdict["verdict"] in ("known", "regression"):
        seen = ", ".join(f"{count:,} {name}" for name, count in verdict["anomalies"].items())
        return f"{seen} ({', '.join(verdict['issues'])})" if verdict["issues"] else seen
    if verdict["verdict"] == "clean":
        return "no anomaly"
    if verdict["verdict"] == "avoided":
        return "no anomaly; the mechanism cannot arise"
    return str(verdict["sentence"])


def places(verdicts: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Cells that a person will want to look into, with the folder of their first trial within the run's."""
    telling = [v for v in verdicts if v["verdict"] not in ("clean", "avoided")]
    return [(f"{_releases(v)} {v['scenario']} {v['variant']}", v["folders"][0]) for v in telling]
