"""The DPO loss against trl's number on a tiny transformers model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from learning_fakes import reply_logprobs

pytest.importorskip("trl")
pytestmark = pytest.mark.filterwarnings("ignore")


def tiny(seed: int, vocabulary: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, initializer_range=0.5,
        pad_token_id=0, bos_token_id=None, eos_token_id=1,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def words() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"<pad>": 0, "<eos>": 1, "<unk>": 2}
    for word in ("tap", "save", "back", "help", "the", "now", "please", "a", "b"):
        vocabulary[word] = len(vocabulary)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


def test_dpo_loss_equals_trl(tmp_path: Path) -> None:
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer

    from swarm_ui.optim.update.batches import pad
    from swarm_ui.optim.update.losses import dpo_loss

    rows = {
        "prompt": ["save the a please", "help now"],
        "chosen": [" tap save", " tap help now"],
        "rejected": [" back", " tap save b"],
    }
    tokenizer = words()
    policy, reference = tiny(0, len(tokenizer)), tiny(1, len(tokenizer))
    arguments = DPOConfig(
        output_dir=str(tmp_path), beta=0.3, loss_type=["sigmoid"], per_device_train_batch_size=2,
        max_steps=1, report_to=[], use_cpu=True, disable_tqdm=True, max_length=None,
        gradient_checkpointing=False, bf16=False, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = DPOTrainer(
        policy,
        reference,
        args=arguments,
        train_dataset=Dataset.from_dict(rows),
        processing_class=tokenizer,
    )
    batch = next(iter(trainer.get_train_dataloader()))
    policy.eval()
    with torch.no_grad():
        theirs = float(trainer.compute_loss(policy, batch))

    def logprobs(model: Any, side: str) -> torch.Tensor:
        made = []
        for prompt, reply in zip(rows["prompt"], rows[side], strict=True):
            start = tokenizer(prompt)["input_ids"]
            end = [*tokenizer(reply)["input_ids"], tokenizer.eos_token_id]
            made.append((start, end))
        batch = pad(made, 0)
        with torch.no_grad():
            logits = model.eval()(batch.ids, attention_mask=batch.attention_mask).logits
        return reply_logprobs(logits, batch)[0]

    sides = [logprobs(m, s) for m in (policy, reference) for s in ("chosen", "rejected")]
    ours = float(dpo_loss(*sides, beta=0.3))
    assert abs(ours - 0.6931) > 0.05  # the models differ, so the comparison says something
    assert ours == pytest.approx(theirs, rel=1e-5)
