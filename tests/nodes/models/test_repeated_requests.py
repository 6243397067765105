"""The embedded agent computes common beginnings of prompts once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import torch
from local_models import alike, answers, at_once, requests, with_adapters

from swarm_ui.model import Completion, Decision, Request
from swarm_ui.nodes import LocalModel


def again(model: LocalModel, asked: Sequence[Request]) -> list[Completion]:
    """The answers, which may reuse those of earlier calls."""
    return asyncio.run(at_once(model, asked))


def test_changed_base_weights_forget_what_was_computed() -> None:
    model = with_adapters()
    asked = [msgspec.structs.replace(r, adapter="agent_0") for r in requests(6)]
    before = again(model, asked)
    with torch.no_grad():
        for weight in model.module.parameters():
            weight.mul_(1.1)
    changed = again(model, asked)
    assert alike(changed, answers(model, asked)) and not alike(changed, before)


def test_equal_prompts_with_other_possible_actions_are_computed() -> None:
    """Whether an element is enabled is not in the prompt, and decides what can be clicked."""
    model = with_adapters()
    for request in requests(40):
        assert request.decision is not None
        screen = msgspec.structs.replace(
            request.decision.observation, actions=("click", "navigate_back")
        )
        off = tuple(msgspec.structs.replace(e, enabled=False) for e in screen.elements)
        free, bound = (
            again(model, [msgspec.structs.replace(request, decision=Decision(observation=shown))])[
                0
            ]
            for shown in (screen, msgspec.structs.replace(screen, elements=off))
        )
        assert bound.prompt == free.prompt
        assert '"index"' not in bound.text
        if '"index"' in free.text:
            return
    raise AssertionError("no reply named an element")
