"""Micro-batches: bounded forwards, and the gradient of the whole batch."""

from __future__ import annotations

import random

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from learning_fakes import TinyModel, click, screen

from swarm_ui.model import Decision
from swarm_ui.optim.preferences.advantages import ScoredReply
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.update.adapter_trainer import AdapterTrainer, Method, UpdateConfig, UpdateStats
from swarm_ui.optim.update.batches import micro_batches

WORDS = ["Save", "Back", "Help", "Open", "Send", "Find"]


def decision(k: int) -> Decision:
    """Prompts of very different lengths."""
    return Decision(observation=screen(["x"], goal=f"goal-{k % 6} " * (1 + 7 * k % 23)))


def pairs(count: int = 24) -> list[PreferencePair]:
    """Pairs of different weights; every third one has no rejected side."""
    made = [
        PreferencePair(
            node="agent_0", decision=decision(k), chosen=click(k % 6, WORDS[k % 6]),
            rejected=click((k + 1) % 6, WORDS[(k + 1) % 6]), weight=0.25 * (1 + k % 4),
        )
        for k in range(count)
    ]  # fmt: skip
    bare = [msgspec.structs.replace(p, rejected=None) for p in made]
    return [bare[k] if k % 3 == 0 else made[k] for k in range(count)]


def replies(count: int = 24) -> list[ScoredReply]:
    return [
        ScoredReply(node="agent_0", decision=decision(k), reply=click(k % 6, WORDS[k % 6]),
                    advantage=(-1.0) ** k * (1 + k % 3))
        for k in range(count)
    ]  # fmt: skip


def trained(
    method: Method, limit: int | None, steps: int = 1
) -> tuple[list[torch.Tensor], UpdateStats]:
    """The gradients of the last step in float64, and the figures."""
    model = TinyModel(["one"])
    model.module.double()
    with torch.no_grad():  # a start at which the adapter does something
        draw = torch.Generator().manual_seed(3)
        high = model.adapter_parameters("one")[1]
        high.copy_(torch.randn(high.shape, generator=draw))
    config = UpdateConfig(
        method=method, steps=steps, batch_size=16, micro_batch_tokens=limit, max_grad_norm=1e9
    )
    examples = replies() if method == "pg" else pairs()
    stats = AdapterTrainer(model, config).fit("one", examples, random.Random(0))
    return [p.grad.clone() for p in model.adapter_parameters("one") if p.grad is not None], stats


@pytest.mark.parametrize("method", ["dpo", "ipo", "rft", "pg"])
@pytest.mark.parametrize("limit", [1, 100, 300])
def test_gradients_of_the_parts_add_up_to_that_of_the_batch(method: Method, limit: int) -> None:
    whole, one = trained(method, None)
    parts, many = trained(method, limit)
    assert one.micro_batches == 1 < many.micro_batches
    for a, b in zip(whole, parts, strict=True):
        assert a.abs().max() > 0
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)
    assert many.loss == pytest.approx(one.loss, rel=1e-6)
    assert many.accuracy == one.accuracy


def test_forwards_are_bounded_and_reported() -> None:
    _, free = trained("dpo", None, steps=3)
    _, bound = trained("dpo", 200, steps=3)
    assert bound.largest_forward <= 200 < free.largest_forward
    assert free.micro_batches == 3 < bound.micro_batches
    assert bound.peak_memory_mb is None or bound.peak_memory_mb > 10


def test_the_reference_is_bounded_too() -> None:
    class Notes(TinyModel):
        largest = 0

        def forward_logprobs(self, *batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            self.largest = max(self.largest, batch[0].numel())
            return super().forward_logprobs(*batch)

    model = Notes(["one"])
    config = UpdateConfig(method="dpo", steps=2, batch_size=16, micro_batch_tokens=200)
    AdapterTrainer(model, config).fit("one", pairs(), random.Random(0))
    assert model.largest <= 200


@given(
    lengths=st.lists(st.integers(1, 90), min_size=1, max_size=40),
    data=st.data(),
    limit=st.integers(1, 2000),
)
def test_parts_hold_every_example_once_within_the_limit(
    lengths: list[int], data: st.DataObject, limit: int
) -> None:
    sides = [data.draw(st.integers(1, 2)) for _ in lengths]
    parts = micro_batches(lengths, sides, limit)
    assert sorted(k for part in parts for k in part) == list(range(len(lengths)))
    for part in parts:
        size = sum(sides[k] for k in part) * max(lengths[k] for k in part)
        assert size <= limit or len(part) == 1
    if sum(sides) * max(lengths) <= limit:
        assert parts == [list(range(len(lengths)))]
