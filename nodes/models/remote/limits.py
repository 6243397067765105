"""Rate limits and budgets that hold for all processes of a cluster together.

model = OpenAIModel("m", url, budget=Budget(max_calls=2_000), limits=RateLimits(requests=20))
limits = share_limits(model)
…                          # the model can be sent to workers
print(await limits.totals())
"""

from __future__ import annotations

import asyncio
import uuid
from functools import partial
from typing import Any

from swarm_ui.budget import Budget, Hold, Price
from swarm_ui.errors import ConfigError
from swarm_ui.message import Usage
from swarm_ui.nodes.models.openai.admission import Permit
from swarm_ui.nodes.models.openai.model import OpenAIModel
from swarm_ui.nodes.models.remote.calls import answered
from swarm_ui.nodes.models.remote.limiter import (
    LARGEST_STOCK,
    RETURN_SECONDS,
    Ask,
    Limiter,
    Report,
    Totals,
)
from swarm_ui.rollout.distributed.cluster import connected

_NEEDED_FOR = "limits of a whole cluster"
_WHO = "the process that keeps the limits of the cluster"


class ClusterLimits:
    """The limits of some models, kept by one actor; made by :func:`share_limits`."""

    def __init__(self, actor: Any) -> None:
        """``actor``: Ray's handle of a :class:`~swarm_ui.nodes.models.remote.limiter.Limiter`."""
        self._actor = actor

    async def totals(self) -> list[Totals]:
        """Usage of each model's budget by all processes so far."""
        found: list[Totals] = await answered(self._actor.totals.remote(), _WHO)
        return found

    def close(self) -> None:
        """End the actor. The models cannot be asked any more."""
        connected(_NEEDED_FOR).kill(self._actor)


def share_limits(*models: OpenAIModel) -> ClusterLimits:
    """Keep the limits of models in one actor, for this process and all processes that receive the
    models.

    Rates, tokens per minute and budgets then count the calls of all processes; ``concurrency``
    still limits each process separately. Models that share a budget continue to share it. Earlier
    usage counts. The actor runs on this machine. If it is lost, no further call is made.

    Raises:
        ConfigError: no model is given, or this process is not connected to a cluster.
        MissingExtra: Ray is not installed.
    """
    if not models:
        raise ConfigError("share_limits: expected at least one OpenAIModel")
    ray = connected(_NEEDED_FOR)
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    kind = ray.remote(Limiter).options(
        num_cpus=0, max_concurrency=100_000, scheduling_strategy=here
    )
    actor = kind.remote([(model.limits, model.budget) for model in models])
    for number, model in enumerate(models):
        model.admit_by(partial(LeasedAdmission, actor, number))
    return ClusterLimits(actor)


class LeasedAdmission:
    """Asks the limiter for the permits of one event loop.

    It is an :class:`~swarm_ui.nodes.models.openai.admission.Admission`.

    The more often it asks, the more permits it asks for. Usage is reported with the next request
    for permits, or after a second without one.
    """

    def __init__(self, actor: Any, model: int, idle: float = RETURN_SECONDS) -> None:
        """
        Args:
            actor: Ray's handle of the limiter.
            model: the number of the model in the limiter.
            idle: seconds without a call after which unused permits are given back.
        """
        self._actor, self._model, self._idle = actor, model, idle
        self._holder = uuid.uuid4().hex
        self._loop = asyncio.get_running_loop()
        self._asking = asyncio.Lock()
        self._own = Budget()
        """Counts the calls of this loop, for their cost."""
        self._stock: list[int] = []
        self._size: tuple[int, int, Price | None] = (0, 0, None)
        """Tokens, cost and price that each permit in stock was reserved for."""
        self._wanted, self._asked_at, self._used_at = 1, -idle, 0.0
        self._settled: list[tuple[int, Usage | None]] = []
        self._unused: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def acquire(self, most: Usage, price: Price | None, where: str) -> Permit:
        """Wait for a permit of the limiter; see
        :class:`~swarm_ui.nodes.models.openai.admission.Admission`."""
        hold = self._own.reserve(most, where, price)
        try:
            async with self._asking:
                self._used_at = self._loop.time()
                if self._fits(hold):
                    return Permit(hold, number=self._stock.pop())
                self._unused += self._stock
                self._stock = []
                first, *self._stock = await self._permits(most, price, where)
                self._size = hold.tokens, hold.parts, price
                self._arm()
                return Permit(hold, number=first)
        except BaseException:  # raised again: the call is not sent
            self._own.cancel(hold)
            raise

    def settle(self, permit: Permit, used: Usage | None) -> float:
        """Note the actual usage of a call for the next report; see
        :class:`~swarm_ui.nodes.models.openai.admission.Admission`."""
        self._settled.append((permit.number, used))
        if self._closed:
            self._flush()
        else:
            self._arm()
        return self._own.settle(permit.hold, used)

    def close(self) -> None:
        """Give back what is not used."""
        self._closed = True
        self._unused += self._stock
        self._stock = []
        if self._timer is not None:
            self._timer.cancel()
        self._flush()

    def _fits(self, hold: Hold) -> bool:
        tokens, parts, price = self._size
        small = hold.tokens <= tokens and hold.parts <= parts and hold.price == price
        return bool(self._stock) and small

    async def _permits(self, most: Usage, price: Price | None, where: str) -> list[int]:
        """Ask for permits. Those that arrive after a cancellation are given back."""
        often = self._loop.time() - self._asked_at < self._idle
        self._wanted = min(LARGEST_STOCK, 2 * self._wanted) if often else max(1, self._wanted // 2)
        self._asked_at = self._loop.time()
        ask = Ask(
            holder=self._holder,
            model=self._model,
            most=most,
            price=price,
            where=where,
            wanted=self._wanted,
        )
        ref = self._actor.acquire.remote(ask, self._report())
        asking = asyncio.ensure_future(answered(ref, _WHO))
        try:
            numbers: list[int] = await asyncio.shield(asking)
        except asyncio.CancelledError:
            asking.add_done_callback(self._late)
            raise
        return numbers

    def _late(self, asked: asyncio.Future[list[int]]) -> None:
        if not asked.cancelled() and asked.exception() is None:
            self._unused += asked.result()
            self._flush()

    def _report(self) -> Report:
        report = Report(settled=tuple(self._settled), unused=tuple(self._unused))
        self._settled, self._unused = [], []
        return report

    def _flush(self) -> None:
        if self._settled or self._unused:
            self._actor.settle.remote(self._report())

    def _arm(self) -> None:
        if self._timer is None and (self._stock or self._settled):
            self._timer = self._loop.call_later(self._idle, self._rest)

    def _rest(self) -> None:
        """Report the usage to the limiter, and give the unused permits back if no call was made for
        a while."""
        self._timer = None
        if self._loop.time() - self._used_at >= self._idle:
            self._unused += self._stock
            self._stock = []
        self._flush()
        self._arm()
