"""Gathering calls into batches: fairness, and clean-up after cancelled calls."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui import CollabGraph, Completion, Request
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.nodes import AgentNode, MajorityVote
from swarm_ui.nodes.models.batcher import Batcher


class Echo:
    """Answers with what it was asked, and remembers the batches."""

    def __init__(self, max_batch: int = 128) -> None:
        self.batches: list[list[int]] = []
        self.queue: Batcher[int, int] = Batcher(self.answer, max_batch=max_batch)

    def answer(self, items: Sequence[int]) -> list[int]:
        assert len(items) <= self.queue.max_batch
        self.batches.append(list(items))
        return [item * 10 for item in items]

    def batch_of(self, item: int) -> int:
        return next(k for k, batch in enumerate(self.batches) if item in batch)

    def idle(self) -> bool:
        return not self.queue.waiting


async def one_call(echo: Echo, count: int) -> None:
    assert await echo.queue.ask(range(count)) == [k * 10 for k in range(count)]


async def many_calls(echo: Echo, count: int) -> None:
    """All of them on behalf of one run."""
    got = await asyncio.gather(*(echo.queue.ask([k], "the flood") for k in range(count)))
    assert got == [[k * 10] for k in range(count)]


@pytest.mark.parametrize("flood", [one_call, many_calls])
def test_a_flood_delays_the_single_request_of_another_by_one_batch_at_most(flood) -> None:  # type: ignore[no-untyped-def]
    echo = Echo(max_batch=64)

    async def run() -> None:
        flooding = asyncio.create_task(flood(echo, 500))
        while not echo.batches:
            await asyncio.sleep(0)
        asked_after = len(echo.batches)
        assert await echo.queue.ask([-1]) == [-10]
        assert echo.batch_of(-1) == asked_after  # in the next batch
        assert not flooding.done()
        await flooding

    asyncio.run(run())
    assert echo.idle()


def test_callers_that_call_at_the_same_moment_share_every_batch_equally() -> None:
    echo = Echo(max_batch=30)

    async def run() -> None:
        calls = [range(1000 * k, 1000 * k + 40) for k in range(3)]
        await asyncio.gather(*(echo.queue.ask(call) for call in calls))

    asyncio.run(run())
    shares = [Counter(item // 1000 for item in batch) for batch in echo.batches]
    assert shares == [{0: 10, 1: 10, 2: 10}] * 4


@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=12),
    cancelled=st.sets(st.integers(0, 11)),
    batch=st.integers(1, 20),
    patience=st.integers(0, 40),
)
@settings(max_examples=60, deadline=None)
def test_whoever_stays_gets_its_answers_and_whoever_goes_leaves_nothing(
    sizes: list[int], cancelled: set[int], batch: int, patience: int
) -> None:
    echo = Echo(batch)

    async def run() -> None:
        starts = [100 * k for k in range(len(sizes))]
        calls = [
            asyncio.create_task(echo.queue.ask(range(start, start + size)))
            for start, size in zip(starts, sizes, strict=True)
        ]
        for _ in range(patience):
            await asyncio.sleep(0)
        for k in cancelled & set(range(len(calls))):
            calls[k].cancel()
        got = await asyncio.gather(*calls, return_exceptions=True)
        for k, (start, size, call) in enumerate(zip(starts, sizes, got, strict=True)):
            wanted = [n * 10 for n in range(start, start + size)]
            cut = isinstance(call, asyncio.CancelledError)
            assert (cut and k in cancelled) or call == wanted

    asyncio.run(run())
    assert echo.idle()
    asked = [item for each in echo.batches for item in each]
    assert len(asked) == len(set(asked))  # nothing twice


def test_a_cancelled_call_is_not_answered() -> None:
    echo = Echo()

    async def run() -> None:
        gone = asyncio.create_task(echo.queue.ask([1, 2, 3]))
        stays = asyncio.create_task(echo.queue.ask([4]))
        await asyncio.sleep(0)
        gone.cancel()
        assert await stays == [40]
        assert len(asyncio.all_tasks()) <= 2  # this one, and the one that closed the batch

    asyncio.run(run())
    assert echo.batches == [[4]]
    assert echo.idle()


def test_a_batch_that_fails_fails_its_callers_once_and_the_next_one_works() -> None:
    class Broken(Echo):
        def answer(self, items: Sequence[int]) -> list[int]:
            if 13 in items:
                raise ModelError("no luck")
            return super().answer(items)

    echo = Broken(max_batch=4)

    async def run() -> None:
        first = asyncio.create_task(echo.queue.ask(range(10, 20)))
        with pytest.raises(ModelError, match="no luck"):
            await first
        assert echo.idle()  # its other items are not worth asking any more
        assert await echo.queue.ask([1]) == [10]

    asyncio.run(run())


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        Batcher(list, max_batch=0)


def test_an_ended_loop_leaves_the_model_usable_in_the_next_one() -> None:
    echo = Echo()

    async def leave_early() -> None:
        asyncio.create_task(echo.queue.ask([1])).set_name("forgotten")
        await asyncio.sleep(0)

    asyncio.run(leave_early())
    assert echo.idle()
    assert asyncio.run(echo.queue.ask([2])) == [20]


def test_a_run_of_one_agent_is_served_beside_a_run_of_hundreds() -> None:
    """Agents ask one request at a time, so the turns are taken by run, not by call."""
    order: list[str] = []

    def answer(items: Sequence[Request]) -> list[Completion]:
        order.extend(request.adapter or "" for request in items)
        return [Completion(text="{}", prompt="p") for _ in items]

    class Batched:
        name = "batched"

        def __init__(self) -> None:
            self.queue = Batcher(answer, max_batch=16)

        async def generate(self, requests: Sequence[Request]) -> list[Completion]:
            return await self.queue.ask(requests, requests[0].run)

        async def close(self) -> None: ...

    model = Batched()
    crowd = [AgentNode(f"a{k}", model, adapter="crowd") for k in range(300)]
    many = CollabGraph([*crowd, MajorityVote()])
    one = CollabGraph.solo(model, adapter="single")

    async def both() -> None:
        first = asyncio.ensure_future(many.run("goal"))
        await asyncio.sleep(0)
        await asyncio.gather(first, one.run("goal"))

    asyncio.run(both())
    assert len(order) == 301
    assert order.index("single") < 3 * 16


async def test_too_few_answers_are_an_error_of_those_who_asked() -> None:
    queue: Batcher[int, int] = Batcher(lambda items: [0])
    with pytest.raises(ValueError, match="shorter"):
        await asyncio.wait_for(queue.ask([1, 2]), 5)
    assert await queue.ask([1]) == [0]
