"""Compare all neighbours among the published releases by the net of topologies.

`python docs/compare_releases.py [A B ...]` writes `docs/compared_releases.json`, again after each pair;
`docs/generate.py` makes a page of it. It takes half a minute a release, minutes on 3.0 and 3.1, and needs Maven. Pairs
that the file has are left out, so that it continues where it stopped; delete the file to compare all of them.
"""

import json
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from onceproof.lab.comparing import compare_releases, net_of
from onceproof.lab.releases import list_published
from onceproof.model.compared import TopologyComparison
from onceproof.model.release import Release
from onceproof.scenarios.net import OPTIMIZED
from onceproof.settings import get_settings

FILE = Path(__file__).with_name("compared_releases.json")
NAMED = 3  # topologies


def main(names: list[str]) -> None:
    """Compare each release with the next one."""
    settings = get_settings()
    releases = list(map(Release.parse, names)) or list_published(settings.installation)
    kept: list[dict[str, Any]] = json.loads(FILE.read_text()) if FILE.exists() else []
    known = {(row["before"], row["after"]) for row in kept}
    for pair in reversed(list(pairwise(releases))):  # the newest first
        if tuple(map(str, pair)) in known:
            continue
        one, other = (net_of(settings.installation, settings.project / "examples", release, print) for release in pair)
        comparisons = compare_releases(settings.installation, pair, (one, other))
        kept.append(
            {
                "before": str(pair[0]),
                "after": str(pair[1]),
                "compared": len(comparisons),
                "noted": sum(bool(c.changes) and not c.grave for c in comparisons),
                "changes": [_row(alike) for alike in _alike(comparisons)],
            }
        )
        print(*pair, len(comparisons), [row["topologies"] for row in kept[-1]["changes"]], flush=True)
        kept.sort(key=lambda row: Release.parse(row["before"]))
        FILE.write_text(json.dumps(kept, indent=1) + "\n")


def _alike(comparisons: tuple[TopologyComparison, ...]) -> list[list[TopologyComparison]]:
    """Those with grave changes, with which the same becomes of them side by side; the most first."""
    groups: dict[object, list[TopologyComparison]] = defaultdict(list)
    for comparison in comparisons:
        if comparison.grave:
            groups[comparison.alike].append(comparison)
    return sorted(groups.values(), key=len, reverse=True)


def _row(alike: list[TopologyComparison]) -> dict[str, Any]:
    return {
        "topologies": len(alike),
        "optimized": all(comparison.name.endswith(OPTIMIZED) for comparison in alike),
        "named": [comparison.name for comparison in alike[:NAMED]],
        "summaries": [change.summary for change in alike[0].grave],
        "effects": sorted({str(effect) for change in alike[0].grave for effect in change.effects}),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
