"""The curriculum through trl and peft, on a Llama of some 50,000 weights made on the spot."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

import torch
from corpus_fakes import scripted_corpus, tiny_llama
from msgspec.structs import replace
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.optim.finetuning import Progress
from swarm_ui.optim.sft import load_tokenizer
from swarm_ui.optim.stage1 import (
    CorpusConfig,
    FinetuneConfig,
    Sample,
    finetune,
    read_corpus,
)
from swarm_ui.optim.stage1.finetune import STAGES

ROOT = Path(__file__).resolve().parents[3]
LORA = FinetuneConfig(
    max_steps=2, batch_size=2, accumulate=1, max_length=2048, bf16=False, rank=4,
    learning_rate=1e-2, preference_learning_rate=1e-2,
)  # fmt: skip
FULL = replace(LORA, method="full")
SMALL = CorpusConfig(
    prompt_format="compact", reasons=False, questions=2, instructions=2, screens=2, messages=1.0
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama(tmp_path_factory.mktemp("model") / "tiny", layers=2)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "c"
    asyncio.run(scripted_corpus(folder, 3, SMALL))
    return folder


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of level 1 alone: the first stage is all there is."""
    folder = tmp_path_factory.mktemp("questions") / "c"
    asyncio.run(scripted_corpus(folder, 3, replace(SMALL, levels=(1,))))
    return folder


