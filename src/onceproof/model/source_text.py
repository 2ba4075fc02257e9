"""The text of a source without what no machine reads, so that an edit of prose is not taken for one of logic."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

Span = tuple[tuple[int, int], tuple[int, int]]  # line from 1 on and byte: where it begins, and where it has ended

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


def without_prose(text: str, suffix: str) -> str:
    """A source without comments, docstrings and empty lines.

    Args:
        text: the source.
        suffix: of its file: `.py`, `.java`, or any other, of which the text is left as it is.

    Raises:
        SyntaxError: the text is no Python.
    """
    if suffix == ".py":
        text = _python(text)
    elif suffix == ".java":
        text = JAVA_TOKENS.sub(lambda found: found["kept"] or "", text)
    else:
        return text
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())


def _python(text: str) -> str:
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for (first, begin), (last, end) in sorted([*_docstrings(text), *_comments(text)], reverse=True):
        before, after = lines[first - 1][:begin], lines[last - 1][end:]
        lines[first - 1 : last] = [before + after]
    return b"".join(lines).decode()


def _docstrings(text: str) -> Iterator[Span]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if not isinstance(first, ast.Expr) or ast.get_docstring(node, clean=False) is None:
                continue
            if first.end_lineno is not None and first.end_col_offset is not None:  # as in all that was parsed
                yield (first.lineno, first.col_offset), (first.end_lineno, first.end_col_offset)


def _comments(text: str) -> Iterator[Span]:
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            begin = len(lines[line - 1][:column].encode())
            yield (line, begin), (line, begin + len(token.string.encode()))
