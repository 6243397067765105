"""Probabilities of a few one-word replies, for many prompts with a common prefix.

The questions of a critic about one screen differ only at their ends. They are packed into one
sequence of tokens: the common prefix once, then the rest of each prompt. A token attends to the
prefix and to its own prompt only, and has the position that it would have in that prompt alone. So
the results are those of single prompts, up to floating-point error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from peft.tuners.lora import LoraLayer
from torch import Tensor
from torch.nn.functional import linear
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from swarm_ui.errors import ConfigError
from swarm_ui.nodes.models.transformers.cache import KVCache
from swarm_ui.nodes.models.transformers.cache import common as shared
from swarm_ui.nodes.models.transformers.prefill import gaps_allowed
from swarm_ui.nodes.models.transformers.scoring import scaled

MOST_PROMPTS = 16
"""Prompts in one row. The cost of attention grows with the square of a row's length."""
_SHARED = 0.5
"""Prompts are packed if they share at least this part of the shorter one."""
_PROBE = (5, 3)
"""Tokens of the prefix and of the rest, in the test of whether a network supports packing."""
_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class PackedPrompts:
    """Prompts with a common prefix, in one row of tokens."""

    ids: list[int]
    positions: list[int]
    """Position of each token in its own prompt."""
    parts: list[int]
    """0 for the common prefix, ``k + 1`` for the rest of prompt ``k``."""
    ends: list[int]
    """Position in ``ids`` of the last token of each prompt."""


def pack(prompts: Sequence[list[int]]) -> PackedPrompts:
    """Pack prompts, of at least one token each, into one row."""
    first = min(prompts, key=len)
    common = len(first) - 1  # every prompt keeps a token of its own, where its reply begins
    for prompt in prompts:
        common = min(common, shared(first, prompt))
    ids, positions, parts = first[:common], list(range(common)), [0] * common
    ends: list[int] = []
    for k, prompt in enumerate(prompts, start=1):
        ids = ids + prompt[common:]
        positions += range(common, len(prompt))
        parts += [k] * (len(prompt) - common)
        ends.append(len(ids) - 1)
    return PackedPrompts(ids, positions, parts, ends)


def grouped(prompts: Sequence[list[int]], packing: bool) -> Iterator[list[int]]:
    """Groups of adjacent prompts with a common prefix, by number. Each group becomes one row."""
    group: list[int] = []
    for k, prompt in enumerate(prompts):
        if group:
            before = prompts[group[0]]
            shortest = min(len(before), len(prompt))
            alike = shared(before, prompt) >= _SHARED * shortest
            if not (packing and alike and len(group) < MOST_PROMPTS):
                yield group
                group = []
        group.append(k)
    if group:
        yield group


def option_ids(options: Sequence[str], first_tokens: Sequence[int]) -> list[int]:
    """The first token of each option. Raises ``ConfigError`` if they are not distinct."""
    if len(options) < 2 or len(set(first_tokens)) < len(options):
        raise ConfigError(
            f"probabilities: expected two or more options with different first tokens, got "
            f"{', '.join(map(repr, options)) or 'none'} with the tokens {list(first_tokens)}"
        )
    return list(first_tokens)


def option_logits(
    network: PreTrainedModel, rows: Sequence[PackedPrompts], options: Sequence[int], pad_id: int
) -> list[Tensor]:
    """Logits of the answer options after each prompt: one float32 tensor ``[prompts in the row,
    options]`` for each row.

    All rows are computed in one forward pass. Gradients flow if they are enabled.
    """
    ids = pad_sequence([torch.tensor(row.ids) for row in rows], True, pad_id)
    inner: Any = network.base_model
    # A causal network needs no mask for padding on the right, only for packed prompts.
    single = all(len(row.ends) == 1 for row in rows)
    more = {} if single else _packing(rows, network)
    hidden = inner(input_ids=ids.to(network.device), use_cache=False, **more).last_hidden_state
    last = [hidden[k, torch.tensor(row.ends)] for k, row in enumerate(rows)]
    head: Any = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    some = torch.tensor(options, device=hidden.device)
    adapted = isinstance(head, LoraLayer)
    if adapted:  # each row has its own
        logits = head(pad_sequence(last, True))[..., some].float()
        found = [own[: len(row.ends)] for own, row in zip(logits, rows, strict=True)]
    else:
        bias = None if head.bias is None else head.bias[some].float()
        # In float32, and for the options alone: logits in bfloat16 are multiples of 1/8 or so.
        with torch.autocast(hidden.device.type, enabled=False):
            logits = linear(torch.cat(last).float(), head.weight[some].float(), bias)
        found = list(torch.split(logits, [len(row.ends) for row in rows]))
    config = network.config.get_text_config()
    return [scaled(logits, config) for logits in found]


def can_pack(network: PreTrainedModel) -> bool:
    """Whether a network gives the same results for packed prompts. This is tested on a small input.

    Networks without a position input, with sliding-window attention, or with their own handling of
    the attention mask do not give the same results.
    """
    if not gaps_allowed(network, KVCache(network.config)):
        return False
    embeddings: Any = network.get_input_embeddings()
    words: int = embeddings.weight.shape[0]
    start, end = _PROBE
    ids = [k * 7 % words for k in range(1, start + 2 * end + 1)]
    prompts = [ids[: start + end], ids[:start] + ids[start + end :]]
    options = list(range(min(words, 8)))
    with torch.inference_mode():
        single = [pack([prompt]) for prompt in prompts]
        alone = torch.cat(option_logits(network, single, options, pad_id=0))
        try:
            (together,) = option_logits(network, [pack(prompts)], options, pad_id=0)
        except (RuntimeError, ValueError, TypeError):  # it wants another form of mask
            return False
    size = alone.abs().max().clamp_min(1.0)
    return bool((together - alone).abs().max() <= _TOLERANCE * size)


def _packing(rows: Sequence[PackedPrompts], network: PreTrainedModel) -> dict[str, Tensor]:
    """Positions and mask of packed rows."""
    positions = pad_sequence([torch.tensor(row.positions) for row in rows], True)
    parts = pad_sequence([torch.tensor(row.parts) for row in rows], True, -1)
    device = network.device
    mask = _mask(parts, network).to(device)
    return {"position_ids": positions.to(device), "attention_mask": mask}


def _mask(parts: Tensor, network: PreTrainedModel) -> Tensor:
    """The additive attention mask, ``[rows, 1, tokens, tokens]``: 0, or a large negative value.

    Padding (part -1) attends to padding only.
    """
    kind = network.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else network.dtype
    of_query, of_key = parts[:, :, None], parts[:, None, :]
    seen = (of_query == of_key) | ((of_key == 0) & (of_query > 0))
    places = torch.arange(parts.shape[1])
    seen &= places[:, None] >= places[None, :]
    mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)
    return mask[:, None]
