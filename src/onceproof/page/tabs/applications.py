"""The tab *Applications*: what user applications showed."""

from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.responses import Response

from onceproof.model.run_folder import TrialFolder
from onceproof.page.applications import application_release, application_trial, application_view, applications_view
from onceproof.page.tabs.answers import Home, Tab, archive, show_page

tab = Tab(prefix="/applications")


@tab.page("")
def applications(request: Request, home: Home) -> Response:
    """User applications."""
    runs, damaged = applications_view(home.runs)
    return show_page(request, "applications.html", runs=runs, damaged=damaged)


@tab.page("/{run}")
def application(request: Request, home: Home, run: str) -> Response:
    """The result of an application."""
    return show_page(request, "application.html", view=application_view(home.runs, run))


@tab.page("/{run}/releases/{cell}/evidence.zip")
async def evidence(request: Request, home: Home, run: str, cell: str) -> Response:
    """The archive of a release."""
    folder = await run_sync(application_release, home.runs, run, cell)
    return await archive(request, home, folder, cell)


@tab.page("/{run}/trials/{trial}")
def trial(request: Request, home: Home, run: str, trial: str) -> Response:
    """A trial of an application."""
    view, _ = application_trial(home.runs, run, trial)
    return show_page(request, "application_trial.html", run=run, trial=view)


def _trial_folder(home: Home, run: str, trial: str) -> TrialFolder:
    _, folder = application_trial(home.runs, run, trial)
    return folder


tab.timeline("/{run}/trials/{trial}/timeline.json", _trial_folder)
