"""Mutants of our own code of verdicts, each of which a test must kill: `make test-mutants`, a step of the night.

    python -m tests.mutants [GROUP]... [--sessions FOLDER] [--survivors] [--workers N]

Cosmic Ray says what the mutants are, and keeps what became of each in a session, so that a call goes on where the last
one was cut short. The tests of a group are collected once. One process runs them and notes which lines each reaches and
what it costs; each mutant is then tried in a process of its own, which has the code of that one function replaced and
runs the tests that reach its line, the quickest first. A mutant of a line that runs at import is imported anew.
Prints a table; exit code 1 if in any group fewer than 90 % are killed, or if `EQUIVALENT` names what does not survive.
"""

import argparse
import ast
import contextlib
import functools
import gc
import multiprocessing
import os
import resource
import signal
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from itertools import count
from pathlib import Path
from types import CodeType, FunctionType
from typing import NoReturn

import coverage
import hypothesis
import pytest
from _pytest.runner import runtestprotocol
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult
from parso.python.tree import Function
from parso.tree import NodeOrLeaf
from rich.console import Console
from rich.table import Table

from tests.mutants_that_stay import EQUIVALENT

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "onceproof"
LEAST = 0.9  # of the mutants
HEAVY = 2.0  # CPU seconds; a test that takes more kills no mutant
PATIENCE = 3.0  # CPU seconds more than the tests take, and so many times what they take
HANGS = 600.0  # seconds; a mutant that is ended by them, not by CPU time, may be sound on a busy machine: it survives
TIMEOUT = "timeout"  # as Cosmic Ray notes it
STALLED = "stalled"
NOT_HERE = "spark or gx or broker or system or browser or docker or postgresql or toxiproxy"  # markers
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}  # as the compiler calls them

# Of the many that Cosmic Ray has for a comparison or an operator, those that are not alike.
_COMPARISONS = "Eq_NotEq NotEq_Eq Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Is_IsNot IsNot_Is"
_BINARY = "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Div Mod_Div Pow_Mul BitOr_BitAnd BitAnd_BitOr"
OPERATORS = (
    *(f"core/ReplaceComparisonOperator_{pair}" for pair in _COMPARISONS.split()),
    *(f"core/ReplaceBinaryOperator_{pair}" for pair in _BINARY.split()),
    *("core/AddNot", "core/ReplaceTrueWithFalse", "core/ReplaceFalseWithTrue", "core/NumberReplacer"),
    *("core/ReplaceAndWithOr", "core/ReplaceOrWithAnd", "core/ReplaceUnaryOperator_Delete_Not"),
    *("core/ReplaceBreakWithContinue", "core/ReplaceContinueWithBreak", "core/ReplaceUnaryOperator_USub_UAdd"),
    *("core/ZeroIterationForLoop", "core/ExceptionReplacer"),
)


@dataclass(frozen=True)
class Group:
    """Modules, below `src/onceproof`, and the tests that must kill their mutants, below `tests`."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the modules."""
        return tuple(file for pattern in self.modules for file in sorted(SOURCE.glob(pattern)))


GROUPS: Mapping[str, Group] = {
    "explaining": Group(
        ("model/explaining.py",),
        ("model/test_explaining*.py", "model/test_look_alikes.py", "model/test_application_issues.py"),
    ),
    "verdict": Group(("model/verdict.py",), ("model/test_verdict.py", "results/test_controls.py")),
    "judging": Group(("results/judging.py",), ("results/test_judging.py",)),
    "controls": Group(("results/controls.py",), ("results/test_controls.py",)),
    "statistics": Group(("statistics.py",), ("test_statistics.py",)),
    "shapes": Group(("model/shape.py", "model/compared.py"), ("model/test_compared.py",)),
    "readers": Group(("readers/*.py",), ("readers/test_*.py",)),
}


class Altered:
    """A mutant: the text of its module, the line that differs, and the code that takes the place of the other."""

    def __init__(self, mutation: MutationSpec) -> None:
        self.file = ROOT / mutation.module_path
        original = self.file.read_text()
        operator = get_operator(mutation.operator_name)()
        self.text = mutate_code(original, operator, mutation.occurrence) or original
        self.lines = range(mutation.start_pos[0], mutation.end_pos[0] + 1)
        self.line = self.text.splitlines()[mutation.start_pos[0] - 1].strip()
        self._original = original

    @property
    def name(self) -> str:
        """Its module, below `src/onceproof`, and its line."""
        return f"{self.file.relative_to(SOURCE)}: {self.line}"

    def codes(self) -> list[tuple[CodeType, CodeType]]:
        """The functions that differ, each with what it becomes; none if the line runs at import."""
        old, new = (compile(text, str(self.file), "exec") for text in (self._original, self.text))
        return _changed(old, new) if old != new else []


