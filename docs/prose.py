"""Check prose by the rules in `.vale/Onceproof`: `python docs/prose.py FILE...`, or `make lint`.

Markdown is checked by all of them; comments, docstrings and messages of Python by those about words, and the beginning
of docstrings by those about the beginning of sentences. Rules of the scope `text` are about Markdown alone.

The rules have the form of Vale (substitution, existence, occurrence), so that editors show them; its program is no
Python package that installs without a download of its own, and these kinds take few lines.

Exit: 0 nothing found, 1 something found, 2 usage.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

RULES = Path(__file__).parents[1] / ".vale" / "Onceproof"
SENTENCE = re.compile(r"(?<=[.!?])[\s)”\"]+(?=[A-Z0-9`*(])|(?<=[:;]) ")  # a colon or semicolon ends one, too
CODE = "X"  # stands for code, which is no prose
# In code: one before a colon is a parameter's or a field's, others are columns and values of SQL.
NAMES = re.compile(r"`[^`]*`|'\w+'|(?:^ +|; )\w+(?=: )|\w+ (?:boolean|int|string|is not null)\b")
PUBLISHED = re.compile(
    r"not looked at enough|close amid a rebalance \(no JIRA\)|^goes on$"
)  # stored, and read by others
PARSER = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Finding:
    """A place that breaks a rule.

    Attributes:
        line: counted from 1; where its paragraph begins.
        message: what to do.
        text: the sentence.
    """

    line: int
    message: str
    text: str


def check(text: str, rules: list[dict[str, Any]]) -> list[Finding]:
    """The places of a Markdown document that break a rule."""
    return [
        Finding(line, message, sentence)
        for line, whole, prose in blocks(text)
        for sentence in SENTENCE.split(prose)
        for rule in rules
        if whole or rule.get("scope") != "sentence"
        for message in broken(rule, sentence)
    ]


def check_code(source: str, rules: list[dict[str, Any]]) -> list[Finding]:
    """The places of a Python module that break a rule: words everywhere, the beginning of sentences in docstrings."""
    checked = {"substitution": texts(source), "existence": beginnings(source)}
    return [
        Finding(line, message, text)
        for kind, lines in checked.items()
        for line, text in lines
        for rule in rules
        if rule["extends"] == kind and rule.get("scope") != "text"
        for message in broken(rule, NAMES.sub(CODE, text))
    ]


def beginnings(source: str) -> Iterator[tuple[int, str]]:
    """The first line of each docstring, with its number."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text.partition("\n")[0]


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Each line of a comment or of a string with a space, with its number: other strings are names."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield from enumerate(node.value.splitlines(), node.lineno)


def blocks(text: str) -> Iterator[tuple[int, bool, str]]:
    """Each block of prose: its line, whether it has whole sentences, and its text without code and addresses of links.

    Headings and cells of tables need no sentences.
    """
    line, before = 1, ""
    for token in PARSER.parse(text):
        line = token.map[0] + 1 if token.map else line
        if token.type == "inline" and token.children:
            yield line, before == "paragraph_open", " ".join("".join(map(_plain, token.children)).split())
        before = token.type


def _plain(token: Token) -> str:
    if token.type == "code_inline":
        return CODE
    return " " if token.type in ("softbreak", "hardbreak") else token.content if token.type == "text" else ""


def broken(rule: dict[str, Any], sentence: str) -> Iterator[str]:
    """The messages of a rule about a sentence.

    Raises:
        ValueError: the rule is of a kind that is not known here.
    """
    sentence = PUBLISHED.sub(CODE, sentence)
    if rule["extends"] == "substitution":
        for wrong, right in rule["swap"].items():
            for found in re.finditer(rf"\b(?:{wrong})\b", sentence, re.IGNORECASE):
                yield rule["message"] % (right, found[0])
    elif rule["extends"] == "existence":
        for pattern in rule["raw"]:
            if found := re.search(pattern, sentence):
                yield rule["message"] % found[0]
    elif rule["extends"] == "occurrence":
        if len(re.findall(rule["token"], sentence)) > rule["max"]:
            yield rule["message"]
    else:
        raise ValueError(f"Rules of the kind {rule['extends']} are not known here: see docs/prose.py.")


def rules() -> list[dict[str, Any]]:
    """The rules, by the names of their files."""
    return [yaml.safe_load(path.read_text()) for path in sorted(RULES.glob("*.yml"))]


def main(names: list[str]) -> int:
    """Print each finding as FILE:LINE: MESSAGE SENTENCE."""
    if not names:
        print("No file is named: python docs/prose.py FILE...", file=sys.stderr)
        return 2
    known, found = rules(), 0
    for name in names:
        text, of = Path(name).read_text(), check_code if name.endswith(".py") else check
        for finding in of(text, known):
            found += 1
            print(f"{name}:{finding.line}: {finding.message} {finding.text[:90]}")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
