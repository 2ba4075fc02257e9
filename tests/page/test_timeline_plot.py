"""The picture of a trial: what its events say as bands, marks and series, and that the figure shows it."""

import itertools
import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.anomaly import Witness
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import HarnessError
from onceproof.model.json_file import write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.page.timeline import bands, figure, marks
from onceproof.page.timeline.bands import Band
from onceproof.page.timeline.flow import Flow, flow, thin_out, time_processed
from onceproof.page.timeline.marks import Mark
from onceproof.page.timeline.picture import Picture
from tests.specimens.files import a_plan, a_reading

T0 = 1795264571000  # 2026-11-21T12:36:11Z
APP = "onceproof.run.trial"


def driver(t, event, **fields):
    return {"t": T0 + t, "source": "driver", "event": event, **fields}


def started(t, name, release="3.3.1"):
    return driver(t, "instance", name=name, action="started", release=release)


def ended(t, name, action):
    return driver(t, "instance", name=name, action=action)


def state(t, name, to):
    return {"t": T0 + t, "source": name, "event": "state", "from": "", "to": to}


def assignment(t, name, **threads):
    """`one=("0_0", "0_1")` reads: StreamThread-1 holds 0_0 active and 0_1 standby."""
    listed = [
        {"thread": thread(name, number), "state": "RUNNING", "active": a.split(), "standby": s.split()}
        for number, (a, s) in threads.items()
    ]
    return {"t": T0 + t, "source": name, "event": "assignment", "threads": listed}


def thread(name, number):
    return f"{APP}-{name}-StreamThread-{['one', 'two'].index(number) + 1}"


def progress(t, name, task="0_0", number="one", count=0):
    listed = [{"task": task, "thread": thread(name, number), "count": count}]
    return {"t": T0 + t, "source": name, "event": "progress", "processed": listed}


def short(found):
    """Rows, kinds and times from the start, as a person would read them."""
    return [(" ".join(band.row), band.kind, band.begin - T0, band.end - T0) for band in found]


# Task 0_0 is active, standby, active on instance-1; instance-2 advances it meanwhile.
JOURNEY = [
    driver(0, "phase", name="first bulk"),
    started(0, "instance-1"),
    state(100, "instance-1", "REBALANCING"),
    state(200, "instance-1", "RUNNING"),
    assignment(200, "instance-1", one=("0_0 0_1", "")),
    progress(300, "instance-1", count=10),
    driver(1000, "phase", name="rebalance"),
    started(1000, "instance-2"),
    driver(1000, "bulk", name="second", records=90, rate=None),
    driver(1000, "produced", name="second", records=0),
    assignment(2000, "instance-1", one=("0_1", "0_0")),
    assignment(2000, "instance-2", one=("0_0", "0_1")),
    driver(1500, "produced", name="second", records=40),
    driver(2500, "produced", name="second", records=90),
    progress(2600, "instance-2", count=50),
    driver(3000, "step", action="remove-thread", instance="instance-2"),
    assignment(3100, "instance-2"),
    assignment(3200, "instance-1", one=("0_0 0_1", "")),
    progress(3300, "instance-1", count=50),
    driver(3500, "drained", committed=100),
    ended(4000, "instance-1", "closed"),
    ended(4000, "instance-2", "closed"),
]


# --- bands -------------------------------------------------------------------------------------------------------


def test_an_instance_has_one_state_after_another_and_then_none():
    events = [
        started(0, "i"),
        state(10, "i", "REBALANCING"),
        state(20, "i", "RUNNING"),
        ended(30, "i", "closed"),
        driver(50, "x"),
    ]
    assert short(bands.instance_bands(events)) == [
        ("i", "CREATED", 0, 10),
        ("i", "REBALANCING", 10, 20),
        ("i", "RUNNING", 20, 30),
    ]


def test_a_killed_instance_is_dead_until_its_next_start():
    events = [
        started(0, "i"),
        state(10, "i", "RUNNING"),
        ended(30, "i", "killed"),
        started(40, "i", "3.4.1"),
        state(50, "i", "RUNNING"),
        driver(60, "x"),
    ]
    found = bands.instance_bands(events)
    assert short(found)[1:3] == [("i", "RUNNING", 10, 30), ("i", bands.KILLED, 30, 40)]
    assert [band.release for band in found] == ["3.3.1", "3.3.1", None, "3.4.1", "3.4.1"]


