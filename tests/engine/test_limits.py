"""Time limits of a run, and its cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from graph_fakes import BLANK, Sleeper, in_virtual_time
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui import (
    CollabGraph,
    ConfigError,
    Limits,
    Message,
    NodeContext,
    NodeReply,
)


@settings(max_examples=30, deadline=None)
@given(
    calls=st.lists(
        st.tuples(st.integers(0, 9), st.none() | st.integers(1, 9)), min_size=1, max_size=12
    ),
    general=st.none() | st.integers(1, 9),
)
def test_each_call_has_its_own_time_whatever_the_others_have(
    calls: list[tuple[int, int | None]], general: int | None
) -> None:
    nodes = []
    for k, (seconds, own) in enumerate(calls):
        node = Sleeper(f"n{k}", seconds)
        if own is not None:
            node.timeout = own + 0.5  # type: ignore[attr-defined]
        nodes.append(node)
    graph = CollabGraph([*nodes, Sleeper("end")], [(n.id, "end") for n in nodes])
    limits = Limits(timeout=None if general is None else general + 0.5)
    trace = in_virtual_time(graph.run(BLANK, limits=limits))
    for k, (seconds, own) in enumerate(calls):
        allowed = own if own is not None else general
        late = allowed is not None and seconds > allowed
        call = trace.calls[k]
        assert call.ended == (allowed + 0.5 if late and allowed is not None else seconds)
        assert (call.error is not None) is late


class Stubborn:
    """Does not let itself be cancelled."""

    id = "stubborn"

    def __init__(self, answers: bool) -> None:
        self.answers = answers

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            if not self.answers:
                raise ValueError("while being cancelled") from None
        return NodeReply(content="here")


@pytest.mark.parametrize("answers", [True, False])
def test_a_node_that_catches_its_cancellation_does_no_harm_to_others(answers: bool) -> None:
    graph = CollabGraph([Stubborn(answers), Sleeper("b", 3), Sleeper("c", 3)],
                        [("stubborn", "b"), ("b", "c")])  # fmt: skip
    trace = in_virtual_time(graph.run(BLANK, limits=Limits(timeout=5)))
    first = trace.calls[0]
    told = None if first.error is None else str(first.error)
    assert told == (None if answers else "ValueError: while being cancelled")
    assert [(c.node, c.ended, c.error) for c in trace.calls[1:]] == [
        ("b", 9, None),
        ("c", 12, None),
    ]


def test_a_node_that_catches_its_cancellation_does_not_keep_a_cancelled_run_going() -> None:
    later = Sleeper("later", 3)
    graph = CollabGraph([Stubborn(answers=True), later], [("stubborn", "later")])

    async def main() -> float:
        task = asyncio.create_task(graph.run(BLANK))
        await asyncio.sleep(2)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() and len(asyncio.all_tasks()) == 1
        return asyncio.get_running_loop().time()

    assert in_virtual_time(main()) == 3  # not 6: no other call is made


def test_a_cancelled_run_is_cancelled_also_at_the_moment_a_call_expires() -> None:
    async def race() -> tuple[bool, int]:
        graph = CollabGraph([Sleeper("a", 99), Sleeper("b", 99)], [("a", "b")])
        task = asyncio.ensure_future(graph.run(BLANK, limits=Limits(timeout=5)))
        asyncio.get_running_loop().call_at(5.0, task.cancel)
        await asyncio.wait([task])
        return task.cancelled(), len(asyncio.all_tasks())

    assert in_virtual_time(race()) == (True, 1)


def test_cancelling_a_run_with_open_calls_leaves_no_task_and_no_timer() -> None:
    async def cancel() -> tuple[int, list[object]]:
        loop = asyncio.get_running_loop()
        nodes = [Sleeper(f"n{k}", 50) for k in range(20)]
        graph = CollabGraph([*nodes, Sleeper("end")], [(n.id, "end") for n in nodes])
        task = asyncio.ensure_future(graph.run(BLANK, limits=Limits(timeout=30)))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        timers = [t for t in loop._scheduled if not t.cancelled()]  # type: ignore[attr-defined]
        return len(asyncio.all_tasks()), timers

    assert in_virtual_time(cancel()) == (1, [])


def test_a_time_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="timeout must be > 0 seconds or None, got 0"):
        Limits(timeout=0)
