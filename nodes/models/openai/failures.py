"""Failures of an endpoint: what they are, what to do, and which field of a request was refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import openai

from swarm_ui.errors import ModelError

NEVER_CONNECTED = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
_TOKENS = "of an agent ([team] max_tokens), or the field's name (token_field, [model] token_field)"
OPTIONAL = {
    "temperature": "temperature= of an agent ([team] temperature)",
    "seed": "ChatOptions(send_seed=) ([model] send_seed)",
    "max_tokens": f"max_tokens= {_TOKENS}",
    "max_completion_tokens": f"max_tokens= {_TOKENS}",
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

    def __init__(self, message: str, status: int, told: str = "") -> None:
        """``told``: the words of the server."""
        super().__init__(message)
        self.status, self.told = status, told

    def field(self, body: Mapping[str, object], needed: Collection[str]) -> str | None:
        """The field of a request that the server does not know, or of which it accepts only the
        default; ``None`` if it was rejected for another reason. ``needed``: must be sent."""
        if self.status not in (400, 404, 422):
            return None
        named = next((f for f in OPTIONAL if f in body and _names(self.told, f)), None)
        if named is not None:
            return named if named not in needed and _NOT_SUPPORTED.search(self.told) else None
        others = (f for f, words in _REPLACED.items() if f in body and words.search(self.told))
        return next(others, None)


def is_passing(error: Exception) -> bool:
    """Whether the same request may succeed later."""
    if not isinstance(error, openai.APIStatusError):
        return True
    passing = error.status_code in (408, 409, 429) or error.status_code >= 500
    return passing and error.code != "insufficient_quota"


def told(error: openai.APIStatusError) -> str:
    """The words of a server, with the field that it names."""
    return " ".join(f"{error.param or ''} {error.message}".split())


def explained(error: Exception, key: str) -> tuple[str, str] | None:
    """What an attempt got, and what to do; ``None`` if the error does not come from the endpoint.
    ``key``: the source of the key."""
    if isinstance(error, openai.APIStatusError):
        return f"HTTP {error.status_code} ({' '.join(error.message.split())})", _advice(error, key)
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return "no reply in time", "raise timeout, or lower concurrency"
    transport = type(error).__module__.startswith("httpx")  # inside of a stream
    if isinstance(error, openai.APIConnectionError) or transport:
        cause = error if transport else error.__cause__
        kind = "no" if type(cause).__name__ in NEVER_CONNECTED else "a broken"
        got = f"{kind} connection ({type(cause).__name__}: {cause})"
        return got, "check that the server runs at this address"
    if isinstance(error, ValueError | RecursionError):  # malformed, or not JSON
        got = f"a reply that cannot be read ({error})"
        return got, "check that this is an OpenAI-compatible endpoint"
    if isinstance(error, openai.APIError):
        return f"an error in the middle of the stream ({error.message})", "check the endpoint's log"
    return None


def _advice(error: openai.APIStatusError, key: str) -> str:
    named = next((field for field in OPTIONAL if _names(told(error), field)), None)
    by_field = f"change or leave out '{named}', which is set by {OPTIONAL[named]}" if named else ""
    by_status = {
        401: f"put a valid key into {key}",
        403: f"put a valid key into {key}",
        404: "check the model name and that the address ends in /v1",
        429: "lower the rate limit or the concurrency, or check the account's quota",
    }
    return by_status.get(error.status_code) or by_field or "see the endpoint's log"


def _names(text: str, field: str) -> bool:
    return re.search(rf"\b{field}\b", text) is not None
