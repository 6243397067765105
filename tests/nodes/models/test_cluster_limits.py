"""Limits that hold for all processes: the limiter and its leases, in virtual time, without Ray."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Sequence
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
from swarm_ui.nodes.models.openai.settings import RateLimits
from swarm_ui.nodes.models.remote.limiter import LARGEST_STOCK, Ask, Limiter, Report
from swarm_ui.nodes.models.remote.limits import LeasedAdmission

MOST = Usage(prompt_tokens=10, completion_tokens=20)
USED = Usage(prompt_tokens=10, completion_tokens=5)


class FakeActor:
    """Calls a limiter as Ray would, with some delay, and counts the calls."""

    def __init__(self, limiter: Limiter, delay: float = 0.001) -> None:
        self.limiter, self.delay = limiter, delay
        self.asked = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    def __getattr__(self, method: str) -> Any:
        return _Remote(self, method)

    async def call(self, method: str, arguments: Sequence[Any]) -> Any:
        self.asked += 1
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


async def plays(admission: LeasedAdmission, seconds: float, sent: list[float]) -> int:
    """Calls one after the other until the budget is used up; the number of calls."""
    clock = asyncio.get_running_loop().time
    for done in range(10_000):
        try:
            permit = await admission.acquire(MOST, None, "m")
        except BudgetExceeded:
            return done
        sent.append(clock())
        await asyncio.sleep(seconds)
        admission.settle(permit, USED)
    raise AssertionError("the budget has no end")


async def cluster(
    budget: Budget, *, workers: int, seconds: Sequence[float], limits: RateLimits | None = None
) -> tuple[list[float], list[int], FakeActor]:
    """When calls were sent, calls of each worker, and the limiter."""
    actor = FakeActor(Limiter([(limits or RateLimits(), budget)]))
    sent: list[float] = []
    each = [LeasedAdmission(actor, 0) for _ in range(workers)]
    played = [plays(a, seconds[k % len(seconds)], sent) for k, a in enumerate(each)]
    counts = list(await asyncio.gather(*played))
    for admission in each:
        admission.close()
    await asyncio.sleep(1.0)
    return sent, counts, actor


@pytest.mark.parametrize("workers", [1, 4, 23])
@pytest.mark.parametrize("seconds", [(0.01,), (0.2, 3.0), (30.0, 0.05)], ids=str)
def test_all_workers_together_make_exactly_the_calls_of_the_budget(
    workers: int, seconds: Sequence[float]
) -> None:
    budget = Budget(max_calls=50)
    sent, counts, _ = in_virtual_time(cluster(budget, workers=workers, seconds=seconds))
    assert len(sent) == sum(counts) == 50
    assert budget.calls == 50 and budget.tokens == 50 * 15


def test_tokens_and_money_are_not_exceeded_and_nearly_used_up() -> None:
    price = Price(prompt=1e6, completion=1e6)
    for budget in (Budget(max_tokens=1_000), Budget(max_cost=1_000, prices={"m": price})):

        async def play(limit: Budget = budget) -> int:
            actor = FakeActor(Limiter([(RateLimits(), limit)]))

            async def worker() -> int:
                admission, spent = LeasedAdmission(actor, 0), 0
                while True:
                    try:
                        permit = await admission.acquire(MOST, price, "m")
                    except BudgetExceeded:
                        admission.close()
                        return spent
                    await asyncio.sleep(0.1)
                    admission.settle(permit, USED)
                    spent += 15

            spent = sum(await asyncio.gather(*(worker() for _ in range(4))))
            await asyncio.sleep(1.0)
            return spent

        spent = in_virtual_time(play())
        assert 1_000 - 30 - 15 <= spent <= 1_000
        assert spent == (budget.tokens if budget.max_cost is None else budget.cost)


def test_a_process_that_is_lost_keeps_its_permits_and_the_others_end() -> None:
    async def play() -> tuple[int, float]:
        budget = Budget(max_calls=50)
        actor = FakeActor(Limiter([(RateLimits(), budget)]))
        lost = Ask(holder="lost", model=0, most=MOST, price=None, where="m", wanted=8)
        kept = await actor.acquire.remote(lost, Report())
        clock = asyncio.get_running_loop().time
        sent: list[float] = []
        each = [LeasedAdmission(actor, 0) for _ in range(3)]
        counts = await asyncio.gather(*(plays(a, 0.05, sent) for a in each))
        assert sum(counts) + len(kept) == 50 == budget.calls
        return len(kept), clock() - max(sent)

    kept, waited = in_virtual_time(play())
    assert kept == 8
    assert waited < 10  # nobody waits for the lost process for long


def test_unused_permits_come_back_from_a_process_that_rests() -> None:
    async def play() -> None:
        actor = FakeActor(Limiter([(RateLimits(), Budget(max_calls=100))]))
        one, other = LeasedAdmission(actor, 0), LeasedAdmission(actor, 0)
        for _ in range(12):
            one.settle(await one.acquire(MOST, None, "m"), USED)
        assert one._stock  # it asked often, so it got several
        sent: list[float] = []
        assert await plays(other, 0.0, sent) == 88
        one.close()

    in_virtual_time(play())


def test_a_permit_that_arrives_after_a_cancellation_comes_back() -> None:
    async def play() -> None:
        budget = Budget(max_calls=1)
        admission = LeasedAdmission(FakeActor(Limiter([(RateLimits(), budget)])), 0)
        asking = asyncio.ensure_future(admission.acquire(MOST, None, "m"))
        await asyncio.sleep(0.0015)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.sleep(1.0)
        assert budget.calls == 0
        await admission.acquire(MOST, None, "m")

    in_virtual_time(play())


async def test_requests_per_second_are_limited_over_all_workers() -> None:
    limits = RateLimits(requests=10, period=0.5)  # in real time, which asyncio-throttle reads
    actor = FakeActor(Limiter([(limits, Budget(max_calls=40))], patience=0.0))
    sent: list[float] = []
    began = asyncio.get_running_loop().time()
    each = [LeasedAdmission(actor, 0) for _ in range(8)]
    await asyncio.gather(*(plays(admission, 0.01, sent) for admission in each))
    assert len(sent) == 40 and not any(admission._stock for admission in each)
    # 10 in each half second. A permit may travel for any time, so no later limit holds.
    assert all(at - began > k // 10 * 0.5 - 0.01 for k, at in enumerate(sorted(sent)))


def test_tokens_per_minute_are_limited_over_all_workers() -> None:
    limits = RateLimits(tokens_per_minute=900)
    sent, _, _ = in_virtual_time(
        cluster(Budget(max_calls=90), workers=4, seconds=(0.01,), limits=limits)
    )
    assert len(sent) == 90
    for start in sent:
        assert sum(start <= at < start + 59 for at in sent) * 15 <= 900 + 4 * 30


def test_a_busy_process_asks_rarely() -> None:
    sent, _, actor = in_virtual_time(cluster(Budget(max_calls=4_000), workers=2, seconds=(0.05,)))
    assert len(sent) == 4_000
    assert actor.asked < 4_000 / 8
    free = in_virtual_time(_unlimited())
    assert free < 1_000 / 16


async def _unlimited() -> int:
    actor = FakeActor(Limiter([(RateLimits(), Budget())]))
    admission = LeasedAdmission(actor, 0)
    for _ in range(1_000):
        admission.settle(await admission.acquire(MOST, None, "m"), USED)
    return actor.asked


def test_models_with_one_budget_keep_sharing_it() -> None:
    async def play() -> None:
        budget = Budget(max_calls=10)
        actor = FakeActor(Limiter([(RateLimits(), budget), (RateLimits(), budget)]))
        one, other = LeasedAdmission(actor, 0), LeasedAdmission(actor, 1)
        sent: list[float] = []
        counts = await asyncio.gather(plays(one, 0.1, sent), plays(other, 0.1, sent))
        assert sum(counts) == 10

    in_virtual_time(play())


async def test_a_model_that_was_checked_before_asks_the_limiter() -> None:
    async with Loopback() as server:
        model = OpenAIModel("tiny", server.url, budget=Budget(max_calls=1))
        await model.check()
        actor = FakeActor(Limiter([(model.limits, Budget(max_calls=2))]))
        model.admit_by(partial(LeasedAdmission, actor, 0))
        await model.generate([ask(), ask()])
        with pytest.raises(BudgetExceeded, match="all 2 calls of the budget are used up"):
            await model.generate([ask()])
        assert len(server.requests) == model.spent.calls == 2
        await model.close()


def test_any_order_of_calls_stays_within_the_budget() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        limit, workers = rng.randrange(1, 80), rng.randrange(1, 9)
        seconds = [rng.choice((0.0, 0.01, 0.7, 5.0)) for _ in range(workers)]
        playing: Coroutine[Any, Any, Any] = cluster(
            Budget(max_calls=limit), workers=workers, seconds=seconds
        )
        sent, _, _ = in_virtual_time(playing)
        assert len(sent) == limit


def test_the_stock_of_a_process_is_small_near_the_end() -> None:
    async def play() -> list[int]:
        limiter = Limiter([(RateLimits(), Budget(max_calls=200))])
        sizes = []
        for k in range(40):
            ask = Ask(
                holder=str(k % 4), model=0, most=MOST, price=None, where="m", wanted=LARGEST_STOCK
            )
            try:
                sizes.append(len(await limiter.acquire(ask, Report())))
            except BudgetExceeded:
                break
        return sizes

    sizes = in_virtual_time(play())
    assert sum(sizes) == 200
    assert sizes[0] == LARGEST_STOCK and sizes[-4:] == [1, 1, 1, 1]
