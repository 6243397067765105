"""Gathering calls into batches: limits, and clean-up after cancelled calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui.nodes.models.batcher import Batcher


class Echo:
    """Answers with what it was asked, and remembers the batches."""

    def __init__(self, max_rows: int = 128) -> None:
        self.batches: list[list[int]] = []
        self.max_rows = max_rows
        self.queue: Batcher[int, int] = Batcher(self.answer, max_rows=max_rows)

    def answer(self, items: Sequence[int]) -> list[int]:
        assert len(items) <= self.max_rows
        self.batches.append(list(items))
        return [item * 10 for item in items]


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
    asked = [item for each in echo.batches for item in each]
    assert len(asked) == len(set(asked))  # nothing twice


async def test_the_event_loop_goes_on_while_a_batch_is_computed() -> None:
    begun, free = threading.Event(), threading.Event()

    def answer(items: Sequence[int]) -> list[int]:
        begun.set()
        return list(items) if free.wait(10) else []

    queue: Batcher[int, int] = Batcher(answer)
    asked = asyncio.create_task(queue.ask([1]))
    while not begun.is_set():
        await asyncio.sleep(0)
    assert not asked.done()
    free.set()
    assert await asked == [1]
