"""The agent that ships: it belongs to today's tokenizer and phone, and it can act."""

from __future__ import annotations

import asyncio
import json

from transformers import AutoModelForCausalLM

from swarm_ui.environments.phone import VALIDATION_SEEDS, PhoneEnvironment, jobs, vocabulary
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes import BASE_AGENT, LocalModel
from swarm_ui.rollout.episodes import rollout_many
from swarm_ui.rollout.policy import GraphPolicy
from swarm_ui.stats import outcomes


def test_its_words_are_those_of_the_training_apps() -> None:
    words = json.loads((BASE_AGENT / "words.json").read_text(encoding="utf-8"))
    assert words == [w.lower() for w in dict.fromkeys(vocabulary())]


def test_it_is_small_and_an_ordinary_transformers_model() -> None:
    size = sum(file.stat().st_size for file in BASE_AGENT.iterdir())
    assert size < 3_000_000
    network = AutoModelForCausalLM.from_pretrained(BASE_AGENT)
    assert 100_000 < sum(p.numel() for p in network.parameters()) < 2_000_000


def test_it_does_most_of_what_it_was_shown_with_parameters_it_never_saw() -> None:
    chosen = jobs("parameters", 76, 7, seeds=VALIDATION_SEEDS)
    policy = GraphPolicy(CollabGraph.solo(LocalModel.load()))
    episodes = asyncio.run(rollout_many(PhoneEnvironment, policy, chosen, concurrency=76))
    done = [o for o in outcomes(episodes) if o is not None]
    assert len(done) == len(chosen)
    assert sum(done) / len(done) > 0.5  # 0.65 when it shipped; chance is 0
