"""The line that says what is under way, and what is left."""

from contextlib import ExitStack

from onceproof.campaigns.application.agenda import Agenda


def test_it_says_what_is_under_way_and_what_is_left():
    lines: list[str] = []
    agenda = Agenda(
        {"4.1.2": ["without a fault", "without a fault", "pause"], "4.4.0": ["without a fault"]}, lines.append
    )
    with ExitStack() as side_by_side:
        one, other = (side_by_side.enter_context(agenda.doing("4.1.2", "without a fault")) for _ in range(2))
        one("first")
        other("preload")
        one("restart")
    with agenda.doing("4.1.2", "pause") as phase:
        phase("fault")
    agenda.over("4.1.2")
    with agenda.doing("4.4.0", "without a fault") as phase:
        phase("first")
    assert lines == [
        "4.1.2, without a fault: processes the first records (left: pause, 4.4.0)",
        "4.1.2, without a fault: one processes the first records, one gets its first records (left: pause, 4.4.0)",
        "4.1.2, without a fault: one is closed and started again, one gets its first records (left: pause, 4.4.0)",
        "4.1.2, pause: has its fault, and processes the others (left: 4.4.0)",
        "4.4.0, without a fault: processes the first records",
    ]


def test_what_a_red_release_did_not_need_is_left_no_more():
    lines: list[str] = []
    agenda = Agenda({"4.1.2": ["without a fault", "pause"], "4.4.0": ["without a fault", "pause"]}, lines.append)
    with agenda.doing("4.1.2", "without a fault"):
        pass
    agenda.over("4.1.2")
    with agenda.doing("4.4.0", "without a fault") as phase:
        phase("first")
    assert lines == ["4.4.0, without a fault: processes the first records (left: pause)"]
