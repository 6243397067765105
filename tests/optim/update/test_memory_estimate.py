"""The estimate of memory: exact where it can be counted, and near to what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from text_models import text_model

from swarm_ui.errors import ConfigError
from swarm_ui.nodes import BASE_AGENT, LocalModel
from swarm_ui.optim.update.memory_estimate import (
    ModelShape,
    Workload,
    estimate_memory,
    layer_bytes_per_token,
)
from swarm_ui.optim.update.training_mode import training_mode
from swarm_ui.optim.update.update_config import UpdateConfig

QWEN2_7B = ModelShape(
    layers=28, width=3584, heads=28, kv_heads=4, head_width=128, inner_width=18_944, words=152_064,
    tied=False,
)  # fmt: skip


def shape_of(model: object, folder: Path) -> ModelShape:
    model.network.config.save_pretrained(folder)  # type: ignore[attr-defined]
    return ModelShape.of_folder(folder)


def test_parameters_and_adapters_are_counted_exactly(tmp_path: Path) -> None:
    model = text_model(layers=3)
    shape = shape_of(model, tmp_path)
    # The tiny one does not tie its embeddings.
    assert shape.parameters == sum(p.numel() for p in model.network.parameters())
    for name, layers in (("all", None), ("upper", [1, 2])):
        model.add_adapter(name, rank=4, layers=layers)
        counted = sum(p.numel() for p in model.adapter_parameters(name))
        assert shape.adapter_weights(4, None if layers is None else 2) == counted
    counted = sum(p.numel() for p in LocalModel.load().network.parameters())
    assert ModelShape.of_folder(BASE_AGENT).parameters == pytest.approx(counted, rel=0.05)


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_activations_are_near_those_that_autograd_keeps(
    dtype: torch.dtype, eager: bool, tmp_path: Path
) -> None:
    def kept(layers: int) -> tuple[int, ModelShape]:
        model = text_model(layers=layers, dtype=dtype)
        model.add_adapter("one", rank=16)
        found: dict[int, torch.UntypedStorage] = {}

        def note(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own:
                found[storage.data_ptr()] = storage
            return tensor

        ids = torch.randint(3, 200, (4, 64))
        replies = torch.zeros_like(ids)
        replies[:, -8:] = 1
        config = UpdateConfig(eager_attention=eager)
        with training_mode(model.module, config), model.activate("one"):
            own = {p.untyped_storage().data_ptr() for p in model.module.parameters()}
            with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
                model.forward_logprobs(ids, torch.ones_like(ids), replies)
        return sum(s.nbytes() for s in found.values()), shape_of(model, tmp_path)

    (two, shape), (six, _) = kept(2), kept(6)
    measured = (six - two) / 4 / (4 * 64)
    work = Workload(rank=16, autocast=dtype == torch.bfloat16, eager_attention=eager)
    assert layer_bytes_per_token(shape, work, 64) == pytest.approx(measured, rel=0.2)


def test_four_bits_and_checkpointing_fit_a_7b_model_on_one_gpu() -> None:
    plain = estimate_memory(QWEN2_7B, Workload())
    small = estimate_memory(QWEN2_7B, Workload(precision="4bit", checkpointing=True))
    assert QWEN2_7B.parameters == pytest.approx(7.6e9, rel=0.01)
    assert plain.weights == pytest.approx(2 * QWEN2_7B.parameters, rel=1e-3)
    assert small.weights < plain.weights / 2
    assert small.activations < plain.activations / 4
    assert small.total < 16 * 2**30 < plain.total
    assert str(small).startswith("about ") and "estimate" in str(small)


def test_settings_move_the_parts_they_belong_to() -> None:
    base = estimate_memory(QWEN2_7B, Workload())
    half = estimate_memory(QWEN2_7B, Workload(micro_batch_tokens=1024))
    assert half.activations == pytest.approx(base.activations / 2, rel=1e-6)
    assert (half.weights, half.cache) == (base.weights, base.cache)
    upper = estimate_memory(QWEN2_7B, Workload(layers=14))
    assert upper.optimiser == base.optimiser / 2 and upper.activations < base.activations
    assert estimate_memory(QWEN2_7B, Workload(rows=32)).cache == base.cache / 2


def test_a_configuration_without_sizes_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be estimated"):
        ModelShape.of_folder(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 3}))
    with pytest.raises(ConfigError, match="KeyError"):
        ModelShape.of_folder(tmp_path)
