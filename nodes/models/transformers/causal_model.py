"""Any causal language model of transformers, in this process.

It reads a decision as chat text and replies with text, like a large model behind an endpoint.
Batches, adapters and versions are in :mod:`swarm_ui.nodes.models.transformers.in_process_model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from swarm_ui.nodes.models.transformers.chat_tokens import ChatTokens, PromptReader
from swarm_ui.nodes.models.transformers.language_model import (
    LanguageModel,
    own_name,
    reader_options,
)
from swarm_ui.nodes.models.transformers.loading import find_named, load_parts

PREFIX_BYTES = 512 * 2**20
"""Default limit of cached bytes: about 20,000 tokens for a model of 135 M parameters."""


class CausalModel(LanguageModel):
    """A transformers language model with its tokenizer, chat template and named adapters.

    A tokenizer without a chat template gets a plain one: ``System: …``, ``User: …`` and
    ``Assistant: …`` with empty lines between, after the tokenizer's beginning-of-text token if it
    has one, and ``Assistant:`` at the end. ``Request.json_schema`` is not enforced.

    If a chat template refuses system turns, their content begins the user's turn.

    Control tokens in the content of a turn are changed into plain text (``</s>`` becomes
    ``‹/s>``), and a line like the heading of a turn gets a backslash.
    """

    def __init__(
        self,
        network: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str = "",
        prompt_format: str = "json",
        prompt_tokens: int | None = None,
        constrained: bool | None = None,
        prefix_bytes: int = PREFIX_BYTES,
    ) -> None:
        """
        Args:
            network: a network with a key-value cache.
            tokenizer: a tokenizer with the network's vocabulary.
            name: the model's name in traces; the network's own by default.
            prompt_format: how decisions are written and replies are read; see
                :data:`swarm_ui.prompts.FORMATS`. An adapter may have its own
                (:meth:`~.LoraNetwork.format_of`).
            prompt_tokens: the most tokens of the prompt of a decision; longer ones are shortened
                (:mod:`swarm_ui.prompts.shortening`). ``None``: the context minus the longest reply,
                but at least half of the context.
            constrained: whether replies to decisions are restricted to the actions that are
                possible on the screen; ``None``: those in the compact format are.
            prefix_bytes: memory limit for the keys and values of recent prompts. Prompts with the
                same prefix and adapter version reuse them. 0: nothing is kept.

        Raises:
            ConfigError: network and tokenizer do not fit together, there is no end token, the
                format does not exist, or ``prompt_tokens`` is not positive.
        """
        name = name or own_name(network)
        options = reader_options(network, ChatTokens(tokenizer, name), name, prompt_tokens)
        super().__init__(
            network,
            tokenizer,
            PromptReader(**options),
            targets=_adaptable(network),
            prompt_format=prompt_format,
            constrained=constrained,
            prefix_bytes=prefix_bytes,
        )

    @classmethod
    def from_pretrained(
        cls,
        folder_or_name: Path | str,
        *,
        device: str = "cpu",
        dtype: torch.dtype | str = "auto",
        quantize: str = "",
        name: str = "",
        prompt_format: str = "json",
        prompt_tokens: int | None = None,
        constrained: bool | None = None,
        prefix_bytes: int = PREFIX_BYTES,
    ) -> Self:
        """Network and tokenizer as transformers saves them.

        Args:
            folder_or_name: a folder; or, as a string, a name on the Hugging Face Hub, which is
                downloaded unless transformers is in offline mode.
            device: the device on which the model runs, such as ``"cpu"`` or ``"cuda:1"``;
                ``"auto"``, ``"balanced"`` or ``"sequential"``: accelerate distributes the layers
                over all devices.
            dtype: the type of the weights; ``"auto"``: as saved.
            quantize: ``"4bit"``: linear layers in NF4 by bitsandbytes, computed in bfloat16, on
                which adapters train as usual (QLoRA, arXiv 2305.14314).
            name: the model's name in traces; the folder's by default.
            prompt_format: how decisions are written and replies are read.
            prompt_tokens, constrained, prefix_bytes: see the constructor.

        Raises:
            ConfigError: there is no such model, or not all of its parts.
            MissingExtra: ``quantize`` without bitsandbytes.
        """
        network, tokenizer = load_parts(
            AutoModelForCausalLM, AutoTokenizer, "causal language model", folder_or_name,
            device=device, dtype=dtype, quantize=quantize,
        )  # fmt: skip
        return cls(
            network, tokenizer, name=name or Path(folder_or_name).name,
            prompt_format=prompt_format, prompt_tokens=prompt_tokens, constrained=constrained,
            prefix_bytes=prefix_bytes,
        )  # fmt: skip

    @classmethod
    def named(
        cls,
        name: str,
        *,
        device: str = "cpu",
        dtype: torch.dtype | str = "auto",
        quantize: str = "",
        prompt_format: str = "",
        prompt_tokens: int | None = None,
        constrained: bool | None = None,
    ) -> Self:
        """A model by the name that ``--model`` takes.

        Args:
            name: ``"smollm2"``, after ``swarm-ui models pull smollm2``; a folder; or ``org/name``
                on the Hugging Face Hub.
            device, dtype, quantize: see :meth:`from_pretrained`.
            prompt_format: how decisions are written and replies are read; empty: the format that
                the model's folder names (a merged model was trained with one), else ``"json"``.
            prompt_tokens, constrained: see the constructor.

        Raises:
            ConfigError: there is no such model, it was not pulled, or the hub does not answer; or
                the folder's model was trained with another format.
        """
        found = find_named(name, prompt_format)
        return cls.from_pretrained(
            found.folder, device=device, dtype=dtype, quantize=quantize, name=found.name,
            prompt_format=found.prompt_format, prompt_tokens=prompt_tokens,
            constrained=constrained,
        )  # fmt: skip

    def prompt_reader(self, versions: Sequence[str]) -> PromptReader:
        """An object that makes prompts in other processes, for these adapter versions and the base
        model. Raises ``ConfigError`` if there is no such version."""
        formats = {version: self.format_of(version) for version in (None, *versions)}
        return replace(self.codec.reader, formats=formats)


def _adaptable(network: PreTrainedModel) -> Sequence[str] | str:
    """The layers that get an adapter, as peft's ``target_modules``.

    In a network with experts, all feed-forward layers are left out: an expert reads the tokens of
    any rows, so that its adapter could not be that of a row.
    """
    names = [name.split(".") for name, _ in network.named_modules()]
    with_experts = {name[-2] for name in names if name[-1] == "experts"}
    if not with_experts:
        return "all-linear"
    head = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    return [
        name
        for name, part in network.named_modules()
        if isinstance(part, nn.Linear)
        and part is not head
        and with_experts.isdisjoint(name.split("."))
    ]
