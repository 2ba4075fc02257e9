"""What a look finds, with a cardboard registry and a real results database."""

import json
import shutil
from typing import Any

import pytest
from sqlalchemy.orm import Session
from typer.testing import CliRunner

from onceproof import cli
from onceproof.model.errors import HarnessError
from onceproof.model.release import Release
from onceproof.pipeline import watch
from onceproof.results.database import CellRow, RunRow, database
from onceproof.results.seen import read_seen
from onceproof.settings import get_settings
from tests.pipeline.registry import Registry, registry
from tests.present import present

__all__ = ["registry"]
ROCKSDB = "org.rocksdb:rocksdbjni:jar:1.2.3"


def look(**choices: Any) -> list[str]:
    """The releases that get a run; as in the DAG, what was triggered is recorded."""
    found = watch.look(**{"matrix": "seed", "pre_releases": False, "catch_up": False, **choices})
    watch.record(found)
    return [one["conf"]["streams"][0] for one in found]


def seen() -> dict[str, tuple[str | None, str | None]]:
    return {str(r): (s.triggered, s.incomplete) for r, s in read_seen(get_settings().database_url).items()}


def judge(streams: str, verdict: str) -> None:
    """Store a run that judged one cell."""
    from datetime import datetime

    cell = CellRow(
        scenario="quota", variant="DEFAULT_CONFIG", streams=streams, broker="3.9.1", verdict=verdict, sentence="",
        red=0, counted=1, issues=[],
    )  # fmt: skip
    run = RunRow(id=streams, matrix="seed", created="", stored=datetime(2026, 1, 1), folder="", cells=[cell])
    with database(get_settings().database_url) as engine, Session(engine) as session, session.begin():
        session.add(run)


def test_the_first_look_only_records(registry: Registry):
    registry.publish("4.3.0", "4.3.1")
    assert look() == []
    assert seen() == {"4.3.0": (None, None), "4.3.1": (None, None)}


def test_a_release_that_is_new_gets_one_run(registry: Registry):
    registry.publish("4.3.1")
    look()
    registry.publish("4.3.1", "4.4.0")
    found = watch.look(matrix="nightly", pre_releases=False, catch_up=False)
    assert found == [
        {"trigger_run_id": "release_watch__4.4.0", "conf": {"matrix": "nightly", "streams": ["4.4.0"]}},
    ]
    # A look that did not finish is repeated, and asks for the same run.
    assert watch.look(matrix="nightly", pre_releases=False, catch_up=False) == found
    watch.record(found)
    assert look() == []
    assert seen()["4.4.0"] == ("release_watch__4.4.0", None)


def test_several_new_releases_get_a_run_each(registry: Registry):
    registry.publish("4.3.1")
    look()
    registry.publish("4.3.1", "3.9.3", "4.4.0")
    assert look() == ["3.9.3", "4.4.0"]


def test_a_look_that_catches_up_wants_what_was_never_run(registry: Registry):
    registry.publish("4.3.0", "4.3.1")
    judge("4.3.0", "clean")
    assert look(catch_up=True) == ["4.3.1"]
    assert look(catch_up=True) == []


def test_catching_up_later_is_possible_too(registry: Registry):
    registry.publish("4.3.0", "4.3.1")
    look()
    assert look(catch_up=True) == ["4.3.0", "4.3.1"]


def test_a_release_with_a_single_cell_run_still_gets_its_run(registry: Registry):
    registry.publish("4.3.1")
    look()
    registry.publish("4.3.1", "4.4.0")
    judge("4.4.0", "known")
    assert look() == ["4.4.0"]


def test_a_run_without_a_verdict_is_told_at_each_look(registry: Registry, capsys):
    registry.publish("4.3.1")
    look()
    registry.publish("4.3.1", "4.4.0")
    assert look() == ["4.4.0"]
    for _ in range(2):
        assert look() == []
        assert "4.4.0: run release_watch__4.4.0 has no verdict (yet)" in capsys.readouterr().out
    judge("4.4.0", "clean")
    assert look() == []
    assert "no verdict" not in capsys.readouterr().out


