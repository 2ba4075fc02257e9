"""A user whom permissions bind, which root is not."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = 65_534  # has nothing of its own


@contextmanager
def bound_by_permissions(folder: Path) -> Iterator[None]:
    """Be a user whom permissions bind, and who owns this folder: for root another one."""
    if os.geteuid() != 0:
        yield
        return
    for parent in folder.parents:
        if not parent.stat().st_mode & 0o001:  # pytest's own, one more of each worker
            parent.chmod(0o755)
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, USER, USER, follow_symlinks=False)
    os.seteuid(USER)
    try:
        yield
    finally:
        os.seteuid(0)
