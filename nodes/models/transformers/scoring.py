"""Log-probabilities of the tokens of replies."""

from __future__ import annotations

from typing import Any

import torch
from peft.tuners.lora import LoraLayer
from torch import Tensor
from transformers import PreTrainedModel

_LOGITS = 2e8
"""Logits that are computed at once, 0.8 GB in float32."""


def token_logprobs(network: PreTrainedModel, ids: Tensor, replies: Tensor) -> Tensor:
    """Log-probability (nats) of the tokens that ``replies`` marks with 1, and 0 elsewhere:
    ``[batch, tokens - 1]``, from the second token on. Both inputs are ``[batch, tokens]``: prompt,
    reply, padding on the right (no mask is needed then).

    Logits are computed for the marked tokens only.
    """
    body: Any = network.base_model
    hidden = body(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    marked = (replies[:, 1:] > 0).to(hidden.device)
    head: Any = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    config = network.config.get_text_config()
    adapted = isinstance(head, LoraLayer)
    if adapted:  # each row has its own, so it must get whole rows
        parts = [head(hidden)[marked]]
    else:
        most = max(1, int(_LOGITS // config.vocab_size))
        parts = [head(states) for states in torch.split(hidden[marked], most)]
    wanted = ids[:, 1:].to(hidden.device)[marked]
    tokens = torch.split(wanted, [len(part) for part in parts])
    gained = torch.cat([
        scaled(part.float(), config).log_softmax(-1).gather(1, own.to(part.device)[:, None])[:, 0]
        for part, own in zip(parts, tokens, strict=True)
    ])  # fmt: skip
    return gained.new_zeros(marked.shape).masked_scatter(marked, gained).to(ids.device)


def scaled(logits: Tensor, config: Any) -> Tensor:
    """Logits as Cohere, Granite and Gemma give them: scaled, and capped."""
    factor, divisor, cap = (
        getattr(config, name, None)
        for name in ("logit_scale", "logits_scaling", "final_logit_softcapping")
    )
    if factor or divisor:
        logits = logits * (factor or 1.0) / (divisor or 1.0)
    return logits if cap is None else torch.tanh(logits / cap) * cap
