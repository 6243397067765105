"""One batch through many adapters: as one by one, and as peft itself would do it."""

from __future__ import annotations

import pytest
import torch
from local_models import with_adapters
from peft import PeftModel

from swarm_ui.nodes import LocalModel

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
