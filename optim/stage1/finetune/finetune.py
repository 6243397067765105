r"""The curriculum of stage 1 for any causal language model: SFT, SFT, then SFT and DPO.

After CollabUIAgents (arXiv 2502.14496), with trl and peft. Run it in one process, or in several:

    accelerate launch --multi_gpu --num_processes 2 -m swarm_ui finetune MODEL CORPUS OUT
"""

from __future__ import annotations

import errno
import hashlib
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from swarm_ui.adapter_metadata import AdapterMetadata, read_metadata
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.files import write_atomic
from swarm_ui.optim.stage1.corpus.exports import PARTS, Folders, gather, parts
from swarm_ui.optim.stage1.corpus.samples import HeldOut, short_hash
from swarm_ui.optim.stage1.corpus.store import check_empty, check_same, corpus_format
from swarm_ui.optim.stage1.finetune.config import FinetuneConfig
from swarm_ui.optim.stage1.finetune.stage_progress import Progress, StageSize, Watch
from swarm_ui.storage.run_directory import expect_no_links_out, installed

if TYPE_CHECKING:
    from accelerate import PartialState  # type: ignore[import-untyped]

    from swarm_ui.optim.stage1.finetune.encoding import Encoded
    from swarm_ui.optim.stage1.finetune.stage import Result

STAGES = ("1-questions", "2-instructions", "3-supervised", "4-preferences")
_STAGE_OF = dict(zip(PARTS, STAGES, strict=True))
FINAL = "final"
WEIGHTS = "adapter_model.safetensors"
_PACKAGES = ("swarm-ui", "torch", "transformers", "peft", "trl", "accelerate", "datasets")
_PREFERENCE_WORK = 4 / 3
"""Cost of a token in DPO relative to SFT; it includes a forward pass of the reference."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a fine-tuning; they cannot change when it is continued."""

    model: str
    samples: str
    """Hash of the identities of all samples."""
    config: FinetuneConfig
    prompt_format: str = "json"
    """The format of the corpus."""
    adapter: str = ""
    """Hash of the weights of the adapter that the training starts from; empty: a new one."""
    packages: dict[str, str] = {}


def finetune(
    model: Path,
    corpus: Folders,
    out: Path,
    *,
    config: FinetuneConfig | None = None,
    held_out: HeldOut | None = None,
    report: Callable[[Progress], None] | None = None,
    name: str = "",
    adapter: Path | None = None,
) -> list[Result]:
    """Train a model on a corpus, level by level; a stage without samples is skipped.

    Each stage starts from the weights of the stage before it, and DPO's reference is the model
    before DPO. Finished stages are not repeated; an interrupted stage continues from its last
    checkpoint. Prompts are rendered with the model's chat template; a model without one gets the
    plain template that :class:`swarm_ui.nodes.models.transformers.causal_model.CausalModel` uses.

    Args:
        model: folder of any causal transformer with its tokenizer, as transformers saves them.
        corpus: folder of a corpus, or several with the same prompt format.
        out: gets one folder for each stage, with ``metrics.jsonl``; and ``final``: the model, or
            with ``method="lora"`` the adapter in peft's format. Its ``swarm_ui.json`` states the
            prompt format and the base model (:mod:`swarm_ui.adapter_metadata`).
        config: settings.
        held_out: checked in addition to the rule that the corpus was made with.
        report: called after each step.
        name: a readable name of the base model; by default the name of its folder.
        adapter: folder of an adapter to start from, with its own rank and layers; ``None``: a new
            one.

    Returns:
        one result for each stage, also for stages that were finished earlier.

    Raises:
        ConfigError: the model, corpus, settings or ``out`` do not fit together, a sample is of
            a held-out task, or the disk is full.
        LearningError: a loss or a gradient was not a number.
        MissingExtra: trl or peft is not installed.
    """
    settings = config or FinetuneConfig()
    stage = _import_stage()
    prepared = _Prepared(model, corpus, settings, held_out, adapter)
    group = prepared.group
    _begin(prepared.plan, out, group)
    sizes = [prepared.size(part, group.num_processes) for part in prepared.data]
    watch = Watch(sizes, settings.minutes, report)
    about = prepared.metadata(name or model.name)
    results: list[Result] = []
    before = adapter
    with _disk_full(out):
        for part, data in prepared.data.items():
            budget = watch.begin(part)
            one = stage.Stage(part, model, before, out / part, settings, budget, about)
            results.append(one.run(data, prepared.tokenizer, group, watch.on_step))
            watch.end(results[-1].seconds)
            before = out / part
        _finish(before, out / FINAL, group)
    return results


def estimate(
    model: Path,
    corpus: Folders,
    *,
    config: FinetuneConfig | None = None,
    held_out: HeldOut | None = None,
) -> tuple[list[StageSize], float]:
    """Estimate the work of :func:`finetune`, and measure its speed on this machine.

    The speed is measured: three optimiser steps of the first stage with the real model, the first
    of which is not counted. Nothing is saved.

    Returns:
        the sizes of the stages, and tokens per second.

    Raises:
        ConfigError, MissingExtra: as :func:`finetune`.
    """
    settings = config or FinetuneConfig()
    prepared = _Prepared(model, corpus, settings, held_out)
    from swarm_ui.optim.stage1.finetune import speed

    sizes = [prepared.size(name, 1) for name in prepared.data]
    data = next(iter(prepared.data.values()))
    return sizes, speed.tokens_per_second(model, data, prepared.tokenizer, settings, prepared.group)


