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

from swarm_ui.message import Usage

_RETRIED = frozenset({408, 409, 425, 429})
_HOPELESS = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


class _Token(msgspec.Struct):
    logprob: float


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Text(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Text
    logprobs: _Logprobs | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int | None = None


class _Chat(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: _Usage | None = None


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


class ChatReply(NamedTuple):
    """One chat completion as it came over the wire."""

    text: str
    usage: Usage | None
    """``None`` if the server did not say."""
    logprob: float | None
    model: str


class Failure(NamedTuple):
    """Why one attempt failed, and whether another one may help."""

    got: str
    advice: str
    again: bool
    wait: float | None = None
    """Seconds the server asked to wait; ``None`` if it did not."""


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
    choice = chat.choices[0]
    tokens = choice.logprobs.content if choice.logprobs is not None else None
    return ChatReply(
        text=choice.message.content or choice.message.refusal or "",
        usage=None
        if chat.usage is None
        else Usage(
            prompt_tokens=chat.usage.prompt_tokens,
            completion_tokens=chat.usage.completion_tokens or 0,
        ),
        logprob=sum(token.logprob for token in tokens) if tokens else None,
        model=chat.model or "",
    )


def read_models(body: bytes) -> tuple[str, ...]:
    """Decode the body of ``/models``: the names served. Raises :class:`Malformed`."""
    try:
        return tuple(model.id for model in msgspec.json.decode(body, type=_Models).data)
    except msgspec.DecodeError as error:
        raise Malformed(f"a reply that is no list of models ({error})") from None


def failure(error: Exception, key_env: str) -> Failure:
    """Sort out an exception of one attempt: what came, what to do, and whether to try again."""
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return Failure("no reply in time", "raise timeout, or lower concurrency", again=True)
    if isinstance(error, openai.APIStatusError):
        return _status(error, key_env)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        detail = f"{type(cause).__name__}: {cause}" if cause is not None else str(error)
        return Failure(
            f"no connection ({detail})", "check that the server runs at this address", again=True
        )
    if isinstance(error, Malformed):
        return Failure(str(error), "check that this is an OpenAI-compatible endpoint", again=True)
    return Failure(f"{type(error).__name__}: {error}", "check the endpoint's log", again=False)


def _status(error: openai.APIStatusError, key_env: str) -> Failure:
    status = error.status_code
    detail = " ".join(error.message.split())[:300]
    got = f"HTTP {status} ({detail})"
    if error.code in _HOPELESS:
        return Failure(got, "check the account's quota and billing", again=False)
    if status in (401, 403):
        return Failure(got, f"put a valid key into the variable {key_env}", again=False)
    if status == 404:
        return Failure(got, "check the model name and that the address ends in /v1", again=False)
    again = status in _RETRIED or status >= 500
    advice = "lower rate_limit or concurrency" if status == 429 else "see the endpoint's log"
    return Failure(got, advice, again=again, wait=retry_after(error.response.headers))


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
