"""Mutants that no test can kill, as they do what the code does: each with the reason."""

from collections.abc import Mapping

_NO_CONTROL = "Nothing looks at whether a control without a cell was red, or at how often it was exercised."
_LEAST = "No claim takes so many trials: one that does is none."
_DIFFER = "Only keys that came out more or less often than they should get there."
_NO_TIMES = "Where no key has a time, or there is no key, all times are the same, whatever they are."

EQUIVALENT: Mapping[str, str] = {
    **dict.fromkeys(
        (
            f"results/controls.py: exercised: tuple[int, int] = {pair}  # trials of the control, and those that say "
            "something, now and before"
            for pair in ("( -1, 0)", "( 1, 0)", "(0, -1)", "(0, 1)")
        ),
        _NO_CONTROL,
    ),
    "results/controls.py: was_red: bool = True  # in this run, in any of its trials, as the registry expects": _NO_CONTROL,
    "statistics.py: while greens <= MANY:": _LEAST,
    "readers/deliveries.py: if left[key] <= expected:": _DIFFER,
    "readers/deliveries.py: key for key, _ in wanted.items() ^ left.items() if not at_least or left[key] <= wanted[key] or "
    "not wanted[key]": _DIFFER,
    **dict.fromkeys(
        (f"readers/entries.py: youngest = max(times.values(), default= {number})" for number in (-1, 1)), _NO_TIMES
    ),
    **dict.fromkeys(
        (
            f"readers/entries.py: times = {{key: int(key[TIMES[store.form]], 16) if store.form in TIMES else {number} for key "
            "in last}"
            for number in (-1, 1)
        ),
        _NO_TIMES,
    ),
}
