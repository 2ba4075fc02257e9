"""Offsets are asked for again where a leader has moved."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from onceproof.lab import topics
from onceproof.model.errors import HarnessError
from tests.specimens.brokers import given


class FakeAdmin:
    """Answers with errors, one a client, and then with an end."""

    codes: list[int]

    def __init__(self, _config):
        pass

    def list_offsets(self, asked, **_):
        answer = Future()
        if FakeAdmin.codes:
            answer.set_exception(KafkaException(KafkaError(FakeAdmin.codes.pop(0))))
        else:
            answer.set_result(SimpleNamespace(offset=7))
        return dict.fromkeys(asked, answer)


@pytest.fixture
def asked(monkeypatch):
    monkeypatch.setattr(topics, "AdminClient", FakeAdmin)
    return topics.Topics(given(), "app")


def test_who_asks_for_a_leader_of_before_asks_again(asked):
    FakeAdmin.codes = [KafkaError.FENCED_LEADER_EPOCH, KafkaError.NOT_LEADER_FOR_PARTITION]
    assert asked.ends(["app-input"], 1) == {("app-input", 0): 7}


def test_what_is_no_move_is_an_error_at_once(asked):
    FakeAdmin.codes = [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(HarnessError, match=r"^The ends of the topics of app could not be read"):
        asked.ends(["app-input"], 1)
    assert FakeAdmin.codes == []
