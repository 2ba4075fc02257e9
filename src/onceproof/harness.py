"""The version of the harness: the same as long as trials have the same chance of finding a bug.

A number of ours would not be updated when a wait or a fault changes. So it is the package's version and a digest of the
sources that drive and read a trial, scenario by scenario: its module, the faults that it allows, the lab, both with all
that they import of their rooms, the readers among it, the application under test, the agent, and the phrases of Kafka's
logs by which something counts as seen. An edit of one scenario leaves the evidence of the others.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path

from onceproof import faults, scenarios
from onceproof.installation import PROJECT

PACKAGE = Path(__file__).parent
JAVA = ("streams_agent", "streams_app")  # of the project: what runs in a trial
ROOMS = ("faults", "scenarios", "readers", "lab")  # of what is imported, what counts
LAB = ("onceproof.lab.trial", "onceproof.lab.reaper")  # the second one runs as a program of its own
BESIDE = ("lab/log4j.properties", "model/phrases.py")  # of the package: what no import leads to, or that no room has
SOURCES = {".py", ".java", ".properties"}


@cache
def harness_version(*names: str, beside: Path | None = None) -> str:
    """The version for trials of some scenarios, for example `0.1.0+3f2a9c01`.

    Args:
        names: of the scenarios; of all, if none is named.
        beside: a folder whose sources count, too.

    Raises:
        UsageError: there is no scenario of a name.
    """
    sources = _sources(PACKAGE, PROJECT)
    files = {file for name in names or _all() for file in sources.of_scenario(name)}
    files |= {*_files(beside)} if beside else set()
    return f"{version('onceproof')}+{sources.digest(files)}"


def harness_versions() -> dict[str, str]:
    """By scenario the version for its trials."""
    return {name: harness_version(name) for name in _all()}


def _all() -> tuple[str, ...]:
    return tuple(scenarios.MODULES)


@dataclass(frozen=True)
class Sources:
    """The sources of a package, its project and what they import."""

    package: Path
    project: Path

    def of_scenario(self, name: str) -> set[Path]:
        """The files that could change what trials of a scenario show.

        Raises:
            UsageError: there is no such scenario.
        """
        fault = scenarios.scenario(name).parameters.get("fault")
        allowed = [faults.MODULES[choice] for choice in (fault.choices if fault else ()) if choice != faults.NONE]
        return self._imported([scenarios.MODULES[name], *allowed]) | self.of_all

    @cached_property
    def of_all(self) -> set[Path]:
        """Those of trials of any scenario."""
        alone = {*scenarios.MODULES.values(), *faults.MODULES.values()}  # each counts where it is meant
        java = (file for name in JAVA for file in _files(self.project / name / "src" / "main"))
        return self._imported(LAB, without=alone) | {self.package / name for name in BESIDE} | {*java}

    def digest(self, files: Iterable[Path]) -> str:
        """Eight digits that change with a file, or with its place."""
        digest = hashlib.sha256()
        named = {self._name(file): file for file in files}
        for name, file in sorted(named.items()):
            digest.update(f"{name}\0".encode())
            digest.update(_digest(file, logic_only=self._is_registry(file)))
        return digest.hexdigest()[:8]

    def _imported(self, modules: Iterable[str], without: Iterable[str] = ()) -> set[Path]:
        """The files of modules, and of all that they import of their rooms, but not by way of a registry."""
        files, seen, left = set[Path](), {*without}, [*modules]
        while left:
            module = left.pop()
            if module in seen or (file := self._file(module)) is None:
                continue
            seen.add(module)
            files.add(file)
            if not self._is_registry(file):
                left += _imports(file)
        return files

    def _file(self, module: str) -> Path | None:
        """The source of a module of the rooms; None if it is of something else."""
        root, _, name = module.partition(".")
        if root != "onceproof" or name.partition(".")[0] not in ROOMS:
            return None
        path = self.package.joinpath(*name.split("."))
        return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)

    def _is_registry(self, file: Path) -> bool:
        """Whether a file says which scenarios or faults there are: that alone changes no trial."""
        return file.name == "__init__.py" and file.parent in (self.package / "scenarios", self.package / "faults")

    def _name(self, file: Path) -> str:
        root = self.package if file.is_relative_to(self.package) else self.project
        return file.relative_to(root).as_posix()


@cache
def _sources(package: Path, project: Path) -> Sources:
    return Sources(package, project)


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.suffix in SOURCES)


@cache
def _imports(file: Path) -> tuple[str, ...]:
    """The modules that a source may import, wherever in it: of `from a import b` both `a` and `a.b`."""
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(dict.fromkeys(found))


@cache
def _digest(file: Path, *, logic_only: bool) -> bytes:
    return hashlib.sha256(_logic(file) if logic_only else file.read_bytes()).digest()


def _logic(file: Path) -> bytes:
    """The functions and classes of a source, without what it imports and lists."""
    body = ast.parse(file.read_bytes()).body
    return "\n".join(ast.unparse(node) for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)).encode()
