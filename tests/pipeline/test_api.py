"""The REST client against a scripted Airflow."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest

from onceproof.model.errors import HarnessError
from onceproof.pipeline.api import ANSWERS_WITHIN, ATTEMPTS, AirflowApi

URL = "http://127.0.0.1:8123"


class FakeAirflow:
    """Answers by a table; keeps what it was asked. Tokens are numbered, and can be made to expire."""

    def __init__(self) -> None:
        self.routes: dict[tuple[str, str], Callable[[httpx.Request], httpx.Response]] = {}
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[object] = []
        self.logins = 0
        self.valid = 0

    def on(self, method: str, path: str, *answers: tuple[int, object]) -> None:
        """Give these answers one after the other, the last for ever."""
        left = list(answers)

        def answer(_: httpx.Request) -> httpx.Response:
            status, body = left.pop(0) if len(left) > 1 else left[0]
            return httpx.Response(status, json=body)

        self.routes[method, f"/api/v2{path}"] = answer

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/token":
            if json.loads(request.content) != {"username": "admin", "password": "secret"}:
                return httpx.Response(401, json={"detail": "Invalid credentials"})
            self.logins += 1
            self.valid = self.logins
            return httpx.Response(201, json={"access_token": f"token-{self.logins}"})
        if request.headers.get("Authorization") != f"Bearer token-{self.valid}":
            return httpx.Response(401, json={"detail": "Token expired"})
        self.asked.append((request.method, request.url.raw_path.decode().removeprefix("/api/v2")))
        self.bodies.append(json.loads(request.content) if request.content else None)
        return self.routes[request.method, request.url.path](request)


@pytest.fixture
def fake() -> FakeAirflow:
    return FakeAirflow()


@pytest.fixture
def api(fake):
    with AirflowApi(URL, "admin", "secret", transport=httpx.MockTransport(fake)) as client:
        yield client


def test_one_login_serves_many_calls(api, fake):
    fake.on("GET", "/dags/d/dagRuns/r", (200, {"state": "running"}))
    assert [api.run_state("d", "r") for _ in range(3)] == ["running"] * 3
    assert fake.logins == 1


def test_a_login_has_the_time_limit_of_its_request(api, fake, monkeypatch):
    fake.on("GET", "/dags/d/dagRuns/r", (200, {"state": "running"}))
    limits = {}
    handle = httpx.MockTransport.handle_request

    def handled(transport, request):
        limits[request.url.path] = request.extensions["timeout"]["read"]
        return handle(transport, request)

    monkeypatch.setattr(httpx.MockTransport, "handle_request", handled)
    api.run_state("d", "r")
    assert limits == {"/auth/token": ANSWERS_WITHIN, "/api/v2/dags/d/dagRuns/r": ANSWERS_WITHIN}


def test_an_expired_token_is_renewed(api, fake):
    fake.on("GET", "/dags/d/dagRuns/r", (200, {"state": "running"}))
    api.run_state("d", "r")
    fake.valid = 99  # a token that nobody holds
    assert api.run_state("d", "r") == "running"
    assert fake.logins == 2


def test_a_wrong_password_is_one_sentence(fake):
    with (
        AirflowApi(URL, "admin", "wrong", transport=httpx.MockTransport(fake)) as api,
        pytest.raises(HarnessError, match=r"127.0.0.1:8123 does not let 'admin' in \(HTTP 401\)"),
    ):
        api.run_state("d", "r")


def test_reading_is_repeated_when_the_server_is_busy(api, fake):
    fake.on("GET", "/dags/d/dagRuns/r", (503, {}), (503, {}), (200, {"state": "queued"}))
    assert api.run_state("d", "r") == "queued"
    assert len(fake.asked) == 3


def test_triggering_is_repeated_when_the_database_is_locked(api, fake):
    fake.on("POST", "/dags/d/dagRuns", (500, {"detail": {"reason": "Database error"}}), (200, {}))
    api.trigger("d", "r", {})
    assert len(fake.asked) == 2


def test_a_run_left_by_a_failed_attempt_counts_as_triggered(api, fake):
    fake.on("POST", "/dags/d/dagRuns", (500, {"detail": "locked"}), (409, {"detail": "exists"}))
    api.trigger("d", "r", {})
    assert len(fake.asked) == 2


def test_a_run_that_existed_before_is_refused(api, fake):
    fake.on("POST", "/dags/d/dagRuns", (409, {"detail": "exists"}))
    with pytest.raises(HarnessError, match=r"refused POST .* \(HTTP 409\): exists"):
        api.trigger("d", "r", {})


def test_a_database_that_stays_locked_is_one_sentence(api, fake):
    fake.on("POST", "/dags/d/dagRuns", (503, {"detail": "locked"}))
    with pytest.raises(HarnessError, match="does not answer POST /dags/d/dagRuns: HTTP 503, locked"):
        api.trigger("d", "r", {})
    assert len(fake.asked) == ATTEMPTS


def test_a_write_without_an_answer_is_not_sent_again(api, fake):
    def lose(request):
        raise httpx.ReadTimeout("nothing came", request=request)

    fake.routes["POST", "/api/v2/dags/d/dagRuns"] = lose
    with pytest.raises(HarnessError, match="does not answer POST /dags/d/dagRuns: nothing came"):
        api.trigger("d", "r", {})
    assert len(fake.asked) == 1


def test_a_refusal_says_why(api, fake):
    fake.on("POST", "/dags/d/dagRuns", (400, {"detail": "'3.3' does not match"}))
    with pytest.raises(HarnessError, match=r"refused POST .* \(HTTP 400\): '3.3' does not match"):
        api.trigger("d", "r", {"streams": ["3.3"]})
    assert fake.bodies == [{"dag_run_id": "r", "logical_date": None, "conf": {"streams": ["3.3"]}}]


def test_nobody_there_is_one_sentence():
    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("Connection refused")

    with (
        AirflowApi(URL, "admin", "secret", transport=httpx.MockTransport(refuse)) as api,
        pytest.raises(HarnessError, match=f"Airflow at {URL} does not answer GET .*: Connection refused"),
    ):
        api.active_runs("d")


def test_all_pages_of_task_instances_are_read(api, fake):
    def page(request: httpx.Request) -> httpx.Response:
        offset = int(request.url.params["offset"])
        return httpx.Response(
            200,
            json={"task_instances": [{"n": n} for n in range(offset, min(offset + 100, 250))], "total_entries": 250},
        )

    fake.routes["GET", "/api/v2/dags/d/dagRuns/r/taskInstances"] = page
    assert [task["n"] for task in api.task_instances("d", "r")] == list(range(250))


def test_a_pool_or_connection_of_a_persons_own_stays(api, fake):
    fake.on("GET", "/pools/drive", (200, {"slots": 7}))
    fake.on("GET", "/connections/spark_default", (200, {}))
    api.add_pool("drive", 1, "")
    api.add_connection({"connection_id": "spark_default"})
    assert {method for method, _ in fake.asked} == {"GET"}


def test_a_missing_pool_is_made(api, fake):
    fake.on("GET", "/pools/drive", (404, {}))
    fake.on("POST", "/pools", (201, {}))
    api.add_pool("drive", 1, "why")
    assert fake.bodies[-1] == {"name": "drive", "slots": 1, "description": "why"}


def test_an_abandoned_run_is_ended_with_its_teardowns(api, fake):
    tasks = [
        {"task_id": "plan", "map_index": -1, "state": "success"},
        {"task_id": "drive", "map_index": 2, "state": "running"},
        {"task_id": "stop", "map_index": -1, "state": None},
    ]
    run = "/dags/d/dagRuns/r"
    fake.on("GET", f"{run}/taskInstances", (200, {"task_instances": tasks, "total_entries": 3}))
    for path in (run, f"{run}/taskInstances/drive/2", f"{run}/taskInstances/stop"):
        fake.on("PATCH", path, (200, {}))
    api.abandon_run("d", "r")
    patched = [path.split("?")[0] for method, path in fake.asked if method == "PATCH"]
    assert patched == [run, f"{run}/taskInstances/drive/2", f"{run}/taskInstances/stop", run]


def test_only_an_import_error_of_our_file_and_of_now_counts(api, fake):
    errors = [
        {"filename": "other.py", "timestamp": "2026-11-21T10:00:00Z", "stack_trace": "x\nboom"},
        {"filename": "dags/d.py", "timestamp": "2026-11-21T10:00:00Z", "stack_trace": "y\nImportError: no such\n"},
    ]
    fake.on("GET", "/importErrors", (200, {"import_errors": errors}))
    assert api.import_error("d.py", datetime(2026, 11, 21, 9, tzinfo=UTC)) == "ImportError: no such"
    assert api.import_error("d.py", datetime(2026, 11, 21, 11, tzinfo=UTC)) is None


def test_a_dag_that_is_not_known_yet_was_never_parsed(api, fake):
    fake.on("GET", "/dags/d", (404, {"detail": "not found"}))
    assert api.last_parsed("d") is None


def test_running_runs_are_read_beyond_the_first_page(fake, api):
    def page(request: httpx.Request) -> httpx.Response:
        at = int(request.url.params["offset"])
        runs = [{"dag_id": "d", "dag_run_id": str(number)} for number in range(at, min(at + 100, 250))]
        return httpx.Response(200, json={"dag_runs": runs, "total_entries": 250})

    fake.routes["GET", "/api/v2/dags/~/dagRuns"] = page
    assert api.active_runs("d") == [str(number) for number in range(250)]
