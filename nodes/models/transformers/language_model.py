"""A language model of transformers that reads chats, and gives probabilities of short replies.

Critics use the probabilities (:class:`swarm_ui.model.ChoosingModel`). All questions about a screen
are packed into one row of a batch (:mod:`swarm_ui.nodes.models.transformers.choices`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import torch
from transformers import PreTrainedModel

from swarm_ui.errors import ConfigError
from swarm_ui.model import Request, at_leased_versions
from swarm_ui.nodes.models.batcher import Batcher
from swarm_ui.nodes.models.transformers.adapters.frozen import FrozenAdapter
from swarm_ui.nodes.models.transformers.chat_codec import ChatCodec
from swarm_ui.nodes.models.transformers.chat_tokens import ChatPrompt, ChatTokens, PromptReader
from swarm_ui.nodes.models.transformers.choices import (
    PackedPrompts,
    can_pack,
    grouped,
    option_ids,
    option_logits,
    pack,
)
from swarm_ui.nodes.models.transformers.in_process_model import InProcessModel, by_adapter
from swarm_ui.nodes.models.transformers.loading import find_named, load_parts
from swarm_ui.nodes.models.transformers.prefill import accepts, pieces
from swarm_ui.prompts import format_named

_ROWS, _TOKENS = 32, 8_192
"""Rows and tokens, padding included, of one batch of questions. Attention needs the square of a
row's length."""


class _Question(NamedTuple):
    """One packed row, the adapter that answers it, and the tokens to choose from."""

    row: PackedPrompts
    adapter: FrozenAdapter | None
    options: tuple[int, ...]


