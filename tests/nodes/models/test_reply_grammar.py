"""Constrained replies of text models: every reply is one that is possible."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from local_models import answers, requests
from tiny_causal import network, screen, tokenizer

from swarm_ui.action import Abstain, Action
from swarm_ui.errors import ModelError
from swarm_ui.message import Heard
from swarm_ui.model import ChatMessage, Decision, Request
from swarm_ui.nodes import CausalModel
from swarm_ui.observation import Element, Observation
from swarm_ui.prompts import format_named

LABELS = (
    "Save",
    "Save as",
    "Save [1]",
    "naïve café",
    'say "hi"',
    "a\\b",
    "</s>",
    "日本",
    "",
    "[2]",
)


def model(form: str, **settings: Any) -> CausalModel:
    words = tokenizer()
    return CausalModel(network("llama", len(words)), words, prompt_format=form, **settings)


def strange() -> Decision:
    """Labels that are hard to tell apart or to write."""
    elements = [
        Element(index=k, role="field" if k % 3 == 0 else "button", text=label, editable=k % 3 == 0)
        for k, label in enumerate(LABELS)
    ]
    return Decision(observation=Observation(goal="save it", elements=tuple(elements)))


def partial() -> Decision:
    """A part of a screen, and a colleague who names something outside of it."""
    said = Action(action_type="click", target="far away", index=7)
    heard = Heard(sender="agent_1", round=0, content=said.json(), action=said, own=False)
    return Decision(observation=screen().observation, heard=(heard,), partial=True)


def asked(count: int, **settings: Any) -> list[Request]:
    """Decisions of many kinds, greedy and sampled."""
    made = [strange(), partial(), *(r.decision for r in requests(count) if r.decision)]
    return [
        Request(decision=d, seed=k, temperature=(0.0, 1.0, 5.0)[k % 3], **settings)
        for k, d in enumerate(made)
    ]


def possible(reply: str, decision: Decision, form: str) -> bool:
    """Whether a reply is one action that the screen offers."""
    seen = decision.observation
    action = format_named(form).parse(reply, seen, partial=decision.partial)
    if isinstance(action, Abstain):
        return decision.partial
    if not isinstance(action, Action):
        return False
    named = {h.action.index for h in decision.heard if h.action is not None}
    element = seen.element(action.index)
    if action.index is not None and (element is None or not element.enabled):
        return decision.partial and action.index in named
    return action.action_type != "input_text" or (element is not None and element.editable)


@pytest.mark.parametrize("form", ["compact", pytest.param("json", marks=pytest.mark.slow)])
def test_every_reply_is_an_action_that_is_possible(form: str) -> None:
    questions = asked(24, max_tokens=500)
    bound = model(form, constrained=True)
    for request, completion in zip(questions, answers(bound, questions), strict=True):
        assert request.decision is not None
        assert possible(completion.text, request.decision, form), completion.text


def test_tokens_without_an_alternative_take_no_forward_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, forwards = model("compact"), list[int]()
    inner = one.network.base_model.forward

    def counted(*inputs: Any, **named: Any) -> Any:
        forwards.append(1)
        return inner(*inputs, **named)

    monkeypatch.setattr(one.network.base_model, "forward", counted)
    only = Observation(goal="g", elements=screen().observation.elements, actions=("click",))
    [completion] = answers(one, [Request(decision=Decision(observation=only), max_tokens=50)])
    assert completion.text == "click Save [0]" and completion.sampled == ()
    assert completion.usage.completion_tokens > 4
    assert len(forwards) == 2  # the prompt, and the whole reply


def test_a_chat_may_ask_for_a_pattern_or_a_schema() -> None:
    fields = {"name": {"type": "string", "maxLength": 6}, "count": {"type": "integer"}}
    schema = {
        "type": "object", "properties": fields, "required": ["name", "count"],
        "additionalProperties": False,
    }  # fmt: skip
    chat = (ChatMessage("user", "how many?"),)
    settings: dict[str, Any] = {"temperature": 1.0, "max_tokens": 300}
    many, one = model("json"), Request(chat=chat, json_schema=json.dumps(schema), **settings)
    value = json.loads(answers(many, [one])[0].text)
    assert value.keys() == fields.keys() and isinstance(value["count"], int)
    [said] = answers(many, [Request(chat=chat, pattern="[0-9]{2,4}(kg|m)", **settings)])
    assert re.fullmatch("[0-9]{2,4}(kg|m)", said.text)
    with pytest.raises(ModelError):
        answers(many, [Request(chat=chat, pattern="(a")])
    with pytest.warns(UserWarning, match="not restricted"):
        answers(many, [Request(chat=chat, json_schema='{"type": "else"}', max_tokens=2)])
