"""A run that is under way is spared as a whole by whoever sweeps its brokers, between two trials, too."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from onceproof.lab.alive import alive, group_of, hold
from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.external_brokers import lend
from onceproof.lab.sweep import Left, find_left_on, remove_run, run_of, sweep_brokers
from onceproof.model.cell import MARK
from onceproof.model.errors import HarnessError
from onceproof.model.json_file import write_json
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline import steps
from onceproof.processes.waiting import await_condition
from tests.conftest import a_run_id
from tests.lab.test_sweep import marked_below
from tests.present import present
from tests.specimens.brokers import external_cluster

pytestmark = pytest.mark.broker


@contextmanager
def prepared(cluster: EmbeddedCluster) -> Iterator[str]:
    """A run whose trials are prepared, and of which one has closed cleanly: no group of a trial has a member."""
    run = a_run_id()
    topics = [f"onceproof.{run}.x-t{number}-input" for number in (1, 2)]
    admin = AdminClient(cluster.client())
    for future in admin.create_topics([NewTopic(name, 1) for name in topics]).values():
        future.result(30)
    positions = Consumer({**cluster.client(), "group.id": f"onceproof.{run}.x-t1"})
    positions.commit(offsets=[TopicPartition(topics[0], 0, 0)], asynchronous=False)
    positions.close()
    try:
        yield run
    finally:
        remove_run(cluster, run)


def members(cluster: EmbeddedCluster, group: str) -> int:
    admin = AdminClient(cluster.client())
    return len(admin.describe_consumer_groups([group])[group].result(30).members)


def of_run(left: Left, run: str) -> Left:
    """What was found of one run: other tests have left theirs on these brokers."""
    return Left(*(tuple(name for name in names if run_of(name, MARK) == run) for names in astuple(left)))


def test_a_run_that_holds_its_group_is_spared_as_a_whole(cluster):
    with prepared(cluster) as run, prepared(cluster) as over:
        with alive(cluster.client(), group_of(cluster, run)):
            found = find_left_on(cluster)
            assert of_run(found, run) == Left()
            of_over = of_run(found, over)
            assert set(of_over) == {
                f"group onceproof.{over}.x-t1",
                f"topic onceproof.{over}.x-t1-input",
                f"topic onceproof.{over}.x-t2-input",
            }
            assert list(sweep_brokers(cluster, of_over)) == list(of_over)
            await_condition("the topics to go", lambda: of_run(find_left_on(cluster), over) == Left(), timeout=30)
            assert of_run(find_left_on(cluster), run) == Left()
        assert set(of_run(find_left_on(cluster), run)) >= {
            f"group onceproof.{run}.x-t1",
            f"topic onceproof.{run}.x-t2-input",
        }


def test_what_has_become_alive_since_it_was_found_stays(cluster):
    with prepared(cluster) as run:
        found = find_left_on(cluster)
        assert any(of_run(found, run))
        with alive(cluster.client(), group_of(cluster, run)):
            assert list(sweep_brokers(cluster, of_run(found, run))) == []


def test_two_teams_sweep_each_its_own_while_the_other_is_at_work(cluster):
    run = a_run_id()  # an old one, of which both have a topic
    teams = [external_cluster(cluster.bootstrap_servers, team) for team in ("onceproof.a", "onceproof.a.b")]
    topics = [f"{team.prefix}.{run}.x-t1-input" for team in teams]
    admin = AdminClient(cluster.client())
    for future in admin.create_topics([NewTopic(name, 1) for name in topics]).values():
        future.result(30)
    first, second = teams
    with alive(second.client(), group_of(second, run)):
        assert not any(find_left_on(second))
        assert list(find_left_on(first)) == [f"topic {topics[0]}"] == list(sweep_brokers(first, find_left_on(first)))
    remove_run(second, run)
    await_condition("both to go", lambda: not any(any(find_left_on(team)) for team in teams), timeout=30)


def test_lent_brokers_are_held_and_nothing_is_left(cluster):
    external, run = external_cluster(cluster.bootstrap_servers), a_run_id()
    with lend(external, run):
        assert members(cluster, group_of(external, run)) == 1
    assert of_run(find_left_on(cluster), run) == Left()


def test_the_tasks_of_a_run_share_a_process_that_holds_its_group(cluster, tmp_path, monkeypatch):
    external = external_cluster(cluster.bootstrap_servers)
    run = RunFolder(tmp_path / a_run_id())
    write_json(run.run_file, {"trials": []})
    steps.start_cluster(run, "3.9.1-claimed", lambda: external.properties)
    with prepared(cluster) as made:
        assert any(of_run(find_left_on(cluster), made))  # one that nobody holds
    group = group_of(external, run.run_id)
    assert members(cluster, group) == 1
    [(process, place)] = marked_below(tmp_path)
    assert place == run.cluster_folder("3.9.1-claimed")
    assert cluster.bootstrap_servers not in " ".join(process.cmdline())
    steps.stop_clusters(run, lambda: external.properties)
    assert marked_below(tmp_path) == []
    assert group not in AdminClient(cluster.client()).list_topics(timeout=30).topics


def test_brokers_that_do_not_answer_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("onceproof.lab.alive.JOINED_WITHIN", 1.0)
    with pytest.raises(HarnessError, match="cannot say that it is alive"), alive(external_cluster().client(), "g"):
        pass


def test_a_holder_that_fails_says_why(tmp_path):
    nonsense: Any = SimpleNamespace(prefix="onceproof", client=lambda: {"no.such.setting": "1"})
    with pytest.raises(HarnessError, match=r"cannot say on the brokers that it is alive: .*no\.such\.setting"):
        hold(nonsense, a_run_id(), folder=tmp_path, owner=1)
    assert present(tmp_path / "alive.log").exists()
