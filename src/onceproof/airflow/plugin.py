"""Registers the results page in Airflow: in the navigation, and as a tab on each DAG run. Behind Airflow's login.

It also lets tasks start sooner. It is found by the entry point `airflow.plugins` where the package is installed.
"""

from functools import cache
from importlib import import_module
from typing import Any, ClassVar

from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin

PREFIX = "onceproof"
OF_TASKS = ("onceproof.pipeline.steps", "onceproof.lab.trial", "onceproof.results.sequential")  # slow to import


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


def _view(name: str, destination: str, address: str, **more: Any) -> dict[str, object]:
    return {"name": name, "href": f"{PREFIX}/{address}", "destination": destination, **more}


class EarlyImports:
    """Imports the modules of tasks when a component starts; tasks are forks of it and have them already.

    So it is with LocalExecutor and with the processes that parse DAG files.
    """

    @hookimpl
    def on_starting(self, component: object) -> None:
        """Import them, unless the component is a task."""
        from airflow.sdk.execution_time.task_runner import TaskRunnerMarker

        if not isinstance(component, TaskRunnerMarker):
            for name in OF_TASKS:
                import_module(name)


class OnceproofPage(AirflowPlugin):
    """The page and the imports, as Airflow finds them."""

    name = "onceproof"
    listeners: ClassVar = [EarlyImports()]
    fastapi_apps: ClassVar = [{"app": page, "url_prefix": f"/{PREFIX}", "name": "Onceproof"}]
    external_views: ClassVar = [
        _view("Results", "nav", "", url_route="results", nav_top_level=True),
        _view("Kafka Streams atlas", "nav", "atlas/index.html", url_route="atlas"),
        _view("Results", "dag_run", "?dag={DAG_ID}&dag_run={RUN_ID}", url_route="results-of-run"),
    ]
