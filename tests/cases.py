"""Many small cases in one test: as with `parametrize` a failure names its case, at a tenth of the price of a test each."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def check_each(
    names: str, cases: Iterable[Any], named: Callable[[Any], object] = str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test's function for each case, as one test: it goes through all, and reports each that failed by its name.

    It is for cases that take milliseconds; fixtures are shared by all of them. Without a case it fails when collected.
    The function has the number of its `cases`.

    Args:
        names: the parameters that a case gives, with commas between them; of several a case is a tuple.
        cases: what they are, in turn.
        named: what a case is called in a failure.
    """
    given, parameters = list(cases), [name.strip() for name in names.split(",")]
    if not given:
        raise ValueError(f"There is no case of {names}.")

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def check_all(**fixtures: Any) -> None:
            failed: dict[str, BaseException] = {}
            for case in given:
                values = (case,) if len(parameters) == 1 else case
                try:
                    function(**dict(zip(parameters, values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"It is the case {named(case)}.")
                    failed[str(named(case))] = error
            if failed:
                text = f"{len(failed)} of {len(given)} cases failed: {'; '.join(failed)}"
                raise BaseExceptionGroup(text, list(failed.values()))

        shared = [one for name, one in signature.parameters.items() if name not in parameters]
        vars(check_all).update(__signature__=signature.replace(parameters=shared), cases=len(given))
        return check_all

    return decorate
