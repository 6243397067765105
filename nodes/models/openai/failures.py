"""Failures of an endpoint: what they are, what to do, and which field of a request was refused."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime

import openai

from swarm_ui.errors import ModelError

FIRST_PAUSE = 0.5
_LONGEST_PAUSE, _LONGEST_ASKED = 8.0, 120.0
"""Seconds before the second attempt, before later ones, and the most that a server may ask for."""
_NEVER_CONNECTED = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
_TOKENS = (
    "max_tokens= of an agent ([team] max_tokens), or token_field, its name ([model] token_field)"
)
OPTIONAL = {
    "temperature": "temperature= of an agent ([team] temperature)",
    "seed": "ChatOptions(send_seed=) ([model] send_seed)",
    "max_tokens": _TOKENS,
    "max_completion_tokens": _TOKENS,
    "logprobs": "ChatOptions(logprobs=)",
}
"""Fields of a request that are sent only if they were chosen, and the settings that choose them."""
_REPLACED = {
    "stream_options": re.compile("stream_options"),
    "tools": re.compile("tool", re.IGNORECASE),
    "response_format": re.compile("response_format|schema|grammar", re.IGNORECASE),
}
"""Fields that a request can do without, and how a server names them in a rejection."""
_NOT_SUPPORTED = re.compile(
    r"(\bnot|n't)\b.{0,20}(support|accept|allow|permit)|unsupported|unknown|unrecogni[sz]ed|"
    r"unexpected",
    re.IGNORECASE,
)


class RequestRejected(ModelError):
    """The endpoint rejected a request with an HTTP status, and would reject it again."""

    def __init__(self, message: str, status: int, told: str) -> None:
        """``told``: the words of the server."""
        super().__init__(message)
        self.status, self.told = status, told

    def field(self, body: Mapping[str, object], needed: Collection[str]) -> str | None:
        """The field of a request that the server does not know, or of which it accepts only the
        default; ``None`` if it was rejected for another reason. ``needed``: must be sent."""
        if self.status not in (400, 404, 422):
            return None
        if (named := _named(self.told, body)) is not None:
            return named if named not in needed and _NOT_SUPPORTED.search(self.told) else None
        others = (f for f, words in _REPLACED.items() if f in body and words.search(self.told))
        return next(others, None)


def is_passing(error: openai.APIStatusError) -> bool:
    """Whether the same request may succeed later."""
    passing = error.status_code in (408, 409, 429) or error.status_code >= 500
    return passing and error.code != "insufficient_quota"


def is_free(error: Exception) -> bool:
    """Whether an attempt costs nothing: the server refused it, or it reached no server."""
    never = type(error.__cause__).__name__ in _NEVER_CONNECTED
    return never or isinstance(error, openai.APIStatusError)


def pause(error: Exception, attempts: int) -> float:
    """Seconds before the next attempt: what the server asks for, else half a second, doubled each
    time."""
    headers = dict(getattr(getattr(error, "response", None), "headers", {}))
    with suppress(KeyError, TypeError, ValueError):  # a date
        at = parsedate_to_datetime(headers["retry-after"]).timestamp()
        headers["retry-after"] = str(max(0.0, at - time.time()))
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            if 0 <= (asked := unit * float(headers.get(name, "none"))) <= _LONGEST_ASKED:
                return asked
    return min(_LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (attempts - 1)) * random.uniform(0.75, 1.0)


def told(error: openai.APIStatusError) -> str:
    """The words of a server, with the field that it names."""
    return " ".join(f"{error.param or ''} {error.message}".split())


def explained(error: Exception, key: str) -> tuple[str, str] | None:
    """What an attempt got, and what to do; ``None`` if the error does not come from the endpoint.
    ``key``: the source of the key."""
    transport = type(error).__module__.startswith("httpx")  # inside of a stream
    cause = error if transport else error.__cause__
    if isinstance(error, openai.APIStatusError):
        named = _named(told(error), OPTIONAL)
        advice = {
            401: f"put a valid key into {key}",
            403: f"put a valid key into {key}",
            404: "check the model name and that the address ends in /v1",
            429: "lower the rate limit or the concurrency, or check the account's quota",
        }.get(error.status_code, "see the endpoint's log")
        if named is not None:
            advice = f"change or leave out '{named}', which is set by {OPTIONAL[named]}"
        return f"HTTP {error.status_code} ({' '.join(error.message.split())})", advice
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return "no reply in time", "raise timeout, or lower concurrency"
    if isinstance(error, openai.APIConnectionError) or transport:
        kind = "no" if type(cause).__name__ in _NEVER_CONNECTED else "a broken"
        got = f"{kind} connection ({type(cause).__name__}: {cause})"
        return got, "check that the server runs at this address"
    if isinstance(error, ValueError | RecursionError):  # malformed, or not JSON
        got = f"a reply that cannot be read ({error})"
        return got, "check that this is an OpenAI-compatible endpoint"
    if isinstance(error, openai.APIError):
        return f"an error in the middle of the stream ({error.message})", "check the endpoint's log"
    return None


def _named(text: str, fields: Collection[str]) -> str | None:
    """The optional field, of these, that a text names."""
    found = (name for name in OPTIONAL if name in fields and re.search(rf"\b{name}\b", text))
    return next(found, None)
