"""All that is planted: the kinds of mutations for each clean trial, whatever they change."""

import random
from collections.abc import Iterable
from itertools import chain

from tests.specimens import contents, directories, mutations, timelines
from tests.specimens.mutations import Clean, Mutate, Mutation


def of_records(clean: Clean) -> list[Mutate]:
    """The kinds that alter records."""
    return [*mutations.of_records(clean), *contents.kinds(clean.check)]


def kinds(clean: Clean) -> list[Mutate]:
    """All kinds."""
    return [*of_records(clean), *directories.kinds(clean), *timelines.kinds(clean)]


def planted(clean: Clean, seed: int) -> list[Mutation]:
    """One mutation of each kind that alters records, at places drawn from the seed."""
    rng = random.Random(seed)
    return [mutate(clean, rng) for mutate in of_records(clean)]


def one_of_each(clean: Clean, seed: int = 1) -> list[Mutation]:
    """One mutation of each kind."""
    rng = random.Random(seed)
    return [mutate(clean, rng) for mutate in kinds(clean)]


def one_of_each_anomaly(trials: Iterable[Clean]) -> list[Mutation]:
    """As few mutations as cover every anomaly, in trials of few partitions: reading each of them takes a while."""
    chosen, seen = [], set[str]()
    small = sorted(trials, key=lambda clean: clean.facts["partitions"])
    for mutation in chain.from_iterable(map(one_of_each, small)):
        found = {witness.anomaly for witness in mutation.witnesses} | {f"wrong {role}" for *_, role in mutation.held}
        if not found <= seen:
            chosen.append(mutation)
            seen |= found
    return chosen
