"""The agents of a pool."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from benchmarks.studies.different_bases.plan import AGENTS
from demos.base_agent.recipes import BaseAgentConfig, make_base_agent
from demos.base_agent.training import Stage1Config
from swarm_ui.errors import ConfigError
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes import AgentNode
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel
from swarm_ui.nodes.vote import ProbabilityVote

_WEIGHTS = "model.safetensors"


def continued(folders: Sequence[Path]) -> list[Path]:
    """The shipped base agent and others that were made from it.

    Raises:
        ConfigError: not three folders of agents.
    """
    missing = [str(folder) for folder in folders if not (folder / _WEIGHTS).is_file()]
    if missing or len(folders) != AGENTS - 1:
        raise ConfigError(
            f"--continued: expected {AGENTS - 1} folders of agents, such as "
            "runs/invented/agents/stage1-1 of benchmarks.studies.invented_training, got "
            f"{len(folders)}" + (f"; no agent in '{missing[0]}'" if missing else "")
        )
    return [Path(BASE_AGENT), *folders]


def from_scratch(folder: Path, steps: int) -> list[Path]:
    """Four agents with equal steps, each with its own weights, samples and demonstrations."""
    made = [folder / f"scratch-{seed}" for seed in range(1, AGENTS + 1)]
    for seed, path in enumerate(made, 1):
        if not (path / _WEIGHTS).is_file():
            config = BaseAgentConfig(
                processes=1, seed=seed, demonstrations_seed=seed,
                stage1=Stage1Config(steps=steps, seed=seed),
            )  # fmt: skip
            make_base_agent(config, path)
    return made


def team(models: Sequence[LocalModel]) -> CollabGraph:
    """A probability vote of one agent for each model. All but the first have a shuffled view.

    With the same model four times it is ``base-vote`` of the learning benchmark.
    """
    nodes = [
        AgentNode(f"agent_{k}", model, view="shuffle" if k else "same")
        for k, model in enumerate(models)
    ]
    return CollabGraph([*nodes, ProbabilityVote()], (), output="vote")


def digest(folder: Path) -> str:
    """SHA-256 of an agent's weights."""
    return hashlib.sha256((folder / _WEIGHTS).read_bytes()).hexdigest()
