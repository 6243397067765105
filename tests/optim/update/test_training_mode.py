"""Precision, attention and checkpointing: equal learning, and the network is left as it was."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from learning_fakes import TinyModel
from local_models import disturb
from text_models import screen_of, text_model

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError
from swarm_ui.nodes import CausalModel
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.update.adapter_trainer import AdapterTrainer, UpdateConfig
from swarm_ui.optim.update.training_mode import memory_in_use_mb, training_mode, uses_autocast


def lesson(count: int = 8) -> list[PreferencePair]:
    return [
        PreferencePair(
            node="agent_0", decision=screen_of("Save " * (k + 1)), source="own > mistake",
            chosen=Action(action_type="click", index=0), chosen_text="It fits.\nclick Save [0]",
            rejected=Action(action_type="click", index=1), rejected_text="click Other 0 [1]",
        )
        for k in range(count)
    ]  # fmt: skip


def adapted(dtype: torch.dtype = torch.float32, **options: Any) -> CausalModel:
    made = text_model(dtype=dtype, size=2.0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made.add_adapter("one", rank=4, alpha=8, **options)
    disturb(made, "one", 0, 0.1)
    return made


def gradient(model: CausalModel, **settings: Any) -> list[torch.Tensor]:
    """Of the first step, before clipping."""
    config = UpdateConfig(
        method="dpo", steps=1, batch_size=8, lr=1e-5, max_grad_norm=1e9, **settings
    )
    AdapterTrainer(model, config).fit("one", lesson(), random.Random(0))
    return [p.grad.clone() for p in model.adapter_parameters("one") if p.grad is not None]


@pytest.fixture(scope="module")
def plain() -> list[torch.Tensor]:
    return gradient(adapted())


@pytest.mark.parametrize(
    "settings",
    [
        {"checkpointing": True},
        {"eager_attention": True},
        {"micro_batch_tokens": 200},
        {"checkpointing": True, "eager_attention": True, "micro_batch_tokens": 200},
    ],
    ids=str,
)
def test_what_saves_memory_leaves_the_gradient(
    plain: list[torch.Tensor], settings: dict[str, Any]
) -> None:
    found = gradient(adapted(), **settings)
    assert len(found) == len(plain) > 0
    for a, b in zip(plain, found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-6 * float(a.abs().max() + 1))


def test_bfloat16_weights_are_computed_in_bfloat16_with_float32_adapters() -> None:
    model = adapted(torch.bfloat16)
    assert uses_autocast(model.module, UpdateConfig())
    assert not uses_autocast(adapted().module, UpdateConfig())
    assert {p.dtype for p in model.adapter_parameters("one")} == {torch.float32}
    near, exact = gradient(model), gradient(adapted())
    for a, b in zip(near, exact, strict=True):
        assert a.dtype == torch.float32
        assert torch.nn.functional.cosine_similarity(a.flatten(), b.flatten(), 0) > 0.95


def test_every_step_in_bfloat16_computes_with_the_weights_of_the_step_before() -> None:
    config = UpdateConfig(method="rft", steps=24, batch_size=8, lr=1e-2)
    learned = AdapterTrainer(adapted(torch.bfloat16), config).fit("one", lesson(), random.Random(0))
    exact = AdapterTrainer(adapted(), config).fit("one", lesson(), random.Random(0))
    assert learned.first_loss and learned.loss and exact.loss
    assert learned.first_loss - learned.loss > 0.5
    assert learned.loss == pytest.approx(exact.loss, rel=0.05)


def test_the_network_is_left_as_it_was() -> None:
    model = adapted(torch.bfloat16)
    before = {name: p.clone() for name, p in model.network.named_parameters() if "lora" not in name}
    attention = model.network.config._attn_implementation
    with training_mode(model.module, UpdateConfig(checkpointing=True)):
        norms = [p for p in model.network.parameters() if p.dim() == 1]
        assert {p.dtype for p in norms} == {torch.float32}
        assert model.network.config._attn_implementation == "eager"
        assert model.network.is_gradient_checkpointing
    assert model.network.config._attn_implementation == attention
    assert not model.network.is_gradient_checkpointing
    after = dict(model.network.named_parameters())
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert all(value.dtype == after[name].dtype for name, value in before.items())


def test_checkpointing_keeps_less() -> None:
    def kept(**settings: Any) -> int:
        model, sizes = adapted(), list[int]()
        with (
            training_mode(model.module, UpdateConfig(**settings)),
            model.activate("one"),
            torch.autograd.graph.saved_tensors_hooks(
                lambda t: (sizes.append(t.nbytes), t)[1], lambda t: t
            ),
        ):
            ids = torch.randint(3, 200, (4, 60))
            replies = torch.zeros_like(ids)
            replies[:, -8:] = 1
            model.forward_logprobs(ids, torch.ones_like(ids), replies)
        return sum(sizes)

    assert kept(checkpointing=True) < kept() / 2


def test_no_second_model_is_made_for_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    model = adapted()
    networks = []
    make = type(model.network).__init__
    monkeypatch.setattr(
        type(model.network), "__init__", lambda self, *a: (networks.append(self), make(self, *a))[1]
    )
    asked = []
    forward = model.forward_logprobs

    def noted(*batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if not torch.is_grad_enabled():
            asked.append(len(batch[0]))
        return forward(*batch)

    monkeypatch.setattr(model, "forward_logprobs", noted)
    size = sum(p.numel() for p in model.module.parameters())
    for reference in ("start", "base"):
        asked.clear()
        config = UpdateConfig(method="dpo", steps=4, batch_size=8, reference=reference, lr=1e-5)  # type: ignore[arg-type]
        AdapterTrainer(model, config).fit("one", lesson(), random.Random(0))
        assert sum(asked) == 2 * 8  # both sides of each pair, once
    assert networks == []
    assert sum(p.numel() for p in model.module.parameters()) == size


def test_upper_layers_alone_can_have_an_adapter(tmp_path: Any) -> None:
    model = adapted(layers=[1])
    names = [n for n, p in model.module.named_parameters() if "lora_" in n and "one" in n]
    assert names and all(".layers.1." in name for name in names)
    found = gradient(model)
    assert len(found) == len(names)
    model.save_adapters(tmp_path)
    again = text_model(size=2.0)
    again.load_adapters(tmp_path)
    for a, b in zip(
        model.adapter_parameters("one"), again.adapter_parameters("one"), strict=True
    ):  # fmt: skip
        assert torch.equal(a, b)
    for wrong in ([2], [], [-1]):
        with pytest.raises(ConfigError, match="from 0 to 1"):
            model.add_adapter("two", layers=wrong)


def test_what_a_network_cannot_do_is_one_clear_error() -> None:
    for settings, said in (
        ({"checkpointing": True}, "checkpointing: TinyModule"),
        ({"eager_attention": True}, "eager_attention: TinyModule"),
    ):
        config = UpdateConfig(**settings)  # type: ignore[arg-type]
        with (
            pytest.raises(ConfigError, match=said),
            training_mode(TinyModel(["one"]).module, config),
        ):
            pass


def test_memory_in_use_is_that_of_the_process() -> None:
    used = memory_in_use_mb(torch.device("cpu"))
    assert used is None or 50 < used < 100_000
