"""Broken agents lose their voice: edges, vote, or their place in the team."""

from __future__ import annotations

import random

import pytest
from graph_fakes import BLANK

from swarm_ui import CollabGraph
from swarm_ui.action import Action
from swarm_ui.errors import ConfigError, GraphError
from swarm_ui.nodes.models.scripted.scripted_model import ScriptedModel
from swarm_ui.optim.edges.prune_agents import repair, silenced
from swarm_ui.trace.records import Episode, StepRecord, Trace

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
    mute = silenced(graph, ["agent_1"], vote=False)
    assert ("agent_0", "agent_1") in mute.edges and ("agent_1", "vote") in mute.edges
    assert ("agent_1", "agent_2") not in mute.edges
    voteless = silenced(graph, ["agent_1"], edges=False)
    assert ("agent_1", "agent_2") in voteless.edges and ("agent_1", "vote") not in voteless.edges
    gone = silenced(graph, ["agent_1"])
    assert gone.agents == ("agent_0", "agent_2", "agent_3")
    assert silenced(graph, ["agent_1"], edges=False, vote=False).edges == graph.edges
    with pytest.raises(GraphError, match="agent_9"):
        silenced(graph, ["agent_9"])


async def test_who_is_cut_is_not_heard_and_not_paid_for() -> None:
    mute = await silenced(team(), ["agent_1"], vote=False).run(BLANK)
    assert all("agent_1" not in id for c in mute.calls if c.node in ("agent_2", "agent_3")
               for id in c.heard)  # fmt: skip
    gone = await silenced(team(), ["agent_1"]).run(BLANK)
    assert {call.node for call in gone.calls} == {"agent_0", "agent_2", "agent_3", "vote"}
    assert gone.action is not None


def test_repair_cuts_who_was_found_and_shows_why() -> None:
    graph = team()
    found = repair(graph, episodes(dict.fromkeys(NAMES, 0.8) | {"agent_2": 0.1}))
    assert found.cut == ("agent_2",)
    assert found.graph.agents == ("agent_0", "agent_1", "agent_3")
    worst = found.audits[0]
    assert worst.agent == "agent_2" and worst.gap is not None and worst.gap.high < -0.15
    healthy = repair(graph, episodes(dict.fromkeys(NAMES, 0.8)))
    assert healthy.cut == () and healthy.graph.edges == graph.edges


def test_a_team_of_broken_agents_is_not_repaired() -> None:
    with pytest.raises(ConfigError, match="all agents are broken"):
        repair(team(), episodes({"agent_0": 0.9} | dict.fromkeys(NAMES[1:], 0.1)), margin=-2.0)
