"""The version of the harness changes with what it is a digest of, and with nothing else."""

import re

from onceproof import harness
from onceproof.harness import harness_version


def version_of(monkeypatch, package):
    monkeypatch.setattr(harness, "PACKAGE", package)
    monkeypatch.setattr(harness, "PROJECT", package.parents[1])
    harness_version.cache_clear()
    try:
        return harness_version()
    finally:
        harness_version.cache_clear()


def test_it_is_the_package_s_version_and_a_digest():
    assert re.fullmatch(r"\d+\.\d+\.\d+\+[0-9a-f]{8}", harness_version())


def test_a_wait_that_changes_in_the_lab_or_the_application_is_another_harness(monkeypatch, tmp_path):
    package = tmp_path / "src" / "onceproof"
    lab, phrases, page, app = (
        package / "lab" / "trial.py",
        package / "model" / "phrases.py",
        package / "page" / "app.py",
        tmp_path / "streams_app" / "src" / "main" / "A.java",
    )
    for file in (lab, phrases, page, app):
        file.parent.mkdir(parents=True)
        file.write_text("wait 1")
    first = version_of(monkeypatch, package)
    page.write_text("wait 2")
    assert version_of(monkeypatch, package) == first
    for file in (lab, phrases, app):
        file.write_text("wait 2")
        assert version_of(monkeypatch, package) != first
        file.write_text("wait 1")