def test_a_frozen_instance_returns_to_its_state():
    events = [
        started(0, "i"),
        state(10, "i", "RUNNING"),
        ended(30, "i", "frozen"),
        ended(40, "i", "thawed"),
        state(50, "i", "REBALANCING"),
        driver(60, "x"),
    ]
    found = bands.instance_bands(events)
    assert short(found)[1:] == [
        ("i", "RUNNING", 10, 30),
        ("i", bands.FROZEN, 30, 40),
        ("i", "RUNNING", 40, 50),
        ("i", "REBALANCING", 50, 60),
    ]


def test_a_returning_task_has_a_band_for_each_role():
    found = [band for band in bands.task_bands(JOURNEY) if band.row[0] == "0_0"]
    assert short(found) == [
        ("0_0 instance-1 StreamThread-1", "active", 200, 2000),
        ("0_0 instance-1 StreamThread-1", "standby", 2000, 3200),
        ("0_0 instance-1 StreamThread-1", "active", 3200, 4000),
        ("0_0 instance-2 StreamThread-1", "active", 2000, 3100),
    ]
    assert [band.records for band in found] == [10, 0, 40, 50]


def test_an_idle_thread_says_nothing_but_a_missing_one_ends():
    held, silent, gone = (
        assignment(0, "i", one=("0_0", "")),
        assignment(10, "i", one=("", "")),
        assignment(10, "i", two=("0_1", "")),
    )
    again = assignment(20, "i", one=("0_0", ""))
    row = "0_0 i StreamThread-1"
    assert short(bands.task_bands([held, silent, again, driver(30, "x")])) == [(row, "active", 0, 30)]
    assert short(bands.task_bands([held, gone, again, driver(30, "x")]))[:2] == [
        (row, "active", 0, 10),
        (row, "active", 20, 30),
    ]


def test_a_task_that_its_thread_no_longer_holds_ends():
    events = [assignment(0, "i", one=("0_0 0_1", "")), assignment(10, "i", one=("0_1", "")), driver(20, "x")]
    assert short(bands.task_bands(events)) == [
        ("0_0 i StreamThread-1", "active", 0, 10),
        ("0_1 i StreamThread-1", "active", 0, 20),
    ]


@pytest.mark.parametrize(
    "end", [ended(30, "i", "killed"), ended(30, "i", "closed"), {"t": T0 + 30, "source": "i", "event": "closed"}]
)
def test_an_instances_tasks_end_with_it_and_start_again_with_it(end):
    events = [
        started(0, "i"),
        assignment(10, "i", one=("0_0", "")),
        progress(20, "i", count=5),
        assignment(20, "other", one=("0_1", "")),
        end,
        started(40, "i"),
        assignment(50, "i", one=("", "")),
        assignment(60, "i", one=("0_0", "")),
        progress(70, "i", count=7),
        driver(80, "x"),
    ]
    found = bands.task_bands(events)
    assert short(found) == [
        ("0_0 i StreamThread-1", "active", 10, 30),
        ("0_0 i StreamThread-1", "active", 60, 80),
        ("0_1 other StreamThread-1", "active", 20, 80),
    ]
    assert [band.records for band in found] == [5, 7, 0]


NAMES = st.sampled_from(["instance-1", "instance-2"])
TASKS = st.lists(st.sampled_from(["0_0", "0_1", "0_2"]), max_size=3, unique=True)
HELD = st.tuples(TASKS, TASKS).map(lambda held: (" ".join(held[0]), " ".join(held[1])))
EVENTS = st.one_of(
    st.builds(lambda n: lambda t: started(t, n), NAMES),
    st.builds(lambda n, a: lambda t: ended(t, n, a), NAMES, st.sampled_from(["killed", "closed"])),
    st.builds(lambda n, s: lambda t: state(t, n, s), NAMES, st.sampled_from(["RUNNING", "REBALANCING", "ERROR"])),
    st.builds(
        lambda n, h: lambda t: assignment(t, n, **h), NAMES, st.dictionaries(st.sampled_from(["one", "two"]), HELD)
    ),
    st.builds(lambda n, c: lambda t: progress(t, n, count=c), NAMES, st.integers(0, 99)),
    st.builds(lambda p: lambda t: driver(t, "phase", name=p), st.sampled_from("abc")),
)


