"""The agents that ship: they belong to today's tokenizer and phone, and they can act."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from swarm_ui.environments.phone import VALIDATION_SEEDS, PhoneEnvironment, jobs
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes import BASE_AGENT, GENERAL_AGENT, LocalModel
from swarm_ui.rollout import GraphPolicy, rollout_many
from swarm_ui.stats import outcomes

AGENTS = [BASE_AGENT, GENERAL_AGENT]
DIGESTS = {
    BASE_AGENT: "6e0a1f531a407e6e4ad96013ba3aa5630dd701389cf5d9826ce45d61316391f8",
    GENERAL_AGENT: "c38d6d0fd7e7cd6d41e5e257207757d6b6b36da39cb9663b835802b0d5c3e9f4",
}
"""SHA-256 of the weights. Published figures belong to them: another agent needs new figures."""
each_agent = pytest.mark.parametrize("agent", AGENTS, ids=lambda folder: folder.name)


@each_agent
def test_its_weights_are_those_of_the_published_figures(agent: Path) -> None:
    weights = (agent / "model.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == DIGESTS[agent]


@pytest.mark.parametrize(("agent", "least"), [(BASE_AGENT, 0.5), (GENERAL_AGENT, 0.75)])
def test_it_does_most_of_what_it_was_shown_with_parameters_it_never_saw(
    agent: Path, least: float
) -> None:
    chosen = jobs("parameters", 76, 7, seeds=VALIDATION_SEEDS)
    policy = GraphPolicy(CollabGraph.solo(LocalModel.load(agent)))
    episodes = asyncio.run(rollout_many(PhoneEnvironment, policy, chosen, concurrency=76))
    done = [o.value for o in outcomes(episodes) if o.value is not None]
    assert len(done) == len(chosen)
    assert sum(done) / len(done) > least  # 0.63 and 0.95 when they shipped; chance is 0
