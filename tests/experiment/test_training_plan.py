"""The plan of a training run: the settings that it would use."""

from __future__ import annotations

import pytest

from swarm_ui.experiment.config import Draft
from swarm_ui.experiment.runs import check_training_config, trainer_config
from swarm_ui.experiment.training.plan import training_facts

pytest.importorskip("torch")


def facts(processes: int = 1, **given: object) -> dict[str, str]:
    draft = Draft()
    draft.put(("environment", "name"), "phone", "ENV")
    for name, value in given.items():
        draft.put(tuple(name.split("__")), value, name)
    config = check_training_config(draft)
    return training_facts(config, trainer_config(config), processes)


def test_the_plan_names_the_update() -> None:
    assert facts()["update"].startswith("rft, ")
    found = facts(train__update__method="dpo", train__update__lr=0.01, train__shared_iterations=2)
    assert found["update"].startswith("dpo, ") and "0.01" in found["update"]
    assert "first 2 iterations" in found["update"]


def test_the_plan_says_how_processes_share_a_batch() -> None:
    assert "processes" not in facts(team__agents=3)
    assert "at most 11 of 32 examples" in facts(3, team__agents=3)["processes"]
