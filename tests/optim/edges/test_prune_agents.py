"""Broken agents are found from credit, and cut off: edges, vote, or the whole agent."""

from __future__ import annotations

import random

import pytest
from graph_fakes import BLANK

from swarm_ui import CollabGraph
from swarm_ui.action import Action
from swarm_ui.errors import ConfigError, Failure, GraphError
from swarm_ui.message import Message
from swarm_ui.nodes import ScriptedModel
from swarm_ui.optim.edges.prune import find_broken, prune_agents, without_voice
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace

NAMES = tuple(f"agent_{k}" for k in range(4))
REPLY = Action(action_type="navigate_back").json()


def team() -> CollabGraph:
    """Everybody hears all before."""
    edges = [(a, b) for k, b in enumerate(NAMES) for a in NAMES[:k]]
    model = ScriptedModel(lambda request: REPLY)
    return CollabGraph.collaborative(4, 2, model=model, edges=edges)


def episodes(right: dict[str, float]) -> list[Episode]:
    """Graded ones in which each agent is right with its own probability."""
    rng = random.Random(0)
    made = []
    for seed in range(30):
        rows = tuple(tuple(float(rng.random() < right[name]) for name in NAMES) for _ in range(2))
        trace = Trace(run=f"{seed}", seed=seed, observation=BLANK, agents=NAMES, rounds=2)
        step = StepRecord(trace=trace, credit=rows)
        made.append(Episode(environment="e", task="t", seed=seed, steps=(step,), success=True))
    return made


def test_edges_and_vote_are_cut_apart_or_together() -> None:
    graph = team()
    mute = without_voice(graph, ["agent_1"], vote=False)
    assert ("agent_0", "agent_1") in mute.edges and ("agent_1", "vote") in mute.edges
    assert ("agent_1", "agent_2") not in mute.edges
    voteless = without_voice(graph, ["agent_1"], edges=False)
    assert ("agent_1", "agent_2") in voteless.edges and ("agent_1", "vote") not in voteless.edges
    gone = without_voice(graph, ["agent_1"])
    assert gone.agents == ("agent_0", "agent_2", "agent_3")
    assert without_voice(graph, ["agent_1"], edges=False, vote=False).edges == graph.edges
    with pytest.raises(GraphError, match="agent_9"):
        without_voice(graph, ["agent_9"])


def test_pruning_cuts_who_was_found_and_shows_why() -> None:
    graph = team()
    found = prune_agents(graph, episodes(dict.fromkeys(NAMES, 0.8) | {"agent_2": 0.1}))
    assert found.cut == ("agent_2",)
    assert found.graph.agents == ("agent_0", "agent_1", "agent_3")
    worst = found.audits[0]
    assert worst.agent == "agent_2" and worst.gap is not None and worst.gap.high < -0.15
    healthy = prune_agents(graph, episodes(dict.fromkeys(NAMES, 0.8)))
    assert healthy.cut == () and healthy.graph.edges == graph.edges


def test_a_team_of_broken_agents_is_not_pruned() -> None:
    with pytest.raises(ConfigError, match="all agents are broken"):
        prune_agents(
            team(), episodes({"agent_0": 0.9} | dict.fromkeys(NAMES[1:], 0.1)), margin=-2.0
        )


# -- finding them ------------------------------------------------------------------------------

AGENTS = ("ada", "bo", "cy", "dee")


def graded(seed: int, quality: dict[str, float], *, masked: bool = False) -> Episode:
    """Four steps of differing difficulty; an agent is right with its quality less that."""
    rng = random.Random(seed)
    steps = []
    for _ in range(4):
        hard = rng.choice([0.0, 0.4])
        row = tuple(
            None if rng.random() < 0.1 else float(rng.random() < quality[a] - hard) for a in AGENTS
        )
        calls = tuple(
            Call(
                message=Message(id=f"{a}:0", sender=a, round=0, content=""),
                error=Failure(kind="model", message="down") if quality[a] < 0 else None,
            )
            for a in AGENTS
        )
        trace = Trace(
            run=f"e{seed}", seed=seed, observation=BLANK, agents=AGENTS, rounds=1, calls=calls
        )
        steps.append(StepRecord(trace=trace, credit=(row,)))
    success = None if masked else True
    return Episode(environment="e", task="t", seed=seed, steps=tuple(steps), success=success)


def test_one_episode_and_masked_episodes_prove_nothing() -> None:
    quality = dict.fromkeys(AGENTS, 0.9) | {"cy": 0.0}
    assert not any(a.broken for a in find_broken([graded(1, quality)]))
    assert find_broken([graded(k, quality, masked=True) for k in range(30)]) == ()


def test_an_agent_whose_calls_fail_is_broken() -> None:
    quality = dict.fromkeys(AGENTS, 0.9) | {"bo": -1.0}
    found = {a.agent: a for a in find_broken([graded(1, quality)])}
    assert found["bo"].broken and found["bo"].failed == 1.0
    assert not found["ada"].broken
