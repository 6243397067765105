"""Text of strangers on a terminal: without the characters that control it or reorder the line."""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # line separators, and changes of direction
    "\ud800-\udfff]"  # halves of characters, which no encoding writes
)


def printable(text: str) -> str:
    """The text with ``�`` in place of each character that would control a terminal.

    These are the C0 and C1 controls except tab and line feed, and the controls of direction.
    """
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def printable_json(text: str) -> str:
    """A JSON text with the same value, in which these characters are escaped."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
