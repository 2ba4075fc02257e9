"""The lines of progress where each of them stays."""

import pytest

from onceproof.cli import terminal


@pytest.mark.parametrize(
    ("every", "printed"),
    [(0.0, ["a: one", "a: two", "a: three", "a: four"]), (60.0, ["a: one", "a: three"])],
)
def test_a_line_comes_at_once_and_then_when_its_time_has_passed(every, printed, monkeypatch, capsys):
    times = iter([0.0, 30.0, 61.0, 100.0])
    now = 0.0
    monkeypatch.setattr(terminal, "monotonic", lambda: now)
    with terminal.progress("a", every) as report:
        for phase in ("one", "two", "three", "four"):
            now = next(times)
            report(phase)
    assert capsys.readouterr().err.splitlines() == printed
