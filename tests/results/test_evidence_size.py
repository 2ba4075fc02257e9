"""An archive of files of any size: its making takes no more memory, and what is cut off is said."""

import json
import re
import subprocess
import sys
import zipfile

import pytest

from onceproof.results.evidence.archive import write_evidence
from onceproof.results.evidence.lines import BLOCK, LARGEST, LONGEST, Line, shorten
from tests.results.test_evidence import GREEN, LOG, RED, contents, make_run, stamp

MEASURED = """
import resource, sys
from pathlib import Path
from onceproof.model.run_folder import RunFolder
from onceproof.results.evidence.archive import write_evidence
write_evidence(RunFolder(Path(sys.argv[1])), sys.argv[2], Path(sys.argv[3]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "runs")[0]


def log_of(run, cell, trial):
    return run.trial(f"{cell.key}-t{trial}").instances / "instance-1.log"


def peak(run, cell, target):
    """MiB that a process takes at most that writes an archive."""
    command = [sys.executable, "-c", MEASURED, str(run.path), cell.key, str(target)]
    return int(subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout)


def test_a_file_that_is_too_large_shows_its_first_and_last_lines():
    entry = [Line(f"{stamp(20)} WARN it failed\n"), *[Line("\tat a.b.C\n")] * 8]
    lines = [Line("first\n"), *entry * 100, Line("last\n")]
    shown = "".join(line.text + line.note for line in shorten(lambda: lines, 2_000))
    total = sum(len(line.text) for line in lines)
    sentence = re.search(r"\n\[([\d,]+) of ([\d,]+) characters are left out here: .*\]\n\n(?=\[2026)", shown)
    assert sentence is not None
    left_out, of = (int(number.replace(",", "")) for number in sentence.groups())
    assert (of, len(shown) - len(sentence[0])) == (total, total - left_out)
    assert shown.startswith("first\n")
    assert shown.endswith("last\n")
    assert len(shown) < 2_000 + len(sentence[0])
    assert list(shorten(lambda: lines, total)) == lines


def test_of_a_file_without_times_the_first_lines_are_shown():
    shown = list(shorten(lambda: [Line("abc\n")] * 1_000, 400))
    assert shown[:-1] == [Line("abc\n")] * 50
    assert "3,800 of 4,000 characters are left out here" in shown[-1].note


@pytest.mark.night
def test_a_log_of_300_mb_needs_no_more_memory(tmp_path, run):
    small = peak(run, GREEN, tmp_path / "small.zip")
    frame = "\tat org.apache.kafka.streams.processor.internals.StreamTask.process(StreamTask.java:812)"
    entry = f"{stamp(20)} WARN it failed\n" + f"{frame * 40}\n" * 20
    with log_of(run, GREEN, 1).open("w") as log:
        log.write(f"{stamp(20)} INFO the first line\n")
        for _ in range(300 * 1024 * 1024 // len(entry)):
            log.write(entry)
        log.write(f"{stamp(20)} INFO the last line\n")
    size = log_of(run, GREEN, 1).stat().st_size
    assert peak(run, GREEN, tmp_path / "large.zip") < small + 64
    with zipfile.ZipFile(tmp_path / "large.zip") as archive:
        for member in ("logs/whole/instance-1.log", "logs/window/instance-1.log"):
            text = archive.read(member).decode()
            assert LARGEST - 2 * len(entry) < len(text) < LARGEST + 1_000
            assert text.startswith(f"{stamp(20)} INFO the first line\n")
            assert text.endswith(f"{stamp(20)} INFO the last line\n")
            [sentence] = [line for line in text.splitlines() if "left out here" in line]
            left_out = int(sentence.removeprefix("[").partition(" ")[0].replace(",", ""))
            assert left_out + len(text) == size + len(sentence) + 3


@pytest.mark.parametrize("before", range(0, 1_200, 200))
def test_a_secret_of_several_lines_is_removed_across_blocks(tmp_path, run, before):
    lines = "".join(f"MIIEvQIBADANBgkqhkiG9w0BAQEF{number:04}+/\n" for number in range(26))
    secrets = (
        f"{stamp(21)} INFO key\n-----BEGIN PRIVATE KEY-----\n{lines}-----END PRIVATE KEY-----\n"
        '\tsasl.jaas.config = org.apache.PlainLoginModule required \\\n  username="jaas-user" \\\n  password="j-pass";\n'
    )
    pad = f"{stamp(20)} INFO harmless\n"
    start = pad * ((BLOCK - before) // len(pad))
    log_of(run, GREEN, 1).write_text(f"{LOG.splitlines()[0]}\n{start}{secrets}{pad}")
    members = contents(write_evidence(run, GREEN.key, tmp_path / "evidence.zip"))
    for member in ("logs/whole/instance-1.log", "logs/window/instance-1.log"):
        assert not re.search("MIIE|jaas-user|j-pass|PRIVATE", members[member])
        assert members[member].endswith(f"INFO key\n***\n\tsasl.jaas.config = ***\n{pad}")


def test_a_secret_that_the_cut_of_a_line_divides_is_not_shown(tmp_path, run):
    secret = "hunter2-" * 20
    for beyond in (1, 80, len(secret)):
        long = f"{stamp(21)} INFO ".ljust(LONGEST - beyond, "x") + secret + "y" * 10_000_000
        log_of(run, GREEN, 1).write_text(f"{stamp(20)} INFO the.password={secret}\n{long}\n{stamp(22)} INFO after\n")
        text = contents(write_evidence(run, GREEN.key, tmp_path / "evidence.zip"))["logs/whole/instance-1.log"]
        assert "hunt" not in text
        assert "bytes of this line are left out]\n" in text
        assert text.endswith(f"{stamp(22)} INFO after\n")
        assert len(text) < LONGEST + 1_000


def test_a_line_of_a_timeline_that_is_too_long_is_text(tmp_path, run):
    timeline = run.trial(f"{RED.key}-t2").timeline
    timeline.write_text(f"{timeline.read_text()}\n" + json.dumps({"t": 1, "value": "v" * 2 * LONGEST}) + "\n")
    lines = contents(write_evidence(run, RED.key, tmp_path / "evidence.zip"))["trial/timeline.jsonl"].splitlines()
    assert json.loads(lines[-1]).endswith("bytes of this line are left out]")


def test_a_time_that_there_is_not_is_no_time(tmp_path, run):
    log_of(run, RED, 2).write_text(f"{stamp(20)} INFO within\n[2026-13-45T12:36:20.000+0000] INFO odd\n")
    members = contents(write_evidence(run, RED.key, tmp_path / "evidence.zip"))
    assert members["logs/window/instance-1.log"].endswith("INFO odd\n")
