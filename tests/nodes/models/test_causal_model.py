"""Any causal language model in this process: tiny random ones, made and saved on the spot."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from local_models import answers
from tiny_causal import KINDS, TEMPLATE, causal, network, screen, tokenizer
from transformers import (
    LlamaForCausalLM,
)

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import ChatMessage, Decision, Request
from swarm_ui.nodes import CausalModel
from swarm_ui.observation import Observation


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Saved models, by kind."""
    root = tmp_path_factory.mktemp("models")
    for kind in KINDS:
        words = tokenizer()
        words.save_pretrained(root / kind)
        network(kind, len(words)).save_pretrained(root / kind)
    return {kind: root / kind for kind in KINDS}


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest, folders: dict[str, Path]) -> CausalModel:
    return CausalModel.from_pretrained(folders[request.param])


@pytest.fixture
def llama(folders: dict[str, Path]) -> CausalModel:
    return CausalModel.from_pretrained(folders["llama"])


def chats(count: int = 9, **settings: Any) -> list[Request]:
    """Of very different lengths."""
    settings = {"max_tokens": 12} | settings
    return [
        Request(chat=(ChatMessage("user", f"press {'button ' * (7 * k % 23)}{k}"),), **settings)
        for k in range(count)
    ]


def continued(model: CausalModel, request: Request) -> list[int]:
    """New tokens as transformers' own loop finds them."""
    assert request.chat is not None
    turns = [{"role": turn.role, "content": turn.content} for turn in request.chat]
    read = model.tokenizer.apply_chat_template(
        turns, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    out: torch.Tensor = model.network.generate(**read, max_new_tokens=12, do_sample=False)  # type: ignore[operator]
    return out[0, read["input_ids"].shape[1] :].tolist()


def test_greedy_replies_are_those_of_transformers(model: CausalModel) -> None:
    for asked, completion in zip(chats(), answers(model, chats()), strict=True):
        out = continued(model, asked)
        assert completion.text == model.tokenizer.decode(out, skip_special_tokens=True)
        assert completion.usage.completion_tokens == len(out)


def test_a_reply_ends_at_any_end_token_and_at_its_own_limit(llama: CausalModel) -> None:
    asked, ids, end = next(
        (request, ids, k)
        for request in chats()
        for ids in [continued(llama, request)]
        for k in range(3, 12)
        if ids[k] not in ids[:k]
    )
    llama.network.generation_config.eos_token_id = [1, ids[end]]  # type: ignore[union-attr]
    again = CausalModel(llama.network, llama.tokenizer)  # type: ignore[arg-type]
    short, cut = answers(again, [asked, msgspec.structs.replace(asked, max_tokens=2)])
    assert short.text == llama.tokenizer.decode(ids[:end])
    assert short.usage.completion_tokens == end + 1
    assert cut.text == llama.tokenizer.decode(ids[:2])
    assert cut.usage.completion_tokens == 2


def test_a_tokenizer_without_a_template_gets_the_plain_one(llama: CausalModel) -> None:
    plain = CausalModel(llama.network, tokenizer(None))  # type: ignore[arg-type]
    chat = (ChatMessage("system", "Be short."), ChatMessage("user", "hi"))
    [completion] = answers(plain, [Request(chat=chat, max_tokens=1)])
    assert completion.prompt == "<s>System: Be short.\n\nUser: hi\n\nAssistant:"
    assert completion.usage.prompt_tokens == len(
        tokenizer(None).encode(completion.prompt, add_special_tokens=False)
    )


def test_a_template_without_system_turns_gets_their_content_with_that_of_the_user(
    llama: CausalModel,
) -> None:
    without = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('not supported') }}{% endif %}"
        + tokenizer().chat_template
    )
    picky = CausalModel(llama.network, tokenizer(without), prompt_format="compact")  # type: ignore[arg-type]
    [reply] = answers(picky, [Request(decision=screen(), max_tokens=20)])
    assert reply.prompt.startswith("<|user|>Operate the screen.\n\nGoal: press Save")
    chat = (ChatMessage("system", "Be brief."), ChatMessage("user", "hi"))
    assert picky.prompt(Request(chat=chat)).text == "<|user|>Be brief.\n\nhi</s><|assistant|>"
    assert llama.prompt(Request(chat=chat)).text.startswith("<|system|>Be brief.</s><|user|>hi")


