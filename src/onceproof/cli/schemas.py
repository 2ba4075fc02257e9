"""The command that prints the JSON schemas of what other programs read."""

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from onceproof.advice.advice import SCHEMA as ADVICE
from onceproof.advice.advice import Advice
from onceproof.campaigns.fuzz.fuzzing import Fuzzed
from onceproof.campaigns.search.log import Exploration
from onceproof.campaigns.verify_fix.answer import FixAnswer
from onceproof.cli.trials import TrialAnswer
from onceproof.model.compared import SCHEMA as COMPARISON
from onceproof.model.compared import CompareAnswer
from onceproof.model.files import VerdictRow
from onceproof.model.judged import AppAnswer


class SchemaName(StrEnum):
    """The outputs that have a schema."""

    ADVISE = "advise"  # advise --json
    APP_RUN = "app-run"  # app run --json
    COMPARE = "compare"  # compare --json
    EXPLORE = "explore"  # explore --json
    FUZZ = "fuzz"  # fuzz --json
    TRIAL = "trial"  # trial --json
    VERIFY_FIX = "verify-fix"  # verify-fix --json
    VERDICTS = "verdicts"  # verdicts.json of a run folder


FORMS: dict[SchemaName, tuple[int, Any]] = {
    SchemaName.ADVISE: (ADVICE, Advice),
    SchemaName.APP_RUN: (AppAnswer.schema, AppAnswer),
    SchemaName.COMPARE: (COMPARISON, CompareAnswer),
    SchemaName.EXPLORE: (Exploration.schema, Exploration),
    SchemaName.FUZZ: (Fuzzed.schema, Fuzzed),
    SchemaName.TRIAL: (TrialAnswer.schema, TrialAnswer),
    SchemaName.VERIFY_FIX: (FixAnswer.schema, FixAnswer),
    SchemaName.VERDICTS: (1, tuple[VerdictRow, ...]),
}


def schema(of: SchemaName) -> dict[str, object]:
    """The JSON schema; its title has the number, which changes when a field is removed or changes its meaning."""
    from pydantic import TypeAdapter

    number, form = FORMS[of]
    named = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"onceproof {of}, schema {number}"}
    return {**TypeAdapter(form).json_schema(), **named}


def schema_(
    of: Annotated[
        SchemaName,
        typer.Argument(metavar="NAME", help="advise, app-run, compare, explore, fuzz, trial, verdicts or verify-fix."),
    ],
) -> None:
    """Print the JSON schema of what a command prints with `--json`, or that of `verdicts.json`.

    These commands have one: `advise`, `app run`, `release compare`, `issue explore`, `fuzz`, `trial` and
    `issue verify-fix`.

    Exit: 0, 2 usage.
    """
    print(json.dumps(schema(of), indent=2))
