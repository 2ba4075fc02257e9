"""Prose goes from a source, and nothing else does."""

import io
import tokenize

import pytest

from onceproof.model.source_text import without_prose
from tests.conftest import ROOT

PYTHON = '''"""A module."""  # noqa

# alone
SHARP = "# no comment"  # é, then a comment


class Kept:
    """Ä."""

    value: int = 1
    """No docstring, but it looks like one."""

    def method(self) -> str:
        """It takes

        lines.
        """
        return """# kept
"""

    def empty(self) -> None:
        """Nothing else."""
'''

PYTHON_LEFT = '''SHARP = "# no comment"
class Kept:
    value: int = 1
    """No docstring, but it looks like one."""
    def method(self) -> str:
        return """# kept
"""
    def empty(self) -> None:
'''

JAVA = '''/** A class. */
class Kept { // and a comment
    String url = "http://kept"; /* gone */ char quote = '"'; // gone "too"
    String text = """
        // kept \\""" and
        /* kept */""";
}
'''

JAVA_LEFT = '''class Kept {
    String url = "http://kept";  char quote = '"';
    String text = """
        // kept \\""" and
        /* kept */""";
}
'''


@pytest.mark.parametrize(("text", "suffix", "left"), [(PYTHON, ".py", PYTHON_LEFT), (JAVA, ".java", JAVA_LEFT)])
def test_comments_and_docstrings_go(text, suffix, left):
    assert without_prose(text, suffix) == left


def test_of_other_files_all_counts():
    assert without_prose("# a=1\n\nb=2\n", ".properties") == "# a=1\n\nb=2\n"


def words(text: str) -> list[str]:
    """The tokens of a Python source, but for comments and strings that are a line of their own."""
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
    ]
    return [token.string for token in tokens if not alone(token)]


def alone(token: tokenize.TokenInfo) -> bool:
    return token.type == tokenize.STRING and token.line.strip() == token.string


@pytest.mark.parametrize("room", ["lab", "readers", "scenarios"])
def test_the_logic_of_our_own_sources_stays(room):
    for file in (ROOT / "src" / "onceproof" / room).rglob("*.py"):
        text = file.read_text()
        left = without_prose(text, ".py")
        assert words(left) == words(text), file
        assert len(left) < len(text), file
