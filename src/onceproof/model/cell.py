"""What is run: cells of the matrix, and their trials."""

import re
from dataclasses import dataclass
from typing import Any

from onceproof.model.release import Release

MARK = "onceproof"  # everything created outside the run folder bears it, so that a sweep can find it


@dataclass(frozen=True, order=True)
class Cell:
    """A scenario in one variant, on one release of Kafka Streams and one of the brokers."""

    scenario: str
    variant: str
    streams: Release
    broker: Release

    @property
    def key(self) -> str:
        """Name that is safe in paths, topics and task ids, for example `enumerator-DEFAULT_CONFIG-s3.3.1-b3.9.1`."""
        return f"{self.scenario}-{self.variant}-s{self.streams}-b{self.broker}"

    @property
    def title(self) -> str:
        """Name for people, release first, as pages and tables show it."""
        return f"{self.streams} × {self.variant} ({self.scenario}, broker {self.broker})"

    def to_dict(self) -> dict[str, str]:
        """JSON form: scenario, variant, streams, broker."""
        return {
            "scenario": self.scenario,
            "variant": self.variant,
            "streams": str(self.streams),
            "broker": str(self.broker),
        }

    @classmethod
    def from_dict(cls, data: dict[str, str]) -> "Cell":
        """Read what `to_dict` wrote."""
        return cls(data["scenario"], data["variant"], Release.parse(data["streams"]), Release.parse(data["broker"]))


@dataclass(frozen=True)
class Trial:
    """One execution of a cell; the same seed gives the same schedule."""

    run: str
    cell: Cell
    number: int
    seed: int

    @property
    def key(self) -> str:
        """Name within the run, for example `enumerator-DEFAULT_CONFIG-s3.3.1-b3.9.1-t1`."""
        return f"{self.cell.key}-t{self.number}"

    @property
    def title(self) -> str:
        """Name for people, as Data Docs show it."""
        return f"{self.cell.title} trial {self.number}"

    @property
    def application_id(self) -> str:
        """Kafka Streams application id; prefixes the group, the changelogs and all topics of the trial."""
        return f"{MARK}.{self.run}.{self.key}"

    def topic(self, role: str) -> str:
        """Topic that plays the role: `input`, `output`, or `<store>-changelog` (Kafka Streams' own naming)."""
        return f"{self.application_id}-{role}"

    def to_dict(self) -> dict[str, Any]:
        """JSON form: run, cell, number, seed."""
        return {"run": self.run, "cell": self.cell.to_dict(), "number": self.number, "seed": self.seed}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Trial":
        """Read what `to_dict` wrote."""
        return cls(data["run"], Cell.from_dict(data["cell"]), data["number"], data["seed"])


def is_run_id(text: str) -> bool:
    """Whether the text has the form of a run id, such as `20261121T084500-3f2a`."""
    return re.fullmatch(r"\d{8}T\d{6}-[0-9a-f]{4}", text, re.ASCII) is not None
