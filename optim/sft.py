"""One stage of a fine-tuning with a trainer of trl: of stage 1, or of a learned critic."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import accelerate  # type: ignore[import-untyped]
import msgspec
import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback, TrainerCallback
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer  # type: ignore[attr-defined]

from swarm_ui.adapter_metadata import AdapterMetadata, fingerprint, read_metadata, write_metadata
from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.files import replacing_folder
from swarm_ui.optim.config import FinetuneConfig, Result

_UNLOADABLE = (OSError, ValueError, KeyError, RuntimeError, ImportError)
_PLAIN = (
    "{{ bos_token or '' }}{% for turn in messages %}"
    "{% if turn['role'] == 'assistant' %}Assistant:{{ turn['content'] }}{{ eos_token }}"
    "{% else %}{{ turn['role'] | capitalize }}: {{ turn['content'] }}{{ '\n\n' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)
"""The prompt that ``CausalModel`` builds for a tokenizer without a template, then the reply."""

_SUPERVISED = 0.2
"""Weight of the supervised loss beside DPO's, so that the chosen response stays likely."""
OnStep = Callable[[int, int, float], None]
"""Called with the step, the number of steps and the loss."""
Row = dict[str, Any]
"""A prompt as a list of turns, with a completion, or with a chosen and a rejected one."""


def _length(tokenizer: Any, row: Row) -> int:
    sides = [row[key] for key in ("completion", "chosen", "rejected") if key in row]
    chats = [tokenizer.apply_chat_template(row["prompt"] + side, tokenize=False) for side in sides]
    return max(map(len, tokenizer(chats, add_special_tokens=False)["input_ids"]))


def processes() -> accelerate.PartialState:
    """The group of processes that ``accelerate launch`` started; without it, only this process."""
    return accelerate.PartialState(cpu=not torch.accelerator.is_available())


def train_stage(
    model: Path,
    before: Path | None,
    out: Path,
    rows: Sequence[Row],
    *,
    config: FinetuneConfig,
    about: AdapterMetadata,
    report: OnStep,
) -> Result | None:
    """Train an adapter of the model in a folder, and save it in ``out``, which appears only when it
    is complete; an interrupted stage continues from its last checkpoint. ``None``: every sample is
    too long. Raises ``LearningError`` if a loss or a gradient was not a number.

    Args:
        before: folder of the adapter to start from, such as an earlier stage; ``None``: none.
        rows: samples in pairs, which are trained with DPO, or with one reply each, with SFT.
        about: metadata saved with the weights; the fingerprint of the base is added.
    """
    began, checkpoints = time.monotonic(), out.with_name(f".{out.name}.work")
    tokenizer = load_tokenizer(model)
    kept = [row for row in rows if _length(tokenizer, row) <= config.max_length]
    if not kept:
        return None
    trainer = _trainer(model, before, config, kept, tokenizer, checkpoints)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(_Watch(out.name, report))
    # The trainer writes its state last, so a checkpoint without it was cut off.
    found = [place.parent for place in checkpoints.glob("checkpoint-*/trainer_state.json")]
    last = max(found, key=lambda folder: int(folder.name.rpartition("-")[2]), default=None)
    outcome = trainer.train(resume_from_checkpoint=last and str(last))
    result = Result(
        stage=out.name, samples=len(kept), skipped=len(rows) - len(kept),
        steps=outcome.global_step, loss=outcome.training_loss, seconds=time.monotonic() - began,
    )  # fmt: skip
    if trainer.accelerator.is_main_process:
        network = trainer.accelerator.unwrap_model(trainer.model)
        if "ref" in network.peft_config:  # trl's frozen copy, the reference of DPO
            network.delete_adapter("ref")
        weights = network.get_base_model().state_dict().items()
        base = fingerprint(weight for name, weight in weights if ".lora_" not in name)
        with replacing_folder(out) as made:
            write_metadata(made, msgspec.structs.replace(about, base_fingerprint=base))
            network.save_pretrained(str(made))
            tokenizer.save_pretrained(str(made))
            history = [msgspec.json.encode(line) for line in trainer.state.log_history]
            (made / "metrics.jsonl").write_bytes(b"".join(line + b"\n" for line in history))
            stated = msgspec.json.format(msgspec.json.encode(result), indent=2)
            (made / "stage.json").write_bytes(stated)
        shutil.rmtree(checkpoints, ignore_errors=True)
    trainer.accelerator.wait_for_everyone()
    return result


