"""Requests of campaigns, a class each: a command builds one, and the params of its DAG come from its schema.

What is asked for is checked for its form. Whether it exists and can be run here, the campaign's verbs say.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)

from onceproof.faults import NONE, rolling_bounce
from onceproof.model.decoding import half_sentence
from onceproof.model.errors import UsageError
from onceproof.model.matrices import BROKER, MAX_TRIALS
from onceproof.model.plants import plants
from onceproof.model.published import NEWEST, WORD
from onceproof.model.release import OLDEST, PATTERN
from onceproof.scenarios import CATALOGUE, app

WORDS = "or newest, previous, or a line such as 4.3, which is its newest patch"
MAX_SEED = 2**31 - 1
VARIANTS = sorted({variant for offer in CATALOGUE.values() for variant in offer.variants})
FAULTS = [NONE, *(fault.name for fault in app.SCENARIO.faults if fault is not rolling_bounce.FAULT)]
T = TypeVar("T")


def _none_is_empty(values: object) -> object:
    """A field that a form leaves empty is null."""
    return () if values is None else values


# A pattern and not a list: a new release can be tried on the day it appears. Words get a meaning when it is planned.
ReleaseName = Annotated[str, WithJsonSchema({"type": "string", "pattern": f"^({WORD}|{PATTERN})$"})]
ScenarioName = Annotated[str, WithJsonSchema({"type": "string", "enum": list(CATALOGUE)})]
PlantName = Annotated[str, WithJsonSchema({"type": "string", "enum": list(plants())})]
Lines = Annotated[tuple[T, ...], BeforeValidator(_none_is_empty), Field(json_schema_extra={"type": ["array", "null"]})]
Several = Annotated[Lines[T], Field(json_schema_extra={"type": ["array", "null"], "uniqueItems": True})]
OneAtLeast = Annotated[tuple[T, ...], Field(min_length=1, json_schema_extra={"uniqueItems": True})]
Seed = Annotated[int | None, Field(ge=0, json_schema_extra={"maximum": MAX_SEED})]
OF_FIRST_TRIAL = "Of the first trial. Empty: drawn from the run's id."
OF_BROKERS = "Release of the brokers."


class CampaignRequest(BaseModel):
    """Base of what may be asked for.

    Attributes:
        only_here: fields that the command has and the DAG has not.
    """

    # Deferred: every command imports these classes, and few of them need one.
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)
    only_here: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def params(cls, **defaults: object) -> dict[str, dict[str, Any]]:
        """The params of the DAG by name: the JSON schema of each, with its default; `defaults` take its place.

        A param that may be null has a list of types, which the form of Airflow understands.
        """
        properties = cls.model_json_schema()["properties"]
        return {
            name: _param(schema) | ({"default": defaults[name]} if name in defaults else {})
            for name, schema in properties.items()
            if name not in cls.only_here
        }

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        """The request that was written as JSON.

        Raises:
            ValueError: it is of another form; half a sentence says where and why.
        """
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            raise ValueError(half_sentence(error, cls)) from error

    @classmethod
    def of_params(cls, params: Mapping[str, Any]) -> Self:
        """The request of the params of a run. Airflow checks their values, and lets any name pass.

        Raises:
            UsageError: there is no such param, or a value is of another form.
        """
        try:
            return cls.read(params)
        except ValueError as error:
            raise UsageError(f"The params cannot be read: {error}. Trigger the run again.") from None


def _param(schema: Mapping[str, Any]) -> dict[str, object]:
    """A property of a schema as a param: null is one of its types, and what may be chosen is offered."""
    flat = {name: value for name, value in schema.items() if name not in ("title", "anyOf")}
    for choice in schema.get("anyOf", ()):
        if choice["type"] != "null":
            flat = choice | flat | {"type": [choice["type"], "null"]}
            if "enum" in flat:
                flat["enum"] = [None, *flat["enum"]]
    if choices := flat.get("items", {}).get("enum"):
        flat["examples"] = choices
    return flat


class Seeded(CampaignRequest):
    """Base of what draws from a seed."""

    seed: Seed = Field(default=None, description=OF_FIRST_TRIAL)

    def seed_or(self, drawn: int) -> int:
        """Its seed, else the one that was drawn."""
        return drawn if self.seed is None else self.seed


class BisectRequest(Seeded):
    """Which releases show a failure."""

    scenario: ScenarioName = Field(default=next(iter(CATALOGUE)), description="Scenario.")
    variant: Annotated[str, Field(json_schema_extra={"enum": VARIANTS})] = Field(
        default="DEFAULT_CONFIG", description="One of the scenario's variants."
    )
    issue: str | None = Field(
        default=None,
        description="Key of the known issue that is searched for. Empty: the one that concerns the variant.",
    )
    first: ReleaseName = Field(default=str(OLDEST), validation_alias="from", description="First release of the range.")
    last: ReleaseName | None = Field(
        default=None, validation_alias="to", description="Last release of the range. Empty: the newest."
    )
    broker: ReleaseName = Field(default=BROKER, description=OF_BROKERS)
    trials: int = Field(default=60, ge=2, description="Trials in all, at most.", json_schema_extra={"maximum": 1000})


class SensitivityRequest(Seeded):
    """Which planted bugs are found."""

    streams: OneAtLeast[ReleaseName] = Field(
        default=(NEWEST,),
        description=f"Releases of Kafka Streams that bugs are planted into, one a line: exact ones, {WORDS}.",
    )
    broker: ReleaseName = Field(default=BROKER, description=OF_BROKERS)
    scenario: Several[ScenarioName] = Field(default=(), description="Scenarios. Empty: all that must find a plant.")
    plant: Several[PlantName] = Field(default=(), description="Plants. Empty: all that the release takes.")
    trials: int = Field(
        default=3,
        ge=1,
        description="Trials of each plant in each scenario; they add up over runs.",
        json_schema_extra={"maximum": MAX_TRIALS},
    )


class QualifyRequest(Seeded):
    """Whether the harness still sees."""

    streams: OneAtLeast[ReleaseName] = Field(
        default=(NEWEST,), description="Releases of Kafka Streams to look at, one a line."
    )
    broker: ReleaseName | None = Field(default=None, description=f"{OF_BROKERS} Empty: the same as of Kafka Streams.")
    scenario: Several[ScenarioName] = Field(default=(), description="Empty: all. If there are any, nothing is kept.")


class ApplicationRequest(Seeded):
    """How an application of yours fares on releases."""

    only_here = frozenset({"set", "roll_to", "plant"})

    applications: Several[Annotated[str, Field(pattern=r"^[\w.\-]{1,200}$")]] = Field(
        default=(), description="Folders in ONCEPROOF_APPLICATIONS, one a line. Empty: all."
    )
    streams: Several[ReleaseName] = Field(
        default=(),
        description="Releases of Kafka Streams to run them on, one a line. Empty: the newest one, and the one that "
        "each one's file says.",
    )
    broker: ReleaseName = Field(default=BROKER, description=OF_BROKERS)
    fault: Annotated[str, WithJsonSchema({"type": "string", "enum": FAULTS})] | None = Field(
        default=None,
        description="The fault to inject (docs/faults.md). Empty: the fault that each one's file names.",
    )
    controls: bool = Field(
        default=True,
        description="Plant bugs where they are green, to see which of their promises these break.",
    )
    settings: Lines[str] = Field(default=(), validation_alias="set")  # parameters as `name=value`
    roll_to: ReleaseName | None = None
    plant: str | None = None

    @property
    def all_settings(self) -> tuple[str, ...]:
        """Its parameters, the fault among them if one is named."""
        return (*self.settings, *([f"fault={self.fault}"] if self.fault else []))


class ExploreRequest(Seeded):
    """A search for failures that are not known."""

    only_here = frozenset({"uniform", "plant"})

    streams: OneAtLeast[ReleaseName] = Field(
        default=(NEWEST,), description="Releases of Kafka Streams that are searched, one a line."
    )
    broker: ReleaseName = Field(default=BROKER, description=OF_BROKERS)
    scenario: Several[ScenarioName] = Field(default=(), description="Empty: all whose trials do not mostly wait.")
    settings: Lines[Annotated[str, WithJsonSchema({"type": "string", "pattern": "^[a-z.-]+=.+$"})]] = Field(
        default=(),
        validation_alias="set",
        description="Parameters that each schedule has, NAME=VALUE, one a line; scenarios without one are left out.",
    )
    minutes: int | None = Field(
        default=None,
        ge=1,
        le=24 * 60,
        description="Minutes of searching, for each release. Empty: until the hour below.",
    )
    until: Annotated[str, Field(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$")] | None = Field(
        default="06:00",
        description="Local time at which the night is over, for example 06:00; if no minutes are given.",
    )
    bisect: bool = Field(default=True, description="Also find the releases that show a finding.")
    seed: Seed = Field(default=None, description="Random seed of all schedules. Empty: drawn from the run's id.")
    anew: bool = Field(default=False, description="Begin another search, instead of continuing that of the last night.")
    uniform: bool = False  # each schedule is drawn afresh
    plant: str | None = None
