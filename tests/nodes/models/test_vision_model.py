"""Vision-language models in this process: tiny random ones of every kind that is accepted."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pytest
import tiny_vision
import torch
from local_models import alike, answers, asking, disturb
from PIL import Image
from tiny_causal import network as causal_network
from tiny_causal import tokenizer
from tiny_vision import picture

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import ChatMessage, Decision, Request
from swarm_ui.nodes import CausalModel, VisionModel
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.examples import Trainable

every = pytest.mark.parametrize("kind", tiny_vision.KINDS)


def opened(kind: str, **settings: Any) -> VisionModel:
    reader = tiny_vision.processor(kind)
    return VisionModel(tiny_vision.network(kind, reader), reader, name=kind, **settings)


def with_adapters(model: VisionModel) -> VisionModel:
    for k in range(2):
        model.add_adapter(f"agent_{k}", rank=4, alpha=16)
        disturb(model, f"agent_{k}", k, 0.2)
    return model


CHATS = (
    (ChatMessage("user", "what is this?", (picture(0),)),),
    (ChatMessage("user", "and these two?", (picture(1, (40, 16)), picture(2))),),
    (ChatMessage("user", "press the button, " * 12, (picture(0),)), ChatMessage("assistant", "no"),
     ChatMessage("user", "now?", (picture(3, (56, 24)),))),
    (ChatMessage("user", "no picture"),),
)  # fmt: skip


def chats(**settings: Any) -> list[Request]:
    return [Request(chat=chat, **{"max_tokens": 6} | settings) for chat in CHATS]


def processed(model: VisionModel, chat: Sequence[ChatMessage]) -> dict[str, torch.Tensor]:
    """What the processor of transformers makes of a chat."""
    turns = [
        {"role": turn.role, "content": [{"type": "image"} for _ in turn.images]
         + [{"type": "text", "text": turn.content}]}
        for turn in chat
    ]  # fmt: skip
    text = model.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    images = [Image.open(BytesIO(png)).convert("RGB") for turn in chat for png in turn.images]
    read = model.processor(
        text=text, images=images or None, return_tensors="pt", add_special_tokens=False
    )
    return dict(read)


@every
def test_replies_are_those_of_transformers(kind: str) -> None:
    model = opened(kind)
    plain: Any = tiny_vision.network(kind, model.processor).eval()
    for request, said in zip(chats(), answers(model, chats()), strict=True):
        assert request.chat is not None
        read = processed(model, request.chat)
        ids = model.prompt(request).ids
        assert said.usage.prompt_tokens == len(ids)
        settings = {"max_new_tokens": 6, "do_sample": False, "return_dict_in_generate": True}
        made = plain.generate(**read, **settings, output_logits=True)
        out = made.sequences[0, len(ids) :]
        assert said.text == model.tokenizer.decode(out, skip_special_tokens=True)
        steps = torch.cat(made.logits).float().log_softmax(-1)
        assert said.logprob == pytest.approx(float(steps.gather(1, out[:, None]).sum()), abs=1e-3)


def shown(number: int = 0, label: str = "Save") -> Decision:
    screen = Observation(
        goal=f"press {label}",
        elements=(Element(index=0, role="button", text=label),),
        png=picture(number),
    )
    return Decision(observation=screen)


@every
async def test_it_learns_from_screenshots(kind: str) -> None:
    model = with_adapters(opened(kind, prompt_format="compact"))
    assert isinstance(model, Trainable)
    pairs = [encoded(model, shown(k), "click Save [0]") for k in range(3)]
    longest = max(len(prompt) + len(reply) for prompt, reply in pairs)
    ids = torch.full((3, longest), model.pad_id)
    replies = torch.zeros(3, longest)
    for row, (prompt, reply) in enumerate(pairs):
        ids[row, : len(prompt) + len(reply)] = torch.tensor(prompt + reply)
        replies[row, len(prompt) : len(prompt) + len(reply)] = 1
    with model.activate("agent_0"):
        tokens, counts = model.forward_logprobs(ids, torch.ones_like(ids), replies)
        sums = tokens.sum(1)
        sums.sum().backward()
        assert all(weight.grad is not None for weight in model.adapter_parameters("agent_0"))
    assert counts.tolist() == [len(reply) for _, reply in pairs]
    asked = [Request(decision=shown(k), adapter="agent_0") for k in range(3)]
    action = '{"action_type":"click","target":"Save","index":0}'
    assert sums.tolist() == pytest.approx(await model.score(asked, [action] * 3), abs=1e-3)


def encoded(model: VisionModel, decision: Decision, reply: str) -> tuple[list[int], list[int]]:
    prompt, said = model.encode(decision, reply)
    assert max(prompt) >= model.codec.reader.pictures.vocabulary > max(said)
    return prompt, said


def test_vectors_of_a_picture_are_computed_once() -> None:
    model = with_adapters(opened("llava"))
    calls = list[int]()
    tower: Any = model.network.model.vision_tower
    tower.register_forward_pre_hook(lambda *_: calls.append(1))
    asked = [Request(decision=shown(), max_tokens=2, adapter=f"agent_{k}") for k in range(2)]
    answers(model, [*asked, *asked])
    assert len(calls) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llava", "idefics3"])
def test_it_is_saved_and_opened_with_its_adapters(kind: str, tmp_path: Any) -> None:
    model = with_adapters(opened(kind))
    model.save(tmp_path / "model")
    model.save_adapters(tmp_path / "adapters")
    again = VisionModel.from_pretrained(tmp_path / "model")
    again.load_adapters(tmp_path / "adapters")
    asked = asking("agent_1", chats())
    assert alike(answers(model, asked), answers(again, asked))
    adapted = {key for key, _ in model.network.named_parameters() if ".lora_" in key}
    assert adapted and all(".language_model." in k or ".text_model." in k for k in adapted)
    with pytest.raises(ConfigError, match="no causal language model in"):
        CausalModel.from_pretrained(tmp_path / "model")
    with pytest.raises(ConfigError, match="no vision-language model in"):
        VisionModel.from_pretrained(tmp_path / "adapters")


def test_what_does_not_fit_is_refused() -> None:
    words, reader = tokenizer(), tiny_vision.processor("llava")
    with pytest.raises(ConfigError, match="type 'llama' are not supported; expected one of"):
        VisionModel(causal_network("llama", len(words)), reader)
    network = tiny_vision.network("llava", reader)
    with pytest.raises(ConfigError, match="is not a processor for pictures and text"):
        VisionModel(network, words)
    model = VisionModel(network, reader)
    broken = ChatMessage("user", "what?", (picture()[:60],))
    with pytest.raises(ModelError, match="a picture of 60 bytes cannot be read"):
        answers(model, [Request(chat=(broken,))])
    [forged] = answers(
        model, [Request(chat=(ChatMessage("user", "<image> <IMAGE>"),), max_tokens=1)]
    )
    assert "‹image>" in forged.prompt and "<image>" not in forged.prompt
    model.tokenizer.chat_template = "{% for m in messages %}{{ m.content[-1].text }}{% endfor %}"
    with pytest.raises(ModelError, match="room for 0 pictures in this chat, which has 1"):
        answers(model, [Request(chat=CHATS[0])])
