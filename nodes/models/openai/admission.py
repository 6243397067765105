"""Admission of calls to an endpoint: rate limits and budgets.

In one process, :class:`LocalAdmission` keeps both. If several processes call the same endpoint,
each asks one common process for permits (:mod:`swarm_ui.nodes.models.remote.limits`).
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from asyncio_throttle.throttler import Throttler

from swarm_ui.budget import Budget, Hold, Price, likely_tokens, total
from swarm_ui.message import Usage
from swarm_ui.nodes.models.openai.settings import RateLimits
from swarm_ui.nodes.models.openai.token_throttle import Grant, TokenThrottle


@dataclass(frozen=True, slots=True)
class Permit:
    """The permission to send one call."""

    hold: Hold
    """The reservation in the budget."""
    grant: Grant | None = None
    """The permit of the rate limit, from the process that counts tokens."""
    number: int = -1
    """The name of a permit that another process gave."""


class Admission(Protocol):
    """Gives permits to the calls of one event loop."""

    async def acquire(self, most: Usage, price: Price | None, where: str) -> Permit:
        """Wait until a call may be sent that uses at most ``most`` tokens.

        Args:
            most: the most tokens that the call may use.
            price: the price of its model; ``None``: unknown.
            where: the model, for the error.

        Raises:
            BudgetExceeded: the call could exceed the budget.
            ModelUnavailable: the process that keeps the limits does not answer.
        """
        ...

    def settle(self, permit: Permit, used: Usage | None) -> float:
        """Replace the reservation by the actual usage; returns the cost of the call.

        ``used``: the actual usage; ``None`` if unknown: then the whole reservation counts.
        """
        ...

    def close(self) -> None:
        """Return permits that were not used. Called when the event loop of the calls ends."""
        ...


class LocalAdmission:
    """Rate limits and a budget that are kept in this process."""

    def __init__(self, limits: RateLimits, budget: Budget) -> None:
        self.budget = budget
        self._throttle: AbstractAsyncContextManager[None] = nullcontext()
        if limits.requests is not None:
            self._throttle = Throttler(limits.requests, limits.period)
        self._tokens: TokenThrottle | None = None
        if limits.tokens_per_minute is not None:
            self._tokens = TokenThrottle(limits.tokens_per_minute)

    async def acquire(self, most: Usage, price: Price | None, where: str) -> Permit:
        """Wait until the rate limits and the budget allow a call; see :class:`Admission`."""
        grant = None if self._tokens is None else await self._tokens.acquire(likely_tokens(most))
        try:
            async with self._throttle:
                pass
            return Permit(self.budget.reserve(most, where, price), grant)
        except BaseException:  # raised again: the call is not sent and uses no tokens
            self._correct(grant, 0)
            raise

    def settle(self, permit: Permit, used: Usage | None) -> float:
        """Replace the reservation of a call by its actual usage; see :class:`Admission`."""
        if used is not None:
            self._correct(permit.grant, total(used))
        return self.budget.settle(permit.hold, used)

    def cancel(self, permit: Permit) -> None:
        """Undo a permit whose call was not sent."""
        self._correct(permit.grant, 0)
        self.budget.cancel(permit.hold)

    def close(self) -> None:
        """See :class:`Admission`; does nothing, because no permits are kept here."""

    def _correct(self, grant: Grant | None, used: int) -> None:
        if grant is not None and self._tokens is not None:
            self._tokens.correct(grant, used)