def _changed(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]]:
    """The functions and bodies within a module or a class that differ, if only such do."""
    pairs = [
        (before, after)
        for before, after in zip(old.co_consts, new.co_consts, strict=False)
        if isinstance(before, CodeType) and isinstance(after, CodeType) and before != after
    ]
    found: list[tuple[CodeType, CodeType]] = []
    for before, after in pairs:
        if before.co_name in COMPREHENSIONS:  # which has run at import
            return []
        if before.co_flags & 2:  # CO_NEWLOCALS and CO_OPTIMIZED: a function, not the body of a class
            found.append((before, after))
        elif not (deeper := _changed(before, after)):
            return []
        else:
            found += deeper
    return found if _plain(old) == _plain(new) else []


def _plain(code: CodeType) -> tuple[object, ...]:
    """What a module or a class does, but for the functions that it defines."""
    return (code.co_code, code.co_names, *(None if isinstance(c, CodeType) else (type(c), c) for c in code.co_consts))


def mutants_of(files: Iterable[Path]) -> Iterator[WorkItem]:
    """All mutants of modules."""
    for file in files:
        tree = get_ast(file.read_text())
        nodes = list(ast_nodes(tree))
        for name in OPERATORS:
            number = count()
            for node in nodes:
                for start, end in get_operator(name)().mutation_positions(node):
                    spec = MutationSpec(file.relative_to(ROOT), name, next(number), start, end)
                    if not _is_idle(node):
                        yield WorkItem.single(uuid.uuid4().hex, spec)


def _is_idle(node: NodeOrLeaf) -> bool:
    """Whether a node is within an annotation, which nothing looks at, or a decorator: what `frozen` forbids is not tried."""
    above = node.parent
    if above is None:
        return False
    is_annotation = (
        above.type == "tfpdef"
        or (above.type == "annassign" and node is above.children[1])
        or (isinstance(above, Function) and node is above.annotation)
    )
    is_star = node.type == "operator" and above.type == "parameters"  # which Cosmic Ray takes for a product
    return is_annotation or is_star or node.type == "decorator" or _is_idle(above)


@dataclass(frozen=True)
class Reached:
    """The lines of the modules that a test reaches, and its CPU seconds."""

    lines: Mapping[str, frozenset[int]]  # by file
    seconds: float


