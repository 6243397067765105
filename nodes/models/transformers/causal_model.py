"""Any causal language model of transformers, in this process.

It reads a decision as chat text and replies with text, like a large model behind an endpoint.
Batches, adapters and versions are in :mod:`swarm_ui.nodes.models.transformers.in_process_model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from swarm_ui.action import Unparsed, parse_action
from swarm_ui.adapter_metadata import read_metadata
from swarm_ui.errors import ConfigError
from swarm_ui.model import ChatMessage, Decision, Dropped, Request
from swarm_ui.nodes.models.pretrained.catalogue import model_folder
from swarm_ui.nodes.models.transformers.chat_tokens import ChatPrompt, ChatTokens
from swarm_ui.nodes.models.transformers.choosing_model import ChoosingInProcessModel
from swarm_ui.nodes.models.transformers.decoding import Continuation, Row
from swarm_ui.nodes.models.transformers.grammar import (
    ReplyGrammar,
    ReplyGrammars,
    token_texts,
)
from swarm_ui.nodes.models.transformers.placement import placement
from swarm_ui.nodes.models.transformers.prefill import accepts
from swarm_ui.nodes.models.transformers.prompt_reader import (
    PromptLimits,
    PromptReader,
    read_request,
    text_prompt,
)
from swarm_ui.prompts import format_named

PREFIX_BYTES = 512 * 2**20
"""Default limit of cached bytes: about 20,000 tokens for a model of 135 M parameters."""
_UNLOADABLE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError,
    SafetensorError,
)  # fmt: skip

_TURNS = (("user", "question"), ("assistant", "reply"))


class CausalModel(ChoosingInProcessModel[ChatPrompt]):
    """A transformers language model with its tokenizer, chat template and named adapters.

    A tokenizer without a chat template gets a plain one: ``System: …``, ``User: …`` and
    ``Assistant: …`` with empty lines between, after the tokenizer's beginning-of-text token if it
    has one, and ``Assistant:`` at the end. ``Request.json_schema`` is not enforced.

    If a chat template refuses system turns, their content begins the user's turn.

    Control tokens in the content of a turn are changed into plain text (``</s>`` becomes
    ``‹/s>``), and a line like the heading of a turn gets a backslash.
    """

    encodes_text = True
    _network_class: Any = AutoModelForCausalLM
    _reader_class: Any = AutoTokenizer
    _what = "causal language model"
    _prefix_bytes = PREFIX_BYTES

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
        self._words = _words(network, tokenizer)
        self.tokenizer: Any = tokenizer
        name = name or Path(network.name_or_path or "").name or type(network).__name__
        self._chats = ChatTokens(tokenizer, name)
        self._marks = self._chats.marks
        self._end, stops = _ends(network, self.tokenizer)
        pad_id = self.tokenizer.pad_token_id
        super().__init__(
            network,
            name=name,
            pad_id=self._end if pad_id is None else pad_id,
            stops=stops,
            targets=self._adaptable(network),
            prefix_bytes=prefix_bytes,
        )
        self.prompt_format = format_named(prompt_format).name
        self._constrained = constrained
        self._grammars: ReplyGrammars | None = None
        config = network.config.get_text_config()
        self._context = getattr(config, "max_position_embeddings", None)
        if prompt_tokens is not None and prompt_tokens < 1:
            raise ConfigError(f"prompt_tokens must be >= 1, got {prompt_tokens}")
        self.prompt_tokens = prompt_tokens

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
        prefix_bytes: int | None = None,
    ) -> CausalModel:
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
            prompt_tokens, constrained, prefix_bytes: see the constructor; ``None``: its defaults.

        Raises:
            ConfigError: there is no such model, or not all of its parts.
            MissingExtra: ``quantize`` without bitsandbytes.
        """
        options = placement(device, quantize)
        place = Path(folder_or_name)
        if isinstance(folder_or_name, Path) and not place.is_dir():
            raise ConfigError(f"no model in '{place}': there is no such folder")
        try:
            tokenizer = cls._reader_class.from_pretrained(str(folder_or_name))
            loaded: Any = cls._network_class.from_pretrained(
                str(folder_or_name),
                dtype=torch.bfloat16 if quantize else dtype,
                use_safetensors=True,
                output_loading_info=True,
                **options,
            )
        except _UNLOADABLE as error:
            raise ConfigError(
                f"no {cls._what} in '{folder_or_name}': expected config.json, "
                f"safetensors weights and a tokenizer, as save_pretrained writes them "
                f"({type(error).__name__}: {' '.join(str(error).split())})"
            ) from error
        network, found = loaded
        _expect_all_weights(folder_or_name, sorted(found["missing_keys"]))
        if not options:  # else the layers are where they belong
            network = network.to(device)
        return cls(
            network, tokenizer, name=name or place.name, prompt_format=prompt_format,
            prompt_tokens=prompt_tokens, constrained=constrained,
            prefix_bytes=cls._prefix_bytes if prefix_bytes is None else prefix_bytes,
        )  # fmt: skip

    def prompt(self, request: Request) -> ChatPrompt:
        """The prompt of a request, as turns, text and tokens. Raises ``ModelError`` if this model
        cannot answer it."""
        return self._read(request)

    def prompt_reader(self, versions: Sequence[str]) -> PromptReader:
        """An object that makes prompts in other processes, for these adapter versions and the base
        model. Raises ``ConfigError`` if there is no such version."""
        formats = {version: self.format_of(version) for version in (None, *versions)}
        return PromptReader(self._chats, self._limits, formats)

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
    ) -> CausalModel:
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
        folder = model_folder(name)
        own = read_metadata(folder)
        own.expect_format(folder, prompt_format)
        return cls.from_pretrained(
            folder,
            device=device,
            dtype=dtype,
            quantize=quantize,
            name=folder.name if folder == Path(name) else name,
            prompt_format=prompt_format or own.prompt_format or "json",
            prompt_tokens=prompt_tokens,
            constrained=constrained,
        )

    def _adaptable(self, network: PreTrainedModel) -> Sequence[str] | str:
        """The layers that get an adapter, as peft's ``target_modules``.

        In a network with experts, all feed-forward layers are left out: an expert reads the tokens
        of any rows, so that its adapter could not be that of a row.
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

    def save(self, folder: Path, weights: dict[str, Tensor] | None = None) -> None:
        """Weights, configuration and tokenizer (adapters: :meth:`save_adapters`).

        ``weights``: saved instead of the base weights.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.network.save_pretrained(str(folder), state_dict=weights or self.base_weights())
        self.tokenizer.save_pretrained(str(folder))

    # -- tokens -------------------------------------------------------------------------------

    def _read(self, request: Request) -> ChatPrompt:
        form = self.format_of(request.adapter)
        chat = partial(self._chat, form)
        return read_request(request, form, self._limits, chat=chat, prompt=self._prompt)

    @property
    def _limits(self) -> PromptLimits:
        return PromptLimits(self.name, self._context, self.prompt_tokens)

    def _chat(self, prompt_format: str, decision: Decision) -> tuple[ChatMessage, ...]:
        return format_named(prompt_format).chat(decision)

    def _prompt(self, chat: Sequence[ChatMessage]) -> ChatPrompt:
        return text_prompt(self._chats, self.name, chat)

    def _tokens(self, text: str, *, literal: bool = False) -> list[int]:
        """The tokens of a text; if ``literal``, none of them is a special one."""
        return self._chats.tokens(text, literal=literal)

    def _row(self, request: Request, prompt: ChatPrompt) -> Row:
        room = request.reply_tokens if self._context is None else self._context - len(prompt.ids)
        return Row(
            prompt=prompt.ids,
            temperature=request.temperature or 0.0,
            seed=request.seed,
            max_tokens=min(request.reply_tokens, room),
            grammar=self._grammar(prompt),
        )

    def _grammar(self, prompt: ChatPrompt) -> ReplyGrammar | None:
        """A grammar of the replies that the screen allows; ``None`` if they are not restricted."""
        bound = self._constrained
        if bound is None:
            bound = prompt.prompt_format == "compact"
        if not bound or prompt.decision is None:
            return None
        if self._grammars is None:
            self._grammars = ReplyGrammars(
                token_texts(self.tokenizer, self._words),
                self._literals,
                self._end,
                self.network.device,
            )
        return self._grammars.compile(format_named(prompt.prompt_format).replies(prompt.decision))

    def _literals(self, texts: list[str]) -> list[list[int]]:
        """The tokens of parts of replies, as :meth:`_reply` has them."""
        marked = [self._marks.search(text) is not None for text in texts]
        others = [text for text, mark in zip(texts, marked, strict=True) if not mark]
        read = self.tokenizer(others, add_special_tokens=False)["input_ids"] if others else []
        plain = iter(read)
        return [
            self._tokens(text, literal=True) if mark else next(plain)
            for text, mark in zip(texts, marked, strict=True)
        ]

    def _text(self, prompt: ChatPrompt, ids: list[int]) -> str:
        decode = self.tokenizer.decode
        return str(decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def _shown(self, prompt: ChatPrompt) -> str:
        return prompt.text

    def _dropped(self, prompt: ChatPrompt) -> Dropped | None:
        return None if prompt.decision is None else prompt.decision.dropped

    def _format(self, prompt: ChatPrompt) -> str:
        return prompt.prompt_format if prompt.decision is not None else "json"

    def _reply(self, prompt: ChatPrompt, reply: str) -> list[int] | None:
        decision, form = prompt.decision, format_named(prompt.prompt_format)
        if decision is not None:
            read = form.parse(reply, decision.observation, partial=decision.partial)
            if isinstance(read, Unparsed):
                return None
        return self._spoken(prompt, reply)

    def _spoken(self, prompt: ChatPrompt, reply: str) -> list[int]:
        literal = self._marks.search(reply) is not None
        return [*self._tokens(reply, literal=literal), self._end]

    def _sampled(self, prompt: ChatPrompt, new: Continuation, text: str) -> tuple[int, ...]:
        return () if new.tokens == self._spoken(prompt, text) else tuple(new.tokens)

    def _first_token(self, option: str) -> int:
        ids = self._tokens(option, literal=True)
        return ids[0] if ids else self._end

    def _proposal(self, prompt: ChatPrompt, action: str) -> list[int] | None:
        decision, read = prompt.decision, parse_action(action)
        if isinstance(read, Unparsed):
            return None
        if decision is None or prompt.prompt_format == "json":
            return self._reply(prompt, action)
        form = format_named(prompt.prompt_format)
        return self._reply(prompt, form.write(read, decision.observation))


def _words(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
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


def _expect_all_weights(place: Path | str, missing: Sequence[str]) -> None:
    """Raise ``ConfigError`` for missing weights, which transformers initialises at random."""
    if missing:
        raise ConfigError(
            f"the weights in '{place}' lack {len(missing)} tensors of the network, such as "
            f"{missing[0]}; save the model again, with all of its files"
        )


def _ends(network: PreTrainedModel, tokenizer: Any) -> tuple[int, frozenset[int]]:
    """The token at the end of trained replies, and all tokens that can end a reply."""
    generation = getattr(network, "generation_config", None)
    named = getattr(generation, "eos_token_id", None)
    stops = [] if named is None else [named] if isinstance(named, int) else list(named)
    if tokenizer.eos_token_id is not None:
        stops.insert(0, tokenizer.eos_token_id)
    if not stops:
        raise ConfigError(
            "neither the tokenizer nor the network's generation_config names an end token "
            "(eos_token); set one, or no reply would ever end"
        )
    end = _end_of_turn(tokenizer, stops)
    return stops[0] if end is None else end, frozenset(stops)


def _end_of_turn(tokenizer: Any, stops: Sequence[int]) -> int | None:
    """The end token that the chat template puts behind a reply, which may be another one than that
    of a text (Gemma, Phi-3); ``None``: there is none."""
    if tokenizer.chat_template is None:
        return None
    turns = [{"role": role, "content": content} for role, content in _TURNS]
    try:
        text = tokenizer.apply_chat_template(turns, tokenize=False)
    except Exception:  # a template is a program that may raise anything
        return None
    ids = tokenizer(text.rpartition(_TURNS[-1][1])[2], add_special_tokens=False)["input_ids"]
    return next((id_ for id_ in ids if id_ in stops), None)
