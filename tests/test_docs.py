"""What the documents tell people to type exists, and so does what they link to."""

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

from docs.generate import PAGES
from docs.site import places, relinked
from onceproof.cli import app
from onceproof.cli.groups import OLD_NAMES
from onceproof.model.known_issues import registry
from onceproof.model.promise import ANOMALIES
from onceproof.model.verdict import Verdict
from onceproof.scenarios import CATALOGUE
from tests.cases import check_each
from tests.commands import parse_command

ROOT = Path(__file__).parents[1]
NOT_OURS = {".venv", ".venv-plain", ".onceproof", ".git"}
DOCUMENTS = [
    path
    for top in ROOT.iterdir()
    if top.name not in NOT_OURS
    for path in ([top] if top.suffix == ".md" else top.rglob("*.md"))
    if "target" not in path.parts
]

INHERITED = {
    "changelog-output-mismatch",
    "counter-regression",
    "unstable-id",
    "wrong-id",
}  # told by the enumerator's page


def commands() -> list[list[str]]:
    texts = [path.read_text() for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))]
    found = re.findall(r"^ *\$ (\.venv/bin/onceproof .*)$", "\n".join(texts), re.MULTILINE)
    return [shlex.split(line)[1:] for line in dict.fromkeys(found)]


@check_each("arguments", commands(), named=" ".join)
def test_a_command_that_is_shown_is_one(arguments):
    parse_command(*arguments)


def links() -> list[tuple[Path, str]]:
    texts = ((document, document.read_text()) for document in DOCUMENTS)
    found = [(document, target) for document, text in texts for target in re.findall(r"\]\(([^)]+)\)", text)]
    return [(document, target) for document, target in found if not target.startswith("http")]


@check_each("document, target", links(), named=lambda link: f"{link[0].relative_to(ROOT)}: {link[1]}")
def test_what_a_document_links_to_is_there(document, target):
    file, _, anchor = target.partition("#")
    # towncrier copies the files of changes/ into CHANGELOG.md, so their links lead from there.
    place = ROOT if document.match("changes/+*.md") else document.parent
    linked = place / file if file else document
    assert linked.exists()
    assert not anchor or anchor in anchors(linked)


@cache
def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    texts = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w -]", "", text.strip().lower()).replace(" ", "-") for text in texts}


@check_each("name", PAGES)
def test_a_page_that_follows_from_the_code_is_up_to_date(name):
    assert (ROOT / name).read_text() == PAGES[name](), f"{name} is not what the code says: run `make reference`"


def test_every_page_of_the_reference_is_generated_and_linked():
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "reference").iterdir()} <= PAGES.keys()
    readme = (ROOT / "README.md").read_text()
    assert [name for name in PAGES if f"]({name})" not in readme] == []


