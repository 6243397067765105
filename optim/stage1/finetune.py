r"""The curriculum of stage 1 for any causal language model: SFT, SFT, then SFT and DPO.

After CollabUIAgents (arXiv 2502.14496), with trl and peft. Run it in one process, or in several:

    accelerate launch --multi_gpu --num_processes 2 -m swarm_ui finetune MODEL CORPUS OUT
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.adapter_metadata import AdapterMetadata, read_metadata
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.files import replacing_folder
from swarm_ui.optim.config import FinetuneConfig, Result, begin
from swarm_ui.optim.stage1.corpus import PARTS, Folders, gather, rows
from swarm_ui.optim.stage1.samples import Sample, short_hash

STAGES = ("1-questions", "2-instructions", "3-supervised", "4-preferences")
FINAL = "final"
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
    """Train an adapter of a model on a corpus, level by level; a stage without samples is skipped.
    Returns one result for each stage.

    Each stage starts from the weights of the stage before it, and DPO's reference is the model
    before DPO. Finished stages are not repeated; an interrupted stage continues from its last
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
        ConfigError: the model, corpus, settings or ``out`` do not fit together, or a sample is
            held out.
        LearningError: a loss or a gradient was not a number.
        MissingExtra: trl or peft is not installed.
    """
    try:
        from swarm_ui.optim import sft
    except ModuleNotFoundError as error:
        raise MissingExtra("train", "fine-tuning", error.name or "trl") from None
    settings, samples = config or FinetuneConfig(), gather(corpus)
    sft.load_tokenizer(model)  # its error comes before anything is written
    group = sft.processes()
    about = _begin(model, samples, out, settings, adapter, name, group)
    work = {STAGES[PARTS.index(part)]: some for part, some in rows(samples).items()}
    if not settings.preferences:
        work.pop(STAGES[-1], None)
    how: Any = {"config": settings, "about": about}
    before, results = adapter, list[Result]()
    for number, (stage, some) in enumerate(work.items()):
        place = out / stage
        if not (place / "stage.json").exists():
            how["report"] = _told(report, stage, number, len(work))
            if sft.train_stage(model, before, place, some, **how) is None:
                continue
        results.append(msgspec.json.decode((place / "stage.json").read_bytes(), type=Result))
        before = place
    if not results:
        raise ConfigError("finetune: every sample is longer than 'max_length'; raise 'max_length'")
    _finish(out / results[-1].stage, out / FINAL, group)
    return results


def _told(report: Report, stage: str, number: int, stages: int) -> Callable[..., None]:
    def told(step: int, steps: int, loss: float) -> None:
        done = (number + step / max(1, steps)) / stages
        report(done, f"{stage}, step {step} of {steps}, loss {loss:.3f}")

    return told


def _finish(last: Path, final: Path, group: Any) -> None:
    """Copy the weights of the last stage to ``final``."""
    if group.is_main_process and not final.exists():
        own = shutil.ignore_patterns("metrics.jsonl", "stage.json")
        with replacing_folder(final) as made:
            shutil.copytree(last, made, ignore=own, dirs_exist_ok=True)
    group.wait_for_everyone()


def _begin(
    model: Path, samples: Sequence[Sample], out: Path, config: FinetuneConfig,
    adapter: Path | None, name: str, group: Any,
) -> AdapterMetadata:  # fmt: skip
    """Write the settings, or check that they are those of an interrupted run. Returns the metadata
    of the weights that will be saved."""
    form = samples[0].prompt_format
    plan = {
        "model": str(model),
        "samples": short_hash(msgspec.json.encode(samples).decode()),
        "config": msgspec.to_builtins(config),
        "adapter": "" if adapter is None else str(adapter),
    }
    if adapter is not None:
        if not (adapter / "adapter_model.safetensors").is_file():
            raise ConfigError(f"finetune: no adapter in '{adapter}'; name the folder of one")
        read_metadata(adapter).expect_format(adapter, form)
    with group.main_process_first():
        begin(out, "finetune.json", plan, "fine-tuning", "use the same, or choose another folder")
    return AdapterMetadata(prompt_format=form, base_model=name or model.name, made_by="finetune")
