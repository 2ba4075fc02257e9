"""A small client of Airflow's REST API: only what `onceproof` asks of it."""

from collections.abc import Generator
from datetime import datetime
from typing import Any, Self

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from onceproof.model.errors import HarnessError

FINISHED = frozenset({"success", "failed"})
ENDED = FINISHED | {"skipped", "upstream_failed", "removed"}
ACTIVE = ("queued", "running")
PAGE = 100  # entries, the most that Airflow gives at once
ATTEMPTS = 5  # of a request that the server could not carry out
ANSWERS_WITHIN = 30.0  # seconds, of a read


class _Busy(Exception):  # noqa: N818 - an error to the retrying loop alone
    """The server could not answer now."""


class _Login(httpx.Auth):
    """Logs in when needed: before the first request and when the token has expired."""

    requires_response_body = True

    def __init__(self, username: str, password: str) -> None:
        self._credentials = {"username": username, "password": password}
        self._token = ""

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
            response = yield request
            if response.status_code != httpx.codes.UNAUTHORIZED:
                return
        login = request.url.copy_with(path="/auth/token", query=None)
        # The client gives its timeout to its own requests only.
        answer = yield httpx.Request("POST", login, json=self._credentials, extensions=request.extensions)
        if answer.status_code != httpx.codes.CREATED:
            raise HarnessError(
                f"Airflow at {request.url.host}:{request.url.port} does not let {self._credentials['username']!r} in "
                f"(HTTP {answer.status_code}): is it the Airflow of this ONCEPROOF_HOME?"
            )
        self._token = answer.json()["access_token"]
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


