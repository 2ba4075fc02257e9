"""A cardboard registry behind a cardboard Maven: a test chooses what is published, and what of it is missing."""

import sys
from pathlib import Path

import pytest

from onceproof.settings import get_settings

MAVEN = """#!{python}
import re, sys
from pathlib import Path

registry = Path({registry!r})
options = dict(word[2:].split("=", 1) for word in sys.argv if word.startswith("-D") and "=" in word)
if "maven.repo.local" in options:  # the metadata is asked for
    if (registry / "unreachable").exists():
        sys.exit(print("[ERROR] Could not transfer metadata from https://registry.example/x: refused") or 1)
    folder = Path(options["maven.repo.local"], "org/apache/kafka/kafka-streams")
    folder.mkdir(parents=True, exist_ok=True)
    versions = "".join(f"<version>{{v}}</version>" for v in (registry / "versions").read_text().split())
    metadata = f"<metadata><versioning><versions>{{versions}}</versions></versioning></metadata>"
    (folder / "maven-metadata-central.xml").write_text(metadata)
    sys.exit(1)
pom = Path(sys.argv[sys.argv.index("-f") + 1]).read_text()
artifact, version = re.search("<artifactId>(kafka[^<]*)</artifactId><version>([^<]*)", pom).groups()
missing = registry / f"{{artifact}}-{{version}}.missing"
if missing.exists():
    sys.exit(print(f"[ERROR] Could not find artifact {{missing.read_text()}} in central (https://registry.example/x)") or 1)
jar = registry / f"{{artifact}}-{{version}}.jar"
jar.touch()
Path(options["mdep.outputFile"]).write_text(str(jar))
"""


class Registry:
    """What is published."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def publish(self, *versions: str) -> None:
        """These, and no others."""
        (self._folder / "versions").write_text(" ".join(versions))

    def lack(self, artifact: str, version: str, what: str) -> None:
        """Let an artifact need what is not there."""
        (self._folder / f"{artifact}-{version}.missing").write_text(what)

    def complete(self) -> None:
        """Have everything that is published."""
        for missing in self._folder.glob("*.missing"):
            missing.unlink()

    def hide(self) -> None:
        """Be unreachable."""
        (self._folder / "unreachable").touch()


@pytest.fixture
def registry(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    folder = tmp_path / "registry"
    folder.mkdir()
    command = folder / "mvn"
    command.write_text(MAVEN.format(python=sys.executable, registry=str(folder)))
    command.chmod(0o755)
    monkeypatch.setenv("ONCEPROOF_MAVEN", str(command))
    get_settings.cache_clear()
    return Registry(folder)
