"""The version of the harness: the same as long as trials have the same chance of finding a bug.

A number of ours would not be updated when a wait or a fault changes. So it is the package's version and two digests of
sources, scenario by scenario. One is of what drives a trial: its module, the faults that it allows, the lab, both with
all that they import of their rooms, the application under test, the agent, and the phrases of Kafka's logs by which
something counts as seen. The other one is of what judges it: the independent reader. A trial that is judged again by
what it left has the first digest of its day and the second one of today. A package that adds scenarios or faults counts
likewise. An edit of one scenario leaves the evidence of the others, and one of comments and docstrings that of all.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path, PurePath

from onceproof.faults import FAULTS
from onceproof.installation import PROJECT
from onceproof.model.errors import HarnessError
from onceproof.model.source_text import statements, without_prose
from onceproof.scenarios import SCENARIOS, app, module_of, scenario

PACKAGE = Path(__file__).parent
JAVA = ("streams_agent", "streams_app")  # of the project: what runs in a trial
ROOMS = ("faults", "scenarios", "readers", "lab", "processes")  # of what is imported, what counts
LAB = ("onceproof.lab.trial", "onceproof.processes.reaper")  # the second one runs as a program of its own
BESIDE = ("lab/log4j.properties", "model/phrases.py")  # of the package: what no import leads to, or that no room has
SOURCES = {".py", ".java", ".properties"}
JUDGES = ("readers/*", "lab/judging.py", "scenarios/explaining.py", "scenarios/observing.py")  # all else drives


@cache
def harness_version(*names: str, beside: Path | None = None) -> str:
    """The version for trials of some scenarios, for example `0.3.0+3f2a9c01.77c0e1d4`: what drives, what judges.

    Args:
        names: of the scenarios; of all, if none is named.
        beside: a folder whose sources count, too.

    Raises:
        UsageError: there is no scenario of a name.
    """
    sources = _sources(PACKAGE, PROJECT)
    files = {file for name in names or _all() for file in sources.of_scenario(name)}
    files |= {*_files(beside)} if beside else set()
    judging = sources.select_judging(files)
    return f"{version('onceproof')}+{sources.digest(files - judging)}.{sources.digest(judging)}"


def judged_now(driven: str, scenario_name: str) -> str:
    """The version for a trial of a scenario that another version has driven, and this one judges.

    Args:
        driven: that other version.
        scenario_name: of the trial.

    Raises:
        UsageError: there is no such scenario.
    """
    package, _, digests = driven.partition("+")
    return f"{package}+{digests.partition('.')[0]}.{harness_version(scenario_name).rpartition('.')[2]}"


def harness_versions() -> dict[str, str]:
    """By scenario the version for its trials."""
    return {name: harness_version(name) for name in _all()}


def _all() -> tuple[str, ...]:
    return (*SCENARIOS, app.NAME)


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
        allowed = [FAULTS.modules[fault.name] for fault in scenario(name).faults]
        return self._find_imported([module_of(name), *allowed]) | self.of_all

    @cached_property
    def of_all(self) -> set[Path]:
        """Those of trials of any scenario."""
        alone = {*map(module_of, _all()), *FAULTS.modules.values()}  # each counts where it is meant
        java = (file for name in JAVA for file in _files(self.project / name / "src" / "main"))
        return self._find_imported(LAB, without=alone) | {self.package / name for name in BESIDE} | {*java}

    def select_judging(self, files: Iterable[Path]) -> set[Path]:
        """Those of some files that judge what a trial left, and cannot change what happens in it."""
        return {file for file in files if any(PurePath(self._name(file)).match(pattern) for pattern in JUDGES)}

    def digest(self, files: Iterable[Path]) -> str:
        """Eight digits that change with the logic of a file, or with its place."""
        digest = hashlib.sha256()
        named = {self._name(file): file for file in files}
        for name, file in sorted(named.items()):
            digest.update(f"{name}\0".encode())
            digest.update(_digest(file, logic_only=self._is_registry(file)))
        return digest.hexdigest()[:8]

    def _find_imported(self, modules: Iterable[str], without: Iterable[str] = ()) -> set[Path]:
        """The files of modules, and of all that they import of their rooms, but not by way of a registry."""
        files, seen, left = set[Path](), {*without}, [*modules]
        while left:
            module = left.pop()
            if module in seen or (file := self._file(module)) is None:
                continue
            seen.add(module)
            files.add(file)
            if not self._is_registry(file):
                left += _python(file.read_text())[0]
        return files

    def _file(self, module: str) -> Path | None:
        """The source of a module of the rooms, or of a package that adds scenarios or faults; None of all else."""
        root, _, name = module.partition(".")
        if root in self._others:
            path = self._others[root].joinpath(*module.split("."))
        elif root == "onceproof" and name.partition(".")[0] in ROOMS:
            path = self.package.joinpath(*name.split("."))
        else:
            return None
        return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)

    @cached_property
    def _others(self) -> dict[str, Path]:
        """The packages and modules that add scenarios or faults, with the folder in which each lies."""
        added = {*SCENARIOS.modules.values(), *FAULTS.modules.values()}
        roots = {module.partition(".")[0] for module in added} - {"onceproof"}
        return {root: _folder_of(root) for root in roots}

    def _is_registry(self, file: Path) -> bool:
        """Whether a file says which scenarios or faults there are: that alone changes no trial."""
        return file.name == "__init__.py" and file.parent in (self.package / "scenarios", self.package / "faults")

    def _name(self, file: Path) -> str:
        """Its path below what it is part of, the same in a checkout and in a wheel."""
        if any(file.is_relative_to(self.project / name) for name in JAVA):
            return file.relative_to(self.project).as_posix()
        roots = (self.package, *self._others.values())
        return next(file.relative_to(root).as_posix() for root in roots if file.is_relative_to(root))


@cache
def _sources(package: Path, project: Path) -> Sources:
    return Sources(package, project)


def _folder_of(package: str) -> Path:
    """The folder in which a package or module that can be imported lies."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise HarnessError(f"The sources of {package} cannot be found, so no version of the harness can be given.")
    file = Path(spec.origin)
    return file.parents[1] if spec.submodule_search_locations else file.parent


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.suffix in SOURCES)


@cache
def _python(text: str) -> tuple[tuple[str, ...], str]:
    """The modules that a source may import, and its text without prose; both at once, as parsing takes the time."""
    tree = ast.parse(text)
    return tuple(dict.fromkeys(_imports(tree))), without_prose(text, ".py", tree)


def _imports(tree: ast.Module) -> Iterator[str]:
    """The modules that may be imported, wherever in it: of `from a import b` both `a` and `a.b`."""
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _digest(file: Path, *, logic_only: bool) -> bytes:
    source = file.read_text()
    text = _python(source)[1] if file.suffix == ".py" else without_prose(source, file.suffix)
    return hashlib.sha256((_logic(text) if logic_only else text).encode()).digest()


def _logic(text: str) -> str:
    """The functions and classes of a Python source, without what it imports and lists."""
    logic = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return "\n".join(ast.get_source_segment(text, node) or "" for node in logic)
