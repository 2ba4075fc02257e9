"""Requests of a run, and of the watch over releases: the params of their DAGs, and what `run.json` stores."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, WithJsonSchema

from onceproof.campaigns.requests import VARIANTS, WORDS, CampaignRequest, ReleaseName, ScenarioName, Several
from onceproof.model.cell import RUN_ID
from onceproof.model.decoding import as_check
from onceproof.model.matrices import DEFAULT_MATRIX, MATRICES, MAX_TRIALS, RENAMED, Matrix, matrix_from, rename_old
from onceproof.model.matrix import Request
from onceproof.model.published import WORD
from onceproof.model.release import CLAIMED, PATTERN

CONNECTION = "onceproof_brokers"  # of Airflow: a client.properties, as JSON in its extra
AXES = ("streams", "restarts", "brokers", "scenarios", "variants")
NUMBERS = ("trials", "budget", "risk")
MATRIX = " ".join(f"{matrix.name}: {matrix.description}" for matrix in MATRICES.values())
OF_MATRIX = "Empty: those of the matrix."


@as_check
def _matrix(table: dict[str, Any]) -> dict[str, object]:
    matrix_from(table, "own_matrix", MATRICES)
    return table


MatrixName = Annotated[
    str, AfterValidator(rename_old), WithJsonSchema({"type": "string", "enum": [*MATRICES, *RENAMED]})
]
BrokersName = Annotated[str, WithJsonSchema({"type": "string", "pattern": f"^({WORD}|{PATTERN}({CLAIMED})?)$"})]
Trials = Annotated[int | None, Field(ge=1, json_schema_extra={"maximum": MAX_TRIALS})]


class RunRequest(CampaignRequest):
    """A run of the matrix: a `Request`, and where it runs; null or an empty list is what the matrix says."""

    matrix: MatrixName = Field(default=DEFAULT_MATRIX, description=MATRIX)
    own_matrix: Annotated[dict[str, Any], AfterValidator(_matrix)] | None = Field(
        default=None,
        description="In place of `matrix`: one of your own, as a file of yours has it, and its `name`.",
    )
    streams: Several[ReleaseName] = Field(
        default=(), description=f"Releases of Kafka Streams, one a line, for example 3.4.1, {WORDS}. {OF_MATRIX}"
    )
    restarts: Several[ReleaseName] = Field(
        default=(),
        description=f"Releases to restart the application on, one a line, for example 4.1.2, {WORDS}. {OF_MATRIX}",
    )
    brokers: Several[BrokersName] = Field(
        default=(),
        description=f"Releases of the brokers, one a line, for example 3.9.1, {WORDS}; 3.9.1{CLAIMED} for brokers of "
        f"your own, of which you say so. {OF_MATRIX}",
    )
    scenarios: Several[ScenarioName] = Field(default=(), description=f"Scenarios. {OF_MATRIX}")
    variants: Several[Annotated[str, WithJsonSchema({"type": "string", "enum": VARIANTS})]] = Field(
        default=(), description=f"Variants. {OF_MATRIX}"
    )
    trials: Trials = Field(
        default=None,
        description="Trials of each cell, for example 3, whatever they show; more only of positive controls, and "
        "with `budget`. Empty: as many as the matrix says.",
    )
    budget: Trials = Field(
        default=None,
        description="Trials of a cell whose verdict needs more, at most. Empty: no more than `trials`; without "
        "these as many as the matrix says.",
    )
    risk: float | None = Field(
        default=None,
        ge=0.01,
        le=0.5,
        description="Of a green: that it misses a bug, at most, for example 0.05. Empty: as the matrix says.",
    )
    connection: str = Field(
        default=CONNECTION,
        pattern=r"^[\w.\-]{1,200}$",
        description=f"Airflow connection of the brokers whose release is {CLAIMED[1:]}: docs/brokers.md.",
    )
    run: Annotated[str, Field(pattern=RUN_ID)] | None = Field(
        default=None,
        description="Name of the run folder, for example 20261121T084500-3f2a91c7. Empty: one is made.",
    )

    @classmethod
    def of(cls, request: Request, run_id: str, connection: str = CONNECTION) -> Self:
        """The params that ask for this, as the run of this id."""
        own = request.matrix.to_dict() if isinstance(request.matrix, Matrix) else None
        named = DEFAULT_MATRIX if isinstance(request.matrix, Matrix) else request.matrix
        values = {name: getattr(request, name) for name in (*AXES, *NUMBERS)}
        return cls(matrix=named, own_matrix=own, connection=connection, run=run_id, **values)

    @property
    def differing(self) -> str:
        """The fields that differ from the defaults, as JSON."""
        return self.model_dump_json(exclude_defaults=True, exclude={"connection", "run"})

    @property
    def request(self) -> Request:
        """The request itself, without where it runs."""
        matrix = matrix_from(self.own_matrix, "own_matrix", MATRICES) if self.own_matrix else self.matrix
        return Request(matrix, **{name: getattr(self, name) for name in (*AXES, *NUMBERS)})


class WatchRequest(CampaignRequest):
    """A look at what is published."""

    matrix: MatrixName = Field(default="weekly", description=f"Of the runs that are triggered. {MATRIX}")
    pre_releases: bool = Field(default=False, description="Also candidates, such as 4.4.0-rc1.")
    catch_up: bool = Field(
        default=False,
        description="Also what was published before the first look and never run: up to one run for each release.",
    )