def _trainer(
    model: Path, before: Path | None, config: FinetuneConfig, rows: list[Row], tokenizer: Any,
    checkpoints: Path,
) -> Any:  # fmt: skip
    network, pairs = load_network(model, before, config), "chosen" in rows[0]
    accelerator = torch.accelerator.is_available()
    arguments: dict[str, Any] = {
        "output_dir": str(checkpoints),
        "per_device_train_batch_size": config.batch_size,
        "gradient_accumulation_steps": config.accumulate,
        "num_train_epochs": config.epochs,
        "max_steps": config.max_steps,
        "learning_rate": config.preference_learning_rate if pairs else config.learning_rate,
        "warmup_steps": 0.1,  # below 1: a share of all steps
        "max_length": config.max_length,
        "bf16": _computes_bfloat16(config),
        "activation_checkpointing": config.checkpointing,
        "seed": config.seed,
        "save_steps": config.save_steps,
        "save_total_limit": 2,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "disable_tqdm": True,
        "report_to": "none",
        "use_cpu": not accelerator,
        "dataloader_pin_memory": accelerator,
    }
    data = {"train_dataset": Dataset.from_list(rows), "processing_class": tokenizer}
    if pairs:
        losses: Any = {"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, _SUPERVISED]}
        return DPOTrainer(network, args=DPOConfig(**arguments, beta=config.beta, **losses), **data)
    # Samples of similar length together: there is less padding.
    sft = SFTConfig(**arguments, train_sampling_strategy="group_by_length")
    return SFTTrainer(network, args=sft, **data)


class _Watch(TrainerCallback):
    """Reports the steps of a stage, and ends it at a loss or a gradient that is not finite."""

    def __init__(self, stage: str, report: OnStep) -> None:
        self._stage, self._report = stage, report

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        for name, what in (("loss", "loss"), ("grad_norm", "gradient's norm")):
            value = (logs or {}).get(name)
            if value is not None and not math.isfinite(value):
                raise LearningError(
                    f"finetune, stage {self._stage}: the {what} is {value} at step "
                    f"{state.global_step}; lower the learning rate. The earlier stages are saved"
                )
        if "loss" in (logs or {}) and state.is_world_process_zero:
            self._report(state.global_step, state.max_steps, float(logs["loss"]))


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer, with a plain chat template if it has none. Raises ``ConfigError`` if there is
    none, or it has no end token."""
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except _UNLOADABLE as error:
        raise ConfigError(f"finetune: no tokenizer in '{folder}': {error}") from error
    if tokenizer.eos_token is None:
        raise ConfigError(
            f"finetune: the tokenizer in '{folder}' has no end token (eos_token); "
            "set one, or no reply would ever end"
        )
    if tokenizer.chat_template is None:
        tokenizer.chat_template = _PLAIN
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_network(model: Path, before: Path | None, config: FinetuneConfig) -> Any:
    """The base model in a folder, with the adapter of ``before`` or a new one. If it computes in
    bfloat16, the frozen weights are in bfloat16, and the adapter in float32. Raises ``ConfigError``
    if the folder holds no causal language model, or the adapter is of another one."""
    kind = torch.bfloat16 if _computes_bfloat16(config) else torch.float32
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            str(model), dtype=kind, use_safetensors=True, output_loading_info=True
        )
    except _UNLOADABLE as error:
        raise ConfigError(f"finetune: no causal language model in '{model}': {error}") from error
    network, found = loaded
    lost = sorted(found["missing_keys"])
    if lost:  # transformers would initialise them at random
        raise ConfigError(
            f"finetune: some weights are missing in '{model}', such as {lost[0]}; "
            "save the model again, with all of its files"
        )
    if before is not None:
        base = fingerprint(network.state_dict().values())
        read_metadata(before).expect_base(before, model.name, base)
        return PeftModel.from_pretrained(network, str(before), is_trainable=True)
    adapter = LoraConfig(
        r=config.rank,
        lora_alpha=2 * config.rank,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        return get_peft_model(network, adapter)


def _computes_bfloat16(config: FinetuneConfig) -> bool:
    if config.bf16 is not None:
        return config.bf16
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if torch.accelerator.is_available():
        return False
    able = torch.cpu.get_capabilities()
    return any(able.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
