"""Registers the results page in Airflow: in the navigation, and as a tab on each DAG run. Behind Airflow's login.

It is found by the entry point `airflow.plugins` where the package is installed.
"""

from functools import cache
from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

PREFIX = "onceproof"


@cache
def _app() -> Any:
    """The app, made when it is first needed: every task of every DAG imports this file."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.core_api.security import get_user
    from airflow.models import Variable

    from onceproof.airflow import VARIABLE, take_settings
    from onceproof.page.app import create_app
    from onceproof.settings import get_settings

    take_settings(Variable.get(VARIABLE, default_var=None, deserialize_json=True))
    return create_app(get_settings(), authorize=get_user, login=get_auth_manager().get_url_login())


async def page(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request."""
    await _app()(scope, receive, send)


def _view(destination: str, query: str, **more: Any) -> dict[str, object]:
    return {"name": "Results", "href": f"{PREFIX}/{query}", "destination": destination, **more}


class OnceproofPage(AirflowPlugin):
    """The page as Airflow sees it."""

    name = "onceproof"
    fastapi_apps: ClassVar = [{"app": page, "url_prefix": f"/{PREFIX}", "name": "Onceproof"}]
    external_views: ClassVar = [
        _view("nav", "", url_route="results", nav_top_level=True),
        _view("dag_run", "?dag={DAG_ID}&dag_run={RUN_ID}", url_route="results-of-run"),
    ]
