"""Admission of calls to an endpoint: rate limits and budgets.

In one process, :class:`LocalAdmission` keeps both. If several processes call the same endpoint,
each asks one common process (:mod:`swarm_ui.nodes.models.acting.limits`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from asyncio_throttle.throttler import Throttler

from swarm_ui.budget import Budget, Hold, Price, likely_tokens, total
from swarm_ui.errors import ModelError
from swarm_ui.message import Usage
from swarm_ui.nodes.models.openai.options import RateLimits

_RETRY_SECONDS = 0.02
"""How often a call that waits for tokens looks again."""


class Permit(Protocol):
    """The permission to send one call."""

    def settle(self, used: Usage | None) -> float:
        """End the call, and return its cost.

        ``used``: what it used; ``None`` if that is unknown: then the whole reservation counts.
        """
        ...


class Admission(Protocol):
    """Gives permits to the calls of one event loop."""

    async def acquire(self, most: Usage, price: Price | None, where: str) -> Permit:
        """Wait until a call may be sent.

        Args:
            most: the most tokens that the call may use.
            price: the price of its model; ``None``: unknown.
            where: the model, for the error.

        Raises:
            BudgetExceeded: the call could exceed the budget.
            ModelError: the call can never be sent.
        """
        ...


@dataclass(slots=True)
class Grant:
    """Tokens that a call uses, or may use."""

    tokens: int
    at: float = 0.0
    """Time of the event loop."""


class TokenThrottle:
    """Makes calls wait so that they use at most ``limit`` tokens in any ``period`` seconds.

    Calls wait in the order of arrival. asyncio-throttle, which limits requests, cannot weight a
    call by its tokens.
    """

    def __init__(self, limit: int, period: float = 60.0) -> None:
        self.limit, self.period = limit, period
        self._recent: deque[Grant] = deque()
        self._queue = asyncio.Lock()

    async def acquire(self, tokens: int) -> Grant:
        """Wait until ``tokens`` may be used. Set ``tokens`` of the result to what was used."""
        clock = asyncio.get_running_loop().time
        async with self._queue:
            while self._used(clock()) + tokens > self.limit:
                await asyncio.sleep(_RETRY_SECONDS)
            grant = Grant(tokens, clock())
            self._recent.append(grant)
            return grant

    def _used(self, now: float) -> int:
        while self._recent and now - self._recent[0].at > self.period:
            self._recent.popleft()
        return sum(grant.tokens for grant in self._recent)


@dataclass(frozen=True, slots=True)
class LocalPermit:
    """A permit of :class:`LocalAdmission`."""

    budget: Budget
    hold: Hold
    grant: Grant

    def settle(self, used: Usage | None) -> float:
        """See :class:`Permit`."""
        if used is not None:
            self.grant.tokens = total(used)
        return self.budget.settle(self.hold, used)

    def cancel(self) -> None:
        """The call is not sent."""
        self.grant.tokens = 0
        self.budget.cancel(self.hold)


class LocalAdmission:
    """Rate limits and a budget that are kept in this process."""

    def __init__(self, limits: RateLimits, budget: Budget) -> None:
        self.budget, most = budget, limits.tokens_per_minute
        self._requests: AbstractAsyncContextManager[None] = nullcontext()
        if limits.requests is not None:
            self._requests = Throttler(limits.requests, limits.period)
        self._tokens = None if most is None else TokenThrottle(most)

    async def acquire(self, most: Usage, price: Price | None, where: str) -> LocalPermit:
        """See :class:`Admission`."""
        grant = Grant(likely_tokens(most))
        if self._tokens is not None:
            if grant.tokens > self._tokens.limit:
                raise ModelError(
                    f"{where}: a request may need {grant.tokens} tokens, and tokens_per_minute is "
                    f"{self._tokens.limit}. Lower its max_tokens or raise tokens_per_minute"
                )
            grant = await self._tokens.acquire(grant.tokens)
        try:
            async with self._requests:
                return LocalPermit(self.budget, self.budget.reserve(most, where, price), grant)
        except BaseException:  # raised again: the call is not sent and uses no tokens
            grant.tokens = 0
            raise
