"""Failures of an endpoint: what they are, what to do, and which field of a request was refused."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterable, Mapping
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
CHOSEN = {
    "temperature": "temperature= of an agent ([team] temperature)",
    "seed": "ChatOptions(send_seed=) ([model] send_seed)",
    "max_tokens": _TOKENS,
    "max_completion_tokens": _TOKENS,
    "logprobs": "ChatOptions(logprobs=)",
}
"""Fields of a request that are sent only if they were chosen, and the settings that choose them."""
_NAMED = {field: rf"\b{field}\b" for field in CHOSEN} | {
    "stream_options": "stream_options",
    "tools": "tool",
    "response_format": "response_format|schema|grammar",
}
"""How a server names a field that a request can do without."""
_NOT_SUPPORTED = re.compile(
    r"(\bnot|n't)\b.{0,20}(support|accept|allow|permit)|unsupported|unknown|unrecogni[sz]ed|"
    r"unexpected",
    re.IGNORECASE,
)
_ADVICE = {
    **dict.fromkeys((401, 403), "put a valid key into {key}"),
    404: "check the model name and that the address ends in /v1",
    429: "lower the rate limit or the concurrency, or check the account's quota",
}


class RequestRejected(ModelError):
    """The endpoint rejected a request with an HTTP status, and would reject it again."""

    def __init__(self, message: str, status: int, told: str) -> None:
        """``told``: the words of the server."""
        super().__init__(message)
        self.status, self.told = status, told

    def field(self, body: Mapping[str, object]) -> str | None:
        """The field of a request that the server does not know, or of which it accepts only the
        default; ``None`` if it was rejected for another reason."""
        field = _named(self.told, body) if self.status in (400, 404, 422) else None
        wrong_value = field in CHOSEN and not _NOT_SUPPORTED.search(self.told)
        return None if wrong_value else field


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
    asked = getattr(getattr(error, "response", None), "headers", {}).get("retry-after", "")
    seconds = -1.0
    with suppress(ValueError):
        seconds = float(asked)
    with suppress(TypeError, ValueError):
        seconds = max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
    if 0 <= seconds <= _LONGEST_ASKED:
        return seconds
    return min(_LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (attempts - 1)) * random.uniform(0.75, 1.0)


def told(error: openai.APIStatusError) -> str:
    """The words of a server, with the field that it names."""
    return " ".join(f"{error.param or ''} {error.message}".split())


def explained(error: Exception, key: str) -> tuple[str, str] | None:
    """What an attempt got, and what to do; ``None`` if the error does not come from the endpoint.
    ``key``: the source of the key."""
    transport = type(error).__module__.startswith("httpx")  # inside of a stream
    if isinstance(error, openai.APIStatusError):
        advice = _ADVICE.get(error.status_code, "see the endpoint's log").format(key=key)
        if (field := _named(told(error), CHOSEN)) is not None:
            advice = f"change or leave out '{field}', which is set by {CHOSEN[field]}"
        return f"HTTP {error.status_code} ({' '.join(error.message.split())})", advice
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return "no reply in time", "raise timeout, or lower concurrency"
    if isinstance(error, openai.APIConnectionError) or transport:
        cause = error if transport else error.__cause__
        kind = "no" if type(cause).__name__ in _NEVER_CONNECTED else "a broken"
        got = f"{kind} connection ({type(cause).__name__}: {cause})"
        return got, "check that the server runs at this address"
    if isinstance(error, ValueError | RecursionError | openai.APIError):  # or in a stream
        got = f"a reply that cannot be read ({error})"
        return got, "check the endpoint's log, and that it is OpenAI-compatible"
    return None


def _named(text: str, fields: Iterable[str]) -> str | None:
    """The field, of these, that a text names."""
    found = (f for f, words in _NAMED.items() if f in fields and re.search(words, text, re.I))
    return next(found, None)
