"""Runs commands of Onceproof in the process of the tests: to start a Python takes longer than most of them."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from onceproof.cli import app, main
from onceproof.settings import get_settings


def parse_command(*words: str) -> dict[str, Any]:
    """The parameters of a command, by its words without `onceproof`: checks them and their values, runs nothing."""
    command, name, rest = get_command(app), "onceproof", list(words)
    while isinstance(command, TyperGroup):
        name, *rest = rest
        command = command.commands[name]
    return command.make_context(name, rest).params


def onceproof(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a command prints over a home, and its exit code, as if it had a process of its own."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("ONCEPROOF_HOME", str(home))
        patch.setattr(sys, "argv", ["onceproof", *arguments])
        get_settings.cache_clear()
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            get_settings.cache_clear()
    return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), out.getvalue(), err.getvalue())
