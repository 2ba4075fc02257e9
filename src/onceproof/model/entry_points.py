"""The values declared by modules of ours, and by packages of others that name a module as an entry point."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Generic, Protocol, TypeVar

from onceproof.model.errors import UsageError


class Named(Protocol):
    """A value with a name."""

    @property
    def name(self) -> str:
        """By which it is asked for."""


T = TypeVar("T", bound=Named)


class Registry(Mapping[str, T], Generic[T]):
    """By name what modules declare: ours in their order, then those of other packages.

    Packages are looked at when something is first asked for, so that a module of theirs can import ours.

    Raises:
        UsageError: a package names a module that cannot be imported, that declares nothing of the kind, or something
            whose name is taken.
    """

    def __init__(
        self,
        group: str,
        attribute: str,
        kind: type[T],
        ours: Sequence[ModuleType],
        found: Callable[[str], Sequence[EntryPoint]] = lambda group: sorted(entry_points(group=group)),
    ) -> None:
        """Nothing is looked at yet.

        Args:
            group: of entry points, whose values are modules.
            attribute: of a module, what it declares.
            kind: of what is declared.
            ours: our modules.
            found: the entry points of a group.
        """
        self._group, self._attribute, self._kind, self._ours, self._found = group, attribute, kind, ours, found

    def __getitem__(self, name: str) -> T:
        return self._declared[name][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)

    @property
    def modules(self) -> dict[str, str]:
        """By name the module that declares it."""
        return {name: module for name, (_, module) in self._declared.items()}

    @property
    def added(self) -> tuple[T, ...]:
        """The values that other packages declare."""
        return tuple(self.values())[len(self._ours) :]

    @cached_property
    def _declared(self) -> dict[str, tuple[T, str]]:
        declared = {}
        for module in self._ours:
            value: T = getattr(module, self._attribute)
            declared[value.name] = value, module.__name__
        for point in self._found(self._group):
            loaded = self._load(point)
            if loaded.name in declared:
                raise UsageError(
                    f"{_of(point)} declares {loaded.name!r}, which {declared[loaded.name][1]} declares, too: rename "
                    "it, or uninstall one of both packages."
                )
            declared[loaded.name] = loaded, point.module
        return declared

    def _load(self, point: EntryPoint) -> T:
        try:
            found = getattr(point.load(), self._attribute, None)
        except Exception as error:  # of code that is not ours
            raise UsageError(
                f"{_of(point)} cannot be loaded ({type(error).__name__}: {error}): fix its package, or uninstall it."
            ) from error
        if not isinstance(found, self._kind):
            raise UsageError(
                f"{_of(point)} has no {self._attribute} that is a {self._kind.__name__}: name a module that has one."
            )
        return found


def _of(point: EntryPoint) -> str:
    package = f" of {point.dist.name} {point.dist.version}" if point.dist else ""
    return f"The entry point {point.name} = {point.value}{package} in {point.group}"
