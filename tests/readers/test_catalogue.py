"""What is planted into the records of real clean trials is found by the independent reader: exactly that."""

from collections import Counter
from operator import attrgetter

import pytest

from onceproof.model.promise import ANOMALIES, PROMISES
from onceproof.readers.checks import CHECKS
from tests.cases import check_each
from tests.specimens import segments
from tests.specimens.catalogue import one_of_each, planted
from tests.specimens.mutations import MUTATIONS, Mutation, untouched
from tests.specimens.trials import kept_names, kept_trial, kept_trials


def test_every_check_has_a_real_trial_and_every_anomaly_injected() -> None:
    assert {clean.check for clean in kept_trials()} == set(MUTATIONS) == set(CHECKS)
    found = {
        witness.anomaly for clean in kept_trials() for mutation in one_of_each(clean) for witness in mutation.witnesses
    }
    of_logs = {witness.anomaly for specimen in segments.ANOMALOUS for witness in specimen.witnesses}
    of_stores = {
        "wrong-store",
        "wrong-standby",
        "lost-entry",
        "wrong-entry",
        "wrong-entry-time",
        "wrong-entry-headers",
    }  # their witnesses are only known once they are written
    of_runs = {
        "unstable-final"
    }  # of two runs that are compared with each other (tests/campaigns/test_application_promises.py)
    # tests/scenarios/test_internal_topics.py, test_assignment.py, test_resources.py
    of_the_timeline = {"wrong-topic", "wrong-assignment", "leak"}
    of_endings = {a for p in ("endings", "readiness") for a in PROMISES[p].anomalies}  # tests/scenarios/test_endings.py
    assert found | of_logs | of_stores | of_runs | of_the_timeline | of_endings == set(ANOMALIES)


@pytest.mark.parametrize("name", kept_names())
def test_the_independent_reader_finds_exactly_what_was_planted(name: str) -> None:
    clean = kept_trial(name)
    decoded = [one for one in (untouched(clean), *planted(clean, seed=1)) if not one.litter]  # the others need bytes

    @check_each("mutation", decoded, named=attrgetter("kind"))
    def judge(mutation: Mutation) -> None:
        found = CHECKS[clean.check](mutation.topics, clean.facts)
        assert Counter(found.witnesses) == Counter(mutation.witnesses)

    judge()


def test_the_same_seed_plants_at_the_same_places() -> None:
    for clean in kept_trials():
        first, again, other = (planted(clean, seed) for seed in (1, 1, 2))
        assert [m.witnesses for m in first] == [m.witnesses for m in again] != [m.witnesses for m in other]