@given(st.lists(st.tuples(EVENTS, st.integers(0, 3)), max_size=40))
def test_bands_of_a_row_never_overlap_and_are_ordered(steps):
    times = itertools.accumulate(pause for _, pause in steps)
    events = [event(t) for (event, _), t in zip(steps, times, strict=True)]
    for found in (bands.instance_bands(events), bands.task_bands(events), bands.phases(events)):
        for _, of_row in itertools.groupby(found, key=lambda band: band.row):
            row = list(of_row)
            assert all(band.begin < band.end for band in row)
            assert all(before.end <= after.begin for before, after in itertools.pairwise(row))


@given(st.lists(st.tuples(EVENTS, st.integers(0, 3)), max_size=40))
def test_a_still_picture_contains_all_its_parts(steps):
    times = itertools.accumulate(pause for _, pause in steps)
    picture = Picture.of([event(t) for (event, _), t in zip(steps, times, strict=True)])
    if picture is None:
        return
    for bar in (*picture.bars, *picture.frames):
        assert picture.begin <= bar.x <= bar.x + bar.width <= picture.width
        assert 0 <= bar.y < picture.height
    assert all(picture.begin <= mark.x <= picture.width and mark.y < picture.height for mark in picture.marks)
    assert picture.ticks[0].text == "0 s"


def test_with_too_many_rows_returning_or_moved_tasks_are_shown():
    def held(task, *threads):
        return [Band((task, "instance-1", thread), "active", 0, 1) for thread in threads]

    stayed = held("0_2", "a")
    tasks = [*held("0_10", "a", "b"), *held("0_9", "a", "b"), *stayed]
    assert {band.row[0] for band in bands.choose_rows(tasks, set(), most=5)} == {"0_2", "0_9", "0_10"}
    assert [band.row[0] for band in bands.choose_rows(tasks, set(), most=4)] == ["0_9", "0_9", "0_10", "0_10"]
    assert {band.row[0] for band in bands.choose_rows(tasks, {tasks[0].row}, most=4)} == {"0_10"}
    assert {band.row[0] for band in bands.choose_rows(tasks, set(), most=3)} == {"0_9"}  # a task is never split


# --- series ------------------------------------------------------------------------------------------------------


def test_lag_is_what_was_produced_less_what_was_processed():
    points = flow(JOURNEY, preloaded=10)
    assert points[0] == Flow(T0, 10, 0)
    assert Flow(T0 + 300, 10, 10) in points
    assert Flow(T0 + 2600, 100, 60) in points
    assert points[-1] == Flow(T0 + 4000, 100, 100)
    assert [point.lag for point in points if point.t == T0 + 2600] == [40]


def test_a_kill_takes_back_what_was_processed_and_not_committed():
    events = [
        started(0, "i"),
        progress(10, "i", count=30),  # 10 of them were committed
        ended(20, "i", "killed"),
        started(30, "i"),
        progress(40, "i", count=20),
        driver(50, "drained", committed=30),
    ]
    assert [(p.t - T0, p.processed) for p in flow(events, preloaded=30)[1:]] == [
        (10, 30), (20, 10), (40, 30), (50, 30),
    ]  # fmt: skip
    not_drained = flow([*events[:-1], driver(50, "x")], preloaded=30)
    assert not_drained[-1].processed == 50
    assert not_drained[-1].lag == 0


def test_a_series_is_thinned_to_the_last_point_of_each_span():
    points = [Flow(T0 + t, t, 0) for t in range(10_001)]
    kept = thin_out(points, most=100)
    assert len(kept) <= 101
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert thin_out(points[:3], most=100) == points[:3]


def test_a_record_was_processed_when_its_thread_reported_as_many():
    assert time_processed(JOURNEY, "0_0", offset=9, end=100) == (T0 + 300, T0 + 300)
    assert time_processed(JOURNEY, "0_0", offset=10, end=100) == (T0 + 2600, T0 + 2600)
    assert time_processed(JOURNEY, "0_0", offset=60, end=100) == (T0 + 3300, T0 + 3300)
    assert time_processed(JOURNEY, "0_0", offset=100, end=101) is None
    assert time_processed(JOURNEY, "0_7", offset=0, end=1) is None


