"""The replies that are possible on a screen, as a regular expression for constrained decoding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from swarm_ui.nodes.models.transformers.chat_tokens import ChatPrompt
from swarm_ui.prompts import FreeText, Reply, format_named


def decision_pattern(prompt: ChatPrompt, constrained: bool | None) -> str | None:
    """A pattern of the replies that the screen allows; ``None`` if replies are not restricted.

    ``constrained``: whether replies to decisions are; ``None``: those in the compact format are.
    """
    if constrained is None:
        constrained = prompt.prompt_format == "compact"
    if prompt.decision is None or not constrained:
        return None
    return reply_pattern(format_named(prompt.prompt_format).replies(prompt.decision))


def reply_pattern(replies: Iterable[Reply]) -> str:
    """A regular expression that matches these replies.

    Free text begins with a visible character, after a space if a word or a colon is before it. Its
    length is limited only by the token limit of the request.
    """
    return "|".join("".join(_parts(reply)) for reply in replies)


def _parts(reply: Reply) -> Iterator[str]:
    before = ""
    for part in reply:
        if isinstance(part, FreeText):
            space = " " if before.endswith(":") or before[-1:].isalnum() else ""
            barred = "".join(map(_in_class, part.without))
            yield f"{space}[^ {barred}][^{barred}]*"
            before = ""
        else:
            yield "".join(map(_literal, part))
            before = part


def _literal(letter: str) -> str:
    """Escape only characters with a special meaning: not every engine accepts an escaped space."""
    return "\\n" if letter == "\n" else f"\\{letter}" if letter in r"\.^$*+?{}[]()|/" else letter


def _in_class(letter: str) -> str:
    return "\\n" if letter == "\n" else re.escape(letter)
