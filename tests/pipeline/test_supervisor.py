"""The parts of the supervisor that need no Airflow."""

import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.json_file import write_json
from onceproof.pipeline.supervisor import Airflow, Supervisor, choose_port, is_healthy
from onceproof.processes import identity
from onceproof.processes.identity import boot_id, read_start
from tests.users import bound_by_permissions


@pytest.fixture
def taken():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_in_use_is_a_sentence_with_the_remedy(taken, tmp_path):
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
        return {"status": "healthy", "latest_scheduler_heartbeat": beat.isoformat() if beat else None}

    assert is_healthy(scheduler(began + timedelta(seconds=1)), began)
    assert not is_healthy(scheduler(began - timedelta(seconds=1)), began)
    assert not is_healthy(scheduler(None), began)
    assert not is_healthy(None, began)
    assert is_healthy({"status": "healthy"}, began)  # the database has no heart


def state_of(process: psutil.Process, started: float, settings, **fields: str) -> None:
    state = {"url": "http://127.0.0.1:1", "home": str(settings.home / "airflow"), "supervisor": process.pid}
    write_json(settings.home / "airflow" / "running.json", state | {"started": started, "scheduled": True} | fields)


def test_an_airflow_runs_while_its_supervisor_does(own_settings):
    assert Airflow.running(own_settings) is None
    me = psutil.Process()
    state_of(me, read_start(me.pid), own_settings)
    airflow = Airflow.running(own_settings)
    assert airflow is not None
    airflow.check()


def test_an_airflow_runs_although_somebody_has_set_the_clock(own_settings, monkeypatch):
    me = psutil.Process()
    state_of(me, read_start(me.pid), own_settings)
    began = psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: began + 3600)
    assert Airflow.running(own_settings) is not None


def test_a_reused_process_id_is_not_taken_for_the_supervisor(own_settings):
    me = psutil.Process()
    state_of(me, read_start(me.pid) - 1000, own_settings)
    assert Airflow.running(own_settings) is None


def test_a_supervisor_from_before_the_reboot_is_gone(own_settings, tmp_path, monkeypatch):
    me = psutil.Process()
    state_of(me, read_start(me.pid), own_settings, boot=boot_id())
    assert Airflow.running(own_settings) is not None
    (tmp_path / "boot_id").write_text("another\n")
    monkeypatch.setattr(identity, "BOOT_ID", tmp_path / "boot_id")
    assert Airflow.running(own_settings) is None


def test_a_supervisors_record_holds_the_boot_of_the_machine(own_settings, cardboard):
    with Supervisor(own_settings, scheduled=False) as supervisor:
        assert supervisor.start().boot == boot_id()


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


def test_a_read_only_home_is_a_sentence(own_settings):
    own_settings.home.chmod(0o500)
    with (
        bound_by_permissions(own_settings.home),
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


class Component:
    """A component of Airflow that does what it is told."""

    def __init__(self) -> None:
        self.code: int | None = None

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.code = self.code or 0

    def wait(self, timeout: float = 0) -> int:
        return self.code or 0


@dataclass
class Cardboard:
    """An Airflow whose database knows of runs under way; what is done to it, in order."""

    active: list[tuple[str, str]] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def spawn(self, supervisor: Supervisor, name: str, _command: tuple[str, ...]) -> None:
        self.done.append(name)
        vars(supervisor)["_processes"][name] = Component()

    def __enter__(self) -> "Cardboard":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def all_active_runs(self) -> list[tuple[str, str]]:
        return list(self.active)

    def abandon_run(self, dag: str, run: str) -> None:
        self.done.append(f"abandon {run}")
        self.active.remove((dag, run))


@pytest.fixture
def cardboard(monkeypatch) -> Cardboard:
    made = Cardboard()
    monkeypatch.setattr(Supervisor, "_spawn", lambda *arguments: made.spawn(*arguments))
    monkeypatch.setattr(Supervisor, "_await_health", lambda *_: None)
    monkeypatch.setattr(Airflow, "await_dag", lambda *_: None)
    monkeypatch.setattr(Airflow, "api", lambda _: made)
    monkeypatch.setattr("onceproof.pipeline.supervisor.furnish", lambda *_: None)
    return made


def kill_scheduler(supervisor: Supervisor) -> None:
    vars(supervisor)["_processes"]["scheduler"].code = 137


@pytest.mark.parametrize("blow", [kill_scheduler, lambda _: None], ids=["a component died", "it was stopped"])
def test_an_interrupted_run_has_ended_before_the_next_scheduler(own_settings, cardboard, blow):
    with Supervisor(own_settings, scheduled=False) as supervisor:
        supervisor.start()
        cardboard.active.append(("regression", "cut-off"))
        blow(supervisor)
    cardboard.active = [("regression", "cut-off")]  # whatever was marked: that scheduler may have been at work on it
    cardboard.done.clear()
    with Supervisor(own_settings, scheduled=False) as supervisor:
        supervisor.start()
        done = cardboard.done
        assert done.index("dag-processor") < done.index("abandon cut-off") < done.index("scheduler")
        assert cardboard.active == []


def test_without_a_run_under_way_nothing_has_to_be_ended_first(own_settings, cardboard):
    for _ in range(2):
        with Supervisor(own_settings, scheduled=False) as supervisor:
            supervisor.start()
    cardboard.active = [("regression", "of tomorrow")]
    cardboard.done.clear()
    with Supervisor(own_settings, scheduled=False) as supervisor:
        supervisor.start()
        assert "abandon of tomorrow" not in cardboard.done
