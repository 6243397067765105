"""An update of one adapter: it learns, alone, reproducibly, and from the right rows."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import msgspec
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_fakes import TinyModel, click, screen
from local_models import disturb
from tiny_causal import screen as buttons
from tiny_causal import text_model

from swarm_ui import Action, ConfigError, Decision, LearningError
from swarm_ui.nodes import CausalModel
from swarm_ui.optim import (
    Batch,
    Example,
    PreferencePair,
    TeamConfig,
    UpdateConfig,
    encode,
    minibatches,
    reply_logprobs,
    with_reference,
)
from swarm_ui.optim.examples import Trainable
from swarm_ui.optim.update import UpdateStats, fit, loss_of, prepare

WORDS = ["Save", "Back", "Help", "Open", "Send", "Find"]
SETTINGS = UpdateConfig(
    method="dpo", steps=60, batch_size=8, lr=5e-2, beta=0.2
).filled(TinyModel())  # fmt: skip


def decision(k: int) -> Decision:
    """Prompts of very different lengths."""
    goal = f"goal-{k % 6} " * (1 + 7 * k % 23) + f"number-{k}"
    return Decision(observation=screen(["x"], goal=goal))


def pairs(count: int = 24, *, bare: int = 0) -> list[PreferencePair]:
    """For each goal another button is right. Every ``bare``-th pair has no rejected side."""
    return [
        PreferencePair(
            node="one", decision=decision(k), chosen=click(k % 6, WORDS[k % 6]),
            rejected=None if bare and k % bare == 0 else click((k + 1) % 6, WORDS[(k + 1) % 6]),
            weight=0.25 * (1 + k % 4) if bare else 1.0,
        )
        for k in range(count)
    ]  # fmt: skip


def replies(count: int = 24) -> list[PreferencePair]:
    """For each goal one button earns an advantage, and another the opposite."""
    return [
        PreferencePair(node="one", decision=decision(k), advantage=advantage,
                    chosen=click((k + shift) % 6, WORDS[(k + shift) % 6]))
        for k in range(count) for shift, advantage in ((0, 1.0), (1, -1.0))
    ]  # fmt: skip


def trained(
    model: Any, examples: Any, config: UpdateConfig = SETTINGS, seed: int = 0, loss: Any = None
) -> UpdateStats:
    task = prepare(model, "one", examples, config, random.Random(seed), rejected=loss is not None)
    return fit(model, task, loss)


def weights(model: Any, name: str = "one") -> list[torch.Tensor]:
    return [p.detach().clone() for p in model.adapter_parameters(name)]


def equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(map(torch.equal, one, other))


def preference(model: Any) -> float:
    """Share of goals for which the right button is the more probable."""
    rows = [model.encode(r.decision, r.chosen_text) for r in replies()]
    with torch.no_grad():
        sums = reply_logprobs(model, [("one", row) for row in rows])
    return float((sums[0::2] > sums[1::2]).float().mean())


@pytest.mark.parametrize("method", ["dpo", "ipo", "rft", "grpo", "gspo"])
def test_training_learns_to_prefer_what_was_chosen(method: str) -> None:
    model = TinyModel(["one", "two"])
    assert isinstance(model, Trainable)
    other, base, before = weights(model, "two"), model.module.out.clone(), preference(model)
    # IPO aims at a margin of 1 / (2 beta) and no more.
    beta = {"ipo": 0.05, "grpo": 0.01, "gspo": 0.01}.get(method, 0.2)
    config = replace(SETTINGS, method=method, beta=beta)
    stats = trained(model, replies() if method[0] == "g" else pairs(), config)
    least = 0.7 if method == "grpo" else 0.9  # the clip of single tokens ends it earlier
    assert preference(model) >= least > before + 0.1
    assert (stats.steps, stats.examples) == (60, 48 if method[0] == "g" else 24)
    assert stats.loss is not None
    assert model.versions == {"one": 1, "two": 0}
    assert torch.equal(base, model.module.out) and equal(other, weights(model, "two"))
    assert not model.module.training


@pytest.mark.parametrize(
    ("cause", "error"),
    [
        (float("nan"), LearningError),
        (torch.OutOfMemoryError("full"), torch.OutOfMemoryError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)  # fmt: skip
def test_an_update_that_fails_changes_nothing(cause: Any, error: type[BaseException]) -> None:
    class Breaks(TinyModel):
        calls = 0

        def forward_logprobs(self, *batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            sums, tokens = super().forward_logprobs(*batch)
            self.calls += self.module.training
            if self.calls > 20 and isinstance(cause, BaseException):
                raise cause
            return (sums * cause if self.calls > 20 else sums), tokens

    model = Breaks(["one"])
    before = weights(model)
    match = r"adapter 'one', step \d+ of 60.*lr" if error is LearningError else None
    with pytest.raises(error, match=match):
        trained(model, pairs())
    assert model.calls > 20 and equal(before, weights(model))
    assert model.versions["one"] == 0 and not model.module.training


class Counts(TinyModel):
    largest = 0

    def forward_logprobs(self, *batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.largest = max(self.largest, batch[0].numel())
        return super().forward_logprobs(*batch)


def test_examples_need_an_adapter() -> None:
    with pytest.raises(ConfigError, match="no adapter 'two'"):
        encode(TinyModel(["one"]), [msgspec.structs.replace(p, node="two") for p in pairs(1)])


# -- batches ----------------------------------------------------------------------------------


def rows(lengths: list[int], sides: list[int] | None = None) -> list[Example]:
    return [
        Example("one", ([1] * n, []), ([1], []) if sides and sides[k] == 2 else None, float(k))
        for k, n in enumerate(lengths)
    ]


@given(
    lengths=st.lists(st.integers(1, 200), min_size=1, max_size=60),
    steps=st.integers(1, 20), size=st.integers(1, 16), seed=st.integers(0, 1000),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_batches_use_every_row_about_equally_often(
    lengths: list[int], steps: int, size: int, seed: int
) -> None:
    batches = minibatches(rows(lengths), size, steps, random.Random(seed))
    assert len(batches) == steps and {len(b) for b in batches} == {size}
    used = [sum(e.weight == k for b in batches for e in b) for k in range(len(lengths))]
    assert max(used) - min(used) <= 1


@given(
    lengths=st.lists(st.integers(1, 90), min_size=1, max_size=40),
    data=st.data(), limit=st.integers(1, 2000),
)  # fmt: skip
def test_parts_hold_every_example_once_within_the_limit(
    lengths: list[int], data: st.DataObject, limit: int
) -> None:
    whole = Batch(rows(lengths, [data.draw(st.integers(1, 2)) for _ in lengths]))
    parts = whole.parts(limit)
    assert sorted(e.weight for p in parts for e in p) == list(range(len(lengths)))
    for part in parts:
        size = sum(len(e.rows) for e in part) * max(e.longest for e in part)
        assert (size <= limit or len(part) == 1) and part.whole == whole.whole


@pytest.mark.parametrize("method", ["dpo", "ipo", "rft", "grpo", "gspo"])
@pytest.mark.parametrize("limit", [1, 300])
def test_gradients_of_the_parts_add_up_to_that_of_the_batch(method: Any, limit: int) -> None:
    model = Counts(["one"])
    model.module.double()
    with torch.no_grad():  # a start at which the adapter does something
        high = model.adapter_parameters("one")[1]
        high.copy_(torch.randn(high.shape, generator=torch.Generator().manual_seed(3)))
    examples = with_reference(model, replies(8) if method[0] == "g" else pairs(16, bare=3),
                              tokens=limit)  # fmt: skip
    assert model.largest <= max(limit, 60)
    examples = [e._replace(reference=(e.reference[0] - 1, e.reference[1])) for e in examples]
    found = []
    for tokens in (10**6, limit):
        model.module.zero_grad()
        loss, total = loss_of(replace(SETTINGS, method=method)), 0.0
        for part in Batch(examples).parts(tokens):
            share = loss(model, part)
            share.backward()
            total += float(share.detach())
        found.append((total, [p.grad.clone() for p in model.adapter_parameters("one")]))  # type: ignore[union-attr]
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    for a, b in zip(found[0][1], found[1][1], strict=True):
        assert a.abs().max() > 0
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)


def test_log_probabilities_do_not_depend_on_padding_or_neighbours() -> None:
    model = TinyModel(["one"])
    found = [model.encode(decision(k), click(0).json()) for k in range(5)]
    together = reply_logprobs(model, [("one", row) for row in found])
    for k, row in enumerate(found):
        (alone,) = reply_logprobs(model, [("one", row)])
        assert together[k].item() == pytest.approx(alone.item(), abs=1e-4)
    prompt, reply = found[2]
    scores = model.module(torch.tensor([prompt + reply])).log_softmax(-1)[0]
    by_hand = sum(float(scores[len(prompt) - 1 + k, id]) for k, id in enumerate(reply))
    assert together[2].item() == pytest.approx(by_hand, abs=1e-4)


# -- transformers -----------------------------------------------------------------------------


def lesson(count: int = 8) -> list[PreferencePair]:
    return [
        PreferencePair(
            node="one", decision=buttons("Save " * (k + 1), 3), source="own > mistake",
            chosen=Action(action_type="click", index=0), chosen_text="It fits.\nclick Save [0]",
            rejected=Action(action_type="click", index=1), rejected_text="click Other 0 [1]",
        )
        for k in range(count)
    ]  # fmt: skip


def adapted(dtype: torch.dtype = torch.float32) -> CausalModel:
    made = text_model(dtype=dtype, size=2.0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made.add_adapter("one", rank=4, alpha=8)
    disturb(made, "one", 0, 0.1)
    return made


def gradient(model: CausalModel, **settings: Any) -> list[torch.Tensor]:
    """Of the first step, clipped to a norm of 1."""
    config = replace(SETTINGS, steps=1, lr=1e-5, **settings)
    trained(model, lesson(), config)
    return [p.grad.clone() for p in model.adapter_parameters("one") if p.grad is not None]


def test_what_saves_memory_leaves_the_gradient() -> None:
    plain = gradient(adapted())
    found = gradient(adapted(), checkpointing=True, micro_batch_tokens=200)
    assert len(found) == len(plain) > 0
    for a, b in zip(plain, found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-6 * float(a.abs().max() + 1))


def test_every_step_in_bfloat16_computes_with_the_weights_of_the_step_before() -> None:
    config = replace(SETTINGS, method="rft", steps=8, lr=3e-2)
    learned = trained(adapted(torch.bfloat16), lesson(), config)
    exact = trained(adapted(), lesson(), config)
    first = trained(adapted(torch.bfloat16), lesson(), replace(config, steps=1))
    assert first.loss and learned.loss and exact.loss
    assert first.loss - learned.loss > 0.2
    assert learned.loss == pytest.approx(exact.loss, rel=0.05)


# -- settings ---------------------------------------------------------------------------------


def test_sizes_and_rates_follow_the_model_unless_they_are_set() -> None:
    found = msgspec.convert({"update": {"method": "dpo"}}, TeamConfig)
    updates = [found.update_at(TinyModel(), k, shared=k < 3) for k in range(5)]
    assert [u.steps for u in updates] == [75, 75, 75, 35, 35]
    assert (updates[0].lr, updates[-1].lr) == (pytest.approx(3e-3), pytest.approx(1.5e-3))
    given = UpdateConfig(lr=1e-4, steps=3)
    for shared in (False, True):
        filled = given.filled(TinyModel(), shared=shared)
        assert (filled.steps, filled.lr) == (3, 1e-4)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"clip": 1.0}, ["clip"]), ({"method": "ppo"}, ["method", "ppo"]),
        ({"batch_size": 0, "beta": 0.0}, ["batch_size", "beta"]),
    ],
)  # fmt: skip
def test_all_wrong_settings_are_named(settings: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        UpdateConfig(**settings)
    assert all(name in str(caught.value) for name in names)
    with pytest.raises(ConfigError) as caught:
        TeamConfig(episodes=0, guide=2.0, edges="random")  # type: ignore[arg-type]
    assert all(word in str(caught.value) for word in ("episodes", "guide", "edges"))
