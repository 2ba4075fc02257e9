"""Both readers say the same of joined tables: of all specimens, and of records that are drawn."""

import random
from collections import Counter

from onceproof.model.anomaly import Witness
from onceproof.model.record import Record
from onceproof.readers.checks import check_table_join
from spark_jobs.questions import answer_all
from tests.spark_jobs.test_comparisons import database_of, rows_of, witness_of
from tests.specimens.foreign_key_join import Specimen
from tests.specimens.table_join import FIVE, SIX, SPECIMENS

KEYS = (5, 6, 15, 16, 25, 5_005)


def drawn(seed: int) -> Specimen:
    """A few changes of a few keys, and an output that has little to do with them."""
    rng = random.Random(seed)
    inputs = [
        (0, offset, rng.choice(KEYS), rng.choice((1, -1)) * rng.choice((1, 2, 3, 400, 700))) for offset in range(40)
    ]
    output = [
        (0, offset, rng.choice((*KEYS, FIVE, SIX)), rng.choice((0, 0, 2, 3)), rng.randrange(8)) for offset in range(25)
    ]
    return Specimen(f"drawn {seed}", inputs[: rng.randint(1, 40)], output[: rng.randint(0, 25)], [], rng.randrange(3))


def test_both_readers_say_the_same() -> None:
    trials = dict(enumerate([*SPECIMENS, *map(drawn, range(25))], 1))
    found: dict[int, Counter[Witness]] = {trial: Counter() for trial in trials}
    with database_of(trials, dict.fromkeys(trials, "table-join")) as database:
        answer_all(database)
        for row in rows_of(database, "results.findings"):
            found[row.pop("trial")][witness_of(row)] += 1
    for trial, specimen in trials.items():
        topics = {role: [Record(*record) for record in records] for role, records in specimen.topics.items()}
        assert found[trial] == Counter(check_table_join(topics, specimen.facts).witnesses), specimen
