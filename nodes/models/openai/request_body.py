"""Messages of a chat request, and how many tokens a request uses."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise, repeat

from swarm_ui.budget import guess_tokens, likely_tokens, most_tokens
from swarm_ui.errors import ModelError
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, Request, ToolSpec
from swarm_ui.nodes.models.openai.replies import Answer, ChatReply
from swarm_ui.nodes.models.openai.settings import ChatOptions
from swarm_ui.prompts import picture_size

# Both are a little more than vision models are known to use.
_PIXELS_PER_TOKEN = 700
_TOKENS_PER_IMAGE = 85
_TINY, _HUGE, _SPARE = 256, 8, 4096
"""Accepted range of a server's count, relative to our estimate: from a 256th of it to 8 times it
plus 4096."""


def messages(chat: Sequence[ChatMessage]) -> list[dict[str, object]]:
    """The turns in the format of the protocol; images as data URLs after the text."""
    return [_message(turn) for turn in chat]


def tools(specs: Sequence[ToolSpec], where: str) -> list[dict[str, object]]:
    """The tools in the format of the protocol. Raises ``ModelError`` if a schema is not a JSON
    object as text."""
    return [
        {
            "type": "function",
            "function": {
                "name": spec.name,
                "description": spec.description,
                "parameters": _schema(spec.parameters, f"{where}: parameters of '{spec.name}'"),
            },
        }
        for spec in specs
    ]


def _message(turn: ChatMessage) -> dict[str, object]:
    message: dict[str, object] = {"role": turn.role, "content": _content(turn)}
    if turn.calls:
        message["content"] = turn.content or None
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in turn.calls
        ]
    if turn.role == "tool":
        message["tool_call_id"] = turn.answers
    return message


def _content(turn: ChatMessage) -> str | list[dict[str, object]]:
    if not turn.images:
        return turn.content
    urls = (f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in turn.images)
    pictures: list[dict[str, object]] = [
        {"type": "image_url", "image_url": {"url": url}} for url in urls
    ]
    return [{"type": "text", "text": turn.content}, *pictures] if turn.content else pictures


def schema_format(schema: str, where: str) -> dict[str, object]:
    """The ``response_format`` that makes a reply follow a JSON schema. Raises ``ModelError`` if the
    text is not a JSON object."""
    value = _schema(schema, f"{where}: json_schema of a request")
    return {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": value, "strict": _strict(value)},
    }


def chosen_fields(
    request: Request, options: ChatOptions, limit: int | None, n: int, *, stream: bool
) -> dict[str, object]:
    """The optional fields of a request for ``n`` replies of at most ``limit`` tokens. Fields that
    were not chosen are left out: some servers accept only their own values."""
    fields: dict[str, object] = {
        "temperature": request.temperature,
        "seed": request.seed if options.send_seed else None,
        options.token_field: limit,
        "logprobs": options.logprobs or None,
        "n": n if n > 1 else None,
        "stream_options": {"include_usage": True} if stream else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def schema_field(request: Request) -> str:
    """A name for the ``response_format`` of a request: a server may support that of another."""
    return f"response_format {request.json_schema}"


def _strict(schema: object) -> bool:
    """Whether a schema is of the kind that OpenAI accepts with ``strict``: every object lists all
    of its fields as required, and allows no others."""
    if isinstance(schema, list):
        return all(map(_strict, schema))
    if not isinstance(schema, dict):
        return True
    fields = schema.get("properties")
    if isinstance(fields, dict) and (
        schema.get("additionalProperties") is not False
        or {*fields} != {*schema.get("required", ())}
    ):
        return False
    named = [each for word in ("properties", "$defs") for each in _values(schema.get(word))]
    others = [value for word, value in schema.items() if word not in ("properties", "$defs")]
    return all(map(_strict, [*named, *others]))


def _values(found: object) -> list[object]:
    return [*found.values()] if isinstance(found, dict) else []


def _schema(text: str, what: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError as error:
        value, got = None, f"text that is not JSON ({error})"
    else:
        got = f"a {type(value).__name__}"
    if not isinstance(value, dict):
        raise ModelError(f"{what} must be a JSON object as text, got {got}")
    return value


def prompt_tokens(chat: Sequence[ChatMessage], prompt: str) -> int:
    """An estimate of the tokens of a chat, on the high side."""
    return guess_tokens(prompt) + _image_tokens(chat)


def most_prompt_tokens(chat: Sequence[ChatMessage], *texts: str) -> int:
    """The most tokens of a chat with these texts and its images: of both, about three times the
    estimate."""
    return sum(map(most_tokens, texts)) + 3 * _image_tokens(chat)


def _image_tokens(chat: Sequence[ChatMessage]) -> int:
    sizes = [picture_size(png) for turn in chat for png in turn.images]
    return sum(_TOKENS_PER_IMAGE + w * h // _PIXELS_PER_TOKEN for w, h in sizes)


def usage_of(reply: ChatReply, asked: int, longest: int | None) -> Usage:
    """The usage of a reply; an estimate if the server does not report it.

    Args:
        reply: the reply.
        asked: the most tokens of the prompt.
        longest: the limit of tokens that was sent, if any.
    """
    if reply.usage is not None:
        return reply.usage
    written = sum(_tokens(answer) for answer in reply.answers)
    completion = written if longest is None else min(written, longest)
    return Usage(
        prompt_tokens=likely_tokens(Usage(prompt_tokens=asked)), completion_tokens=completion
    )


def with_plausible_usage(reply: ChatReply, asked: int, longest: int | None) -> ChatReply:
    """The reply, with an implausible count of tokens replaced by the most that it can be.
    Otherwise a server could disable a budget with a negative or tiny count, or exhaust it with a
    huge one. ``asked`` and ``longest`` are those of :func:`usage_of`."""
    given = reply.usage
    if given is None:
        return reply
    written = sum(guess_tokens(answer.text) for answer in reply.answers)
    prompt, completion = given.prompt_tokens, given.completion_tokens
    if not max(1, asked // _TINY) <= prompt <= _HUGE * asked + _SPARE:
        prompt = asked
    most = math.inf if longest is None else _HUGE * longest + _SPARE
    if not -(-written // _TINY) <= completion <= most:
        completed = _most_written(reply)
        completion = completed if longest is None else min(completed, longest)
    return reply._replace(usage=Usage(prompt_tokens=prompt, completion_tokens=completion))


def _most_written(reply: ChatReply) -> int:
    calls = [call.arguments for answer in reply.answers for call in answer.calls]
    return sum(map(most_tokens, [*(answer.text for answer in reply.answers), *calls]))


def shares(usage: Usage, answers: Sequence[Answer]) -> list[Usage]:
    """The usage of a reply divided among its answers; the parts add up to the whole.

    The first answer has the tokens of the prompt. The tokens of the completion are divided by the
    number of tokens of each answer if the server lists them, else by an estimate of it.
    """
    sums = [*accumulate(map(_tokens, answers), initial=0)]
    if not sums[-1]:
        sums = [*range(len(answers) + 1)]
    ends = [round(usage.completion_tokens * (each / sums[-1])) for each in sums]
    prompts = chain([usage.prompt_tokens], repeat(0))
    return [
        Usage(prompt_tokens=prompt, completion_tokens=end - start)
        for prompt, (start, end) in zip(prompts, pairwise(ends), strict=False)
    ]


def _tokens(answer: Answer) -> int:
    if answer.tokens is not None:
        return answer.tokens
    return guess_tokens(answer.text) + sum(guess_tokens(call.arguments) for call in answer.calls)
