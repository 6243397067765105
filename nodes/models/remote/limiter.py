"""One process that keeps the rate limits and budgets of models for a whole cluster.

Ray runs :class:`Limiter` as an actor; the other processes ask it for permits
(:mod:`swarm_ui.nodes.models.remote.limits`). It admits calls by the same rules as a single process
does (:class:`~swarm_ui.nodes.models.openai.admission.LocalAdmission`).

**Several permits at once.** If only a budget limits calls, a process gets several permits at once
and asks again when they are used up: one actor answers a few thousand calls a second, and 1,000
workers would make more. If a rate is limited, each call needs its own permit, which is given when
the call may be sent. The rate itself bounds how often the limiter is asked, and several permits
could be used in a burst.

**The limits always hold.** A permit counts as a call as soon as it is given. A process that is lost
never gives its permits back, so they count as used. A call is refused only after processes had the
time to give unused permits back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count

import msgspec

from swarm_ui.budget import Budget, Price
from swarm_ui.errors import BudgetExceeded
from swarm_ui.message import Usage
from swarm_ui.nodes.models.openai.admission import LocalAdmission, Permit
from swarm_ui.nodes.models.openai.settings import RateLimits

LARGEST_STOCK = 32
"""Maximum number of permits of a process."""
RETURN_SECONDS = 1.0
"""After this time without a call, a process gives its unused permits back."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A process asks for permits."""

    holder: str
    """The process that asks, or one of its event loops."""
    model: int
    """Number of the model whose limits hold."""
    most: Usage
    """Maximum number of tokens of one call."""
    price: Price | None
    where: str
    """The name of the model, for error messages."""
    wanted: int
    """Permits that the process could use, at least 1."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of permits: used, returned or lost."""

    settled: tuple[tuple[int, Usage | None], ...] = ()
    """Permits with the usage of their calls; if it is ``None`` (unknown), the whole reservation
    counts."""
    unused: tuple[int, ...] = ()
    """Permits that are given back."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of a budget. Permits that are in use or were lost count as calls."""

    calls: int
    tokens: int
    cost: float


class Limiter:
    """Gives permits to all processes."""

    def __init__(
        self, models: Sequence[tuple[RateLimits, Budget]], patience: float = 3 * RETURN_SECONDS
    ) -> None:
        """
        Args:
            models: limits and budget of each model; a budget may occur several times.
            patience: the number of seconds during which a process may give a permit back.
        """
        self._models, self._patience = tuple(models), patience
        self._made: list[LocalAdmission] = []
        self._given: dict[int, tuple[int, Permit]] = {}
        """Model and permit, by the permit's number."""
        self._recent: dict[int, float] = {}
        """When permits that are not settled were given, the oldest first."""
        self._spare: set[int] = set()
        """Permits of which it is not known whether they are needed."""
        self._holders: set[str] = set()
        self._numbers = count()
        self._changed = asyncio.Event()

    async def acquire(self, ask: Ask, report: Report) -> list[int]:
        """Give one or more permits, as soon as the rate limits allow; return the number of each.

        Args:
            ask: the request for permits.
            report: how the asking process used its earlier permits; it is processed first.

        Raises:
            BudgetExceeded: not even one call fits into the budget.
        """
        await self.settle(report)
        self._holders.add(ask.holder)
        admission = self._admission(ask.model)
        while True:
            try:
                permits = [await admission.acquire(ask.most, ask.price, ask.where)]
                break
            except BudgetExceeded:
                if not await self._changes(admission.budget):
                    raise
        for _ in range(self._stock(ask, admission.budget)):
            permits.append(Permit(admission.budget.reserve(ask.most, ask.where, ask.price)))
        now = asyncio.get_running_loop().time()
        numbers = [next(self._numbers) for _ in permits]
        self._given |= {n: (ask.model, permit) for n, permit in zip(numbers, permits, strict=True)}
        self._recent |= dict.fromkeys(numbers, now)
        self._spare |= set(numbers[1:])
        return numbers

    async def settle(self, report: Report) -> None:
        """Process the reports about permits."""
        for number, used in report.settled:
            model, permit = self._taken(number)
            self._admission(model).settle(permit, used)
        for number in report.unused:
            model, permit = self._taken(number)
            self._admission(model).cancel(permit)
        if report.settled or report.unused:
            self._changed.set()
            self._changed = asyncio.Event()

    async def totals(self) -> list[Totals]:
        """Usage of each model's budget so far."""
        return [
            Totals(calls=budget.calls, tokens=budget.tokens, cost=budget.cost)
            for _, budget in self._models
        ]

    def _admission(self, model: int) -> LocalAdmission:
        if not self._made:  # in the event loop of the actor
            self._made = [LocalAdmission(limits, budget) for limits, budget in self._models]
        return self._made[model]

    def _taken(self, number: int) -> tuple[int, Permit]:
        self._recent.pop(number, None)
        self._spare.discard(number)
        return self._given.pop(number)

    def _stock(self, ask: Ask, budget: Budget) -> int:
        """Number of additional permits for a process. It falls with the remaining budget, and to 0
        at the end, so that no process keeps permits that another could use."""
        if self._models[ask.model][0].counted:
            return 0
        share = budget.room(ask.most, ask.price) / (2 * len(self._holders))
        return int(min(ask.wanted - 1, LARGEST_STOCK - 1, share))

    async def _changes(self, budget: Budget) -> bool:
        """Wait until permits or tokens are given back. Returns ``False`` if nothing can be given
        back any more."""
        clock = asyncio.get_running_loop().time
        only_calls = budget.max_tokens is None and budget.max_cost is None
        waited = self._spare if only_calls else self._recent.keys()
        last = max((self._recent[number] for number in waited), default=None)
        if last is None or clock() >= last + self._patience:
            return False
        try:
            async with asyncio.timeout_at(last + self._patience):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True
