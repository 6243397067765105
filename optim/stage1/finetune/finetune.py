r"""The curriculum of stage 1 for any causal language model: SFT, SFT, then SFT and DPO.

After CollabUIAgents (arXiv 2502.14496), with trl and peft. Run it in one process, or in several:

    accelerate launch --multi_gpu --num_processes 2 \
        -m swarm_ui.optim.stage1 finetune MODEL CORPUS OUT
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.optim.stage1.corpus.exports import PARTS, Folders, conversational, gather, parts
from swarm_ui.optim.stage1.corpus.samples import HeldOut, short_hash
from swarm_ui.optim.stage1.corpus.store import check_empty, check_same
from swarm_ui.optim.stage1.finetune.config import FinetuneConfig
from swarm_ui.storage.run_directory import installed, write_atomic

if TYPE_CHECKING:
    from accelerate import PartialState  # type: ignore[import-untyped]

    from swarm_ui.optim.stage1.finetune.stage import Result

STAGES = ("1-questions", "2-instructions", "3-supervised", "4-preferences")
_STAGE_OF = dict(zip(PARTS, STAGES, strict=True))
FINAL = "final"
_PACKAGES = ("swarm-ui", "torch", "transformers", "peft", "trl", "accelerate", "datasets")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a fine-tuning; they cannot change when it is continued."""

    model: str
    samples: str
    """Hash of the identities of all samples."""
    config: FinetuneConfig
    packages: dict[str, str] = {}


def finetune(
    model: Path,
    corpus: Folders,
    out: Path,
    *,
    config: FinetuneConfig | None = None,
    held_out: HeldOut | None = None,
) -> list[Result]:
    """Train a model on a corpus, level by level; a stage without samples is skipped.

    Each stage starts from the weights of the stage before it, and DPO's reference is the model
    before DPO. Finished stages are not repeated; an interrupted stage continues from its last
    checkpoint. Prompts are rendered with the model's chat template; a model without one gets the
    plain template that :class:`swarm_ui.nodes.models.transformers.causal_model.CausalModel` uses.

    Args:
        model: folder of any causal transformer with its tokenizer, as transformers saves them.
        corpus: folder of a corpus, or several.
        out: gets one folder for each stage, with ``metrics.jsonl``; and ``final``: the model, or
            with ``method="lora"`` the adapter in peft's format.
        config: settings.
        held_out: checked in addition to the rule that the corpus was made with.

    Returns:
        one result for each stage, also for stages that were finished earlier.

    Raises:
        ConfigError: the model, corpus, settings or ``out`` do not fit together, or a sample is of
            a held-out task.
        LearningError: a loss was not a number.
        MissingExtra: trl or peft is not installed.
    """
    try:
        import peft
        import trl

        del peft, trl
        from swarm_ui.optim.stage1.finetune import stage
    except ModuleNotFoundError as error:
        raise MissingExtra("train", "fine-tuning", error.name or "trl") from None
    settings = config or FinetuneConfig()
    samples = gather(corpus, held_out=held_out)
    if not samples:
        raise ConfigError(f"finetune: no samples in '{corpus}'")
    group, tokenizer = stage.processes(), stage.load_tokenizer(model)
    digest = short_hash("\n".join(sample.id for sample in samples))
    _begin(Plan(model=str(model), samples=digest, config=settings), out, group)
    results: list[Result] = []
    before: Path | None = None
    for kind, part in parts(samples).items():
        name, pair = _STAGE_OF[kind], kind.startswith("preference")
        rows = [conversational(sample, pair=pair) for sample in part]
        skipped = stage.too_long(rows, tokenizer, settings, f"finetune, stage {name}")
        rows = [row for k, row in enumerate(rows) if k not in skipped]
        if rows:
            one = stage.Stage(name, model, before, out / name, settings)
            results.append(one.run(rows, tokenizer, group, skipped=len(skipped)))
            before = out / name
    _finish(before, out / FINAL, group)
    return results


def _begin(plan: Plan, out: Path, group: PartialState) -> None:
    """Write the plan, or check that it equals the one of an interrupted run."""
    place = out / "finetune.json"
    if place.exists():
        before = msgspec.json.decode(place.read_bytes(), type=Plan)
        fields = ("model", "samples", "config")
        check_same(before, plan, fields, out, "use the same, or choose another folder")
    else:
        check_empty(out, "fine-tuning")
    group.wait_for_everyone()
    if group.is_main_process and not place.exists():
        stated = msgspec.structs.replace(plan, packages=installed(_PACKAGES))
        write_atomic(place, msgspec.json.format(msgspec.json.encode(stated), indent=2))
    group.wait_for_everyone()


def _finish(last: Path | None, final: Path, group: PartialState) -> None:
    """Copy the weights of the last stage to ``final``."""
    if last is None:
        raise ConfigError("finetune: every sample is longer than 'max_length'; raise it")
    if group.is_main_process and not final.exists():
        fresh = final.with_name(f".{final.name}.part")
        shutil.rmtree(fresh, ignore_errors=True)
        own = shutil.ignore_patterns("metrics.jsonl", "stage.json")
        shutil.copytree(last, fresh, ignore=own)
        fresh.rename(final)
    group.wait_for_everyone()
