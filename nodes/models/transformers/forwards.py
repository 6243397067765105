"""Forward passes of a network, its key-value cache, and keys and values of recent prompts.

A network with pictures gets the inputs that :class:`Pictures` makes; others get token ids.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import signature
from typing import Any, NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import DynamicCache, DynamicLayer

from swarm_ui.errors import ConfigError

_SPARE = 32
"""Tokens that fit before the buffers are copied. transformers' own layer copies for every token."""
_HEAD = 16
"""Tokens with which prompts must begin alike to reuse each other's keys and values."""
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
    body: Any = network.base_model
    hidden = body(past_key_values=cache, use_cache=True, **given).last_hidden_state
    # Not a slice: its rows are not adjacent in memory, and PyTorch would then copy the output
    # layer's weights for each row.
    return _logits(network, hidden[:, -last:].contiguous(), options)


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
    scores = _logits(network, hidden[marked]).log_softmax(-1)
    wanted = ids[:, 1:].to(hidden.device)[marked].to(scores.device)
    gained = scores.gather(1, wanted[:, None])[:, 0].to(hidden.device)
    return gained.new_zeros(marked.shape).masked_scatter(marked, gained).to(ids.device)


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


# -- what a network can do, and what a forward costs ----------------------------------------------


def expect_known_head(network: PreTrainedModel) -> None:
    """Raise ``ConfigError`` if the network makes logits in a way of its own."""
    one = torch.zeros(1, 1, dtype=torch.long, device=network.device)
    with torch.inference_mode():
        theirs = network(input_ids=one, use_cache=False).logits[:, -1].float()
        body: Any = network.base_model
        ours = _logits(network, body(input_ids=one, use_cache=False).last_hidden_state)[:, -1]
    if not torch.allclose(ours.to(theirs.device), theirs, rtol=0.02, atol=0.02):
        raise ConfigError(
            f"{type(network).__name__}: expected logits of its output layer, scaled or capped as "
            "those of Cohere, Granite or Gemma, got others; serve this model with vLLM"
        )


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


# -- keys and values ------------------------------------------------------------------------------


class Prefix(NamedTuple):
    """A prompt that was read, or its beginning."""

    ids: list[int]
    keys: Tensor
    """``[layers, heads, tokens, width]``."""
    values: Tensor

    def cut(self, length: int) -> Prefix:
        """The first tokens, as views."""
        return Prefix(self.ids[:length], self.keys[:, :, :length], self.values[:, :, :length])


class KVLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values of one layer, as views of longer buffers."""

    keys: Tensor
    values: Tensor

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.buffers: tuple[Tensor, Tensor] | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append the new states; return all states, ``[batch, heads, tokens, width]``."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = key_states, value_states
            return self.keys, self.values
        length = self.keys.shape[2]
        end = length + key_states.shape[2]
        buffers = self.buffers
        if buffers is None or buffers[0].shape[2] < end:
            buffers = self.buffers = _longer(self.keys, end), _longer(self.values, end)
        for buffer, states in zip(buffers, (key_states, value_states), strict=True):
            buffer[:, :, length:end] = states
        self.keys, self.values = buffers[0][:, :, :end], buffers[1][:, :, :end]
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep only these rows."""
        super().reorder_cache(beam_idx)  # type: ignore[arg-type]
        self.buffers = None


