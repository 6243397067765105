"""Teachers that are language models, and scripted ones without a snapshot."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from learning_fakes import ButtonWorld, screen

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.optim.adversary import LLMTeacher, ScriptedTeacher


class Saying:
    """A model that always says the same."""

    name = "saying"

    def __init__(self, text: str, prompt_format: str) -> None:
        self.text, self.prompt_format = text, prompt_format
        self.asked: list[Request] = []

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        self.asked += requests
        return [
            Completion(text=self.text, prompt="", prompt_format=self.prompt_format)
            for _ in requests
        ]


@pytest.mark.parametrize(
    ("text", "prompt_format", "shown"),
    [
        ('{"action_type": "click", "index": 1}', "json", 1),
        ("click Back [1]", "compact", 1),
        ('{"action_type": "click", "index": 99}', "json", None),
        ('{"action_type": "click", "x": 3, "y": 4}', "json", None),
        ("I do not know", "json", None),
    ],
)
async def test_a_language_model_acts_as_an_agent_would(
    text: str, prompt_format: str, shown: int | None
) -> None:
    model = Saying(text, prompt_format)
    decision = Decision(observation=screen())
    action = await LLMTeacher(model).show(decision, None, seed=7)
    if shown is None:
        assert action is None
    else:
        label = decision.observation.elements[shown].label
        assert action == Action(action_type="click", index=shown, target=label)
    (request,) = model.asked
    assert (request.decision, request.seed, request.adapter) == (decision, 7, None)


async def test_a_scripted_teacher_needs_a_snapshot() -> None:
    with pytest.raises(ConfigError, match="no snapshot of the environment"):
        await ScriptedTeacher(ButtonWorld).show(Decision(observation=screen()), None, seed=0)
