"""Batched decoding with a cache and an optional grammar, sampled with a seed per row.

transformers' ``generate`` is not used: each row has its own temperature, seed and grammar; a row's
sample must not depend on the others; and with a tiny model most of its time is overhead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import PreTrainedModel

from swarm_ui.nodes.models.tiny_agent.tokenizer import Trie
from swarm_ui.nodes.models.transformers.kv_cache import KVCache
from swarm_ui.nodes.models.transformers.multi_lora import LoraRouting

MAX_FREE_WORDS = 8
_FORWARD_COST = 400
"""Number of padding tokens that cost as much time as one more forward pass."""


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence to continue."""

    prompt: list[int]
    temperature: float
    """0 is greedy."""
    seed: int
    max_tokens: int
    grammar: Trie | None = None
    """``None``: any token."""
    free: tuple[int, ...] = ()
    """Ids of the tokens that free text may use, where the grammar allows free text."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """The new tokens of a row."""

    ids: list[int]
    """Without the end token."""
    logprob: float
    """Sum over the new tokens (end token included) under the unconstrained model at
    temperature 1, nats."""
    ended: bool
    """Whether an end token came, which is one more token; else the row was cut off."""
    end: int | None = None
    """That token."""


class _State:
    """A row while it is decoded, and its position in the grammar."""

    __slots__ = (
        "_position", "_stops", "_words", "done", "end", "ended", "ids", "logprob", "noise", "row",
    )  # fmt: skip

    def __init__(self, row: Row, stops: Collection[int]) -> None:
        self.row = row
        self.noise = torch.Generator().manual_seed(row.seed) if row.temperature > 0 else None
        self.ids: list[int] = []
        self.logprob = 0.0
        self.done = self.ended = False
        self.end: int | None = None
        self._stops = list(stops)
        self._position = row.grammar  # None: in free text, or there is no grammar
        self._words = 0  # of free text so far

    def take(self, token: int, logprob: float) -> None:
        """Append a token with its log-probability."""
        if self.done:
            return
        self.logprob += logprob
        if self._position is None:
            self._words += 1
        else:
            self._position = self._position[token]
        self.ended = token in self._stops
        if self.ended:
            self.end = token
        else:
            self.ids.append(token)
        self.done = self.ended or len(self.ids) >= self.row.max_tokens

    def allowed(self) -> list[int] | None:
        """Tokens that may follow; ``None``: any."""
        if self.row.grammar is None:
            return None
        if self._position is not None:
            return list(self._position)
        if self._words == 0:
            return list(self.row.free) or self._stops
        return [*self.row.free, *self._stops] if self._words < MAX_FREE_WORDS else self._stops


@torch.inference_mode()
def generate(
    network: PreTrainedModel,
    rows: Sequence[Row],
    pad_id: int,
    stops: Collection[int],
    routing: LoraRouting | None = None,
) -> list[Continuation]:
    """Continue every row; one forward per new token for the whole batch.

    The network is in eval mode. Rows have any lengths and are padded on the left with ``pad_id``;
    ``stops`` end a row; ``routing`` follows the rows that a forward holds.
    """
    states = [_State(row, stops) for row in rows]
    here, logits, cache, attention = _prefill(network, rows, pad_id, routing)
    positions = attention.sum(1, keepdim=True)
    while True:
        now = [states[k] for k in here]
        chosen = _choose(logits, now, pad_id)
        picked = torch.tensor(chosen)[:, None]
        gains = (logits.gather(1, picked)[:, 0] - logits.logsumexp(1)).tolist()
        for state, token, gain in zip(now, chosen, gains, strict=True):
            state.take(token, gain)
        unfinished = [at for at, state in enumerate(now) if not state.done]
        if not unfinished:
            return [Continuation(s.ids, s.logprob, s.ended, s.end) for s in states]
        ids = picked.to(network.device)
        attention = torch.cat([attention, torch.ones_like(attention[:, :1])], dim=1)
        if 2 * len(unfinished) <= len(here):  # removing fewer rows saves less than the copy costs
            kept = torch.tensor(unfinished, device=network.device)
            cache.batch_select_indices(kept)
            ids, positions, attention = ids[kept], positions[kept], attention[kept]
            here = [here[at] for at in unfinished]
            if routing is not None:
                routing.select_rows(here)
        logits = _forward(network, ids, attention, positions, cache)
        positions = positions + 1


def _prefill(
    network: PreTrainedModel, rows: Sequence[Row], pad_id: int, routing: LoraRouting | None
) -> tuple[list[int], Tensor, KVCache, Tensor]:
    """Read all prompts, in groups of similar length. Returns the rows in the order of the new
    batch, the logits of the first new token ``[rows, words]``, the cache and the mask."""
    lengths = [len(row.prompt) for row in rows]
    joinable = KVCache(network.config).joinable
    pieces = _pieces(lengths) if joinable else [list(range(len(rows)))]
    done = []
    for piece in pieces:
        if routing is not None and len(pieces) > 1:
            routing.select_rows(piece)
        ids, attention = _left_padded([rows[k].prompt for k in piece], pad_id)
        ids, attention = ids.to(network.device), attention.to(network.device)
        positions = (attention.cumsum(1) - 1).clamp_(min=0)
        cache = KVCache(network.config)
        done.append((_forward(network, ids, attention, positions, cache), cache, attention))
    order = [k for piece in pieces for k in piece]
    logits, caches, masks = zip(*done, strict=True)
    if len(pieces) == 1:
        return order, logits[0], caches[0], masks[0]
    if routing is not None:
        routing.select_rows(order)
    longest = max(lengths)
    mask = torch.cat([pad(mask, (longest - mask.shape[1], 0)) for mask in masks])
    return order, torch.cat(logits), KVCache.joined(network.config, caches), mask


def _pieces(lengths: Sequence[int]) -> list[list[int]]:
    """Split the rows into groups, one forward pass each, where that saves enough padding."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    pieces: list[list[int]] = []
    while order:
        longest = lengths[order[-1]]
        saved, cut = max(
            (k * (longest - lengths[order[k - 1]]), k) for k in range(1, len(order) + 1)
        )
        if saved < _FORWARD_COST:
            cut = 0
        pieces.append(sorted(order[cut:]))
        order = order[:cut]
    return pieces


