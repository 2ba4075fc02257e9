"""The text of a source without what no machine reads, so that an edit of prose is not taken for one of logic."""

import ast
import re
from collections.abc import Iterator

Span = tuple[tuple[int, int], tuple[int, int]]  # line from 1 on and byte: where it begins, and where it has ended

PYTHON_TOKENS = re.compile(
    r"""
    (?P<kept> \"{3} (?: \\. | [^\\] )*? \"{3}
            | '{3} (?: \\. | [^\\] )*? '{3}
            | \" (?: \\. | [^\"\\\n] )* \"
            | ' (?: \\. | [^'\\\n] )* ' )
    | \# [^\n]*
    """,
    re.VERBOSE | re.DOTALL,
)
JAVA_TOKENS = re.compile(
    r"""
    (?P<kept> \"{3} (?: \\. | [^\\] )*? \"{3}   # a text block
            | \" (?: \\. | [^\"\\\n] )* \"
            | ' (?: \\. | [^'\\\n] )* ' )
    | // [^\n]*
    | /\* .*? \*/
    """,
    re.VERBOSE | re.DOTALL,
)


def without_prose(text: str, suffix: str, tree: ast.Module | None = None) -> str:
    """A source without comments, docstrings and empty lines.

    Args:
        text: the source.
        suffix: of its file: `.py`, `.java`, or any other, of which the text is left as it is.
        tree: of a Python source, if it was parsed before.

    Raises:
        SyntaxError: the text is no Python.
    """
    if suffix == ".py":
        text = _keep_strings(PYTHON_TOKENS, _without_docstrings(text, tree or ast.parse(text)))
    elif suffix == ".java":
        text = _keep_strings(JAVA_TOKENS, text)
    else:
        return text
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """A module and all statements in it, however deep; their expressions are left out, which are most of a tree."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            left += getattr(node, field, ())


def _keep_strings(tokens: re.Pattern[str], text: str) -> str:
    """The text without its comments: what the pattern finds is a string, which is kept, or a comment."""
    return tokens.sub(lambda found: found["kept"] or "", text)


def _without_docstrings(text: str, tree: ast.Module) -> str:
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for (first, begin), (last, end) in sorted(_docstrings(tree), reverse=True):
        before, after = lines[first - 1][:begin], lines[last - 1][end:]
        lines[first - 1 : last] = [before + after]
    return b"".join(lines).decode()


def _docstrings(tree: ast.Module) -> Iterator[Span]:
    for node in statements(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if not isinstance(first, ast.Expr) or ast.get_docstring(node, clean=False) is None:
                continue
            if first.end_lineno is not None and first.end_col_offset is not None:  # as in all that was parsed
                yield (first.lineno, first.col_offset), (first.end_lineno, first.end_col_offset)
