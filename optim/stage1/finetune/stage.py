"""One stage of fine-tuning with a trainer of trl."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import accelerate  # type: ignore[import-untyped]
import msgspec
import torch
from datasets import Dataset
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedTokenizerBase, PrinterCallback, TrainerCallback
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer  # type: ignore[attr-defined]

from swarm_ui.adapter_metadata import AdapterMetadata, fingerprint, write_metadata
from swarm_ui.errors import LearningError
from swarm_ui.files import write_atomic
from swarm_ui.optim.metrics import peak_memory_mb
from swarm_ui.optim.stage1.finetune.config import FinetuneConfig
from swarm_ui.optim.stage1.finetune.encoding import Encoded
from swarm_ui.optim.stage1.finetune.reply_scoring import score_replies_only
from swarm_ui.optim.stage1.finetune.stage_progress import Step
from swarm_ui.optim.stage1.finetune.timing import Timer
from swarm_ui.optim.stage1.finetune.weights import computes_bfloat16, load_network, load_weights

_CHECKPOINTING = (
    "activation_checkpointing"  # the newer name of the setting
    if "activation_checkpointing" in SFTConfig.__dataclass_fields__
    else "gradient_checkpointing"
)

OnStep = Callable[[Step], None]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    stage: str
    samples: int
    skipped: int
    """Number of samples that were too long."""
    tokens: int = 0
    """Tokens of the samples; a prompt counts once for each of its replies."""
    longest: int = 0
    """Tokens of the longest sample."""
    steps: int
    """Optimiser steps."""
    loss: float
    """Mean loss over the stage."""
    processes: int
    seconds: float
    """Wall time of this stage, up to the last checkpoint before an interruption and after it."""
    ran_out: bool = False
    """Whether it was ended by ``minutes`` before its epochs were over."""
    peak_bytes: int
    """Peak resident memory of the main process; 0: unknown."""


def processes() -> accelerate.PartialState:
    """The group of processes that ``accelerate launch`` started; without it, only this process."""
    return accelerate.PartialState(cpu=not torch.accelerator.is_available())


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: it continues the training of the previous stage's model, and saves the result."""

    name: str
    model: Path
    """Folder of the base model."""
    before: Path | None
    """Folder of the stage before; ``None``: this is the first."""
    out: Path
    config: FinetuneConfig
    budget: float | None = None
    """Seconds for this stage; ``None``: no limit."""
    about: AdapterMetadata = field(default_factory=AdapterMetadata)
    """Metadata saved with the weights; the fingerprint of the base is added."""

    @property
    def work(self) -> Path:
        """Folder of the checkpoints."""
        return self.out.with_name(f".{self.out.name}.work")

    def run(
        self,
        data: Encoded,
        tokenizer: PreTrainedTokenizerBase,
        group: accelerate.PartialState,
        on_step: OnStep | None = None,
    ) -> Result:
        """Train, unless the stage is finished.

        Raises ``LearningError`` for a non-finite loss or gradient.
        """
        finished = self.finished()
        if finished is not None:
            return finished
        timer = Timer(self.work, group, self.budget)
        trainer = self.trainer(data, tokenizer, timer)
        trainer.add_callback(_Finite(self.name))
        trainer.add_callback(timer)
        if on_step is not None and group.is_main_process:
            trainer.add_callback(_ReportSteps(timer, on_step))
        outcome = trainer.train(resume_from_checkpoint=timer.resume())
        self._save(trainer, group)
        result = Result(
            stage=self.name,
            samples=len(data.rows),
            skipped=data.skipped,
            tokens=data.tokens,
            longest=data.longest,
            steps=outcome.global_step,
            loss=outcome.training_loss,
            processes=group.num_processes,
            seconds=timer.seconds,
            ran_out=timer.ran_out,
            peak_bytes=round((peak_memory_mb() or 0.0) * 2**20),
        )
        if group.is_main_process:
            history = [msgspec.json.encode(line) for line in trainer.state.log_history]
            write_atomic(self.out / "metrics.jsonl", b"".join(line + b"\n" for line in history))
            stated = msgspec.json.format(msgspec.json.encode(result), indent=2)
            write_atomic(self.out / "stage.json", stated)
            shutil.rmtree(self.work, ignore_errors=True)
        group.wait_for_everyone()
        return result

    def finished(self) -> Result | None:
        """The result, if the stage was finished earlier."""
        done = self.out / "stage.json"
        return msgspec.json.decode(done.read_bytes(), type=Result) if done.exists() else None

    def trainer(
        self, data: Encoded, tokenizer: PreTrainedTokenizerBase, timer: Timer, **other: Any
    ) -> Any:
        """Make the trl trainer of this stage. ``other``: arguments that replace those of the
        configuration."""
        config, rows = self.config, Dataset.from_list(data.rows)
        network = load_network(self.model, self.before, config, longest=data.longest)
        if "chosen" not in data.rows[0]:
            order = "group_by_length" if config.by_length else "random"
            arguments: Any = SFTConfig(
                **self._arguments(config.learning_rate) | {"train_sampling_strategy": order} | other
            )
            made: Any = _SFT(
                model=network, args=arguments, train_dataset=rows, processing_class=tokenizer
            )
        else:
            both = config.supervised > 0
            arguments = DPOConfig(
                **self._arguments(config.preference_learning_rate) | other,
                beta=config.beta,
                loss_type=["sigmoid", "sft"] if both else ["sigmoid"],
                loss_weights=[1.0, config.supervised] if both else None,
            )
            # With an adapter, trl copies it into a frozen adapter named "ref". With full weights,
            # trl would load the reference from the path in the model's config; passing the
            # reference here makes it independent of this path.
            reference = None
            if config.method == "full":
                folder = self.model if self.before is None else self.before
                reference = load_weights(folder, config, longest=data.longest)
            made = _DPO(
                model=network,
                ref_model=reference,
                args=arguments,
                train_dataset=rows,
                processing_class=tokenizer,
            )
            if reference is not None:
                score_replies_only(reference)
        score_replies_only(network)
        made.timer = timer
        made.remove_callback(PrinterCallback)
        return made

    def _arguments(self, learning_rate: float) -> dict[str, Any]:
        config = self.config
        return {
            "output_dir": str(self.work),
            "per_device_train_batch_size": config.batch_size,
            "gradient_accumulation_steps": config.accumulate,
            "num_train_epochs": config.epochs,
            "max_steps": config.max_steps,
            "learning_rate": learning_rate,
            "weight_decay": config.weight_decay,
            "max_length": config.max_length,
            "bf16": computes_bfloat16(config),
            _CHECKPOINTING: config.checkpointing,
            "seed": config.seed,
            "save_steps": config.save_steps,
            "save_total_limit": 2,
            "logging_steps": 1,
            "logging_nan_inf_filter": False,
            "disable_tqdm": True,
            "report_to": "none",
            "use_cpu": not torch.accelerator.is_available(),
            "dataloader_pin_memory": torch.accelerator.is_available(),
        }

    def _save(self, trainer: Any, group: accelerate.PartialState) -> None:
        """Save weights and tokenizer; the folder appears only when it is complete."""
        network = trainer.accelerator.unwrap_model(trainer.model)
        if "ref" in getattr(network, "peft_config", {}):
            network.delete_adapter("ref")
        fresh = self.out.with_name(f".{self.out.name}.part")
        if group.is_main_process:
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.rmtree(self.out, ignore_errors=True)  # without stage.json it is incomplete
        group.wait_for_everyone()
        trainer.save_model(str(fresh))
        group.wait_for_everyone()
        if group.is_main_process:
            # A pickle that contains local paths.
            (fresh / "training_args.bin").unlink(missing_ok=True)
            write_metadata(fresh, self._metadata(network))
            fresh.rename(self.out)
        group.wait_for_everyone()

    def _metadata(self, network: Any) -> AdapterMetadata:
        if not hasattr(network, "peft_config"):
            return self.about
        weights = network.get_base_model().state_dict().items()
        base = fingerprint(weight for name, weight in weights if ".lora_" not in name)
        return msgspec.structs.replace(self.about, base_fingerprint=base)


