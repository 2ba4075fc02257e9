"""What tests share: real brokers and a real Spark for those that need them."""

import gc
import os
import secrets
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import hypothesis
import pytest
from xdist.remote import Producer

from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.ticker import Ticker
from onceproof.model.cell import Cell, Trial
from onceproof.model.release import Release
from onceproof.settings import get_settings
from onceproof.spark import QUICKLY_COMPILED
from tests.durations import FILE as DURATIONS
from tests.durations import Durations
from tests.durations import read as durations
from tests.lanes import Lanes, places, unit_of
from tests.net import NetRecord
from tests.skips import refused_if_skipped
from tests.tools import TOOLS, left_out, unavailable
from tests.tools import chromium as chromium_found

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from pyspark.sql import SparkSession

# Tests do not assert times, but Hypothesis would by default: an example that takes 200 ms on a busy machine fails.
hypothesis.settings.register_profile("onceproof", deadline=None)
hypothesis.settings.load_profile("onceproof")

T = TypeVar("T")
HERE = get_settings().installation  # for real brokers and programs
UNDISTURBED = 8  # attempts
QUIET, LONGEST_NOISE = 20.0, 300.0  # seconds between attempts
SLOW, GUESS = ("broker", "system"), 10.0  # markers of tests that take so many seconds, until they are measured
ROOT = Path(__file__).parents[1]
NOT_QUICK = tuple(ROOT / "tests" / name for name in ("dags", "expectations", "spark_jobs", "system"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Lanes:
    """Give each worker its lane."""
    return Lanes(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, if that is asked for, and order the others for the workers, before markers are applied.

    The containers come last, as their images are built meanwhile; they are for the night.
    """
    measured = durations()
    if config.getoption("quick"):
        config.hook.pytest_deselected(items=[item for item in items if not is_quick(item, measured)])
        items[:] = [item for item in items if is_quick(item, measured)]
    for item in items:
        if item.get_closest_marker("docker"):
            item.add_marker("night")
    asked = [item for item in items if not item.get_closest_marker("night")]
    by_unit = places({item.nodeid: GUESS * any(map(item.get_closest_marker, SLOW)) for item in asked}, measured)

    def place(item: pytest.Item) -> tuple[bool, float]:
        return item.get_closest_marker("docker") is not None, by_unit.get(unit_of(item.nodeid), 0.0)

    items.sort(key=place)


def is_quick(item: pytest.Item, measured: Mapping[str, float]) -> bool:
    """Whether a test, or each of its cases (`tests.cases`), takes less than a second."""
    cases: int = getattr(getattr(item, "function", None), "cases", 0)
    return measured.get(item.nodeid, 0.0) <= cases


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the folders whose modules import Airflow, Spark or Great Expectations, where quick tests are asked for."""
    return True if config.getoption("quick") and collection_path in NOT_QUICK else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test whose tool is missing fails, unless that is left out by name."""
    for name in TOOLS:
        if item.get_closest_marker(name) and (reason := unavailable(name)):
            (pytest.skip if name in left_out() else partial(pytest.fail, pytrace=False))(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that is skipped fails, unless that is allowed."""
    return refused_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """So does a module that is skipped as a whole."""
    return refused_if_skipped((yield))


def pytest_addoption(parser: pytest.Parser) -> None:
    """One that measures how long tests take, and one that leaves out those that took long."""
    parser.addoption("--keep-durations", action="store_true", help=f"write {DURATIONS.name}")
    parser.addoption("--quick", action="store_true", help=f"leave out the tests of {DURATIONS.name}, and folders")


def pytest_configure(config: pytest.Config) -> None:
    """The process that schedules keeps records, or the only one."""
    if hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(NetRecord())
    if config.getoption("keep_durations"):
        config.pluginmanager.register(Durations())


def pytest_collection_finish() -> None:
    """What all modules have imported stays: searching it for garbage stops a test's ticker for quite a while."""
    gc.collect()
    gc.freeze()


def undisturbed(attempt: Callable[[], T], void: Callable[[T], object] = attrgetter("void")) -> T:
    """The result of the first attempt during which the machine did not stand still.

    A trial during which it did says nothing, whatever it showed; a run repeats such trials, too. The next attempt waits
    for a quiet machine: one that is paused now and then by others would be so in each of them.
    """
    for _ in range(UNDISTURBED):
        result = attempt()
        if not void(result):
            return result
        await_quiet()
    pytest.fail(f"{void(result)} That was attempt {UNDISTURBED}: this machine has too much to do.")


def await_quiet(quiet: float = QUIET, longest: float = LONGEST_NOISE) -> None:
    """Wait until this process got its CPU time for as long as a trial takes; or for the longest time, in seconds."""
    missed: list[float] = []
    ticker, deadline = Ticker(missed.append), time.monotonic() + longest
    try:
        while time.monotonic() < deadline:
            before = len(missed)
            time.sleep(quiet)
            if len(missed) == before:
                return
    finally:
        ticker.stop()


def stood_still(reasons: Iterable[str]) -> str | None:
    """The first reason by which the machine stood still, so that a result says nothing; None if there is none."""
    return next((reason for reason in reasons if "The machine stood still" in reason), None)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """One broker of the default release, for all tests that only need topics."""
    started = EmbeddedCluster.start(HERE, Release.parse("3.9.1"), tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    from pyspark.sql import SparkSession  # a plain install has none

    os.environ["PYSPARK_PYTHON"] = sys.executable  # of the tasks in Python; by default `python3`, whichever that is
    jars = sorted((get_settings().artifacts / "spark-connector").glob("*.jar"))
    session = (
        SparkSession.builder.appName("tests")
        .master("local[2]")  # two threads find what one would hide, and no test needs more
        .config("spark.sql.shuffle.partitions", 4)  # a handful of rows in 200 partitions takes seconds
        .config("spark.ui.enabled", "false")  # no port is opened
        .config("spark.driver.memory", "3g")  # of many tests, whose plans and classes stay
        # Nobody looks at queries that are over; with 1,000 of them, which is the default, 1 GB was full.
        .config("spark.sql.ui.retainedExecutions", 1)
        .config("spark.ui.retainedJobs", 10)
        .config("spark.ui.retainedStages", 10)
        .config("spark.driver.bindAddress", "127.0.0.1")  # the default is the first network interface
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.jars", ",".join(map(str, jars)))  # for those that read from brokers
        .config("spark.driver.extraJavaOptions", QUICKLY_COMPILED)
        # To write and compile code for each query takes longer than to go over a few rows without: whole runs do it.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        # It plans each stage again, which is most of the time of a query over a few rows: whole runs do it, too.
        .config("spark.sql.adaptive.enabled", "false")
        # With it PySpark tells the JVM, for each column that a query names, the line that names it.
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
        .config("spark.log.level", "ERROR")  # a failing test shows its own lines
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    yield session
    session.stop()


def a_trial(
    streams: str,
    variant: str = "DEFAULT_CONFIG",
    seed: int = 1,
    scenario: str = "enumerator",
    restart_on: str | None = None,
    **parameters: object,
) -> Trial:
    """A trial with its own topics."""
    restart = Release.parse(restart_on) if restart_on else None
    cell = Cell(scenario, variant, Release.parse(streams), Release.parse("3.9.1"), restart)
    named = {name.replace("_", "."): value for name, value in parameters.items()}
    return Trial(a_run_id(), cell, 1, seed, named)


def a_run_id() -> str:
    """One that no other run has."""
    return f"20260101T000000-{secrets.token_hex(2)}"


@pytest.fixture
def project() -> Path:
    """The project's root."""
    return ROOT


@pytest.fixture(scope="session")
def chromium() -> Iterator["Browser"]:
    """The machine's browser; one for all tests of a worker, as Playwright has one loop."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_found(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium: "Browser") -> Iterator["Page"]:
    """A tab that asks no other host for anything, and in which nothing goes wrong unnoticed."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page, asked, wrong = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    assert [url for url in asked if not url.startswith(("http://127.0.0.1:", "data:", "blob:", "file:"))] == []
    assert wrong == []
