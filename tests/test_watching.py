"""`app run --watch`: a round at once, and another one whenever the application has changed."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner
from watchfiles import Change

from onceproof import cli
from onceproof.campaigns.application import verbs
from onceproof.cli.watching import _Named, list_watched, rounds
from onceproof.model.errors import HarnessError, UsageError
from tests.specimens.files import an_app_answer, on_release


@pytest.fixture
def words(project, tmp_path):
    """An application that may be changed, and its source."""
    folder = shutil.copytree(project / "examples" / "wordcount", tmp_path / "words")
    return folder, folder / "src" / "wordcount" / "WordCount.java"


@pytest.mark.timeout(120)  # a change that is not seen is awaited for ever
def test_it_runs_at_once_and_after_each_change_of_a_source(words):
    folder, source = words
    running = rounds(folder)
    next(running)
    source.write_text(source.read_text() + "// changed in the round, so the next one follows at once\n")
    next(running)
    replaced = source.with_suffix(".new")
    replaced.write_text(source.read_text() + "// as editors save it\n")
    replaced.rename(source)
    next(running)
    running.close()


def test_what_is_watched_is_what_the_file_names(words, tmp_path):
    folder, source = words
    assert list_watched(folder) == [folder / "onceproof.toml", folder / "src"]
    is_wanted = _Named([folder / "onceproof.toml", folder / "src"])
    assert is_wanted(Change.modified, str(source))
    assert is_wanted(Change.modified, str(folder / "onceproof.toml"))
    assert not is_wanted(Change.modified, str(folder / "notes.md"))
    assert not is_wanted(Change.modified, str(folder / "src" / ".WordCount.java.swp"))


def test_of_a_command_the_files_among_its_words_are_watched(tmp_path):
    text = """
command = ["java", "-jar", "target/shop.jar"]
[[input]]
topic = "in"
generate = { records = 3, value = "v" }
[[output]]
topic = "out"
"""
    (tmp_path / "onceproof.toml").write_text(text)
    jar = tmp_path / "target" / "shop.jar"
    jar.parent.mkdir()
    jar.touch()
    assert list_watched(tmp_path) == [tmp_path / "onceproof.toml", jar]


def test_a_change_of_an_unreadable_file_is_watched_for(tmp_path):
    (tmp_path / "onceproof.toml").write_text("no TOML")
    assert list_watched(tmp_path) == [tmp_path / "onceproof.toml"]


def test_what_cannot_be_watched_ends_it_with_a_sentence(words, monkeypatch):
    def refuse(*_, **__):
        raise OSError("no watches left")

    monkeypatch.setattr("onceproof.cli.watching.watch", refuse)
    running = rounds(words[0])
    next(running)
    with pytest.raises(HarnessError, match=r"words cannot be watched: no watches left; run it without --watch\."):
        next(running)


def test_the_command_continues_after_a_mistake_until_ctrl_c(words, monkeypatch):
    folder, source = words
    done = []

    def app_run(_run, folder, _request, seed, _given):
        done.append(seed)
        if len(done) == 1:
            source.write_text(source.read_text() + "// mended\n")
            raise UsageError("It does not compile.")
        return type("Wanted", (), {"title": Path(folder).name, "warnings": ()})

    def apply(*_):
        if len(done) == 3:
            raise KeyboardInterrupt
        source.write_text(source.read_text() + "// once more\n")
        return an_app_answer(on_release(streams="4.4.0"))

    monkeypatch.setattr(verbs, "app_run", app_run)
    monkeypatch.setattr(verbs, "apply", apply)
    ended = CliRunner().invoke(cli.app, ["app", "run", str(folder), "--streams", "4.4.0", "--watch"])
    assert len(done) == 3, (ended.output, ended.exception)
    assert len(set(done)) == 1  # the seed stays
    assert "4.4.0" in ended.stdout
    assert ended.exit_code == 130
