"""Probabilities of short replies: packed prompts give what single prompts give."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from local_models import disturb
from test_causal_model import KINDS, network, tokenizer

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import ChatMessage, ChoosingModel, Request
from swarm_ui.nodes import CausalModel
from swarm_ui.nodes.models.transformers.choices import (
    MOST_PROMPTS,
    can_pack,
    grouped,
    option_logits,
    pack,
)

SCREEN = "Goal: press Save\nScreen:\n" + "\n".join(f"Save {k} button" for k in range(9))
OPTIONS = ("yes", "no", "button")


def models(kind: str) -> CausalModel:
    words = tokenizer()
    model = CausalModel(network(kind, len(words)), words, name=kind)
    for k in range(2):
        model.add_adapter(f"agent_{k}", rank=4, alpha=16)
        disturb(model, f"agent_{k}", k, 0.2)
    return model


def asking(text: str, adapter: str | None = None, screen: str = SCREEN) -> Request:
    return Request(chat=(ChatMessage("user", f"{screen}\nReply: {text}"),), adapter=adapter)


def differing(count: int = 6) -> list[Request]:
    """Questions about two screens to three adapters; one question is there twice."""
    asked = [asking("press " * (k + 1), [None, "agent_0", "agent_1"][k % 3]) for k in range(count)]
    return [*asked, asking("Save", screen="another screen"), asked[0]]


@pytest.mark.parametrize("kind", KINDS)
def test_questions_together_have_the_answers_of_questions_alone(kind: str) -> None:
    model = models(kind)
    assert isinstance(model, ChoosingModel)
    asked = differing()
    together = asyncio.run(model.probabilities(asked, OPTIONS))
    rows = model.counters.batches
    alone = [asyncio.run(model.probabilities([request], OPTIONS))[0] for request in asked]
    assert model.counters.batches == rows + len(asked)
    assert rows == 1
    torch.testing.assert_close(torch.tensor(together), torch.tensor(alone), rtol=0, atol=1e-4)
    assert len({tuple(round(p, 6) for p in one) for one in alone}) == len(asked) - 1
    assert all(sum(one) == pytest.approx(1.0) for one in together)


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_the_model_s_own_probabilities_of_the_first_token(kind: str) -> None:
    model = models(kind)
    [found] = asyncio.run(model.probabilities([asking("x")], OPTIONS))
    ids = model.prompt(asking("x")).ids
    with torch.inference_mode(), model.routed([None]) as plain:
        logits = plain(input_ids=torch.tensor([ids])).logits[0, -1]
    firsts = [model.codec.first_token(option) for option in OPTIONS]
    assert found == pytest.approx(logits[firsts].softmax(0).tolist(), abs=1e-4)


def test_a_network_that_forgets_early_tokens_is_not_packed() -> None:
    assert {kind: can_pack(network(kind, 300).eval()) for kind in KINDS} == {
        "llama": True, "gpt2": True, "mistral": False,
    }  # fmt: skip


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
    st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=6),
)
def test_a_packed_row_holds_every_prompt_once(common: list[int], ends: list[list[int]]) -> None:
    prompts = [common + end for end in ends]
    row = pack(prompts)
    for number, (prompt, end) in enumerate(zip(prompts, row.ends, strict=True), start=1):
        seen = [k for k in range(end + 1) if row.parts[k] in (0, number)]
        assert [row.ids[k] for k in seen] == prompt
        assert [row.positions[k] for k in seen] == list(range(len(prompt)))
    assert len(row.ids) <= sum(map(len, prompts))


def test_only_neighbours_that_begin_alike_share_a_row() -> None:
    alike, other = [[1, 2, 3, k] for k in range(3)], [9, 9]
    assert list(grouped([*alike, other, alike[0]], packing=True)) == [[0, 1, 2], [3], [4]]
    assert list(grouped(alike, packing=False)) == [[0], [1], [2]]
    many = [[1, 2, 3, k] for k in range(MOST_PROMPTS + 1)]
    assert list(map(len, grouped(many, packing=True))) == [MOST_PROMPTS, 1]


def test_a_long_row_does_not_change_its_neighbours() -> None:
    plain = network("llama", 300).eval()
    rows = [pack([[1, 2, 3, 4], [1, 2, 3, 5, 6]]), pack([[7, 8]]), pack([list(range(90))])]
    with torch.inference_mode():
        together = torch.cat(option_logits(plain, rows, [3, 4], pad_id=0))
        alone = torch.cat([option_logits(plain, [row], [3, 4], pad_id=0)[0] for row in rows])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("options", [[], ["yes"], ["yes", "yes"]])
def test_options_that_cannot_be_told_apart_are_refused(options: list[str]) -> None:
    with pytest.raises(ConfigError, match="two or more options with different first tokens"):
        asyncio.run(models("llama").probabilities([asking("x")], options))


def test_an_unknown_adapter_and_a_prompt_that_is_too_long_are_errors() -> None:
    model = models("llama")
    with pytest.raises(ModelError, match="no adapter 'nobody'"):
        asyncio.run(model.probabilities([asking("x", "nobody")], OPTIONS))
    with pytest.raises(ModelError, match="accepts at most"):
        asyncio.run(model.probabilities([asking("x " * 3000)], OPTIONS))


@pytest.mark.slow
def test_smollm2_is_packed(tmp_path: Path) -> None:
    from swarm_ui.errors import SwarmError
    from swarm_ui.experiment.config import ModelSection
    from swarm_ui.experiment.models import load_in_process

    try:
        model = load_in_process(ModelSection(name="smollm2"))
    except SwarmError as error:
        pytest.skip(f"SmolLM2 is not here: {error}")
    asked = [asking(f"press Save {k}") for k in range(3)]
    together = asyncio.run(model.probabilities(asked, ("yes", "no")))
    assert model.counters.batches == 1
    alone = [asyncio.run(model.probabilities([request], ("yes", "no")))[0] for request in asked]
    torch.testing.assert_close(torch.tensor(together), torch.tensor(alone), rtol=0, atol=0.05)