class Mutating:
    """A plugin of pytest that tries mutants with the tests that it collected, in place of running them."""

    def __init__(self, group: Group, session: WorkDB, most: int | None = None, workers: int = 1) -> None:
        self._group = group
        self._session = session
        self._most = most
        self._workers = workers
        self._functions: list[FunctionType] = []
        self._caches: list[functools._lru_cache_wrapper[object]] = []

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """No example is kept or made smaller, and each trial has the same ones."""
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile(
            "mutants", deadline=None, database=None, derandomize=True, phases=phases, print_blob=False
        )
        hypothesis.settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try all that have not been tried."""
        if session.testsfailed:
            raise session.Interrupted("The tests cannot be collected.")
        with multiprocessing.get_context("fork").Pool(1) as pool:  # what tests leave behind is in no mutant's process
            reached = pool.apply(_reached, (self._group.files,))
        self._find()
        for item, outcome in self._tried(session, self._session.pending_work_items[: self._most], reached):
            self._session.set_result(item.job_id, outcome)
        return True

    def _find(self) -> None:
        """What is there of the modules in memory, and what of ours keeps results."""
        gc.unfreeze()
        files = set(map(str, self._group.files))
        for found in gc.get_objects():
            if isinstance(found, FunctionType) and found.__code__.co_filename in files:
                self._functions.append(found)
            elif isinstance(found, functools._lru_cache_wrapper) and (found.__module__ or "").startswith("onceproof"):
                self._caches.append(found)
        gc.freeze()

    def _tried(
        self, session: pytest.Session, pending: Sequence[WorkItem], reached: Mapping[str, Reached]
    ) -> Iterator[tuple[WorkItem, WorkResult]]:
        quick = [item for item in session.items if reached[item.nodeid].seconds <= HEAVY]
        quick.sort(key=lambda item: reached[item.nodeid].seconds)
        ahead, running = list(reversed(pending)), dict[int, tuple[WorkItem, float]]()
        while ahead or running:
            while ahead and len(running) < self._workers:
                item = ahead.pop()
                mutation = item.mutations[0]
                file, line = str(ROOT / mutation.module_path), mutation.start_pos[0]
                lines = _statement(ROOT / mutation.module_path, line)
                touching = [i for i in quick if not reached[i.nodeid].lines.get(file, frozenset()).isdisjoint(lines)]
                seconds = sum(reached[i.nodeid].seconds for i in touching or quick)
                sys.stdout.flush()
                if not (pid := os.fork()):
                    self._try(mutation, touching, quick, PATIENCE * (1 + seconds))
                running[pid] = item, time.monotonic() + HANGS
            for pid, (item, deadline) in list(running.items()):
                if time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    del running[pid]
                    yield item, _result(status)
            time.sleep(0.01)

    def _try(
        self, mutation: MutationSpec, touching: Sequence[pytest.Item], quick: Sequence[pytest.Item], most: float
    ) -> NoReturn:
        """Try a mutant in this process, and end it: 0 if the mutant survives."""
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (int(most), int(most) + 10))  # SIGXCPU, which is not caught
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            code = int(self._is_killed(Altered(mutation), touching, quick))
        finally:
            os._exit(code)

    def _is_killed(self, mutant: "Altered", touching: Sequence[pytest.Item], quick: Sequence[pytest.Item]) -> bool:
        codes = {(old.co_qualname, old.co_firstlineno): new for old, new in mutant.codes()}
        if not codes:
            return _imported(mutant, [item.nodeid for item in quick])
        for kept in self._caches:
            kept.cache_clear()
        for function in self._functions:
            code = function.__code__
            if code.co_filename == str(mutant.file) and (code.co_qualname, code.co_firstlineno) in codes:
                function.__code__ = codes[code.co_qualname, code.co_firstlineno]
        return any(report.failed for item in touching for report in runtestprotocol(item, nextitem=None, log=False))


def _statement(file: Path, line: int) -> set[int]:
    """The lines of the innermost statement that a line is in, but for those of its body."""
    within = [
        node
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    inner = max(within, key=lambda node: (node.lineno, -(node.end_lineno or 0)))
    return set(range(inner.lineno, line + 1))


@functools.cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def _result(status: int) -> WorkResult:
    """What became of a mutant: to use up its CPU time is to be killed, to end by another signal is to survive."""
    if os.WIFSIGNALED(status):
        is_endless = os.WTERMSIG(status) == signal.SIGXCPU
        outcome = TestOutcome.KILLED if is_endless else TestOutcome.SURVIVED
        return WorkResult(WorkerOutcome.NORMAL, TIMEOUT if is_endless else STALLED, outcome)
    return WorkResult(WorkerOutcome.NORMAL, "", TestOutcome.KILLED if status else TestOutcome.SURVIVED)


_items: list[pytest.Item] = []  # that were collected, in the processes that are forked


def _reached(files: Collection[Path]) -> dict[str, Reached]:
    """Run the collected tests and see what each reaches.

    Raises:
        RuntimeError: one fails without any mutant.
    """
    tracer = coverage.Coverage(data_file=None, config_file=False, include=[str(file) for file in files])
    tracer.start()
    took, failed = {}, []
    for item, following in zip(_items, [*_items[1:], None], strict=True):
        tracer.switch_context(item.nodeid)
        begin = time.process_time()
        if any(report.failed for report in runtestprotocol(item, nextitem=following, log=False)):
            failed.append(item.nodeid)
        took[item.nodeid] = time.process_time() - begin
    tracer.stop()
    if failed:
        raise RuntimeError(f"These fail without a mutant: {', '.join(failed)}")
    data = tracer.get_data()
    lines: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for file in data.measured_files():
        for line, tests in data.contexts_by_lineno(file).items():
            for test in tests:
                lines[test][file].add(line)
    frozen = {test: {file: frozenset(of) for file, of in found.items()} for test, found in lines.items()}
    return {test: Reached(frozen.get(test, {}), seconds) for test, seconds in took.items()}


def _imported(mutant: Altered, tests: Sequence[str]) -> bool:
    """Whether a test fails with a mutant that is imported anew."""
    get_code = SourceFileLoader.get_code

    def mutated(loader: SourceFileLoader, name: str) -> CodeType | None:
        if Path(loader.path) == mutant.file:
            return compile(mutant.text, loader.path, "exec")
        return get_code(loader, name)

    SourceFileLoader.get_code = mutated  # type: ignore[method-assign, assignment]
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if file.startswith((str(SOURCE), str(ROOT / "tests"))):
            del sys.modules[name]
    return pytest.main([*_options(), "-x", *tests]) != pytest.ExitCode.OK


def _options() -> list[str]:
    return ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--timeout=0", "-m", f"not ({NOT_HERE})"]


class _Collected:
    """A plugin that keeps what was collected where forked processes find it."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep it."""
        _items[:] = session.items


