"""Real clean trials that are kept next to this file, and what Spark found in a run.

Those below `real/` were run against real brokers on Kafka Streams 4.3.1 (where `grouped-table` went from 3.9.1, with one
partition; `dead-letters` and `interactive-queries` on 4.4.0), with small bulks, and are kept as the
independent reader read them: one Parquet file per trial (role STRING, partition INT, offset LONG, key INT, value LONG, and
headers STRING where these say something), its check, facts and what was produced as metadata. Where there is no timestamp LONG (ms), `stamped` gives them some.
"""

import json
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from onceproof.model.anomaly import Findings, Witness
from onceproof.model.record import Record
from onceproof.model.run_folder import RunFolder
from tests.specimens.mutations import Clean

REAL = Path(__file__).parent / "real"
EPOCH = 1_795_000_000_000  # ms: when the first record of an input was made


def kept_names() -> list[str]:
    """The names of the trials below `real/`."""
    return sorted(file.stem for file in REAL.glob("*.parquet"))


def kept_trials() -> list[Clean]:
    """The trials below `real/`."""
    return [kept_trial(name) for name in kept_names()]


@cache
def kept_trial(name: str) -> Clean:
    """The trial of that name."""
    read = pq.read_table(REAL / f"{name}.parquet")
    stated = json.loads(read.schema.metadata[b"trial"])
    topics: dict[str, list[Record]] = {role: [] for role in stated["roles"]}
    columns = (read[column].to_pylist() for column in read.column_names)
    for role, *record in zip(*columns, strict=True):
        topics[role].append(Record(*record))
    topics = {role: sorted(records) for role, records in topics.items()}
    clean = Clean(name, stated["check"], stated["facts"], topics)
    return clean if "timestamp" in read.column_names else stamped(clean)


def stamped(clean: Clean) -> Clean:
    """The trial with timestamps: a millisecond between the records of the input; what they cause inherits theirs."""
    inputs = [record._replace(timestamp=EPOCH + record.offset) for record in clean.topics["input"]]
    caused = replace(clean, topics={**clean.topics, "input": inputs}).caused
    topics = {role: [r._replace(timestamp=cause.timestamp) for r, cause in of_role] for role, of_role in caused.items()}
    return replace(clean, topics=topics)


def findings_of(run: RunFolder) -> dict[str, Findings]:
    """What Spark counted and found, by trial key."""
    counts = {row.pop("trial"): row for row in ds.dataset(run.table("counts")).to_table().to_pylist()}
    found: dict[str, list[Witness]] = defaultdict(list)
    for row in ds.dataset(run.table("findings")).to_table().to_pylist():
        lists = {name: tuple(row[name]) for name in ("ids", "offsets")}
        found[row.pop("trial")].append(Witness(**{**row, **lists}))
    return {trial: Findings(**counted, witnesses=found[trial]) for trial, counted in counts.items()}
