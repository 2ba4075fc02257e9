"""The pipeline under fire, in short: one run of `benchmarks/chaos.py`."""

import random
from functools import partial

import pytest

from benchmarks.chaos import KILL, Home, home_for, run_once
from onceproof.model.verdict import Verdict

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


def test_a_run_whose_scheduler_was_killed_is_resumed_to_the_same_verdicts_and_leaves_nothing():
    undisturbed = {"3.3.1": Verdict.KNOWN, "4.3.1": Verdict.CLEAN}
    with home_for("scheduler") as home:
        # Before that there is nothing to resume, however slow the machine is.
        begun = partial(_has_begun, home)
        struck = run_once(home, "scheduler", KILL, random.Random(0), 10.0, undisturbed, begun)
    assert struck.moment is not None
    assert (struck.wrong, struck.orphans, struck.resumed) == ([], [], "yes")
    assert struck.verdicts == undisturbed


def _has_begun(home: Home) -> bool:
    """Whether there is a trial."""
    return any(home.path.glob("runs/*/trials/*"))