def test_an_ordinary_look_remembers_an_incomplete_candidate(registry: Registry):
    registry.publish("4.3.1")
    look()
    registry.publish("4.3.1", "4.4.0-rc0")
    registry.lack("kafka-streams", "4.4.0-rc0", ROCKSDB)
    assert look(pre_releases=True) == []
    assert look() == []
    registry.complete()
    assert look(pre_releases=True) == ["4.4.0-rc0"]


def test_a_release_whose_cells_were_all_in_error_was_not(registry: Registry):
    registry.publish("4.3.1")
    look()
    registry.publish("4.3.1", "4.4.0")
    judge("4.4.0", "error")
    assert look() == ["4.4.0"]


@pytest.mark.parametrize(
    ("artifact", "what", "reason"),
    [
        ("kafka-streams", ROCKSDB, "kafka-streams needs org.rocksdb:rocksdbjni:jar:1.2.3"),
        ("kafka_2.13", "org.apache.kafka:kafka_2.13:jar:4.4.0", "does not find org.apache.kafka:kafka_2.13:4.4.0"),
    ],
)
def test_an_incomplete_release_is_reported_once_and_run_later(registry, capsys, artifact, what, reason):
    registry.publish("4.3.1")
    look()
    registry.publish("4.3.1", "4.4.0")
    registry.lack(artifact, "4.4.0", what)
    said = "4.4.0 is published, but cannot be run yet"
    assert look() == []
    assert said in capsys.readouterr().out
    assert reason in present(seen()["4.4.0"][1])
    assert look() == []
    assert said not in capsys.readouterr().out
    registry.complete()
    assert look() == ["4.4.0"]
    assert seen()["4.4.0"] == ("release_watch__4.4.0", None)


def test_an_incomplete_release_does_not_hold_up_another(registry: Registry):
    registry.publish("4.3.1")
    look()
    registry.publish("4.3.1", "4.4.0", "4.4.1")
    registry.lack("kafka-streams", "4.4.0", ROCKSDB)
    assert look() == ["4.4.1"]


def test_candidates_are_optional_and_old_ones_are_not_new(registry: Registry):
    registry.publish("4.3.1")
    look()
    registry.publish("4.3.1", "4.4.0-rc0")
    assert look() == []
    registry.publish("4.3.1", "4.4.0-rc0", "4.4.0-rc1")
    assert look(pre_releases=True) == ["4.4.0-rc1"]
    assert seen()["4.4.0-rc1"] == ("release_watch__4.4.0-rc1", None)
    registry.publish("4.3.1", "4.4.0-rc0", "4.4.0-rc1", "4.4.0")
    assert look() == ["4.4.0"]


def test_a_look_that_reaches_nothing_records_nothing(registry: Registry):
    shutil.rmtree(get_settings().artifacts / "releases")  # Maven never gave a list
    registry.publish("4.3.1")
    registry.hide()
    with pytest.raises(HarnessError, match=r"which releases exist: .*the registry"):
        look()
    assert seen() == {}


def test_first_seen_stays(registry: Registry):
    registry.publish("4.3.1")
    look()
    before = read_seen(get_settings().database_url)
    look(catch_up=True)
    after = read_seen(get_settings().database_url)
    release = Release.parse("4.3.1")
    assert before[release].first_seen == after[release].first_seen
    assert (before[release].summary, after[release].summary) == ("seen", "run triggered")


def test_the_command_lists_what_was_seen(registry: Registry):
    registry.publish("4.3.1")
    look()
    registry.publish("4.3.1", "4.4.0-rc0", "4.4.0", "4.4.1")
    registry.lack("kafka-streams", "4.4.0", ROCKSDB)
    look()
    judge("4.3.1", "clean")
    [old, incomplete, new] = json.loads(CliRunner().invoke(cli.app, ["release", "list", "--json"]).stdout)
    assert (old["release"], old["cells"], old["triggered"], old["incomplete"]) == ("4.3.1", 1, None, None)
    assert "rocksdbjni" in incomplete["incomplete"]
    assert new["triggered"] == "release_watch__4.4.1"
    shown = CliRunner().invoke(cli.app, ["release", "list", "--pre-releases"]).stdout
    assert [line.split()[0] for line in shown.splitlines() if line.split()[0][:1] == "4"] == [
        *("4.3.1", "4.4.0-rc0", "4.4.0", "4.4.1"),
    ]
    assert "incomplete: Kafka 4.4.0" in shown
    assert "run triggered" in shown
