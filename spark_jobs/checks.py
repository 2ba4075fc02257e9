"""Which promises are checked in which topology of the application, and what a trial states about itself.

A promise has a statement of its own, `sql/<promise>.sql`. Logs, log segments and the enumerator have scripts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from onceproof.model.files import StorePlan
from onceproof.model.run_folder import StoreDump

Facts = Mapping[str, int]


@dataclass(frozen=True)
class Log:
    """The records of the topic of a role, as a function of the input's order.

    `replay` says which input records give one: `every`, the `first` of each key, each `delete`, each `version` of a
    table, or those that are `taken` or `skipped` as poison. `judged` says what is compared of the value: `nothing`, the
    `value`, the `number` in the upper half of the output's, that it is an `answer`, the `change` that a put or a delete
    makes, the `version` that a change of a table is, what the input `gives` when it is joined or grouped, or the
    `result` of a join, where 0 is as good as a tombstone. `key` is the key of all records, if it is not the input's.
    `counted`: another promise reports keys with too few or too many records; `beside`: the role in which another
    promise reports too few. `punctuated`: a punctuator writes, too, under keys below 0. `history`: each record of a
    folded log is one that an input of its key gives, in their order. `puts`: only what was put is compared, as a
    punctuator deletes it. `handled`: an exception handler wrote its headers behind those of the input (KIP-1034).
    """

    promise: str
    role: str
    replay: str = "every"
    judged: str = "value"
    key: int | None = None
    folded: bool = False
    counted: bool = False
    beside: str | None = None
    punctuated: bool = False
    history: bool = False
    puts: bool = False
    handled: bool = False


def _is_cached(facts: Facts) -> bool:
    return bool(facts.get("cached", 1))


def _of_enumerator(facts: Facts) -> list[Log]:
    logs = [
        Log("output-order", "output", judged="nothing", counted=True),
        Log("changelog", "ids-changelog", "first", "nothing", folded=_is_cached(facts), counted=True),
    ]
    if not _is_cached(facts):
        logs.append(Log("changelog", "counter-changelog", "first", "nothing", key=0, counted=True))
    return logs


def _of_counting(facts: Facts) -> list[Log]:
    return [
        Log("output-order", "output", judged="number", counted=True),
        Log("changelog", "last-changelog", folded=_is_cached(facts), beside="output", history=True),
    ]


def _of_dedup(facts: Facts) -> list[Log]:
    cached, punctuated = _is_cached(facts), bool(facts.get("punctuated"))
    return [
        Log("output-order", "output", "first", counted=True),
        Log(
            "changelog", "seen-changelog", "first", folded=cached, beside="output", punctuated=punctuated, history=True
        ),
    ]


def _of_dead_letters(facts: Facts) -> list[Log]:
    skipped = Log("dead-letters", "dead-letters", "skipped", handled=True)
    return [Log("skipping", "output", "taken"), *([skipped] if facts.get("queue") else [])]


def _of_deleter(facts: Facts) -> list[Log]:
    folded = _is_cached(facts) or bool(facts.get("downstream"))
    return [
        Log("output-order", "output", "delete", "answer", counted=True),
        Log("changelog", "records-changelog", judged="change", folded=folded, history=True),
    ]


def _of_outbox(_: Facts) -> list[Log]:
    return [
        Log("output-order", "output", judged="number", counted=True),
        Log("changelog", "buffer-changelog", puts=True),
    ]


def _of_scans(facts: Facts) -> list[Log]:
    return [
        Log("output-order", "output", "delete", "nothing", counted=True),
        Log("changelog", "records-changelog", judged="change", folded=_is_cached(facts), history=True),
    ]


def _of_as_of_join(_: Facts) -> list[Log]:
    return [
        Log("output-order", "output", judged="gives", counted=True),
        Log("changelog", "versions-changelog", "version", "version"),
    ]


@dataclass(frozen=True)
class Check:
    """The promises that are checked in a topology, and what a replay of the input says about its logs, given the facts.

    `delivered` is the role in which its records are emitted; `once`: each key is emitted once, however often it went
    in.
    """

    promises: tuple[str, ...]
    logs: Callable[[Facts], list[Log]]
    delivered: str = "output"
    once: bool = False


CHECKS = {
    "as-of-join": Check(("deliveries", "entries"), _of_as_of_join),
    "enumerator": Check(("state", "stores"), _of_enumerator),
    "copy": Check(("deliveries",), lambda _: [Log("output-order", "output", counted=True)]),
    "counting": Check(("deliveries", "reads", "stores"), _of_counting),
    "dedup": Check(("deliveries", "state", "stores"), _of_dedup, once=True),
    "dead-letters": Check((), _of_dead_letters),
    "deleter": Check(("answers", "published", "stores"), _of_deleter),
    "foreign-key-join": Check(("stores", "entries"), lambda _: [Log("joined", "output", judged="result", folded=True)]),
    "global-join": Check(("deliveries",), lambda _: [Log("output-order", "output", judged="gives", counted=True)]),
    "grouped-table": Check(("stores",), lambda _: [Log("grouped", "output", judged="gives", folded=True)]),
    "interactive-queries": Check(("deliveries", "reads", "queries", "stores"), _of_counting),
    "outbox": Check(("punctuations", "stores"), _of_outbox),
    "scans": Check(("scans", "stores"), _of_scans),
    "table-join": Check(("stores", "entries"), lambda _: [Log("joined", "output", judged="result", folded=True)]),
    "stream-join": Check(("matches", "entries"), lambda _: []),
    "two-topics": Check(("time-order",), lambda _: []),
    "values": Check(
        ("deliveries", "transactions", "stores"),
        lambda facts: [Log("changelog", "values-changelog", folded=_is_cached(facts), counted=True, history=True)],
        delivered="values-changelog",
    ),
    "windows": Check(("windows", "entries"), lambda _: []),
}
PROMISES = sorted({promise for check in CHECKS.values() for promise in check.promises})


def state_trial(
    name: str,
    number: int,
    check: str,
    partitions: int,
    facts: Facts,
    dumps: Sequence[StoreDump] = (),
    entry_dumps: Sequence[StoreDump] = (),
    entry_stores: Mapping[str, StorePlan] | None = None,
    committed: Sequence[str] = (),
) -> dict[str, Any]:
    """A row of the table `trials` (`sql/tables.sql`).

    A promise is left out where a trial has nothing to judge it by: stores that no dump shows, or the state of a
    process that was not killed, so that no fact says where its changelogs ended.
    """
    chosen = CHECKS[check]
    judged = {
        "state": any(fact.endswith("_end") for fact in facts),
        "stores": bool(dumps),
        "entries": bool(entry_dumps),
    }
    return {
        "name": name,
        "trial": number,
        "check": check,
        "promises": [promise for promise in chosen.promises if judged.get(promise, True)],
        "delivered": chosen.delivered,
        "once": chosen.once,
        "partitions": partitions,
        "facts": [{"key": fact, "value": number} for fact, number in facts.items()],
        "logs": [asdict(log) for log in chosen.logs(facts)],
        "dumps": [_row(dump) for dump in dumps],
        "entry_dumps": [_row(dump) for dump in entry_dumps],
        "entry_stores": [{"store": store, **asdict(of)} for store, of in (entry_stores or {}).items()],
        "committed": list(committed),
    }


def _row(dump: StoreDump) -> dict[str, Any]:
    return {name: getattr(dump, name) for name in ("store", "partition", "task_type", "offset", "title")}
