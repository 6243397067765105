"""Updates of a team: what they learn from, and what goes on beside them."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest
import torch
from learning_fakes import TinyModel, click, decided, screen

from swarm_ui import CreditTable, Decision, ScriptedModel
from swarm_ui.optim import AdapterTrainer, LLMCritic, PreferencePair, UpdateConfig

# -- a critic's cache -----------------------------------------------------------------------------


def judge(name: str, score: int) -> ScriptedModel:
    reply = json.dumps({"scores": {"agent_0": score}})
    return ScriptedModel(lambda request: reply, name=name)


def judged(critic: LLMCritic) -> CreditTable:
    return asyncio.run(critic.assign(decided([[click(0)]]), None))


def test_critics_that_share_a_cache_keep_their_own_verdicts() -> None:
    cache: dict[str, str] = {}
    kind, strict = judge("kind", 1), judge("strict", 0)
    assert judged(LLMCritic(kind, cache=cache)).values == ((1.0,),)
    assert judged(LLMCritic(strict, cache=cache)).values == ((0.0,),)
    assert judged(LLMCritic(kind, cache=cache)).values == ((1.0,),)
    assert (len(kind.requests), len(strict.requests)) == (1, 1)


@pytest.mark.parametrize("other", [{"max_tokens": 64}, {"schema": True}])
def test_a_verdict_is_not_reused_with_settings_that_may_change_it(other: dict[str, Any]) -> None:
    cache: dict[str, str] = {}
    model = judge("judge", 1)
    judged(LLMCritic(model, cache=cache))
    judged(LLMCritic(model, cache=cache, **other))
    assert len(model.requests) == 2
    # The threshold is applied to what the model said, so it needs no other call.
    assert judged(LLMCritic(model, cache=cache, threshold=None)).values == ((1.0,),)
    assert len(model.requests) == 2


# -- pairs that are used once ---------------------------------------------------------------------


def weights_after(method: Any, pairs: list[PreferencePair], **settings: Any) -> list[torch.Tensor]:
    model = TinyModel(["one"])
    config = UpdateConfig(method=method, steps=3, batch_size=2, lr=5e-2, **settings)
    AdapterTrainer(model, config).fit("one", pairs, random.Random(0))
    return [p.detach() for p in model.adapter_parameters("one")]


def equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def pair(wrong: int | None, weight: float = 1.0, goal: str = "save") -> PreferencePair:
    labels = ["Save", "Back", "Help"]
    rejected = None if wrong is None else click(wrong, labels[wrong])
    return PreferencePair(
        node="agent_0", decision=Decision(observation=screen(labels, goal=goal)),
        chosen=click(0, "Save"), rejected=rejected, weight=weight,
    )  # fmt: skip


@pytest.mark.parametrize("method", ["dpo", "ipo"])
def test_of_equal_replies_the_one_with_a_rejected_side_is_learned(method: Any) -> None:
    other = pair(2, goal="go back")
    kept = weights_after(method, [pair(1, 0.5), other])
    assert equal(weights_after(method, [pair(None), pair(1, 0.5), other]), kept)
    assert equal(weights_after(method, [pair(1, 0.5), pair(None), pair(2), other]), kept)
    assert not equal(weights_after(method, [pair(None), other]), kept)


def test_learning_without_rejected_sides_uses_the_first_of_equal_replies() -> None:
    other = pair(2, goal="go back")
    kept = weights_after("rft", [pair(None, 0.5), other])
    assert equal(weights_after("rft", [pair(None, 0.5), pair(1), other]), kept)


def test_pairs_may_be_used_as_often_as_they_occur() -> None:
    once = weights_after("dpo", [pair(1), pair(2, goal="go back")])
    twice = [pair(1), pair(1), pair(2, goal="go back")]
    assert equal(weights_after("dpo", twice), once)
    assert not equal(weights_after("dpo", twice, unique=False), once)
