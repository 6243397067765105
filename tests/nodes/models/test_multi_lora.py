"""One batch through many adapters: as one by one, and as peft itself would do it."""

from __future__ import annotations

import pytest
import torch
from local_models import with_adapters
from peft import PeftModel

from swarm_ui.nodes import LocalModel
from swarm_ui.nodes.models.transformers.routing import FrozenAdapter, LoraRouting, LoraWeights

NAMES = [None, "agent_0", "agent_1", "agent_2"]


@pytest.fixture(scope="module")
def model() -> LocalModel:
    return with_adapters()


@pytest.mark.parametrize("tokens", [1, 2, 9])
def test_logits_are_those_of_pefts_own_mixed_batch(model: LocalModel, tokens: int) -> None:
    network = model.module
    assert isinstance(network, PeftModel)
    ids = torch.randint(3, 200, (11, tokens), generator=torch.Generator().manual_seed(1))
    names = sorted(NAMES * 3, key=str)[:11]
    with torch.no_grad():
        wanted = network(input_ids=ids, adapter_names=[n or "__base__" for n in names]).logits
        versions = [None if n is None else f"{n}@0" for n in names]
        for order in (range(11), [3, 10, 0, 7, 5, 1, 9, 2, 8, 6, 4]):  # together, and scattered
            with model.routed([versions[k] for k in order]) as base:
                got = base(input_ids=ids[list(order)]).logits
            assert torch.allclose(got, wanted[list(order)], atol=1e-4)
        assert not torch.allclose(wanted[0], network.get_base_model()(input_ids=ids).logits[0])


@pytest.mark.parametrize("tokens", [1, 8, 40])
def test_the_terms_of_adapters_on_a_base_in_bfloat16(tokens: int) -> None:
    """Prompts are computed in bfloat16, single tokens in float32; both are near the exact sum."""
    torch.manual_seed(tokens)
    layer = torch.nn.Linear(32, 48, bias=False, dtype=torch.bfloat16)
    one, other = (
        FrozenAdapter(
            {"layer": LoraWeights(0.2 * torch.randn(4, 32), 0.2 * torch.randn(48, 4), 2.0)},
            torch.float32,
        )
        for _ in range(2)
    )
    x = torch.randn(6, tokens, 32, dtype=torch.bfloat16)
    with torch.inference_mode():
        plain = layer(x)
        with LoraRouting({"layer": layer}, [one, one, one, other, other, None]):
            got = layer(x)
    for rows, adapter in ((slice(0, 3), one), (slice(3, 5), other)):
        down, up, scale = adapter.weights["layer"]
        exact = plain[rows].double() + scale * (x[rows].double() @ down.T.double() @ up.T.double())
        assert got.dtype == torch.bfloat16
        assert torch.allclose(got[rows].double(), exact, atol=0.05, rtol=0.02)
    assert torch.equal(got[5], plain[5])
