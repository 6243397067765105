"""What the workers of a training cluster act with, and what they cannot."""

from __future__ import annotations

from typing import Any

import pytest

from swarm_ui.experiment.config import Config, ModelSection, RaySection, RunSection, TeamSection
from swarm_ui.experiment.training.ray_training import ray_training_findings

ACTOR = ModelSection(name="base", actor="http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("sections", "found"),
    [
        ({"model": ACTOR}, []),
        ({"ray": RaySection(model_actors=2)}, []),
        ({"model": ACTOR, "ray": RaySection(model_actors=0)}, []),
        ({"model": ACTOR, "ray": RaySection(model_actors=2)}, [("ray", "model_actors")]),
        ({"model": ACTOR, "team": TeamSection(vote="probability")}, [("team", "vote")]),
        ({"team": TeamSection(vote="probability")}, []),
    ],
    ids=["server", "actors", "server, no actors", "both", "server, vote", "vote"],
)
def test_settings_that_workers_cannot_use_are_named(
    sections: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    there = Config(run=RunSection(on="ray"), **sections)
    assert [at for at, _ in ray_training_findings(there)] == found
    assert not list(ray_training_findings(Config(**sections)))
