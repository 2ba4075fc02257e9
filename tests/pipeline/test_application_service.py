"""The service that runs applications of people: what it takes, and what of its answers is believed."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from onceproof.campaigns.application import verbs
from onceproof.campaigns.requests import ApplicationRequest
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline import application_service
from onceproof.pipeline.application_service import run_application
from onceproof.processes.waiting import await_condition
from tests.conftest import HERE, ROOT

RUN = "20261121T061500-3f2a91c7"
REQUEST = ApplicationRequest(streams=("4.3.1",), broker="3.9.2")
# The service with an application of cardboard, which does as its folder is called.
SERVICE = """
import os, signal, sys, time
from pathlib import Path
from onceproof.campaigns.application import verbs
from onceproof.model.errors import HarnessError, UsageError
from onceproof.pipeline.application_service import serve
from onceproof.processes.signals import end_by_sigterm
from tests.specimens.files import an_app_answer

def app_run(run, folder, request, seed):
    if folder == "unknown":
        raise UsageError("There is no application unknown.")
    return run, folder, request, seed

def apply(wanted, report):
    run, folder, request, seed = wanted
    report(f"{folder}: \\x1b]0;title\\x07 begins")
    (run.path / "log").write_text(folder)
    (run.path / "link").symlink_to("/etc/passwd")
    with end_by_sigterm():
        try:
            while folder == "endless" or (folder == "slow" and not Path("go").exists()):
                time.sleep(0.05)
        finally:
            Path("over").touch()
    if folder == "breaks":
        raise HarnessError("A broker died.")
    if folder == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    an_app_answer(application=folder, seed=seed, broker=request.broker).write(run.app_file)

verbs.app_run, verbs.apply = app_run, apply
serve(Path("door.sock"))
"""


class Services:
    """Starts a service at a socket, one after the other."""

    def __init__(self, folder):
        self.folder, self.door, self.started = folder, folder / "door.sock", []
        folder.mkdir()

    def start(self):
        environment = os.environ | {"ONCEPROOF_HOME": str(self.folder), "PYTHONPATH": str(ROOT)}
        self.started.append(subprocess.Popen([sys.executable, "-c", SERVICE], cwd=self.folder, env=environment))
        return self.started[-1]


@pytest.fixture
def services(tmp_path):
    made = Services(tmp_path / "service")
    yield made
    for service in made.started:
        service.kill()
        service.wait()


@pytest.fixture
def run(home):
    return RunFolder(home / "runs" / RUN)


def test_an_application_is_run_and_its_plain_files_are_taken(services, run):
    service = services.start()
    lines: list[str] = []
    answer = run_application(services.door, run, "shop", REQUEST, 7, lines.append)
    assert (answer.name, answer.seed, answer.broker) == ("shop", 7, "3.9.2")
    assert {file.name for file in run.path.iterdir()} == {"app.json", "log"}
    assert lines == ["shop: \N{REPLACEMENT CHARACTER}]0;title\N{REPLACEMENT CHARACTER} begins"]
    service.wait(timeout=60)  # nothing of it is there for the next application


@pytest.mark.parametrize(
    ("folder", "kind", "text", "left"),
    [
        ("unknown", UsageError, "There is no application unknown", None),
        ("breaks", HarnessError, "A broker died", {"log"}),
        ("dies", HarnessError, "ended without an answer: `docker compose logs applications`", None),
    ],
)
def test_an_error_arrives_and_nothing_measured_is_lost(services, run, folder, kind, text, left):
    services.start()
    with pytest.raises(kind, match=text):
        run_application(services.door, run, folder, REQUEST, 7)
    assert ((run.path.is_dir() and {file.name for file in run.path.iterdir()}) or None) == left


def test_a_request_waits_until_the_service_is_there_again(services, run):
    first = services.start()
    other = RunFolder(run.path.with_name("20261121T061500-00000000"))
    threads = [
        threading.Thread(target=run_application, args=[services.door, of, folder, REQUEST, 7])
        for of, folder in ((other, "slow"), (run, "shop"))
    ]
    threads[0].start()
    await_condition(
        "the first to be under way", (services.folder / "runs" / other.path.name / "log").exists, timeout=60
    )
    threads[1].start()
    time.sleep(0.5)  # as long as it likes
    assert not run.app_file.exists()
    (services.folder / "go").touch()
    first.wait(timeout=60)
    services.start()
    for thread in threads:
        thread.join(timeout=60)
    assert run.app_file.exists()
    assert other.app_file.exists()


def test_the_service_ends_its_application_with_the_task(services, run):
    service = services.start()
    task = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from onceproof.campaigns.requests import ApplicationRequest; "
            "from onceproof.model.run_folder import RunFolder; "
            "from onceproof.pipeline.application_service import run_application; "
            "run_application(Path(sys.argv[1]), RunFolder(Path(sys.argv[2])), 'endless', ApplicationRequest(), 7)",
            services.door,
            run.path,
        ]
    )
    await_condition("it to be under way", (services.folder / "runs" / RUN / "log").exists, timeout=60)
    task.send_signal(signal.SIGKILL)
    task.wait()
    service.wait(timeout=60)
    assert (services.folder / "over").exists()  # it was ended, not killed: brokers, too, get their time


# --- a service that is in the hands of an application


@contextmanager
def impostor(door, sent):
    """A server that accepts a request, and sends this."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(door))
        listener.listen()

        def answer():
            connection, _ = listener.accept()
            with suppress(BrokenPipeError), connection, connection.makefile("rwb") as stream:
                stream.readline()
                stream.write(b'{"accepted": true}\n' + sent)

        thread = threading.Thread(target=answer)
        thread.start()
        yield
        thread.join(timeout=60)


