"""Texts of others as they can be shown: nothing in them steers a terminal, or hides from a reader."""

import re

# Control characters but for tabs and ends of lines, characters that are not seen or that turn the direction of others,
# and what no encoding has.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]|\r(?!\n)"
)


def plain(text: str) -> str:
    """The text, with a mark in place of each character that is not shown but does something."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)
