"""Words that may be secrets are named by file and line, and ids that all logs have are not."""

import secrets

import pytest

from onceproof.results.evidence.archive import write_evidence
from onceproof.results.evidence.closing_look import looks_random
from tests.results.test_evidence import LOG, RED, contents, make_run, stamp

SECRET = "k7Qx2mVb9TzLp4Rw8sYn3JdH"  # noqa: S105 - nowhere one


def test_a_random_looking_word_is_reported_by_its_place_only(tmp_path):
    run, _ = make_run(tmp_path / "runs", log=f"{LOG}{stamp(21)} INFO came with {SECRET}\n{SECRET}\n")
    page = contents(write_evidence(run, RED.key, tmp_path / "evidence.zip"))["README.md"]
    at = len(LOG.splitlines()) + 1
    assert f"\n- logs/whole/instance-1.log:{at}\n" in page
    assert page.count("instance-1.log:") == 1
    assert SECRET not in page


def test_of_an_archive_without_one_that_is_said(tmp_path):
    run, _ = make_run(tmp_path / "runs")
    page = contents(write_evidence(run, RED.key, tmp_path / "evidence.zip"))["README.md"]
    assert page.endswith("No word in these files looks random.\n")


@pytest.mark.parametrize(
    "word",
    [
        SECRET,
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
        "9f86d081884c7d659a2feaa0c55ad015",
    ],
)
def test_what_looks_random(word):
    assert looks_random(word)


@pytest.mark.parametrize(
    "word",
    [
        "onceproof-20261121T123358-117b-crash-DEFAULT_CONFIG-s3-b3-t1-instance-1-StreamThread-1-consumer",
        "org/apache/kafka/streams/processor/internals/StreamsPartitionAssignor",
        "KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog",
        "v3AndBelowProducerId",
        "dabA4NubSvK2_03cPWgAdw",
        "I7A-ftfhQ8S67kP-Q464lw",
        "c82fd9b934b4c1e6c82fd9b934b4c1e6c82fd9b9",
        "2026-11-21T12-36-20-000Z-1795264571108",
        "=" * 40,
    ],
)
def test_what_does_not(word):
    assert not looks_random(word)


def test_most_of_what_a_program_draws_is_seen():
    assert sum(looks_random(secrets.token_urlsafe(24)) for _ in range(1_000)) > 800
