"""The version of the harness: the same as long as trials have the same chance of finding a bug.

A number of ours would not be updated when a wait or a fault changes, so it is the package's version and a digest of
the sources that drive and read a trial: those of the application under test, the scenarios, the lab, and the phrases of
Kafka's logs by which something counts as seen.
"""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

from onceproof.installation import PROJECT

PACKAGE = Path(__file__).parent
JAVA = ("streams_agent", "streams_app")  # of the project: what runs in a trial
ROOMS = ("faults", "scenarios", "readers", "lab")  # those that exist
PHRASES = "phrases.py"  # of the model: by which what they drive counts as seen
SOURCES = {".py", ".java", ".properties"}


@cache
def harness_version() -> str:
    """For example `0.1.0+3f2a9c01`."""
    digest = hashlib.sha256()
    wanted = [
        *((PACKAGE / room, "*") for room in ROOMS),
        *((PROJECT / name / "src" / "main", "*") for name in JAVA),
        (PACKAGE / "model", PHRASES),
    ]
    for folder, name in wanted:
        for file in sorted(file for file in folder.rglob(name) if file.suffix in SOURCES):
            digest.update(f"{file.relative_to(folder.parents[1])}\0".encode())
            digest.update(file.read_bytes())
    return f"{version('onceproof')}+{digest.hexdigest()[:8]}"
