"""What the workers of a training cluster act with, and what they cannot."""

from __future__ import annotations

from typing import Any

import pytest

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, ModelSection, RaySection, RunSection, TeamSection
from swarm_ui.experiment.training.acting_models import acting_findings
from swarm_ui.experiment.training.actors import check_actor
from swarm_ui.nodes import OpenAIModel
from swarm_ui.nodes.models.openai.model import ServedModel

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
    assert [at for at, _ in acting_findings(there)] == found
    assert not list(acting_findings(Config(**sections)))


async def test_an_error_about_the_server_does_not_show_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def served(self: OpenAIModel) -> tuple[ServedModel, ...]:
        return (ServedModel("one"), ServedModel("two"))

    monkeypatch.setattr(OpenAIModel, "served", served)
    with pytest.raises(ConfigError, match="expected one model at http://host/v1, got one") as found:
        await check_actor(ModelSection(name="base", actor="http://me:secret@host/v1"))
    assert "secret" not in str(found.value)
