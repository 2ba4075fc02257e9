"""What the deployment in containers is made of, and whether its tests passed with exactly that.

When all tests in containers have passed, which `make test-night` runs, they write the digest of these files to
`passed.txt`, which is committed. What the image copies is not among the files: it
changes with each commit, and `tests/test_image.py` builds it each time, without an engine. Nor are the tests: who
corrects one need not run them all.

    python3 tests/docker/inputs.py    exit code 1 if one of them has changed since; needs nothing but Python
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PASSED = Path(__file__).with_name("passed.txt")
LOCKS = ("requirements-image.lock", "requirements-plain.lock", "requirements-uv.lock")
FILES = ("Dockerfile", ".dockerignore", "docker-compose.yml", *LOCKS)
FOLDERS = ("deploy", "tests/docker/postgres", "tests/docker/redis", "tests/docker/kafka")


def inputs(root: Path = ROOT) -> Iterator[Path]:
    """Those files."""
    yield from (root / name for name in FILES)
    for folder in FOLDERS:
        yield from sorted(file for file in (root / folder).rglob("*") if file.is_file())


def digest(root: Path = ROOT) -> str:
    """A digest of their names and contents."""
    whole = hashlib.sha256()
    for file in inputs(root):
        content = file.read_bytes()
        whole.update(f"{file.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return whole.hexdigest()


def passed(root: Path = ROOT, record: Path = PASSED) -> bool:
    """Whether the tests passed with these files as they are."""
    return record.exists() and record.read_text().strip() == digest(root)


def note(tested: str) -> None:
    """They did, with files of this digest."""
    PASSED.write_text(f"{tested}\n")


if __name__ == "__main__":
    sys.exit(0 if passed() else 1)
