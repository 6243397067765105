"""Rates, budgets and money of the endpoint model: bounds that concurrent calls do not cross."""

from __future__ import annotations

import asyncio

import pytest
from loopback import Loopback, Reply, failing, too_many
from loopback_client import ask, model, no_proxy, one, pieces_of  # noqa: F401  (a fixture)

from swarm_ui.budget import Price, most_tokens
from swarm_ui.errors import BudgetExceeded, ModelError

PRICE = Price(prompt=2.0, completion=10.0)
COST = (11 * 2.0 + 7 * 10.0) / 1e6
"""Of one call to the loopback server."""
MOST = (most_tokens("[user]\nhi") * 2.0 + 40 * 10.0) / 1e6
"""What a call with 40 tokens may cost."""


# -- rates -----------------------------------------------------------------------------------


async def test_no_more_than_the_allowed_requests_at_once() -> None:
    async with Loopback(lambda body: Reply(delay=0.02)) as server:
        client = model(server, concurrency=3)
        await client.generate([ask(str(k)) for k in range(9)])
        await client.close()
    assert server.at_once == 3


@pytest.mark.parametrize("refused", [0, 5])
async def test_no_more_than_the_rate_in_any_period(refused: int) -> None:
    async with Loopback([too_many("0")] * refused) as server:
        client = model(server, requests=4, period=0.4)
        await client.generate([ask(str(k)) for k in range(11 - refused)])
        await client.close()
    times = sorted(seen.at for seen in server.requests)
    # Eleven requests, retries included, at four a period take two whole periods; half of it leaves
    # room for delays on the way, and without the limit they take a few hundredths of a second.
    assert len(times) == 11 and times[-1] - times[0] >= 0.4


# -- budgets ---------------------------------------------------------------------------------


async def test_money_is_never_crossed_even_by_concurrent_calls() -> None:
    async with Loopback(lambda body: Reply(delay=0.05)) as server:
        client = model(server, prices={"tiny": PRICE}, max_cost=2.5 * MOST)
        calls = [client.generate([ask(max_tokens=40)]) for _ in range(5)]
        done = await asyncio.gather(*calls, return_exceptions=True)
        await client.close()
    refused = [error for error in done if isinstance(error, BudgetExceeded)]
    assert len(refused) == 3 and "Raise max_cost" in str(refused[0])
    assert len(server.requests) == 2
    assert client.budget.cost == pytest.approx(2 * COST)


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
    async with Loopback([fault]) as server:
        timeout = 0.3 if fault.delay else 9
        client = model(server, prices={"tiny": PRICE}, max_retries=0, timeout=timeout)
        with pytest.raises(ModelError):
            await one(client, ask(max_tokens=40))
    assert client.budget.cost == pytest.approx(MOST if charged else 0.0)


async def test_a_call_that_reached_nobody_costs_nothing() -> None:
    async with Loopback() as server:
        url = server.url
    client = model(url, prices={"tiny": PRICE}, max_retries=1, max_tokens=50)
    with pytest.raises(ModelError, match="no connection"):
        await one(client, ask(max_tokens=40))
    assert client.budget.cost == 0.0 and client.budget.calls == 2