def test_the_commands_page_has_every_command():
    def named(command, above):
        for name, one in command.commands.items():
            yield from named(one, f"{above} {name}") if hasattr(one, "commands") else [f"### {above} {name}"]

    headings = re.findall(r"^### .*$", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(named(get_command(app), "onceproof"))


def test_the_commands_page_has_every_old_name_once():
    rows = re.findall(
        r"^\| `onceproof (\S+)` \| `onceproof (.+)` \|$", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE
    )
    assert rows == list(OLD_NAMES.items())


def old_names(text: str) -> list[str]:
    """Where a text has a command by its old name: after `onceproof`, or as code, with what it is given."""
    name = f"(?:{'|'.join(OLD_NAMES)})"
    return re.findall(rf"\bonceproof\s+{name}\b(?![-,])|`{name} (?:--|[A-Z]+\b|last\b|newest\b)[^`]*`", text)


@check_each("document", DOCUMENTS, named=lambda document: str(document.relative_to(ROOT)))
def test_no_page_uses_an_old_name_of_a_command(document):
    text = document.read_text()
    if document.name == "CHANGELOG.md":
        text = ""  # a version is described in its own words
    assert old_names(text.partition("\n## Old names\n")[0]) == []


def test_no_message_uses_an_old_name_of_a_command():
    tops = [ROOT / name for name in ("src/onceproof", "dags", "plugins", "deploy", "examples", ".github")]
    files = [ROOT / "Makefile", ROOT / "Dockerfile", ROOT / "action.yml", ROOT / "docker-compose.yml"]
    files += [
        file for top in tops for file in top.rglob("*") if file.suffix in {".py", ".html", ".toml", ".yml", ".js"}
    ]
    found = {str(file.relative_to(ROOT)): old for file in files if (old := old_names(file.read_text()))}
    assert found == {}


def test_every_figure_has_a_command_and_every_benchmark_is_there():
    lines = re.findall(r"^\| .* \|$", (ROOT / "docs" / "figures.md").read_text(), re.MULTILINE)
    rows = [line for line in lines if not line.startswith("| -- ") and not line.endswith("| command |")]
    assert len(rows) > 15
    for row in rows:
        command = row.split("|")[-2]
        assert re.search(r"`.+`", command), row
        for file in re.findall(r"benchmarks/\w+\.py", command):
            assert (ROOT / file).exists(), row


def test_make_targets_that_are_named_exist():
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        assert set(re.findall(r"\bmake ([a-z][a-z-]+)`", document.read_text())) <= made, document


def test_every_verdict_is_explained_and_anomalies_are_as_in_code():
    explained = (ROOT / "docs" / "reading-a-verdict.md").read_text()
    for verdict in Verdict:
        assert f"`{verdict}`" in explained
    _, _, after = explained.partition("| name | it means | one witness per |\n| -- | -- | -- |\n")
    table = after.partition("\n\n")[0].splitlines()
    assert table == [f"| `{a.name}` | {a.sentence} | {a.per} |" for a in ANOMALIES.values()]


def test_exactly_the_pages_of_the_site_are_in_its_navigation():
    def pages(entries):
        for entry in entries:
            for target in [entry] if isinstance(entry, str) else entry.values():
                yield from [target] if isinstance(target, str) else pages(target)

    named = sorted(pages(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))
    assert named == sorted(
        str(place) for place in places().values() if place.suffix == ".md" and place.name != "ticket.md"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[verdicts](docs/reading-a-verdict.md#where-to-look)", "[verdicts](reading-a-verdict.md#where-to-look)"),
        ("![a](docs/images/run.svg) [b](#here) [c](https://d)", "![a](images/run.svg) [b](#here) [c](https://d)"),
        ("[scenarios](docs/scenarios)", "[scenarios](scenarios/README.md)"),
        ("[the code](src/onceproof) [`tests`](tests)", "the code (`src/onceproof`) `tests`"),
    ],
)
def test_links_of_the_site_lead_to_pages_and_others_are_named(text, shown):
    assert relinked(text, ROOT / "README.md", places()) == shown


def test_every_scenario_and_decision_is_in_its_folders_list():
    for folder, pages in (("scenarios", [f"{name}.md" for name in CATALOGUE]), ("adr", ["0*.md"])):
        listed = (ROOT / "docs" / folder / "README.md").read_text()
        for pattern in pages:
            for page in (ROOT / "docs" / folder).glob(pattern):
                assert f"]({page.name})" in listed, page


@check_each("name", CATALOGUE)
def test_each_scenario_has_a_page_with_its_variants(name):
    page = (ROOT / "docs" / "scenarios" / f"{name}.md").read_text()
    for variant in CATALOGUE[name].variants:
        assert f"`{variant}`" in page
    for issue in registry().issues:
        if name in issue.variants:
            shown = {e for variant in issue.variants[name] for e in issue.explanations(name, variant)}
            anomalies = {anomaly for explanation in shown for anomaly in explanation.anomalies}
            assert all(f"`{anomaly}`" in page for anomaly in anomalies - INHERITED)
