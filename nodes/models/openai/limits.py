"""Admission of calls to an endpoint: rate limits and budgets.

In one process, :class:`LocalAdmission` keeps both. If several processes call the same endpoint,
each asks one common process (:mod:`swarm_ui.nodes.models.acting.limits`).
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from asyncio_throttle.throttler import Throttler

from swarm_ui.budget import Budget, Hold, Price
from swarm_ui.message import Usage
from swarm_ui.nodes.models.openai.options import RateLimits


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
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalPermit:
    """A permit of :class:`LocalAdmission`."""

    budget: Budget
    hold: Hold

    def settle(self, used: Usage | None) -> float:
        """See :class:`Permit`."""
        return self.budget.settle(self.hold, used)

    def cancel(self) -> None:
        """The call is not sent."""
        self.budget.cancel(self.hold)


class LocalAdmission:
    """A rate limit and a budget that are kept in this process."""

    def __init__(self, limits: RateLimits, budget: Budget) -> None:
        self._budget = budget
        self._requests: AbstractAsyncContextManager[None] = nullcontext()
        if limits.requests is not None:
            self._requests = Throttler(limits.requests, limits.period)

    async def acquire(self, most: Usage, price: Price | None, where: str) -> LocalPermit:
        """See :class:`Admission`."""
        async with self._requests:
            return LocalPermit(self._budget, self._budget.reserve(most, where, price))
