"""Compare all neighbours among the published releases by the net of topologies.

`python docs/compare_releases.py [A B ...]` writes `docs/compared_releases.json`, after each pair anew. It takes some
seconds a release on a machine that is idle, minutes on 3.0 and 3.1, and needs Maven.
"""

import json
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from onceproof.lab.comparing import compare_releases, net_of
from onceproof.model.compared import Comparison
from onceproof.model.release import Release
from onceproof.scenarios.net import OPTIMIZED
from onceproof.settings import get_settings

FILE = Path(__file__).with_name("compared_releases.json")
# The first and the last patch of each line.
RELEASES = [
    "3.0.0",
    "3.0.2",
    "3.1.0",
    "3.1.2",
    "3.2.0",
    "3.2.3",
    "3.3.0",
    "3.3.2",
    "3.4.0",
    "3.4.1",
    "3.5.0",
    "3.5.2",
    "3.6.0",
    "3.6.2",
    "3.7.0",
    "3.7.2",
    "3.8.0",
    "3.8.1",
    "3.9.0",
    "3.9.2",
    "4.0.0",
    "4.0.2",
    "4.1.0",
    "4.1.2",
    "4.2.0",
    "4.2.2",
    "4.3.0",
    "4.3.1",
    "4.4.0",
]
NAMED = 3  # topologies


def main(names: list[str]) -> None:
    """Compare each release with the next one."""
    settings, kept = get_settings(), []
    for one, other in pairwise(map(Release.parse, names)):
        nets = [
            net_of(settings.installation, settings.project / "examples", release, print) for release in (one, other)
        ]
        comparisons = compare_releases(settings.installation, (one, other), (nets[0], nets[1]))
        kept.append(
            {
                "before": str(one),
                "after": str(other),
                "compared": len(comparisons),
                "noted": sum(bool(c.changes) and not c.grave for c in comparisons),
                "changes": [_row(alike) for alike in _alike(comparisons)],
            }
        )
        print(one, other, len(comparisons), [row["topologies"] for row in kept[-1]["changes"]], flush=True)
        FILE.write_text(json.dumps(kept, indent=1) + "\n")


def _alike(comparisons: tuple[Comparison, ...]) -> list[list[Comparison]]:
    groups: dict[object, list[Comparison]] = defaultdict(list)
    for comparison in comparisons:
        if comparison.grave:
            groups[comparison.alike].append(comparison)
    return sorted(groups.values(), key=len, reverse=True)


def _row(alike: list[Comparison]) -> dict[str, object]:
    return {
        "topologies": len(alike),
        "optimized": all(one.name.endswith(OPTIMIZED) for one in alike),
        "named": [one.name for one in alike[:NAMED]],
        "told": [change.told for change in alike[0].grave],
        "effects": sorted({str(effect) for change in alike[0].grave for effect in change.effects}),
    }


if __name__ == "__main__":
    main(sys.argv[1:] or list(RELEASES))