@pytest.fixture(scope="module")
def tuned(model: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tuned") / "full"
    finetune(model, corpus, out, config=FULL)
    return out


@pytest.fixture(scope="module")
def adapter(model: Path, questions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("first") / "out"
    finetune(model, questions, out, config=LORA, name="tiny llama")
    return out / "final"


def weights(folder: Path) -> dict[str, torch.Tensor]:
    (path,) = folder.glob("*.safetensors")
    return load_file(path)


def distance(one: Path, other: Path) -> float:
    a, b = weights(one), weights(other)
    assert a.keys() == b.keys()
    return max((a[name] - b[name]).abs().max().item() for name in a)


def measured(stage: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (stage / "metrics.jsonl").read_text().splitlines()]


# -- the curriculum ---------------------------------------------------------------------------


@pytest.mark.slow
def test_full_weights_level_by_level(model: Path, tuned: Path) -> None:
    places = [model, *(tuned / stage for stage in STAGES)]
    for before, after in itertools.pairwise(places):
        assert 1e-4 < distance(before, after) < 0.2  # each goes on from the one before it
    assert distance(tuned / STAGES[3], tuned / "final") == 0.0
    assert not list(tuned.glob(".*"))


@pytest.mark.slow
def test_the_reference_is_the_model_before_dpo(corpus: Path, tuned: Path) -> None:
    """With full weights trl would read the reference from wherever the config says."""
    first = measured(tuned / STAGES[3])[0]
    assert first["rewards/chosen"] == first["rewards/rejected"] == 0.0
    pairs = [s for s in read_corpus(corpus) if s.rejected is not None]
    by_hand = [logprob(tuned / STAGES[2], s) for s in pairs]
    batches = [(a + b) / 2 for a, b in itertools.combinations(by_hand, 2)]
    assert min(abs(mean - first["logps/chosen"]) for mean in batches) < 0.01


def logprob(folder: Path, sample: Sample) -> float:
    """Of the response under saved weights, by hand."""
    tokenizer = load_tokenizer(folder)
    network = AutoModelForCausalLM.from_pretrained(folder)
    turns = [{"role": turn.role, "content": turn.content} for turn in sample.chat]
    prompt = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    start = len(tokenizer(prompt)["input_ids"])
    ids = torch.tensor([tokenizer(f"{prompt}{sample.response}</s>")["input_ids"]])
    with torch.no_grad():
        said = network(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])
    return float(said[start - 1 :].sum())


@pytest.mark.slow
def test_lora_loads_in_plain_peft(model: Path, corpus: Path, tmp_path: Path) -> None:
    config = replace(LORA, bf16=True, checkpointing=True, accumulate=2)
    results = finetune(model, corpus, tmp_path / "out", config=config)
    assert [result.stage for result in results] == list(STAGES)
    base = AutoModelForCausalLM.from_pretrained(model)
    ids = torch.arange(20)[None]
    before = base(ids).logits.detach()
    loaded = PeftModel.from_pretrained(base, str(tmp_path / "out" / "final"))
    assert list(loaded.peft_config) == ["default"] and loaded.peft_config["default"].r == 4
    assert (loaded(ids).logits - before).abs().max() > 1e-4
    saved = weights(tmp_path / "out" / "final")
    assert all(weight.dtype == torch.float32 for weight in saved.values())
    assert distance(tmp_path / "out" / STAGES[2], tmp_path / "out" / STAGES[3]) > 1e-4
    first = measured(tmp_path / "out" / STAGES[3])[0]
    assert first["rewards/margins"] == pytest.approx(0.0, abs=1e-2)  # of bfloat16


def test_the_loss_is_that_of_responses_alone(model: Path, questions: Path, tmp_path: Path) -> None:
    config = replace(FULL, batch_size=64, max_steps=1)
    finetune(model, questions, tmp_path / "out", config=config)
    tokenizer, by_hand, tokens = load_tokenizer(model), 0.0, 0
    for sample in read_corpus(questions):
        by_hand -= logprob(model, sample)
        tokens += len(tokenizer(f"{sample.response}</s>")["input_ids"])
    loss = measured(tmp_path / "out" / STAGES[0])[0]["loss"]
    assert loss == pytest.approx(by_hand / tokens, rel=0.02)


# -- one stage --------------------------------------------------------------------------------


def test_an_interrupted_stage_goes_on(model: Path, questions: Path, tmp_path: Path) -> None:
    config = replace(LORA, max_steps=6, save_steps=2)
    finetune(model, questions, tmp_path / "whole", config=config)
    seen: list[Progress] = []

    def cut(now: Progress) -> None:
        seen.append(now)
        if now.step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finetune(model, questions, tmp_path / "cut", config=config, report=cut)
    assert not (tmp_path / "cut" / "final").exists()
    (torn := tmp_path / "cut" / ".1-questions.work" / "checkpoint-5").mkdir()  # kill -9 leaves it
    (torn / "optimizer.pt").write_bytes(b"half")
    (result,) = finetune(model, questions, tmp_path / "cut", config=config, report=seen.append)
    assert result.steps == 6 and not torn.exists()
    assert [now.step for now in seen] == [1, 2, 3, 4, 5, 5, 6] and seen[-1].done == 1.0
    assert distance(tmp_path / "whole" / "final", tmp_path / "cut" / "final") == 0.0
    again = finetune(model, questions, tmp_path / "cut", config=config, report=cut)
    assert again == [result]  # nothing is repeated
    with pytest.raises(ConfigError):
        finetune(model, questions, tmp_path / "cut", config=replace(config, seed=1))


def test_a_loss_that_is_no_number_stops(model: Path, questions: Path, tmp_path: Path) -> None:
    config = replace(FULL, learning_rate=1e30, max_steps=5)
    with pytest.raises(LearningError):
        finetune(model, questions, tmp_path / "out", config=config)
    assert not (tmp_path / "out" / STAGES[0]).exists()


def test_long_samples_are_left_out_and_counted(
    model: Path, questions: Path, tmp_path: Path
) -> None:
    tokenizer = load_tokenizer(model)
    lengths = sorted(
        len(tokenizer("".join(t.content for t in s.chat) + s.response)["input_ids"])
        for s in read_corpus(questions)
    )
    config = replace(LORA, max_length=lengths[len(lengths) // 2] + 12, max_steps=1)
    (result,) = finetune(model, questions, tmp_path / "b", config=config)
    assert 0 < result.skipped < len(lengths) and result.samples == len(lengths) - result.skipped
    with pytest.raises(ConfigError):
        finetune(model, questions, tmp_path / "a", config=replace(LORA, max_length=5))


# -- an adapter to start from -----------------------------------------------------------------


def test_training_goes_on_from_the_weights_of_an_adapter(
    model: Path, questions: Path, adapter: Path, tmp_path: Path
) -> None:
    still = replace(LORA, learning_rate=1e-12, rank=64)  # the rank is that of the adapter
    finetune(model, questions, tmp_path / "same", config=still, adapter=adapter)
    assert distance(adapter, tmp_path / "same/final") < 1e-6
    finetune(model, questions, tmp_path / "more", config=LORA, adapter=adapter)
    assert distance(adapter, tmp_path / "more/final") > 1e-4
    with pytest.raises(ConfigError):
        finetune(model, questions, tmp_path / "more", config=LORA)


def test_an_adapter_that_does_not_fit_is_refused(
    model: Path, questions: Path, adapter: Path, tmp_path: Path
) -> None:
    def refused(base: Path = model, start: Path = adapter, **settings: Any) -> None:
        with pytest.raises(ConfigError):
            changed = replace(LORA, **settings)
            finetune(base, questions, tmp_path / "out", config=changed, adapter=start)

    refused(method="full")
    refused(start=tmp_path / "nothing")
    shutil.copytree(adapter, tmp_path / "json")
    about = json.loads((adapter / "swarm_ui.json").read_text())
    (tmp_path / "json/swarm_ui.json").write_text(json.dumps({**about, "prompt_format": "json"}))
    refused(start=tmp_path / "json")
    assert not (tmp_path / "out").exists()
    refused(base=tiny_llama(tmp_path / "other", layers=1))


# -- what goes wrong --------------------------------------------------------------------------


def test_what_does_not_fit_together(
    model: Path, corpus: Path, questions: Path, tmp_path: Path
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("mine")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "finetune.json").write_text("{}")
    asyncio.run(
        scripted_corpus(tmp_path / "long", 1, replace(SMALL, prompt_format="json", levels=(1,)))
    )
    for base, folder, out in (
        (tmp_path / "nowhere", corpus, "a"),
        (model, tmp_path, "a"),
        (model, corpus, "b"),
        (model, questions, "d"),
        (model, [corpus, tmp_path / "long"], "a"),
    ):
        with pytest.raises(ConfigError):
            finetune(base, folder, tmp_path / out)  # type: ignore[arg-type]
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)  # seconds of work; on a busy machine it gets little of it
def test_two_processes_train_together(model: Path, corpus: Path, tmp_path: Path) -> None:
    settings = {"max_steps": 2, "batch_size": 1, "accumulate": 1, "bf16": "false"}
    words = [f"finetune.{name}={value}" for name, value in settings.items()]
    done = subprocess.run(
        [
            sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu",
            "--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no",
            "--dynamo_backend", "no", "--main_process_port", "0",
            "-m", "swarm_ui", "finetune", str(model), str(corpus), str(tmp_path / "two"),
            "--json", *words,
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    (said,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [stage["steps"] for stage in said["stages"]] == [2, 2, 2, 2]
    assert distance(tmp_path / "two" / STAGES[3], tmp_path / "two" / "final") == 0.0
