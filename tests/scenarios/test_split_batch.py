"""KAFKA-19479: the independent reader's judgement on the specimens, and what is generated."""

from onceproof.scenarios.split_batch import SCENARIO, splits_in, workload
from tests.conftest import a_trial


def test_each_record_has_a_key_of_its_own():
    made = workload(a_trial("4.3.1", scenario="split-batch", committed=50, burst=400))
    assert [key for key, _ in [*made.first, *made.second]] == list(range(450))
    assert (len(made.first), len(made.second)) == (50, 400)
    assert made == workload(a_trial("4.3.1", scenario="split-batch", committed=50, burst=400))


def test_the_burst_fits_into_a_batch_that_the_topic_rejects():
    parameters = SCENARIO.values(a_trial("4.3.1", scenario="split-batch"))
    least, most = 10 * parameters["burst"], 24 * parameters["burst"]  # bytes: key, value, and what is around them
    assert parameters["taken.bytes"] < least
    assert most < parameters["batch.bytes"]


def test_splits_are_counted_in_the_log_of_the_producer(tmp_path):
    log = tmp_path / "a.log"
    text = "[Producer clientId=a] Got error produce response in correlation id 7 on topic-partition out-0"
    log.write_text(
        f"WARN {text}, splitting and retrying (2147483647 attempts left). Error: MESSAGE_TOO_LARGE\n"
        f"WARN {text}, retrying (2147483646 attempts left). Error: NOT_LEADER_OR_FOLLOWER\n"
        f"WARN {text}, splitting and retrying (2147483645 attempts left). Error: MESSAGE_TOO_LARGE\n"
    )
    assert splits_in(log) == 2


def test_its_application_is_not_restarted_on_another_release():
    refusal = SCENARIO.refuse(a_trial("4.3.1", scenario="split-batch", restart_on="4.2.0").cell)
    assert refusal == "the application of split-batch is not restarted; leave out the release 4.2.0 to restart on."
