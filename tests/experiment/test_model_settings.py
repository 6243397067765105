"""Settings of ``[model]`` reach the model that they describe."""

from __future__ import annotations

import asyncio
from pathlib import Path

import tiny_vision
from tiny_causal import save_llama

from swarm_ui.action import Action
from swarm_ui.collab_graph import CollabGraph
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.experiment.model_settings import Language
from swarm_ui.experiment.models import load_in_process, open_model
from swarm_ui.model import Decision, Request
from swarm_ui.nodes import VisionModel
from swarm_ui.observation import Element, Observation
from swarm_ui.prompts import format_named


def test_vision_opens_a_model_that_is_shown_the_screenshot(tmp_path: Path) -> None:
    folder = tmp_path / "vlm"
    reader = tiny_vision.processor("idefics3")
    tiny_vision.network("idefics3", reader).save_pretrained(folder)
    reader.save_pretrained(folder)
    section = Language(name=str(folder), vision=True, prompt_format="compact", prompt_tokens=900)
    model = load_in_process(section)
    assert isinstance(model, VisionModel) and model.codec.reader.prompt_tokens == 900
    asyncio.run(one_decision(model))


async def one_decision(model: VisionModel) -> None:
    phone = PhoneEnvironment(screenshots=True)
    observation = await phone.reset(task="contacts-add", seed=0)
    team = CollabGraph.collaborative(agents=2, rounds=1, model=model, max_tokens=2)
    trace = await team.run(observation)
    await phone.close()
    calls = [call for call in trace.calls if call.prompt]
    assert len(calls) == 2 and all("[picture " in call.prompt for call in calls)
    assert all(call.usage.prompt_tokens <= 900 for call in calls)


def test_replies_are_constrained_unless_the_setting_says_no(tmp_path: Path) -> None:
    folder = str(save_llama(tmp_path))
    observation = Observation(goal="on", elements=(Element(index=0, role="button", text="on"),))
    request = Request(decision=Decision(observation=observation), seed=1, max_tokens=64)

    async def reply(constrained: bool | None) -> str:
        section = Language(name=folder, prompt_format="compact", constrained=constrained)
        async with open_model(section) as model:
            (completion,) = await model.generate([request])
            return completion.text

    possible = format_named("compact").parse
    assert isinstance(possible(asyncio.run(reply(None)), observation), Action)
    assert not isinstance(possible(asyncio.run(reply(False)), observation), Action)
