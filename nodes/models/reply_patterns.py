"""The replies that are possible on a screen, as a regular expression for constrained decoding."""

from __future__ import annotations

import re
from collections.abc import Iterator

from swarm_ui.errors import ModelError
from swarm_ui.model import Decision
from swarm_ui.prompts import FreeText, Reply, format_named

_CHARACTERS = 4
"""Characters of free text for each of its tokens."""
_CONTROLS = r"\x00-\x1f\x7f"
"""Characters that no text contains."""


def decision_pattern(
    decision: Decision | None, prompt_format: str, constrained: bool | None
) -> str | None:
    """A pattern of the replies that the screen allows; ``None`` if replies are not restricted.

    Free text begins with a visible character, after a space if a word or a colon is before it.
    ``constrained``: whether replies to decisions are restricted; ``None``: those in the compact
    format are. Raises ``ModelError`` if no reply is possible.
    """
    restricted = prompt_format == "compact" if constrained is None else constrained
    if decision is None or not restricted:
        return None
    if not (replies := format_named(prompt_format).replies(decision)):
        raise ModelError("constrained decoding needs at least one possible reply, got none")
    return "|".join("".join(_parts(reply)) for reply in replies)


def _parts(reply: Reply) -> Iterator[str]:
    before = ""
    for part in reply:
        if isinstance(part, FreeText):
            space = " " if before.endswith(":") or before[-1:].isalnum() else ""
            barred = _CONTROLS + "".join(map(_in_class, part.without))
            yield f"{space}[^ {barred}][^{barred}]{{0,{_CHARACTERS * part.max_tokens - 1}}}"
            before = ""
        else:
            yield "".join(map(_literal, part))
            before = part


def _literal(letter: str) -> str:
    """Escape only characters with a special meaning: not every engine accepts an escaped space."""
    return "\\n" if letter == "\n" else f"\\{letter}" if letter in r"\.^$*+?{}[]()|/" else letter


def _in_class(letter: str) -> str:
    return "\\n" if letter == "\n" else re.escape(letter)
