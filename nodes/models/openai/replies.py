"""The wire side of an OpenAI-compatible endpoint: replies, failures, and what must not leak."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

import msgspec
import openai

from swarm_ui.errors import ModelError
from swarm_ui.message import Usage

_RETRIED = frozenset({408, 409, 425, 429})
_NEVER_CONNECTED = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
_HOPELESS = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


class _Token(msgspec.Struct):
    logprob: float


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Text(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Text
    logprobs: _Logprobs | None = None
    index: int = 0


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int | None = None


class _Chat(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: _Usage | None = None


class _Piece(msgspec.Struct):
    delta: _Text = _Text()
    logprobs: _Logprobs | None = None
    finish_reason: str | None = None


class _Problem(msgspec.Struct):
    message: str = "no message"


class _Chunk(msgspec.Struct):
    choices: list[_Piece] = []
    model: str | None = None
    usage: _Usage | None = None
    error: _Problem | None = None


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


class Answer(NamedTuple):
    """One text out of a reply."""

    text: str
    logprob: float | None = None
    tokens: int | None = None
    """``None`` if the server did not list them."""


class ChatReply(NamedTuple):
    """One chat completion as it came over the wire."""

    answers: tuple[Answer, ...]
    """At least one; more where more were asked for."""
    usage: Usage | None
    """``None`` if the server did not say."""
    model: str


class Chunk(NamedTuple):
    """One event of a streamed chat completion."""

    text: str
    logprobs: tuple[float, ...]
    usage: Usage | None
    model: str
    last: bool
    """Nothing but the usage comes after it."""


class Failure(NamedTuple):
    """Why one attempt failed, and whether another one may help."""

    got: str
    advice: str
    again: bool
    wait: float | None = None
    """Seconds the server asked to wait; ``None`` if it did not."""
    status: int | None = None
    """HTTP status; ``None`` if no reply came."""
    unpaid: bool = False
    """The server did no work for it: an HTTP error, or no connection at all."""


class Refused(ModelError):
    """The endpoint said no to a request, with an HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Malformed(ValueError):
    """The body of a 200 reply is not what the protocol says."""


def read_chat(body: bytes) -> ChatReply:
    """Decode the body of ``/chat/completions``. Raises :class:`Malformed`.

    A null content (a model that was cut off while thinking) is an empty text, not a fault.
    """
    try:
        chat = msgspec.json.decode(body, type=_Chat)
    except msgspec.DecodeError as error:
        raise Malformed(f"a reply that is no chat completion ({error})") from None
    if not chat.choices:
        raise Malformed("a chat completion with an empty list of choices")
    choices = sorted(chat.choices, key=lambda choice: choice.index)
    return ChatReply(tuple(map(_answer, choices)), _used(chat.usage), chat.model or "")


def read_chunk(data: bytes) -> Chunk:
    """Decode one event of a stream. Raises :class:`Malformed`; so it does if the server reports
    an error in the middle of its reply."""
    try:
        chunk = msgspec.json.decode(data, type=_Chunk)
    except msgspec.DecodeError as error:
        raise Malformed(f"an event that is no piece of a chat completion ({error})") from None
    if chunk.error is not None:
        raise Malformed(f"an error instead of the rest ({chunk.error.message[:300]})")
    usage, model = _used(chunk.usage), chunk.model or ""
    if not chunk.choices:
        return Chunk("", (), usage, model, last=False)
    piece = chunk.choices[0]
    tokens = (piece.logprobs.content if piece.logprobs is not None else None) or []
    return Chunk(
        text=piece.delta.content or piece.delta.refusal or "",
        logprobs=tuple([token.logprob for token in tokens]),
        usage=usage,
        model=model,
        last=piece.finish_reason is not None,
    )


def _answer(choice: _Choice) -> Answer:
    tokens = choice.logprobs.content if choice.logprobs is not None else None
    return Answer(
        text=choice.message.content or choice.message.refusal or "",
        logprob=sum(token.logprob for token in tokens) if tokens else None,
        tokens=len(tokens) if tokens else None,
    )


def _used(usage: _Usage | None) -> Usage | None:
    if usage is None:
        return None
    return Usage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens or 0)


def read_models(body: bytes) -> tuple[str, ...]:
    """Decode the body of ``/models``: the names served. Raises :class:`Malformed`."""
    try:
        return tuple(model.id for model in msgspec.json.decode(body, type=_Models).data)
    except msgspec.DecodeError as error:
        raise Malformed(f"a reply that is no list of models ({error})") from None


def failure(error: Exception, key_name: str) -> Failure:
    """Sort out an exception of one attempt: what came, what to do, and whether to try again."""
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        unpaid = type(error.__cause__).__name__ in _NEVER_CONNECTED
        advice = "raise timeout, or lower concurrency"
        return Failure("no reply in time", advice, again=True, unpaid=unpaid)
    if isinstance(error, openai.APIStatusError):
        return _status(error, key_name)
    if isinstance(error, openai.APIConnectionError) or _of_transport(error):
        cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
        detail = f"{type(cause).__name__}: {cause}" if cause is not None else str(error)
        unpaid = type(cause).__name__ in _NEVER_CONNECTED
        got = f"{'no' if unpaid else 'a broken'} connection ({detail})"
        return Failure(got, "check that the server runs at this address", again=True, unpaid=unpaid)
    if isinstance(error, Malformed):
        return Failure(str(error), "check that this is an OpenAI-compatible endpoint", again=True)
    return Failure(f"{type(error).__name__}: {error}", "check the endpoint's log", again=False)


def passing(error: Exception) -> bool:
    """Whether :func:`failure` knows what to make of an exception; all others are bugs."""
    known = isinstance(error, openai.OpenAIError | TimeoutError | Malformed)
    return known or _of_transport(error)


def _of_transport(error: Exception) -> bool:
    """Raised as it is in the middle of a stream. openai 1 and 2 stand on httpx, openai 3 on httpx2;
    which one there is need not be known to name them."""
    return type(error).__module__.partition(".")[0] in ("httpx", "httpx2")


def _status(error: openai.APIStatusError, key_name: str) -> Failure:
    status = error.status_code
    detail = " ".join(error.message.split())[:300]
    again = status in _RETRIED or (status >= 500 and status != 501)
    wait = retry_after(error.response.headers)
    advice = "lower rate_limit or concurrency" if status == 429 else "see the endpoint's log"
    if error.code in _HOPELESS:
        again, advice = False, "check the account's quota and billing"
    elif status in (401, 403):
        advice = f"put a valid key into {key_name}"
    elif status == 404:
        advice = "check the model name and that the address ends in /v1"
    got = f"HTTP {status} ({detail})"
    return Failure(got, advice, again=again, wait=wait, status=status, unpaid=True)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a reply asks to wait (``retry-after-ms``, or ``retry-after`` in seconds or as a
    date); ``None`` if it does not say or cannot be read."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value.strip()):
            return float(value) * unit
        date = email.utils.parsedate_tz(value)
        if date is not None:
            return max(0.0, email.utils.mktime_tz(date) - time.time())
    return None


def without_credentials(url: str) -> str:
    """An address that may be shown: no user, password, query or fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