def _forward(
    network: PreTrainedModel, ids: Tensor, attention: Tensor, positions: Tensor, cache: KVCache
) -> Tensor:
    """Logits of the next token, ``[rows, words]``, on the CPU."""
    optional = {"position_ids": positions, "logits_to_keep": 1}
    known = accepts(network)
    output = network(
        input_ids=ids,
        attention_mask=attention,
        past_key_values=cache,
        use_cache=True,
        **{name: value for name, value in optional.items() if name in known},
    )
    logits: Tensor = output.logits[:, -1].float().cpu()
    return logits


def _choose(logits: Tensor, here: Sequence[_State], pad_id: int) -> list[int]:
    """Next token of each row: the best allowed one, after Gumbel noise where it is sampled."""
    scores = logits
    sampled = [k for k, state in enumerate(here) if state.noise is not None and not state.done]
    if sampled:
        uniform = torch.empty(len(sampled), logits.shape[1])
        for at, k in enumerate(sampled):
            torch.rand(logits.shape[1], generator=here[k].noise, out=uniform[at])
        uniform.clamp_(1e-9, 1 - 1e-7).log_().neg_().log_()
        temperatures = torch.tensor([here[k].row.temperature for k in sampled])[:, None]
        scores = logits.clone()
        scores[sampled] = scores[sampled] / temperatures - uniform
    allowed = [None if state.done else state.allowed() for state in here]
    bound = [k for k, tokens in enumerate(allowed) if tokens is not None]
    if bound:
        counts = torch.tensor([len(tokens) for tokens in allowed if tokens is not None])
        places = torch.tensor(bound).repeat_interleave(counts)
        to = torch.tensor([t for tokens in allowed if tokens is not None for t in tokens])
        masked = scores.clone()
        masked[bound] = -torch.inf
        masked[places, to] = scores[places, to]
        scores = masked
    best: list[int] = scores.argmax(-1).tolist()
    return [pad_id if s.done else token for s, token in zip(here, best, strict=True)]


def _left_padded(prompts: Sequence[list[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    longest = max(map(len, prompts))
    ids = [[pad_id] * (longest - len(prompt)) + prompt for prompt in prompts]
    mask = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return torch.tensor(ids), torch.tensor(mask)


def accepts(network: nn.Module) -> frozenset[str]:
    """The names of the inputs of a network; they differ between architectures."""
    return _parameters(type(network).forward)


@lru_cache
def _parameters(function: Callable[..., object]) -> frozenset[str]:
    return frozenset(signature(function).parameters)
