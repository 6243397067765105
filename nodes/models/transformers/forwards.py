"""Forward passes of a network: logits of new tokens, log-probabilities of replies, and of options.

A network with pictures gets the inputs that :class:`Pictures` makes; others get token ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import signature
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import PreTrainedModel

from swarm_ui.nodes.models.transformers.cache import KVCache

_MOST_PADDING, _LEAST_PADDING = 400, 16
_OVERHEAD = 3.6e9
_OVERHEAD_GPU = 2000


class Pictures(Protocol):
    """Makes the inputs of a network from ids that stand for words and parts of pictures."""

    def inputs(self, ids: Tensor) -> dict[str, Tensor]:
        """The inputs for ids ``[rows, tokens]``: ``input_ids`` or ``inputs_embeds``."""
        ...


def forward(
    network: PreTrainedModel,
    ids: Tensor,
    attention: Tensor,
    positions: Tensor,
    cache: KVCache,
    last: int = 1,
    pictures: Pictures | None = None,
    options: Tensor | None = None,
) -> Tensor:
    """Logits after each of the ``last`` tokens, ``[rows, last, words]``, in float32. ``options``:
    the tokens whose logits are wanted; ``None``: all."""
    given = {"input_ids": ids} if pictures is None else pictures.inputs(ids)
    given["attention_mask"] = attention
    if "position_ids" in accepts(network):
        given["position_ids"] = positions
    if options is not None:
        return _option_logits(network, given, cache, options)
    if "logits_to_keep" in accepts(network):
        # A list of places, not a number: transformers would take a slice, whose rows are not
        # adjacent in memory, and PyTorch then copies the output layer's weights for each row.
        tokens = ids.shape[1]
        given["logits_to_keep"] = torch.arange(tokens - last, tokens, device=ids.device)
    output: Any = network(past_key_values=cache, use_cache=True, **given)
    logits: Tensor = output.logits[:, -last:].float()
    return logits


def _option_logits(
    network: PreTrainedModel, given: dict[str, Tensor], cache: KVCache, options: Tensor
) -> Tensor:
    """The logits of some tokens after the last one. They are computed in float32: logits in
    bfloat16 are multiples of 1/8 or so."""
    body: Any = network.base_model
    hidden = body(past_key_values=cache, use_cache=True, **given).last_hidden_state[:, -1:]
    head: Any = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    bias = None if head.bias is None else head.bias[options].float()
    with torch.autocast(hidden.device.type, enabled=False):
        logits = linear(hidden.float(), head.weight[options].float(), bias)
    return _scaled(logits, network)


def token_logprobs(
    network: PreTrainedModel, ids: Tensor, replies: Tensor, pictures: Pictures | None = None
) -> Tensor:
    """Log-probability (nats) of the tokens that ``replies`` marks with 1, and 0 elsewhere:
    ``[batch, tokens - 1]``, from the second token on. Both inputs are ``[batch, tokens]``: prompt,
    reply, padding on the right. Logits are computed for the marked tokens only."""
    body: Any = network.base_model
    read = ids[:, :-1]
    given = {"input_ids": read} if pictures is None else pictures.inputs(read)
    hidden = body(use_cache=False, **given).last_hidden_state
    marked = (replies[:, 1:] > 0).to(hidden.device)
    head: Any = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    logits = head(hidden[marked])
    wanted = ids[:, 1:].to(hidden.device)[marked].to(logits.device)
    scores = _scaled(logits.float(), network).log_softmax(-1)
    gained = scores.gather(1, wanted[:, None])[:, 0].to(hidden.device)
    return gained.new_zeros(marked.shape).masked_scatter(marked, gained).to(ids.device)


def _scaled(logits: Tensor, network: PreTrainedModel) -> Tensor:
    """Logits as Cohere, Granite and Gemma give them: scaled, and capped."""
    config = network.config.get_text_config()
    factor, divisor, cap = (
        getattr(config, name, None)
        for name in ("logit_scale", "logits_scaling", "final_logit_softcapping")
    )
    if factor or divisor:
        logits = logits * (factor or 1.0) / (divisor or 1.0)
    return logits if cap is None else torch.tanh(logits / cap) * cap


# -- what a network can do, and what a forward costs ----------------------------------------------


def pieces(lengths: Sequence[int], cost: int) -> list[list[int]]:
    """Split the rows into groups, one forward pass each, where that saves enough padding."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    done: list[list[int]] = []
    while order:
        longest = lengths[order[-1]]
        saved, cut = max(
            (k * (longest - lengths[order[k - 1]]), k) for k in range(1, len(order) + 1)
        )
        if saved < cost:
            cut = 0
        done.append(sorted(order[cut:]))
        order = order[:cut]
    return done


def forward_cost(network: PreTrainedModel) -> int:
    """Number of padding tokens that cost as much time as one more forward pass.

    Measured on a CPU: 400 for 0.2 M parameters, and 27 for 135 M in bfloat16 on one thread.
    """
    if network.device.type != "cpu":
        return _OVERHEAD_GPU
    parameters = sum(weight.numel() for weight in network.parameters())
    return int(max(_LEAST_PADDING, min(_MOST_PADDING, _OVERHEAD / max(1, parameters))))


def gaps_allowed(network: PreTrainedModel, cache: KVCache) -> bool:
    """Whether padding may stand between the tokens of a row; ``cache``: any one of the network.

    A layer with a window or a recurrent state would count it as tokens, and a network that is not
    told positions would count it as distance.
    """
    windows = "local" in getattr(network.config, "attention_layers", ())  # GPT-Neo, in its masks
    return "position_ids" in accepts(network) and cache.whole and not windows


def accepts(network: nn.Module) -> frozenset[str]:
    """The names of the inputs of a network; they differ between architectures."""
    return _parameters(type(network).forward)


@lru_cache
def _parameters(function: Callable[..., object]) -> frozenset[str]:
    return frozenset(signature(function).parameters)