def test_replies_end_as_the_turns_of_the_chat_template_do(llama: CausalModel) -> None:
    words = tokenizer(TEMPLATE.replace("{{ eos_token }}", "<s>"))
    other = CausalModel(llama.network, words, prompt_format="compact")  # type: ignore[arg-type]
    assert (other.codec.end, other.codec.stops) == (1, {1})  # <s> ends no reply of this network
    llama.network.generation_config.eos_token_id = [1, 0]  # type: ignore[union-attr]
    model = CausalModel(llama.network, words, prompt_format="compact")  # type: ignore[arg-type]
    assert model.encode(screen(), "click Save [0]")[1][-1] == model.codec.end == 0
    only = msgspec.structs.replace(screen().observation, actions=("click",))
    [reply] = answers(model, [Request(decision=Decision(observation=only), max_tokens=40)])
    assert (reply.text, reply.sampled) == ("click Save [0]", ())


def test_what_it_cannot_read_is_refused_to_its_caller_alone(llama: CausalModel) -> None:
    long = Request(chat=(ChatMessage("user", "x y " * 2000),))
    refusing = tokenizer("{{ raise_exception('no system turn, please') }}")
    picky = CausalModel(llama.network, refusing)  # type: ignore[arg-type]

    async def main() -> None:
        bad, good = await asyncio.gather(
            llama.generate([long]), llama.generate(chats(1)), return_exceptions=True
        )
        assert isinstance(bad, ModelError) and "accepts at most 2048" in str(bad)
        assert isinstance(good, list)
        with pytest.raises(ModelError, match="no system turn, please"):
            await picky.generate(chats(1))
        with pytest.raises(ModelError, match="reads text only"):
            seen = ChatMessage("user", "what is this?", (b"png",))
            await llama.generate([Request(chat=(seen,))])
        with pytest.raises(ModelError, match="either 'decision' or 'chat'"):
            await llama.generate([Request()])
        nothing = Observation(goal="press it", elements=(), actions=("click",))
        bound = causal(prompt_format="compact")
        bad, good = await asyncio.gather(
            bound.generate([Request(decision=Decision(observation=nothing))]),
            bound.generate([Request(decision=screen())]),
            return_exceptions=True,
        )
        assert isinstance(bad, ModelError) and "at least one possible reply" in str(bad)
        assert isinstance(good, list)

    asyncio.run(main())


def test_a_bad_folder_is_one_clear_error(folders: dict[str, Path], tmp_path: Path) -> None:
    def without(name: str, *patterns: str) -> Path:
        shutil.copytree(folders["llama"], tmp_path / name)
        for pattern in patterns:
            for path in (tmp_path / name).glob(pattern):
                path.unlink()
        return tmp_path / name

    torn = without("torn")
    (torn / "model.safetensors").write_bytes(b"not weights")
    partial = LlamaForCausalLM.from_pretrained(folders["llama"])
    state = {k: v for k, v in partial.state_dict().items() if "layers.1" not in k}
    partial.save_pretrained(without("partial", "*.safetensors"), state_dict=state)
    (tmp_path / "empty").mkdir()
    for folder, said in (
        (tmp_path / "nowhere", "no such folder"),
        (str(tmp_path / "nowhere"), "no causal language model in"),
        (tmp_path / "empty", "no causal language model in"),
        (torn, "no causal language model in"),
        (tmp_path / "partial", "lack"),
    ):
        with pytest.raises(ConfigError, match=said):
            CausalModel.from_pretrained(folder)
    bigger = tokenizer()
    bigger.add_tokens(["more", "words"])
    with pytest.raises(ConfigError, match="do not belong together"):
        CausalModel(network("llama", len(tokenizer())), bigger)
    endless = tokenizer()
    endless.eos_token = None
    made = network("llama", len(endless))
    made.generation_config.eos_token_id = None  # type: ignore[union-attr]
    with pytest.raises(ConfigError, match="names an end token"):
        CausalModel(made, endless)
