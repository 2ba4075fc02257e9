"""An atlas as a file: the same bytes for the same measurements, and nothing that was cut or altered is believed."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from onceproof.atlas.file import COLUMNS, TABLES, read_atlas, write_atlas
from onceproof.model.errors import UsageError
from tests.specimens.atlas import TIMELINE, a_cell, measured_as

ALL = (
    measured_as("known", timeline=TIMELINE),
    measured_as("clean", a_cell("3.10.0")),
    measured_as("regression", a_cell("3.9.1 → 4.4.0", "ROLLING"), sentence="'; DROP TABLE cells; --\N{SNOWMAN}"),
    measured_as("inconclusive", a_cell("4.4.0"), seconds=None),
)


@pytest.fixture
def file(tmp_path):
    """A file with all of them."""
    file = tmp_path / "an atlas?#.sqlite"
    write_atlas(file, ALL)
    return file


def test_what_is_written_is_read(file):
    assert list(read_atlas(file)) == sorted(ALL, key=lambda one: one.place)


def test_a_file_from_before_there_were_timelines_is_read(file, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr("onceproof.atlas.file.COLUMNS", COLUMNS[:-1])
        before.setattr(
            "onceproof.atlas.file.TABLES", tuple(table.replace(', "timeline" TEXT NOT NULL', "") for table in TABLES)
        )
        write_atlas(file, ALL)
    assert list(read_atlas(file)) == sorted((replace(one, timeline=()) for one in ALL), key=lambda one: one.place)


def test_equal_measurements_give_equal_bytes_in_any_order(file, tmp_path):
    other = tmp_path / "other.sqlite"
    checksum = write_atlas(other, reversed(ALL))
    assert other.read_bytes() == file.read_bytes()
    assert len(checksum) == 64
    assert write_atlas(other, ALL[:1]) != checksum
    assert other.read_bytes() != file.read_bytes()


def test_releases_are_in_their_order(file):
    assert [one.cell.releases for one in read_atlas(file)] == ["3.4.0", "3.10.0", "4.4.0", "3.9.1 → 4.4.0"]


def test_sqlite_itself_finds_the_file_sound(file):
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT count(*) FROM cells WHERE verdict = 'known'").fetchone() == (1,)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE cells SET verdict = 'clean'", "checksum"),
        ("DELETE FROM cells WHERE verdict = 'known'", "checksum"),
        ("DELETE FROM about WHERE name = 'checksum'", "checksum"),
        ("UPDATE about SET value = '99' WHERE name = 'schema'", "schema 99"),
        ("DROP TABLE cells", "no atlas"),
        ("ALTER TABLE cells DROP COLUMN red", "checksum"),
    ],
)
def test_what_was_altered_is_no_evidence(file, statement, expected):
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(statement)
    with pytest.raises(UsageError, match=expected):
        read_atlas(file)


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(200)])
def test_what_is_no_database_is_refused_in_a_sentence(tmp_path, content):
    file = tmp_path / "none.sqlite"
    file.write_bytes(content)
    with pytest.raises(UsageError, match="is no atlas"):
        read_atlas(file)


def test_a_file_that_was_cut_is_refused(file):
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(UsageError, match=r"is no atlas|checksum"):
        read_atlas(file)


def test_no_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(UsageError, match="There is no atlas"):
        read_atlas(tmp_path / "absent")
    with pytest.raises(UsageError, match="is a folder"):
        write_atlas(tmp_path, ALL)


def test_a_verdict_that_there_is_not_is_refused(tmp_path, file, monkeypatch):
    monkeypatch.setattr("onceproof.atlas.file._checksum", lambda rows: "any")
    write_atlas(file, ALL)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE cells SET verdict = 'splendid' WHERE verdict = 'known'")
    with pytest.raises(UsageError, match=r"row 1: verdict must be 'regression', .*, not .splendid"):
        read_atlas(file)
