"""Messages that are kept are read again as they were."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onceproof.lab import messages
from onceproof.lab.messages import MessageLog, TopicMessage, read_messages

SOME_BYTES = st.none() | st.binary(max_size=12)
HEADERS = st.lists(st.tuples(st.text(max_size=5), SOME_BYTES), max_size=3)
OFFSETS = st.integers(0, 2**63 - 1)
MESSAGES = st.builds(
    TopicMessage,
    topic=st.sampled_from(["onceproof.r.t-input", "onceproof.r.t-ids-changelog"]),
    partition=st.integers(0, 2**31 - 1),
    offset=OFFSETS,
    timestamp=st.integers(-1, 2**62),
    key=SOME_BYTES,
    value=SOME_BYTES,
    headers=HEADERS,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(MESSAGES, max_size=9), st.integers(1, 4))
def test_they_are_as_they_were_however_they_are_packed(tmp_path_factory, read, together):
    file = tmp_path_factory.mktemp("kept") / "topics" / "committed.parquet"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(messages, "TOGETHER", together)
        log = MessageLog()
        for message in read:
            log.append(message)
        log.write(file)
    assert [message._replace(headers=list(message.headers)) for message in read_messages(file)] == read