def test_a_record_that_came_again_was_processed_twice():
    events = [started(0, "i"), progress(10, "i", count=30), started(30, "i"), progress(40, "i", count=20)]
    assert time_processed(events, "0_0", offset=10, end=30) == (T0 + 10, T0 + 40)
    assert time_processed(events, "0_0", offset=9, end=30) == (T0 + 10, T0 + 10)


# --- marks -------------------------------------------------------------------------------------------------------

CLIENT = "trial-instance-1-StreamThread-1-producer"
FAULTS = {
    "add-thread instance-2": driver(1, "step", action="add-thread", instance="instance-2"),
    "[3] stop instance-2": driver(1, "step", action="[3] stop", instance="instance-2"),
    "SIGKILL instance-1": ended(1, "instance-1", "killed"),
    "output: min.insync.replicas=2": driver(1, "topic", role="output", config={"min_insync_replicas": "2"}),
    "pause instance-2": driver(1, "fault", name="pause", action="applied", label="pause instance-2", text="It stands."),
    "quota 35,000 B/s": driver(1, "quota", client=CLIENT, bytes_per_second=35_000),
    "quota lifted": driver(1, "quota", client=CLIENT, bytes_per_second=None),
    "19,000 records in the open transaction": driver(
        1, "crash", during="running", processed=19_000, committed=0, flushed=2
    ),
    "killed during restoration": driver(1, "crash", during="restoration", checkpoint=True),
    "killed with 2,990 records committed": driver(1, "crash", committed=2_990, open={"input": {"0": (1_480, None)}}),
    "published: 2,406 records-changelog, 0 output": driver(
        1, "crash", published={"records-changelog": 2406, "output": 0}, committed=0
    ),
    "checkpoint in 23 of 23 samples": driver(1, "checkpoint", samples=23, present=23, offsets={}),
    "store seen: trusted": driver(1, "initialised", store="seen", how="trusted", offset=3_000),
    "ProducerFencedException": driver(9, "exception", at=T0 + 1, exception="ProducerFencedException", message="old"),
    "stuck": driver(1, "failure", anomaly="stuck", place="i", expected="a commit", observed="in vain"),
    "stood still for 3.2 s": driver(1, "stall", ms=3_210),
    "StreamsException": {
        "t": T0 + 1, "source": "instance-1", "event": "uncaught", "thread": "t", "response": "REPLACE_THREAD",
        "exception": "org.apache.kafka.streams.errors.StreamsException", "message": "so",
    },
}  # fmt: skip


@pytest.mark.parametrize("label", FAULTS)
def test_each_fault_is_a_mark_at_its_moment(label):
    [mark] = marks.marks([FAULTS[label]])
    assert (mark.label, mark.t) == (label, T0 + 1)


def test_what_is_no_fault_is_no_mark():
    closed, first = ended(1, "instance-1", "closed"), started(1, "instance-1")
    died = driver(1, "failure", anomaly="thread-died", place="i", expected="it runs", observed="it died")
    assert marks.marks([first, closed, died, driver(1, "produced", name="x", records=1), *JOURNEY[-3:]]) == []


def test_a_restart_is_a_mark_and_tells_another_release():
    events = [started(0, "i"), started(1, "i"), started(2, "i", "3.4.1"), started(3, "other", "3.4.1")]
    assert [mark.label for mark in marks.marks(events)] == ["restart i", "restart i on 3.4.1"]


def test_a_store_was_trusted_when_its_restoration_began():
    restore = {"t": T0 + 5, "source": "i", "event": "restore", "store": "seen", "partition": 0, "from": 1, "end": 2}
    [mark] = marks.marks([restore, driver(90, "initialised", store="seen", how="trusted")])
    assert mark.t == T0 + 5


def test_only_the_first_throttle_is_a_mark():
    def throttle(t, *ms):
        reported = [{"client_id": CLIENT, "produce_throttle_time_max": m, "produce_throttle_time_avg": 1.0} for m in ms]
        return {"t": T0 + t, "source": "instance-1", "event": "throttle", "producers": reported}

    [mark] = marks.marks([throttle(1), throttle(2, 526.0), throttle(3), throttle(4, 9.0)])
    assert (mark.t, mark.label) == (T0 + 2, "throttled 526 ms")


