"""Broken agents are found from credit; edges are valued by leaving them out of a replay."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from graph_fakes import BLANK

from swarm_ui import CollabGraph, Message, NodeContext, NodeReply
from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.audit import edge_worth, find_broken, without_agents
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace

AGENTS = ("ada", "bo", "cy", "dee")


def episode(seed: int, quality: dict[str, float], *, masked: bool = False) -> Episode:
    """Four steps of differing difficulty; an agent is right with its quality less that."""
    rng = random.Random(seed)
    steps = []
    for _ in range(4):
        hard = rng.choice([0.0, 0.4])
        row = tuple(
            None if rng.random() < 0.1 else float(rng.random() < quality[a] - hard) for a in AGENTS
        )
        calls = tuple(
            Call(message=f"{a}:0", node=a, round=0, error="down" if quality[a] < 0 else None)
            for a in AGENTS
        )
        trace = Trace(
            run=f"e{seed}", seed=seed, observation=BLANK, agents=AGENTS, rounds=1, calls=calls
        )
        steps.append(StepRecord(trace=trace, credit=(row,)))
    success = None if masked else True
    return Episode(environment="e", task="t", seed=seed, steps=tuple(steps), success=success)


def test_a_broken_agent_is_found_and_healthy_ones_are_not() -> None:
    quality = dict.fromkeys(AGENTS, 0.8) | {"cy": 0.1}
    found = find_broken([episode(k, quality) for k in range(30)])
    assert [a.agent for a in found if a.broken] == ["cy"]
    assert found[0].agent == "cy"
    assert found[0].gap is not None and found[0].gap.high < -0.15 and found[0].gap.n == 30


def test_two_broken_of_four_do_not_hide_each_other() -> None:
    quality = dict.fromkeys(AGENTS, 0.9) | {"cy": 0.05, "ada": 0.05}
    found = find_broken([episode(k, quality) for k in range(40)])
    assert {a.agent for a in found if a.broken} == {"ada", "cy"}


@pytest.mark.parametrize("seed", range(5))
def test_equal_agents_are_all_kept(seed: int) -> None:
    quality = dict.fromkeys(AGENTS, 0.7)
    found = find_broken([episode(1000 * seed + k, quality) for k in range(20)])
    assert not any(a.broken for a in found)


def test_one_episode_and_masked_episodes_prove_nothing() -> None:
    quality = dict.fromkeys(AGENTS, 0.9) | {"cy": 0.0}
    assert not any(a.broken for a in find_broken([episode(1, quality)]))
    assert find_broken([episode(k, quality, masked=True) for k in range(30)]) == ()


def test_an_agent_whose_calls_fail_is_broken() -> None:
    quality = dict.fromkeys(AGENTS, 0.9) | {"bo": -1.0}
    found = {a.agent: a for a in find_broken([episode(1, quality)])}
    assert found["bo"].broken and found["bo"].failed == 1.0
    assert not found["ada"].broken


def test_cutting_an_agent_takes_its_voice_and_leaves_its_ears() -> None:
    edges = [("ada", "bo"), ("cy", "bo"), ("ada", "cy"), ("cy", "dee")]
    assert without_agents(edges, ["cy"]) == (("ada", "bo"), ("ada", "cy"))


class Adding:
    """Says its own number plus all it hears, and counts its calls."""

    def __init__(self, id: str, number: int) -> None:
        self.id, self.number, self.calls = id, number, 0

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        self.calls += 1
        return NodeReply(content=str(self.number + sum(int(m.content) for m in inbox)))


async def test_an_edge_is_worth_what_its_replay_without_it_lacks() -> None:
    nodes = [Adding("a", 1), Adding("b", 10), Adding("c", 100), Adding("d", 1000)]
    edges = [("a", "b"), ("b", "d"), ("c", "d"), ("a", "d")]
    graph = CollabGraph(nodes, edges, output="d")
    traces = [await graph.run(BLANK, seed=seed) for seed in range(3)]
    before = [node.calls for node in nodes]

    def said(trace: Trace) -> float:
        return float(next(m.content for m in trace.messages if m.sender == "d"))

    found = {row.edge: row for row in await edge_worth(graph, traces, said)}
    assert {edge: row.worth.mean for edge, row in found.items()} == {
        ("c", "d"): 100.0, ("b", "d"): 11.0, ("a", "b"): 1.0, ("a", "d"): 1.0,
    }  # fmt: skip
    assert all(row.worth.n == 3 for row in found.values())
    # Only who hears the difference is asked: d every time, b only where a -> b is missing.
    again = [node.calls - was for node, was in zip(nodes, before, strict=True)]
    assert again == [0, 3, 0, 12]
    assert found["a", "b"].calls == 6 and found["c", "d"].calls == 3
    with pytest.raises(ConfigError, match="none of the traces"):
        await edge_worth(graph, traces, said, edges=[("d", "a")])


class Answering:
    """Right with its quality, from the run's seed."""

    def __init__(self, id: str, quality: float) -> None:
        self.id, self.quality = id, quality

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        lucky = random.Random(f"{self.id} {context.seed}").random() < self.quality
        return NodeReply(content="right" if lucky else "wrong")


class Majority:
    """Says what most say; ties by a coin that is the seed's."""

    id = "judge"

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        ahead = 2 * sum(message.content == "right" for message in inbox) - len(inbox)
        coin = random.Random(f"coin {context.seed}").random() < 0.5
        return NodeReply(content="right" if ahead > 0 or (ahead == 0 and coin) else "wrong")


async def test_an_adversarys_edge_is_found_and_cutting_it_pays() -> None:
    quality = {"ada": 0.8, "bo": 0.8, "cy": 0.0, "dee": 0.8}
    nodes = [*(Answering(name, q) for name, q in quality.items()), Majority()]
    graph = CollabGraph(nodes, [(name, "judge") for name in quality], output="judge")
    traces = [await graph.run(BLANK, seed=seed) for seed in range(60)]

    def right(trace: Trace) -> float:
        return float(trace.messages[-1].content == "right")

    worth = {row.edge: row.worth for row in await edge_worth(graph, traces, right)}
    harmful = [edge for edge, value in worth.items() if value.high < 0.0]
    assert harmful == [("cy", "judge")]
    cut = graph.with_edges(without_agents(graph.edges, ["cy"]))
    again = [await cut.run(BLANK, seed=seed) for seed in range(60)]
    gained = (sum(map(right, again)) - sum(map(right, traces))) / 60
    assert gained == pytest.approx(-worth["cy", "judge"].mean)
    assert gained > 0.1
