"""Prompts that begin alike are read once, and replies are those of prompts that are read whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import torch
from local_models import answers, disturb
from tiny_causal import network, tokenizer

from swarm_ui.action import Action
from swarm_ui.message import Heard
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.nodes import CausalModel
from swarm_ui.observation import Element, Observation


def model(
    kind: str = "llama", prefix_bytes: int = 2**28, adapters: int = 2, **settings: Any
) -> CausalModel:
    words = tokenizer()
    settings = {"prompt_format": "compact"} | settings
    made = CausalModel(network(kind, len(words)), words, prefix_bytes=prefix_bytes, **settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for k in range(adapters):
            made.add_adapter(f"agent_{k}", rank=4, alpha=16)
            disturb(made, f"agent_{k}", k, 0.2)
    return made


def screen(number: int = 0) -> Observation:
    elements = [
        Element(index=k, role="button", text=f"entry {(k * 7 + number) % 31} of the list")
        for k in range(9)
    ]
    return Observation(goal=f"open entry {number % 9}", elements=tuple(elements), app="files")


def talk(rounds: int) -> list[list[Request]]:
    """The requests of each round of a decision: two screens, six agents, three adapters."""
    said = Action(action_type="click", target="entry 7 of the list", index=1)
    out = []
    for number in range(rounds):
        heard = tuple(
            Heard(sender=f"agent_{k}", round=k, content=said.json(), action=said, own=not k)
            for k in range(number)
        )
        out.append([
            Request(
                decision=Decision(observation=screen(k // 6), heard=heard),
                adapter=(None, "agent_0", "agent_1")[k // 2 % 3],
                temperature=0.0 if k % 2 else 1.0,
                seed=k,
                max_tokens=40,
            )
            for k in range(12)
        ])  # fmt: skip
    return out


class Watched:
    """Counts the tokens that a network reads."""

    def __init__(self, model: CausalModel, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tokens = 0
        inner = model.network.base_model.forward

        def forward(*inputs: Any, **named: Any) -> Any:
            self.tokens += named["input_ids"].numel()
            return inner(*inputs, **named)

        monkeypatch.setattr(model.network.base_model, "forward", forward)


def same(one: Sequence[Completion], other: Sequence[Completion]) -> None:
    assert [c.text for c in one] == [c.text for c in other]
    assert [c.usage for c in one] == [c.usage for c in other]
    for a, b in zip(one, other, strict=True):
        assert a.logprob == pytest.approx(b.logprob, abs=1e-4)


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("llama", "compact"),
        pytest.param("llama", "json", marks=pytest.mark.slow),
        pytest.param("gpt2", "compact", marks=pytest.mark.slow),
        pytest.param("mistral", "compact", marks=pytest.mark.slow),
    ],
)
def test_replies_are_those_of_prompts_read_whole(kind: str, form: str) -> None:
    whole, shared = model(kind, 0, prompt_format=form), model(kind, prompt_format=form)
    for asked in [*talk(3), *talk(1)]:  # the last ones are known whole
        same(answers(whole, asked), answers(shared, asked))


def copies(prefix_bytes: int = 2**28) -> CausalModel:
    """A team's model: four agents with copies of one adapter."""
    made = model(prefix_bytes=prefix_bytes, adapters=1)
    for k in range(1, 4):
        made.add_adapter(f"agent_{k}", rank=4, alpha=16)
        pairs = zip(*map(made.adapter_parameters, (f"agent_{k}", "agent_0")), strict=True)
        with torch.no_grad():
            for own, other in pairs:
                own.copy_(other)
    return made


def test_copies_of_an_adapter_read_one_prompt_until_they_are_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, shared = copies(prefix_bytes=0), copies()
    watched = Watched(shared, monkeypatch)
    question = Request(decision=Decision(observation=screen()), temperature=1.0, max_tokens=40)
    prompt = answers(shared, [question])[0].usage.prompt_tokens
    asked = [msgspec.structs.replace(question, seed=k, adapter=f"agent_{k}") for k in range(4)]
    for seed, trained, most in ((0, None, 1), (5, "agent_2", 2), (6, "agent_0", 3)):
        for each in (whole, shared) if trained else ():
            disturb(each, trained, seed, 0.2)
        watched.tokens = 0
        replies = answers(shared, asked)
        same(answers(whole, asked), replies)
        assert [reply.adapter for reply in replies] == [
            shared.lease(f"agent_{k}") for k in range(4)
        ]
        written = 4 * max(reply.usage.completion_tokens for reply in replies)
        assert watched.tokens <= most * prompt + written
        assert trained is None or watched.tokens > prompt, "for the new weights"


def test_the_memory_is_bounded() -> None:
    shared = model()
    [asked] = talk(1)
    answers(shared, asked)
    used = shared.decoder.prefixes.size
    small = model(prefix_bytes=used // 2)
    seen = []
    for number in range(5):
        asked = [
            Request(decision=Decision(observation=screen(10 * number + k)), max_tokens=40)
            for k in range(3)
        ]
        same(answers(model(prefix_bytes=0), asked), answers(small, asked))
        seen.append(small.decoder.prefixes.size)
    assert 0 < max(seen) <= used // 2
