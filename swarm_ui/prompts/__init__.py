"""Prompts: decisions as chat text in several formats, messages of agents, and transcripts.

Content from outside (the screen, labels in the history, messages of other agents) may be hostile.
It is quoted so that it cannot imitate other parts of a prompt.
"""

from __future__ import annotations

from collections.abc import Callable

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import ChatMessage, Decision, Request
from swarm_ui.prompts.compact_format import CompactFormat
from swarm_ui.prompts.json_format import JsonFormat, context, decision_chat, said, summary
from swarm_ui.prompts.message_text import reason_of, utterance
from swarm_ui.prompts.prompt_format import FreeText, PromptFormat, Reply
from swarm_ui.prompts.quoting import LONGEST_LABEL
from swarm_ui.prompts.shortening import shortened
from swarm_ui.prompts.tool_calls import read_calls, tools_as_text, written_calls
from swarm_ui.prompts.transcripts import (
    chat_of,
    picture_name,
    picture_size,
    transcript,
    with_picture,
    with_schema,
)

__all__ = [
    "FORMATS", "LONGEST_LABEL", "CompactFormat", "FreeText", "JsonFormat",
    "PromptFormat", "Reply", "as_chat", "chat_of", "context", "decision_chat",
    "format_named", "picture_name", "picture_size", "read_calls", "reason_of", "said", "shortened",
    "summary", "tools_as_text", "transcript", "utterance", "with_picture", "with_schema",
    "written_calls",
]  # fmt: skip

FORMATS: dict[str, PromptFormat] = {
    format.name: format for format in (JsonFormat(), CompactFormat())
}
"""The formats of prompts, by name."""


def format_named(name: str) -> PromptFormat:
    """The format of this name. Raises ``ConfigError`` if there is none."""
    if name not in FORMATS:
        raise ConfigError(f"no prompt format {name!r}; expected {' or '.join(FORMATS)}")
    return FORMATS[name]


def as_chat(
    request: Request, render: Callable[[Decision], tuple[ChatMessage, ...]] = decision_chat
) -> tuple[ChatMessage, ...]:
    """The chat of a request. If the request has a decision, ``render`` converts it to a chat; if
    it has tools, they and their calls are written as text (:func:`tools_as_text`). Raises
    ``ModelError`` if it does not have exactly one of a decision and a chat."""
    if (request.chat is None) == (request.decision is None):
        raise ModelError("a request needs either 'decision' or 'chat'; set exactly one")
    if request.decision is not None:
        return render(request.decision)
    chat = request.chat or ()
    return tools_as_text(chat, request.tools) if request.tools else chat
