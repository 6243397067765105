"""An estimate of the memory that a training run needs, from the shape of a model alone.

Nothing is loaded, and torch is not imported. The activations were counted on a Llama-like network
with adapters on all linear layers. Other architectures and kernels differ, and the reserves of an
allocator are not included, so use the estimate only to choose settings.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from swarm_ui.errors import ConfigError

Precision = Literal["float32", "bfloat16", "4bit"]

_WEIGHT_BYTES = {"float32": 4.0, "bfloat16": 2.0, "4bit": 4.127 / 8}
"""Bytes of a weight in a linear layer; 4.127 bits with the doubly quantised scales of NF4."""
_GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The sizes of a transformer."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    inner_width: int
    """Width of the feed-forward part."""
    words: int
    """Number of tokens in the vocabulary."""
    tied: bool = True
    """Whether input and output embeddings are the same weights."""
    bfloat16: bool = True
    """Whether the weights are saved in 16 bits."""

    @classmethod
    def of_folder(cls, folder: Path) -> ModelShape:
        """The shape in a folder's ``config.json``.

        Raises:
            ConfigError: there is none, or it does not describe a transformer.
        """
        try:
            read = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            given = read.get("text_config") or read
            width, heads = int(given["hidden_size"]), int(given["num_attention_heads"])
            return cls(
                layers=int(given["num_hidden_layers"]),
                width=width,
                heads=heads,
                kv_heads=int(given.get("num_key_value_heads") or heads),
                head_width=int(given.get("head_dim") or width // heads),
                inner_width=int(given.get("intermediate_size") or 4 * width),
                words=int(given["vocab_size"]),
                tied=bool(given.get("tie_word_embeddings", True)),
                bfloat16="16" in str(given.get("dtype") or given.get("torch_dtype") or ""),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"'{folder / 'config.json'}' does not give the sizes of a transformer "
                f"({type(error).__name__}: {error}); the memory cannot be estimated"
            ) from error

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_width

    @property
    def linear_weights(self) -> int:
        """Weights of the linear layers in all transformer layers."""
        attention = 2 * self.width * self.heads * self.head_width + 2 * self.width * self.kv_width
        return self.layers * (attention + 3 * self.width * self.inner_width)

    @property
    def embedding_weights(self) -> int:
        return self.words * self.width * (1 if self.tied else 2)

    @property
    def parameters(self) -> int:
        """The number of all weights, including those of normalisations."""
        norms = (2 * self.layers + 1) * self.width
        return self.linear_weights + self.embedding_weights + norms

    def adapter_weights(self, rank: int, layers: int | None = None) -> int:
        """Number of weights of a LoRA adapter on the linear layers of all, or of ``layers``,
        transformer layers."""
        query = self.heads * self.head_width
        ends = 2 * (self.width + query) + 2 * (self.width + self.kv_width)
        ends += 3 * (self.width + self.inner_width)
        return rank * ends * (self.layers if layers is None else layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """The estimated bytes, by their use."""

    weights: int
    """Weights of the base model."""
    adapters: int
    """All adapters in float32, and a copy of the one in training, which answers meanwhile."""
    optimiser: int
    """Gradients and both moments of Adam, of the one adapter in training."""
    activations: int
    """Tensors kept from a forward of one micro-batch for its backward, with the replies' logits."""
    cache: int
    """Keys and values of the rows that are decoded at the same time in a rollout."""

    @property
    def total(self) -> int:
        """The larger of the memory for updates and for rollouts, which alternate."""
        return self.weights + self.adapters + max(self.optimiser + self.activations, self.cache)

    def __str__(self) -> str:
        parts = (
            ("weights", self.weights), ("adapters", self.adapters), ("optimiser", self.optimiser),
            ("activations", self.activations), ("or in rollouts the cache", self.cache),
        )  # fmt: skip
        told = ", ".join(f"{name} {_told(size)}" for name, size in parts)
        return f"about {_told(self.total)} (estimate: {told})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The sizes of training batches and rollouts."""

    adapters: int = 4
    rank: int = 16
    layers: int | None = None
    """Transformer layers with an adapter; ``None``: all. They are taken to be the upper ones."""
    micro_batch_tokens: int = 2048
    batch_rows: int = 64
    """Prompts with replies of one optimiser step: two for each pair."""
    checkpointing: bool = False
    autocast: bool = True
    eager_attention: bool = False
    precision: Precision = "bfloat16"
    """Precision of the base model's weights."""
    prompt_tokens: int = 160
    """A phone screen has about 160 in the compact format, and 1,000 in the JSON format."""
    reply_tokens: int = 48
    rows: int = 64
    """Requests that are decoded at the same time."""


def estimate_memory(shape: ModelShape, work: Workload) -> MemoryEstimate:
    """The memory of a training run."""
    each = shape.adapter_weights(work.rank, work.layers)
    rest = 4.0 if work.precision == "float32" else 2.0
    other = shape.parameters - shape.linear_weights
    weights = shape.linear_weights * _WEIGHT_BYTES[work.precision] + other * rest
    row = work.prompt_tokens + work.reply_tokens
    cached = 2 * shape.layers * shape.kv_width * row * work.rows * rest
    return MemoryEstimate(
        weights=math.ceil(weights),
        adapters=4 * each * (work.adapters + 1),
        optimiser=12 * each,
        activations=math.ceil(_activations(shape, work, row)),
        cache=math.ceil(cached),
    )


def _activations(shape: ModelShape, work: Workload, row: int) -> float:
    """Bytes that a forward of one micro-batch keeps, ``row`` tokens each row."""
    tokens = max(min(work.micro_batch_tokens, work.batch_rows * row), row)
    per_token = layer_bytes_per_token(shape, work, row)
    layers = shape.layers if work.layers is None else work.layers
    if work.checkpointing:
        inputs = layers * shape.width * (2 if work.autocast else 4)
        kept = inputs + per_token  # one layer at a time is computed again
    else:
        kept = layers * per_token
    # Logits of the replies in the precision of the network, in float32, and their log-softmax.
    logits = (tokens / row) * work.reply_tokens * shape.words * (10 if work.autocast else 12)
    return tokens * kept + logits


def layer_bytes_per_token(shape: ModelShape, work: Workload, row: int) -> float:
    """Bytes that one layer keeps for each token; the factors were counted on Llama networks."""
    if work.autocast:
        kept = 26 * shape.width + 4 * shape.kv_width + 8.5 * shape.inner_width + 16 * work.rank
        return kept + (6 * shape.heads * row if work.eager_attention else 0)
    kept = 27 * shape.width + 8 * shape.kv_width + 16 * shape.inner_width + 24 * work.rank
    return kept + (4.1 * shape.heads * row if work.eager_attention else 0)


def _told(size: int) -> str:
    return f"{size / _GIB:.2f} GiB" if size >= _GIB / 10 else f"{size / 2**20:.1f} MiB"