class KVCache(DynamicCache):
    """transformers' cache for a model, with :class:`KVLayer` in place of its plain layers."""

    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__(config=config)
        self.layers = [KVLayer() if type(layer) is DynamicLayer else layer for layer in self.layers]
        self.last_ids: Tensor | None = None
        """The last token of each row, ``[rows, 1]``, for networks that need it to go on."""

    @property
    def whole(self) -> bool:
        """Whether every layer holds all tokens."""
        return all(type(layer) is KVLayer for layer in self.layers)

    def begin(self, rows: Sequence[Prefix | None], room: int, pad_id: int = 0) -> None:
        """Start with the states of some rows, aligned at their ends; ``None``: none, and the token
        before is ``pad_id``. ``room``: tokens that come next."""
        some = next(row for row in rows if row is not None)
        end = max(len(row.ids) for row in rows if row is not None)
        ends = [[pad_id] if row is None else row.ids[-1:] for row in rows]
        self.last_ids = torch.tensor(ends, device=some.keys.device)
        both: list[Tensor] = []
        for part in (some.keys, some.values):
            # One buffer for all layers: far fewer operations than one for each.
            layers, heads, _, width = part.shape
            both.append(part.new_empty((layers, len(rows), heads, end + room + _SPARE, width)))
        for at, row in enumerate(rows):
            first = end if row is None else end - len(row.ids)
            for out in both:  # masked values are multiplied by 0: they must be finite
                out[:, at, :, :first] = 0
            if row is not None:
                both[0][:, at, :, first:end] = row.keys
                both[1][:, at, :, first:end] = row.values
        for layer, keys, values in zip(self.layers, *both, strict=True):
            assert isinstance(layer, KVLayer)
            layer.lazy_initialization(keys, values)
            layer.buffers = keys, values
            layer.keys, layer.values = keys[:, :, :end], values[:, :, :end]

    def prefixes(self, prompts: Sequence[list[int]], attention: Tensor) -> list[Prefix]:
        """The states of each row without padding, where ``attention`` is 0."""
        layers = cast(list[KVLayer], self.layers)
        both = [torch.stack([getattr(each, k) for each in layers]) for k in ("keys", "values")]
        here = [row.nonzero()[:, 0] for row in attention]
        return [
            Prefix(ids, *(part[:, at].index_select(2, here[at]) for part in both))
            for at, ids in enumerate(prompts)
        ]

    def select_rows(self, rows: Tensor) -> None:
        """Keep only the given rows, in this order."""
        for layer in self.layers:
            # Not `batch_select_indices`, which layers with a recurrent state do not have.
            layer.reorder_cache(rows)  # type: ignore[arg-type]
        if self.last_ids is not None:
            self.last_ids = self.last_ids[rows]


def _longer(states: Tensor, end: int) -> Tensor:
    """A buffer for ``end`` tokens and some more, which begins with these states."""
    rows, heads, tokens, width = states.shape
    out = states.new_empty((rows, heads, end + _SPARE, width))
    out[:, :, :tokens] = states
    return out


class PrefixStore:
    """The most recent prompts, up to a memory limit.

    Keys and values depend on the adapter, so only prompts of one adapter share them.
    """

    def __init__(self, max_bytes: int) -> None:
        """``max_bytes``: limit for the keys and values; 0: nothing is kept."""
        self.max_bytes, self.size = max_bytes, 0
        self._groups: OrderedDict[object, list[Prefix]] = OrderedDict()
        """Prompts of one adapter that begin alike; the group that was used last is at the end."""

    def clear(self) -> None:
        """Remove all prompts."""
        self._groups.clear()
        self.size = 0

    def find(self, adapter: str, ids: list[int]) -> Prefix | None:
        """The longest known beginning of a prompt, without its last token."""
        key = (adapter, *ids[:_HEAD])
        group = self._groups.get(key, [])
        length, number = max(((common(p.ids, ids), n) for n, p in enumerate(group)), default=(0, 0))
        if length < _HEAD:
            return None
        self._groups.move_to_end(key)
        return group[number].cut(min(length, len(ids) - 1))

    def add(self, adapter: str, prompt: Prefix) -> None:
        """Add a prompt, and remove the oldest ones of the group that was not used for longest if
        the limit is exceeded."""
        size = _bytes(prompt)
        if size > self.max_bytes or len(prompt.ids) < _HEAD:
            return
        key = (adapter, *prompt.ids[:_HEAD])
        self._groups.setdefault(key, []).append(prompt)
        self._groups.move_to_end(key)
        self.size += size
        while self.size > self.max_bytes:
            oldest, group = next(iter(self._groups.items()))
            self.size -= _bytes(group.pop(0))
            if not group:
                del self._groups[oldest]


def _bytes(prompt: Prefix) -> int:
    return prompt.keys.nbytes + prompt.values.nbytes


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
