"""The curriculum through trl and peft, on a Llama of some 50,000 weights made on the spot."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from corpus_fakes import jobs, scripted_corpus, tiny_llama
from peft import PeftModel
from safetensors.torch import load_file
from swarm_ui.optim.stage1.__main__ import main
from transformers import AutoModelForCausalLM

from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.model import Request
from swarm_ui.nodes.models.transformers.causal_model import CausalModel
from swarm_ui.optim.stage1 import (
    CorpusConfig,
    FinetuneConfig,
    HeldOut,
    Sample,
    finetune,
    read_corpus,
)
from swarm_ui.optim.stage1.finetune import stage as stage_module
from swarm_ui.optim.stage1.finetune.encoding import encode, load_tokenizer
from swarm_ui.optim.stage1.finetune.finetune import STAGES
from swarm_ui.optim.stage1.finetune.stage import Stage, _Finite, processes
from swarm_ui.optim.stage1.finetune.timing import Timer

ROOT = Path(__file__).resolve().parents[3]
QUICK = {"max_steps": 2, "batch_size": 2, "accumulate": 1, "max_length": 2048, "bf16": False,
         "learning_rate": 1e-2, "preference_learning_rate": 1e-2, "by_length": False}  # fmt: skip
SMALL = CorpusConfig(questions=2, instructions=2, screens=2, messages=1.0)


def quick(**other: Any) -> FinetuneConfig:
    return FinetuneConfig(**{**QUICK, **other})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "c"
    asyncio.run(scripted_corpus(folder, 3, SMALL))
    return folder


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of level 1 alone: the first stage is all there is."""
    folder = tmp_path_factory.mktemp("questions") / "c"
    asyncio.run(scripted_corpus(folder, 3, CorpusConfig(questions=4, screens=2, levels=(1,))))
    return folder


