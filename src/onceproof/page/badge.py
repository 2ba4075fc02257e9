"""A badge for a release: a picture, and the answer of an endpoint from which shields.io makes one."""

from collections.abc import Sequence
from dataclasses import dataclass

from onceproof.model.known_issues import IssueRegistry
from onceproof.model.release import Release
from onceproof.model.verdict import Verdict
from onceproof.page.rendering import PageLinks, render

# As the page has them; white text can be read on each.
COLOURS = {"regression": "#b3160f", "known": "#8f4000", "clean": "#176b37", "unknown": "#585862"}
GREEN = (Verdict.CLEAN, Verdict.FIXED, Verdict.PROVISIONAL)
LETTER, MARGIN = 6.6, 12  # pixels: the mean width of a letter, and what is left free around a text


@dataclass(frozen=True)
class Badge:
    """The text of a badge."""

    label: str
    message: str
    colour: str

    @classmethod
    def of(cls, release: Release, verdicts: Sequence[Verdict], registry: IssueRegistry) -> "Badge":
        """The badge of a release: its known issues, and what the verdicts that count, on cells that end on it, say."""
        issues = sum(issue.is_in(release) for issue in registry.issues)
        known = "1 known issue" if issues == 1 else f"{issues} known issues"
        red, green = verdicts.count(Verdict.REGRESSION), sum(verdict in GREEN for verdict in verdicts)
        look = "regression" if red else "known" if issues else "clean" if green else "unknown"
        cells = f"{green} of {len(verdicts)} cells green" if verdicts else "not measured"
        parts = [f"{red} unexplained"] if red else []
        return cls(f"Kafka Streams {release}", ", ".join([*parts, known, cells]), COLOURS[look])

    def endpoint(self) -> dict[str, object]:
        """The JSON that shields.io asks an endpoint for: https://shields.io/badges/endpoint-badge."""
        return {"schemaVersion": 1, "label": self.label, "message": self.message, "color": self.colour}

    def svg(self) -> str:
        """The picture."""
        left, right = (round(len(text) * LETTER) + MARGIN for text in (self.label, self.message))
        return render("atlas/badge.svg", PageLinks("./"), badge=self, left=left, right=right)
