"""Replays: nothing is asked that would hear what it heard, and everything else is."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from graph_fakes import BLANK, SCREEN, Sleeper, in_virtual_time, timeless
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_fakes import Telling, after, team

from swarm_ui import (
    CollabGraph,
    ConfigError,
    GraphError,
    Message,
    NodeContext,
    NodeReply,
)
from swarm_ui.nodes import AgentNode, Fallback

graphs = {"seed": st.integers(0, 99), "size": st.integers(2, 6), "rounds": st.integers(1, 3)}


@settings(max_examples=25, deadline=None)
@given(**graphs)
def test_with_nothing_changed_it_is_the_same_trace_and_no_call(
    seed: int, size: int, rounds: int
) -> None:
    model = Telling()
    graph = team(model, seed, size, rounds)
    trace = graph.run_sync(SCREEN, seed=seed, run_id="r")
    model.requests.clear()
    assert in_virtual_time(graph.replay(trace)) == trace
    assert model.requests == []


@settings(max_examples=25, deadline=None)
@given(**graphs, pick=st.randoms(use_true_random=False))
def test_one_message_changed_asks_exactly_those_after_it_again(
    seed: int, size: int, rounds: int, pick: random.Random
) -> None:
    model = Telling()
    graph = team(model, seed, size, rounds)
    trace = graph.run_sync(SCREEN, seed=seed)
    id = pick.choice([m.id for m in trace.messages if m.sender != "vote"])
    model.requests.clear()
    changed = in_virtual_time(graph.replay(trace, messages={id: "something else"}))
    later = after(trace, {id})
    assert len(model.requests) == len(later)
    assert changed.message(id).content == "something else"
    assert {
        m.id for m in changed.messages if m != trace.message(m.id) and m.sender != "vote"
    } == later | {id}


@settings(max_examples=25, deadline=None)
@given(**graphs, pick=st.randoms(use_true_random=False))
def test_one_message_removed_is_heard_by_nobody_and_only_its_listeners_follow(
    seed: int, size: int, rounds: int, pick: random.Random
) -> None:
    model = Telling()
    graph = team(model, seed, size, rounds)
    trace = graph.run_sync(SCREEN, seed=seed)
    id = pick.choice([m.id for m in trace.messages if m.sender != "vote"])
    model.requests.clear()
    without = in_virtual_time(graph.replay(trace, without=[id]))
    assert len(model.requests) == len(after(trace, {id}))
    assert id not in {m.id for m in without.messages}
    assert all(id not in call.heard for call in without.calls)
    assert without.skipped == ()  # a listener of nobody else still speaks


@settings(max_examples=15, deadline=None)
@given(**graphs)
def test_one_nodes_model_changed_asks_that_node_and_those_after_it(
    seed: int, size: int, rounds: int
) -> None:
    model, other = Telling(), Telling("other")
    graph = team(model, seed, size, rounds)
    trace = graph.run_sync(SCREEN, seed=seed)
    model.requests.clear()
    agent = AgentNode("a1", other, view="shuffle")
    changed = in_virtual_time(graph.replay(trace, nodes={"a1": agent}))
    own = {f"a1:{r}" for r in range(rounds)}
    assert len(other.requests) == rounds
    assert len(model.requests) == len(after(trace, own))
    anew = graph.with_node(agent, name="a1").run_sync(SCREEN, seed=seed)
    assert timeless(changed) == timeless(anew)


@settings(max_examples=15, deadline=None)
@given(**graphs)
def test_one_edge_changed_asks_its_listener_and_those_after_it(
    seed: int, size: int, rounds: int
) -> None:
    model = Telling()
    graph = team(model, seed, size, rounds)
    trace = graph.run_sync(SCREEN, seed=seed)
    if not graph.communication_edges:
        return
    edge = graph.communication_edges[len(graph.communication_edges) // 2]
    fewer = graph.without_edge(*edge)
    model.requests.clear()
    changed = in_virtual_time(fewer.replay(trace))
    own = {f"{edge[1]}:{r}" for r in range(rounds)}
    assert len(model.requests) == len(own | after(changed, own))
    assert timeless(changed) == timeless(fewer.run_sync(SCREEN, seed=seed))


def test_resampling_draws_k_other_samples_that_are_the_same_next_time() -> None:
    model = Telling()
    graph = team(model, 3, 4, 2)
    trace = graph.run_sync(SCREEN, seed=7)
    model.requests.clear()
    drawn = in_virtual_time(graph.resample(trace, "a1:0", 5))
    assert len({t.message("a1:0").content for t in drawn} | {trace.message("a1:0").content}) == 6
    assert len(model.requests) == 5 * (1 + len(after(trace, {"a1:0"})))
    before = after(trace, {"a1:0"}) | {"a1:0", "vote:1"}
    assert all(t.message(m.id) == m for t in drawn for m in trace.messages if m.id not in before)
    again = in_virtual_time(graph.resample(trace, "a1:0", 5))
    assert [timeless(t) for t in again] == [timeless(t) for t in drawn]


def test_inside_a_nested_graph_too() -> None:
    model, other = Telling(), Telling("other")
    inner = team(model, 2, 3, 2).named("inner")
    graph = CollabGraph([AgentNode("first", model), inner, Sleeper("end")],
                        [("first", "inner"), ("inner", "end")])  # fmt: skip
    trace = graph.run_sync(SCREEN)
    model.requests.clear()
    assert in_virtual_time(graph.replay(trace)) == trace and model.requests == []

    id = "inner:0/a0:0"
    changed = in_virtual_time(graph.replay(trace, messages={id: "else"}))
    inside = {m.id for m in trace.messages if m.id.startswith("inner:0/a")}
    assert len(model.requests) == len(after(trace, {id}) & inside)
    assert changed.message(id).content == "else"

    model.requests.clear()
    in_virtual_time(graph.replay(trace, nodes={"inner": team(other, 2, 3, 2)}))
    assert (len(other.requests), len(model.requests)) == (6, 0)


class Flaky:
    """Fails at its first call, and counts its calls."""

    def __init__(self, id: str) -> None:
        self.id, self.calls = id, 0

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        self.calls += 1
        if self.calls == 1:
            raise OSError("down")
        return NodeReply(content="up again")


@pytest.mark.parametrize("nested", [False, True])
def test_an_edit_inside_a_fallback_does_not_try_the_failed_node_again(nested: bool) -> None:
    node = Flaky("a")
    primary = CollabGraph([node], name="a") if nested else node
    spare = CollabGraph([Sleeper("x"), Sleeper("y")], [("x", "y")], name="spare")
    graph = CollabGraph([Fallback(primary, spare)])
    trace = graph.run_sync(BLANK)
    failed = "a:0/a:0/a:0" if nested else "a:0/a:0"
    assert trace.recorded()[failed].error is not None
    changed = in_virtual_time(graph.replay(trace, messages={"a:0/spare:1/x:0": "else"}))
    assert node.calls == 1 and changed.message("a:0/spare:1/x:0").content == "else"
    again = in_virtual_time(graph.replay(trace, again=["a:0"]))
    assert (node.calls, again.output) == ((1, trace.output) if nested else (2, "up again"))


def test_unknown_ids_and_names_are_refused() -> None:
    graph = CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")])
    trace = graph.run_sync(BLANK, seed=1, run_id="r")
    changes = ({"messages": {"c:0": ""}}, {"without": ["c:0"]}, {"again": ["c:0"]})
    for change in changes:
        with pytest.raises(ConfigError, match="no message 'c:0' in the trace; it has a:0, b:0"):
            in_virtual_time(graph.replay(trace, **change))  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="node 'c' is not in the graph"):
        in_virtual_time(graph.replay(trace, nodes={"c": Sleeper("c")}))
    with pytest.raises(ConfigError, match="k must be at least 1, got 0"):
        in_virtual_time(graph.resample(trace, "a:0", 0))
