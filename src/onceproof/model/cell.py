"""The units of a run: cells of the matrix, and their trials."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypedDict

from onceproof.model.decoding import decode
from onceproof.model.errors import UsageError
from onceproof.model.release import CLAIMED, OfBrokers, Release

RELEASE = r"[0-9.]+(?:-rc[0-9]+|-SNAPSHOT)?(?:_[0-9a-f]+)?"
KEY = re.compile(rf"([a-z-]+)-([A-Z0-9_]+)-s({RELEASE}(?:{CLAIMED})?)(?:-r({RELEASE}))?-b({RELEASE}(?:{CLAIMED})?)")
RUN_ID = r"^[0-9]{8}T[0-9]{6}-[0-9a-f]{4}(?:[0-9a-f]{4})?$"  # of older runs four digits
OF_APPLICATION, ORACLE, FAULT = "application", "oracle", "fault"  # parameters of user applications
MARK = "onceproof"  # everything created outside the run folder bears it, so that a sweep can find it
PREFIX = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")  # of names on brokers, before a dot
LONGEST_PREFIX = 32  # so that the longest name of a topic stays within the 249 characters that Kafka allows


class CellFields(TypedDict):
    """The JSON form of a cell; releases as texts."""

    scenario: str
    variant: str
    streams: str
    broker: str
    restart_on: str | None  # null if there is no restart


@dataclass(frozen=True)
class Cell:
    """A scenario in one variant, on one release of Kafka Streams and one of the brokers.

    With `restart_on`, the application is restarted on that release of Kafka Streams after it ran on `streams`.
    """

    scenario: str
    variant: str
    streams: OfBrokers
    broker: OfBrokers
    restart_on: Release | None = None

    @property
    def key(self) -> str:
        """Name that is safe in paths, topics and task ids, for example `enumerator-DEFAULT_CONFIG-s3.3.1-b3.9.1`."""
        restart = f"-r{self.restart_on.slug}" if self.restart_on else ""
        return f"{self.scenario}-{self.variant}-s{self.streams.slug}{restart}-b{self.broker.slug}"

    @classmethod
    def parse(cls, key: str) -> "Cell":
        """The cell of a key.

        Raises:
            UsageError: it is not a key.
        """
        match = KEY.fullmatch(key)
        if match is None:
            raise UsageError(f"{key!r} is no cell: it must read like enumerator-DEFAULT_CONFIG-s3.3.1-b3.9.1.")
        scenario, variant, streams, restart, broker = match.groups()
        restart_on = Release.from_slug(restart) if restart else None
        return cls(scenario, variant, Release.from_slug(streams), Release.from_slug(broker), restart_on)

    @property
    def releases(self) -> str:
        """The releases of Kafka Streams as text, for example `3.3.1`, or `4.1.2 → 4.3.1` with a restart."""
        return f"{self.streams} → {self.restart_on}" if self.restart_on else str(self.streams)

    @property
    def title(self) -> str:
        """Name for people, release first, as pages and tables show it."""
        return f"{self.releases} × {self.variant} ({self.scenario}, broker {self.broker})"

    @property
    def running(self) -> Release:
        """The release of Kafka Streams that runs at the end."""
        return self.restart_on or self.streams

    def to_dict(self) -> CellFields:
        """JSON form: scenario, variant, streams, broker, restart_on (null if there is no restart)."""
        return {
            "scenario": self.scenario,
            "variant": self.variant,
            "streams": str(self.streams),
            "broker": str(self.broker),
            "restart_on": str(self.restart_on) if self.restart_on else None,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Cell":
        """The cell of a row that has what `to_dict` wrote, among other things."""
        made: Cell = decode(cls, {field.name: data.get(field.name) for field in fields(cls)})
        return made


@dataclass(frozen=True)
class Trial:
    """One execution of a cell; the same seed gives the same schedule."""

    run: str
    cell: Cell
    number: int
    seed: int
    # Values of the scenario's parameters that differ from the variant's.
    parameters: Mapping[str, Any] = field(default_factory=dict, compare=False)
    # A bug that is put into the release; what such a trial shows is no evidence about Kafka.
    plant: str | None = None
    prefix: str = MARK  # of the names on its brokers, which is a team's own on brokers that are not ours

    @property
    def key(self) -> str:
        """Name within the run, for example `enumerator-DEFAULT_CONFIG-s3.3.1-b3.9.1-t1`; a plant is named, too."""
        plant = f"-{self.plant}" if self.plant else ""
        return f"{self.cell.key}{plant}-t{self.number}"

    @property
    def title(self) -> str:
        """Name for people, as Data Docs show it."""
        return f"{self.cell.title} trial {self.number}"

    @property
    def is_varied(self) -> bool:
        """Whether it has values of parameters that are not its variant's, so that it may be as another variant is."""
        return bool(self.parameters)

    @property
    def application_id(self) -> str:
        """Kafka Streams application id; prefixes the group, the changelogs and all topics of the trial."""
        return f"{self.prefix}.{self.run}.{self.key}"

    def topic(self, role: str) -> str:
        """Topic that plays the role: `input`, `output`, or `<store>-changelog` (Kafka Streams' own naming)."""
        return f"{self.application_id}-{role}"

    @property
    def command(self) -> str:
        """The command that runs it again, with the same seed and parameters.

        For a user application also the trials that are its oracle.
        """
        cell = self.cell
        if OF_APPLICATION in self.parameters:
            return shlex.join(
                app_command(
                    self.parameters[OF_APPLICATION],
                    [str(cell.streams)],
                    str(cell.restart_on) if cell.restart_on else None,
                    str(cell.broker),
                    self.seed,
                    self.parameters,
                    self.plant,
                )
            )
        words = ["onceproof", "trial", cell.scenario, "--streams", str(cell.streams)]
        words += ["--restart-on", str(cell.restart_on)] if cell.restart_on else []
        words += ["--brokers", "client.properties"] if cell.broker.is_claimed else []
        words += ["--broker", str(cell.broker).removesuffix(CLAIMED)]
        words += ["--variant", cell.variant, "--seed", str(self.seed)]
        return shlex.join([*words, *_set(self.parameters), *(["--plant", self.plant] if self.plant else [])])

    def to_dict(self) -> dict[str, object]:
        """JSON form: run, cell, number, seed, parameters, plant (null as a rule), prefix of its names on brokers."""
        return {
            "run": self.run,
            "cell": self.cell.to_dict(),
            "number": self.number,
            "seed": self.seed,
            "parameters": dict(self.parameters),
            "plant": self.plant,
            "prefix": self.prefix,
        }