def an_archive(*members):
    """An archive with an answer, and the heads of these members."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        answer = json.dumps({}).encode()
        first = tarfile.TarInfo("app.json")
        first.size = len(answer)
        archive.addfile(first, io.BytesIO(answer))
        for member in members:
            archive.addfile(member)
    return b'{"ended": 0, "why": ""}\n' + file.getvalue()


def a_member(name, kind=tarfile.REGTYPE, **fields):
    member = tarfile.TarInfo(name)
    member.type = kind
    for field, value in fields.items():
        setattr(member, field, value)
    return member


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (
            an_archive(a_member("secret", tarfile.SYMTYPE, linkname="/run/secrets/password")),
            "'secret', which is no plain",
        ),
        (an_archive(a_member("hard", tarfile.LNKTYPE, linkname="app.json")), "'hard', which is no plain"),
        (an_archive(a_member("disk", tarfile.BLKTYPE)), "'disk', which is no plain"),
        (an_archive(a_member("pipe", tarfile.FIFOTYPE)), "'pipe', which is no plain"),
        (an_archive(a_member("../../../outside")), "outside', which is no plain"),
        (an_archive(a_member("/onceproof-outside")), "outside', which is no plain"),
        (an_archive(a_member("app.json")), "could not be taken over: .*exists"),
        (an_archive(a_member("large", size=2**60)), "too large for the disk"),
        (an_archive()[:600], "could not be taken over|cannot be read"),
        (b'{"ended": 0, "why": ""}\nno archive', "could not be taken over"),
        (b'{"line": "' + b"x" * 10_000_000, "sent no message"),
        (b"[]\n", "sent no message"),
        (b"", "ended without an answer"),
        (b'{"ended": 4, "why": "\\u001b[2J"}\n' + an_archive().partition(b"\n")[2], "\N{REPLACEMENT CHARACTER}"),
    ],
    ids=range(14),
)
def test_an_answer_without_a_run_folder_is_an_error(tmp_path, run, sent, text):
    with impostor(tmp_path / "door", sent), pytest.raises(HarnessError, match=text):
        run_application(tmp_path / "door", run, "shop", REQUEST, 7)
    assert not [file for file in run.path.parent.rglob("*") if file.name != "app.json" and file != run.path]
    assert not (run.path.parents[2] / "outside").exists()


def test_a_service_that_is_not_there_is_an_error(tmp_path, run, monkeypatch):
    monkeypatch.setattr(application_service, "START_TIMEOUT", 0.1)
    (tmp_path / "door").touch()  # no socket
    with pytest.raises(HarnessError, match=r"Waited 0\.1 s for the service of applications at .*door"):
        run_application(tmp_path / "door", run, "shop", REQUEST, 7)
    assert not run.path.exists()


@pytest.mark.broker
def test_what_maven_brings_is_here_before_the_service_is_asked():
    wanted = verbs.resolve_releases(str(ROOT / "examples" / "wordcount"), ApplicationRequest(broker="3.9"))
    assert wanted.broker == "3.9.2"
    assert wanted.streams
    for artifact, release in [("kafka-streams", one) for one in wanted.streams] + [("kafka_2.13", "3.9.2")]:
        assert (HERE.artifacts / f"{artifact}-{release}.classpath").is_file()
