"""Training in this process while a server acts, a stand-in for vLLM."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from learning_fakes import ButtonWorld
from learning_run import CONFIG, sample_jobs
from sent_rollouts import SentRollouts
from tiny_causal import causal
from vllm_stand_in import StandIn

from swarm_ui import CollabGraph, Episode
from swarm_ui.nodes import ActorModel, OpenAIModel
from swarm_ui.optim import ScriptedAdversary, ScriptedCritic, TeamTrainer, UpdateConfig

# Copies that would end with their worker's process hold connections here.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
NAMES = ("agent_0", "agent_1")
SMALL = replace(
    CONFIG, iterations=2, shared_iterations=1, episodes=4, edges="fixed", graphs=1,
    update=UpdateConfig(method="dpo", steps=2, batch_size=4, lr=1e-3),
)  # fmt: skip


def _choose(body: Mapping[str, Any]) -> str:
    """An answer that depends on the words of the question."""
    return f"click it [{zlib.crc32(json.dumps(body['messages']).encode()) % 4}]"


async def trained(
    server: StandIn, folder: Path, places: Any
) -> tuple[list[torch.Tensor], list[Episode]]:
    """The weights, and all episodes."""
    learner, episodes = causal("llama", "compact"), list[Episode]()
    engine = OpenAIModel("base", f"{server.address}/v1", max_retries=1, timeout=20.0)
    model = ActorModel(engine, learner, folder / "served")
    team = CollabGraph.collaborative(
        len(NAMES), 2, model=model, edges=[], adapters=NAMES, temperature=1.0
    )
    trainer = TeamTrainer(
        team, places, sample_jobs, config=SMALL, critic=ScriptedCritic(ButtonWorld),
        adversary=ScriptedAdversary(), folder=folder,
    )  # fmt: skip
    trainer.on_episodes = lambda _, found: episodes.extend(found)
    trainer.warn = lambda _: None
    await trainer.run()
    weights = [p.detach().clone() for name in NAMES for p in learner.adapter_parameters(name)]
    await model.close()
    return weights, episodes


def spoken(episode: Episode) -> set[tuple[str, str]]:
    """The agents of an episode with the versions that spoke."""
    calls = [call for step in episode.steps for call in step.trace.calls]
    return {(call.node, call.adapter) for call in calls if call.adapter is not None}


async def test_workers_ask_for_what_this_process_loads_once(tmp_path: Path) -> None:
    with StandIn("base", reply=_choose) as server:
        here, episodes = await trained(server, tmp_path / "here", ButtonWorld)
    with StandIn("base", reply=_choose) as server:
        there, again = await trained(server, tmp_path / "there", SentRollouts(ButtonWorld))
        assert server.adapters == {}
        assert sorted(server.loads) == sorted(set(server.asked))
        assert len(server.loads) == 2 * len(NAMES)
    assert all(torch.equal(a, b) for a, b in zip(here, there, strict=True))
    assert [e.success for e in again] == [e.success for e in episodes]
    assert [spoken(e) for e in again] == [spoken(e) for e in episodes]
    assert not list((tmp_path / "there/served").iterdir())
