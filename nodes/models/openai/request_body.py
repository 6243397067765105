"""Messages of a chat request, and how many tokens a request uses."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from swarm_ui.budget import guess_tokens
from swarm_ui.errors import ModelError
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage
from swarm_ui.nodes.models.openai.replies import Answer, ChatReply
from swarm_ui.prompts import picture_size

# Both are a little more than vision models are known to use.
_PIXELS_PER_TOKEN = 700
_TOKENS_PER_IMAGE = 85


def messages(chat: Sequence[ChatMessage]) -> list[dict[str, object]]:
    """The turns in the format of the protocol; images as data URLs after the text."""
    return [{"role": turn.role, "content": _content(turn)} for turn in chat]


def _content(turn: ChatMessage) -> str | list[dict[str, object]]:
    if not turn.images:
        return turn.content
    parts: list[dict[str, object]] = []
    if turn.content:
        parts.append({"type": "text", "text": turn.content})
    for png in turn.images:
        url = f"data:image/png;base64,{base64.b64encode(png).decode()}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts


def schema_format(schema: str, where: str) -> dict[str, object]:
    """The ``response_format`` that makes a reply follow a JSON schema.

    Raises:
        ModelError: the text is not a JSON object.
    """
    try:
        value = json.loads(schema)
    except ValueError as error:
        value, got = None, f"text that is not JSON ({error})"
    else:
        got = f"a {type(value).__name__}"
    if not isinstance(value, dict):
        raise ModelError(
            f"{where}: json_schema of a request must be a JSON object as text, got {got}"
        )
    return {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": value, "strict": True},
    }


def prompt_tokens(chat: Sequence[ChatMessage], prompt: str) -> int:
    """An estimate of the tokens of a chat, on the high side."""
    images = 0
    for turn in chat:
        for png in turn.images:
            width, height = picture_size(png)
            images += _TOKENS_PER_IMAGE + width * height // _PIXELS_PER_TOKEN
    return guess_tokens(prompt) + images


def usage_of(reply: ChatReply, most: Usage) -> Usage:
    """What a reply used; an estimate if the server does not count."""
    if reply.usage is not None:
        return reply.usage
    written = sum(_tokens(answer) for answer in reply.answers)
    return Usage(
        prompt_tokens=most.prompt_tokens,
        completion_tokens=min(written, most.completion_tokens),
    )


def shares(usage: Usage, answers: Sequence[Answer]) -> list[Usage]:
    """The usage of a reply divided among its answers; the parts add up to the whole.

    The first answer has the tokens of the prompt. The tokens of the completion are divided by the
    number of tokens of each answer if the server lists them, else by an estimate of it.
    """
    weights = [_tokens(answer) for answer in answers]
    whole = sum(weights)
    parts, before, given = [], 0, 0
    for k, weight in enumerate(weights):
        before += weight
        share = before / whole if whole else (k + 1) / len(weights)
        up_to = round(usage.completion_tokens * share)
        prompt = usage.prompt_tokens if k == 0 else 0
        parts.append(Usage(prompt_tokens=prompt, completion_tokens=up_to - given))
        given = up_to
    return parts


def _tokens(answer: Answer) -> int:
    return guess_tokens(answer.text) if answer.tokens is None else answer.tokens
