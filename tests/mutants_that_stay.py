"""Mutants that no test can kill, as they do what the code does: each with the reason."""

from collections.abc import Mapping

_NO_CONTROL = "A control without a cell has no trials, and nothing looks at how many were exercised."
_LEAST = "No claim takes so many trials: one that does is none."

EQUIVALENT: Mapping[str, str] = {
    **dict.fromkeys(
        (
            f"results/controls.py: exercised: tuple[int, int] = {pair}  # trials of the control, and those that say "
            "something, now and before"
            for pair in ("( -1, 0)", "( 1, 0)", "(0, -1)", "(0, 1)")
        ),
        _NO_CONTROL,
    ),
    "statistics.py: while greens <= MANY:": _LEAST,
}
