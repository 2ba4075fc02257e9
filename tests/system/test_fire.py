"""The pipeline under fire, in short: one run of `benchmarks/chaos.py`."""

import random

import pytest

from benchmarks.chaos import KILL, home_for, run_once
from onceproof.model.verdict import Verdict

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


def test_a_run_whose_scheduler_was_killed_is_resumed_to_the_same_verdicts_and_leaves_nothing():
    undisturbed = {"3.3.1": Verdict.KNOWN, "4.3.1": Verdict.CLEAN}
    with home_for("scheduler") as home:
        struck = run_once(home, "scheduler", KILL, random.Random(0), 30.0, undisturbed)
    assert struck.moment is not None
    assert (struck.wrong, struck.orphans, struck.resumed) == ([], [], "yes")
    assert struck.verdicts == undisturbed
