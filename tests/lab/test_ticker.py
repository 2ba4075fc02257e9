"""A machine that stands still, by a fake clock."""

import pytest

from onceproof.lab.ticker import Ticker
from onceproof.model.timeline import stall_text


def missed(*times: float) -> list[float]:
    """What a ticker reports if it looks at the clock at these times."""
    left = list(times)
    reported: list[float] = []
    ticker = Ticker(reported.append, clock=lambda: left.pop(0), wait=lambda _: not left)
    ticker.stop()
    return reported


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((0.0, 0.1, 0.2), []),
        ((0.0, 0.1, 2.1, 2.2), []),  # 1.9 s late
        ((0.0, 0.1, 2.3, 2.4), [2.2]),
        ((0.0, 3.2, 3.3, 5.8), [3.2, 2.5]),
    ],
)
def test_two_seconds_without_a_tick_are_told(times, expected):
    assert missed(*times) == pytest.approx(expected)


def test_the_real_ticker_is_stopped():
    Ticker(lambda seconds: pytest.fail(f"It ticked: {seconds}")).stop()


def test_the_longest_stall_voids_a_trial():
    events = [
        {"t": 2_000, "source": "driver", "event": "stall", "ms": 1_200},
        {"t": 4_000, "source": "instance-1", "event": "stall", "ms": 3_210},
    ]
    assert stall_text(events) == "The machine stood still for 3.2 s (instance-1): the trial says nothing."
    frozen = {"t": 700, "source": "driver", "event": "instance", "name": "instance-1", "action": "frozen"}
    assert stall_text([frozen, *events]) == "The machine stood still for 1.2 s (driver): the trial says nothing."
    assert stall_text([frozen, events[1]]) is None, "it was meant to stand still"
    assert stall_text([]) is None
    assert stall_text(events, 3_211) is None, "so long it may"
