"""Forward passes of a network: logits of the last tokens, and log-probabilities of replies.

A network with pictures gets the inputs that :class:`Pictures` makes; others get token ids.
"""

from __future__ import annotations

from collections.abc import Collection
from inspect import signature
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from swarm_ui.errors import ConfigError

_MOST_PADDING, _LEAST_PADDING = 400, 16
_OVERHEAD = 3.6e9
_OVERHEAD_GPU = 2000


class Pictures(Protocol):
    """Makes the inputs of a network from ids that stand for words and parts of pictures."""

    def inputs(self, ids: Tensor) -> dict[str, Tensor]:
        """The inputs for ids ``[rows, tokens]``: ``input_ids`` or ``inputs_embeds``."""
        ...


def last_logits(
    network: PreTrainedModel,
    ids: Tensor,
    cache: Cache,
    pictures: Pictures | None,
    *,
    last: int,
    options: Tensor | None,
    **given: Tensor,
) -> Tensor:
    """Logits after each of the ``last`` tokens, ``[rows, last, words]``, in float32. ``options``:
    the tokens whose logits are wanted; ``None``: all. ``given``: masks and positions."""
    hidden = _hidden(network, ids, pictures, past_key_values=cache, use_cache=True, **given)
    # Not a slice: its rows are not adjacent in memory, and PyTorch would then copy the output
    # layer's weights for each row.
    return _logits(network, hidden[:, -last:].contiguous(), options)


def token_logprobs(
    network: PreTrainedModel, ids: Tensor, replies: Tensor, pictures: Pictures | None = None
) -> Tensor:
    """Log-probability (nats) of the tokens that ``replies`` marks with 1, and 0 elsewhere:
    ``[batch, tokens - 1]``, from the second token on. Both inputs are ``[batch, tokens]``: prompt,
    reply, padding on the right. Logits are computed for the marked tokens only."""
    hidden = _hidden(network, ids[:, :-1], pictures, use_cache=False)
    marked = (replies[:, 1:] > 0).to(hidden.device)
    scores = _logits(network, hidden[marked]).log_softmax(-1)
    wanted = ids[:, 1:].to(hidden.device)[marked].to(scores.device)
    gained = scores.gather(1, wanted[:, None])[:, 0].to(hidden.device)
    return gained.new_zeros(marked.shape).masked_scatter(marked, gained).to(ids.device)


def _hidden(
    network: PreTrainedModel, ids: Tensor, pictures: Pictures | None, **given: Any
) -> Tensor:
    body: Any = network.base_model
    read = {"input_ids": ids} if pictures is None else pictures.inputs(ids)
    states: Tensor = body(**read, **given).last_hidden_state
    return states


def _logits(network: PreTrainedModel, hidden: Tensor, options: Tensor | None = None) -> Tensor:
    """Logits in float32, also as Cohere, Granite and Gemma give them: scaled, and capped. Those of
    ``options`` are computed in float32: logits in bfloat16 are multiples of 1/8 or so."""
    head: Any = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    if options is None:
        logits: Tensor = head(hidden).float()
    else:
        bias = None if head.bias is None else head.bias[options].float()
        with torch.autocast(hidden.device.type, enabled=False):
            logits = linear(hidden.float(), head.weight[options].float(), bias)
    config = network.config.get_text_config()
    factor, divisor, cap = (
        getattr(config, name, None)
        for name in ("logit_scale", "logits_scaling", "final_logit_softcapping")
    )
    if factor or divisor:
        logits = logits * (factor or 1.0) / (divisor or 1.0)
    return logits if cap is None else torch.tanh(logits / cap) * cap


def expect_known_head(network: PreTrainedModel) -> None:
    """Raise ``ConfigError`` if the network makes logits in a way of its own."""
    one = torch.zeros(1, 1, dtype=torch.long, device=network.device)
    with torch.inference_mode():
        theirs = network(input_ids=one, use_cache=False).logits.float()
        ours = _logits(network, _hidden(network, one, None, use_cache=False))
    if not torch.allclose(ours.to(theirs.device), theirs, rtol=0.02, atol=0.02):
        raise ConfigError(
            f"{type(network).__name__}: expected logits of its output layer, scaled or capped as "
            "those of Cohere, Granite or Gemma, got others; serve this model with vLLM"
        )


def forward_cost(network: PreTrainedModel) -> int:
    """Number of padding tokens that cost as much time as one more forward pass.

    Measured on a CPU: 400 for 0.2 M parameters, and 27 for 135 M in bfloat16 on one thread.
    """
    if network.device.type != "cpu":
        return _OVERHEAD_GPU
    parameters = sum(weight.numel() for weight in network.parameters())
    return int(max(_LEAST_PADDING, min(_MOST_PADDING, _OVERHEAD / max(1, parameters))))


def accepts(network: nn.Module) -> Collection[str]:
    """The names of the inputs of a network; they differ between architectures."""
    return signature(type(network).forward).parameters.keys()
