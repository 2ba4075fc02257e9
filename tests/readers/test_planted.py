"""What the independent reader finds of anomalies that stand in the topics of a real broker, and of some in memory."""

import random
from collections import Counter
from pathlib import Path

import pytest

from onceproof.lab.cluster import Cluster
from onceproof.readers.checks import CHECKS
from tests.specimens.contents import kinds
from tests.specimens.mutations import Clean, Mutation, planted, untouched
from tests.specimens.planting import plant, read, stamped
from tests.specimens.trials import kept_trials

KEPT = [stamped(clean) for clean in kept_trials()]
FIRST = {clean.check: clean for clean in reversed(KEPT)}


def of_contents(clean: Clean) -> list[Mutation]:
    """Each kind once."""
    rng = random.Random(1)
    return [mutate(clean, rng) for mutate in kinds(clean.check)]


def named(mutation: Mutation) -> str:
    return f"{mutation.clean.name}: {mutation.kind}"


IN_MEMORY = [mutation for clean in KEPT for mutation in of_contents(clean) if not mutation.litter]


@pytest.mark.parametrize("mutation", IN_MEMORY, ids=named)
def test_tables_that_lack_entries_or_have_too_many(mutation: Mutation) -> None:
    found = CHECKS[mutation.clean.check](mutation.topics, mutation.clean.facts)
    assert Counter(found.witnesses) == Counter(mutation.witnesses)


@pytest.mark.broker
def test_on_a_broker_exactly_what_was_planted_is_found(cluster: Cluster, tmp_path: Path) -> None:
    mutations = [
        *(mutation for clean in FIRST.values() for mutation in (*planted(clean, 1), *of_contents(clean))),
        *map(untouched, KEPT),
    ]
    _, trials = plant(tmp_path / "20261121T084500-3f2a", cluster, mutations)
    differing = {}
    for trial, found in zip(trials, read(cluster, trials), strict=True):
        seen, due = Counter(found.witnesses), Counter(trial.witnesses)
        if seen != due:
            differing[named(trial.mutation)] = {"missed": due - seen, "extra": seen - due}
    assert differing == {}
