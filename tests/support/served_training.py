"""Training in this process while a server acts, a stand-in for vLLM."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from learning_fakes import ButtonWorld
from learning_run import CONFIG, sample_jobs
from tiny_causal import causal
from vllm_stand_in import StandIn

from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes import ActorModel, OpenAIModel
from swarm_ui.optim.adversary import ScriptedAdversary
from swarm_ui.optim.config import UpdateConfig
from swarm_ui.optim.credit.critic import ScriptedCritic
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.rollout import Rollouts
from swarm_ui.trace.records import Episode

NAMES = ("agent_0", "agent_1")
SMALL = replace(
    CONFIG, iterations=2, shared_iterations=1, episodes=4, edges="fixed", graphs=1,
    update=UpdateConfig(method="dpo", steps=2, batch_size=4, lr=1e-3),
)  # fmt: skip


class Server(StandIn):
    """Decides every answer by the words of the question."""

    def __init__(self) -> None:
        super().__init__("base", reply=self._choose)

    def _choose(self, body: Mapping[str, Any]) -> str:
        words = zlib.crc32(json.dumps(body["messages"]).encode())
        return f"click it [{words % 4}]"


async def trained(
    server: StandIn,
    folder: Path,
    playing: Rollouts | None = None,
    *,
    engine: OpenAIModel | None = None,
) -> tuple[list[torch.Tensor], list[Episode]]:
    """The weights, and all episodes. ``playing``: in other processes; ``None``: in this one."""
    learner, episodes = causal("llama", "compact"), list[Episode]()
    engine = engine or OpenAIModel("base", f"{server.address}/v1", max_retries=1, timeout=20.0)
    model = ActorModel(engine, learner, folder / "served")
    team = CollabGraph.collaborative(
        len(NAMES), 2, model=model, edges=[], adapters=NAMES, temperature=1.0
    )
    places = ButtonWorld if playing is None else playing
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


def spoken(episode: Episode) -> dict[str, set[str]]:
    """The versions that spoke in an episode, by agent."""
    found: dict[str, set[str]] = {}
    for step in episode.steps:
        for call in step.trace.calls:
            if call.adapter is not None:
                found.setdefault(call.node, set()).add(call.adapter)
    return found
