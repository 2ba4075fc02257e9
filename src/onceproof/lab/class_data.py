"""Class data sharing: a JVM that has run once with a class path starts faster afterwards.

The first JVM with a class path that ends cleanly leaves an archive of the loaded classes (JEP 350), which later ones
map. The JVM itself ignores an archive that does not fit its jars. Measured on two busy cores, spawn to RUNNING: 2.0 s
without and 1.5 s with it for Kafka Streams 3.3.1.
"""

import contextlib
import hashlib
import os
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onceproof.installation import Installation

# What the JVM says about an archive must not appear among the lines of the protocol.
QUIET = ("-Xlog:disable", "-Xlog:all=warning:stderr")
_recording: set[Path] = set()  # by this process: one JVM records, so the others need not
_recording_lock = threading.Lock()


@dataclass(frozen=True)
class ClassData:
    """The archive of one class path: used if it exists, else recorded."""

    archive: Path
    recorded: Path | None

    @classmethod
    def of(cls, installation: Installation, class_path: Sequence[Path]) -> "ClassData":
        """The archive for a class path, among the artifacts; each Java has its own."""
        java = shutil.which(installation.java)
        digest = hashlib.sha256(str(java and Path(java).resolve()).encode())
        for jar in class_path:
            digest.update(f"{jar}:{jar.stat().st_mtime_ns}".encode())
        archive = installation.artifacts / "class-data" / f"{digest.hexdigest()[:16]}.jsa"
        with _recording_lock:
            if archive.exists() or archive in _recording or not os.access(installation.artifacts, os.W_OK):
                return cls(archive, None)
            _recording.add(archive)
        return cls(archive, archive.with_suffix(f".{os.getpid()}"))

    @property
    def flags(self) -> tuple[str, ...]:
        """Options for the JVM."""
        if self.recorded is not None:
            with contextlib.suppress(OSError):
                self.archive.parent.mkdir(parents=True, exist_ok=True)
            return (*QUIET, f"-XX:ArchiveClassesAtExit={self.recorded}")
        if self.archive.exists():
            return (*QUIET, f"-XX:SharedArchiveFile={self.archive}")
        return QUIET

    @property
    def records(self) -> bool:
        """Whether an orderly end of the JVM is worth waiting for."""
        return self.recorded is not None

    def keep(self) -> None:
        """Keep what was recorded, after an orderly end."""
        if self.recorded is not None:
            _recording.discard(self.archive)
            with contextlib.suppress(OSError):  # none was written: the next JVM records
                self.recorded.replace(self.archive)
