"""Thread dumps of instances: what a program that makes no progress is doing."""

import shutil
import subprocess
from pathlib import Path

DUMP_SECONDS = 10


def dump_threads(java: str, pid: int, file: Path) -> str | None:
    """Write the stack of every thread of a JVM to a file, by the jcmd of this `java`.

    Returns:
        Why there is no dump, or None if it was written.
    """
    jcmd = _jcmd(java)
    if jcmd is None:
        return "there is no jcmd next to the java that is used; a JDK has it"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        asked = subprocess.run(
            [jcmd, str(pid), "Thread.print", "-l"], capture_output=True, text=True, timeout=DUMP_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"jcmd did not answer: {error}"
    if asked.returncode:
        return f"jcmd ended with {asked.returncode}: {(asked.stderr or asked.stdout).strip()}"
    file.write_text(asked.stdout)
    return None


def _jcmd(java: str) -> str | None:
    found = shutil.which(java)
    beside = Path(found).resolve().with_name("jcmd") if found else None
    return str(beside) if beside and beside.is_file() else shutil.which("jcmd")
