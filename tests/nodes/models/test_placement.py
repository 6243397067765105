"""Where the weights of a model are loaded, and in how many bits."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path

import pytest
from tiny_causal import text_model

from swarm_ui.errors import MissingExtra
from swarm_ui.nodes import CausalModel
from swarm_ui.nodes.models.transformers.causal_model import placement

HAS_BITSANDBYTES = importlib.util.find_spec("bitsandbytes") is not None


@pytest.mark.skipif(HAS_BITSANDBYTES, reason="bitsandbytes is installed")
def test_four_bits_need_an_extra(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=r"'bitsandbytes'.*swarm-ui\[qlora\]"):
        CausalModel.from_pretrained(tmp_path, quantize="4bit")


def test_four_bits_are_nf4_computed_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = types.ModuleType("bitsandbytes")
    fake.__spec__ = importlib.machinery.ModuleSpec("bitsandbytes", None)
    monkeypatch.setitem(sys.modules, "bitsandbytes", fake)
    options = placement("cuda", "4bit")
    quantized = options["quantization_config"]
    assert options["device_map"] == {"": "cuda"}
    assert (quantized.load_in_4bit, quantized.bnb_4bit_quant_type) == (True, "nf4")
    assert quantized.bnb_4bit_use_double_quant
    assert str(quantized.bnb_4bit_compute_dtype) == "torch.bfloat16"
    assert placement("auto", "4bit")["device_map"] == "auto"


def test_a_model_spread_by_accelerate_answers_as_before(tmp_path: Path) -> None:
    model = text_model()
    model.network.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    spread = CausalModel.from_pretrained(tmp_path, device="auto")
    for name, weight in model.base_weights().items():
        assert weight.equal(spread.base_weights()[name])
