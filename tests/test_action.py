"""The GitHub Action: its steps run for real over an environment as the runner makes it; no input reaches a shell."""

import json
import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import yaml

from onceproof.model.json_file import encode
from onceproof.model.judged import Judgement
from tests.commands import parse_command
from tests.published import keep_list
from tests.specimens.files import an_app_answer, on_release

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]
RUN = next(step for step in STEPS if step.get("id") == "onceproof")


def _input_of(value: str) -> str:
    """The input that a variable of the step has as its value, and nothing else."""
    found = re.fullmatch(r"\$\{\{ inputs\.([\w-]+) }}", value)
    assert found, value
    return found[1]


@pytest.fixture(scope="module")
def call():
    """The module of the step that runs `onceproof`."""
    spec = spec_from_file_location("call", ROOT / ".github" / "action" / "call.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["call"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["call"]


@pytest.fixture
def step(tmp_path):
    """The step's script, by the shell that the runner takes, in a folder of a user's own."""

    def run(**inputs):
        # The runner sets each variable of `env`, to nothing where the input is not given.
        given = {name: inputs.pop(_input_of(value), "") for name, value in RUN["env"].items()}
        assert not inputs
        (tmp_path / "temp").mkdir(exist_ok=True)
        runner = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "RUNNER_TEMP": str(tmp_path / "temp"),
            "ONCEPROOF_HOME": str(tmp_path / "home"),
        }
        script = tmp_path / "step.sh"
        script.write_text(RUN["run"])
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        environment = {**os.environ, **runner, **given}
        return subprocess.run(
            shell, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )

    return run


def test_scripts_have_no_expression_and_get_every_input():
    scripts = [step["run"] for step in STEPS if "run" in step]
    assert len(scripts) == 2
    assert not any("${{" in script for script in scripts)
    handed = {_input_of(value) for value in RUN["env"].values()}
    assert handed == ACTION["inputs"].keys()
    assert RUN["env"].keys() == {f"ONCEPROOF_INPUT_{name.upper().replace('-', '_')}" for name in ACTION["inputs"]}


def test_every_input_is_one_of_a_command(call):
    taken = {name for _, inputs in call.COMMANDS.values() for name in inputs}
    assert taken | {"command"} == ACTION["inputs"].keys()


def test_an_upgrade_has_a_summary_an_annotation_and_a_code(step, tmp_path):
    keep_list(tmp_path / "home" / "artifacts")
    done = step(command="advise", **{"from": "3.9.1", "to": "4.3.1"})
    assert done.returncode == 1, done.stderr
    outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    answer = json.loads(Path(outputs["result"]).read_text())
    assert (outputs["exit-code"], answer["exit_code"]) == ("1", 1)
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith(f"## Onceproof: {answer['headline']}\n\n### What is known against it\n\n- ")
    assert "KAFKA-21034" in summary
    assert f"::warning title=Onceproof::{answer['headline']}" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"command": "sweep"}, "The input command is 'sweep', but must be one of advise, app-run, run."),
        ({"command": "advise", "from": "3.9.1"}, "The input to is missing, which advise needs"),
        ({"command": "advise", "from": "3.9.1", "to": "--run"}, "The input to is '--run', which does not match"),
        ({"command": "advise", "from": "3.9.1", "to": "$(touch hacked)"}, "The input to is '$(touch hacked)', which"),
        ({"command": "run", "streams": "4.3.1 4.4.0;id"}, "The input streams is '4.4.0;id', which does not match"),
        ({"command": "run", "application": "shop"}, "The input application is not for run, which takes matrix, "),
        ({"command": "app-run", "application": "-h"}, "The input application is '-h', which does not match"),
    ],
)
def test_an_unusable_input_is_one_annotation_and_starts_nothing(step, tmp_path, inputs, said):
    done = step(**inputs)
    [line] = done.stdout.splitlines()
    assert line.startswith(f"::error title=Onceproof::{said.replace('%', '%25')}")
    assert (done.returncode, done.stderr) == (2, "")
    assert {path.name for path in tmp_path.iterdir()} == {"step.sh", "temp"}


def test_a_missing_application_is_annotated_by_the_command(step, tmp_path):
    done = step(command="app-run", application="shop", streams="4.3.1")
    assert done.returncode == 2
    assert re.search(r"^::error title=Onceproof::.*shop", done.stdout, re.MULTILINE)
    assert "exit-code=2\n" in (tmp_path / "output").read_text()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"command": "app-run", "application": "my shop", "streams": "4.1.2  newest", "roll-to": "4.4"},
            ["app", "run", "my shop", "--streams", "4.1.2", "--streams", "newest", "--roll-to", "4.4"],
        ),
        (
            {"command": "run", "matrix": "nightly", "scenario": "crash windows", "variant": "KILLED"},
            ["run", "--matrix", "nightly", "--scenario", "crash", "--scenario", "windows", "--variant", "KILLED"],
        ),
    ],
)
def test_inputs_are_options_that_the_command_has(call, given, words):
    assert call.arguments(given) == words
    parse_command(*words)


def test_each_release_without_a_green_is_annotated(call):
    releases = [
        on_release(streams="4.1.2", judgement=Judgement.RED, reason="5% of sums | are\nwrong"),
        on_release(streams="4.2.2", restart_on="4.3.1", judgement=Judgement.INCONCLUSIVE, reason="Not exercised."),
        on_release(streams="4.4.0", judgement=Judgement.GREEN),
    ]
    answer = json.loads(json.dumps(encode(an_app_answer(*releases))))
    assert list(call.of_application(answer)) == [
        "::error title=4.1.2 red::5%25 of sums | are%0Awrong",
        "::warning title=4.2.2 to 4.3.1 inconclusive::Not exercised.",
    ]
    rows = list(call.application(answer))[2:]
    assert rows[0].startswith("| 4.1.2 | red | 5% of sums \\| are wrong |")
    assert len(rows) == 3


def test_what_a_summary_shows_of_others_is_no_markdown(call):
    told = "a | b <img src=x> [c](javascript:d) `e`\n# f"
    shown = r"a \| b \<img src=x\> \[c\](javascript:d) \`e\` \# f"
    answer = {"headline": told, "against": [{"text": told}], "to_do": []}
    assert list(call.advice(answer)) == [
        f"## Onceproof: {shown}",
        "\n### What is known against it\n",
        f"- {shown}",
    ]
    release = {"streams": "4.4.0", "restart_on": None, "judgement": "red", "reason": told, "advice": told}
    *_, row = call.application({"fault": "none", "seed": 1, "releases": [release]})
    assert row == f"| 4.4.0 | red | {shown} | {shown} |"
