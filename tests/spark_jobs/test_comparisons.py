"""The questions judge every specimen exactly as the independent reader does, all at once."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import duckdb
import pytest

from onceproof.model.anomaly import Comparison, Witness, count_comparisons
from onceproof.model.promise import PROMISES as PROMISED
from onceproof.model.record import Record
from onceproof.readers.joins import as_of as read_as_of
from onceproof.readers.punctuations import compare_punctuations as read_punctuations
from onceproof.readers.state import compare_state as read_state
from onceproof.readers.windows import compare_windows as read_windows
from spark_jobs.checks import state_trial
from spark_jobs.questions import answer_all, ask, insert_rows, open_database, run_script, state_trials
from tests.specimens import (
    as_of_join,
    copy,
    counting,
    dead_letters,
    dedup,
    deleter,
    foreign_key_join,
    global_join,
    grouped_table,
    interactive_queries,
    outbox,
    scans,
    stream_join,
    table_join,
    two_topics,
    values,
    windows,
)

OF_CHECK: dict[str, ModuleType] = {
    "as-of-join": as_of_join,
    "copy": copy,
    "counting": counting,
    "dead-letters": dead_letters,
    "dedup": dedup,
    "deleter": deleter,
    "foreign-key-join": foreign_key_join,
    "interactive-queries": interactive_queries,
    "global-join": global_join,
    "grouped-table": grouped_table,
    "outbox": outbox,
    "scans": scans,
    "stream-join": stream_join,
    "table-join": table_join,
    "two-topics": two_topics,
    "values": values,
    "windows": windows,
}
PROMISES = {
    "as-of-join": {"deliveries", "output-order", "changelog"},
    "copy": {"deliveries", "output-order"},
    "counting": {"reads", "deliveries", "output-order", "changelog"},
    "dead-letters": {"skipping", "dead-letters"},
    "dedup": {"deliveries", "state", "output-order", "changelog"},
    "interactive-queries": {"reads", "deliveries", "output-order", "changelog", "queries"},
    "deleter": {"answers", "published", "output-order", "changelog"},
    "foreign-key-join": {"joined"},
    "global-join": {"deliveries", "output-order"},
    "grouped-table": {"grouped"},
    "outbox": {"punctuations", "output-order", "changelog"},
    "scans": {"scans", "output-order", "changelog"},
    "stream-join": {"matches"},
    "table-join": {"joined"},
    "two-topics": {"time-order"},
    "values": {"deliveries", "transactions", "changelog"},
    "windows": {"windows"},
}
COLUMNS = ("partition", "offset", "key", "value", "timestamp", "headers", "raw")


@contextmanager
def database_of(trials: Mapping[int, Any], check_of: Mapping[int, str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with these specimens, and the name of the topology of each."""
    with open_database() as database:
        stated = (
            state_trial(f"trial {trial}", trial, check_of[trial], s.facts["partitions"], s.facts)
            for trial, s in trials.items()
        )
        state_trials(database, list(stated))
        records = [
            {"trial": trial, "role": role, **dict(zip(COLUMNS, record, strict=False))}
            for trial, specimen in trials.items()
            for role, topic in specimen.topics.items()
            for record in topic
        ]
        insert_rows(database, "records", [dict.fromkeys(COLUMNS) | record for record in records])
        yield database


@dataclass
class Judged:
    """What was found in each specimen, by the name of its check and its place among the check's."""

    comparisons: dict[tuple[str, int], list[Comparison]]
    findings: dict[tuple[str, int], list[Witness]]
    counts: dict[tuple[str, int], dict[str, int]]


@pytest.fixture(scope="module")
def judged() -> Judged:
    trials, check_of = {}, {}
    for number, (name, module) in enumerate(OF_CHECK.items()):
        for place, specimen in enumerate(module.SPECIMENS, 1_000 * number):
            trials[place], check_of[place] = specimen, name
    with database_of(trials, check_of) as database:
        answer_all(database)
        return Judged(
            _by_specimen(rows_of(database, "results.comparisons"), lambda row: Comparison(**row)),
            _by_specimen(rows_of(database, "results.findings"), witness_of),
            {place: one for place, [one] in _by_specimen(rows_of(database, "results.counts"), dict).items()},
        )


