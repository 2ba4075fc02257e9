"""What services of the deployment do before they become Airflow's components, and what they call healthy."""

import json
import os
import socket
import stat
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from onceproof.model.errors import HarnessError, UsageError
from onceproof.pipeline import container
from onceproof.pipeline.health import trouble
from onceproof.settings import Settings
from tests.present import present

HEALTH = {
    "metadatabase": {"status": "healthy"},
    "dag_processor": {"status": "unhealthy"},
    "triggerer": {"status": None},
}


def settings_from(secrets: Path) -> Settings:
    """The settings of a container with these secrets."""
    return Settings(_secrets_dir=secrets)  # type: ignore[call-arg] # an argument for all settings, and none of ours


class Started(Exception):  # noqa: N818 - what would have replaced the process
    pass


@pytest.fixture
def started(home, tmp_path, monkeypatch):
    """The test's own secrets; a component that would be started is returned instead."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "password").write_text("open sesame")
    (folder / "onceproof_database_url").write_text("sqlite:////elsewhere/results.db")
    monkeypatch.setattr(container, "SECRETS", folder)
    monkeypatch.setattr(container, "get_settings", lambda: settings_from(folder))
    monkeypatch.setattr(os, "execvpe", tell)
    return folder


def tell(file, argv, environment):
    raise Started(argv, environment)


def component(service):
    with pytest.raises(Started) as started:
        container.main(service)
    return started.value.args


def test_a_component_has_the_environment_of_make_up(started, home):
    argv, environment = component("dag-processor")
    assert argv == [sys.executable, "-m", "airflow", "dag-processor"]
    assert environment["AIRFLOW_HOME"] == str(home / "airflow")
    assert environment["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert environment["ONCEPROOF_OWNER_PID"] == str(os.getpid())  # the component will have this id


def test_a_worker_takes_trials_only_and_one_at_a_time(started):
    argv, _ = component("worker")
    assert argv[2:5] == ["airflow", "celery", "worker"]
    assert argv[argv.index("--queues") + 1] == "lab"
    assert argv[argv.index("--concurrency") + 1] == "1"


@pytest.mark.parametrize(("service", "main"), [("spark-master", "master.Master"), ("spark-worker", "worker.Worker")])
def test_sparks_cluster_is_known_by_the_names_of_its_containers(started, service, main):
    argv, environment = component(service)
    assert argv[:2] == [str(Path(sys.executable).with_name("spark-class")), f"org.apache.spark.deploy.{main}"]
    assert environment["SPARK_LOCAL_HOSTNAME"] == socket.gethostname()
    assert "SPARK_LOCAL_IP" not in environment


def test_the_database_is_known_from_its_secret_and_not_passed_on(started):
    assert settings_from(started).database_url == "sqlite:////elsewhere/results.db"
    assert "ONCEPROOF_DATABASE_URL" not in component("dag-processor")[1]


def test_the_password_is_private_and_where_airflow_may_write(started):
    _, environment = component("api-server")
    file = Path(environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    assert json.loads(file.read_text()) == {"admin": "open sesame"}
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_what_is_missing_is_told(started):
    (started / "password").unlink()
    with pytest.raises(UsageError, match=r"password cannot be read .* run `make secrets`"):
        container.main("api-server")
    with pytest.raises(UsageError, match="ONCEPROOF_APPLICATION_SERVICE is not set: name the socket"):
        container.main("applications")
    with pytest.raises(
        UsageError, match=r"no service 'work': name one of init, applications, scheduler, .*, spark-worker\."
    ):
        container.main("work")


def test_init_says_what_failed(started, tmp_path, monkeypatch):
    monkeypatch.setenv("ONCEPROOF_DATABASE_URL", f"sqlite:///{tmp_path}/results.db")
    monkeypatch.setattr(container, "_airflow", lambda *command: ["false", *command])
    with pytest.raises(HarnessError, match=r"`db migrate` failed \(exit code 1\)"):
        container.main("init")
    assert (tmp_path / "results.db").exists()


@pytest.fixture
def server():
    class Health(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/health" else 503)
            self.end_headers()
            self.wfile.write(json.dumps(HEALTH).encode())

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Health) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def test_what_is_healthy(server):
    assert trouble(f"{server}/health") is None
    assert trouble(f"{server}/health", "metadatabase") is None


def test_of_what_is_no_web_server_a_connection_is_enough(server):
    assert trouble(server.replace("http", "tcp")) is None
    assert "Connection refused" in present(trouble("tcp://127.0.0.1:9"))


@pytest.mark.parametrize(
    ("path", "part", "expected"),
    [
        ("/health", "dag_processor", "calls dag_processor unhealthy"),
        ("/health", "triggerer", "calls triggerer None"),
        ("/health", "worker", "KeyError"),
        ("/broken", None, "HTTP Error 503"),
    ],
)
def test_what_is_not(server, path, part, expected):
    assert expected in present(trouble(server + path, part))


def test_a_server_that_is_gone_is_not_healthy():
    assert "Connection refused" in present(trouble("http://127.0.0.1:9/health"))
