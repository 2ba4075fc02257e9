"""The timeline of a trial as an interactive plot: the picture that explains a bug.

Panels stand above each other on one axis of time, in seconds since the trial began: what the driver did and what
failed, records and lag, the state of each instance, which thread held which task, for how long records waited, and the
anomalies at the moment they arose. Where a task was active, standby and active again on one thread (the precondition of
KAFKA-14172), the band is framed.
"""

from collections.abc import Sequence

import plotly.graph_objects as go

from onceproof.model.anomaly import Witness
from onceproof.model.errors import HarnessError
from onceproof.model.files import Reading, TrialPlan
from onceproof.model.run_folder import TrialFolder
from onceproof.model.timeline import read_timeline
from onceproof.page.timeline.drawing import Drawing
from onceproof.page.timeline.moments import moments
from onceproof.page.timeline.story import Story


def figure(folder: TrialFolder, witnesses: Sequence[Witness], dark: bool = False) -> go.Figure:
    """Draw the timeline of a trial.

    Args:
        folder: of the trial; its run's table `records` says where the anomalies arose, if it exists.
        witnesses: of the trial's anomalies, as `reader.json` has them.
        dark: whether the page is.

    Raises:
        HarnessError: the timeline is missing, empty or damaged (a last line that was cut off is not missed), or one of
            the files next to it is damaged.
    """
    events = read_timeline(folder.timeline)
    plan = TrialPlan.read(folder.trial_file)
    reading = Reading.read(folder.reader_file) if folder.reader_file.exists() else None
    try:
        found = moments(folder, plan.trial, witnesses, events)
        story = Story.of(events, plan.preloaded, found)
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise HarnessError(
            f"The trial cannot be drawn, because {folder.path}/timeline.jsonl or the run's table "
            f"records is damaged ({what}): run it again."
        ) from error
    return Drawing(story, reading.anomalies if reading else {}, dark).figure()
