"""Texts that an attacker puts into topics, logs and names reach each output as texts and as nothing else.

Each output is made twice, from a harmless word and from the text in its place: both have the same structure.
"""

import csv
import io
import json
import re
import sys
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from markdown_it import MarkdownIt
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from onceproof.cli import applications, terminal
from onceproof.cli.fuzzing import print_fuzzed
from onceproof.cli.trials import _print_trial
from onceproof.model.files import Outcome
from onceproof.model.json_file import encode, read_json, write_json
from onceproof.model.judged import Judgement, Output, PlantedControl
from onceproof.model.run_folder import RunFolder
from onceproof.page.app import create_app
from onceproof.page.exports import annotations, report_of, vote, write_junit, write_summary
from onceproof.page.report import write_report
from onceproof.results.database import store_run
from onceproof.results.evidence.archive import write_evidence
from onceproof.settings import Settings
from tests.page.conftest import NEWEST, RED, SCRIPT, VERDICTS, make_run, make_trial, served
from tests.page.test_page_applications import LOST, RUN, TRIAL
from tests.specimens.files import a_fuzzing, an_answer, an_app_answer, an_outcome, on_release

ROOT = Path(__file__).parents[1]
HARMLESS = "harmless"
HOSTILE = {
    "script": "<script>alert(1)</script><img src=x onerror=alert(1)><svg/onload=alert(1)>",
    "end of what contains it": "\"'></a></td></title></textarea></script></style>--><iframe src=//evil.example>",
    "link of a script": "javascript:alert(1) data:text/html,<b>",
    "template": "{{ 7 * 7 }}{% raw %}${7*7}#{7*7}<%= 7 %>",
    "colour and screen": "\x1b[2J\x1b[31mred\x1b[0m\x9b31m\x1b]0;title\x07",
    "link of a terminal": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "overwritten": "red\rgreen \b\b\b\x7f\x0b\x0c\x85",
    "turned": "\u202egnp.exe\u2066x\u2069\u200b\u200d\ufeff\u2028\u2029\u00ad\U000e0041",
    "no text": "\x00\x01\ufffe\uffff",
    "path": "../../../etc/passwd /etc/passwd ..\\..\\x C:\\x CON \x00",
    "markdown": "[a](javascript:alert) ![i](http://evil.example/i.png) **b** _i_ ~~s~~ `c` <b>x</b> | cell | $x$ &lt; # h",
    "block of markdown": "\n\n# heading\n\n- item\n\n1. one\n\n> quote\n\n---\n\n```\ncode\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "list": "- item",
    "numbers": "1. item",
    "rule": "---",
    "address": "see https://evil.example/x and <https://evil.example>",
    "workflow": "x\n::error file=a::pwned\n::set-output name=a::b\n##[error]pwned",
    "cell": '=cmd|"/c calc"!A1,"\n+1;@SUM(1)\t-1',
    "CDATA": "]]><!--<![CDATA[<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e;",
}
# Of the outputs that take long, each is made from several at once; what begins a block of Markdown begins the text.
TOGETHER = {
    "markup": ("script", "end of what contains it", "link of a script", "template", "CDATA"),
    "terminal": ("colour and screen", "link of a terminal", "clipboard", "overwritten", "turned", "no text", "path"),
    "markdown": ("list", "markdown", "block of markdown", "address", "workflow", "cell"),
    "numbers": ("numbers",),
}
UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]|\r(?!\n)"
)


