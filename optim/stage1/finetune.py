r"""The curriculum of stage 1 for any causal language model: SFT, SFT, then SFT and DPO.

After CollabUIAgents (arXiv 2502.14496), with trl and peft. Run it in one process, or in several:

    accelerate launch --multi_gpu --num_processes 2 -m swarm_ui finetune MODEL CORPUS OUT
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.adapter_metadata import AdapterMetadata, read_metadata
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.files import replacing_folder
from swarm_ui.optim.config import FinetuneConfig, Result, begin
from swarm_ui.optim.stage1.corpus import PARTS, Folders, Sample, gather, rows, short_hash

STAGES = ("1-questions", "2-instructions", "3-supervised", "4-preferences")
Report = Callable[[float, str], None]


def finetune(
    model: Path,
    corpus: Folders,
    out: Path,
    *,
    config: FinetuneConfig | None = None,
    report: Report = lambda done, note: None,
    name: str = "",
    adapter: Path | None = None,
) -> list[Result]:
    """Train an adapter of a model on a corpus, level by level; returns one result for each stage.

    Each stage starts from the weights of the stage before it, and DPO's reference is the model
    before DPO. Finished stages are not repeated, and an interrupted one continues from its last
    checkpoint. A model without a chat template gets the plain one of ``CausalModel``.

    Args:
        model: folder of any causal transformer with its tokenizer, as transformers saves them.
        corpus: folder of a corpus, or several with the same prompt format.
        out: gets one folder for each stage, with ``metrics.jsonl``; and ``final``: the adapter in
            peft's format with its :mod:`~swarm_ui.adapter_metadata`.
        report: called after each step with the share of all stages' steps, and a text.
        name: a readable name of the base model; by default the name of its folder.
        adapter: folder of an adapter to start from, with its own rank; ``None``: a new one.

    Raises:
        ConfigError: model, corpus, settings and ``out`` do not fit, or a sample is held out.
        LearningError: a loss or a gradient was not a number.
        MissingExtra: trl or peft is not installed.
    """
    try:
        from swarm_ui.optim import sft
    except ModuleNotFoundError as error:
        raise MissingExtra("train", "fine-tuning", error.name or "trl") from None
    settings, samples = config or FinetuneConfig(), gather(corpus)
    sft.load_tokenizer(model)  # its error comes before anything is written
    form, group, results = samples[0].prompt_format, sft.processes(), list[Result]()
    plan = _plan(model, samples, settings, adapter)
    with group.main_process_first():
        begin(out, "finetune.json", plan, "fine-tuning", "use the same, or choose another folder")
    about = AdapterMetadata(prompt_format=form, base_model=name or model.name, made_by="finetune")
    parts = rows(samples)
    if not settings.preferences:
        parts.pop(PARTS[-1], None)
    for number, (part, some) in enumerate(parts.items()):
        stage, told = out / STAGES[PARTS.index(part)], partial(_told, report, number, len(parts))
        if not (stage / "stage.json").exists() and not sft.train_stage(
            model, adapter, stage, some, config=settings, about=about, report=told
        ):
            continue
        results.append(msgspec.json.decode((stage / "stage.json").read_bytes(), type=Result))
        adapter = stage
    if not results:
        raise ConfigError("finetune: every sample is longer than 'max_length'; raise 'max_length'")
    final, own = out / "final", shutil.ignore_patterns("metrics.jsonl", "stage.json")
    if group.is_main_process and not final.exists():
        with replacing_folder(final) as made:
            shutil.copytree(out / results[-1].stage, made, ignore=own, dirs_exist_ok=True)
    group.wait_for_everyone()
    return results


def _plan(
    model: Path, samples: Sequence[Sample], config: FinetuneConfig, adapter: Path | None
) -> dict[str, Any]:
    """The settings with which a fine-tuning continues."""
    if adapter is not None:
        if not (adapter / "adapter_model.safetensors").is_file():
            raise ConfigError(f"finetune: no adapter in '{adapter}'; name the folder of one")
        read_metadata(adapter).expect_format(adapter, samples[0].prompt_format)
    return {
        "model": str(model),
        "samples": short_hash(msgspec.json.encode(samples).decode()),
        "config": msgspec.to_builtins(config),
        "adapter": "" if adapter is None else str(adapter),
    }


def _told(report: Report, number: int, stages: int, step: int, steps: int, loss: float) -> None:
    done = (number + step / max(1, steps)) / stages
    report(done, f"stage {number + 1} of {stages}, step {step} of {steps}, loss {loss:.3f}")
