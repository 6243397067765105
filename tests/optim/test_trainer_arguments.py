"""What a trainer prints, and what it says about arguments of another kind."""

from __future__ import annotations

from typing import Any

import pytest

from swarm_ui import CollabGraph
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ConfigError
from swarm_ui.nodes import LocalModel, ScriptedModel
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.trainer import TeamTrainer


def no_jobs(count: int, /, *, seed: int) -> list[tuple[str, int]]:
    return []


def test_a_model_without_weights_cannot_be_trained() -> None:
    model: Any = ScriptedModel(lambda request: "")
    team = CollabGraph.collaborative(2, 1, model=model)
    with pytest.raises(ConfigError, match=r"adapters can be trained.*got ScriptedModel"):
        TeamTrainer(team, PhoneEnvironment, no_jobs)


def test_an_environment_in_the_place_of_its_class() -> None:
    model, made = LocalModel.load(), PhoneEnvironment()
    environment: Any = made
    team = CollabGraph.collaborative(2, 1, model=model)
    with pytest.raises(ConfigError, match="write PhoneEnvironment instead"):
        TeamTrainer(team, environment, no_jobs)
    with pytest.raises(ConfigError, match="write PhoneEnvironment instead"):
        ScriptedCritic(environment)
