"""What `regression` tells to whom: to DAGs scheduled on its assets, and to those whom the connection names."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from onceproof.lab.cluster import free_ports
from onceproof.model.matrices import BROKER
from tests.dags.test_regression import RUN, cardboard, dag, run_it, verdicts

__all__ = ["cardboard", "dag", "verdicts"]
pytestmark = pytest.mark.system

RED = f"enumerator-DEFAULT_CONFIG-s3.4.1-b{BROKER}"
GREEN = f"enumerator-DEFAULT_CONFIG-s3.3.1-b{BROKER}"
SECOND = "20261122T084500-3f2a"
CONNECTION = "AIRFLOW_CONN_ONCEPROOF_NOTIFY"
NOT_SENT = "The notification by onceproof_notify was not sent"
CONSUMER = """
from airflow.sdk import Asset, dag, task

@dag(dag_id="consumer_{asset}", schedule=[Asset("{asset}", "{uri}")], is_paused_upon_creation=False)
def consumer():
    @task
    def consume():
        pass
    consume()

consumer()
"""


class Mailbox(HTTPServer):
    """A server on loopback that keeps what is posted to it, and answers as it is told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Post)
        self.posted: list[dict[str, str]] = []
        self.answer = 200


class Post(BaseHTTPRequestHandler):
    server: Mailbox

    def do_POST(self) -> None:
        self.server.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.answer)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mailbox():
    with Mailbox() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def after_a_green_run(dag, database, cardboard):
    assert run_it(dag)[0] == "success"


def notify(monkeypatch, port: int) -> None:
    config = {"path": f"json://127.0.0.1:{port}/"}
    monkeypatch.setenv(CONNECTION, json.dumps({"conn_type": "apprise", "extra": {"config": config}}))


def events(asset: str) -> dict[str, dict[str, Any]]:
    """What the asset's events say, by run."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        query = select(AssetEvent.extra).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        found = session.scalars(query.where(AssetModel.name == asset).order_by(AssetEvent.id)).all()
    return {extra["run"]: extra for extra in found}


def test_a_newly_red_cell_is_told_where_the_connection_says(dag, after_a_green_run, verdicts, mailbox, monkeypatch):
    notify(monkeypatch, mailbox.server_port)
    verdicts[RED] = "regression"
    state, tasks = run_it(dag, run=SECOND)
    assert (state, tasks["gate", -1], tasks["alert", -1]) == ("failed", "failed", "success")
    [mail] = mailbox.posted
    assert mail["title"] == "Onceproof: 1 newly red"
    [line] = mail["message"].splitlines()
    assert line.startswith(f"{RED}: regression: The judge's word; see [")
    assert line.endswith(f"Run {SECOND}; see it with `onceproof results evidence {SECOND} {RED}`.")
    assert "hunter2" not in line
    assert "/runs/" not in line.replace("[run]", "").replace("[home]", "")


def test_without_the_connection_only_events_report(dag, after_a_green_run, verdicts, mailbox, home, monkeypatch):
    monkeypatch.delenv(CONNECTION, raising=False)
    verdicts[RED] = "known"
    state, tasks = run_it(dag, run=SECOND)
    assert (state, tasks["alert", -1]) == ("success", "success")
    assert mailbox.posted == []
    reported = {
        "run": SECOND,
        "folder": str(home / "runs" / SECOND),
        "counts": {"clean": 1, "known": 1},
        "changes": {"newly red": [RED]},
    }
    assert events("onceproof_verdicts")[SECOND] == reported
    assert events("onceproof_newly_red")[SECOND] == reported | {"newly_red": [RED]}


def test_a_notification_that_fails_does_not_take_the_verdicts(dag, after_a_green_run, verdicts, monkeypatch, capfd):
    notify(monkeypatch, free_ports(1)[0])
    verdicts[RED] = "known"
    state, tasks = run_it(dag, run=SECOND)
    assert (state, tasks["alert", -1]) == ("success", "success")
    assert NOT_SENT in capfd.readouterr().out


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"config": {"path": "json://127.0.0.1:{port}/"}}, "error=500"),
        ({"config": {"path": "nowhere://word-of-pass"}}, "Unparseable URL"),
        ({"config": 7}, "ValueError"),
        ({}, "KeyError"),
    ],
)
def test_what_hinders_a_notification_is_one_sentence(dag, mailbox, monkeypatch, capsys, config, said):
    mailbox.answer = 500
    extra = json.loads(json.dumps(config).replace("{port}", str(mailbox.server_port)))
    monkeypatch.setenv(CONNECTION, json.dumps({"conn_type": "apprise", "extra": extra}))
    dag.get_task("alert").python_callable.__globals__["notify"]("title", "body")
    [_, sentence] = capsys.readouterr().out.splitlines()
    assert sentence.startswith(NOT_SENT)
    assert said in sentence
    assert "word-of-pass" not in sentence


def test_what_was_red_before_is_no_news(dag, database, cardboard, verdicts, mailbox, monkeypatch):
    notify(monkeypatch, mailbox.server_port)
    verdicts[RED] = "known"
    run_it(dag)
    verdicts[GREEN] = "error"
    _, tasks = run_it(dag, run=SECOND)
    assert tasks["alert", -1] == "skipped"
    assert mailbox.posted == []
    assert events("onceproof_verdicts")[SECOND]["changes"] == {"newly in error": [GREEN]}


def test_a_regression_of_a_new_release_is_news(dag, database, cardboard, verdicts, mailbox, monkeypatch):
    notify(monkeypatch, mailbox.server_port)
    run_it(dag, streams=["3.3.1"])
    verdicts[RED] = "regression"
    _, tasks = run_it(dag, streams=["3.3.1", "3.4.1"], run=SECOND)
    assert tasks["alert", -1] == "success"
    assert mailbox.posted[0]["message"].startswith(RED)


def test_other_dags_run_on_verdicts_and_on_a_newly_red_cell(dag, after_a_green_run, verdicts, tmp_path):
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.jobs.job import Job
    from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.sqlalchemy import prohibit_commit

    assets = {"onceproof_verdicts": "onceproof://verdicts", "onceproof_newly_red": "onceproof://newly-red"}
    folder = tmp_path / "consumers"
    folder.mkdir()
    for asset, uri in assets.items():
        (folder / f"{asset}.py").write_text(CONSUMER.format(asset=asset, uri=uri))
    bag = DagBag(folder)
    assert bag.import_errors == {}
    sync_bag_to_db(bag, "dags-folder", None)

    def consumed() -> dict[str, list[str]]:
        """Let the scheduler look; the runs whose events start each consumer."""
        with create_session() as session, prohibit_commit(session) as guard:
            SchedulerJobRunner(Job())._create_dagruns_for_dags(guard, session)
            runs = {asset: DagRun.find(dag_id=f"consumer_{asset}", session=session) for asset in assets}
            return {
                a: [e.extra["run"] for run in found for e in run.consumed_asset_events] for a, found in runs.items()
            }

    run_it(dag, run=SECOND)
    assert consumed() == {"onceproof_verdicts": [SECOND], "onceproof_newly_red": []}
    verdicts[RED] = "known"
    third = "20261123T084500-3f2a"
    run_it(dag, run=third)
    assert consumed() == {"onceproof_verdicts": [SECOND, third], "onceproof_newly_red": [third]}
    assert RUN not in events("onceproof_newly_red")
