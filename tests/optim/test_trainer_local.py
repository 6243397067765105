"""The trainer on the real thing: transformers and peft, agents on the simulated phone."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from swarm_ui.graph.graph import CollabGraph
from swarm_ui.optim.config import TeamConfig, UpdateConfig
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.rollout import Job

pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore")

CONFIG = TeamConfig(
    iterations=2, shared_iterations=1, shared_steps=3, episodes=6, max_steps=3, lr_decay=0.0,
    guide=1.0, rank=4, update=UpdateConfig(method="dpo", steps=2, batch_size=4),
)  # fmt: skip


def trained(folder: Path, config: TeamConfig, layers: int = 1) -> tuple[Any, tuple[str, ...]]:
    """A model of some layers after its training, and the names of its adapters."""
    from swarm_ui.environments.phone import PhoneEnvironment
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
    from swarm_ui.nodes.models.tiny_agent.tokenizer import ScreenTokenizer

    model = LocalModel.untrained(ScreenTokenizer([]), width=32, layers=layers, heads=2, seed=0)
    names = ["agent_0", "agent_1"]
    graph = CollabGraph.collaborative(
        2, 2, model=model, edges=[], adapters=names, temperature=0.8, views="shuffle"
    )
    tasks = PhoneEnvironment().tasks

    def jobs(count: int, /, *, seed: int) -> list[Job]:
        rng = random.Random(seed)
        return [(rng.choice(tasks), rng.randrange(1000)) for _ in range(count)]

    trainer = TeamTrainer(
        graph, PhoneEnvironment, jobs, config=config,
        critic=ScriptedCritic(PhoneEnvironment), folder=folder,
    )  # fmt: skip
    history = asyncio.run(trainer.run(resume=True)).history
    assert sum(m["steps"] for m in history) >= 3
    adapters = tuple(dict.fromkeys(trainer.adapters.values()))
    assert model.adapters == adapters
    return model, adapters


def run(folder: Path, config: TeamConfig) -> list[torch.Tensor]:
    """Final adapter weights."""
    model, adapters = trained(folder, config)
    return [p.detach().clone() for name in adapters for p in model.adapter_parameters(name)]


def test_a_resumed_run_ends_with_the_weights_of_an_uninterrupted_one(tmp_path: Path) -> None:
    config = CONFIG
    whole = run(tmp_path / "whole", config)
    halfway = run(tmp_path / "parts", replace(config, iterations=1))
    resumed = run(tmp_path / "parts", config)
    assert not all(torch.equal(a, b) for a, b in zip(halfway, whole, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(resumed, whole, strict=True))
    adapter = tmp_path / "parts" / "checkpoints" / "iteration-0002" / "adapters" / "agent_1"
    assert {"adapter_config.json", "adapter_model.safetensors"} <= {
        path.name for path in adapter.iterdir()
    }


def test_playing_ahead_does_not_meet_the_update(tmp_path: Path) -> None:
    """Agents and update share one network here, so the next iteration is played before it."""
    config = replace(CONFIG, iterations=3, overlap=True)
    first, second = (run(tmp_path / name, config) for name in ("one", "two"))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    lines = (tmp_path / "one" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["staleness"] for line in lines] == [0, 1, 1]