@dataclass
class Structure(HTMLParser):
    """Elements and attributes of a page, in their order, and texts."""

    elements: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Become a parser."""
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append(" ".join([tag, *(name for name, _ in attrs)]))
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "action", "formaction")]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        """Note its end."""
        self.elements.append(f"/{tag}")


def of_page(page: str) -> list[str]:
    parser = Structure()
    parser.feed(page)
    for address in parser.addresses:
        assert not re.match(r"(?i)\s*(javascript|vbscript|data:text|//)", address), address
        assert "evil.example" not in address
    return parser.elements


def of_markdown(text: str) -> list[str]:
    """The kinds of what GitHub would make of it, with HTML let through and addresses made links."""
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    kinds = []
    for token in reader.parse(text):
        kinds.append(token.type)
        kinds += [child.type for child in token.children or () if child.type != "text"]
        if token.type == "inline":
            assert not re.search(r"(?<!\\)\$|[a-z]://|(?<!\\)&", re.sub("`[^`]*`", "", token.content))
    return kinds


def of_xml(text: str) -> list[tuple[str, list[str]]]:
    return [(element.tag, sorted(element.attrib)) for element in ET.fromstring(text).iter()]  # noqa: S314 - our own


def planted(home: Path, text: str) -> Settings:
    """A home with two runs, where a text stands wherever something is that Onceproof did not write."""
    settings = Settings(home=home, database_url=f"sqlite:///{home}/results.db")
    run = make_run(settings.runs, NEWEST, VERDICTS[NEWEST])
    red = run.trial(f"{RED.key}-t2")
    for folder in (red, run.trial(f"{RED.key}-t1")):
        folder.instances.mkdir()
        (folder.instances / "instance-1.log").write_bytes(
            f"[2026-11-21T12:36:20.000+0000] WARN {SCRIPT}\n{SCRIPT} ".encode() + b"\xff\xfe\xc3\n"
        )
        folder.contents.mkdir()
        with (folder.contents / "0_0.csv").open("w", newline="") as file:
            csv.writer(file).writerow(["seen", "0", "0", SCRIPT, SCRIPT])
        folder.threads.mkdir()
        (folder.threads / "instance-1.txt").write_text(SCRIPT)
    write_json(run.run_file, {**read_json(run.run_file), "matrix": SCRIPT})
    application = RunFolder(settings.runs / RUN)
    make_trial(application, TRIAL, is_red=True)
    result = on_release(
        streams="4.1.2",
        judgement=Judgement.RED,
        reason=f"lost {SCRIPT}",
        anomalies={"lost-record": 2},
        witnesses=(LOST,),
        folders=(f"anywhere/{TRIAL.key}",),
        advice=f"Delete {SCRIPT}",
    )
    an_app_answer(result, application=f"folder/{SCRIPT}", class_name=SCRIPT).write(application.app_file)
    as_written = {
        ".json": json.dumps(text)[1:-1],
        ".jsonl": json.dumps(text)[1:-1],
        ".csv": '"' + text.replace('"', '""') + '"',
        ".log": text,
        ".txt": text,
    }
    for path in settings.runs.rglob("*"):
        if path.suffix in as_written:
            there = json.dumps(SCRIPT)[1:-1] if path.suffix.startswith(".json") else SCRIPT
            path.write_bytes(path.read_bytes().replace(there.encode(), as_written[path.suffix].encode()))
    store_run(run, settings.database_url)
    return settings


CELL = f"/runs/{NEWEST}/cells/{RED.key}"
PAGES = (
    "/",
    CELL,
    f"{CELL}/witnesses/1",
    "/applications",
    f"/applications/{RUN}",
    f"/runs/{NEWEST}/trials/{RED.key}-t2",
    f"/applications/{RUN}/trials/{TRIAL.key}",
)


def pages_of(settings: Settings) -> Iterator[tuple[str, str]]:
    client = TestClient(create_app(settings), headers={"Accept": "text/html"})
    for path in PAGES:
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.text)
        yield path, answer.text


@pytest.fixture(scope="module")
def harmless(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("harmless"), HARMLESS)


@pytest.fixture(scope="module", params=list(TOGETHER))
def hostile(request, tmp_path_factory):
    return planted(tmp_path_factory.mktemp("hostile"), " ".join(HOSTILE[name] for name in TOGETHER[request.param]))


def test_the_text_stands_in_what_is_shown(harmless, tmp_path):
    assert [path for path, page in pages_of(harmless) if HARMLESS not in page] == []
    run = RunFolder(harmless.runs / NEWEST)
    write_summary(report_of(run), tmp_path / "summary.md")
    assert HARMLESS in (tmp_path / "summary.md").read_text()
    assert HARMLESS in vote(report_of(run))


def test_pages_have_the_same_elements(harmless, hostile):
    for (path, page), (_, other) in zip(pages_of(hostile), pages_of(harmless), strict=True):
        assert of_page(page) == of_page(other), path
        assert not UNSEEN.search(page), path


@pytest.mark.night
@pytest.mark.browser
def test_nothing_of_it_runs_in_a_browser(tab, hostile, tmp_path):
    """The tab fails with any request to another host and any error, such as one of the policy of the page."""
    dialogs: list[str] = []
    tab.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    report = tmp_path / "report.html"
    write_report(RunFolder(hostile.runs / NEWEST), hostile.database_url, report)
    with served(create_app(hostile)) as url:
        for address in (*(f"{url}{path}" for path in PAGES), report.as_uri()):
            tab.goto(address)
            for plot in tab.locator(".timeline .plot").all():
                plot.scroll_into_view_if_needed()
            tab.wait_for_load_state("networkidle")
            assert tab.locator("iframe, object, embed, [onerror], [onload]").count() == 0
    assert dialogs == []


def test_the_report_has_the_same_elements(harmless, hostile, tmp_path):
    for name, settings in (("hostile", hostile), ("harmless", harmless)):
        write_report(RunFolder(settings.runs / NEWEST), settings.database_url, tmp_path / f"{name}.html")
    page, other = ((tmp_path / f"{name}.html").read_text() for name in ("hostile", "harmless"))
    assert of_page(page) == of_page(other)


def test_archives_hold_texts(harmless, hostile, tmp_path):
    for run, cell in ((NEWEST, RED.key), (RUN, TRIAL.cell.key)):
        members = {}
        for name, settings in (("hostile", hostile), ("harmless", harmless)):
            with zipfile.ZipFile(write_evidence(RunFolder(settings.runs / run), cell, tmp_path / name)) as archive:
                members[name] = {member: archive.read(member).decode() for member in archive.namelist()}
        assert members["hostile"].keys() == members["harmless"].keys()
        for member, text in members["hostile"].items():
            assert not UNSEEN.search(text), member
            if member.endswith(".json"):
                json.loads(text)
            if member.endswith(".csv"):
                rows, others = (list(csv.reader(io.StringIO(of[member]))) for of in members.values())
                assert [len(row) for row in rows] == [len(row) for row in others]
        assert of_markdown(members["hostile"]["README.md"]) == of_markdown(members["harmless"]["README.md"])


def test_exports_have_the_same_structure(harmless, hostile, tmp_path):
    reports = [report_of(RunFolder(settings.runs / NEWEST)) for settings in (hostile, harmless)]
    made = []
    for report in reports:
        write_junit(report, tmp_path / "junit.xml")
        write_summary(report, tmp_path / "summary.md")
        made.append([(tmp_path / name).read_text() for name in ("junit.xml", "summary.md")])
    (junit, summary), (other_junit, other_summary) = made
    assert of_xml(junit) == of_xml(other_junit)
    assert of_markdown(summary) == of_markdown(other_summary)
    for text in (junit, summary, vote(reports[0])):
        assert not UNSEEN.search(text)
    commands, others = (list(annotations(report)) for report in reports)
    assert [line.partition("=")[0] for line in commands] == [line.partition("=")[0] for line in others]
    assert all(len(line.splitlines()) == 1 and not UNSEEN.search(line) for line in commands)


@pytest.fixture(scope="module")
def call():
    spec = spec_from_file_location("call_of_hostile", ROOT / ".github" / "action" / "call.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["call_of_hostile"] = module
    spec.loader.exec_module(module)
    return module


def test_the_action_writes_the_same_structure(call):
    def made(text: str) -> tuple[list[list[str]], list[str]]:
        asked = {"headline": text, "against": [{"text": text}], "to_do": [{"text": text}], "exit_code": 1}
        result = on_release(judgement=Judgement.RED, reason=text, advice=text)
        answer = {**encode(an_app_answer(result)), "fault": "pause"}
        summaries = ["\n".join(call.advice(asked)), "\n".join(call.application(answer))]
        commands = [*call.of_advice(asked), *call.of_application(answer)]
        assert not UNSEEN.search("".join([*summaries, *commands]))
        assert all(len(command.splitlines()) == 1 for command in commands)
        return [of_markdown(summary) for summary in summaries], [line.partition("=")[0] for line in commands]

    expected = made(HARMLESS)
    for name, text in HOSTILE.items():
        assert made(text) == expected, name


@pytest.mark.parametrize("github", ["", "true"])
def test_a_terminal_gets_no_command_but_those_of_colours(github, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", github)
    for name, text in HOSTILE.items():
        for is_terminal in (False, True):
            written = io.StringIO()
            colours: Any = "standard" if is_terminal else None
            console = terminal._Console(
                file=written, force_terminal=is_terminal, width=80, color_system=colours, highlight=False
            )
            table = Table("cell", "[bold]head[/]")
            table.add_row(escape(text), Text(text))
            console.print(table)
            console.print(text, markup=False, soft_wrap=True)
            console.print(f"[bold]{escape(text)}[/]")
            found = written.getvalue()
            if is_terminal:
                assert "\x1b[1m" in found
                found = re.sub(r"\x1b\[(?:\d+;?)*m", "", found)
            assert not UNSEEN.search(found), (name, found)
            if github:
                assert not re.search(r"(?m)^\s*::|##\[", found), (name, found)


def test_half_a_character_does_not_make_a_file_unreadable(tmp_path):
    an_outcome(TRIAL, reason="half \ud83d of it").write(tmp_path / "outcome.json")
    assert Outcome.read(tmp_path / "outcome.json").reason == "half ? of it"


@pytest.mark.night
def test_a_value_of_10_mb_is_shown_in_part(tmp_path):
    settings = planted(tmp_path, "<b>" + "x" * 10_000_000)
    written = write_evidence(RunFolder(settings.runs / NEWEST), RED.key, tmp_path / "evidence.zip")
    with zipfile.ZipFile(written) as archive:
        assert len(archive.read("logs/whole/instance-1.log")) < 3_000_000
    for _, page in pages_of(settings):
        assert "<b>" not in page


MARKUP = "[link=https://evil.example]x[/link] [red]y [/nothing] [bold"


def test_what_the_command_prints_has_no_markup_of_others(capsys):
    shown = on_release(
        judgement=Judgement.RED,
        reason=MARKUP,
        advice=MARKUP,
        outputs={MARKUP: Output(MARKUP, ignored=(MARKUP,))},
        not_looked_at={MARKUP: MARKUP},
        controls=(
            PlantedControl("batch-lost", 2, {MARKUP: (MARKUP,)}, "b"),
            PlantedControl("record-twice", 1, {}, "c", MARKUP),
        ),
        vacuous={MARKUP: (MARKUP,)},
    )
    applications._print(shown)
    print_fuzzed(a_fuzzing(left_out={MARKUP: 1}))
    _print_trial(an_answer(reason=MARKUP, not_looked_at={MARKUP: MARKUP}), ())
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count(MARKUP) == 16
