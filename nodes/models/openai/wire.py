"""A chat request as it is sent, and its reply, whole or streamed, as it is read.

The openai client does not validate replies, because many servers leave out required fields. So the
fields that are used are checked here.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Container, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from swarm_ui.budget import guess_tokens, most_tokens
from swarm_ui.engine.tasks import within
from swarm_ui.errors import ModelError
from swarm_ui.json_text import encodable
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, Completion, Decision, Request, ToolCall, ToolSpec
from swarm_ui.nodes.models.openai.options import ChatOptions
from swarm_ui.prompts import (
    as_chat,
    format_named,
    picture_size,
    shortened,
    transcript,
    with_picture,
    with_schema,
)
from swarm_ui.prompts.tool_calls import call_id

LARGEST_BODY = 16 * 2**20
"""Maximum size of a reply in bytes; applies to streams too."""
# Both are a little more than vision models are known to use.
_PIXELS_PER_TOKEN, _TOKENS_PER_IMAGE = 700, 85


def refusal(field: str, request: Request) -> str:
    """The name under which it is remembered that a server refuses a field. Each schema is a field
    of its own: the server may accept another one."""
    return f"{field} {request.json_schema}" if field == "response_format" else field


class Exchange:
    """A request as it is sent, and its reply, which comes in one piece or in many.

    The accumulator of the openai client copies the whole message for each piece, joins the names of
    servers that repeat them, and needs a number in each piece of a tool call.
    """

    def __init__(
        self, request: Request, served: str, options: ChatOptions, refused: Container[str], *,
        limited: bool, stream: bool,
    ) -> None:  # fmt: skip
        """``served``: the name on the server of what is asked. ``refused``: fields that it refuses,
        by :func:`refusal`; tools and schemas among them are written into the prompt. ``limited``:
        the reply must be limited, even if no limit was chosen. Raises ``ModelError`` if the model
        cannot read the request."""
        schema = request.json_schema
        chosen: dict[str, Any] = {
            "temperature": request.temperature,
            "seed": request.seed if options.send_seed else None,
            options.token_field: request.reply_tokens if limited else request.max_tokens,
            "logprobs": options.logprobs or None,
            "stream": stream or None,
            "stream_options": {"include_usage": True} if stream else None,
            "tools": [_tool(spec) for spec in request.tools] or None,
            "response_format": None if schema is None else _schema_format(schema),
        }
        sent = {
            name: value
            for name, value in chosen.items()
            if value is not None and refusal(name, request) not in refused
        }
        worded = None if "response_format" in sent else schema
        chat, decision = _chat(request, options, with_tools="tools" not in sent, schema=worded)
        prompt = transcript(chat, request.tools if "tools" in sent else ())
        extra = dict(options.extra_body)
        if request.pattern is not None:
            extra["structured_outputs"] = {"regex": request.pattern}
        self.body = {"model": served, "messages": list(map(message, chat)), **sent}
        """The arguments of openai's ``chat.completions.create``."""
        self.body["extra_body"] = extra
        most = most_tokens(prompt) + most_tokens(schema or "") + 3 * _image_tokens(chat)
        self.most = Usage(prompt_tokens=most, completion_tokens=request.reply_tokens)
        """The most tokens that the call may use."""
        self.usage: Usage | None = None
        """The tokens that the call used; ``None`` if the server did not report them."""
        self._complete, self._texts = False, list[str]()
        self._logprobs, self._calls = list[float](), list[dict[str, Any]]()
        self._empty = Completion(
            text="",
            prompt=prompt,
            model=served,
            adapter=request.adapter,
            prompt_format="json" if decision is None else options.prompt_format,
            dropped=None if decision is None else decision.dropped,
        )

    def add(self, chat: Any) -> str:
        """Take a chat completion, or a chunk of one; return its text. Raises ``ValueError`` if it
        is neither."""
        try:
            return self._read(chat)
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"it is not a chat completion: {error}") from None

    def _read(self, chat: Any) -> str:
        self.usage = _usage(chat.usage) or self.usage
        if name := getattr(chat, "model", None):
            self._empty = msgspec.structs.replace(self._empty, model=encodable(name))
        if not chat.choices:
            if error := getattr(chat, "error", None):
                raise ValueError(f"an error instead of a reply: {error}")
            return ""
        choice = chat.choices[0]
        self._complete |= hasattr(choice, "message") or choice.finish_reason is not None
        shown = getattr(choice.logprobs, "content", None) or ()
        self._logprobs += [float(token.logprob) for token in shown]
        part = getattr(choice, "message", None) or getattr(choice, "delta", None)
        if part is None:  # events of a content filter
            return ""
        for k, piece in enumerate(part.tool_calls or ()):
            self._read_call(getattr(piece, "index", k), piece)
        self._texts.append(encodable(part.content or part.refusal or ""))
        return self._texts[-1]

    def _read_call(self, number: object, piece: Any) -> None:
        """Take a call of a tool, or more of the arguments of the last one."""
        id, last = getattr(piece, "id", None), self._calls[-1] if self._calls else None
        # Some servers number all calls 0, and some repeat the id.
        if last is None or last["number"] != number or id not in (None, "", last["id"]):
            last = {"number": number, "id": id, "name": encodable(piece.function.name), "texts": []}
            self._calls.append(last)
        last["texts"].append(encodable(piece.function.arguments or ""))

    def completion(self) -> Completion:
        """The completion; usage that the server did not report is estimated. A model that was cut
        off while it was reasoning has said nothing. Raises ``ValueError`` if the reply is not
        complete."""
        if not self._complete:
            raise ValueError("no choices, or the stream ended before the reply was complete")
        texts = ["".join(call["texts"]) for call in self._calls]
        guess = Usage(
            prompt_tokens=-(-self.most.prompt_tokens // 3),  # a third of the most
            completion_tokens=guess_tokens("".join(self._texts + texts)),
        )
        return msgspec.structs.replace(
            self._empty,
            text="".join(self._texts),
            usage=self.usage or guess,
            logprob=sum(self._logprobs) if self._logprobs else None,
            calls=tuple(
                ToolCall(name=call["name"], arguments=text or "{}", id=call_id(call["id"]))
                for call, text in zip(self._calls, texts, strict=True)
            ),
        )


# -- requests ------------------------------------------------------------------------------------


def _chat(
    request: Request, options: ChatOptions, *, with_tools: bool, schema: str | None
) -> tuple[tuple[ChatMessage, ...], Decision | None]:
    """The chat of a request, with its tools and a schema if they have to be in the text; and its
    decision without the parts that the chat omits."""
    decision, render = request.decision, format_named(options.prompt_format).chat
    png = None if decision is None or not options.vision else decision.observation.png

    def complete(chat: tuple[ChatMessage, ...]) -> tuple[ChatMessage, ...]:
        chat = chat if png is None else with_picture(chat, png)
        return chat if schema is None else with_schema(chat, schema)

    if decision is not None and options.prompt_tokens is not None:
        most = options.prompt_tokens
        decision, chat = shortened(decision, most, lambda d: complete(render(d)), _guess)
        return chat, decision
    bare = request if with_tools else msgspec.structs.replace(request, tools=())
    chat = complete(as_chat(bare, render))
    if not options.vision and any(turn.images for turn in chat):
        raise ModelError(
            "expected a request without images, got one with images. Set ChatOptions(vision=True) "
            "if this model accepts images"
        )
    return chat, decision


def message(turn: ChatMessage) -> dict[str, object]:
    """A turn in the format of the protocol; images as data URLs after the text."""
    content: str | list[dict[str, object]] | None = turn.content
    if turn.images:
        urls = (f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in turn.images)
        content = [{"type": "text", "text": turn.content}] if turn.content else []
        content += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    sent: dict[str, object] = {"role": turn.role, "content": content}
    if turn.calls:
        sent["content"] = turn.content or None
        called = [(c.id, {"name": c.name, "arguments": c.arguments}) for c in turn.calls]
        sent["tool_calls"] = [{"id": id, "type": "function", "function": f} for id, f in called]
    if turn.role == "tool":
        sent["tool_call_id"] = turn.answers
    return sent


def _tool(spec: ToolSpec) -> dict[str, object]:
    named = {"name": spec.name, "description": spec.description}
    return {"type": "function", "function": named | {"parameters": _object(spec.parameters)}}


def _schema_format(text: str) -> dict[str, object]:
    schema = _object(text)
    named = {"name": "reply", "schema": schema, "strict": _strict(schema)}
    return {"type": "json_schema", "json_schema": named}


def _object(schema: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(schema, type=dict[str, object])
    except (ValueError, RecursionError) as error:
        what = "the json_schema of a request, or the parameters of a tool"
        raise ModelError(f"expected a JSON object as text for {what}: {error}") from None


def _strict(schema: object) -> bool:
    """Whether OpenAI accepts a schema with ``strict``: every object lists all of its fields as
    required, and allows no others."""
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
    return all(map(_strict, schema.values()))


def _guess(chat: Sequence[ChatMessage]) -> int:
    """An estimate of the tokens of a chat, on the high side."""
    return guess_tokens(transcript(chat)) + _image_tokens(chat)


def _image_tokens(chat: Sequence[ChatMessage]) -> int:
    sizes = [picture_size(png) for turn in chat for png in turn.images]
    return sum(_TOKENS_PER_IMAGE + w * h // _PIXELS_PER_TOKEN for w, h in sizes)


# -- replies -------------------------------------------------------------------------------------


def _usage(usage: Any) -> Usage | None:
    """The tokens that a server counted; ``None`` if it gives no counts."""
    counts = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
    prompt, completion = (count if type(count) is int else -1 for count in counts)
    if min(prompt, completion) < 0:
        return None
    return Usage(prompt_tokens=prompt, completion_tokens=completion)


async def limit_body(seconds: float, response: Any) -> None:
    """Make a response of httpx raise ``ValueError`` when its body becomes too large, and
    ``TimeoutError`` when no data comes for some seconds."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":  # a small body could become a large one
        raise ValueError(f"the content encoding '{encoding}', which was not requested")
    read = response.aiter_raw

    async def limited(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        left = LARGEST_BODY
        async with aclosing(read(chunk_size)) as parts:
            while part := await within(seconds, anext(parts, b"")):
                left -= len(part)
                if left < 0:
                    raise ValueError(f"a body of more than {LARGEST_BODY} bytes")
                yield part

    response.aiter_raw = limited
