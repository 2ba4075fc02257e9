"""The evidence of one cell as an archive that can be attached to a JIRA as it is.

```
README.md                              verdict, rate, how to repeat it, versions, witnesses, timeline, doubts
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
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.json_file import encode, replacing
from onceproof.model.plain import plain
from onceproof.model.run_folder import RunFolder
from onceproof.results.evidence.case import EvidenceCase, find_case
from onceproof.results.evidence.closing_look import ClosingLook
from onceproof.results.evidence.lines import MARGIN, Line, blocks_of, lines_of, shorten
from onceproof.results.evidence.readme import doubtful, readme
from onceproof.results.evidence.records import findings, records_near
from onceproof.results.evidence.text import as_csv, escape, moment
from onceproof.results.evidence.window import Window, cut, window_of
from onceproof.results.redaction import Redaction

_SPECIAL = re.compile(r'[\\:*?"<>|\r\n\t]')  # in a name of a file, to a system that unpacks it
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first that a zip can hold: the same run gives the same bytes


@dataclass(frozen=True)
class Member:
    """One file of the archive: a text, or what a JSON file holds."""

    name: str
    content: Any
    is_json: bool = False

    def list_texts(self) -> Iterator[Any]:
        """The content in which secrets are looked for."""
        yield self.content

    def redact(self, redaction: Redaction) -> Iterator[str]:
        """The text that is written: nothing that must not leave the machine."""
        if self.is_json:
            yield json.dumps(redaction.data(self.content), indent=2)
        else:
            yield plain(redaction.text(self.content))


@dataclass(frozen=True)
class ArchiveStream:
    """One file of the archive that may be large, of lines that are read at each call."""

    name: str
    lines: Callable[[], Iterator[Line]]
    is_jsonl: bool = False

    def list_texts(self) -> Iterator[Any]:
        """The content in which secrets are looked for."""
        lines = self.lines()
        yield from map(_value, lines) if self.is_jsonl else (block.text for block in blocks_of(lines))

    def redact(self, redaction: Redaction) -> Iterator[str]:
        """The text that is written, in parts: nothing that must not leave the machine."""
        shown = shorten(self.lines)
        for part in shown if self.is_jsonl else blocks_of(shown):
            if part.note:
                cut = plain(redaction.text(part.text))[:-MARGIN] + part.note
                yield json.dumps(cut.strip()) + "\n" if self.is_jsonl else cut
            elif self.is_jsonl:
                yield json.dumps(redaction.data(_value(part))) + "\n"
            else:
                yield plain(redaction.text(part.text))


def _value(line: Line) -> Any:
    """The content of a line of JSON; one that was cut off as it is."""
    try:
        return json.loads(line.text)
    except (ValueError, RecursionError):
        return line.text.rstrip("\n")


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

    def write_redacted(text: str) -> str:
        """As Markdown; redacted before, since with backslashes in it no path and no secret would be known."""
        return escape(redaction.text(text))

    try:
        members: list[Member | ArchiveStream] = list(_members(case))
        for member in members:
            for content in member.list_texts():
                redaction.learn(content)
        tables = any(member.name.startswith("tables/") for member in members)
        first_page = readme(case, window_of(case.events), tables, write_redacted)
    except (OSError, ValueError) as error:
        raise _unreadable(run, error) from error
    look = ClosingLook()

    def read_members() -> Iterator[tuple[str, Iterator[str]]]:
        for member in sorted(members, key=lambda member: member.name):
            yield member.name, look.over(member.name, _parts(run, member, redaction))
        yield "README.md", Member("README.md", first_page + doubtful(look.places)).redact(redaction)

    _write(target, read_members())
    return target


def _unreadable(run: RunFolder, error: Exception) -> HarnessError:
    return HarnessError(f"A file of run {run.run_id} could not be read ({error}): it is incomplete or damaged.")


def _parts(run: RunFolder, member: Member | ArchiveStream, redaction: Redaction) -> Iterator[str]:
    try:
        yield from member.redact(redaction)
    except (OSError, ValueError) as error:
        raise _unreadable(run, error) from error


def _write(target: Path, members: Iterable[tuple[str, Iterable[str]]]) -> None:
    """A zip, because JIRA lists what is in one next to the attachment, and every system opens it by itself."""
    with (
        replacing(target, named=True) as draft,
        draft.open("wb") as file,
        zipfile.ZipFile(file, "w") as archive,
    ):
        for name, parts in members:
            entry = zipfile.ZipInfo(_SPECIAL.sub("_", plain(name)), EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever it is written
            entry.external_attr = 0o100644 << 16
            with archive.open(entry, "w") as written:
                for part in parts:
                    written.write(part.encode(errors="replace"))


def _members(case: EvidenceCase) -> Iterator[Member | ArchiveStream]:
    """All files of the archive, not yet redacted."""
    folder = case.folder
    yield Member("verdict.json", encode(case.verdict), is_json=True)
    for file in (folder.trial_file, folder.outcome_file, folder.reader_file, folder.observations_file):
        yield from _json_member(file, f"trial/{file.name}")
    for file in (folder.timeline, folder.preload, folder.path / "seed.jsonl"):  # the last is what older runs have
        if file.exists():
            yield ArchiveStream(f"trial/{file.name}", partial(lines_of, file), is_jsonl=True)
    for file in sorted(folder.contents.glob("*.csv")):
        yield _stream(f"trial/contents/{file.name}", file)
    for dump in (*folder.dumps(), *folder.entry_dumps()):
        yield _stream(f"trial/dumps/{dump.file.name}", dump.file)
    yield from _state(folder.state)
    tables = {"records-around-witnesses": records_near(case), "findings": findings(case)}
    for name, table in tables.items():
        if table is not None:
            yield Member(f"tables/{name}.csv", table)
    window = window_of(case.events)
    for log in sorted(folder.instances.glob("*.log")):
        yield _stream(f"logs/whole/{log.name}", log)
        if window is not None:
            yield ArchiveStream(f"logs/window/{log.name}", partial(_cut, log, window))
    for threads in sorted(folder.threads.glob("*.txt")):
        yield _stream(f"logs/threads/{threads.name}", threads)
    for trial in case.trials:
        if trial != case.shown:
            other = case.run.trial(trial)
            for file in (other.trial_file, other.outcome_file, other.reader_file):
                yield from _json_member(file, f"other-trials/{trial.key}/{file.name}")


def _json_member(file: Path, name: str) -> Iterator[Member]:
    if file.exists():
        text = _text(file)
        try:
            yield Member(name, json.loads(text), is_json=True)
        except ValueError:
            yield Member(name, text)


def _stream(name: str, file: Path) -> ArchiveStream:
    return ArchiveStream(name, partial(lines_of, file))


def _cut(log: Path, window: Window) -> Iterator[Line]:
    return cut(lines_of(log), *window)


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _state(folder: Path) -> Iterator[Member | ArchiveStream]:
    """The state directories that a failed trial left: names, sizes, times, and the checkpoints themselves."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if not files:
        return
    rows = []
    for file in files:
        name, stat = file.relative_to(folder).as_posix(), file.stat()
        rows.append((name, stat.st_size, moment(stat.st_mtime * 1000)))
        if file.name.startswith(".checkpoint"):
            yield _stream(f"trial/state/{name}", file)
    yield Member("trial/state/files.csv", as_csv(("path", "bytes", "modified"), rows))
