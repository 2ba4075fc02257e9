"""The databases on which the tests of the results run: SQLite, and a PostgreSQL from Debian's packages."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.specimens.postgresql import PostgreSQL
from tests.specimens.postgresql import postgresql as started

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """Started once, and gone with the tests."""
    with started() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/results.db"
    server: PostgreSQL = request.getfixturevalue("postgresql")
    name = f"results_{next(NUMBERS)}"
    server.create(name)
    return server.url(name)
