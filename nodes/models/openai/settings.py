"""Settings of a model behind an endpoint: rate limits, retries and fields of the request."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from swarm_ui.errors import ConfigError
from swarm_ui.model import ChatMessage, Decision
from swarm_ui.prompts import format_named


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Limits of requests and tokens. All agents that share a model share its limits.

    Raises:
        ConfigError: a value is out of range.
    """

    requests: int | None = None
    """Number of requests in ``period`` seconds; ``None``: no limit."""
    period: float = 1.0
    tokens_per_minute: int | None = None
    """Tokens that requests may use in any minute; ``None``: no limit. A sixth of them may be used
    at once and the rest evenly, in the order of arrival. Until a request is answered, its maximum
    number of tokens counts, afterwards the number that it used."""
    concurrency: int = 16
    """Requests in flight at the same time."""

    @property
    def counted(self) -> bool:
        """Whether the number of requests or tokens in a period is limited."""
        return self.requests is not None or self.tokens_per_minute is not None

    def __post_init__(self) -> None:
        _check(self, positive="period", requests=1, tokens_per_minute=1, concurrency=1)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Time limit of one attempt, and rules for repeating failed attempts.

    An attempt is repeated after HTTP 408, 409, 425, 429 and 5xx, a timeout, a broken connection or
    a malformed reply.

    Raises:
        ConfigError: a value is out of range.
    """

    retries: int = 4
    """Attempts after the first."""
    backoff: float = 0.5
    """Seconds before the first retry. The wait doubles each time and is jittered. A time that the
    server asks for (``Retry-After``) takes precedence."""
    max_wait: float = 60.0
    """Seconds; if the server asks for more, the request fails."""
    timeout: float = 60.0
    """Seconds for one attempt, from sending to the last byte; of a stream, to each next piece."""
    jitter: random.Random = field(default_factory=random.Random, repr=False, compare=False)
    """Random generator of the waits. It never changes an answer."""

    def __post_init__(self) -> None:
        _check(self, positive="timeout", retries=0, backoff=0, max_wait=0)


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Fields of each request.

    Raises:
        ConfigError: ``extra_body`` cannot be written as JSON, there is no such format,
            ``prompt_tokens`` is not positive, ``tools`` is neither ``"api"`` nor ``"text"``, or
            there is no such ``token_field``.
    """

    extra_body: Mapping[str, object] = field(default_factory=dict)
    """Additional fields of the request body, such as ``chat_template_kwargs``."""
    logprobs: bool = False
    """Ask for token probabilities, to fill ``Completion.logprob``."""
    vision: bool = False
    """The model accepts images: the screenshot of a decision, if there is one, is sent."""
    token_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The endpoint's name for the limit of tokens of a reply. OpenAI's newer models accept only
    ``"max_completion_tokens"``."""
    send_seed: bool = False
    """Send the seed of each request, for servers that can repeat a sample (vLLM, SGLang)."""
    prompt_format: str = "json"
    """Format of prompts and replies; see :data:`swarm_ui.prompts.FORMATS`."""
    prompt_tokens: int | None = None
    """Maximum number of tokens of a decision's prompt, by an estimate on the high side
    (:func:`~swarm_ui.budget.guess_tokens`). Longer ones are shortened, see
    :mod:`swarm_ui.prompts.shortening`. ``None``: no limit."""
    tools: Literal["api", "text"] = "api"
    """How the tools of a request are offered: by the endpoint's own tool calls, or in the text of
    the chat. If an endpoint rejects ``"api"``, they are in the text from then on."""
    render: Callable[[Decision], tuple[ChatMessage, ...]] | None = None
    """Turns a decision into a chat; ``None``: the format's own way."""

    def __post_init__(self) -> None:
        format_named(self.prompt_format)
        if self.tools not in ("api", "text"):
            raise ConfigError(f"ChatOptions: tools must be 'api' or 'text', got {self.tools!r}")
        if self.token_field not in ("max_tokens", "max_completion_tokens"):
            raise ConfigError(
                "ChatOptions: token_field must be 'max_tokens' or 'max_completion_tokens', got "
                f"{self.token_field!r}"
            )
        if self.prompt_tokens is not None and self.prompt_tokens < 1:
            raise ConfigError(f"ChatOptions: prompt_tokens must be >= 1, got {self.prompt_tokens}")
        try:
            json.dumps(dict(self.extra_body))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"ChatOptions: extra_body must be JSON: {error}") from None


def _check(record: RateLimits | RetryPolicy, *, positive: str, **lowest: int) -> None:
    for name, least in lowest.items():
        value = getattr(record, name)
        if value is not None and not value >= least:
            raise ConfigError(f"{type(record).__name__}: {name} must be >= {least}, got {value}")
    seconds = getattr(record, positive)
    if not seconds > 0:
        raise ConfigError(f"{type(record).__name__}: {positive} must be > 0 seconds, got {seconds}")
