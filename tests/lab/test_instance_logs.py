"""What the log of an instance of an application says of its records."""

from onceproof.lab.instance_logs import read_logged

AT = "[2026-11-27T03:39:{:02}.000+0000] WARN [app-StreamThread-1] "
FENCED = "stream-thread [app-StreamThread-1] Detected that the thread is being fenced."
POSITIONED = "Setting offset for partition orders-0 to the committed offset FetchPosition{offset=1307, "
SKIPPED = "Skipping record due to deserialization error. topic=[accounts] partition=[0] offset=[113]"
UNSENT = "Error encountered sending record to topic app-counts-changelog for task 0_1 due to:"
CONTINUED = "Exception handler choose to CONTINUE processing"


def read(tmp_path, *lines):
    log = tmp_path / "0.instance-1.log"
    log.write_text("".join(f"{AT.format(second)}{line}\n" for second, line in lines))
    return list(read_logged(log))


def test_skipped_and_dropped_records_are_counted_by_place(tmp_path):
    said = read(tmp_path, (1, SKIPPED), (2, SKIPPED), (3, CONTINUED), (4, UNSENT), (5, CONTINUED))
    assert said == [
        {"what": "skipped", "topic": "accounts", "partition": 0, "times": 2},
        {"what": "dropped", "topic": "app-counts-changelog", "task": "0_1", "times": 1},
    ]


def test_a_position_counts_from_the_first_fencing_on(tmp_path):
    said = read(tmp_path, (0, POSITIONED), (1, FENCED), (2, POSITIONED), (9, FENCED), (10, POSITIONED))
    assert said == [
        {"what": "fenced", "place": "orders-0", "offset": 1307, "times": 2, "apart": 8000, "late": 0},
    ]