class _Prepared:
    """A corpus as tokens of one model."""

    def __init__(
        self,
        model: Path,
        corpus: Folders,
        config: FinetuneConfig,
        held_out: HeldOut | None,
        adapter: Path | None = None,
    ) -> None:
        stage = _import_stage()
        from swarm_ui.optim.stage1.finetune import encoding

        form = corpus_format(corpus)
        samples = gather(corpus, held_out=held_out)
        if not samples:
            raise ConfigError(f"finetune: no samples in '{corpus}'; synthesize some first")
        self.config = config
        self.group, self.tokenizer = stage.processes(), encoding.load_tokenizer(model)
        self.plan = Plan(
            model=str(model),
            samples=short_hash("\n".join(sample.id for sample in samples)),
            config=config,
            prompt_format=form,
            adapter="" if adapter is None else _checked_adapter(adapter, config, form),
        )
        self.data: dict[str, Encoded] = {}
        for kind, part in parts(samples).items():
            name, pair = _STAGE_OF[kind], kind.startswith("preference")
            if pair and not config.preferences:
                continue
            where = f"finetune, stage {name}"
            found = encoding.encode(part, pair, self.tokenizer, config, where)
            if found.rows:
                self.data[name] = found
        if not self.data:
            raise ConfigError(
                "finetune: every sample is longer than 'max_length'; raise 'max_length'"
            )

    def metadata(self, name: str) -> AdapterMetadata:
        """The metadata saved with the weights. ``name``: name of the base model."""
        return AdapterMetadata(
            prompt_format=self.plan.prompt_format,
            base_model=name,
            made_by="finetune",
            library_version=installed(["swarm-ui"]).get("swarm-ui", ""),
        )

    def size(self, name: str, processes: int) -> StageSize:
        config, data = self.config, self.data[name]
        count = len(data.rows)
        batches = math.ceil(count / (config.batch_size * processes))
        steps = config.max_steps
        if steps < 1:
            steps = math.ceil(config.epochs * math.ceil(batches / config.accumulate))
        seen = config.epochs  # how often each sample is seen
        if config.max_steps > 0:
            seen = steps * config.batch_size * config.accumulate * processes / count
        weight = _PREFERENCE_WORK if "chosen" in data.rows[0] else 1.0
        return StageSize(
            stage=name,
            samples=count,
            skipped=data.skipped,
            tokens=data.tokens,
            longest=data.longest,
            steps=steps,
            work=data.tokens * seen * weight,
            weight=weight,
        )


def _checked_adapter(folder: Path, config: FinetuneConfig, prompt_format: str) -> str:
    """Check that the training can start from an adapter; returns a hash of its weights. Raises
    ``ConfigError`` if it cannot."""
    if config.method != "lora":
        raise ConfigError(
            "finetune: training can start from an adapter only with method='lora', "
            f"got method='{config.method}' and the adapter '{folder}'; leave one of them out"
        )
    if config.layers:
        raise ConfigError(
            f"finetune: 'layers' is for a new adapter, and the adapter '{folder}' has its own; "
            "leave 'layers' out"
        )
    read_metadata(folder).expect_format(folder, prompt_format)
    try:
        weights = (folder / WEIGHTS).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"finetune: no adapter in '{folder}': {WEIGHTS}: {error.strerror or error}"
        ) from error
    return hashlib.sha256(weights).hexdigest()[:16]


def _import_stage() -> Any:
    """The module of the stages. Raises ``MissingExtra`` if trl or peft is not installed."""
    try:
        from swarm_ui.optim.stage1.finetune import stage
    except ModuleNotFoundError as error:
        raise MissingExtra("train", "fine-tuning", error.name or "trl") from None
    return stage


@contextmanager
def _disk_full(out: Path) -> Iterator[None]:
    """Turn the errors that libraries raise on a full disk into one that says what to do."""
    try:
        yield
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in (
            errno.ENOSPC,
            errno.EDQUOT,
            errno.EFBIG,
        )
        said = str(error)
        if not (full or "No space left" in said or "PytorchStreamWriter" in said
                or "File too large" in said):  # fmt: skip
            raise
        raise ConfigError(
            f"finetune: '{out}' cannot be written, the disk seems full ({said.splitlines()[0]}); "
            "free some space and repeat the command: it continues from the last complete checkpoint"
        ) from error


def _begin(plan: Plan, out: Path, group: PartialState) -> None:
    """Write the plan, or check that it equals the one of an interrupted run."""
    place = out / "finetune.json"
    expect_no_links_out(out)
    if place.exists():
        try:
            before = msgspec.json.decode(place.read_bytes(), type=Plan)
        except msgspec.DecodeError as error:
            raise ConfigError(f"'{place}' is not the plan of a fine-tuning: {error}") from error
        fields = ("model", "samples", "config", "prompt_format", "adapter")
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
    assert last is not None  # a corpus without samples is refused before
    if group.is_main_process and not final.exists():
        fresh = final.with_name(f".{final.name}.part")
        shutil.rmtree(fresh, ignore_errors=True)
        own = shutil.ignore_patterns("metrics.jsonl", "stage.json")
        shutil.copytree(last, fresh, ignore=own)
        fresh.rename(final)
    group.wait_for_everyone()
