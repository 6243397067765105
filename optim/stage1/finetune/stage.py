"""One stage of fine-tuning with a trainer of trl."""

from __future__ import annotations

import math
import resource
import shutil
import time
from pathlib import Path
from typing import Any

import accelerate  # type: ignore[import-untyped]
import msgspec
import torch
from datasets import Dataset  # type: ignore[import-untyped]
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedTokenizerBase,
    PrinterCallback,
    TrainerCallback,
)
from transformers.trainer_utils import get_last_checkpoint
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer  # type: ignore[attr-defined]

from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.optim.stage1.corpus.exports import Row
from swarm_ui.optim.stage1.finetune.config import FinetuneConfig
from swarm_ui.storage.run_directory import write_atomic

_UNLOADABLE = (OSError, ValueError, KeyError, RuntimeError, ImportError)
_PLAIN = (
    "{{ bos_token or '' }}{% for turn in messages %}"
    "{% if turn['role'] == 'assistant' %}Assistant:{{ turn['content'] }}{{ eos_token }}"
    "{% else %}{{ turn['role'] | capitalize }}: {{ turn['content'] }}{{ '\n\n' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)
"""The prompt that :class:`swarm_ui.nodes.models.transformers.causal_model.CausalModel` builds for a
tokenizer without a template, followed by the reply and the end token."""


_CHECKPOINTING = (
    "activation_checkpointing"  # the newer name of the setting
    if "activation_checkpointing" in SFTConfig.__dataclass_fields__
    else "gradient_checkpointing"
)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    stage: str
    samples: int
    skipped: int
    """Number of samples that were too long."""
    steps: int
    """Optimiser steps."""
    loss: float
    """Mean over the stage."""
    processes: int
    seconds: float
    """Wall time of this stage, in the process that finished it."""
    peak_bytes: int
    """Peak resident memory of the main process."""


def processes() -> accelerate.PartialState:
    """The group of processes that ``accelerate launch`` started; without it, only this process."""
    return accelerate.PartialState(cpu=not torch.accelerator.is_available())


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The model's tokenizer, with a plain chat template if it has none.

    Raises:
        ConfigError: there is none, or it has no end token.
    """
    if not folder.is_dir():
        raise ConfigError(f"finetune: no model in '{folder}': there is no such folder")
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
    except _UNLOADABLE as error:
        raise ConfigError(f"finetune: no tokenizer in '{folder}': {error}") from error
    if tokenizer.eos_token is None:
        raise ConfigError(f"finetune: the tokenizer in '{folder}' has no end token (eos_token)")
    if tokenizer.chat_template is None:
        tokenizer.chat_template = _PLAIN
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer  # type: ignore[no-any-return]


def too_long(
    rows: list[Row], tokenizer: PreTrainedTokenizerBase, config: FinetuneConfig, where: str
) -> frozenset[int]:
    """Indices of the rows that are longer than ``max_length``.

    Raises:
        ConfigError: a row is too long and ``too_long`` is ``"error"``, or the chat template renders
            a prompt differently if a reply follows it.
    """
    found = []
    for place, row in enumerate(rows):
        sides = [row[key] for key in ("completion", "chosen", "rejected") if key in row]
        prompt = _ids(tokenizer, row["prompt"], where, add_generation_prompt=True)
        whole = [_ids(tokenizer, row["prompt"] + side, where) for side in sides]
        if any(ids[: len(prompt)] != prompt for ids in whole):
            raise ConfigError(
                f"{where}: with the tokenizer's chat template, the text of a prompt "
                "(add_generation_prompt=True) is not the beginning of the text of the same prompt "
                "with its reply. The model would be trained on prompts that differ from those at "
                "inference; use another chat template"
            )
        if max(map(len, whole)) > config.max_length:
            found.append(place)
    if found and config.too_long == "error":
        raise ConfigError(
            f"{where}: {len(found)} of {len(rows)} samples have more than {config.max_length} "
            "tokens; raise 'max_length', or set too_long='skip' to skip them"
        )
    return frozenset(found)


class Stage:
    """Trains the model of the stage before, and saves it."""

    def __init__(
        self, name: str, model: Path, before: Path | None, out: Path, config: FinetuneConfig
    ) -> None:
        self.name, self.out, self._config = name, out, config
        self._model, self._before = model, before
        self._work = out.with_name(f".{out.name}.work")

    def run(
        self,
        rows: list[Row],
        tokenizer: PreTrainedTokenizerBase,
        group: accelerate.PartialState,
        *,
        skipped: int,
    ) -> Result:
        """Train, unless the stage is finished. Raises ``LearningError`` for a non-finite loss."""
        done = self.out / "stage.json"
        if done.exists():
            return msgspec.json.decode(done.read_bytes(), type=Result)
        start = time.monotonic()
        data = Dataset.from_list(rows)
        trainer = (self._preferring if "chosen" in rows[0] else self._supervised)(data, tokenizer)
        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(_Finite(self.name))
        last: str | None = None
        if self._work.exists():
            last = get_last_checkpoint(str(self._work))  # type: ignore[no-untyped-call]
        outcome = trainer.train(resume_from_checkpoint=last)
        self._save(trainer, group)
        result = Result(
            stage=self.name,
            samples=len(rows),
            skipped=skipped,
            steps=outcome.global_step,
            loss=outcome.training_loss,
            processes=group.num_processes,
            seconds=time.monotonic() - start,
            peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )
        if group.is_main_process:
            history = [msgspec.json.encode(line) for line in trainer.state.log_history]
            write_atomic(self.out / "metrics.jsonl", b"".join(line + b"\n" for line in history))
            write_atomic(done, msgspec.json.format(msgspec.json.encode(result), indent=2))
            shutil.rmtree(self._work, ignore_errors=True)
        group.wait_for_everyone()
        return result

    # -- trainers -----------------------------------------------------------------------------

    def _supervised(self, data: Dataset, tokenizer: PreTrainedTokenizerBase) -> Any:
        arguments = SFTConfig(
            **self._arguments(self._config.learning_rate), completion_only_loss=True, packing=False
        )
        return SFTTrainer(
            model=self._network(), args=arguments, train_dataset=data, processing_class=tokenizer
        )

    def _preferring(self, data: Dataset, tokenizer: PreTrainedTokenizerBase) -> Any:
        config = self._config
        both = config.supervised > 0
        arguments = DPOConfig(
            **self._arguments(config.preference_learning_rate),
            beta=config.beta,
            loss_type=["sigmoid", "sft"] if both else ["sigmoid"],
            loss_weights=[1.0, config.supervised] if both else None,
        )
        # With an adapter, trl copies it into a frozen adapter named "ref". With full weights, trl
        # would load the reference from the path in the model's config; passing the reference here
        # makes it independent of this path.
        reference = None if config.method == "lora" else self._weights()
        return DPOTrainer(
            model=self._network(),
            ref_model=reference,
            args=arguments,
            train_dataset=data,
            processing_class=tokenizer,
        )

    def _arguments(self, learning_rate: float) -> dict[str, Any]:
        config = self._config
        return {
            "output_dir": str(self._work),
            "per_device_train_batch_size": config.batch_size,
            "gradient_accumulation_steps": config.accumulate,
            "num_train_epochs": config.epochs,
            "max_steps": config.max_steps,
            "learning_rate": learning_rate,
            "lr_scheduler_type": "linear",
            "warmup_steps": 0.1,
            "weight_decay": config.weight_decay,
            "max_length": config.max_length,
            "bf16": config.bf16,
            _CHECKPOINTING: config.checkpointing,
            "seed": config.seed,
            "save_steps": config.save_steps,
            "save_total_limit": 1,
            "logging_steps": 1,
            "logging_nan_inf_filter": False,
            "disable_tqdm": True,
            "report_to": "none",
            "use_cpu": not torch.accelerator.is_available(),
            "dataloader_pin_memory": torch.accelerator.is_available(),
        }

    # -- weights ------------------------------------------------------------------------------

    def _network(self) -> Any:
        config = self._config
        network = self._weights()
        if config.method == "full":
            return network
        if self._before is not None:
            return PeftModel.from_pretrained(network, str(self._before), is_trainable=True)
        adapter = LoraConfig(
            r=config.rank,
            lora_alpha=config.alpha,
            lora_dropout=config.dropout,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        )
        with torch.random.fork_rng():
            torch.manual_seed(config.seed)
            return get_peft_model(network, adapter)

    def _weights(self) -> Any:
        """The base model, or for full fine-tuning the model of the stage before."""
        config = self._config
        full = config.method == "full"
        folder = self._before if full and self._before is not None else self._model
        frozen = config.bf16 and not full
        try:
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                str(folder),
                dtype=torch.bfloat16 if frozen else torch.float32,
                use_safetensors=True,
                output_loading_info=True,
            )
        except _UNLOADABLE as error:
            raise ConfigError(
                f"finetune: no causal language model in '{folder}': {error}"
            ) from error
        network, found = loaded
        lost = sorted(found["missing_keys"])
        if lost:  # transformers would initialise them at random
            raise ConfigError(
                f"finetune: some weights are missing in '{folder}', such as {lost[0]}"
            )
        return network

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
            (fresh / "training_args.bin").unlink(
                missing_ok=True
            )  # a pickle that contains local paths
            fresh.rename(self.out)
        group.wait_for_everyone()


class _Finite(TrainerCallback):
    """Raise ``LearningError`` for a non-finite loss; transformers would continue."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        loss = (logs or {}).get("loss")
        if loss is not None and not math.isfinite(loss):
            raise LearningError(
                f"finetune, stage {self._stage}: the loss is {loss} at step {state.global_step}; "
                "lower the learning rate. The earlier stages are saved"
            )


def _ids(
    tokenizer: Any, turns: list[dict[str, str]], where: str, *, add_generation_prompt: bool = False
) -> list[int]:
    try:
        read = tokenizer.apply_chat_template(
            turns, tokenize=True, add_generation_prompt=add_generation_prompt, return_dict=True
        )
    except Exception as error:  # a template may raise any exception
        raise ConfigError(f"{where}: the tokenizer's chat template fails: {error}") from error
    ids: list[int] = read["input_ids"]
    return ids
