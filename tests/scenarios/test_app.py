"""Your own application as a scenario: what its topics are called, on brokers of ours and of somebody else."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from onceproof.campaigns.application.verbs import app_run, default_releases
from onceproof.campaigns.requests import ApplicationRequest
from onceproof.lab.plan import plan_of
from onceproof.lab.trial import KEPT, _new_topics
from onceproof.model.decoding import decode
from onceproof.model.errors import UsageError
from onceproof.model.files import since
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.scenarios.app import SCENARIO, _count_done, _Stillness, explain_unread_stores, phases_not_seen, routes_of
from onceproof.scenarios.declared import DeclaredApplication, application_of
from onceproof.scenarios.prepared import PreparedTrial
from tests.conftest import a_trial
from tests.fakes.world import FakeCluster
from tests.present import present
from tests.specimens.files import a_plan

ORDERS = str(Path(__file__).parents[2] / "examples" / "orders")
OURS = a_trial("4.3.1", scenario="app", application=ORDERS)
ON_EXTERNAL = replace(OURS, cell=replace(OURS.cell, broker=OURS.cell.broker.claimed))


def test_a_fault_of_external_brokers_does_not_ask_for_more_nodes():
    trial = replace(ON_EXTERNAL, parameters={**ON_EXTERNAL.parameters, "fault": "broker-kill"})
    with pytest.raises(UsageError, match=r"only brokers that Onceproof starts allow: leave out --brokers\."):
        SCENARIO.validate(trial)
    with pytest.raises(UsageError, match="needs 3 brokers, and not 1: add --nodes 3"):
        SCENARIO.validate(replace(trial, cell=OURS.cell))


@pytest.mark.parametrize(
    ("trial", "prefix"), [(OURS, ""), (ON_EXTERNAL, ON_EXTERNAL.topic(""))], ids=["ours", "external"]
)
def test_all_topic_names_begin_with_the_prefix_of_the_trial(trial, prefix):
    named = {role: present(planned.declared).name for role, planned in SCENARIO.system(trial).topics.items()}
    roles = ("orders", "payments", "accepted-orders", "paid-orders", "revenue")
    assert named == {role: prefix + role for role in roles}
    assert {message.topic for message in SCENARIO.workload(trial).messages} == {prefix + "orders", prefix + "payments"}
    assert SCENARIO.config(trial)["orders.topics.prefix"] == prefix


def test_topics_have_their_own_partition_count_or_the_common_one(tmp_path):
    folder = shutil.copytree(ORDERS, tmp_path / "orders")
    file = folder / "onceproof.toml"
    text = file.read_text().replace('topic = "orders"', 'topic = "orders"\npartitions = 5')
    file.write_text(text.replace('topic = "revenue"', 'topic = "revenue"\npartitions = 1'))
    plan = a_plan(
        OURS, partitions=2, roles=SCENARIO.system(a_trial("4.3.1", scenario="app", application=str(folder))).topics
    )
    assert plan.sizes == {"orders": 5, "payments": 2, "accepted-orders": 2, "paid-orders": 2, "revenue": 1}
    assert plan.topics_of("input") == {"orders": 5, "payments": 2}
    assert plan.topics_of("sums-repartition") == {OURS.topic("sums-repartition"): 2}


def test_topics_have_their_configuration_and_keep_all_records(tmp_path):
    folder = shutil.copytree(ORDERS, tmp_path / "orders")
    file = folder / "onceproof.toml"
    config = 'config = { "cleanup.policy" = "compact", "max.message.bytes" = 2_000_000 }'
    file.write_text(file.read_text().replace('topic = "orders"', f'topic = "orders"\n{config}'))
    trial = a_trial("4.3.1", scenario="app", application=str(folder))
    plan = plan_of(PreparedTrial(trial), FakeCluster())
    created = {topic.topic: topic.config for topic in _new_topics(plan, FakeCluster())}
    assert created["orders"] == {**KEPT, "cleanup.policy": "compact", "max.message.bytes": "2000000"}
    assert created["payments"] == KEPT
    plan.write(tmp_path / "trial.json")
    assert type(plan).read(tmp_path / "trial.json") == plan


def test_an_output_is_still_if_it_stopped_growing_long_enough():
    times, ends = iter([0.0, 2.9, 3.1, 6.0, 6.2]), iter([5, 5, 6, 6, 6])
    lab = SimpleNamespace(now=lambda: next(times), end=lambda _: next(ends))
    still = _Stillness(lab, ["sent"], 3.0)
    assert [still() for _ in range(5)] == [False, False, False, False, True]


def test_of_stores_that_are_not_compared_it_is_said_why():
    fields = {"t": 0, "source": "driver", "instance": "instance-1", "type": "active", "store": "seen", "partition": 0}
    unread = {**fields, "event": "unread-store", "unread": "it has no changelog"}
    assert explain_unread_stores([{**fields, "event": "store"}, unread]) == {"store seen": "it has no changelog"}


PHASES = """
[[phase]]
start = 2
heap = "64m"

