"""The local model: batches, adapters, grammar and seeds."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path

import msgspec
import peft
import pytest
import torch
from local_models import alike, answers, asking, disturb, requests, untrained, with_adapters
from transformers import AutoModelForCausalLM

from swarm_ui.action import Action, parse_action
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import ChatMessage, Decision, Request, ScoringModel
from swarm_ui.nodes import LocalModel
from swarm_ui.nodes.models.tiny_agent.tokenizer import ScreenTokenizer
from swarm_ui.observation import Observation


def test_requests_that_wait_together_are_one_batch_and_an_answer_does_not_depend_on_the_rest() -> (
    None
):
    model = with_adapters()
    names = [None, "agent_0", "agent_1", "agent_2"]
    asked = [
        msgspec.structs.replace(r, adapter=names[i % 4], temperature=0.7 * (i % 2))
        for i, r in enumerate(requests(24))
    ]
    together = answers(model, asked)
    assert model.counters.batches == 1
    alone = [answers(model, [request])[0] for request in asked]
    assert [c.text for c in together] == [c.text for c in alone]
    for a, b in zip(together, alone, strict=True):
        assert a.logprob == pytest.approx(b.logprob, abs=1e-3)


def test_the_base_row_of_a_mixed_batch_is_the_base_model() -> None:
    model, plain = with_adapters(), untrained()
    asked = requests(8)
    mixed = [
        msgspec.structs.replace(r, adapter="agent_0" if i % 2 else None)
        for i, r in enumerate(asked)
    ]
    for i, (got, want) in enumerate(zip(answers(model, mixed), answers(plain, asked), strict=True)):
        if i % 2 == 0:
            assert got.text == want.text
            assert got.logprob == pytest.approx(want.logprob, abs=1e-4)


def test_a_constrained_reply_is_always_possible_on_the_screen() -> None:
    model = untrained()
    asked = [msgspec.structs.replace(r, temperature=2.0) for r in requests(40)]
    for request, completion in zip(asked, answers(model, asked), strict=True):
        action = parse_action(completion.text)
        assert isinstance(action, Action), completion.text
        assert request.decision is not None
        screen = request.decision.observation
        if action.index is not None:
            element = screen.element(action.index)
            assert element is not None
            assert action.action_type != "input_text" or element.editable
        assert not screen.actions or action.action_type in screen.actions


async def test_a_screen_without_a_possible_action_fails_alone() -> None:
    nothing = Observation(goal="press it", elements=(), actions=("click", "input_text"))
    model, (request, *_) = untrained(), requests(1)
    empty, good = await asyncio.gather(
        model.generate([Request(decision=Decision(observation=nothing))]),
        model.generate([request]),
        return_exceptions=True,
    )
    assert isinstance(empty, ModelError) and "0 elements and offers click, input_text" in str(empty)
    assert good == await untrained().generate([request])


def test_a_seed_decides_a_sample_and_zero_temperature_needs_none() -> None:
    model = untrained()
    warm = [msgspec.structs.replace(r, temperature=1.5) for r in requests(12)]
    other = [msgspec.structs.replace(r, seed=r.seed + 1000) for r in warm]
    texts = [c.text for c in answers(model, warm)]
    assert texts == [c.text for c in answers(model, warm)]
    assert texts != [c.text for c in answers(model, other)]
    cold = [msgspec.structs.replace(r, temperature=0.0) for r in warm]
    colder = [msgspec.structs.replace(r, temperature=0.0) for r in other]
    assert [c.text for c in answers(model, cold)] == [c.text for c in answers(model, colder)]


def test_score_is_the_logprob_that_generation_reports() -> None:
    model = with_adapters()
    assert isinstance(model, ScoringModel)
    asked = [
        msgspec.structs.replace(r, adapter=f"agent_{i % 3}") for i, r in enumerate(requests(15))
    ]
    done = answers(model, asked)
    scores = asyncio.run(model.score(asked, [c.text for c in done]))
    assert scores == pytest.approx([c.logprob for c in done], abs=1e-3)
    assert asyncio.run(model.score(asked[:1], ["no action"])) == [float("-inf")]


def test_training_sees_the_tokens_that_generation_saw_and_gives_the_same_logprob() -> None:
    model = with_adapters(1)
    request = msgspec.structs.replace(requests(1)[0], adapter="agent_0")
    [completion] = answers(model, [request])
    assert request.decision is not None
    prompt, reply = model.encode(request.decision, completion.text)
    assert len(prompt) == completion.usage.prompt_tokens
    assert len(reply) == completion.usage.completion_tokens
    ids = torch.tensor([prompt + reply])
    mask = torch.tensor([[0] * len(prompt) + [1] * len(reply)])
    with model.activate("agent_0"):
        total, count = model.forward_logprobs(ids, torch.ones_like(ids), mask)
    assert count.tolist() == [len(reply)]
    assert total.sum().item() == pytest.approx(completion.logprob, abs=1e-3)
    with model.reference():
        base, _ = model.forward_logprobs(ids, torch.ones_like(ids), mask)
    assert base.sum().item() != pytest.approx(total.sum().item(), abs=1e-3)


def test_only_adapters_can_learn() -> None:
    model = with_adapters()
    weights = {id(p) for name in model.adapters for p in model.adapter_parameters(name)}
    for name in ("agent_1", "agent_0"):
        with model.activate(name) as network, model.reference():
            pass
        assert {id(p) for p in network.parameters() if p.requires_grad} == weights
    assert not model.module.training


def test_saved_adapters_load_here_and_in_plain_peft(tmp_path: Path) -> None:
    model = with_adapters()
    disturb(model, "agent_1", seed=3)
    model.save(tmp_path / "base")
    model.save_adapters(tmp_path / "adapters")
    again = LocalModel.load(tmp_path / "base")
    again.load_adapters(tmp_path / "adapters")
    asked = [
        msgspec.structs.replace(r, adapter=f"agent_{i % 3}") for i, r in enumerate(requests(9))
    ]
    first, second = answers(model, asked), answers(again, asked)
    assert [c.text for c in first] == [c.text for c in second]
    assert [c.adapter for c in second][:3] == ["agent_0@0", "agent_1@1", "agent_2@0"]
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    plain = peft.PeftModel.from_pretrained(base, str(tmp_path / "adapters" / "agent_1"))
    loaded = [p for key, p in plain.named_parameters() if "lora" in key]
    for have, want in zip(loaded, model.adapter_parameters("agent_1"), strict=True):
        assert torch.equal(have, want)


def test_an_adapter_named_default_is_saved_and_loaded(tmp_path: Path) -> None:
    model = untrained()
    model.add_adapter("default", rank=4)
    disturb(model, "default", 1)
    model.save_adapters(str(tmp_path))  # a string is a path too
    again = untrained()
    again.load_adapters(str(tmp_path))
    asked = asking("default", requests(4))
    assert alike(answers(again, asked), answers(model, asked))


def test_adapters_of_an_agent_with_more_words_hold_no_embeddings(tmp_path: Path) -> None:
    model = LocalModel.load().with_words(["unheard"])
    model.add_adapter("agent_0", rank=4)
    model.save_adapters(tmp_path)
    model.load_adapters(tmp_path)
    assert model.lease("agent_0") == "agent_0@0"


def test_adding_an_adapter_gives_no_warning_of_other_packages() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        untrained().add_adapter("agent_0")
    assert not [str(each.message) for each in caught]


def test_wrong_names_and_wrong_requests_are_told_apart(tmp_path: Path) -> None:
    model = with_adapters(1)
    [request] = requests(1)
    with pytest.raises(ModelError, match="agent_9"):
        answers(model, [msgspec.structs.replace(request, adapter="agent_9")])
    with pytest.raises(ModelError, match="not chats"):
        answers(model, [Request(chat=(ChatMessage("user", "hello"),))])
    with pytest.raises(ConfigError, match="exists already"):
        model.add_adapter("agent_0")
    with pytest.raises(ConfigError, match="no agent in"):
        LocalModel.load(tmp_path)
    with pytest.raises(ConfigError, match="no adapters in"):
        model.load_adapters(tmp_path)


def test_a_failed_batch_fails_its_callers_and_nobody_else() -> None:
    model = with_adapters(1)
    good = requests(2)
    bad = msgspec.structs.replace(good[0], adapter="agent_9")

    async def run() -> list[object]:
        first = await asyncio.gather(
            model.generate([bad]), model.generate([good[1]]), return_exceptions=True
        )
        return [*first, await model.generate([good[1]])]

    wrong, _, later = asyncio.run(run())
    assert isinstance(wrong, ModelError)
    assert isinstance(later, list)


def test_generate_of_transformers_agrees_with_ours() -> None:
    model = LocalModel(untrained().module, ScreenTokenizer(), constrained=False)
    [request] = requests(1)
    assert isinstance(request.decision, Decision)
    [completion] = answers(model, [request])
    prompt = model.tokenizer.encode(request.decision)
    ids = torch.tensor([prompt.ids])
    out = model.module.generate(ids, max_new_tokens=20, do_sample=False)[0, len(prompt.ids) :]
    text = [i for i in out.tolist() if i != model.tokenizer.eos_id]
    decoded = model.tokenizer.decode(prompt, text)
    want = decoded.json() if isinstance(decoded, Action) else decoded.text
    assert completion.text == want
