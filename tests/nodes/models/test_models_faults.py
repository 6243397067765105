"""Two hundred calls at once against a server that fails in every way it can."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest
from loopback import Loopback, Reply, failing, too_many
from loopback_client import ask, model, no_proxy, pieces_of  # noqa: F401  (a fixture)

CALLS, AT_ONCE, SEED = 200, 48, 7
FAULTS: dict[str, Reply] = {
    "429": too_many("0"),
    "500": failing(500),
    "slow": Reply("late", delay=60),
    "cut": Reply("half", cut=True),
    "malformed": Reply(body='{"choices": [{"message": '),
    "html": Reply(body="<html>bad gateway</html>"),
}


class Weather:
    """The faults of each call, drawn from its own text: the same whatever the order is."""

    def __init__(self) -> None:
        self.tries: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()

    def __call__(self, body: dict[str, Any]) -> Reply:
        text = body["messages"][0]["content"]
        rng = random.Random(f"{SEED}:{text}")
        faults = rng.choices(
            list(FAULTS), weights=(6, 6, 1, 4, 4, 4), k=rng.choice((0, 0, 1, 1, 2))
        )
        k = self.tries[text]
        self.tries[text] += 1
        if k < len(faults):
            self.seen[faults[k]] += 1
            return FAULTS[faults[k]]
        return Reply(f"answer to {text}", delay=rng.uniform(0.0, 0.1))


@pytest.mark.slow
async def test_all_of_200_concurrent_calls_come_through_mixed_faults_right_and_in_order() -> None:
    weather = Weather()
    async with Loopback(weather) as server:
        client = model(server, concurrency=AT_ONCE, timeout=3.0, retries=12)
        half = CALLS // 2
        batch = client.generate([ask(f"call {k}") for k in range(half)])
        alone = [client.generate([ask(f"call {k}")]) for k in range(half, CALLS)]
        first, *rest = await asyncio.gather(batch, *alone)
        await client.close()
    answers = [completion.text for completion in [*first, *(c for (c,) in rest)]]
    assert answers == [f"answer to call {k}" for k in range(CALLS)]
    assert set(weather.seen) == set(FAULTS)
    assert sum(weather.seen.values()) > CALLS // 2
    assert AT_ONCE // 4 < server.at_once <= AT_ONCE
    assert client.spent.calls == CALLS + client.spent.retries >= len(server.requests)
    assert (client.spent.prompt_tokens, client.spent.completion_tokens) == (11 * CALLS, 7 * CALLS)


@pytest.mark.slow
async def test_streams_and_whole_replies_share_the_slots_under_faults() -> None:
    weather = Weather()
    async with Loopback(weather) as server:
        client = model(server, concurrency=6, timeout=1.5, retries=12)
        streams = [pieces_of(client, ask(f"stream {k}")) for k in range(20)]
        done = await asyncio.gather(client.generate([ask("whole")] * 20), *streams)
        await client.close()
    whole, *parts = done
    assert [c.text for c in whole] == ["answer to whole"] * 20
    assert [last.text for _, last in parts] == [f"answer to stream {k}" for k in range(20)]
    assert all("".join(pieces) == last.text for pieces, last in parts)
    assert 1 < server.at_once <= 6