def app_command(
    application: str,
    streams: Sequence[str],
    roll_to: str | None,
    broker: str,
    seed: int,
    parameters: Mapping[str, Any],
    plant: str | None = None,
) -> list[str]:
    """The words of the command that runs a user application again; parameters name the fault, too."""
    words = ["onceproof", "app", "run", application]
    words += [word for release in streams for word in ("--streams", release.removesuffix(CLAIMED))]
    words += ["--roll-to", roll_to] if roll_to else ["--fault", parameters.get(FAULT, "none")]
    words += ["--brokers", "client.properties"] if broker.endswith(CLAIMED) else []
    words += ["--broker", broker.removesuffix(CLAIMED), "--seed", str(seed)]
    hidden = (OF_APPLICATION, FAULT, ORACLE)  # by other words, or found out
    words += _set({name: value for name, value in parameters.items() if name not in hidden})
    return [*words, *(["--plant", plant] if plant else [])]


def _set(parameters: Mapping[str, Any]) -> list[str]:
    return [word for name, value in sorted(parameters.items()) for word in ("--set", f"{name}={value}")]


def is_run_id(text: str) -> bool:
    """Whether the text has the form of a run id, such as `20261121T084500-3f2a91c7`."""
    return re.fullmatch(RUN_ID, text) is not None


def refuse_prefix(text: str) -> str | None:
    """Why names on brokers cannot begin with this and a dot; None if they can.

    A sweep takes what stands between that dot and the next for the id of a run, so no part may look like one: then
    neither of two prefixes is ever mistaken for the other, even if `a` and `a.b` are two teams.
    """
    if PREFIX.fullmatch(text) is None:
        return "it must have letters, digits, '-' and '_', in parts between single dots, and no dot at its end"
    if len(text) > LONGEST_PREFIX:
        return f"it has {len(text)} characters, and names of topics allow {LONGEST_PREFIX} for it"
    if any(map(is_run_id, text.split("."))):
        return "a part of it looks like the id of a run, by which a sweep knows whose a name is"
    return None


def draw_seed(run_id: str) -> int:
    """A seed that follows from the id of a run."""
    return int(run_id.rpartition("-")[2], 16) % 2**31
