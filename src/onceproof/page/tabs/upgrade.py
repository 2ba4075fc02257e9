"""The tab *Upgrade*: what is known about going from one release to another."""

from fastapi import Request
from fastapi.responses import Response

from onceproof.page.tabs.answers import Home, Tab, show_page
from onceproof.page.upgrade import upgrade_view

tab = Tab()


@tab.page("/upgrade")
def upgrade(request: Request, home: Home) -> Response:
    """The knowledge about going from one release to another, for an application with the features of the query."""
    view = upgrade_view(home.database_url, request.query_params.multi_items())
    return show_page(request, "upgrade.html", 200 if view["advice"] else 404, **view)
