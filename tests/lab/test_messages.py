"""Messages that are kept are read again as they were."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onceproof.lab import messages
from onceproof.lab.messages import MessageLog, TopicMessage, read_messages
from onceproof.model.errors import HarnessError

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


@pytest.mark.parametrize("length", [None, 0, 3, 40, -1])
def test_a_file_that_is_missing_or_cut_is_an_error(tmp_path, length):
    file = tmp_path / "committed.parquet"
    MessageLog().write(file)
    assert list(read_messages(file)) == []
    if length is None:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(HarnessError, match=r"^The messages in \S+committed.parquet cannot be read: "):
        list(read_messages(file))
