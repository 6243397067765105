"""What is written into a chat request, and how much it may use."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from swarm_ui.budget import guess_tokens
from swarm_ui.errors import ModelError
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, Completion
from swarm_ui.nodes.models.openai.replies import Answer, ChatReply
from swarm_ui.prompts import picture_size

_PIXELS_PER_TOKEN = 700
_TOKENS_PER_PICTURE = 85
"""Both a little more than models that can see are known to take."""


def messages(chat: Sequence[ChatMessage]) -> list[dict[str, object]]:
    """The turns as the protocol wants them; pictures as data URLs behind the text."""
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
    """The field that holds a reply to a JSON schema.

    Raises:
        ModelError: it is not the JSON text of a schema.
    """
    try:
        value = json.loads(schema)
    except ValueError as error:
        value, got = None, f"text that is no JSON ({error})"
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
    """A guess at the tokens of a chat, rather too high."""
    pictures = 0
    for turn in chat:
        for png in turn.images:
            width, height = picture_size(png)
            pictures += _TOKENS_PER_PICTURE + width * height // _PIXELS_PER_TOKEN
    return guess_tokens(prompt) + pictures


def usage_of(reply: ChatReply, most: Usage) -> Usage:
    """What a reply used; a guess where the server does not count."""
    if reply.usage is not None:
        return reply.usage
    written = sum(_tokens(answer) for answer in reply.answers)
    return Usage(
        prompt_tokens=most.prompt_tokens,
        completion_tokens=min(written, most.completion_tokens),
    )


def shares(usage: Usage, answers: Sequence[Answer]) -> list[Usage]:
    """The usage of a reply with several answers, one part each; together they are the whole.

    The prompt counts in the first. What each answer took is known if the server lists tokens;
    else it is divided by length.
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


def completions(
    reply: ChatReply, usage: Usage, *, prompt: str, model: str, adapter: str | None
) -> list[Completion]:
    """One completion an answer."""
    return [
        Completion(
            text=answer.text,
            prompt=prompt,
            usage=share,
            logprob=answer.logprob,
            model=reply.model or model,
            adapter=adapter,
        )
        for answer, share in zip(reply.answers, shares(usage, reply.answers), strict=True)
    ]