def rows_of(database: duckdb.DuckDBPyConnection, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = database.table(table).to_arrow_table().to_pylist()
    return rows


def _by_specimen(
    rows: list[dict[str, Any]], made_of: Callable[[dict[str, Any]], Any]
) -> dict[tuple[str, int], list[Any]]:
    found = defaultdict(list)
    for row in rows:
        number, place = divmod(row.pop("trial"), 1_000)
        found[list(OF_CHECK)[number], place].append(made_of(row))
    return found


def _records(trial: Any, role: str) -> list[Record]:
    return [Record(*record) for record in trial.topics[role]]


def _topics(trial: Any) -> dict[str, list[Record]]:
    return {role: _records(trial, role) for role in trial.topics}


def witness_of(columns: dict[str, Any]) -> Witness:
    return Witness(**{**columns, "ids": tuple(columns["ids"]), "offsets": tuple(columns["offsets"])})


SPECIMENS = [
    pytest.param((name, place), specimen, id=f"{name}: {specimen.name}")
    for name, module in OF_CHECK.items()
    for place, specimen in enumerate(module.SPECIMENS)
]


@pytest.mark.parametrize(("place", "specimen"), SPECIMENS)
def test_every_specimen_is_judged_exactly(judged: Judged, place: tuple[str, int], specimen: Any) -> None:
    assert Counter(judged.findings[place]) == Counter(specimen.witnesses)


@pytest.mark.parametrize(("place", "specimen"), SPECIMENS)
def test_every_trial_is_counted_also_the_empty_one(judged: Judged, place: tuple[str, int], specimen: Any) -> None:
    inputs = specimen.topics["input"]
    outputs = specimen.topics["values-changelog" if place[0] == "values" else "output"]
    keys = {record[2] for record in inputs}
    assert judged.counts[place] == {"records": len(inputs), "outputs": len(outputs), "keys": len(keys), "ids": 0}


@pytest.mark.parametrize("name", OF_CHECK)
def test_what_is_well_is_compared_too(judged: Judged, name: str) -> None:
    place = name, OF_CHECK[name].SPECIMENS.index(OF_CHECK[name].HEALTHY)
    assert {comparison.promise for comparison in judged.comparisons[place]} == PROMISES[name]
    assert {comparison.anomaly for comparison in judged.comparisons[place]} == {None}


def test_each_promise_has_its_number_of_comparisons_in_a_trial(judged: Judged) -> None:
    compared = {
        name: count_comparisons(judged.comparisons[name, module.SPECIMENS.index(module.HEALTHY)])
        for name, module in OF_CHECK.items()
    }
    assert compared == {
        "as-of-join": {"deliveries": 4, "output-order": 19, "changelog": 8},
        "copy": {"deliveries": 3, "output-order": 4},
        "counting": {"reads": 7, "deliveries": 3, "output-order": 7, "changelog": 7},
        "dead-letters": {"skipping": 3, "dead-letters": 2},
        "dedup": {"deliveries": 4, "state": 2, "output-order": 4, "changelog": 4},
        "deleter": {"answers": 3, "published": 3, "output-order": 3, "changelog": 6},
        "foreign-key-join": {"joined": 5},
        "interactive-queries": {"reads": 5, "deliveries": 2, "output-order": 5, "changelog": 5, "queries": 4},
        "global-join": {"deliveries": 7, "output-order": 8},
        "grouped-table": {"grouped": 8},
        "outbox": {"punctuations": 8, "output-order": 8, "changelog": 8},
        "scans": {"scans": 4, "output-order": 4, "changelog": 9},
        "stream-join": {"matches": 7},
        "table-join": {"joined": 9},
        "two-topics": {"time-order": 7},
        "values": {"deliveries": 4, "transactions": 3, "changelog": 4},
        "windows": {"windows": 3},
    }


def found_by(question: str, trials: Mapping[int, Any], check: str) -> dict[int, Counter[Comparison]]:
    """The comparisons that a question gives for each of these specimens."""
    found: dict[int, Counter[Comparison]] = {number: Counter() for number in trials}
    with database_of(trials, dict.fromkeys(trials, check)) as database:
        ask(database, question, "comparisons")
        for row in rows_of(database, "results.comparisons"):
            found[row.pop("trial")][Comparison(**row)] += 1
    return found


def test_both_models_of_windows_judge_what_is_drawn_alike() -> None:
    trials = {number: windows.drawn(number) for number in (*range(200), 1166)}  # 175 and 1166 have rare orders
    found = found_by("windows", trials, "windows")
    expected = {
        number: Counter(read_windows(_records(trial, "input"), _records(trial, "output"), trial.facts))
        for number, trial in trials.items()
    }
    differing = [(number, one, other) for number in trials if (one := found[number]) != (other := expected[number])]
    assert [(n, one - other, other - one) for n, one, other in differing][:1] == []
    assert {comparison.anomaly for of_trial in expected.values() for comparison in of_trial} == {
        None,
        *PROMISED["windows"].anomalies,
    }


def test_both_models_of_an_as_of_join_agree_on_drawn_input() -> None:
    trials = {number: as_of_join.drawn(number) for number in range(120)}
    found: dict[int, dict[tuple[int, int], int]] = {number: {} for number in trials}
    with database_of(trials, dict.fromkeys(trials, "as-of-join")) as database:
        run_script(database, "inputs")
        for row in rows_of(database, "inputs"):
            found[row["trial"]][row["partition"], row["offset"]] = row["gives"]
    expected = {
        number: {record[:2]: record.value for record in read_as_of(_records(trial, "input"), trial.retention)}
        for number, trial in trials.items()
    }
    assert found == expected
    versions = Counter(bool((value or 0) % 2**32) for of in expected.values() for value in of.values())
    assert min(versions[True], versions[False]) > 1_000


def test_both_models_of_punctuations_judge_what_is_drawn_alike() -> None:
    trials = {number: outbox.drawn(number) for number in range(120)}
    found = found_by("punctuations", trials, "outbox")
    expected = {
        number: Counter(
            read_punctuations(
                _records(trial, "input"), _records(trial, "output"), _records(trial, "buffer-changelog"), trial.facts
            )
        )
        for number, trial in trials.items()
    }
    differing = [(number, one, other) for number in trials if (one := found[number]) != (other := expected[number])]
    assert [(n, one - other, other - one) for n, one, other in differing][:1] == []
    assert {comparison.anomaly for of_trial in expected.values() for comparison in of_trial} == {
        None,
        *PROMISED["punctuations"].anomalies,
    }


@dataclass(frozen=True)
class TwoStores:
    """A trial whose two stores hold the same key, each with its own value."""

    topics: dict[str, list[tuple[int, int, int, int | None]]]
    facts: dict[str, int]


def test_the_stores_of_a_trial_are_not_mixed_up() -> None:
    healthy = TwoStores(
        topics={
            "counter-changelog": [(0, 0, 0, 5), (0, 9, 0, 6)],
            "counter-contents": [(0, 0, 0, 5)],
            "ids-changelog": [(0, 0, 0, 7), (0, 1, 4, 8)],
            "ids-contents": [(0, 0, 4, 8), (0, 1, 0, 7)],
        },
        facts={"partitions": 1, "exactly_once": 1, "counter_end": 9, "ids_end": 2},
    )
    contents: dict[str, list[tuple[int, int, int, int | None]]] = {
        "counter-contents": [(0, 0, 0, 6)],
        "ids-contents": [(0, 0, 4, 8), (0, 1, 3, 1)],
    }
    trials = {0: healthy, 1: replace(healthy, topics={**healthy.topics, **contents})}
    found = {number: set(compared) for number, compared in found_by("state", trials, "enumerator").items()}
    for number, trial in trials.items():
        assert found[number] == {
            c for store in ("counter", "ids") for c in read_state(store, _topics(trial), trial.facts)
        }
    assert {c.anomaly for c in found[0]} == {None}
    assert {(c.anomaly, c.place) for c in found[1]} == {
        ("uncommitted-state", "counter-changelog/0@0"),
        ("lost-state", "ids-changelog/0@0"),
        ("uncommitted-state", "ids-contents/0@1"),
        (None, "ids-changelog/0@1"),
    }
