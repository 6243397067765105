"""The local model: batches, adapters, grammar and seeds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import peft
import torch
from local_models import answers, disturb, requests, untrained, with_adapters
from transformers import AutoModelForCausalLM

from swarm_ui.action import Action, parse_action
from swarm_ui.errors import ModelError
from swarm_ui.model import Decision, Request
from swarm_ui.observation import Observation


def test_a_constrained_reply_is_always_possible_on_the_screen() -> None:
    model = untrained()
    asked = [msgspec.structs.replace(r, temperature=2.0) for r in requests(40)]
    for request, completion in zip(asked, answers(model, asked), strict=True):
        action = parse_action(completion.text)
        assert isinstance(action, Action), completion.text
        assert request.decision is not None
        screen = request.decision.observation
        if action.index is not None:
            element = screen.element(action.index)
            assert element is not None
            assert action.action_type != "input_text" or element.editable
        assert not screen.actions or action.action_type in screen.actions


async def test_a_screen_without_a_possible_action_fails_alone() -> None:
    nothing = Observation(goal="press it", elements=(), actions=("click", "input_text"))
    model, (request, *_) = untrained(), requests(1)
    empty, good = await asyncio.gather(
        model.generate([Request(decision=Decision(observation=nothing))]),
        model.generate([request]),
        return_exceptions=True,
    )
    assert isinstance(empty, ModelError) and "0 elements and offers click, input_text" in str(empty)
    assert good == await untrained().generate([request])


def test_saved_adapters_load_in_plain_peft(tmp_path: Path) -> None:
    model = with_adapters()
    disturb(model, "agent_1", seed=3)
    model.save(tmp_path / "base")
    model.save_adapters(tmp_path / "adapters")
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    plain = peft.PeftModel.from_pretrained(base, str(tmp_path / "adapters" / "agent_1"))
    loaded = [p for key, p in plain.named_parameters() if "lora" in key]
    for have, want in zip(loaded, model.adapter_parameters("agent_1"), strict=True):
        assert torch.equal(have, want)