[[phase]]
start = 3
class = "orders.Later"
properties = { "commit.interval.ms" = 5, "orders.topics.prefix" = "{prefix}" }
"""


def test_a_phase_is_planned_with_what_differs_from_its_start_on(tmp_path):
    folder = shutil.copytree(ORDERS, tmp_path / "orders")
    file = folder / "onceproof.toml"
    file.write_text(file.read_text() + PHASES)
    trial = replace(ON_EXTERNAL, parameters={"application": str(folder)})
    plan = plan_of(PreparedTrial(replace(trial, cell=OURS.cell)), FakeCluster())
    plan.write(tmp_path / "trial.json")
    assert type(plan).read(tmp_path / "trial.json") == plan
    heap, program = plan.later
    assert (heap.start, heap.app) == (2, {"class": "orders.Orders#topology"})
    assert heap.streams_config == {"onceproof.heap": "64m", "onceproof.phase": "2"}
    assert (program.start, program.app) == (3, {"class": "orders.Later"})
    assert SCENARIO.later(trial)[1].streams_config["orders.topics.prefix"] == trial.topic("")
    first, _, last = since(plan.streams_config, plan.later)
    assert (first["commit.interval.ms"], last["commit.interval.ms"]) == ("2000", "5")
    assert last.items() >= {"onceproof.heap": "64m", "processing.guarantee": "exactly_once_v2"}.items()


def started(name, times):
    return [{"t": 0, "source": "driver", "event": "instance", "name": name, "action": "started"}] * times


def test_a_phase_without_a_started_instance_is_not_exercised(tmp_path):
    (tmp_path / "app.jar").touch()
    text = (Path(ORDERS) / "onceproof.toml").read_text().replace('sources = ["src"]', 'jars = ["app.jar"]')
    (tmp_path / "onceproof.toml").write_text(text + PHASES)
    declares = DeclaredApplication.read(tmp_path).declares
    seen = [*started("instance-1", 2), *started("instance-2", 2)]
    assert phases_not_seen(declares, [*seen, *started("instance-2", 1)]) is None
    reason = phases_not_seen(declares, seen)
    assert reason == "The phase of start 3 never began: no instance was started more than 2 times."


BOX = """
command = ["run.sh"]
[properties]
"processing.guarantee" = "at_least_once"
[[input]]
topic = "in"
generate = { records = 3, value = "v" }
[[output]]
topic = "out"
promises = ["differential", "replay"]
"""


@pytest.fixture
def black_box(tmp_path):
    """A trial of an application as it is deployed, with these parameters."""
    (tmp_path / "onceproof.toml").write_text(BOX)
    trial = a_trial("3.9.1", scenario="app", application=str(tmp_path))
    trial = replace(trial, cell=replace(trial.cell, streams=trial.cell.streams.claimed))
    return lambda **parameters: replace(trial, parameters={**trial.parameters, **parameters})


def test_a_black_box_keeps_its_settings_and_skips_class_checks(black_box):
    trial = black_box(fault="bounce")
    plan = plan_of(PreparedTrial(trial), FakeCluster())
    assert plan.streams_config == {"processing.guarantee": "at_least_once"}
    assert plan.app["command"] == ["run.sh"]
    assert (
        plan.not_looked_at["stores"]
        == "a command's stores are only read on the class path of its release, which is its own"
    )
    assert "topology" in plan.not_looked_at["replay"]
    assert present(plan.roles["out"].declared).promises == ("differential",)
    assert "-s3.9.1-claimed-" in trial.key
    assert decode(type(trial), trial.to_dict()) == trial
    assert type(trial.cell).parse(trial.cell.key) == trial.cell
    assert "--streams 3.9.1 --fault bounce" in trial.command


@pytest.mark.parametrize("fault", ["thread-removed", "pause", "disk-full", "rolling-bounce", "partition"])
def test_a_black_box_refuses_a_fault_that_shows_only_inside(black_box, fault):
    with pytest.raises(
        UsageError, match=rf"the fault {fault} takes effect is seen in .* take .*instance-kill, bounce\."
    ):
        SCENARIO.validate(black_box(fault=fault))
    SCENARIO.validate(black_box(fault="instance-kill"))


QUERY = '[[query]]\nstore = "seen"\n'


@pytest.fixture
def asked(tmp_path):
    """The application `orders`, of which clients ask a store."""
    folder = shutil.copytree(ORDERS, tmp_path / "orders")
    file = folder / "onceproof.toml"
    file.write_text(file.read_text() + QUERY)
    return a_trial("4.3.1", scenario="app", application=str(folder))


def test_the_answers_of_a_store_are_read_with_its_changelog(asked):
    plan = plan_of(PreparedTrial(asked), FakeCluster())
    seen = {role: planned for role, planned in plan.roles.items() if "seen" in role}
    named = {role: (present(planned.declared).name, planned.committed) for role, planned in seen.items()}
    assert named == {
        "answers-seen": (asked.topic("answers-seen"), True),
        "seen-changelog": (asked.topic("seen-changelog"), True),
        "seen-changelog-all": (asked.topic("seen-changelog"), False),
    }
    assert plan.app["queries"] == [{"store": "seen", "answers.topic": asked.topic("answers-seen"), "partitions": 2}]
    assert plan.streams_config["application.server"] == "{instance}:1"
    created = [topic.topic for topic in _new_topics(plan, FakeCluster())]
    assert asked.topic("answers-seen") in created
    assert asked.topic("seen-changelog") not in created  # Kafka Streams creates it


def test_clients_exclude_faults_that_an_instance_does_not_notice(asked):
    SCENARIO.validate(replace(asked, parameters={**asked.parameters, "fault": "instance-kill"}))
    frozen = replace(asked, parameters={**asked.parameters, "fault": "pause"})
    with pytest.raises(
        UsageError, match=r"under the fault pause an instance may not notice .* or take one of instance"
    ):
        SCENARIO.validate(frozen)


def routes(name, rows, store="seen"):
    fields = [dict(zip(("partition", "active", "answers"), row, strict=True)) for row in rows]
    return {"t": 0, "source": name, "event": "routes", "store": store, "routes": fields}


def test_clients_are_sent_to_the_instance_that_answers():
    events = [
        routes("instance-1", [(0, "instance-2", False)]),
        routes("instance-1", [(0, "instance-1", True), (1, "instance-2", False)]),
        routes("instance-2", [(0, "instance-1", False), (1, "instance-2", False)]),
        routes("instance-2", [(1, "instance-2", True)], store="other"),
        routes("instance-3", [(1, "instance-2", True)]),  # has ended
    ]
    owners, known = routes_of(events, ["instance-1", "instance-2"], "seen")
    assert owners == {"instance-1": [0], "instance-2": []}
    routed = {"event": "routed", "store": "seen", "owners": owners, "routes": known}
    compared = [one for one in SCENARIO.observe(OURS, [routed]) if one.promise == "routing"]
    assert [(one.place, one.partition, one.anomaly, one.expected, one.observed) for one in compared] == [
        ("instance-1, store seen", 0, None, "instance-1", "instance-1"),
        ("instance-2, store seen", 0, None, "instance-1", "instance-1"),
        ("instance-1, store seen", 1, "wrong-route", "nobody", "instance-2"),
        ("instance-2, store seen", 1, "wrong-route", "nobody", "instance-2"),
    ]


def test_a_black_box_has_no_brokers_of_somebody_else(black_box):
    trial = black_box()
    on_external = replace(trial, cell=replace(trial.cell, broker=trial.cell.broker.claimed))
    with pytest.raises(UsageError, match=r"a command is not handed credentials.*leave out --brokers\."):
        SCENARIO.validate(on_external)


@pytest.mark.parametrize(
    ("streams", "options", "sentence"),
    [
        (["3.9.1", "4.3.1"], {}, "is a command, which brings its own release, but 2 are named: name the one that it"),
        (
            ["3.9.1"],
            {"plant": "batch-lost"},
            "batch-lost can only be planted into a class path that is known here",
        ),
        (["3.9.1"], {"controls": True}, "controls can only be planted into a class path that is known here"),
    ],
)
def test_what_needs_the_class_path_of_a_black_box_is_refused(black_box, tmp_path, streams, options, sentence):
    request = ApplicationRequest(streams=streams, **{"controls": False} | options)
    with pytest.raises(UsageError, match=sentence):
        app_run(RunFolder(tmp_path), str(tmp_path), request, seed=1)


@pytest.mark.parametrize(
    ("release", "command", "run"),
    [
        ("", False, ["4.4.0"]),
        ("3.9.1", False, ["3.9.1", "4.4.0"]),
        ("4.4.0", False, ["4.4.0"]),
        ("3.9.1", True, ["3.9.1"]),
    ],
)
def test_the_default_releases_are_its_own_and_the_newest(tmp_path, release, command, run):
    reported = BOX if command else BOX.replace('command = ["run.sh"]', 'class = "a.B"\njars = ["a.jar"]')
    (tmp_path / "a.jar").touch()
    (tmp_path / "onceproof.toml").write_text(f'release = "{release}"\n{reported}' if release else reported)
    found = default_releases(DeclaredApplication.read(tmp_path), Release.parse("4.4.0"))
    assert [str(one) for one in found] == run


def test_of_a_command_the_release_that_it_brings_must_be_known(tmp_path):
    (tmp_path / "onceproof.toml").write_text(BOX)
    with pytest.raises(UsageError, match=r"name the release that it brings, by --streams or in onceproof\.toml"):
        default_releases(DeclaredApplication.read(tmp_path), Release.parse("4.4.0"))


@pytest.mark.parametrize(("seen", "committed", "done"), [(5, 3, 5), (5, 8, 8), (0, 0, 0)])
def test_a_skipped_record_is_finished_once_committed(seen, committed, done):
    running = {"instance-1": SimpleNamespace(reports=True, processed=seen)}
    assert (
        _count_done(SimpleNamespace(instances=SimpleNamespace(running=running), count_committed=lambda: committed))
        == done
    )


def test_a_second_fault_has_its_own_instance_and_configuration(tmp_path):
    folder = shutil.copytree(ORDERS, tmp_path / "orders")
    file = folder / "onceproof.toml"
    trial = a_trial("4.3.1", scenario="app", application=str(folder), fault="bounce", beside="pause")
    with pytest.raises(UsageError, match=r"pause hits another instance than the first fault does; .* instances = 1"):
        SCENARIO.validate(trial)
    file.write_text(file.read_text().replace("instances = 1", "instances = 3"))
    application_of.cache_clear()
    SCENARIO.validate(trial)
    without = replace(trial, parameters={**trial.parameters, "fault": "none", "fault.config": "bounce"})
    assert SCENARIO.config(without)["producer.transaction.timeout.ms"] == "4000"
    with pytest.raises(UsageError, match=r"the fault topology-pause needs Kafka Streams 3\.3\.0 or later"):
        SCENARIO.validate(
            a_trial("3.2.3", scenario="app", application=str(folder), fault="bounce", beside="topology-pause")
        )


SETTERS = """
[[phase]]
start = 2
properties = { "rocksdb.config.setter" = "shop.Bounded" }
"""


@pytest.mark.parametrize(("fault", "is_ours"), [("instance-kill", True), ("pause", False)])
def test_a_rocksdb_setter_is_asked_where_a_fault_brings_ours(tmp_path, fault, is_ours):
    folder = shutil.copytree(ORDERS, tmp_path / "orders")
    file = folder / "onceproof.toml"
    file.write_text(
        file.read_text().replace("[properties]", '[properties]\n"rocksdb.config.setter" = "shop.Own"') + SETTERS
    )
    trial = a_trial("4.3.1", scenario="app", application=str(folder), fault=fault)
    plan = plan_of(PreparedTrial(trial), FakeCluster())
    first, second = since(plan.streams_config, plan.later)
    theirs = ["shop.Own", "shop.Bounded"]
    assert [one["onceproof.rocksdb.config.setter"] for one in (first, second)] == theirs
    found = [one["rocksdb.config.setter"] for one in (first, second)]
    assert found == (["onceproof.streams.RocksDbMemory"] * 2 if is_ours else theirs)


def test_a_second_fault_without_a_first_one_is_refused(tmp_path):
    request = ApplicationRequest(streams=("4.3.1",), settings=("fault=none", "beside=pause"))
    with pytest.raises(UsageError, match=r"beside=pause is a second fault, and there is no first one: add --fault\."):
        app_run(RunFolder(tmp_path), ORDERS, request, 1)
