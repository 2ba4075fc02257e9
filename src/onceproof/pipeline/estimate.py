"""The cost of a run, said before it starts: how many cells and trials, how long."""

from collections import Counter
from collections.abc import Mapping
from statistics import median
from typing import Any

from rich.table import Table

from onceproof.campaigns.sensitivity.verbs import due
from onceproof.model.matrix import Expansion, Request
from onceproof.pipeline.steps import expand_request, trials_planned, why_brokers
from onceproof.scenarios import SCENARIOS
from onceproof.settings import get_settings

# As in `steps`: heavy modules are imported by the verb that needs them.

LATER = "~"  # than the id of every run
START, AFTERWARDS = 60.0, 1.0  # Airflow and the brokers; of each trial what Spark and Great Expectations take


def estimate(request: Request) -> dict[str, Any]:
    """The size and duration of a request, if its controls are as red as they should be.

    Returns:
        matrix, risk, cells, trials, planted (trials with a planted bug), hours, refused (cells), brokers (which, and
        why), keys (of the cells), scenarios: for each scenario, cells, trials, planted, seconds (of a trial, the
        median), measured (trials of this installation that it is based on; 0: it is assumed).

    Raises:
        UsageError: as of a run.
        HarnessError: the results database refuses, or Maven cannot be reached.
    """
    from onceproof.results.history import seconds_by_scenario

    settings = get_settings()
    expansion = expand_request(request)
    _check_releases(expansion)
    trials = trials_planned(expansion, LATER)
    planted = Counter(
        planting.cell.scenario for planting in due(expansion.cells, expansion.plants, expansion.risk, LATER)
    )
    cells = Counter(cell.scenario for cell in expansion.cells)
    measured = seconds_by_scenario(settings.database_url)
    rows: list[dict[str, Any]] = [
        {
            "scenario": name,
            "cells": cells[name],
            "trials": sum(number for cell, number in trials.items() if cell.scenario == name),
            "planted": planted[name],
            "seconds": round(median(measured[name]) if measured.get(name) else SCENARIOS[name].seconds, 1),
            "measured": len(measured.get(name, ())),
        }
        for name in cells
    ]
    total = sum(trials.values())
    waiting = {row["scenario"] for row in rows if SCENARIOS[row["scenario"]].mostly_waits}
    busy = sum(row["trials"] * row["seconds"] for row in rows if row["scenario"] not in waiting)
    beside = sum(row["trials"] * row["seconds"] for row in rows if row["scenario"] in waiting)
    driving = max(busy / settings.drive_slots, beside)
    planting = sum(row["planted"] * row["seconds"] for row in rows)
    return {
        "matrix": expansion.matrix,
        "risk": expansion.risk,
        "cells": len(expansion.cells),
        "trials": total,
        "planted": planted.total(),
        "hours": round((START + driving + planting + AFTERWARDS * total) / 3600, 2),
        "refused": len(expansion.refused),
        "brokers": why_brokers(request, expansion),
        "keys": [cell.key for cell in expansion.cells],
        "scenarios": rows,
    }


def _check_releases(expansion: Expansion) -> None:
    """Check that all releases are published, and builds kept; Maven, which takes seconds, hears of unknown ones only.

    Raises:
        UsageError: one is not.
        HarnessError: the results database refuses, or Maven cannot be reached.
    """
    from onceproof.advice.asking import check_releases
    from onceproof.lab.artifacts import check_published

    settings = get_settings()
    all_ = {r for cell in expansion.cells for r in (cell.streams, cell.running, cell.broker) if not r.is_claimed}
    builds = {release for release in all_ if release.commit}
    check_releases(sorted(all_ - builds), settings.database_url, settings.installation)
    check_published(settings.installation, sorted(builds))


def about(hours: float) -> str:
    """How long it takes, for people: in minutes below two hours."""
    if hours >= 2:
        return f"about {hours:.1f} hours"
    minutes = max(1, round(60 * hours))
    return f"about {minutes} minute{'' if minutes == 1 else 's'}"


def table(estimated: Mapping[str, Any]) -> Table:
    """An estimate as text."""
    shown = Table("scenario", "cells", "trials", "planted", "seconds a trial", "", box=None, title_justify="left")
    for row in estimated["scenarios"]:
        how = f"median of {row['measured']} trials here" if row["measured"] else "assumed: none was measured here yet"
        numbers = (str(row[name]) for name in ("cells", "trials", "planted"))
        shown.add_row(row["scenario"], *numbers, f"{row['seconds']:g}", f"[dim]{how}[/]")
    counts = f"{estimated['cells']} cells, {estimated['trials']} trials and {estimated['planted']} planted"
    risk = f"a probability of {estimated['risk']:.0%}".replace("%", " %")
    shown.title = (
        f"matrix {estimated['matrix']}: {counts}, {about(estimated['hours'])}; a green may miss a bug with {risk}"
    )
    return shown