@pytest.fixture(scope="module")
def tuned(model: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tuned") / "full"
    finetune(model, corpus, out, config=quick(method="full"))
    return out


def weights(folder: Path) -> dict[str, torch.Tensor]:
    (path,) = folder.glob("*.safetensors")
    return load_file(path)


def distance(one: Path, other: Path) -> float:
    a, b = weights(one), weights(other)
    assert a.keys() == b.keys()
    return max((a[name] - b[name]).abs().max().item() for name in a)


def measured(stage: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (stage / "metrics.jsonl").read_text().splitlines()]


def expect_alike(one: Path, other: Path) -> None:
    """Two stages with the same losses and gradients at every step.

    Not the same weights: AdamW makes the rounding of gradients near zero visible in them, and a
    loss hardly depends on such weights.
    """
    names = ("loss", "grad_norm")
    steps = [[line for line in measured(stage) if names[1] in line] for stage in (one, other)]
    assert steps[0] and len(steps[0]) == len(steps[1])
    for ours, theirs in zip(*steps, strict=True):
        for name in names:
            assert theirs[name] == pytest.approx(ours[name], rel=1e-3, abs=1e-5), name


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


def test_the_loss_is_taken_on_responses_alone(model: Path, questions: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(model)
    samples = list(read_corpus(questions))
    config = quick(method="full")
    data = encode(samples, False, tokenizer, config, "here")
    stage = Stage("1-questions", model, None, tmp_path / "s", config)
    timer = Timer(stage.work, processes(), None)
    trainer = stage.trainer(data, tokenizer, timer)
    for row, sample in zip(trainer.train_dataset, samples, strict=True):
        marked = [t for t, label in zip(row["input_ids"], row["labels"], strict=True) if label >= 0]
        assert tokenizer.decode(marked) == f"{sample.response}</s>"
    batch = next(iter(trainer.get_train_dataloader()))
    for ids, labels in zip(batch["input_ids"], batch["labels"], strict=True):
        said = tokenizer.decode(ids[labels >= 0])
        assert said in {f"{sample.response}</s>" for sample in samples}


@pytest.mark.slow
def test_an_agent_reads_the_prompts_it_was_trained_on(corpus: Path, tuned: Path) -> None:
    agent = CausalModel.from_pretrained(tuned / "final")
    sample = next(s for s in read_corpus(corpus) if s.level == 3)
    tokenizer = load_tokenizer(tuned / "final")
    turns = [{"role": turn.role, "content": turn.content} for turn in sample.chat]
    trained = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    (said,) = asyncio.run(agent.generate([Request(chat=sample.chat, max_tokens=2)]))
    assert said.prompt == trained
    whole = tokenizer.apply_chat_template(
        [*turns, {"role": "assistant", "content": sample.response}], tokenize=False
    )
    assert whole == f"{trained}{sample.response}</s>"


def test_a_plain_template_is_what_agents_used_before(model: Path, corpus: Path) -> None:
    """Training must not change how a model without a template is asked."""
    before = CausalModel.from_pretrained(model)
    assert before.tokenizer.chat_template is None
    sample = next(iter(read_corpus(corpus)))
    (said,) = asyncio.run(before.generate([Request(chat=sample.chat, max_tokens=1)]))
    turns = [{"role": turn.role, "content": turn.content} for turn in sample.chat]
    assert said.prompt == load_tokenizer(model).apply_chat_template(
        turns, tokenize=False, add_generation_prompt=True
    )


@pytest.mark.slow
def test_lora_loads_in_plain_peft(model: Path, corpus: Path, tmp_path: Path) -> None:
    config = quick(method="lora", rank=4, bf16=True, checkpointing=True, accumulate=2)
    results = finetune(model, corpus, tmp_path / "out", config=config)
    assert [result.stage for result in results] == list(STAGES)
    base = AutoModelForCausalLM.from_pretrained(model)
    ids = torch.arange(20)[None]
    before = base(ids).logits.detach()
    loaded = PeftModel.from_pretrained(base, str(tmp_path / "out" / "final"))
    assert list(loaded.peft_config) == ["default"]
    assert loaded.peft_config["default"].r == 4
    assert (loaded(ids).logits - before).abs().max() > 1e-4
    saved = weights(tmp_path / "out" / "final")
    assert all(weight.dtype == torch.float32 for weight in saved.values())
    assert not any("ref" in name for name in saved)
    assert distance(tmp_path / "out" / STAGES[2], tmp_path / "out" / STAGES[3]) > 1e-4
    first = measured(tmp_path / "out" / STAGES[3])[0]
    assert first["rewards/margins"] == pytest.approx(0.0, abs=1e-2)  # of bfloat16


@pytest.mark.slow
def test_stages_done_are_not_done_again(
    model: Path, corpus: Path, tuned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(stage_module, "_SFT", None)
    monkeypatch.setattr(stage_module, "_DPO", None)
    results = finetune(model, corpus, tuned, config=quick(method="full"))
    assert [result.steps for result in results] == [2, 2, 2, 2]
    with pytest.raises(ConfigError, match="created with another 'config'"):
        finetune(model, corpus, tuned, config=quick(method="full", seed=1))


# -- one stage --------------------------------------------------------------------------------


@pytest.mark.slow
def test_accumulated_batches_are_one_batch(model: Path, questions: Path, tmp_path: Path) -> None:
    whole, parts = quick(method="full", batch_size=4), quick(method="full", accumulate=2)
    finetune(model, questions, tmp_path / "whole", config=whole)
    finetune(model, questions, tmp_path / "parts", config=parts)
    expect_alike(tmp_path / "whole" / STAGES[0], tmp_path / "parts" / STAGES[0])


@pytest.mark.slow
def test_an_interrupted_stage_goes_on(
    model: Path, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = quick(method="full", max_steps=6, save_steps=2)
    finetune(model, questions, tmp_path / "whole", config=config)

    class Cut(_Finite):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if state.global_step == 5:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stage_module, "_Finite", Cut)
        with pytest.raises(KeyboardInterrupt):
            finetune(model, questions, tmp_path / "cut", config=config)
    assert not (tmp_path / "cut" / "final").exists()
    (result,) = finetune(model, questions, tmp_path / "cut", config=config)
    assert result.steps == 6
    assert distance(tmp_path / "whole" / "final", tmp_path / "cut" / "final") == 0.0


@pytest.mark.slow
def test_it_learns(model: Path, questions: Path, tmp_path: Path) -> None:
    config = quick(method="full", max_steps=40, learning_rate=2e-2)
    finetune(model, questions, tmp_path / "out", config=config)
    losses = [line["loss"] for line in measured(tmp_path / "out" / STAGES[0]) if "loss" in line]
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])


@pytest.mark.slow
def test_a_loss_that_is_no_number_stops(model: Path, questions: Path, tmp_path: Path) -> None:
    config = quick(method="full", learning_rate=1e30, max_steps=5)
    with pytest.raises(LearningError, match="stage 1-questions: the loss is"):
        finetune(model, questions, tmp_path / "out", config=config)
    assert not (tmp_path / "out" / STAGES[0]).exists()


def test_a_gradient_that_is_no_number_stops() -> None:
    at, finite = SimpleNamespace(global_step=3), _Finite("2-instructions")
    finite.on_log(None, at, None, logs={"loss": 0.5, "grad_norm": 1.0})
    with pytest.raises(LearningError, match="2-instructions: the gradient's norm is nan at step 3"):
        finite.on_log(None, at, None, logs={"loss": 0.5, "grad_norm": float("nan")})


def test_long_samples_are_an_error_or_counted(model: Path, questions: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="more than 300 tokens, the longest 323"):
        finetune(model, questions, tmp_path / "a", config=quick(max_length=300))
    tokenizer = load_tokenizer(model)
    lengths = sorted(
        len(tokenizer("".join(t.content for t in s.chat) + s.response)["input_ids"])
        for s in read_corpus(questions)
    )
    middle = lengths[len(lengths) // 2]
    config = quick(max_length=middle, too_long="skip", max_steps=1)
    (result,) = finetune(model, questions, tmp_path / "b", config=config)
    assert 0 < result.skipped < len(lengths) and result.samples == len(lengths) - result.skipped


# -- what goes wrong --------------------------------------------------------------------------


def test_what_does_not_fit_together(
    model: Path, corpus: Path, questions: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="no model in"):
        finetune(tmp_path / "nowhere", corpus, tmp_path / "a")
    with pytest.raises(ConfigError, match="no corpus in"):
        finetune(model, tmp_path, tmp_path / "a")
    task = jobs(3)[0][0]
    with pytest.raises(ConfigError, match=f"task '{task}'"):
        finetune(model, corpus, tmp_path / "a", held_out=HeldOut.of(tasks=[task]))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds no fine-tuning"):
        finetune(model, corpus, tmp_path / "b")
    loud = tiny_llama(
        tmp_path / "loud",
        template="{% for m in messages %}{{ m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}GO{% endif %}",
    )
    with pytest.raises(ConfigError, match="is not the beginning of the text"):
        finetune(loud, questions, tmp_path / "c", config=quick())


@pytest.mark.parametrize(
    "wrong", [{"method": "qlora"}, {"batch_size": 0}, {"beta": 0.0}, {"supervised": -1.0}]
)
def test_settings_that_mean_nothing(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        quick(**wrong)


# -- the command, and several processes -------------------------------------------------------


def test_the_command(
    model: Path, questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["counts", str(questions)]) == 0
    assert json.loads(capsys.readouterr().out)["samples"]["level 1"] > 0
    assert main(["export", str(questions), "alpaca", str(tmp_path / "e")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("dataset_info.json")
    settings = [word for name, value in QUICK.items() for word in ("--set", f"{name}={value}")]
    assert main(["finetune", str(model), str(questions), str(tmp_path / "f"), *settings]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["steps"] == 2
    assert main(["finetune", str(model), str(questions), str(tmp_path / "g"), "--set", "x=1"]) == 2
    assert "expected NAME=VALUE" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(900)  # seconds of work; on a busy machine it gets little of it
@pytest.mark.parametrize("method", ["full", "lora"])
def test_two_processes_are_one(model: Path, corpus: Path, tmp_path: Path, method: str) -> None:
    """Half the batch in each process gives the weights of the whole batch in one."""
    settings = {**QUICK, "method": method, "supervised": 0.0}
    finetune(model, corpus, tmp_path / "one", config=FinetuneConfig(**settings))
    words = [
        word
        for name, value in {**settings, "batch_size": 1}.items()
        for word in ("--set", f"finetune.{name}={str(value).lower()}")
    ]
    done = subprocess.run(
        [
            sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu",
            "--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no",
            "--dynamo_backend", "no", "--main_process_port", "0",
            "-m", "swarm_ui", "finetune",
            str(model), str(corpus), str(tmp_path / "two"), "--json", *words,
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    (said,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [stage["processes"] for stage in said["stages"]] == [2, 2, 2, 2]
    for stage in STAGES:
        expect_alike(tmp_path / "one" / stage, tmp_path / "two" / stage)
