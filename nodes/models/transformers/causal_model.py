"""Any causal language model of transformers, in this process.

It reads a decision as chat text and replies with text, like a large model behind an endpoint.
Batches, adapters and versions are in :mod:`swarm_ui.nodes.models.transformers.in_process_model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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

    loaders = (AutoModelForCausalLM, AutoTokenizer, "causal language model")

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
