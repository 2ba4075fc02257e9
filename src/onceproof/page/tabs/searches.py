"""The tab *Searches*: what was searched, and what was found."""

from fastapi import Request
from fastapi.responses import Response

from onceproof.model.run_folder import TrialFolder
from onceproof.page import coverage
from onceproof.page.exploring import find_search, find_trial, finding_view, search_view, searches_view
from onceproof.page.tabs.answers import JSON, Home, Tab, show_page

tab = Tab(prefix="/explorations")


@tab.page("")
def searches(request: Request, home: Home) -> Response:
    """The page of all searches."""
    found, damaged = searches_view(home.explorations)
    return show_page(request, "searches.html", searches=found, damaged=damaged)


@tab.page("/{search}")
def search(request: Request, home: Home, search: str, page: str = "1") -> Response:
    """A search, with a page of its trials."""
    return show_page(request, "search.html", search=search_view(find_search(home.explorations, search), page))


@tab.page("/{search}/coverage.json")
def draw_coverage(home: Home, search: str, theme: str = "light") -> Response:
    """The coverage of a search over time, for Plotly to draw."""
    drawn = coverage.figure(find_search(home.explorations, search), dark=theme == "dark")
    return Response(drawn.to_json(), media_type=JSON)


@tab.page("/{search}/findings/{number}")
def finding(request: Request, home: Home, search: str, number: str) -> Response:
    """A finding of a search."""
    return show_page(request, "finding.html", view=finding_view(find_search(home.explorations, search), number))


@tab.page("/{search}/trials/{number}")
def trial(request: Request, home: Home, search: str, number: str) -> Response:
    """A trial of a search, of which the folder was kept."""
    view, _ = find_trial(find_search(home.explorations, search), number)
    return show_page(request, "explored_trial.html", run=search, trial=view)


def _trial_folder(home: Home, search: str, number: str) -> TrialFolder:
    _, folder = find_trial(find_search(home.explorations, search), number)
    return folder


tab.timeline("/{search}/trials/{number}/timeline.json", _trial_folder)
