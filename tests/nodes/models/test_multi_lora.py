"""One batch through many adapters: as one by one, and as peft itself would do it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from local_models import answers, asking, disturb, requests, with_adapters
from peft import PeftModel

from swarm_ui.model import Request
from swarm_ui.nodes import LocalModel
from swarm_ui.nodes.models.transformers.adapters.routing import LoraRouting, LoraWeights

NAMES = [None, "agent_0", "agent_1", "agent_2"]


@pytest.fixture(scope="module")
def model() -> LocalModel:
    return with_adapters()


@given(
    picked=st.lists(st.tuples(st.integers(0, 39), st.integers(0, 3)), min_size=1, max_size=24),
    worth=st.sampled_from([1, 40, 400]),
)
@settings(max_examples=6, deadline=None)
def test_a_greedy_answer_is_the_same_in_any_company(
    model: LocalModel, picked: list[tuple[int, int]], worth: int
) -> None:
    screens = requests(40)
    asked = [msgspec.structs.replace(screens[k], adapter=NAMES[n]) for k, n in picked]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "_cost", worth)  # prompts are read in many pieces, or in one
        together = answers(model, asked)
    for request, got in zip(asked, together, strict=True):
        [alone] = answers(model, [request])
        assert got.text == alone.text
        assert got.prompt == alone.prompt
        assert got.usage == alone.usage
        assert got.logprob == pytest.approx(alone.logprob, abs=1e-4)


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


def test_rows_that_leave_the_batch_leave_the_others_their_adapters(model: LocalModel) -> None:
    ids = torch.randint(3, 200, (6, 1), generator=torch.Generator().manual_seed(2))
    versions = ["agent_0@0", "agent_0@0", None, "agent_1@0", "agent_2@0", "agent_2@0"]
    base = model.network
    adapters = [model._frozen_of(version) for version in versions]
    with torch.no_grad(), model._routing(adapters) as routing:
        whole = base(input_ids=ids).logits
        routing.select_rows([1, 2, 5])
        assert torch.allclose(base(input_ids=ids[[1, 2, 5]]).logits, whole[[1, 2, 5]], atol=1e-5)
        routing.select_rows([3])
        assert torch.allclose(base(input_ids=ids[[3]]).logits, whole[[3]], atol=1e-5)


def test_after_a_batch_peft_finds_its_layers_as_they_were(model: LocalModel) -> None:
    before = {name for name, part in model.module.named_modules() if "forward" in part.__dict__}
    answers(model, asking("agent_1", requests(2)))
    after = {name for name, part in model.module.named_modules() if "forward" in part.__dict__}
    assert before == after == set()


def test_adapters_of_different_ranks_share_a_batch() -> None:
    model = with_adapters(1)
    model.add_adapter("wide", rank=9, alpha=3)
    with model.activate("wide"), torch.no_grad():
        noise = torch.Generator().manual_seed(3)
        for weight in model.adapter_parameters("wide"):
            weight += 0.3 * torch.randn(weight.shape, generator=noise)
    asked = asking("wide", requests(6)) + asking("agent_0", requests(6)) + requests(6)
    for request, got in zip(asked, answers(model, asked), strict=True):
        [alone] = answers(model, [request])
        assert (got.text, got.logprob) == (alone.text, pytest.approx(alone.logprob, abs=1e-4))


def test_a_change_of_weights_in_place_is_noticed_by_scores(model: LocalModel) -> None:
    asked = asking("agent_0", requests(4))
    replies = [c.text for c in answers(model, asked)]
    before = asyncio.run(model.score(asked, replies))
    disturb(model, "agent_0", seed=9)
    after = asyncio.run(model.score(asked, replies))
    assert after != pytest.approx(before, abs=1e-3)
    model.forget_prompts()
    assert asyncio.run(model.score(asked, replies)) == after


def test_agents_with_equal_weights_are_computed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    model = with_adapters(2)
    model.add_adapter("copy", rank=4, alpha=8, copy_from="agent_0")
    seen: list[int] = []
    select = LoraRouting.select_rows

    def noting(routing: LoraRouting, rows: Sequence[int]) -> None:
        select(routing, rows)
        seen.append(len(routing.parts))

    monkeypatch.setattr(LoraRouting, "select_rows", noting)
    asked = [*asking("agent_0", requests(4)), *asking("copy", requests(4))]
    both = answers(model, asked)
    assert set(seen) == {1}
    assert [c.text for c in both[:4]] == [c.text for c in both[4:]]
    assert {c.adapter for c in both} == {"agent_0@0", "copy@0"}


def test_a_copy_has_the_shape_and_the_weights_of_its_source() -> None:
    model = with_adapters(1)
    model.add_adapter("thin", rank=1, alpha=3)
    disturb(model, "thin", seed=2)
    model.add_adapter("copy", copy_from="thin")
    assert all(map(torch.equal, *map(model.adapter_parameters, ("thin", "copy"))))
    (one, two) = answers(model, [*asking("thin", requests(1)), *asking("copy", requests(1))])
    assert (one.text, one.logprob, two.adapter) == (two.text, two.logprob, "copy@0")


def test_scores_do_not_depend_on_the_company(model: LocalModel) -> None:
    asked: list[Request] = [
        msgspec.structs.replace(r, adapter=NAMES[k % 4]) for k, r in enumerate(requests(20))
    ]
    replies = [c.text for c in answers(model, asked)]
    together = asyncio.run(model.score(asked, replies))
    for request, reply, got in zip(asked, replies, together, strict=True):
        assert asyncio.run(model.score([request], [reply])) == pytest.approx([got], abs=1e-4)


@pytest.mark.parametrize("tokens", [1, 8, 40])
def test_the_terms_of_adapters_on_a_base_in_bfloat16(tokens: int) -> None:
    """Prompts are computed in bfloat16, single tokens in float32; both are near the exact sum."""
    torch.manual_seed(tokens)
    layer = torch.nn.Linear(32, 48, bias=False, dtype=torch.bfloat16)
    one, other = (
        {"layer": LoraWeights(0.2 * torch.randn(4, 32), 0.2 * torch.randn(48, 4), 2.0)}
        for _ in range(2)
    )
    x = torch.randn(6, tokens, 32, dtype=torch.bfloat16)
    with torch.inference_mode():
        plain = layer(x)
        with LoraRouting({"layer": layer}, [one, one, one, other, other, None]):
            got = layer(x)
    for rows, adapter in ((slice(0, 3), one), (slice(3, 5), other)):
        down, up, scale = adapter["layer"]
        exact = plain[rows].double() + scale * (x[rows].double() @ down.T.double() @ up.T.double())
        assert got.dtype == torch.bfloat16
        assert torch.allclose(got[rows].double(), exact, atol=0.05, rtol=0.02)
    assert torch.equal(got[5], plain[5])