def tried(name: str, sessions: Path, most: int | None, workers: int = 1) -> None:
    """Try the mutants of a group, in a process of its own, as each imports what it mutates."""
    group = GROUPS[name]
    with use_db(str(sessions / f"{name}.sqlite")) as session:
        if not session.num_work_items:
            session.add_work_items(list(mutants_of(group.files)))
        if len(session.completed_work_items) < session.num_work_items:
            tests = [str(file) for pattern in group.tests for file in sorted((ROOT / "tests").glob(pattern))]
            with contextlib.chdir(ROOT):
                code = pytest.main(
                    [*_options(), *tests], plugins=[_Collected(), Mutating(group, session, most, workers)]
                )
            if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                sys.exit(int(code))


@dataclass(frozen=True)
class Score:
    """What became of the mutants of a module."""

    mutants: int = 0
    killed: int = 0
    survived: int = 0
    timeouts: int = 0
    equivalent: int = 0

    def __add__(self, other: "Score") -> "Score":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Score(*(one + another for one, another in pairs))

    @property
    def share(self) -> float:
        """Of those that differ, the share that tests kill; one that never ends counts."""
        return (self.killed + self.timeouts) / max(self.killed + self.timeouts + self.survived, 1)


def scores(sessions: Path, names: Iterable[str]) -> dict[str, dict[str, Score]]:
    """The scores of modules by group."""
    found: dict[str, dict[str, Score]] = {name: defaultdict(Score) for name in names}
    for name, by_module in found.items():
        for mutation, result in _completed(sessions, name):
            module = str((ROOT / mutation.module_path).relative_to(SOURCE))
            if result.is_killed:
                by_module[module] += Score(1, timeouts=1) if result.output == TIMEOUT else Score(1, killed=1)
            else:
                is_equivalent = Altered(mutation).name in EQUIVALENT
                by_module[module] += Score(1, equivalent=1) if is_equivalent else Score(1, survived=1)
    return found


def _completed(sessions: Path, name: str) -> Iterator[tuple[MutationSpec, WorkResult]]:
    with use_db(str(sessions / f"{name}.sqlite")) as session:
        for item, result in session.completed_work_items:
            yield item.mutations[0], result


def survivors(sessions: Path, name: str) -> list[Altered]:
    """The mutants of a group that no test kills, equivalent ones among them."""
    return [Altered(mutation) for mutation, result in _completed(sessions, name) if not result.is_killed]


def table(by_group: Mapping[str, Mapping[str, Score]]) -> Table:
    """The scores as people read them."""
    shown = Table("group", "module", *("mutants", "killed", "survived", "timeout", "equivalent", "score"))
    for name, by_module in by_group.items():
        rows = [(module, by_module[module]) for module in sorted(by_module)]
        for module, score in [*rows, ("all", sum((score for _, score in rows), Score()))]:
            figures = (score.mutants, score.killed, score.survived, score.timeouts, score.equivalent)
            shown.add_row(name, module, *map(str, figures), f"{100 * score.share:.1f} %")
    return shown


def main() -> int:
    """Try what is asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"only these of {', '.join(GROUPS)}")
    parser.add_argument("--sessions", type=Path, default=ROOT / ".onceproof" / "mutants", help="what became of each")
    parser.add_argument("--most", type=int, help="so many mutants of each group in this call")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="so many at a time; all cores by default"
    )
    parser.add_argument("--survivors", action="store_true", help="print them, too")
    asked = parser.parse_args()
    if unknown := set(asked.groups) - set(GROUPS):
        parser.error(f"there is no group {', '.join(sorted(unknown))}: there are {', '.join(GROUPS)}.")
    names, console = asked.groups or list(GROUPS), Console()
    asked.sessions.mkdir(parents=True, exist_ok=True)
    for name in names:
        trying = multiprocessing.get_context("spawn").Process(
            target=tried, args=(name, asked.sessions, asked.most, asked.workers)
        )
        trying.start()
        trying.join()
        if trying.exitcode:
            return 1
    by_group = scores(asked.sessions, names)
    console.print(table(by_group))
    stay = {name: survivors(asked.sessions, name) for name in names}
    if asked.survivors:
        for mutant in (mutant for of_group in stay.values() for mutant in of_group if mutant.name not in EQUIVALENT):
            print(f"{mutant.name} (line {mutant.lines.start})")
    seen = {mutant.name for of_group in stay.values() for mutant in of_group}
    modules = {str(file.relative_to(SOURCE)) for name in names for file in GROUPS[name].files}
    stale = [name for name in EQUIVALENT if name.partition(":")[0] in modules and name not in seen]
    if stale and not asked.most:
        print("These do not survive, so they are not equivalent:", *stale, sep="\n")
    low = any(sum(by_module.values(), Score()).share < LEAST for by_module in by_group.values())
    return int(low or bool(stale and not asked.most))


if __name__ == "__main__":
    sys.exit(main())
