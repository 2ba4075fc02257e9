"""The JSON that other programs read conforms to the published schemas, which `onceproof system schema` prints."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from onceproof import cli
from onceproof.campaigns.verify_fix.answer import FixAnswer
from onceproof.cli.schemas import FORMS, SchemaName
from onceproof.model.cell import Cell
from onceproof.model.files import FaultOutcome, Planted, VerdictRow
from onceproof.model.json_file import encode
from onceproof.model.release import Release
from onceproof.model.verdict import Standing
from tests.specimens.files import a_fuzzing, a_verdict, an_answer, an_answer_about_a_fix, an_exploration

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
CELL = Cell("crash", "DEFAULT_CONFIG", Release(4, 1, 2), Release(3, 9, 1), Release(4, 3, 1))


def published(of: SchemaName) -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{of}-{FORMS[of][0]}.json").read_text()))


@pytest.mark.parametrize("of", SchemaName)
def test_a_schema_is_published_as_it_is(of):
    printed = CliRunner().invoke(cli.app, ["system", "schema", of])
    assert json.loads(printed.stdout) == published(of), (
        f"onceproof system schema {of} > docs/schemas/{of}-N.json; a new number N if it breaks readers"
    )


def test_a_file_of_verdicts_is_of_its_schema(tmp_path):
    standing = (Standing("stale-cache", 3, 3, 0.2),)
    rows = [a_verdict(CELL, "known", anomalies={"lost-record": 3}, issues=("KAFKA-20685",), interval=(0.2, 1.0))]
    rows += [a_verdict(CELL, "clean", plants=standing, missed=0.1, promises={"state": 8}, seconds=None)]
    VerdictRow.write_all(tmp_path / "verdicts.json", rows)
    answer = json.loads((tmp_path / "verdicts.json").read_text())
    validator = Draft202012Validator(published(SchemaName.VERDICTS))
    validator.validate(answer)
    for wrong in ({"verdict": "green"}, {"red": "1"}, {"interval": [0.5]}):
        assert not validator.is_valid([answer[0] | wrong])
    assert not validator.is_valid([{name: value for name, value in answer[0].items() if name != "cell"}])


@pytest.mark.parametrize(
    ("plant", "fault"),
    [
        (None, None),
        (
            Planted("stale-cache", ("ProcessorStateManager.recycle",), 3),
            FaultOutcome("pause", True, "It bit.", {"a": [1]}),
        ),
    ],
)
def test_a_trial_is_of_its_schema(plant, fault):
    answer = an_answer(plant=plant, fault=fault, not_looked_at={"reads": "nothing is read"})
    reported = json.loads(json.dumps(encode(answer)))
    validator = Draft202012Validator(published(SchemaName.TRIAL))
    validator.validate(reported)
    assert reported["schema"] == 2
    assert not validator.is_valid(reported | {"exercised": "yes"})


def test_an_answer_about_a_fix_is_of_its_schema(tmp_path):
    answer = json.loads(json.dumps(encode(an_answer_about_a_fix())))
    validator = Draft202012Validator(published(SchemaName.VERIFY_FIX))
    validator.validate(answer)
    assert answer["schema"] == 1
    assert not validator.is_valid(answer | {"proof": "yes"})
    an_answer_about_a_fix().write(tmp_path / "fix.json")
    assert FixAnswer.read(tmp_path / "fix.json") == an_answer_about_a_fix()


def test_a_search_is_of_its_schema():
    answer = json.loads(json.dumps(encode(an_exploration())))
    validator = Draft202012Validator(published(SchemaName.EXPLORE))
    validator.validate(answer)
    assert answer["schema"] == 1
    assert not validator.is_valid(answer | {"trials": "many"})


def test_a_fuzzing_is_of_its_schema():
    told = json.loads(json.dumps(encode(a_fuzzing())))
    validator = Draft202012Validator(published(SchemaName.FUZZ))
    validator.validate(told)
    assert told["schema"] == 1
    assert not validator.is_valid(told | {"cases": "many"})


def test_a_schema_that_there_is_not_is_named():
    done = CliRunner().invoke(cli.app, ["system", "schema", "runs"])
    assert done.exit_code == 2
    assert "'runs'" in done.output
