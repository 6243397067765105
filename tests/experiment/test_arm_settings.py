"""The configuration with which a recorded decision of a demo is replayed is that of its arm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config
from swarm_ui.experiment.demo.arm_settings import arm_configuration
from swarm_ui.experiment.settings import Settings, plain
from swarm_ui.storage.run_directory import RunDirectory


def configuration(folder: Path, file: str, **settings: Any) -> Config:
    run = RunDirectory.create(folder / "run", config=plain(Settings(**settings)))
    return arm_configuration(run, file)


@pytest.mark.parametrize("file", ["parameters-trained-team", "parameters-trained-greedy"])
def test_a_trained_language_model_answers_with_its_adapters(tmp_path: Path, file: str) -> None:
    found = configuration(tmp_path, file, model="smollm2", iterations=1, adapters="smollm2-phone")
    assert found.model.adapters == str(tmp_path / "run" / "adapters")
    assert found.team.agents == (4 if file.endswith("team") else 1)


@pytest.mark.parametrize("file", ["parameters-base-team", "parameters-base-greedy"])
def test_before_training_it_answers_with_those_that_it_started_with(
    tmp_path: Path, file: str
) -> None:
    found = configuration(tmp_path, file, model="smollm2", iterations=1, adapters="smollm2-phone")
    assert found.model.adapters == "smollm2-phone"


def test_an_evaluated_model_has_no_trained_arms(tmp_path: Path) -> None:
    given: dict[str, Any] = {"model": "m", "base_url": "http://localhost:1/v1", "iterations": 0}
    assert configuration(tmp_path, "parameters-team", **given).team.agents == 4
    with pytest.raises(ConfigError, match="base-greedy, team"):
        configuration(tmp_path / "other", "parameters-trained-greedy", **given)


def test_the_general_agent_is_an_arm(tmp_path: Path) -> None:
    found = configuration(tmp_path, "apps-general-greedy")
    assert (found.model.name, found.model.adapters, found.team.agents) == ("general", "", 1)


def test_a_team_that_was_trained_on_pages_has_shuffled_views(tmp_path: Path) -> None:
    """Only a team that was trained on the phone sees the elements of pages in their own order."""
    on_pages = configuration(tmp_path / "a", "web-trained-vote", env="miniwob")
    on_phone = configuration(tmp_path / "b", "web-trained-vote")
    assert (on_pages.team.views, on_phone.team.views) == ("shuffle", "same")
