"""Settings of a model behind an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from swarm_ui.errors import ConfigError
from swarm_ui.prompts import format_named


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Limits of requests, for all agents that share a model. Raises ``ConfigError`` for a value
    that is out of range."""

    requests: int | None = None
    """Number of requests in ``period`` seconds, retries included; ``None``: no limit."""
    period: float = 1.0
    concurrency: int = 16
    """Requests in flight at the same time, from one process."""

    def __post_init__(self) -> None:
        fewest = min(self.concurrency, 1 if self.requests is None else self.requests)
        if not (fewest >= 1 and self.period > 0):
            raise ConfigError(
                f"expected requests and concurrency >= 1, and period > 0 seconds, got {self}"
            )


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What each request contains. Raises ``ConfigError`` for a value that is not described here."""

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
    """Maximum number of tokens of a decision's prompt, by an estimate on the high side. Longer ones
    are shortened, see :mod:`swarm_ui.prompts.shortening`. ``None``: no limit."""

    def __post_init__(self) -> None:
        format_named(self.prompt_format)
        if self.prompt_tokens is not None and self.prompt_tokens < 1:
            raise ConfigError(f"ChatOptions: prompt_tokens must be >= 1, got {self.prompt_tokens}")
