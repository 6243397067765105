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


def logprob(model: Path, sample: Sample, adapter: Path | None = None) -> float:
    """Of the response under saved weights, by hand."""
    tokenizer = load_tokenizer(model)
    network: Any = AutoModelForCausalLM.from_pretrained(model)
    if adapter is not None:
        network = PeftModel.from_pretrained(network, str(adapter))
    turns = [{"role": turn.role, "content": turn.content} for turn in sample.chat]
    prompt = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    start = len(tokenizer(prompt)["input_ids"])
    ids = torch.tensor([tokenizer(f"{prompt}{sample.response}</s>")["input_ids"]])
    with torch.no_grad():
        said = network(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])
    return float(said[start - 1 :].sum())


@pytest.mark.slow
def test_the_curriculum_level_by_level(model: Path, corpus: Path, tmp_path: Path) -> None:
    out, config = tmp_path / "out", replace(LORA, checkpointing=True, accumulate=2)
    results = finetune(model, corpus, out, config=config)
    assert [result.stage for result in results] == list(STAGES)
    for before, after in itertools.pairwise(out / stage for stage in STAGES):
        assert distance(before, after) > 1e-4  # each goes on from the one before it
    assert distance(out / STAGES[3], out / "final") == 0.0 and not list(out.glob(".*"))
    assert all(weight.dtype == torch.float32 for weight in weights(out / "final").values())
    base = AutoModelForCausalLM.from_pretrained(model)
    loaded = PeftModel.from_pretrained(base, str(out / "final"))
    assert list(loaded.peft_config) == ["default"] and loaded.peft_config["default"].r == 4
    # The reference of DPO is the model before it.
    first = measured(out / STAGES[3])[0]
    assert first["rewards/chosen"] == first["rewards/rejected"] == 0.0
    pairs = [s for s in read_corpus(corpus) if s.rejected is not None]
    by_hand = [logprob(model, s, out / STAGES[2]) for s in pairs]
    batches = [sum(some) / 4 for some in itertools.combinations(by_hand, 4)]
    assert min(abs(mean - first["logps/chosen"]) for mean in batches) < 0.01


def test_the_loss_is_that_of_responses_alone(model: Path, questions: Path, tmp_path: Path) -> None:
    config = replace(LORA, batch_size=64, max_steps=1)
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
    seen: list[float] = []

    def cut(done: float, note: str) -> None:
        seen.append(round(6 * done))
        if "step 5 of 6" in note:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finetune(model, questions, tmp_path / "cut", config=config, report=cut)
    assert not (tmp_path / "cut" / "final").exists()
    (torn := tmp_path / "cut" / ".1-questions.work" / "checkpoint-5").mkdir()  # kill -9 leaves it
    (torn / "optimizer.pt").write_bytes(b"half")
    (result,) = finetune(
        model, questions, tmp_path / "cut", config=config,
        report=lambda done, _: seen.append(round(6 * done)),
    )  # fmt: skip
    assert result.steps == 6 and not torn.exists()
    assert seen == [1, 2, 3, 4, 5, 5, 6]
    assert distance(tmp_path / "whole" / "final", tmp_path / "cut" / "final") == 0.0
    again = finetune(model, questions, tmp_path / "cut", config=config, report=cut)
    assert again == [result]  # nothing is repeated
    with pytest.raises(ConfigError):
        finetune(model, questions, tmp_path / "cut", config=replace(config, seed=1))


def test_a_loss_that_is_no_number_stops(model: Path, questions: Path, tmp_path: Path) -> None:
    config = replace(LORA, learning_rate=1e30, max_steps=5)
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


@pytest.mark.slow
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
    shutil.copytree(adapter, tmp_path / "json")
    about = json.loads((adapter / "swarm_ui.json").read_text())
    (tmp_path / "json/swarm_ui.json").write_text(json.dumps({**about, "prompt_format": "json"}))
    other = tiny_llama(tmp_path / "other", layers=1)
    for base, start in ((model, tmp_path / "none"), (model, tmp_path / "json"), (other, adapter)):
        with pytest.raises(ConfigError):
            finetune(base, questions, tmp_path / "out", config=LORA, adapter=start)


# -- what goes wrong --------------------------------------------------------------------------


def test_what_does_not_fit_together(
    model: Path, corpus: Path, questions: Path, tmp_path: Path
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("mine")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "finetune.json").write_text("{}")
    for base, folder, out in (
        (tmp_path / "nowhere", corpus, "a"),
        (model, tmp_path, "a"),
        (model, corpus, "b"),
        (model, questions, "d"),
    ):
        with pytest.raises(ConfigError):
            finetune(base, folder, tmp_path / out)
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
