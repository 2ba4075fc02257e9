"""The databases on which the tests of the results run: SQLite, and a PostgreSQL from Debian's packages."""

import itertools
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from onceproof.lab.cluster import free_ports
from onceproof.lab.processes import await_condition, spawn, tail

INITDB = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
USER = "postgres"  # of Debian's packages: PostgreSQL does not run as root
NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class PostgreSQL:
    """The tests' own server, on loopback."""

    port: int
    password: str

    def url(self, name: str, scheme: str = "postgresql+psycopg") -> str:
        return f"{scheme}://{USER}:{self.password}@127.0.0.1:{self.port}/{name}"

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.url("postgres", "postgresql"), autocommit=True, connect_timeout=5)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """Started once, and gone with the tests: the reaper kills it if they are killed."""
    if not INITDB:
        pytest.skip("no PostgreSQL in /usr/lib/postgresql: apt-get install postgresql")
    # Not below pytest's folder, which is closed to other users.
    folder = Path(tempfile.mkdtemp(prefix="onceproof-postgresql-"))
    log, data, password_file = folder / "log", folder / "data", folder / "password"
    server = PostgreSQL(free_ports(1)[0], secrets.token_hex(16))
    password_file.write_text(server.password)
    as_user: list[str] = []
    if os.geteuid() == 0:
        for path in (folder, password_file):
            shutil.chown(path, USER, USER)
        # When a process changes its user, the kernel forgets whose death is to end it, so it is told again.
        as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--pdeathsig=KILL", "--"]
    try:
        options = ["--auth=scram-sha-256", f"--pwfile={password_file}", "--encoding=UTF8", "--locale=C", "--no-sync"]
        subprocess.run(
            [*as_user, INITDB[-1], f"--pgdata={data}", f"--username={USER}", *options],
            check=True,
            capture_output=True,
            text=True,
            cwd=folder,
        )
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": server.port,
            "unix_socket_directories": "",
            "dynamic_shared_memory_type": "mmap",  # in its folder: nothing stays in /dev/shm after a kill
            "fsync": "off",
            "timezone": "Pacific/Auckland",  # far from UTC: times that are local by mistake are seen
        }
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        process = spawn([*as_user, str(INITDB[-1].with_name("postgres")), "-D", str(data), *arguments], log=log)
        try:
            await_condition("PostgreSQL", lambda: _answers(server) or process.poll() is not None, timeout=60)
            assert process.poll() is None, tail(log)
            yield server
        finally:
            process.terminate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answers(server: PostgreSQL) -> bool:
    try:
        server.connect().close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/results.db"
    server = request.getfixturevalue("postgresql")
    name = f"results_{next(NUMBERS)}"
    with server.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.url(name)
