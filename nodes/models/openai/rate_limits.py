"""How hard an endpoint may be pressed, and the one place where calls wait for their turn."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext

import openai
from asyncio_throttle.throttler import Throttler

from swarm_ui.errors import ConfigError
from swarm_ui.nodes.models.openai.token_throttle import TokenThrottle

_CONNECT_SECONDS = 5.0


class RateLimits:
    """Settings of an endpoint. Raises ``ConfigError`` if one is out of range."""

    def __init__(
        self,
        *,
        rate_limit: int | None,
        period: float,
        tokens_per_minute: int | None,
        concurrency: int,
        timeout: float,
        retries: int,
        backoff: float,
        longest_wait: float,
    ) -> None:
        least: dict[str, tuple[float | None, int]] = {
            "rate_limit": (rate_limit, 1),
            "tokens_per_minute": (tokens_per_minute, 1),
            "concurrency": (concurrency, 1),
            "retries": (retries, 0),
            "backoff": (backoff, 0),
            "longest_wait": (longest_wait, 0),
        }
        for name, (value, lowest) in least.items():
            if value is not None and not value >= lowest:
                raise ConfigError(f"OpenAIModel: {name} must be >= {lowest}, got {value}")
        for name, seconds in (("period", period), ("timeout", timeout)):
            if not seconds > 0:
                raise ConfigError(f"OpenAIModel: {name} must be > 0 seconds, got {seconds}")
        self.rate_limit, self.period = rate_limit, period
        self.tokens_per_minute = tokens_per_minute
        self.concurrency, self.timeout = concurrency, timeout
        self.retries, self.backoff, self.longest_wait = retries, backoff, longest_wait


class Line:
    """What is tied to one event loop: the client, the slots and the rate limits."""

    def __init__(self, url: str, key: str, limits: RateLimits) -> None:
        self.client = openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=url,
            max_retries=0,
            timeout=openai.Timeout(limits.timeout, connect=min(_CONNECT_SECONDS, limits.timeout)),
        )
        self.slots = asyncio.Semaphore(limits.concurrency)
        self.throttle: AbstractAsyncContextManager[None] = nullcontext()
        if limits.rate_limit is not None:
            self.throttle = Throttler(limits.rate_limit, limits.period)
        self.tokens: TokenThrottle | None = None
        if limits.tokens_per_minute is not None:
            self.tokens = TokenThrottle(limits.tokens_per_minute)
