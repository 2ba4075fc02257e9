from pathlib import Path

from onceproof.lab.class_data import ClassData
from onceproof.settings import Settings


def test_each_class_path_and_each_java_has_an_archive_of_its_own(tmp_path):
    jars, javas = [tmp_path / name for name in ("a.jar", "b.jar")], [tmp_path / name for name in ("17", "25")]
    for file in (*jars, *javas):
        file.touch(mode=0o755)

    def archive(java: Path, jar: Path) -> Path:
        return ClassData.of(Settings(java=str(java), home=tmp_path).installation, [jar]).archive

    archives = [archive(java, jar) for java in javas for jar in jars]
    assert len(set(archives)) == 4
    assert archive(javas[0], jars[0]) == archives[0]
