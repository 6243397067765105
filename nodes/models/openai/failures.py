"""Failures of one attempt at an endpoint: what happened, and whether another attempt may help.

The retries of the openai client are switched off, because every attempt must count against the
budget and the rate limits before it is sent, and a malformed reply is retried too."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

import openai

from swarm_ui.errors import ModelError
from swarm_ui.nodes.models.openai.replies import MalformedReply

_RETRIED = frozenset({408, 409, 425, 429})
_NEVER_CONNECTED = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
_QUOTA_USED_UP = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_CHECK_ENDPOINT = "check that this is an OpenAI-compatible endpoint"
_TOKENS = "of an agent ([team] max_tokens), or the field's name (token_field, [model] token_field)"
OPTIONAL = {
    "temperature": "temperature= of an agent ([team] temperature)",
    "seed": "ChatOptions(send_seed=) ([model] send_seed)",
    "max_tokens": f"max_tokens= {_TOKENS}",
    "max_completion_tokens": f"max_tokens= {_TOKENS}",
    "logprobs": "ChatOptions(logprobs=)",
}
"""Fields of a request that are sent only if they were chosen, and the settings that choose them."""
_NAMED = re.compile(rf"\b({'|'.join((*OPTIONAL, 'response_format'))})\b")
_NOT_SUPPORTED = re.compile(
    r"(\bnot|n't)\b.{0,20}(support|accept|allow|permit)|unsupported|unknown|unrecogni[sz]ed|"
    r"unexpected",
    re.IGNORECASE,
)
_REJECTED = frozenset({400, 404, 422, 501})
"""HTTP statuses of servers that do not support a field of the request."""


class AttemptFailure(NamedTuple):
    """Why one attempt failed."""

    got: str
    advice: str
    retryable: bool
    retry_after: float | None = None
    """Number of seconds that the server asked the client to wait; ``None`` if it asked for no
    wait."""
    status: int | None = None
    """HTTP status; ``None`` if no reply arrived."""
    unbilled: bool = False
    """The server did no work: it answered with an HTTP error, or there was no connection."""
    field: str = ""
    """The field of the request that the server names as the reason."""
    unsupported: bool = False
    """Whether the server does not know the ``field``, or accepts only its default."""


class RequestRejected(ModelError):
    """The endpoint rejected a request with an HTTP status."""

    def __init__(
        self, message: str, status: int, field: str = "", unsupported: bool = False
    ) -> None:
        """For ``field`` and ``unsupported`` see :class:`AttemptFailure`."""
        super().__init__(message)
        self.status, self.field, self.unsupported = status, field, unsupported

    @property
    def about_fields(self) -> bool:
        """Whether a field of the request may be the reason."""
        return self.status in _REJECTED


def rejected_field(
    rejection: RequestRejected, body: Mapping[str, object], needed: Collection[str]
) -> str | None:
    """The field to omit in the next attempt after a rejection; ``None`` if there is none.

    Args:
        rejection: the answer of the endpoint.
        body: the fields of the request.
        needed: optional fields that must be sent.
    """
    if not rejection.about_fields:
        return None
    field, text = rejection.field, str(rejection)
    if rejection.unsupported and field in OPTIONAL and field in body:
        return None if field in needed else field
    if "stream_options" in body and "stream_options" in text:
        return "stream_options"
    if "tools" in body and "tool" in text.lower():
        return "tools"
    return "response_format" if "response_format" in body else None


def attempt_failure(error: Exception, key_name: str) -> AttemptFailure | None:
    """Describe an exception of one attempt; ``None`` if it does not come from the endpoint.
    ``key_name``: the source of the key, for the error text."""
    if isinstance(error, openai.APIConnectionError) and isinstance(error.__cause__, MalformedReply):
        error = error.__cause__
    if isinstance(error, MalformedReply):
        return AttemptFailure(str(error), _CHECK_ENDPOINT, retryable=True)
    if isinstance(error, openai.APIStatusError):
        return _status_failure(error, key_name)
    cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
    unconnected = type(cause).__name__ in _NEVER_CONNECTED
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return AttemptFailure(
            "no reply in time", "raise timeout, or lower concurrency", True, unbilled=unconnected
        )
    if isinstance(error, openai.APIConnectionError) or _is_transport_error(error):
        detail = f"{type(cause).__name__}: {cause}" if cause is not None else str(error)
        got = f"{'no' if unconnected else 'a broken'} connection ({detail})"
        advice = "check that the server runs at this address"
        return AttemptFailure(got, advice, True, unbilled=unconnected)
    if isinstance(error, json.JSONDecodeError | openai.APIResponseValidationError):
        return AttemptFailure("a reply that is not valid JSON", _CHECK_ENDPOINT, retryable=True)
    if isinstance(error, ValueError | RecursionError):  # invalid UTF-8, 4,300 digits, deep nesting
        return AttemptFailure(f"a reply that cannot be read ({error})", _CHECK_ENDPOINT, True)
    if isinstance(error, openai.APIError):
        got = f"an error in the middle of the stream ({error.message})"
        return AttemptFailure(got, "check the endpoint's log", retryable=True)
    if isinstance(error, openai.OpenAIError):
        got = f"{type(error).__name__}: {error}"
        return AttemptFailure(got, "check the endpoint's log", retryable=False)
    return None


def _is_transport_error(error: Exception) -> bool:
    """Whether httpx raised it in the middle of a stream. Older versions of openai pass such errors
    on as they are. openai 1 and 2 use httpx, openai 3 uses httpx2, so neither is imported here."""
    return type(error).__module__.partition(".")[0] in ("httpx", "httpx2")


def _status_failure(error: openai.APIStatusError, key_name: str) -> AttemptFailure:
    status = error.status_code
    detail = " ".join(error.message.split())
    retryable = status in _RETRIED or (status >= 500 and status != 501)
    wait = retry_after(error.response.headers)
    advice = "see the endpoint's log"
    if error.code in _QUOTA_USED_UP:
        retryable, advice = False, "check the account's quota and billing"
    elif status == 429:
        advice = "lower the rate limit or the concurrency"
    elif status in (401, 403):
        advice = f"put a valid key into {key_name}"
    elif status == 404:
        advice = "check the model name and that the address ends in /v1"
    named = _NAMED.search(f"{error.param or ''} {detail}") if status in _REJECTED else None
    field = "" if named is None else named[0]
    if field in OPTIONAL:
        advice = f"change or leave out '{field}', which is set by {OPTIONAL[field]}"
    got = f"HTTP {status} ({detail})"
    unsupported = bool(field and _NOT_SUPPORTED.search(detail))
    return AttemptFailure(got, advice, retryable, wait, status, True, field, unsupported)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The number of seconds that a reply asks the client to wait (``retry-after-ms``, or
    ``retry-after`` in seconds or as a date); ``None`` if it has no such header, or the header
    cannot be read."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value.strip()):
            return float(value) * unit
        try:
            date = email.utils.parsedate_tz(value)
            if date is not None:
                return max(0.0, email.utils.mktime_tz(date) - time.time())
        except (ValueError, OverflowError, TypeError):  # a date that does not exist
            return None
    return None
