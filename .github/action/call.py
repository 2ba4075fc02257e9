"""The step of `action.yml` that runs `onceproof`: from inputs to a job summary, annotations and outputs.

Inputs come as the environment variables `ONCEPROOF_INPUT_NAME` and nowhere else: none of them is part of a shell
command. Each is checked before anything starts. Exit: that of `onceproof`; 2 if an input cannot be used.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PREFIX = "ONCEPROOF_INPUT_"
RELEASE = r"(newest|previous|[0-9]+\.[0-9]+(\.[0-9]+)?(-[A-Za-z0-9.]+)?)"
NAME = r"[A-Za-z0-9][A-Za-z0-9_-]*"
SEED = r"[0-9]{1,10}"
USAGE = 2


class InputError(Exception):
    """An input that cannot be used, as a sentence with the remedy."""


@dataclass(frozen=True)
class Input:
    """An input that a command takes.

    Attributes:
        pattern: what each of its values must match, whole.
        option: the option that it becomes; None for an argument by its position.
        repeatable: whether it may have several values, with white space between.
        required: whether it must be given.
    """

    pattern: str
    option: str | None = None
    repeatable: bool = False
    required: bool = False


COMMANDS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Input]]] = {
    "advise": (
        ("advise",),
        {"from": Input(RELEASE, required=True), "to": Input(RELEASE, required=True)},
    ),
    "app-run": (
        ("app", "run"),
        {
            "application": Input(r"[^-].*", required=True),
            "streams": Input(RELEASE, "--streams", repeatable=True),
            "fault": Input(NAME, "--fault"),
            "roll-to": Input(RELEASE, "--roll-to"),
            "seed": Input(SEED, "--seed"),
        },
    ),
    "run": (
        ("run",),
        {
            "matrix": Input(NAME, "--matrix"),
            "streams": Input(RELEASE, "--streams", repeatable=True),
            "scenario": Input(NAME, "--scenario", repeatable=True),
            "variant": Input(NAME, "--variant", repeatable=True),
        },
    ),
}


def arguments(given: Mapping[str, str]) -> list[str]:
    """The arguments of `onceproof` that the inputs ask for.

    Raises:
        InputError: an input is missing, is not one of its command, or has an impossible value.
    """
    command = given.get("command", "")
    if command not in COMMANDS:
        raise InputError(f"The input command is {command!r}, but must be one of {', '.join(COMMANDS)}.")
    words, inputs = COMMANDS[command]
    if foreign := next((name for name in given if name != "command" and name not in inputs), None):
        raise InputError(f"The input {foreign} is not for {command}, which takes {', '.join(inputs)}: leave it out.")
    found = [*words]
    for name, one in inputs.items():
        if name not in given:
            if one.required:
                raise InputError(f"The input {name} is missing, which {command} needs: add it under `with`.")
            continue
        for value in given[name].split() if one.repeatable else [given[name]]:
            if not re.fullmatch(one.pattern, value):
                raise InputError(f"The input {name} is {value!r}, which does not match {one.pattern}: correct it.")
            found += [value] if one.option is None else [one.option, value]
    return found


UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]|\r(?!\n)"
)


def plain(text: str) -> str:
    """The text, with a mark in place of each character that is not shown but does something."""
    return UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


def escaped(text: str, more: str = "") -> str:
    """A text within a command to the runner: what would end it there is escaped."""
    text = plain(text)
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def in_markdown(text: str) -> str:
    """A text in a sentence or a cell of a table, as it is."""
    text = " ".join(re.sub(r"([\\`*_\[\]<>|#~&$]|:(?=//))", r"\\\1", plain(text)).split())
    return re.sub(r"^(\d*)([-+=.)])(?=[-= ]|$)", r"\1\\\2", text)


def annotation(level: str, title: str, text: str) -> str:
    """A command by which the runner shows a sentence."""
    return f"::{level} title={escaped(title, ':,')}::{escaped(text)}"


def advice(answer: Mapping[str, Any]) -> Iterator[str]:
    """The job summary of `advise --json`."""
    yield f"## Onceproof: {in_markdown(answer['headline'])}"
    for heading, of in (("What is known against it", "against"), ("What to do", "to_do")):
        if answer[of]:
            yield f"\n### {heading}\n"
            yield from (f"- {in_markdown(said['text'])}" for said in answer[of])


def application(answer: Mapping[str, Any]) -> Iterator[str]:
    """The job summary of `app run --json`."""
    yield f"## Onceproof: fault {answer['fault']}, seed {answer['seed']}\n"
    yield "| Kafka Streams | | reason | what to do |\n|---|---|---|---|"
    for one in answer["releases"]:
        cells = (_releases(one), one["judgement"], one["reason"], one["advice"])
        yield "| " + " | ".join(map(in_markdown, cells)) + " |"


def _releases(one: Mapping[str, Any]) -> str:
    return f"{one['streams']} to {one['restart_on']}" if one["restart_on"] else str(one["streams"])


def of_advice(answer: Mapping[str, Any]) -> Iterator[str]:
    """The annotation of `advise --json`, unless nothing is known against the upgrade."""
    if answer["exit_code"]:
        yield annotation("warning", "Onceproof", answer["headline"])


def of_application(answer: Mapping[str, Any]) -> Iterator[str]:
    """An annotation for each release of `app run --json` that is not green."""
    levels = {"red": "error", "inconclusive": "warning"}
    for one in answer["releases"]:
        if level := levels.get(one["judgement"]):
            yield annotation(level, f"{_releases(one)} {one['judgement']}", one["reason"])


Lines = Callable[[Mapping[str, Any]], Iterator[str]]
# Of the commands whose JSON becomes a summary and annotations here. `run` writes both by itself.
SHOWN: Mapping[str, tuple[Lines, Lines]] = {"advise": (advice, of_advice), "app-run": (application, of_application)}


def call(command: str, words: list[str], onceproof: Path, summary: Path, result: Path) -> int:
    """Run `onceproof`; its JSON goes to a file, its progress to the log. Returns its exit code."""
    more = ["--summary", str(summary)] if command not in SHOWN else []
    with result.open("wb") as file:
        code = subprocess.run([str(onceproof), *words, *more, "--json"], stdout=file, check=False).returncode
    answer = json.loads(result.read_text() or "{}")
    if not answer or "error" in answer:
        print(annotation("error", "Onceproof", answer.get("error", f"onceproof ended with {code}; see the log.")))
    elif command in SHOWN:
        to_summary, to_annotations = SHOWN[command]
        with summary.open("a") as target:
            target.write("\n".join(to_summary(answer)) + "\n")
        print(*to_annotations(answer), sep="\n")
    return code


def main() -> int:
    """Do the step; returns its exit code."""
    given = {
        name.removeprefix(PREFIX).lower().replace("_", "-"): value.strip()
        for name, value in os.environ.items()
        if name.startswith(PREFIX) and value.strip()
    }
    try:
        words = arguments(given)
    except InputError as error:
        print(annotation("error", "Onceproof", str(error)))
        return USAGE
    folder = Path(tempfile.mkdtemp(prefix="onceproof-", dir=os.environ["RUNNER_TEMP"]))
    summary, result = folder / "summary.md", folder / "result.json"
    onceproof = Path(__file__).parents[2] / ".venv" / "bin" / "onceproof"
    code = call(given["command"], words, onceproof, summary, result)
    if summary.exists():  # of the job, to which other steps add theirs
        with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a") as target:
            target.write(summary.read_text())
    with Path(os.environ["GITHUB_OUTPUT"]).open("a") as target:
        target.write(f"exit-code={code}\nresult={result}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
