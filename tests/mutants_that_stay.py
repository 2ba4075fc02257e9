"""Mutants that no test can kill, as they do what the code does: each with the reason."""

from collections.abc import Mapping

_NO_CONTROL = "Nothing looks at whether a control without a cell was red, or at how often it was exercised."
_LEAST = "No claim takes so many trials: one that does is none."
_DIFFER = "Only keys that came out more or less often than they should get there."
_NO_TIMES = "Where no key has a time, or there is no key, all times are the same, whatever they are."
_AS_MANY = "There are as many chances as rates."
_WITHIN = "Wilson's interval does not leave 0 to 1, but for the last digit of a float."
_HALF_AS_DEEP = "Every second number is kept ahead, so it still asks itself for one at a time."
_ONE_MORE = "Where all trials are red, one more of them asks for no fewer greens than 1."

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
    "statistics.py: now = [m + s * (1 - rate) ** greens for m, s, rate in zip(missed, seen, RATES, strict=False)]": _AS_MANY,
    "statistics.py: at_least = zip(*(_chances(n, counted) for n in range(red, counted + 1)), strict=False)": _AS_MANY,
    "statistics.py: return max(float(sum(seen) * (1 - rate) ** greens) for seen, rate in zip(at_least, RATES, "
    "strict=False))": _AS_MANY,
    "statistics.py: return round(max( -1.0, middle - half), 4), round(min(1.0, middle + half), 4)": _WITHIN,
    "statistics.py: return round(max(0.0, middle - half), 4), round(min( 2.0, middle + half), 4)": _WITHIN,
    "statistics.py: for more in range(counted, red, - 2):": _HALF_AS_DEEP,
    "statistics.py: return min(range(1, most + 2), key=lambda n: n + standing * greens_needed(n, n, risk))": _ONE_MORE,
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
