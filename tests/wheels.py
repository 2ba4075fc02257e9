"""The wheel of this checkout, and environments that have it and no checkout."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = str(Path(sys.executable).with_name("uv"))


def build_wheel(folder: Path) -> Path:
    """Build it into a folder."""
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)])
    [wheel] = folder.glob("*.whl")
    return wheel


def install(folder: Path, python: str, *requirements: str) -> Path:
    """Make an environment of a Python with these requirements; returns the folder of its commands."""
    _run([UV, "venv", "--quiet", "--python", python, str(folder)])
    _run([UV, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), *requirements])
    return folder / "bin"


def outside(commands: Path, **more: str) -> dict[str, str]:
    """The variables of a shell that knows these commands and no checkout."""
    ours = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")
    rest = {name: value for name, value in os.environ.items() if name not in ours and not name.startswith("AIRFLOW")}
    path = [part for part in rest["PATH"].split(":") if part != str(Path(sys.executable).parent)]
    return rest | {"PATH": ":".join([str(commands), *path])} | more


def _run(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
