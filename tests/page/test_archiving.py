"""An archive is made beside the page: one at a time, without a thread of the page, and never after its end."""

import os
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO

import httpx
import psutil
import pytest
from anyio.to_thread import current_default_thread_limiter

from onceproof.model.run_folder import RunFolder
from onceproof.page.app import AT_ONCE, create_app
from onceproof.processes.waiting import await_condition
from tests.page.conftest import NEWEST, RED, served

ADDRESS = f"/runs/{NEWEST}/cells/{RED.key}/evidence.zip"
MAKER = "onceproof.results.evidence"


@pytest.fixture
def pipe(settings):
    """A log that whoever reads it waits for."""
    instances = RunFolder(settings.runs / NEWEST).trial(f"{RED.key}-t2").instances
    instances.mkdir(exist_ok=True)
    made = instances / "instance-1.log"
    os.mkfifo(made)
    return made


def makers(of):
    """The processes below another one that make archives, without their reapers."""
    found = []
    for process in psutil.Process(of).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.cmdline()[1:3] == ["-m", MAKER]:
                found.append(process)
    return found


def ask(url):
    return httpx.get(f"{url}{ADDRESS}", timeout=60)


def test_one_of_many_requests_is_served_and_others_end_at_once(settings, pipe):
    app = create_app(settings)

    @app.get("/threads")
    async def threads() -> int:
        return current_default_thread_limiter().borrowed_tokens

    with served(app) as url, ThreadPoolExecutor(30) as pool:
        first = pool.submit(ask, url)
        await_condition("the process that makes it", lambda: makers(os.getpid()), timeout=60)
        others = [answer.result(30) for answer in [pool.submit(ask, url) for _ in range(29)]]
        assert [answer.status_code for answer in others] == [503] * 29
        assert {answer.headers["retry-after"] for answer in others} == {"15"}
        assert "ask again" in others[0].json()["detail"]
        assert not first.done()
        assert httpx.get(f"{url}/threads").json() == 0
        assert httpx.get(f"{url}/runs/{NEWEST}/cells/{RED.key}").status_code == 200
        stop = threading.Event()

        def feed() -> None:
            while not stop.is_set():
                with suppress(OSError):  # while it is not open for reading
                    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
                stop.wait(0.01)

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            served_one = first.result(60)
        finally:
            stop.set()
            feeder.join()
        assert served_one.status_code == 200
        assert len(served_one.content) == int(served_one.headers["content-length"])
        assert "logs/whole/instance-1.log" in zipfile.ZipFile(BytesIO(served_one.content)).namelist()
        pipe.unlink()
        assert ask(url).status_code == 200


def test_a_killed_maker_is_one_sentence_and_the_next_is_served(settings, pipe):
    with served(create_app(settings)) as url, ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, url)
        await_condition("the process that makes it", lambda: makers(os.getpid()), timeout=60)
        makers(os.getpid())[0].kill()
        answer = first.result(30)
        assert answer.status_code == 500
        assert answer.json()["detail"].startswith(f"The evidence of {RED.key} could not be made: the process")
        pipe.unlink()
        assert ask(url).status_code == 200


def test_more_memory_than_it_may_have_is_one_sentence(settings):
    RunFolder(settings.runs / NEWEST).trial(f"{RED.key}-t2").observations_file.write_text(f"[{'[],' * 12_000_000}0]")
    with served(create_app(settings)) as url:
        answer = ask(url)
    assert answer.status_code == 500
    assert "needs more than 512 MiB of memory" in answer.json()["detail"]


def test_the_maker_ends_with_the_page(settings, pipe):
    code = "import sys; from onceproof.page.serve import serve; from onceproof.settings import get_settings; "
    code += "serve(get_settings(), 0, lambda url: print(url, flush=True))"
    env = {**os.environ, "ONCEPROOF_HOME": str(settings.home)}
    with subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True) as page:
        try:
            assert page.stdout is not None
            url = page.stdout.readline().strip().rstrip("/")
            with ThreadPoolExecutor(1) as pool:
                asked = pool.submit(ask, url)
                await_condition("the process that makes it", lambda: makers(page.pid), timeout=60)
                [maker] = makers(page.pid)
                page.kill()
                with pytest.raises(httpx.TransportError):
                    asked.result(30)
            await_condition("its end", lambda: not maker.is_running(), timeout=30)
        finally:
            page.kill()


def test_the_page_takes_a_part_of_the_threads_only(settings):
    app = create_app(settings)
    inside, most = [0], [0]
    guard, go = threading.Lock(), threading.Event()

    @app.get("/slow")
    def slow() -> None:
        with guard:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        go.wait(30)
        with guard:
            inside[0] -= 1

    with served(app) as url, ThreadPoolExecutor(30) as pool:
        asked = [pool.submit(httpx.get, f"{url}/slow", timeout=60) for _ in range(20)]
        await_condition("those that are answered", lambda: inside[0] == AT_ONCE, timeout=30)
        go.set()
        assert {answer.result(60).status_code for answer in asked} == {200}
    assert most[0] == AT_ONCE
