"""The tab *Sensitivity*: planted bugs, and the nights in which all that is claimed was proven."""

from fastapi import Request
from fastapi.responses import Response

from onceproof.model.run_folder import TrialFolder
from onceproof.page.runs import NotThereError
from onceproof.page.sensitivity import find_planted, find_timeline, sensitivity_view, sentence_of
from onceproof.page.tabs.answers import Home, Tab, show_page
from onceproof.results.nights import read_nights
from onceproof.results.sensitivity import read_planted_trials

MOST_STEPS = 60  # of nights: ten nights
tab = Tab()


@tab.page("/sensitivity")
def sensitivity(request: Request, home: Home) -> Response:
    """The planted trials, by release, and the last steps of the nights."""
    releases = sensitivity_view(read_planted_trials(home.database_url))
    return show_page(request, "sensitivity.html", releases=releases, nights=read_nights(home.nights)[:MOST_STEPS])


@tab.page("/planted/{run}/{trial}")
def show_planted(request: Request, home: Home, run: str, trial: str) -> Response:
    """A trial with a planted bug."""
    found = find_planted(home.database_url, run, trial)
    try:
        find_timeline(home.runs, found)
        has_timeline = True
    except NotThereError:
        has_timeline = False
    return show_page(request, "planted.html", trial=found, sentence=sentence_of(found), has_timeline=has_timeline)


def _trial_folder(home: Home, run: str, trial: str) -> TrialFolder:
    return find_timeline(home.runs, find_planted(home.database_url, run, trial))


tab.timeline("/planted/{run}/{trial}/timeline.json", _trial_folder)
