"""A PostgreSQL from Debian's packages, on loopback."""

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from onceproof.lab.cluster import free_ports
from onceproof.processes.process import Process, spawn, tail
from onceproof.processes.waiting import await_condition

INITDB = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
USER = "postgres"  # of Debian's packages: PostgreSQL does not run as root


@dataclass
class PostgreSQL:
    """The tests' own server."""

    folder: Path
    port: int
    password: str
    process: Process = field(init=False)

    def url(self, name: str, scheme: str = "postgresql+psycopg") -> str:
        return f"{scheme}://{USER}:{self.password}@127.0.0.1:{self.port}/{name}"

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.url("postgres", "postgresql"), autocommit=True, connect_timeout=5)

    def create(self, name: str) -> None:
        """Create a database."""
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")

    def prepare(self) -> None:
        """Make its data folder."""
        password_file = self.folder / "password"
        password_file.write_text(self.password)
        if os.geteuid() == 0:
            for path in (self.folder, password_file):
                shutil.chown(path, USER, USER)
        options = ["--auth=scram-sha-256", f"--pwfile={password_file}", "--encoding=UTF8", "--locale=C", "--no-sync"]
        subprocess.run(
            [*_as_user(), INITDB[-1], f"--pgdata={self.folder / 'data'}", f"--username={USER}", *options],
            check=True,
            capture_output=True,
            text=True,
            cwd=self.folder,
        )

    def start(self) -> None:
        """Start it, over the data that it has, and wait until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "dynamic_shared_memory_type": "mmap",  # in its folder: nothing stays in /dev/shm after a kill
            "fsync": "off",
            "timezone": "Pacific/Auckland",  # far from UTC: times that are local by mistake are seen
        }
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        command = [*_as_user(), str(INITDB[-1].with_name("postgres")), "-D", str(self.folder / "data"), *arguments]
        self.process = spawn(command, log=self.folder / "log")
        await_condition("PostgreSQL", lambda: self._answers() or self.process.poll() is not None, timeout=60)
        assert self.process.poll() is None, tail(self.process.log)

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """A server that is gone with us: the reaper kills it if we are killed."""
    # Not below pytest's folder, which is closed to other users.
    server = PostgreSQL(Path(tempfile.mkdtemp(prefix="onceproof-postgresql-")), free_ports(1)[0], secrets.token_hex(16))
    try:
        server.prepare()
        server.start()
        try:
            yield server
        finally:
            server.process.terminate()
    finally:
        shutil.rmtree(server.folder, ignore_errors=True)


def _as_user() -> list[str]:
    if os.geteuid() != 0:
        return []
    # When a process changes its user, the kernel forgets whose death is to end it, so it is told again.
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--pdeathsig=KILL", "--"]
