"""A stage of fine-tuning: what is scored, how long it takes, and what it leaves on disk."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from corpus_fakes import scripted_corpus, tiny_llama
from msgspec.structs import replace
from safetensors.torch import load_file

from swarm_ui.adapter_metadata import read_metadata
from swarm_ui.errors import ConfigError
from swarm_ui.optim.stage1 import CorpusConfig, FinetuneConfig, finetune, read_corpus
from swarm_ui.optim.stage1.finetune import reply_scoring
from swarm_ui.optim.stage1.finetune import stage as stage_module
from swarm_ui.optim.stage1.finetune.encoding import Encoded, encode, load_tokenizer
from swarm_ui.optim.stage1.finetune.finetune import estimate
from swarm_ui.optim.stage1.finetune.stage import Stage, processes
from swarm_ui.optim.stage1.finetune.stage_progress import Progress, StageSize, Step, Watch
from swarm_ui.optim.stage1.finetune.timing import Timer
from swarm_ui.optim.stage1.finetune.weights import load_network

SHORT = CorpusConfig(
    prompt_format="compact", reasons=False, questions=2, instructions=2, screens=2, messages=0.5
)
LORA = FinetuneConfig(
    max_steps=2, batch_size=2, accumulate=1, max_length=512, bf16=False, rank=4, learning_rate=1e-2
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "c"
    asyncio.run(scripted_corpus(folder, 3, SHORT))
    return folder


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions") / "c"
    asyncio.run(scripted_corpus(folder, 3, replace(SHORT, levels=(1,))))
    return folder


def encoded(model: Path, corpus: Path, level: int, *, pair: bool = False) -> Encoded:
    samples = [sample for sample in read_corpus(corpus) if sample.level == level]
    return encode(samples, pair, load_tokenizer(model), LORA, "here")


def trainer_of(model: Path, data: Encoded, folder: Path, **settings: Any) -> Any:
    stage = Stage("s", model, None, folder / "s", replace(LORA, **settings))
    return stage.trainer(data, load_tokenizer(model), Timer(stage.work, processes(), None))


# -- scores of replies ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "pair"),
    [
        (4096, False),
        (3, True),
        pytest.param(4096, True, marks=pytest.mark.slow),
        pytest.param(3, False, marks=pytest.mark.slow),
    ],
)
def test_scores_of_replies_are_those_of_trl(
    model: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    pair: bool, rows: int,
) -> None:  # fmt: skip
    """The loss, the gradients and the reported measures; also if a reply is scored in parts."""
    data = encoded(model, corpus, 3, pair=pair)
    monkeypatch.setattr(reply_scoring, "_ROWS", rows)

    def computed(folder: str) -> tuple[float, list[torch.Tensor], dict[str, float]]:
        trainer = trainer_of(model, data, tmp_path / folder)
        torch.manual_seed(0)
        batch = next(iter(trainer.get_train_dataloader()))
        trainer.model.train()
        loss = trainer.compute_loss(trainer.model, trainer._prepare_inputs(batch))
        loss.backward()
        gradients = [p.grad for p in trainer.model.parameters() if p.grad is not None]
        return loss.item(), gradients, {k: v[0] for k, v in trainer._metrics["train"].items()}

    ours = computed("ours")
    with monkeypatch.context() as patch:
        patch.setattr(stage_module, "score_replies_only", lambda network: False)
        theirs = computed("theirs")
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5)
    assert len(ours[1]) == len(theirs[1]) > 0
    for mine, other in zip(ours[1], theirs[1], strict=True):
        assert torch.allclose(mine, other, atol=1e-6)
    assert ours[2] == pytest.approx(theirs[2], rel=1e-4, abs=1e-6)


def test_only_tokens_of_replies_are_projected(model: Path, corpus: Path, tmp_path: Path) -> None:
    data = encoded(model, corpus, 2)
    trainer = trainer_of(model, data, tmp_path)
    head, seen = trainer.model.get_output_embeddings(), []
    head.register_forward_hook(lambda module, given, made: seen.append(made.shape))
    batch = next(iter(trainer.get_train_dataloader()))
    trainer.compute_loss(trainer.model, trainer._prepare_inputs(batch))
    replies = int((batch["labels"][:, 1:] >= 0).sum())
    assert [shape[0] for shape in seen] == [replies] and replies < batch["labels"].numel() / 4


def test_a_model_that_scales_its_logits_keeps_the_computation_of_trl(model: Path) -> None:
    network = load_network(model, None, replace(LORA, method="full"), longest=64)
    network.config.final_logit_softcapping = 30.0
    assert not reply_scoring.score_replies_only(network)


# -- weights ----------------------------------------------------------------------------------


def test_chosen_layers_get_an_adapter(tmp_path: Path, questions: Path) -> None:
    deep = tiny_llama(tmp_path / "deep", layers=3)
    config = replace(LORA, layers=(1, 2))
    finetune(deep, questions, tmp_path / "out", config=config)
    saved = load_file(tmp_path / "out" / "final" / "adapter_model.safetensors")
    assert {name.split("layers.")[1][0] for name in saved} == {"1", "2"}
    with pytest.raises(ConfigError, match=r"names layer 3, and the model in .* has the layers 0"):
        finetune(deep, questions, tmp_path / "no", config=replace(LORA, layers=(3,)))
    with pytest.raises(ConfigError, match="with method='full' all weights are trained"):
        replace(LORA, layers=(1,), method="full").__post_init__()


def test_frozen_weights_are_in_bfloat16_and_trained_ones_in_float32(model: Path) -> None:
    network = load_network(model, None, replace(LORA, bf16=True), longest=64)
    kinds = {name: weight.dtype for name, weight in network.named_parameters()}
    assert {d for n, d in kinds.items() if "lora_" in n or "norm" in n} == {torch.float32}
    assert {d for n, d in kinds.items() if "lora_" not in n and "norm" not in n} == {torch.bfloat16}


def test_long_samples_use_a_fused_attention(model: Path) -> None:
    if torch.accelerator.is_available():
        pytest.skip("on a CPU alone")
    for longest, kind in ((64, "eager"), (100_000, "sdpa")):
        network = load_network(model, None, LORA, longest=longest)
        assert network.get_base_model().config._attn_implementation == kind


def test_the_adapter_says_what_it_is_for(model: Path, questions: Path, tmp_path: Path) -> None:
    finetune(model, questions, tmp_path / "out", config=LORA, name="tiny llama")
    about = read_metadata(tmp_path / "out" / "final")
    assert (about.prompt_format, about.base_model) == ("compact", "tiny llama")
    from swarm_ui.nodes.models.transformers.adapters.adapter_folders import folder_fingerprint

    assert about.base_fingerprint == folder_fingerprint(model)


# -- time -------------------------------------------------------------------------------------


def test_the_rate_falls_with_the_steps_or_with_the_time(tmp_path: Path) -> None:
    timer = Timer(tmp_path, processes(), budget=100.0)
    assert [round(timer.rate(step, 100), 3) for step in (0, 5, 10, 55, 100)] == [0, 0.5, 1, 0.5, 0]
    timer._start -= 55.0
    timer.on_step_begin(None, None, None)
    assert timer.rate(0, 100) == pytest.approx(0.5, abs=0.01)
    assert timer.rate(100, 100) == 0.0


@pytest.fixture
def ten_seconds_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Timer.on_step_begin

    def tick(timer: Any, *arguments: Any, **named: Any) -> None:
        timer.ticks = getattr(timer, "ticks", 0) + 1
        begin(timer, *arguments, **named)

    monkeypatch.setattr(Timer, "on_step_begin", tick)
    clock = property(lambda timer: 10.0 * getattr(timer, "ticks", 0))
    monkeypatch.setattr(Timer, "seconds", clock)


@pytest.mark.usefixtures("ten_seconds_a_step")
def test_a_stage_ends_when_its_time_is_over(model: Path, questions: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    config = replace(LORA, max_steps=50, minutes=1.0)
    (result,) = finetune(model, questions, tmp_path / "out", config=config, report=seen.append)
    assert result.ran_out and result.steps == 6
    lines = (tmp_path / "out" / "1-questions" / "metrics.jsonl").read_text().splitlines()
    rates = [json.loads(line)["learning_rate"] for line in lines if "learning_rate" in line]
    assert rates[-1] < 0.2 * max(rates)
    assert [now.left for now in seen] == [50.0, 40.0, 30.0, 20.0, 10.0, 0.0]


def stage_size(name: str, work: float, weight: float = 1.0) -> StageSize:
    return StageSize(stage=name, samples=1, skipped=0, tokens=1, longest=1, steps=1, work=work,
                     weight=weight)  # fmt: skip


def step(at: int, steps: int, *, seconds: float = 1.0, tokens: float = 1.0, first: int = 0) -> Step:
    return Step(at, steps, 0.5, at / steps, seconds, first, tokens, seconds)


def test_time_is_divided_by_the_work_that_is_left() -> None:
    seen: list[Progress] = []
    watch = Watch([stage_size("a", 1.0), stage_size("b", 2.0), stage_size("c", 1.0)], 8.0,
                  seen.append)  # fmt: skip
    assert watch.begin("a") == 120.0
    watch.on_step(step(1, 2))
    watch.end(30.0)
    assert watch.begin("b") == 300.0
    watch.on_step(step(1, 4))
    assert [now.done for now in seen] == [0.125, 0.375]


def test_the_time_that_is_left_follows_from_tokens_and_never_exceeds_the_limit() -> None:
    """Ten steps of falling length, 100 tokens a second; then a stage that costs twice as much."""
    sizes = [stage_size("a", 5_500.0), stage_size("b", 4_500.0, weight=2.0)]
    whole = 100.0
    for minutes in (None, 10.0, 0.5):
        seen: list[Progress] = []
        watch = Watch(sizes, minutes, seen.append)
        watch.begin("a")
        tokens = 0.0
        for k in range(1, 11):
            tokens += 1_100.0 - 100.0 * k
            watch.on_step(step(k, 10, seconds=tokens / 100, tokens=tokens))
        watch.end(55.0)
        watch.begin("b")
        watch.on_step(step(1, 2, seconds=22.5, tokens=1_125.0))
        limit = whole if minutes is None else min(whole, 60 * minutes)
        truth = [max(0.0, limit - s) for s in (10, 19, 27, 34, 40, 45, 49, 52, 54, 55, 77.5)]
        assert [now.left for now in seen] == pytest.approx(truth)


def test_a_stage_that_goes_on_counts_only_what_this_process_did() -> None:
    seen: list[Progress] = []
    watch = Watch([stage_size("a", 1_000.0)], None, seen.append)
    watch.begin("a")
    watch.on_step(Step(6, 10, 0.5, 0.6, 500.0, 5, 100.0, 2.0))
    assert seen[0].left == pytest.approx(400.0 * 2.0 / 100.0)


@pytest.mark.slow
@pytest.mark.usefixtures("ten_seconds_a_step")
def test_the_first_estimate_of_a_training_is_close(
    model: Path, questions: Path, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    config = replace(LORA, max_steps=12)
    finetune(model, questions, tmp_path / "out", config=config, report=seen.append)
    assert len(seen) == 12 and seen[-1].left == 0.0
    assert all(60.0 - 10 * k < now.left < 240.0 - 20 * k for k, now in enumerate(seen[:6]))


@pytest.mark.slow
def test_an_estimate_counts_and_measures(model: Path, corpus: Path, tmp_path: Path) -> None:
    config = replace(LORA, max_steps=-1, accumulate=2)
    sizes, speed = estimate(model, corpus, config=config)
    results = finetune(model, corpus, tmp_path / "out", config=config)
    for size, result in zip(sizes, results, strict=True):
        assert (size.stage, size.samples, size.steps) == (
            result.stage,
            result.samples,
            result.steps,
        )
        assert size.tokens == result.tokens and size.longest == result.longest
    assert speed > 0


# -- files ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_checkpoint_that_was_cut_off_is_not_used(
    model: Path, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(LORA, max_steps=6, save_steps=2)
    finetune(model, questions, tmp_path / "whole", config=config)

    class Cut(stage_module._Finite):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if state.global_step == 5:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stage_module, "_Finite", Cut)
        with pytest.raises(KeyboardInterrupt):
            finetune(model, questions, tmp_path / "cut", config=config)
    work = tmp_path / "cut" / ".1-questions.work"
    (torn := work / "checkpoint-5").mkdir()
    shutil.copy(work / "checkpoint-4" / "trainer_state.json", torn)
    (result,) = finetune(model, questions, tmp_path / "cut", config=config)
    assert result.steps == 6 and not work.exists()
    one, other = (
        load_file(tmp_path / name / "final" / "adapter_model.safetensors")
        for name in ("whole", "cut")
    )
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        *(
            pytest.param(RuntimeError(words), marks=pytest.mark.slow)
            for words in (
                "[enforce fail] PytorchStreamWriter failed writing file data/0",
                'Error while serializing: I/O error: "No space left on device (os error 28)"',
            )
        ),
    ],
)
def test_a_full_disk_is_one_line(
    model: Path,
    questions: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(stage_module._SFT, "save_model", full)
        with pytest.raises(ConfigError, match=r"the disk seems full .*repeat the command") as told:
            finetune(model, questions, tmp_path / "out", config=LORA)
    assert "\n" not in str(told.value)
    finetune(model, questions, tmp_path / "out", config=LORA)


def test_corpora_of_two_formats_are_refused(model: Path, corpus: Path, tmp_path: Path) -> None:
    other = tmp_path / "long"
    asyncio.run(scripted_corpus(other, 1, replace(SHORT, prompt_format="json", levels=(1,))))
    with pytest.raises(ConfigError, match="a model learns one format"):
        finetune(model, [corpus, other], tmp_path / "out", config=LORA)
    assert not (tmp_path / "out").exists()


def test_a_plan_that_is_none(model: Path, questions: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "finetune.json").write_text("{}")
    with pytest.raises(ConfigError, match="is not the plan of a fine-tuning"):
        finetune(model, questions, tmp_path / "out", config=LORA)
