"""Rate limits and budgets that hold for all processes of a cluster together.

model = OpenAIModel("m", url, budget=Budget(max_calls=2_000), limits=RateLimits(requests=20))
limits = share_limits(model)
…                          # the model can be sent to workers
print(await limits.totals())
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

import msgspec

from swarm_ui.budget import Budget, Price
from swarm_ui.errors import ConfigError
from swarm_ui.message import Usage
from swarm_ui.nodes.models.acting.calls import ActorLost, answered
from swarm_ui.nodes.models.openai.limits import LocalAdmission, LocalPermit
from swarm_ui.nodes.models.openai.model import OpenAIModel
from swarm_ui.nodes.models.openai.options import RateLimits
from swarm_ui.rollout.cluster import connected

_NEEDED_FOR = "limits of a whole cluster"
_WHO = "the process that keeps the limits of the cluster"


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of a budget. Permits that are in use or were lost count as calls."""

    calls: int
    tokens: int
    cost: float


class ClusterLimits:
    """The limits of some models, kept by one actor; made by :func:`share_limits`."""

    def __init__(self, actor: Any, budgets: Sequence[Budget]) -> None:
        """
        Args:
            actor: Ray's handle of a :class:`Limiter`.
            budgets: of the models, in this process.
        """
        self._actor, self._budgets = actor, budgets

    async def totals(self) -> list[Totals]:
        """Usage of each model's budget by all processes so far."""
        found: list[Totals] = await answered(self._actor.totals.remote(), _WHO)
        return found

    async def close(self) -> None:
        """Count the usage of all processes in the budgets of this one, and end the actor. The
        models cannot be asked any more."""
        with suppress(ActorLost):
            for budget, used in zip(self._budgets, await self.totals(), strict=True):
                more = Usage(prompt_tokens=used.tokens - budget.tokens)
                budget.count(more, used.calls - budget.calls)
        connected(_NEEDED_FOR).kill(self._actor)


def share_limits(*models: OpenAIModel) -> ClusterLimits:
    """Keep the limits of models in one actor, for this process and all processes that receive the
    models.

    Rates and budgets then count the calls of all processes; ``concurrency``
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
        model.admit_by(partial(RemoteAdmission, actor, number))
    return ClusterLimits(actor, [model.budget for model in models])


class Limiter:
    """Gives permits to all processes, by the same rules as in one process. Ray runs it as an actor.

    A process that is lost never reports how it used its permits, so they count in full.
    """

    def __init__(self, models: Sequence[tuple[RateLimits, Budget]]) -> None:
        """``models``: limits and budget of each model; a budget may occur several times."""
        self._models = tuple(models)
        self._admissions: list[LocalAdmission] = []
        self._given: dict[int, LocalPermit] = {}
        self._numbers = count()

    async def acquire(self, model: int, most: Usage, price: Price | None, where: str) -> int:
        """The number of a permit; see :class:`~swarm_ui.nodes.models.openai.limits.Admission`."""
        if not self._admissions:  # in the event loop of the actor
            self._admissions = [LocalAdmission(*each) for each in self._models]
        permit = await self._admissions[model].acquire(most, price, where)
        number = next(self._numbers)
        self._given[number] = permit
        return number

    async def settle(self, number: int, used: Usage | None) -> None:
        """The usage of a permit's call; ``None`` if it is unknown."""
        self._given.pop(number).settle(used)

    async def cancel(self, number: int) -> None:
        """A permit was not used."""
        self._given.pop(number).cancel()

    async def totals(self) -> list[Totals]:
        """Usage of each model's budget so far."""
        return [
            Totals(calls=budget.calls, tokens=budget.tokens, cost=budget.cost)
            for _, budget in self._models
        ]


class RemoteAdmission:
    """Asks the limiter for a permit for each call. It is an
    :class:`~swarm_ui.nodes.models.openai.limits.Admission`."""

    def __init__(self, actor: Any, model: int) -> None:
        """
        Args:
            actor: Ray's handle of the limiter.
            model: the number of the model in the limiter.
        """
        self._actor, self._model = actor, model

    async def acquire(self, most: Usage, price: Price | None, where: str) -> RemotePermit:
        """See :class:`~swarm_ui.nodes.models.openai.limits.Admission`."""
        ref = self._actor.acquire.remote(self._model, most, price, where)
        asking = asyncio.ensure_future(answered(ref, _WHO))
        try:
            return RemotePermit(self._actor, await asyncio.shield(asking), most, price)
        except asyncio.CancelledError:
            asking.add_done_callback(self._came_late)
            raise

    def _came_late(self, asked: asyncio.Future[int]) -> None:
        if not asked.cancelled() and asked.exception() is None:
            self._actor.cancel.remote(asked.result())


class RemotePermit:
    """A permit that another process gave."""

    def __init__(self, actor: Any, number: int, most: Usage, price: Price | None) -> None:
        self._actor, self._number, self._most, self._price = actor, number, most, price

    def settle(self, used: Usage | None) -> float:
        """See :class:`~swarm_ui.nodes.models.openai.limits.Permit`."""
        self._actor.settle.remote(self._number, used)
        return 0.0 if self._price is None else self._price.of(used or self._most)
