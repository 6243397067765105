"""Delayed edges and rounds that end early: what is delivered when, and that runs are repeatable."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest
from graph_fakes import Sleeper, in_virtual_time, timeless
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui import (
    CollabGraph,
    GraphError,
    Message,
    NodeContext,
    NodeReply,
    Trace,
)
from swarm_ui.nodes import MajorityVote, function_node

Edge = tuple[str, str]


class Sayer:
    """Says who it is and all that it heard, after some time."""

    def __init__(self, id: str, seconds: float = 0.0) -> None:
        self.id, self.seconds = id, seconds
        self.calls: list[str] = []

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        await asyncio.sleep(self.seconds)
        self.calls.append(context.message_id)
        content = f"{self.id}{context.round}({' '.join(m.content for m in inbox)})"
        return NodeReply(content=content)


class Shape(NamedTuple):
    """A delayed graph, as plain data."""

    names: list[str]
    edges: list[Edge]
    delays: dict[Edge, int]
    rounds: int
    waits: list[float]

    def graph(self, **more: object) -> CollabGraph:
        nodes = [Sayer(name, wait) for name, wait in zip(self.names, self.waits, strict=True)]
        return CollabGraph(
            nodes, self.edges, self.names[0], self.rounds, delays=self.delays, **more
        )  # fmt: skip

    def by_hand(self, rounds: int) -> dict[str, tuple[str, list[str]]]:
        """The content of each message, and the ids of those heard: rounds unrolled one by one."""
        said: dict[tuple[str, int], tuple[str, list[str]]] = {}
        for r in range(rounds):
            waiting = list(self.names)
            while waiting:
                for name in list(waiting):
                    heard = [
                        (a, r - self.delays.get((a, b), 0)) for a, b in self.edges if b == name
                    ]
                    if any(place[1] == r and place not in said for place in heard):
                        continue  # a sender of this round has not spoken yet
                    places = [(name, r - 1), *heard]
                    places = [place for place in places if place in said]
                    content = f"{name}{r}({' '.join(said[place][0] for place in places)})"
                    said[name, r] = content, [f"{a}:{k}" for a, k in places]
                    waiting.remove(name)
        return {f"{name}:{r}": found for (name, r), found in said.items()}


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    names = draw(st.permutations(["a", "b", "c", "d"]))[: draw(st.integers(2, 4))]
    rounds = draw(st.integers(1, 4))
    pairs = [(a, b) for a in names for b in names if a != b]
    edges, delays = [], {}
    for a, b in draw(st.permutations(pairs)):
        forward = names.index(a) < names.index(b)
        delay = draw(st.sampled_from(["none", *(["now"] * forward), *range(1, rounds)]))
        if delay != "none":
            edges.append((a, b))
        if isinstance(delay, int):
            delays[a, b] = delay
    waits = draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=4, max_size=4))
    return Shape(list(names), edges, delays, rounds, waits[: len(names)])


def heard(trace: Trace) -> dict[str, tuple[str, list[str]]]:
    calls = {call.id: list(call.heard) for call in trace.calls}
    return {m.id: (m.content, calls[m.id]) for m in trace.messages}


@settings(max_examples=40, deadline=None)
@given(shapes(), st.integers(0, 3))
def test_delayed_graphs_do_what_unrolled_rounds_do(shape: Shape, stop: int) -> None:
    graph = shape.graph()
    trace = in_virtual_time(graph.run("x"))
    assert heard(trace) == shape.by_hand(shape.rounds)

    other = CollabGraph.from_networkx(graph.to_networkx())
    assert (other.edges, other.delays, other.rounds) == (graph.edges, shape.delays, shape.rounds)
    assert timeless(in_virtual_time(other.run("x"))) == timeless(trace)

    silent = [Sayer(name) for name in shape.names]
    untouched = graph
    for node in silent:
        untouched = untouched.with_node(node)
    assert in_virtual_time(untouched.replay(trace)) == trace
    assert not any(node.calls for node in silent)

    ended = shape.graph(until=lambda newest: newest[shape.names[0]].round == stop)
    early = in_virtual_time(ended.run("x"))
    assert early.rounds == min(stop + 1, shape.rounds)
    assert heard(early) == shape.by_hand(early.rounds)
    assert early.output_id == f"{shape.names[0]}:{early.rounds - 1}"
    assert in_virtual_time(ended.replay(early)) == early


@function_node
def writer(inbox: Sequence[Message], context: NodeContext) -> str:
    notes = [m.content for m in inbox if m.sender == "critic"]
    return f"draft {context.round}" + "".join(f" ({note})" for note in notes)


@function_node
def critic(inbox: Sequence[Message], context: NodeContext) -> str:
    return "good" if inbox[-1].content.startswith("draft 2") else f"fault {context.round}"


def approved(newest: Mapping[str, Message]) -> bool:
    return newest["critic"].content == "good"


def loop(rounds: int = 5) -> CollabGraph:
    team = CollabGraph([writer, critic], [("writer", "critic")], "writer", rounds)
    return team.with_edge("critic", "writer", delay=1)


def test_until_ends_the_rounds_and_the_trace_says_so() -> None:
    trace = loop().with_rounds(5, until=approved).run_sync("x")
    assert (trace.rounds, trace.ended_by, trace.output) == (3, "approved", "draft 2 (fault 1)")
    assert len(trace.calls) == 6
    assert repr(trace) == (
        "Trace(2 agents, 3 rounds (until approved), 6 calls, output 'draft 2 (fault 1)')"
    )
    never = loop().with_rounds(4, until=lambda newest: False).run_sync("x")
    assert (never.rounds, never.ended_by) == (4, "")


def test_what_follows_the_last_round_is_that_of_a_graph_with_so_many_rounds() -> None:
    """The same ids, seeds and messages, also in a nested graph and with a vote over all rounds."""
    for scope in ("last", "all"):
        vote = MajorityVote(scope=scope)
        team = CollabGraph([writer, critic, vote], [("writer", "critic")], "vote", 5)
        team = team.with_edge("critic", "writer", delay=1)
        short = team.with_rounds(3)
        early = team.with_rounds(5, until=approved)
        assert heard(early.run_sync("x")) == heard(short.run_sync("x"))
        inside, expected = CollabGraph([early.named("t")]), CollabGraph([short.named("t")])
        assert heard(inside.run_sync("x")) == heard(expected.run_sync("x"))


def test_a_replay_with_a_change_may_need_more_rounds_or_fewer() -> None:
    graph = loop().with_rounds(5, until=approved)
    trace = graph.run_sync("x")
    longer = asyncio.run(graph.replay(trace, messages={"critic:2": "fault 2"}))
    assert (longer.rounds, longer.ended_by) == (5, "")
    assert longer.message("writer:3").content == "draft 3 (fault 2)"
    shorter = asyncio.run(graph.replay(trace, messages={"critic:0": "good"}))
    assert (shorter.rounds, shorter.output) == (1, "draft 0")


async def _later(newest: Mapping[str, Message]) -> bool:
    return True


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: loop(1), "critic -> writer with delay=1.*less than rounds=1"),
        (lambda: loop(3).with_rounds(1), "critic -> writer with delay=1.*less than rounds=1"),
        (lambda: loop(3).with_edge("writer", "writer", delay=1), "its own message of the last"),
        (lambda: CollabGraph([writer, critic], [("writer", "critic"), ("critic", "writer")]),
         "form a cycle: .*delay=1"),
        (lambda: CollabGraph([writer, critic], [("writer", "critic")], delays={
            ("critic", "writer"): 1}), "no edge critic -> writer to delay; there is writer"),
        (lambda: CollabGraph([writer, critic], [("writer", "critic")], delays={
            ("writer", "critic"): -1}), "delay=-1: expected at least 1 round"),
        (lambda: CollabGraph([writer, MajorityVote()], rounds=2).with_edge(
            "vote", "writer", delay=1), "'vote' is called once"),
        (lambda: loop(3).with_rounds(3, until=_later), "'_later' is a coroutine function"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(make: object, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        make()


def test_delays_stay_with_their_edge() -> None:
    graph = loop(3)
    assert graph.without_edge("critic", "writer").delays == {}
    assert graph.with_edges([("critic", "writer")]).delays == {("critic", "writer"): 1}
    given = graph.with_edges([("critic", "writer"), ("writer", "critic")], delays={
        ("writer", "critic"): 2, ("a", "b"): 1})  # fmt: skip
    assert given.delays == {("writer", "critic"): 2}


def test_a_loop_can_be_composed_and_nested() -> None:
    first, last = Sleeper("first"), Sleeper("last")
    whole = CollabGraph([first], rounds=3) >> loop(3) >> last
    assert whole.sources == ("first",) and whole.output == "last"
    assert whole.edges[0] == ("first", "writer") and whole.delays == {("critic", "writer"): 1}
    outer = CollabGraph([first, loop(3).named("loop"), last], [("first", "loop"), ("loop", "last")])
    trace = outer.run_sync("x")
    calls = {call.id: call.heard for call in trace.calls}
    assert calls["loop:0/writer:1"] == ("loop:0/writer:0", "loop:0/critic:0", "first:0")
    assert asyncio.run(outer.replay(trace)) == trace
    with pytest.raises(GraphError, match="different 'until' functions"):
        loop().with_rounds(5, until=approved) >> CollabGraph(
            [last], rounds=5, until=lambda newest: True
        )