class AirflowApi:
    """Airflow's REST API at a URL, for one user.

    Every method raises HarnessError, in one sentence, when the API does not answer or refuses.
    """

    def __init__(self, url: str, username: str, password: str, *, transport: httpx.BaseTransport | None = None) -> None:
        self._url = url
        self._http = httpx.Client(base_url=f"{url}/api/v2", auth=_Login(username, password), transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def trigger(self, dag: str, run: str, conf: dict[str, Any]) -> None:
        """Start a DAG run under this id. The id makes it safe to ask again: no second run can have it."""
        self._call("POST", f"/dags/{dag}/dagRuns", {"dag_run_id": run, "logical_date": None, "conf": conf})

    def run_state(self, dag: str, run: str) -> str:
        """State of a DAG run: queued, running, success or failed."""
        return str(self._call("GET", f"/dags/{dag}/dagRuns/{run}")["state"])

    def active_runs(self, dag: str) -> list[str]:
        """Ids of the DAG's runs that are queued or running."""
        return [run for of, run in self.all_active_runs() if of == dag]

    def all_active_runs(self) -> list[tuple[str, str]]:
        """The runs that are queued or running: DAG and id."""
        query = "&".join(f"state={state}" for state in ACTIVE)
        runs = self._all(f"/dags/~/dagRuns?{query}&order_by=id", "dag_runs")
        return [(str(run["dag_id"]), str(run["dag_run_id"])) for run in runs]

    def fail_run(self, dag: str, run: str) -> None:
        """Mark a DAG run failed: its tasks are ended, its teardowns still run."""
        self._call("PATCH", f"/dags/{dag}/dagRuns/{run}", {"state": "failed"})

    def abandon_run(self, dag: str, run: str) -> None:
        """Mark a DAG run failed, teardowns and all: what they would tear down is gone."""
        self.fail_run(dag, run)
        for task in self.task_instances(dag, run):
            if task["state"] not in ENDED:
                path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task['task_id']}"
                if task["map_index"] >= 0:
                    path += f"/{task['map_index']}"
                self._call("PATCH", f"{path}?update_mask=new_state", {"new_state": "failed"})
        self.fail_run(dag, run)

    def task_instances(self, dag: str, run: str) -> list[dict[str, Any]]:
        """All task instances of a run, with each mapped one separately."""
        return self._all(f"/dags/{dag}/dagRuns/{run}/taskInstances", "task_instances")

    def _all(self, path: str, name: str) -> list[dict[str, Any]]:
        """The entries of all pages of an answer."""
        found: list[dict[str, Any]] = []
        while True:
            page = self._call("GET", f"{path}{'&' if '?' in path else '?'}limit={PAGE}&offset={len(found)}")
            found += page[name]
            if not page[name] or len(found) >= page["total_entries"]:
                return found

    def last_parsed(self, dag: str) -> str | None:
        """When the DAG's file was last parsed (ISO 8601); None as long as Airflow does not know the DAG."""
        found = self._call("GET", f"/dags/{dag}", absent_is_fine=True)
        return None if found is None else found["last_parsed_time"]

    def import_error(self, file: str, since: datetime) -> str | None:
        """The last line of the error of importing a DAG file, if that was tried after `since`."""
        for error in self._call("GET", "/importErrors")["import_errors"]:
            if str(error["filename"]).endswith(file) and datetime.fromisoformat(error["timestamp"]) >= since:
                return str(error["stack_trace"]).strip().splitlines()[-1]
        return None

    def unpause(self, dag: str) -> None:
        """Let the DAG's runs start."""
        self._call("PATCH", f"/dags/{dag}?update_mask=is_paused", {"is_paused": False})

    def add_pool(self, name: str, slots: int, description: str) -> None:
        """Create a pool; one that exists stays as it is."""
        if self._call("GET", f"/pools/{name}", absent_is_fine=True) is None:
            self._call("POST", "/pools", {"name": name, "slots": slots, "description": description})

    def set_pool_slots(self, name: str, slots: int) -> None:
        """Change the size of a pool."""
        # The mask says what is changed, but the rest must still make a complete pool.
        pool = {"pool": name, "slots": slots, "include_deferred": False}
        self._call("PATCH", f"/pools/{name}?update_mask=slots", pool)

    def add_connection(self, connection: dict[str, Any]) -> None:
        """Create a connection; one that exists stays as it is."""
        if self._call("GET", f"/connections/{connection['connection_id']}", absent_is_fine=True) is None:
            self._call("POST", "/connections", connection)

    def set_connection(self, connection: dict[str, Any], field: str) -> None:
        """Change a field of a connection to what it is in this one."""
        self._call("PATCH", f"/connections/{connection['connection_id']}?update_mask={field}", connection)

    def connections(self, prefix: str) -> list[str]:
        """Ids of the connections that begin so."""
        found = self._call("GET", f"/connections?connection_id_pattern={prefix}%25&limit=100")["connections"]
        return [connection["connection_id"] for connection in found if connection["connection_id"].startswith(prefix)]

    def delete_connection(self, name: str) -> None:
        """Delete a connection, if there is one."""
        self._call("DELETE", f"/connections/{name}", absent_is_fine=True)

    def _call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        absent_is_fine: bool = False,
    ) -> Any:
        # An answer of 5xx is Airflow's "database is locked": it rolled back, so any request may be sent again. Without
        # an answer a write may still be under way, so only reads are repeated, and writes are waited for as long.
        again = (_Busy, httpx.TransportError) if method == "GET" else _Busy
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential(multiplier=0.1, max=2),
            retry=retry_if_exception_type(again),
            reraise=True,
        )
        try:
            response = retrying(self._send, method, path, body)
        except (httpx.HTTPError, _Busy) as error:
            raise HarnessError(f"Airflow at {self._url} does not answer {method} {path}: {error}.") from error
        repeated = retrying.statistics["attempt_number"] > 1
        if repeated and method == "POST" and response.status_code == httpx.codes.CONFLICT:
            return None  # it exists under the name or id that we gave it: an attempt before was carried out after all
        if absent_is_fine and response.status_code == httpx.codes.NOT_FOUND:
            return None
        if response.is_error:
            raise HarnessError(
                f"Airflow at {self._url} refused {method} {path} (HTTP {response.status_code}): {_detail(response)}"
            )
        return response.json() if response.content else None

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        timeout = ANSWERS_WITHIN if method == "GET" else ANSWERS_WITHIN * ATTEMPTS
        response = self._http.request(method, path, json=body, timeout=timeout)
        if response.is_server_error:
            raise _Busy(f"HTTP {response.status_code}, {_detail(response)}")
        return response


def _detail(response: httpx.Response) -> str:
    try:
        detail = response.json()["detail"]
    except (ValueError, KeyError, TypeError):
        detail = response.text
    return str(detail)[:300]