class _Scheduled:
    """A trainer whose learning rate follows a :class:`Timer`."""

    timer: Timer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        trainer: Any = self
        if trainer.lr_scheduler is None:
            trainer.lr_scheduler = LambdaLR(
                optimizer or trainer.optimizer,
                lambda step: self.timer.rate(step, num_training_steps),
            )
        return trainer.lr_scheduler


class _SFT(_Scheduled, SFTTrainer):
    pass


class _DPO(_Scheduled, DPOTrainer):
    pass


class _ReportSteps(TrainerCallback):
    """Calls the caller's ``on_step`` after each step."""

    def __init__(self, timer: Timer, on_step: OnStep) -> None:
        self._timer, self._on_step = timer, on_step
        self._first, self._began = 0, 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._first, self._began = state.global_step, self._timer.seconds

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        loss = (logs or {}).get("loss")
        if loss is None:
            return
        seconds = self._timer.seconds
        self._on_step(
            Step(
                step=state.global_step,
                steps=state.max_steps,
                loss=float(loss),
                share=self._timer.share(state.global_step, state.max_steps),
                seconds=seconds,
                first=self._first,
                tokens=float(logs["num_tokens"]),  # trl counts those of this process
                trained=seconds - self._began,
            )
        )


class _Finite(TrainerCallback):
    """Ends the training with a ``LearningError`` if a loss or gradient is not finite; transformers
    alone would continue."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        for name, what in (("loss", "loss"), ("grad_norm", "gradient's norm")):
            value = (logs or {}).get(name)
            if value is not None and not math.isfinite(value):
                raise LearningError(
                    f"finetune, stage {self._stage}: the {what} is {value} at step "
                    f"{state.global_step}; lower the learning rate. The earlier stages are saved"
                )
