"""Money and tokens per minute: bounds that concurrent calls do not cross."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from graph_fakes import in_virtual_time
from hypothesis import given
from hypothesis import strategies as st
from loopback import Loopback, Reply, failing
from loopback_client import ask, model, no_proxy, one  # noqa: F401  (a fixture)

from swarm_ui.budget import Budget, Price, guess_tokens, most_tokens
from swarm_ui.errors import BudgetExceeded, ConfigError, ModelError
from swarm_ui.message import Usage
from swarm_ui.nodes.models.openai.token_throttle import TokenMeter, TokenThrottle

PRICE = Price(prompt=2.0, completion=10.0)
COST = (11 * 2.0 + 7 * 10.0) / 1e6
"""Of one call to the loopback server."""


# -- money ------------------------------------------------------------------------------------


async def test_cost_is_what_the_server_counted_at_the_given_price() -> None:
    async with Loopback() as server:
        client = model(server, prices={"tiny": PRICE, "agent@1": Price(prompt=0, completion=1)})
        await client.generate([ask(), ask(), ask(adapter="other")])
        assert client.spent.cost == pytest.approx(3 * COST)
        await client.generate([ask(adapter="agent@1")])
        assert client.spent.cost == pytest.approx(3 * COST + 7e-6)
        free = model(server, prices={"another": PRICE})
        await free.generate([ask()])
        assert free.spent.cost is None
        await client.close()
        await free.close()


async def test_money_is_never_crossed_even_by_concurrent_calls() -> None:
    most = (most_tokens("[user]\nhi") * 2.0 + 40 * 10.0) / 1e6
    async with Loopback(lambda body: Reply(delay=0.05)) as server:
        client = model(server, prices={"tiny": PRICE}, max_cost=2.5 * most)
        calls = [client.generate([ask(max_tokens=40)]) for _ in range(5)]
        done = await asyncio.gather(*calls, return_exceptions=True)
        await client.close()
    refused = [error for error in done if isinstance(error, BudgetExceeded)]
    assert len(refused) == 3 and "Raise max_cost" in str(refused[0])
    assert len(server.requests) == 2
    assert client.spent.cost == pytest.approx(2 * COST)


async def test_a_model_without_a_price_is_refused_when_money_is_limited() -> None:
    with pytest.raises(ConfigError, match="no price for 'tiny'; prices are known for: other"):
        model("http://127.0.0.1:9/v1", prices={"other": PRICE}, max_cost=1.0)
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="Price: completion must be a number >= 0"):
            Price(prompt=0, completion=wrong)


@pytest.mark.parametrize(
    ("fault", "charged"),
    [
        (failing(400), False),
        (Reply(cut=True), True),
        (Reply(body="<html>"), True),
        (Reply(delay=60), True),
    ],
    ids=["refused", "cut", "malformed", "slow"],
)
async def test_a_call_that_may_have_been_paid_for_counts_in_full(
    fault: Reply, charged: bool
) -> None:
    most = (most_tokens("[user]\nhi") * 2.0 + 40 * 10.0) / 1e6
    async with Loopback([fault]) as server:
        client = model(server, prices={"tiny": PRICE}, retries=0, timeout=0.3 if fault.delay else 9)
        with pytest.raises(ModelError):
            await one(client, ask(max_tokens=40))
    assert client.spent.cost == pytest.approx(most if charged else 0.0)


async def test_a_call_that_reached_nobody_costs_nothing() -> None:
    async with Loopback() as server:
        url = server.url
    client = model(url, prices={"tiny": PRICE}, retries=1, max_tokens=50)
    with pytest.raises(ModelError, match="no connection"):
        await one(client, ask(max_tokens=40))
    assert client.spent.cost == 0.0 and client.spent.calls == 2


amounts = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 500), st.floats(0, 1)), max_size=30
)


@given(amounts, st.integers(0, 3000), st.floats(0, 0.01))
def test_no_order_of_calls_crosses_a_budget(
    calls: list[tuple[int, int, float]], max_tokens: int, max_cost: float
) -> None:
    budget = Budget(None, max_tokens, max_cost)
    price = Price(prompt=0.1, completion=7.3)
    open_holds: list[tuple[Any, Usage]] = []
    for prompt, completion, share in calls:
        most = Usage(prompt_tokens=prompt, completion_tokens=completion)
        used = Usage(prompt_tokens=prompt, completion_tokens=int(completion * share))
        try:
            open_holds.append((budget.reserve(most, "m", price), used))
        except BudgetExceeded:
            continue
        if share < 0.5:
            hold, used = open_holds.pop(0)
            budget.settle(hold, used if share > 0.1 else None)
        assert budget.tokens <= max_tokens and budget.cost <= max_cost
    for hold, used in open_holds:
        budget.settle(hold, used)
    assert budget.tokens <= max_tokens and budget.cost <= max_cost


# -- tokens per minute ------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(1, 600), st.floats(0, 20), st.floats(0, 1)), max_size=40),
)
def test_no_minute_holds_more_tokens_than_allowed(
    asked: list[tuple[int, float, float]],
) -> None:
    meter, now = TokenMeter(600, 60.0), 100.0
    gone: list[tuple[float, int]] = []
    for tokens, pause, share in asked:
        now += pause
        now += meter.wait(now, tokens)
        assert meter.wait(now, tokens) == 0
        grant = meter.take(now, tokens)
        used = round(tokens * share) if share < 0.7 else tokens
        meter.correct(grant, used)
        gone.append((now, used))
    for start, _ in gone:
        assert sum(n for at, n in gone if start <= at < start + 59.9) <= 600


def test_tokens_flow_evenly_in_the_order_of_arrival() -> None:
    async def run() -> list[tuple[int, float]]:
        throttle, loop = TokenThrottle(600, 60.0), asyncio.get_running_loop()
        let: list[tuple[int, float]] = []

        async def one(k: int, tokens: int) -> None:
            await throttle.acquire(tokens)
            let.append((k, round(loop.time(), 3)))

        # A large one in front is not overtaken by small ones behind.
        sizes = [100, 50, 100, 10, 10, 300, 1]
        await asyncio.gather(*(one(k, size) for k, size in enumerate(sizes)))
        return let

    let = in_virtual_time(run())
    assert [k for k, _ in let] == list(range(7))
    # Ten a second after a burst of 100; 300 go once a burst has been saved, and are paid off.
    assert [at for _, at in let] == [0.0, 5.0, 15.0, 16.0, 17.0, 27.0, 47.1]


def test_what_was_not_used_goes_to_those_who_wait_at_once() -> None:
    async def run() -> list[float]:
        throttle, loop = TokenThrottle(600, 60.0), asyncio.get_running_loop()
        grant = await throttle.acquire(100)
        waiting = asyncio.ensure_future(throttle.acquire(60))
        await asyncio.sleep(1.0)
        assert not waiting.done()
        throttle.correct(grant, 20)
        await waiting
        first = loop.time()
        throttle.correct(await throttle.acquire(20), 40)  # used more than was thought
        await throttle.acquire(1)
        return [first, loop.time()]

    first, second = in_virtual_time(run())
    assert first == pytest.approx(1.0) and second == pytest.approx(2.1)


def test_a_waiter_that_is_cancelled_leaves_the_line() -> None:
    async def run() -> float:
        throttle, loop = TokenThrottle(600, 60.0), asyncio.get_running_loop()
        await throttle.acquire(100)
        first = asyncio.ensure_future(throttle.acquire(100))
        second = asyncio.ensure_future(throttle.acquire(10))
        await asyncio.sleep(0.5)
        first.cancel()
        await second
        return loop.time()

    assert in_virtual_time(run()) == pytest.approx(1.0)


async def test_tokens_per_minute_holds_calls_back_until_others_gave_back_what_they_held() -> None:
    async with Loopback(lambda body: Reply(delay=0.02)) as server:
        client = model(server, tokens_per_minute=6000)
        # Each may need about 900 and uses 18: all of them at once would be 9000, and one burst is
        # 1000, so they come one after the other, as fast as the answers.
        await client.generate([ask(str(k), max_tokens=900) for k in range(10)])
        with pytest.raises(ModelError, match="that may need 7003 tokens"):
            await client.generate([ask(max_tokens=7000)])
        await client.close()
    assert server.at_once == 1
    assert client.spent.seconds_waiting > 0


async def test_streams_wait_for_their_tokens_too() -> None:
    async with Loopback(lambda body: Reply("a b", delay=0.02)) as server:
        client = model(server, tokens_per_minute=6000)

        async def read() -> None:
            async for _ in client.stream(ask(max_tokens=900)):
                pass

        await asyncio.gather(*(read() for _ in range(5)))
        await client.close()
    assert server.at_once == 1


def test_guesses_are_rather_too_high() -> None:
    assert guess_tokens("") == 0 and guess_tokens("hello world") == 4
    assert guess_tokens("点击保存") == 8 and guess_tokens("ok 点") == 3
