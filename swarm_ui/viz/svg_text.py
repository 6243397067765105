"""Text in a picture: escaping, measuring and cutting."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape

PICTURE_ID = "\0"
"""A placeholder for the picture's hash in ids. No text of a user can contain it."""

_NARROW = frozenset("ijlI|'.,:;! ’‘")
_SLIM = frozenset('frt()[]{}/\\-"*“”')
_BROAD = frozenset("mwMW@%—…")


def number(value: float) -> str:
    """A length, rounded to a tenth of a pixel."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def quoted(value: str | float) -> str:
    """A value, escaped for a quoted attribute."""
    if isinstance(value, str):
        return escape(xml_safe(value, keep=PICTURE_ID))
    return number(value) if abs(value) >= 1 else f"{value:.2f}".rstrip("0").rstrip(".") or "0"


def plain(words: str) -> str:
    """Text, escaped for the place between two tags."""
    return escape(xml_safe(words), quote=False)


def xml_safe(words: str, keep: str = "") -> str:
    """Replace characters that XML forbids: control characters and lone surrogates."""
    if words.isprintable():
        return words
    return "".join(c if c in "\t\n\r" or c in keep or _allowed(ord(c)) else "\ufffd" for c in words)


def _allowed(code: int) -> bool:
    return code >= 0x20 and code != 0x7F and not 0xD800 <= code < 0xE000 and code & 0xFFFE != 0xFFFE


def width(words: str, size: float) -> float:
    """An upper estimate of the width of a text in pixels."""
    return size * sum(map(_em, words))


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.34
    if character in _SLIM:
        return 0.44
    if character in _BROAD:
        return 0.95
    if character.isascii():
        return 0.72 if character.isupper() else 0.6
    if unicodedata.combining(character):
        return 0.0
    return 1.1 if unicodedata.east_asian_width(character) in "WF" else 0.75


def cut(words: str, room: float, size: float) -> str:
    """A text on one line, cut to ``room`` pixels. A cut text ends with ``…``."""
    left, kept = room, 0
    head = words[:400]
    short = " ".join(head.split())
    if len(head) == len(words) and width(short, size) <= room:
        return short
    left -= width("…", size)
    for character in short:
        left -= size * _em(character)
        if left < 0:
            break
        kept += 1
    return short[:kept].rstrip() + "…"


def clipped(words: str, most: int) -> str:
    """The first ``most`` characters; a text that was cut ends with its full length."""
    if len(words) <= most:
        return words
    return f"{words[:most]}… ({len(words):,} characters)"


def listed(names: Iterable[str], most: int = 12) -> str:
    """The first names, joined by commas, and the number of the others."""
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
