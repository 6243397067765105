"""The embedded agent's transformer: Llama with three changes, so that a tiny model can learn to
refer to elements by index.

1. *Smear*: every token's embedding gets a learned projection of the previous token's embedding,
   so that one attention layer can match "the token after this word". This is a convolution of
   width 2. A plain Llama of this size needs several times as many training steps.
2. *Half rotary*: the slower half of the rotary frequencies is zero, so that half of each head
   attends by content only.
3. *Initialisation for a small width*: weights scaled by 1/sqrt(fan-in) and mimetic attention
   (keys start equal to queries, outputs as half the transposed values). With transformers' default
   of 0.02, a model of width 64 does not learn in the same time.

It is registered with transformers, so loading, saving, peft and trl work as for other models.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.cache_utils import Cache, DynamicCache
from transformers.modeling_outputs import BaseModelOutputWithPast
from transformers.models.llama.modeling_llama import LlamaModel, LlamaRotaryEmbedding


class UIAgentConfig(LlamaConfig):  # type: ignore[no-untyped-call]
    """Configuration; see :class:`transformers.LlamaConfig` for the fields."""

    model_type = "swarm_ui_agent"


class HalfRotaryEmbedding(LlamaRotaryEmbedding):
    """Rotary positions with the slower half of the frequencies at zero."""

    @staticmethod
    def compute_default_rope_parameters(
        config: LlamaConfig, **kwargs: Any
    ) -> tuple[torch.Tensor, float]:
        frequencies, scaling = LlamaRotaryEmbedding.compute_default_rope_parameters(config)
        keep = torch.arange(len(frequencies)) < len(frequencies) // 2
        return frequencies * keep, scaling


class UIAgentModel(LlamaModel):  # type: ignore[no-untyped-call]
    """Llama's body with smeared embeddings."""

    config_class = UIAgentConfig

    def __init__(self, config: UIAgentConfig) -> None:
        super().__init__(config)
        self._pad = int(config.pad_token_id or 0)
        self.smear = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.rotary_emb = HalfRotaryEmbedding(config=config)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Any,
    ) -> BaseModelOutputWithPast:
        """Llama's forward pass on smeared embeddings. The cache also keeps the last token, which
        the next call adds to its first token."""
        if inputs_embeds is not None or input_ids is None:
            raise ValueError("this model needs input_ids, to add the previous token to each token")
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache(config=self.config)
        inputs_embeds = self._embed(input_ids, past_key_values)
        output: BaseModelOutputWithPast = super().forward(
            inputs_embeds=inputs_embeds,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            use_cache=use_cache,
            **kwargs,
        )
        return output

    def _embed(self, ids: torch.Tensor, cache: Cache | None) -> torch.Tensor:
        """Smeared embeddings, shape ``[batch, tokens, width]``."""
        before: torch.Tensor | None = getattr(cache, "last_ids", None)
        first = torch.full_like(ids[:, :1], self._pad) if before is None else before
        previous = torch.cat([first, ids[:, :-1]], dim=1)
        last = ids[:, -1:]
        if before is not None and ids.shape[1] > 1:
            # Rows with fewer new tokens than others are padded on the left.
            padding = torch.eq(ids, self._pad).sum(1, keepdim=True)
            previous.scatter_(1, padding.clamp_max(ids.shape[1] - 1), before)
            last = torch.where(padding < ids.shape[1], last, before)
        if cache is not None:
            cache.last_ids = last  # type: ignore[attr-defined]
        scale = math.sqrt(self.config.hidden_size)
        here = self.embed_tokens(ids) * scale
        past = self.embed_tokens(previous) * scale
        past = past * torch.ne(previous, self._pad).unsqueeze(-1)
        result: torch.Tensor = here + self.smear(past)
        return result


class UIAgentForCausalLM(LlamaForCausalLM):  # type: ignore[no-untyped-call]
    """The embedded agent: a causal language model over screens and actions."""

    config_class = UIAgentConfig

    def __init__(self, config: UIAgentConfig) -> None:
        super().__init__(config)
        self.model = UIAgentModel(config)
        self.post_init()  # type: ignore[no-untyped-call]


@torch.no_grad()
def untrained(
    words: int, pad_id: int, eos_id: int, *, width: int, layers: int, heads: int, seed: int
) -> UIAgentForCausalLM:
    """A new agent with a vocabulary of ``words`` tokens, and the initialisation that the module
    describes."""
    config = UIAgentConfig(
        vocab_size=words,
        hidden_size=width,
        intermediate_size=int(width * 8 / 3) // 16 * 16,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        pad_token_id=pad_id,
        eos_token_id=eos_id,
        bos_token_id=None,
    )
    model, generator = UIAgentForCausalLM(config), torch.Generator().manual_seed(seed)

    def normal(weight: torch.Tensor, gain: float) -> None:
        weight.normal_(0.0, gain / math.sqrt(weight.shape[1]), generator=generator)

    model.model.embed_tokens.weight.normal_(0.0, 1 / math.sqrt(width), generator=generator)
    nn.init.orthogonal_(model.model.smear.weight, gain=0.5, generator=generator)
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        normal(attention.q_proj.weight, 1.2)
        attention.k_proj.weight.copy_(attention.q_proj.weight)
        normal(attention.v_proj.weight, 1.0)
        attention.o_proj.weight.copy_(attention.v_proj.weight.T * 0.5)
        normal(mlp.gate_proj.weight, 1 / math.sqrt(3))
        normal(mlp.up_proj.weight, 1 / math.sqrt(3))
        normal(mlp.down_proj.weight, 0.5 / math.sqrt(2 * layers))
    return model


AutoConfig.register("swarm_ui_agent", UIAgentConfig, exist_ok=True)
AutoModelForCausalLM.register(UIAgentConfig, UIAgentForCausalLM, exist_ok=True)
