"""The commands `atlas`: what they print and return, and that bad input is one sentence."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from onceproof import cli
from onceproof.atlas import shipped
from onceproof.atlas.file import read_atlas, write_atlas
from onceproof.model.errors import UsageError
from onceproof.model.matrix import Request
from onceproof.settings import get_settings
from tests.atlas.test_atlas_plan import KNOWN, cells_of
from tests.page.conftest import NEWEST, OLDER, VERDICTS, make_run
from tests.specimens.atlas import a_cell, measured_as


@pytest.fixture
def onceproof(tmp_path, monkeypatch):
    """The command, in this process, over the test's own home."""
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path / "home"))
    get_settings.cache_clear()
    yield lambda *arguments: CliRunner().invoke(cli.app, list(map(str, arguments)))
    get_settings.cache_clear()


@pytest.fixture
def atlas(tmp_path):
    """Writes an atlas of a name."""

    def write(name, *measurements):
        write_atlas(tmp_path / name, measurements)
        return tmp_path / name

    return write


def test_runs_are_exported_all_or_those_that_are_named(onceproof, tmp_path):
    for run, verdicts in VERDICTS.items():
        make_run(tmp_path / "home" / "runs", run, verdicts)
    all_, one = tmp_path / "all.sqlite", tmp_path / "one.sqlite"
    done = onceproof("atlas", "export", "--output", all_)
    assert done.exit_code == 0, done.output
    assert "checksum " in done.stdout
    assert {found.run for found in read_atlas(all_)} == {OLDER, NEWEST}
    assert onceproof("atlas", "export", NEWEST, "--output", one).exit_code == 0
    assert {found.run for found in read_atlas(one)} == {NEWEST}
    before = all_.read_bytes()
    onceproof("atlas", "export", "--output", all_)
    assert all_.read_bytes() == before


def test_without_a_judged_run_there_is_nothing_to_export(onceproof):
    done = onceproof("atlas", "export")
    assert isinstance(done.exception, UsageError)
    assert "has no judged run" in str(done.exception)


def test_two_machines_are_merged(onceproof, atlas, tmp_path):
    one, other = atlas("one", measured_as("known")), atlas("other", measured_as("clean", a_cell("3.4.1")))
    merged = tmp_path / "merged"
    assert onceproof("atlas", "merge", one, other, "--output", merged).exit_code == 0
    assert len(read_atlas(merged)) == 2
    first = merged.read_bytes()
    onceproof("atlas", "merge", other, one, one, "--output", merged)
    assert merged.read_bytes() == first


@pytest.mark.parametrize(("now", "code"), [("known", 1), ("regression", 1), ("clean", 0), ("inconclusive", 0)])
def test_a_difference_that_is_worse_has_an_exit_code(onceproof, atlas, now, code):
    old, new = atlas("old", measured_as("clean")), atlas("new", measured_as(now, day=2))
    done = onceproof("atlas", "diff", old, new)
    assert done.exit_code == code, done.output
    output = onceproof("atlas", "diff", old, new, "--json")
    assert output.exit_code == code
    assert len(json.loads(output.stdout)["changes"]) == (now != "clean")


def test_a_difference_in_words(onceproof, atlas):
    old = atlas("old", measured_as("clean"), measured_as("clean", a_cell("3.0.0")))
    new = atlas("new", measured_as("known", day=2), measured_as("clean", a_cell("3.5.0")))
    output = onceproof("atlas", "diff", old, new).stdout
    assert "newly red: 3.4.0 enumerator DEFAULT_CONFIG (broker 4.4.0)" in output
    assert "1 changed, 1 new, 1 gone." in output


def test_what_is_covered_is_shown_by_release(onceproof, atlas):
    file = atlas("some", measured_as("known"), measured_as("clean", a_cell("3.4.1"), day=2))
    answer = json.loads(onceproof("atlas", "show", file, "--json").stdout)
    measured = {row["release"]: row["measured"] for row in answer["releases"] if row["measured"]}
    assert measured == {"3.4.0": 1, "3.4.1": 1}
    assert all(row["possible"] >= row["measured"] for row in answer["releases"])
    assert "2 of " in (printed := onceproof("atlas", "show", file).stdout)
    assert "measured from 2026-11-01 to 2026-11-02, by Onceproof 0.2.0" in printed


def test_what_is_no_atlas_is_refused(onceproof, tmp_path):
    file = tmp_path / "no"
    file.write_text("no")
    for arguments in (["show", file], ["diff", file, file], ["merge", file, "--output", tmp_path / "x"]):
        done = onceproof("atlas", *arguments)
        assert isinstance(done.exception, UsageError)
        assert "is no atlas" in str(done.exception)


def test_a_shard_of_a_matrix_is_estimated(onceproof, monkeypatch):
    monkeypatch.setattr("onceproof.pipeline.steps.read_published_here", lambda: KNOWN)
    monkeypatch.setattr("onceproof.pipeline.estimate._check_releases", lambda expansion: None)
    parts = [
        json.loads(onceproof("run", "--matrix", "atlas", "--dry-run", "--json", "--shard", shard).stdout)
        for shard in ("1/2", "2/2")
    ]
    whole = {cell.key for cell in cells_of(Request("atlas"))}
    assert set(parts[0]["keys"]) | set(parts[1]["keys"]) >= whole
    assert max(part["cells"] for part in parts) < 0.6 * len(whole)
    done = onceproof("run", "--matrix", "atlas", "--dry-run", "--shard", "3/2")
    assert isinstance(done.exception, UsageError)
    assert "is no shard" in str(done.exception)


def test_the_history_of_a_cell_has_what_is_shipped(onceproof, monkeypatch):
    monkeypatch.setattr(shipped, "read_shipped", lambda: (measured_as("known"), measured_as("clean", a_cell("3.4.1"))))
    [cell] = json.loads(onceproof("results", "history", "--cell", "3.4.0", "--json").stdout)["cells"]
    assert [(one["verdict"], one["run"]) for one in cell["verdicts"]] == [("known", "20261101T021500-aaaa")]
    assert "✘" in onceproof("results", "history", "--cell", "3.4.0").stdout


def test_what_is_shipped_is_sound_and_of_published_releases():
    found = read_atlas(shipped.EVIDENCE)
    assert found
    assert not [one for one in found if one.cell.streams.commit or one.cell.broker.is_claimed]
    assert all(one.commit and one.harness and one.machine for one in found)


def test_a_package_without_its_evidence_says_so(tmp_path, monkeypatch):
    copy = tmp_path / "copy.sqlite"
    shutil.copy(shipped.EVIDENCE, copy)
    assert read_atlas(copy) == read_atlas(shipped.EVIDENCE)
    monkeypatch.setattr(shipped, "EVIDENCE", tmp_path / "gone.sqlite")
    shipped.read_shipped.cache_clear()
    with pytest.raises(UsageError, match="There is no atlas"):
        shipped.read_shipped()
    shipped.read_shipped.cache_clear()