def test_equal_marks_that_follow_each_other_closely_are_one():
    reported = [Mark(0, "exception", "A", "a"), Mark(3, "exception", "A", "b"), Mark(5, "exception", "B", "c")]
    assert [m.label for m in marks.group(reported, near=3)] == ["A ×2", "B"]
    assert [m.label for m in marks.group(reported, near=2)] == ["A", "A", "B"]


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 40)), max_size=25))
def test_no_label_lies_on_another_nor_on_the_stem_of_another(spots):
    reported = [Mark(t, "out", "x" * long, "") for t, long in sorted(spots)]
    labels = []
    for mark, (level, side) in zip(reported, marks.stagger(reported, 0, 1000), strict=True):
        at, long = mark.t / 1000 * marks.WIDTH, len(mark.label) * marks.LETTER
        if side:
            labels.append((level, at, at if side == "right" else at - long, at + long if side == "right" else at))
    for (level, _, left, right), (other, _, other_left, other_right) in itertools.combinations(labels, 2):
        assert level != other or right <= other_left or other_right <= left
    for (upper, stem, _, _), (lower, _, left, right) in itertools.permutations(labels, 2):
        assert not (upper < lower and left + 8 < stem < right - 8)
    assert labels or not reported, "the first has room"


def test_marks_that_crowd_are_without_a_label_below_the_others():
    placed = marks.stagger([Mark(500, "out", "crowded", "")] * 30, 0, 1000)
    assert [side for _, side in placed[: marks.LEVELS]] == ["right"] * marks.LEVELS
    assert set(placed[marks.LEVELS :]) == {(marks.LEVELS, "")}
    assert marks.stagger([Mark(990, "out", "late", "")], 0, 1000) == [(0, "left")]


# --- the figure --------------------------------------------------------------------------------------------------

TRIAL = Trial("20261121T084500-3f2a", Cell("enumerator", "DEFAULT_CONFIG", Release(3, 3, 1), Release(3, 9, 1)), 1, 1)
DUPLICATE = Witness("duplicate-id", 0, None, (20,), ("output/0@10", "output/0@62"), "one key", "2 keys: <b>7</b>, 8")


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / TRIAL.run).trial(TRIAL)
    a_plan(TRIAL, preloaded=10).write(folder.trial_file)
    tell(folder, JOURNEY)
    return folder


def tell(folder, events):
    folder.timeline.write_text("".join(json.dumps(event) + "\n" for event in events))


def write_records(folder, rows):
    """The run's table as Spark writes it; rows of role, partition, offset, timestamp, key."""
    names = ("role", "partition", "offset", "timestamp", "key")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    columns["timestamp"] = pa.array([(T0 + t) * 1_000_000 for t in columns["timestamp"]], pa.timestamp("ns"))
    columns["partition"] = pa.array(columns["partition"], pa.int32())
    columns["trial"] = [TRIAL.key] * len(rows)
    table = folder.path.parents[1] / "tables" / "records"
    parts = ds.partitioning(pa.schema([("trial", pa.string()), ("role", pa.string())]), flavor="hive")
    ds.write_dataset(pa.table(columns), table, format="parquet", partitioning=parts)


def traces(plot):
    return {trace.name: trace for trace in plot.data if trace.name}


def test_the_figure_shows_the_return_its_cause_and_its_faults(folder):
    plot = figure(folder, [])
    assert {trace.type for trace in plot.data} == {"bar", "scatter"}
    active, standby = traces(plot)["active (with records processed)"], traces(plot)["standby"]
    assert list(active.base) == [0.2, 3.2, 2.0, 0.2]
    assert list(active.text) == ["10", "40", "50", ""]
    assert (standby.base[0], standby.x[0]) == (2.0, 1.2)
    assert "recycled: 50 records elsewhere" in [a.text for a in plot.layout.annotations]
    frames = [s for s in plot.layout.shapes if s.type == "rect" and s.yref != "paper"]
    assert [(frame.x0, frame.x1) for frame in frames] == [(2.0, 3.2)]
    assert " remove-thread instance-2" in traces(plot)["what was done, what failed"].text
    assert traces(plot)["processed"].y[-1] == 100
    assert (traces(plot)["drained: all is committed"].x, traces(plot)["drained: all is committed"].y) == (
        (3.5,), (100,),
    )  # fmt: skip
    assert "12:36:11.200 UTC" in active.hovertext[0]


