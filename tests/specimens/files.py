"""Files of a trial that ended well, as its rooms write them; what a test is about, it says."""

from dataclasses import replace
from typing import Any

from onceproof.model.cell import Trial
from onceproof.model.files import Outcome, Produced


def an_outcome(trial: Trial, **told: Any) -> Outcome:
    """The outcome of a trial that was exercised."""
    ended = Outcome(
        trial=trial,
        exercised=True,
        reason="why",
        all_steps_tried=True,
        produced=Produced(5, 5),
        attested={},
        seconds={"total": 9.5},
    )
    return replace(ended, **told)
