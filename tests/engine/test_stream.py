"""Events of a run while it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from graph_fakes import BLANK, SCREEN, FixedModel, Sleeper, click, in_virtual_time

from swarm_ui import (
    CollabGraph,
    Completion,
    Limits,
    NodeError,
    Request,
)
from swarm_ui.events import CallFinished, CallStarted, Event, Finished, Token
from swarm_ui.nodes import AgentNode, MajorityVote


class Typist(FixedModel):
    """Says its reply letter by letter."""

    name = "typist"

    def __init__(self, reply: str, seconds: float = 0.0, ends: bool = True) -> None:
        super().__init__({None: reply})
        self.reply, self.seconds, self.ends = reply, seconds, ends
        self.closed = 0

    async def stream(self, request: Request) -> AsyncIterator[str | Completion]:
        try:
            for letter in self.reply:
                await asyncio.sleep(self.seconds)
                yield letter
            if self.ends:
                yield (await self.generate([request]))[0]
        finally:
            self.closed += 1


async def collect(stream: AsyncIterator[Event]) -> list[Event]:
    return [event async for event in stream]


def test_events_come_while_the_run_goes_on_and_end_with_its_trace() -> None:
    graph = CollabGraph([Sleeper("slow", 5), Sleeper("fast", 1), Sleeper("end")],
                        [("slow", "end"), ("fast", "end")])  # fmt: skip

    async def follow() -> list[tuple[float, str]]:
        clock = asyncio.get_running_loop().time
        seen = []
        async for event in graph.stream(BLANK, run_id="r"):
            assert event.run == "r"
            what = type(event).__name__
            who = event.call.node if isinstance(event, CallFinished) else ""
            seen.append((clock(), who or getattr(event, "node", what)))
        assert isinstance(event, Finished)
        assert event.trace.message("end:0").content == "end(slow,fast)"
        return seen

    assert in_virtual_time(follow()) == [
        (0, "slow"), (0, "fast"), (1, "fast"), (5, "slow"), (5, "end"), (5, "end"), (5, "Finished"),
    ]  # fmt: skip


def test_the_events_hold_all_that_the_trace_holds() -> None:
    model = FixedModel({None: click(2)})
    team = CollabGraph.collaborative(agents=3, rounds=2, model=model)
    nested = CollabGraph([team.named("inner"), Sleeper("end")], [("inner", "end")])
    events = in_virtual_time(collect(nested.stream(SCREEN, seed=3)))
    trace = nested.run_sync(SCREEN, seed=3)
    spoken = {e.call.id: e for e in events if isinstance(e, CallFinished)}
    assert {id: e.call.message for id, e in spoken.items()} == {m.id: m for m in trace.messages}
    assert {id: e.call.heard for id, e in spoken.items()} == {c.id: c.heard for c in trace.calls}
    started = [e.id for e in events if isinstance(e, CallStarted)]
    assert sorted(started) == sorted(spoken)
    assert [type(e) for e in events].count(Finished) == 1 and isinstance(events[-1], Finished)


def test_tokens_come_where_the_model_streams() -> None:
    model = Typist(click(1), seconds=0.1)
    team = CollabGraph([AgentNode("ada", model), MajorityVote()])
    events = in_virtual_time(collect(team.stream(SCREEN)))
    tokens = [e for e in events if isinstance(e, Token)]
    assert "".join(t.text for t in tokens) == click(1)
    assert {(t.id, t.node, t.round) for t in tokens} == {("ada:0", "ada", 0)}
    in_virtual_time(team.run(SCREEN))
    assert model.closed == 1  # nobody follows: nothing is streamed


def test_a_run_that_raises_raises_after_what_came_before() -> None:
    graph = CollabGraph([Sleeper("a"), Sleeper("bad", 1, ValueError("no"))], [("a", "bad")])

    async def follow() -> list[str]:
        seen = []
        stream = graph.stream(BLANK, run_id="r", limits=Limits(on_failure="abort"))
        with pytest.raises(NodeError, match="node 'bad', round 0, run r: ValueError: no") as found:
            async for event in stream:
                seen.append(type(event).__name__)
        assert found.value.partial is not None
        assert [m.id for m in found.value.partial.messages] == ["a:0"]
        return seen

    assert in_virtual_time(follow()) == ["CallStarted", "CallFinished", "CallStarted"]


@pytest.mark.parametrize("events", [0, 1, 3])
def test_leaving_early_cancels_the_run_and_leaves_no_task_behind(events: int) -> None:
    model = Typist("abcdef", seconds=9)
    team = CollabGraph([AgentNode("ada", model), Sleeper("b", 99), MajorityVote()],
                       [("ada", "vote"), ("b", "vote")])  # fmt: skip

    async def leave() -> tuple[int, int]:
        async with aclosing(team.stream(SCREEN)) as stream:
            if events:
                count = 0
                async for _ in stream:
                    count += 1
                    if count == events:
                        break
        return len(asyncio.all_tasks()), model.closed

    tasks, closed = in_virtual_time(leave())
    assert tasks == 1
    assert closed == (1 if events else 0)