class LanguageModel(InProcessModel[ChatPrompt]):
    """A model in this process that reads chats. It is also a
    :class:`swarm_ui.model.ChoosingModel`."""

    codec: ChatCodec
    loaders: ClassVar[tuple[Any, Any, str]]
    """The classes of transformers that load its network, and its tokenizer or processor; and what
    the model is, for errors."""

    def __init__(
        self,
        network: PreTrainedModel,
        tokenizer: Any,
        reader: PromptReader,
        *,
        targets: Sequence[str] | str,
        prompt_format: str,
        constrained: bool | None,
        prefix_bytes: int,
        packing: bool | None = None,
        part: str = "",
    ) -> None:
        """
        Args:
            network: a network with a key-value cache.
            tokenizer: a tokenizer with the network's vocabulary.
            reader: makes the prompts.
            targets: the layers that get an adapter, as peft's ``target_modules``.
            prompt_format, constrained, prefix_bytes: see
                :class:`~swarm_ui.nodes.models.transformers.causal_model.CausalModel`.
            packing: whether the network can read packed prompts; ``None``: it is tried.
            part: see :class:`~swarm_ui.nodes.models.transformers.adapters.lora.LoraNetwork`.

        Raises:
            ConfigError: network and tokenizer do not fit together, there is no end token, or the
                format does not exist.
        """
        codec = ChatCodec(
            tokenizer,
            reader,
            generation=getattr(network, "generation_config", None),
            words=_words(network, tokenizer),
            device=network.device,
            constrained=constrained,
        )
        super().__init__(
            network,
            codec,
            name=reader.name,
            prompt_format=format_named(prompt_format).name,
            targets=targets,
            part=part,
            prefix_bytes=prefix_bytes,
        )
        self.tokenizer = tokenizer
        self._packing = packing
        self._choices: Batcher[_Question, list[tuple[float, ...]]] = Batcher(
            self._choose,
            length=lambda question: len(question.row.ids),
            max_rows=_ROWS,
            max_tokens=_TOKENS,
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
        **settings: Any,
    ) -> Self:
        """A network, and its tokenizer or processor, as transformers saves them.

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
            settings: further arguments of the constructor, such as ``prompt_format``.

        Raises:
            ConfigError: there is no such model, or not all of its parts.
            MissingExtra: ``quantize`` without bitsandbytes.
        """
        network, reader = load_parts(
            *cls.loaders, folder_or_name, device=device, dtype=dtype, quantize=quantize
        )
        make: Any = cls  # each kind has a constructor of its own
        model: Self = make(network, reader, name=name or Path(folder_or_name).name, **settings)
        return model

    @classmethod
    def named(cls, name: str, *, prompt_format: str = "", **settings: Any) -> Self:
        """A model by the name that ``--model`` takes.

        Args:
            name: ``"smollm2"``, after ``swarm-ui models pull smollm2``; a folder; or ``org/name``
                on the Hugging Face Hub.
            prompt_format: how decisions are written and replies are read; empty: the format that
                the model's folder names (a merged model was trained with one), else ``"json"``.
            settings: further arguments of :meth:`from_pretrained`.

        Raises:
            ConfigError: there is no such model, it was not pulled, or the hub does not answer; or
                the folder's model was trained with another format.
        """
        found = find_named(name, prompt_format)
        return cls.from_pretrained(
            found.folder, name=found.name, prompt_format=found.prompt_format, **settings
        )

    @property
    def prompt_tokens(self) -> int | None:
        """The most tokens of the prompt of a decision; ``None``: the rest of the context."""
        return self.codec.reader.prompt_tokens

    def prompt(self, request: Request) -> ChatPrompt:
        """The prompt of a request, as turns, text and tokens. Raises ``ModelError`` if this model
        cannot answer it."""
        return self._read(request)

    async def probabilities(
        self, requests: Sequence[Request], options: Sequence[str]
    ) -> list[tuple[float, ...]]:
        """Probability of each option as the reply, among the options only; see
        :class:`swarm_ui.model.ChoosingModel`."""
        wanted = tuple(option_ids(options, [self.codec.first_token(each) for each in options]))
        with at_leased_versions(self, requests) as exact:
            with self._timed():
                ids = [self._read(request).ids for request in exact]
            groups: list[list[int]] = []
            for version in dict.fromkeys(request.adapter for request in exact):
                own = [k for k, request in enumerate(exact) if request.adapter == version]
                parts = grouped([ids[k] for k in own], self._can_pack())
                groups += [[own[k] for k in part] for part in parts]
            questions = [
                _Question(
                    pack([ids[k] for k in group]), self._frozen_of(exact[group[0]].adapter), wanted
                )
                for group in groups
            ]
            answers = await self._choices.ask(questions)
        found = {k: p for group, a in zip(groups, answers, strict=True) for k, p in zip(group, a)}  # noqa: B905
        self.counters.scored += len(requests)
        return [found[k] for k in range(len(requests))]

    def _choose(self, questions: Sequence[_Question]) -> list[list[tuple[float, ...]]]:
        found: dict[int, list[tuple[float, ...]]] = {}
        with self._timed():
            for options in dict.fromkeys(question.options for question in questions):
                own = [k for k, question in enumerate(questions) if question.options == options]
                lengths = [len(questions[k].row.ids) for k in own]
                for piece in pieces(lengths, self._cost):
                    chunk = [own[at] for at in piece]
                    chunk = [chunk[at] for at in by_adapter([questions[k].adapter for k in chunk])]
                    rows = [questions[k].row for k in chunk]
                    with (
                        self._routing([questions[k].adapter for k in chunk]),
                        torch.inference_mode(),
                    ):
                        logits = option_logits(self.network, rows, options, self.pad_id)
                    for k, values in zip(chunk, logits, strict=True):
                        found[k] = [tuple(row) for row in values.double().softmax(1).tolist()]
                    self.counters.batches += 1
        return [found[k] for k in range(len(questions))]

    def _can_pack(self) -> bool:
        if self._packing is None:
            with self.routed([None]) as network:
                self._packing = can_pack(network)
        return self._packing


def reader_options(
    network: PreTrainedModel, chats: ChatTokens, name: str, prompt_tokens: int | None
) -> dict[str, Any]:
    """The arguments of a reader of prompts for a network. Raises ``ConfigError`` if
    ``prompt_tokens`` is not positive."""
    if prompt_tokens is not None and prompt_tokens < 1:
        raise ConfigError(f"prompt_tokens must be >= 1, got {prompt_tokens}")
    context = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    return {"chats": chats, "name": name, "context": context, "prompt_tokens": prompt_tokens}


def own_name(network: PreTrainedModel) -> str:
    """The name of a network, for traces."""
    return Path(network.name_or_path or "").name or type(network).__name__


def _words(network: PreTrainedModel, tokenizer: Any) -> int:
    """Number of tokens of the network. Raises ``ConfigError`` if it is not a causal transformer, or
    if the tokenizer has more tokens."""
    if "past_key_values" not in accepts(network):
        raise ConfigError(
            f"{type(network).__name__} has no key-value cache; a model here must be a causal "
            "transformer (AutoModelForCausalLM)"
        )
    embeddings: Any = network.get_input_embeddings()
    rows: int = embeddings.weight.shape[0]
    if len(tokenizer) > rows:
        raise ConfigError(
            f"the tokenizer has {len(tokenizer)} tokens, the network knows {rows}; "
            "the two do not belong together"
        )
    return rows
