"""`--edges` with a file of learned edges, and runs that do not exist."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Team
from swarm_ui.experiment.teams import configured_edges
from swarm_ui.optim.edges.distribution import EdgeDistribution


def learned(file: Path, agents: int) -> str:
    edges = EdgeDistribution([f"agent_{k}" for k in range(agents)])
    with torch.no_grad():
        edges.logits.fill_(-4.0)
        edges.scores[edges.names.index("agent_1")] = 3.0
        edges.logits[edges.candidates.index(("agent_1", "agent_0"))] = 4.0
    edges.save(file)
    return str(file)


def test_a_file_gives_its_most_probable_graph(tmp_path: Path) -> None:
    file = learned(tmp_path / "mine.safetensors", agents=3)
    team = Team(agents=3, edges=file).filled(learning=False)
    assert configured_edges(team) == (("agent_1", "agent_0"),)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"there is no file .none\.safetensors"):
        configured_edges(Team(agents=2, edges="none.safetensors").filled(learning=False))
