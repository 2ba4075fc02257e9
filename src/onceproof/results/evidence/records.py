"""The records and findings around the witnesses of a trial, from the tables that Spark wrote."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from onceproof.model.anomaly import Witness
from onceproof.model.cell import Trial
from onceproof.model.place import Place
from onceproof.model.run_folder import RunFolder
from onceproof.results.evidence.case import EvidenceCase
from onceproof.results.evidence.text import as_csv, join
from onceproof.results.spark_tables import rows_of_trial, witnesses_in

NEAR = 5  # offsets before and after a place
RECORD = ("role", "partition", "offset", "timestamp", "key", "value")  # columns of the table


def findings(case: EvidenceCase) -> str | None:
    """All that Spark found in the trial that is shown, as CSV; None if it has not read it."""
    found = witnesses_in(case.run, case.shown)
    if found is None:
        return None
    columns = [column.name for column in fields(Witness)]
    lines = sorted((_place_order(witness), [join(getattr(witness, name)) for name in columns]) for witness in found)
    return as_csv(columns, (line for _, line in lines))


def _place_order(witness: Witness) -> tuple[str, list[Place], int]:
    """By anomaly, then in the order of topics."""
    return witness.anomaly, witness.places, -1 if witness.key is None else witness.key


def records_near(case: EvidenceCase) -> str | None:
    """The records around all witnesses as CSV, each once, the last column with their numbers and why.

    None if there are none.
    """
    rows = records_around(case.run, case.shown, dict(enumerate(case.witnesses, 1)))
    if rows is None:
        return None
    lines = [
        [
            *(row[name] for name in ("role", "partition", "offset")),
            "" if row["timestamp"] is None else row["timestamp"].strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
            join(row["key"]),
            join(row["value"]),
            " ".join(f"{number}:{why}" for number, why in row["witnesses"].items()),
        ]
        for row in rows
    ]
    return as_csv((*RECORD, "witnesses"), lines)


def records_around(run: RunFolder, trial: Trial, witnesses: Mapping[int, Witness]) -> list[dict[str, Any]] | None:
    """For each witness the records of every role with its key, and those near its places.

    A witness without a key has the keys of the records at its places.

    Args:
        run: the run, whose table `records` is read.
        trial: the trial of which the witnesses are.
        witnesses: by number.

    Returns:
        By role, partition and offset: `role`, `partition`, `offset`, `timestamp` (UTC or None), `key`, `value`, and in
        `witnesses` why it is listed, by number of the witness: `place`, `key` or `near`. None if there is no table, or
        no witness.
    """
    table = run.table("records")
    if not table.exists():
        return None
    from pyarrow.dataset import field

    places = {number: witness.places for number, witness in witnesses.items()}
    near: dict[tuple[str, int], dict[int, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
    for number, of_witness in places.items():
        for role, partition, offset in of_witness:
            for at in range(max(0, offset - NEAR), offset + NEAR + 1):
                near[role, partition][at].append((number, "place" if at == offset else "near"))
    wanted = field("key").isin([])
    for (role, partition), offsets in near.items():
        wanted |= (field("role") == role) & (field("partition") == partition) & field("offset").isin(sorted(offsets))
    close = rows_of_trial(table, trial, RECORD, wanted)
    if close is None or not witnesses:
        return None
    at_place = {(row["role"], row["partition"], row["offset"]): row["key"] for row in close}
    with_key: dict[int, set[int]] = defaultdict(set)
    for number, witness in witnesses.items():
        keys = [witness.key] if witness.key is not None else [at_place.get(place) for place in places[number]]
        for key in keys:
            if key is not None:
                with_key[key].add(number)
    rows = [*close, *(rows_of_trial(table, trial, RECORD, field("key").isin(sorted(with_key))) or [])]
    by_place = {}
    for row in rows:
        place = (row["role"], row["partition"], row["offset"])
        why = dict.fromkeys(with_key.get(row["key"], ()), "key")
        for number, reason in near.get(place[:2], {}).get(place[2], ()):
            why[number] = "place" if "place" in (reason, why.get(number)) else why.get(number, reason)
        by_place[place] = {**row, "witnesses": {number: why[number] for number in sorted(why)}}
    return [by_place[place] for place in sorted(by_place)]
