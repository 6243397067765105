"""Limits that hold for all processes: the limiter, in virtual time, without Ray."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from graph_fakes import in_virtual_time
from loopback import Loopback
from loopback_client import ask, no_proxy  # noqa: F401  (a fixture)

pytest.importorskip("ray")

from swarm_ui.budget import Budget, Price
from swarm_ui.errors import BudgetExceeded
from swarm_ui.message import Usage
from swarm_ui.nodes import OpenAIModel
from swarm_ui.nodes.models.acting.limits import Limiter, RemoteAdmission
from swarm_ui.nodes.models.openai.options import RateLimits

MOST = Usage(prompt_tokens=10, completion_tokens=20)
USED = Usage(prompt_tokens=10, completion_tokens=5)


class FakeActor:
    """Calls a limiter as Ray would, with some delay."""

    def __init__(self, limiter: Limiter, delay: float = 0.001) -> None:
        self.limiter, self.delay = limiter, delay
        self._tasks: set[asyncio.Task[Any]] = set()

    def __getattr__(self, method: str) -> Any:
        return _Remote(self, method)

    async def call(self, method: str, arguments: Sequence[Any]) -> Any:
        await asyncio.sleep(self.delay)
        result = await getattr(self.limiter, method)(*arguments)
        await asyncio.sleep(self.delay)
        return result


class _Remote:
    def __init__(self, actor: FakeActor, method: str) -> None:
        self._actor, self._method = actor, method

    def remote(self, *arguments: Any) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(self._actor.call(self._method, arguments))
        self._actor._tasks.add(task)
        task.add_done_callback(self._actor._tasks.discard)
        return task


async def plays(admission: RemoteAdmission, seconds: float, sent: list[float]) -> int:
    """Calls one after the other until the budget is used up; the number of calls."""
    clock = asyncio.get_running_loop().time
    for done in range(10_000):
        try:
            permit = await admission.acquire(MOST, None, "m")
        except BudgetExceeded:
            return done
        sent.append(clock())
        await asyncio.sleep(seconds)
        permit.settle(USED)
    raise AssertionError("the budget does not end")


def test_any_order_of_calls_stays_within_the_budget() -> None:
    async def play(seed: int) -> None:
        rng = random.Random(seed)
        shared = Budget(max_calls=rng.randrange(1, 80))
        actor = FakeActor(Limiter([(RateLimits(), shared), (RateLimits(), shared)]))
        lost = await RemoteAdmission(actor, 0).acquire(MOST, None, "m")  # by a lost process
        sent: list[float] = []
        each = [RemoteAdmission(actor, rng.randrange(2)) for _ in range(rng.randrange(1, 9))]
        playing = [plays(admission, rng.choice((0.0, 0.01, 5.0)), sent) for admission in each]
        counts = await asyncio.gather(*playing)
        assert sum(counts) + 1 == len(sent) + 1 == shared.calls == shared.max_calls
        assert lost is not None

    for seed in range(20):
        in_virtual_time(play(seed))


def test_tokens_and_money_count_what_was_used() -> None:
    async def play() -> None:
        price = Price(prompt=1e6, completion=0)
        actor = FakeActor(Limiter([(RateLimits(), Budget(max_tokens=70))]))
        admission = RemoteAdmission(actor, 0)
        one = await admission.acquire(MOST, price, "m")
        two = await admission.acquire(MOST, price, "m")
        with pytest.raises(BudgetExceeded):
            await admission.acquire(MOST, price, "m")
        assert one.settle(USED) == pytest.approx(10.0) == two.settle(None)
        await asyncio.sleep(0.01)
        (totals,) = await actor.limiter.totals()
        assert (totals.calls, totals.tokens, totals.cost) == (2, 45, 20.0)

    in_virtual_time(play())


def test_a_permit_that_arrives_after_a_cancellation_comes_back() -> None:
    async def play() -> None:
        budget = Budget(max_calls=1)
        admission = RemoteAdmission(FakeActor(Limiter([(RateLimits(), budget)])), 0)
        asking = asyncio.ensure_future(admission.acquire(MOST, None, "m"))
        await asyncio.sleep(0.0015)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.sleep(1.0)
        assert budget.calls == 0
        await admission.acquire(MOST, None, "m")

    in_virtual_time(play())


async def test_a_model_that_was_checked_before_asks_the_limiter() -> None:
    async with Loopback() as server:
        model = OpenAIModel("tiny", server.url, budget=Budget(max_calls=1))
        await model.check()
        actor = FakeActor(Limiter([(model.limits, Budget(max_calls=2))]))
        model.admit_by(partial(RemoteAdmission, actor, 0))
        await model.generate([ask(), ask()])
        with pytest.raises(BudgetExceeded, match="all 2 calls of the budget are used up"):
            await model.generate([ask()])
        assert len(server.requests) == model.spent.calls == 2
        await model.close()
