"""The evidence of one cell as an archive that can be attached to a JIRA as it is.

```
README.md                              verdict, rate, how to repeat it, versions, witnesses, timeline
verdict.json                           the verdict as the run has it
trial/                                 the first red trial (of a cell that is not red: the first that ended well)
  trial.json, outcome.json, reader.json, observations.json, timeline.jsonl, preload.jsonl, contents/, dumps/
  state/files.csv, state/.../.checkpoint   state directories, where a failed trial left them
tables/records-around-witnesses.csv    records of each role with a witness's key, or near its place
tables/findings.csv                    what Spark found in the trial
logs/whole/, logs/window/              the instances' logs, and the same cut to the window of the fault
logs/threads/                          what their threads were doing when the trial was stuck
other-trials/<trial>/                  of the cell's other trials: trial.json, outcome.json, reader.json
```

The window begins 5 s before the first fault: a step, a changed topic or quota, a crash, a killed instance, an
exception; of a trial without any, the first instance that is closed or started again. It ends 5 s after the input was
drained, or with the log.
"""

import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.json_file import encoded, replacing
from onceproof.model.run_folder import RunFolder
from onceproof.results.evidence.case import Case, find_case
from onceproof.results.evidence.readme import readme
from onceproof.results.evidence.records import findings, records_near
from onceproof.results.evidence.text import as_csv, escaped, moment
from onceproof.results.evidence.window import cut, window_of
from onceproof.results.redaction import Redaction

EPOCH = (1980, 1, 1, 0, 0, 0)  # the first that a zip can hold: the same run gives the same bytes


@dataclass(frozen=True)
class Member:
    """One file of the archive: text, or what a JSON file holds, or the lines of a JSONL file."""

    name: str
    content: Any
    form: str = "text"

    def redacted(self, redaction: Redaction) -> bytes:
        """Its bytes, without what must not leave the machine."""
        if self.form == "json":
            return json.dumps(redaction.data(self.content), indent=2).encode()
        if self.form == "jsonl":
            return "".join(json.dumps(redaction.data(line)) + "\n" for line in self.content).encode()
        return redaction.text(self.content).encode()


def write_evidence(run: RunFolder, cell: str, target: Path | None = None) -> Path:
    """Write the archive as a whole or not at all; without a target, into `evidence/` of the run folder.

    The same run gives the same bytes. Any judged cell has evidence, not only a red one; of the run of a user
    application, any release.

    Returns:
        Where it is.

    Raises:
        UsageError: the run is not judged, the cell is not one of its cells, or the target is a folder.
        HarnessError: the run is damaged, or the disk is full or read-only.
    """
    case = find_case(run, cell)
    target = target or run.path / "evidence" / f"{run.run_id}-{case.cell.key}.zip"
    if target.is_dir():
        raise UsageError(f"{target} is a folder: name a file for the archive.")
    redaction = Redaction.of(run)

    def redacted(text: str) -> str:
        """As Markdown; redacted before, since with backslashes in it no path and no secret would be known."""
        return escaped(redaction.text(text))

    try:
        members = list(_members(case))
        for member in members:
            redaction.learn(member.content)
        tables = any(member.name.startswith("tables/") for member in members)
        members.append(Member("README.md", readme(case, window_of(case.events), tables, redacted)))
    except (OSError, ValueError) as error:
        raise HarnessError(
            f"A file of run {run.run_id} could not be read ({error}): it is incomplete or damaged."
        ) from error
    members.sort(key=lambda member: member.name)
    _write(target, [(member.name, member.redacted(redaction)) for member in members])
    return target


def _write(target: Path, members: Iterable[tuple[str, bytes]]) -> None:
    """A zip, because JIRA lists what is in one beside the attachment, and every system opens it by itself."""
    with (
        replacing(target, named=True) as draft,
        draft.open("wb") as file,
        zipfile.ZipFile(file, "w") as archive,
    ):
        for name, content in members:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever it is written
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)


def _members(case: Case) -> Iterator[Member]:
    """All files of the archive, not yet redacted."""
    folder = case.folder
    yield Member("verdict.json", encoded(case.verdict), "json")
    for file in (folder.trial_file, folder.outcome_file, folder.reader_file, folder.observations_file):
        yield from _json_member(file, f"trial/{file.name}")
    for file in (folder.timeline, folder.preload, folder.path / "seed.jsonl"):  # the last is what older runs have
        if file.exists():
            yield Member(f"trial/{file.name}", _json_lines(file), "jsonl")
    for file in sorted(folder.contents.glob("*.csv")):
        yield Member(f"trial/contents/{file.name}", _text(file))
    for dump in (*folder.dumps(), *folder.entry_dumps()):
        yield Member(f"trial/dumps/{dump.file.name}", _text(dump.file))
    yield from _state(folder.state)
    tables = {"records-around-witnesses": records_near(case), "findings": findings(case)}
    for name, table in tables.items():
        if table is not None:
            yield Member(f"tables/{name}.csv", table)
    window = window_of(case.events)
    for log in sorted(folder.instances.glob("*.log")):
        whole = _text(log)
        yield Member(f"logs/whole/{log.name}", whole)
        if window is not None:
            yield Member(f"logs/window/{log.name}", cut(whole, *window))
    for threads in sorted(folder.threads.glob("*.txt")):
        yield Member(f"logs/threads/{threads.name}", _text(threads))
    for trial in case.trials:
        if trial != case.shown:
            other = case.run.trial(trial)
            for file in (other.trial_file, other.outcome_file, other.reader_file):
                yield from _json_member(file, f"other-trials/{trial.key}/{file.name}")


def _json_member(file: Path, name: str) -> Iterator[Member]:
    if file.exists():
        text = _text(file)
        try:
            yield Member(name, json.loads(text), "json")
        except ValueError:
            yield Member(name, text)


def _json_lines(file: Path) -> list[Any]:
    """The content of each line; a line that was cut off as it is. Nothing if there is no file."""
    if not file.exists():
        return []
    lines: list[Any] = []
    for line in _text(file).splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            lines.append(line)
    return lines


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _state(folder: Path) -> Iterator[Member]:
    """The state directories that a failed trial left: names, sizes, times, and the checkpoints themselves."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if not files:
        return
    rows = []
    for file in files:
        name, stat = file.relative_to(folder).as_posix(), file.stat()
        rows.append((name, stat.st_size, moment(stat.st_mtime * 1000)))
        if file.name.startswith(".checkpoint"):
            yield Member(f"trial/state/{name}", _text(file))
    yield Member("trial/state/files.csv", as_csv(("path", "bytes", "modified"), rows))
