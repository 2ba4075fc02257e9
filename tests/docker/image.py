"""The image of the pipeline without a container: its Dockerfile's own lines, from its own context, in a folder.

The Dockerfile's lines are run as they stand, with other paths: Debian's packages, the base image and what `onceproof
system setup` resolves are left to the tests in containers. A line of a kind that is not understood here is an error.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.wheels import UV, outside

ROOT = Path(__file__).parents[2]
REPLAYED = ("pipeline-dependencies", "wheel")  # stages that need no base image
QUICKLY = "-XX:TieredStopAtLevel=1"  # a Maven that ends soon: to compile it better takes longer than it saves
LAID_OVER = "--from=wheel /installed .venv"  # what the image then copies


@dataclass(frozen=True)
class Instruction:
    """A line of a Dockerfile."""

    stage: str
    verb: str
    rest: str


def instructions(text: str) -> Iterator[Instruction]:
    """Those of all stages."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    stage = ""
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        verb, _, rest = line.partition(" ")
        if verb == "FROM":
            stage = rest.split()[-1]
        yield Instruction(stage, verb, " ".join(rest.split()))


def make_context(target: Path, root: Path = ROOT) -> None:
    """Copy what `.dockerignore` lets into the context of a build.

    Raises:
        ValueError: it does not begin with `*`, so it says what is left out instead.
    """
    lines = [line for line in (root / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    first, *patterns = lines
    if first != "*":
        raise ValueError(f".dockerignore begins with {first!r}, not with '*'.")
    let_in = [pattern.removeprefix("!") for pattern in patterns if pattern.startswith("!")]
    left_out = shutil.ignore_patterns(*(pattern.removeprefix("**/") for pattern in patterns if pattern[0] != "!"))
    for name in let_in:
        copy_into(root / name, target / name, left_out)


def copy_into(source: Path, target: Path, ignore: object = None) -> None:
    """Copy a file or a folder, with what is there already kept, as COPY does."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=ignore, dirs_exist_ok=True, symlinks=True)  # type: ignore[arg-type]
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def build_image(folder: Path, dockerfile: str, context: Path) -> Path:
    """Do what the Dockerfile does for the image of the pipeline; returns its folder /opt/onceproof.

    Raises:
        AssertionError: a line fails, or is of a kind that is not understood.
    """
    image = folder / "image"
    image.mkdir()
    python = image / ".venv"
    subprocess.run([UV, "venv", "--quiet", "--python", "3.11", str(python)], check=True)
    environment = outside(python / "bin", VIRTUAL_ENV=str(python), MAVEN_OPTS=QUICKLY)
    steps = list(instructions(dockerfile))
    for step in steps:
        if step.stage not in REPLAYED or step.verb == "FROM":
            continue
        assert step.verb in ("COPY", "RUN"), step
        if step.verb == "COPY":
            *sources, target = step.rest.split()
            assert not step.rest.startswith("--"), step
            for source in sources:
                is_file = (context / source).is_file()
                copy_into(context / source, image / target / source if is_file else image / target)
            continue
        line = re.sub(r"(?<=\s)/(wheel|installed)\b", rf"{folder}/\1", step.rest)
        line = line.replace("/opt/uv/bin/uv", UV).replace("--no-cache ", "").replace("--compile-bytecode ", "")
        done = subprocess.run(line, shell=True, cwd=image, env=environment, capture_output=True, text=True, check=False)  # noqa: S602 - the Dockerfile's
        assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert Instruction("pipeline", "COPY", LAID_OVER) in steps
    copy_into(folder / "installed", python)
    return image


def copied(dockerfile: str) -> set[str]:
    """What any stage copies from the context."""
    steps = (step for step in instructions(dockerfile) if step.verb == "COPY" and not step.rest.startswith("--"))
    return {source for step in steps for source in step.rest.split()[:-1]}
