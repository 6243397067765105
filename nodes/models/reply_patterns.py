"""The replies that are possible on a screen, as a regular expression for constrained decoding."""

from __future__ import annotations

import re
from collections.abc import Iterable

from swarm_ui.prompts import FreeText, Reply


def reply_pattern(replies: Iterable[Reply]) -> str:
    """An expression that matches these replies. A part that the model writes freely has at least
    one character; its length is left to the token limit of the request."""
    return "|".join("".join(map(_part, reply)) for reply in replies)


def _part(part: str | FreeText) -> str:
    if isinstance(part, FreeText):
        return f"[^{''.join(map(_in_class, part.without))}]+"
    return "".join(map(_literal, part))


def _literal(letter: str) -> str:
    """Only what has a meaning is escaped: not every engine knows an escape of a space."""
    return "\\n" if letter == "\n" else f"\\{letter}" if letter in r"\.^$*+?{}[]()|/" else letter


def _in_class(letter: str) -> str:
    return "\\n" if letter == "\n" else re.escape(letter)