def test_the_figure_shows_how_long_records_of_partitions_waited(folder):
    waited = [
        driver(at, "idle", partition=partition, offset=7, ms=ms) for at, partition, ms in ((20, 1, 45), (30, 0, 2))
    ]
    tell(folder, [*JOURNEY, *waited])
    plot = figure(folder, [])
    [shown] = [trace for trace in plot.data if trace.name == "records waited"]
    assert (list(shown.base), list(shown.x), list(shown.text)) == ([0.03, 0.02], [0.002, 0.045], ["0.0 s", "0.0 s"])
    assert ["input/0", "input/1"] in [list(axis["ticktext"] or ()) for axis in plot.select_yaxes()]


def test_a_task_that_did_not_come_back_is_not_framed(folder):
    tell(folder, [event for event in JOURNEY if event["t"] < T0 + 3200])
    plot = figure(folder, [])
    assert not [s for s in plot.layout.shapes if s.type == "rect" and s.yref != "paper"]
    assert not [a for a in plot.layout.annotations if "recycled" in a.text]


def test_the_figure_is_small_and_as_readable_in_the_dark(folder):
    many = [driver(1000 + n, "produced", name="second", records=n // 300) for n in range(27_000)]
    tell(folder, sorted([*JOURNEY, *many], key=lambda event: event["t"]))
    light, dark = figure(folder, []), figure(folder, [], dark=True)
    assert len(light.to_json()) < 300_000
    assert light.layout.font.color != dark.layout.font.color
    assert {light.layout.paper_bgcolor, dark.layout.paper_bgcolor} == {"rgba(0,0,0,0)"}


@pytest.mark.parametrize(
    ("key", "at"),
    [
        (160, 3.3),  # of input 60, the first after the return
        (155, 2.6),  # of input 55, which instance-2 processed
        (0, 3.3),  # of a store's own key: the last input of that timestamp
    ],
)
def test_an_anomaly_arose_when_its_record_was_processed(folder, key, at):
    # A record has the timestamp of the input record it was made from, which was produced long before the task returned.
    inputs = [("input", 0, n, 1000, n + 100) for n in range(100)]
    write_records(folder, [*inputs, ("output", 0, 10, 1000, 107), ("output", 0, 62, 1000, key)])
    plot = figure(folder, [DUPLICATE])
    mark = traces(plot)["duplicate-id"]
    assert mark.x == (at,)
    assert "2 keys: &lt;b&gt;7&lt;/b&gt;, 8" in mark.hovertext[0]
    assert "expected one key" in mark.hovertext[0]


@pytest.mark.parametrize(
    ("anomaly", "place", "at"),
    [
        ("aborted-by-throttle", "values-changelog/0@17", 0.01),  # it was written in vain, and tried again
        ("lost-record", "input/0@15", 0.04),  # it came again, and was then dropped
    ],
)
def test_a_repeated_record_was_first_an_aborted_attempt(folder, anomaly, place, at):
    again = [started(0, "i"), progress(10, "i", count=30), started(30, "i"), progress(40, "i", count=20)]
    tell(folder, [driver(0, "x"), *again])
    inputs = [("input", 0, n, n, n) for n in range(30)]
    write_records(folder, [*inputs, ("values-changelog-all", 0, 17, 15, 15)])
    assert traces(figure(folder, [replace(DUPLICATE, anomaly=anomaly, offsets=(place,))]))[anomaly].x == (at,)


def test_without_tables_only_anomalies_in_topics_are_left_out(folder):
    stale = replace(DUPLICATE, anomaly="stale-checkpoint", offsets=("task 0_0, .checkpoint",))
    tell(folder, [*JOURNEY, driver(4100, "checkpoint", samples=1, present=1)])
    plot = figure(folder, [DUPLICATE, stale])
    assert "duplicate-id" not in traces(plot)
    assert traces(plot)["stale-checkpoint"].x == (4.1,)


@pytest.mark.parametrize(
    ("anomaly", "place", "event", "at"),
    [
        ("aborted-by-throttle", "instance-1", driver(4500, "exception", at=T0 + 4200, exception="E", message="m"), 4.2),
        ("skipped-wipe", "task 0_0, store s", {"t": T0 + 4300, "source": "i", "event": "restore", "store": "s"}, 4.3),
        ("uncommitted-state", "s-contents/0@3", {"t": T0 + 4400, "source": "i", "event": "contents"}, 4.4),
        ("changelog-output-mismatch", "input/0@9", driver(4500, "crash", during="running"), 4.5),
        ("stale-read", "the application", {"t": T0 + 4600, "source": "i", "event": "stale-read"}, 4.6),
    ],
)
def test_an_anomaly_that_an_event_tells_of_arose_then(folder, anomaly, place, event, at):
    tell(folder, [*JOURNEY, event])
    plot = figure(folder, [replace(DUPLICATE, anomaly=anomaly, offsets=(place,))])
    assert traces(plot)[anomaly].x == (at,)


def test_of_many_witnesses_some_are_drawn_and_all_are_counted(folder):
    a_reading(anomalies={"stale-read": 4_085}).write(folder.reader_file)
    tell(folder, [*JOURNEY, {"t": T0 + 4600, "source": "i", "event": "stale-read"}])
    witness = replace(DUPLICATE, anomaly="stale-read", offsets=("the application",))
    plot = figure(folder, [witness] * 25)
    assert "4,085 stale-read" in [text for axis in plot.select_yaxes() for text in axis.ticktext or ()]
    assert "and 17 more at this moment" in traces(plot)["stale-read"].hovertext[0]


def test_a_release_is_in_the_band_if_instances_differ(folder):
    restarted = [started(5000, "instance-1", "3.4.1"), state(5100, "instance-1", "RUNNING"), driver(6000, "x")]
    tell(folder, [*JOURNEY, *restarted])
    assert traces(figure(folder, []))["RUNNING"].text == ("3.3.1", "3.4.1")
    tell(folder, JOURNEY)
    assert traces(figure(folder, []))["RUNNING"].text == ("RUNNING",)


def test_what_others_wrote_is_not_read_as_html(folder):
    nasty = "<a href='javascript:x'>"
    fault = driver(4100, "exception", at=T0 + 4100, exception=nasty, message=nasty)
    tell(folder, [*JOURNEY, driver(4050, "phase", name=nasty), fault, started(4100, nasty), driver(4200, "x")])
    assert nasty not in figure(folder, []).to_json()


# --- a timeline that is not whole --------------------------------------------------------------------------------


def test_a_last_line_that_was_cut_off_is_not_missed(folder):
    whole = figure(folder, []).to_json()
    with folder.timeline.open("a") as file:
        file.write(json.dumps(JOURNEY[0])[:30])
    assert figure(folder, []).to_json() == whole


def test_what_lies_beside_the_timeline_may_be_damaged_too(folder):
    write_records(folder, [("input", 0, 0, 0, 0)])
    [part] = (folder.path.parents[1] / "tables" / "records").rglob("*.parquet")
    part.write_bytes(b"no table")
    with pytest.raises(HarnessError, match="is damaged"):
        figure(folder, [DUPLICATE])
    write_json(folder.reader_file, {})
    with pytest.raises(HarnessError, match=r"or damaged, .*anomalies"):
        figure(folder, [])


def test_events_that_were_written_late_are_drawn_in_their_place(folder):
    whole = figure(folder, []).to_json()
    late = next(event for event in JOURNEY if event["t"] == T0 + 3200)
    tell(folder, [*(event for event in JOURNEY if event is not late), late])
    assert figure(folder, []).to_json() == whole


def damaged_in_the_middle(path):
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], lines[3][:30], *lines[4:]]))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: path.unlink(), "could not be read"),
        (lambda path: path.write_text(""), "has no events"),
        (lambda path: path.write_bytes(b"\xff\xfe\n"), "could not be read"),
        (damaged_in_the_middle, "is damaged in line 4"),
        (lambda path: path.write_text("[]\n{}\n"), "is damaged in line 1"),
        (lambda path: path.write_text(json.dumps(driver(0, "instance")) + "\n"), "is damaged"),
    ],
)
def test_a_timeline_that_is_missing_or_damaged_is_one_sentence(folder, spoil, reason):
    spoil(folder.timeline)
    with pytest.raises(HarnessError, match=reason) as caught:
        figure(folder, [])
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
