"""The parts of the supervisor that need no Airflow."""

import os
import socket
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.json_file import write_json
from onceproof.pipeline.supervisor import Airflow, Supervisor, choose_port, is_healthy


@pytest.fixture
def taken():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_wanted_port_that_is_taken_is_a_sentence_with_the_remedy(taken, tmp_path):
    with pytest.raises(UsageError, match=rf"Port {taken} on 127.0.0.1 is taken .*ONCEPROOF_AIRFLOW_PORT"):
        choose_port(taken, tmp_path / "port")


def test_a_port_is_remembered(tmp_path):
    first = choose_port(None, tmp_path / "port")
    assert choose_port(None, tmp_path / "port") == first


@pytest.mark.parametrize("memory", ["", "nonsense", "99999", "-1"])
def test_a_damaged_memory_is_forgotten(memory, tmp_path):
    (tmp_path / "port").write_text(memory)
    assert 0 < choose_port(None, tmp_path / "port") <= 65535


def test_a_remembered_port_that_is_taken_is_replaced(taken, tmp_path):
    (tmp_path / "port").write_text(str(taken))
    assert choose_port(None, tmp_path / "port") != taken


def test_an_old_heartbeat_is_no_health():
    began = datetime.now(UTC)

    def scheduler(beat: datetime | None) -> dict[str, str | None]:
        return {"status": "healthy", "latest_scheduler_heartbeat": beat and beat.isoformat()}

    assert is_healthy(scheduler(began + timedelta(seconds=1)), began)
    assert not is_healthy(scheduler(began - timedelta(seconds=1)), began)
    assert not is_healthy(scheduler(None), began)
    assert not is_healthy(None, began)
    assert is_healthy({"status": "healthy"}, began)  # the database has no heart


def state_of(process: psutil.Process, started: float, settings) -> None:
    state = {"url": "http://127.0.0.1:1", "home": str(settings.home / "airflow"), "supervisor": process.pid}
    write_json(settings.home / "airflow" / "running.json", state | {"started": started, "scheduled": True})


def test_an_airflow_runs_while_its_supervisor_does(own_settings):
    assert Airflow.running(own_settings) is None
    me = psutil.Process()
    state_of(me, me.create_time(), own_settings)
    airflow = Airflow.running(own_settings)
    assert airflow is not None
    airflow.check()


def test_a_reused_process_id_is_not_taken_for_the_supervisor(own_settings):
    me = psutil.Process()
    state_of(me, me.create_time() - 1000, own_settings)
    assert Airflow.running(own_settings) is None


def test_a_state_file_of_another_version_is_nothing(own_settings):
    write_json(own_settings.home / "airflow" / "running.json", {"port": 1})
    assert Airflow.running(own_settings) is None


def test_one_supervisor_for_each_home(own_settings):
    with Supervisor(own_settings, scheduled=False) as first, Supervisor(own_settings, scheduled=False) as second:
        first.prepare()
        with pytest.raises(UsageError, match="starting or running already"):
            second.prepare()


def test_the_home_is_private(own_settings):
    with Supervisor(own_settings, scheduled=False) as supervisor:
        supervisor.prepare()
    home = own_settings.home / "airflow"
    assert home.stat().st_mode & 0o077 == 0
    assert (home / "passwords.json").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.getuid() == 0, reason="root writes everywhere")
def test_a_read_only_home_is_a_sentence(own_settings):
    own_settings.home.chmod(0o500)
    with (
        Supervisor(own_settings, scheduled=False) as supervisor,
        pytest.raises(HarnessError, match=r"cannot be written \(Permission denied\): make room or set ONCEPROOF_HOME"),
    ):
        supervisor.prepare()


def test_a_home_that_cannot_be_a_folder_is_a_sentence(own_settings):
    (own_settings.home / "airflow").touch()
    with (
        Supervisor(own_settings, scheduled=False) as supervisor,
        pytest.raises(HarnessError, match=r"cannot be written .*make room or set ONCEPROOF_HOME"),
    ):
        supervisor.prepare()
