"""Time and adapter versions of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from graph_fakes import BLANK, SCREEN, FixedModel, Sleeper, click, in_virtual_time
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui import (
    CollabGraph,
    Completion,
    ConfigError,
    Limits,
    Message,
    NodeContext,
    NodeError,
    NodeReply,
    Request,
    Trace,
)
from swarm_ui.engine.events import CallFinished, Event
from swarm_ui.nodes import AgentNode, Fallback, MajorityVote

# -- time -------------------------------------------------------------------------------------


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


def test_a_node_that_fails_to_stop_does_not_hide_why_the_run_ended() -> None:
    nodes = [Stubborn(answers=False), Sleeper("b", 3, fails=OSError("disk full"))]
    abort = Limits(on_failure="abort")
    with pytest.raises(NodeError, match="node 'b', round 0: OSError: disk full"):
        in_virtual_time(CollabGraph(nodes, output="b").run(BLANK, limits=abort))


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


# -- versions ---------------------------------------------------------------------------------


class Versioned(FixedModel):
    """A model whose adapters get a new version whenever told."""

    name = "versioned"

    def __init__(self) -> None:
        super().__init__({})
        self.version = 1
        self.leased: list[str] = []

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        await asyncio.sleep(1)
        return [Completion(text=click(1), prompt="p", adapter=r.adapter) for r in requests]

    def lease(self, adapter: str) -> str:
        version = f"{adapter}@{self.version}"
        self.leased.append(version)
        return version

    def release(self, version: str) -> None:
        self.leased.remove(version)


def test_a_run_keeps_the_adapter_versions_it_began_with() -> None:
    model = Versioned()
    inner = CollabGraph([AgentNode("x", model, adapter="b")], name="inner")
    first = AgentNode("a", model, adapter="a")
    node = Fallback(first, AgentNode("spare", model, adapter="c"))
    team = CollabGraph([node, inner, MajorityVote()], rounds=3)

    async def train_meanwhile() -> tuple[Trace, Trace, list[str]]:
        first = asyncio.ensure_future(team.run(SCREEN))
        await asyncio.sleep(1.5)
        model.version = 2
        held = sorted(model.leased)
        second = await team.run(SCREEN)
        return await first, second, held

    first, second, held = in_virtual_time(train_meanwhile())
    assert held == ["a@1", "b@1", "c@1"]
    spoke = {c.id: c.adapter for c in first.calls if c.prompt}
    assert set(spoke.values()) == {"a@1", "b@1"} and len(spoke) == 6
    assert {c.adapter for c in second.calls if c.prompt} == {"a@2", "b@2"}
    assert model.leased == []


def test_leases_end_with_the_run_however_it_ends() -> None:
    model = Versioned()
    bad = CollabGraph([AgentNode("a", model, adapter="a"), Sleeper("b", fails=ConfigError("no"))],
                      [("a", "b")])  # fmt: skip
    with pytest.raises(ConfigError):
        in_virtual_time(bad.run(SCREEN))
    assert model.leased == []


# -- the workers under it ----------------------------------------------------------------------


def test_what_breaks_outside_of_any_node_ends_the_run_and_is_raised() -> None:
    def broken(event: Event) -> None:
        if isinstance(event, CallFinished):
            raise OSError("no room for events")

    async def run() -> int:
        graph = CollabGraph([Sleeper("a", 1), Sleeper("b", 99)], output="a")
        with pytest.raises(OSError, match="no room for events"):
            await graph.run(BLANK, on_event=broken)
        return len(asyncio.all_tasks())

    assert in_virtual_time(run()) == 1
