"""Any causal language model of transformers, in this process.

It reads a decision as chat text and replies with text, like a large model behind an endpoint.
Batches, adapters and versions are in :mod:`swarm_ui.nodes.models.transformers.in_process_model`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from swarm_ui.action import Unparsed, parse_action
from swarm_ui.adapter_metadata import read_metadata
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import ChatMessage, Decision, Dropped, Request
from swarm_ui.nodes.models.pretrained.catalogue import model_folder
from swarm_ui.nodes.models.transformers.decoding import Row, accepts
from swarm_ui.nodes.models.transformers.in_process_model import InProcessModel
from swarm_ui.prompts import as_chat, format_named, shortened

_LIKE_A_MARK = re.compile(r"<[^<>\s]{1,60}>|\[[^\[\]\s]{1,60}\]")
_HEADING = re.compile(r"^\\*(?:system|user|assistant):", re.IGNORECASE | re.MULTILINE)
_UNLOADABLE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError,
    SafetensorError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A chat as tokens and as text."""

    ids: list[int]
    text: str
    prompt_format: str = "json"
    decision: Decision | None = None
    """What the chat is about; ``None``: the request was a chat."""


class CausalModel(InProcessModel[ChatPrompt]):
    """A transformers language model with its tokenizer, chat template and named adapters.

    A tokenizer without a chat template gets a plain one: ``System: …``, ``User: …`` and
    ``Assistant: …`` with empty lines between, after the tokenizer's beginning-of-text token if it
    has one, and ``Assistant:`` at the end. ``Request.json_schema`` is not enforced.

    Control tokens in the content of a turn lose their meaning: they are changed into plain text
    (``</s>`` becomes ``‹/s>``), and a line like the heading of a turn gets a backslash.
    """

    _network_class: Any = AutoModelForCausalLM
    _reader_class: Any = AutoTokenizer
    _what = "causal language model"

    def __init__(
        self,
        network: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str = "",
        prompt_format: str = "json",
        prompt_tokens: int | None = None,
    ) -> None:
        """
        Args:
            network: a network with a key-value cache.
            tokenizer: of the same vocabulary.
            name: for traces; the network's own by default.
            prompt_format: how decisions are written and replies are read; see
                :data:`swarm_ui.prompts.FORMATS`. An adapter may have its own
                (``format_of``).
            prompt_tokens: the most tokens of the prompt of a decision; longer ones are shortened
                (:mod:`swarm_ui.prompts.shortening`). ``None``: what the context leaves after the
                longest reply, at least half of it.

        Raises:
            ConfigError: they do not fit together, there is no end token, or no such format; or
                ``prompt_tokens`` is not positive.
        """
        if "past_key_values" not in accepts(network):
            raise ConfigError(
                f"{type(network).__name__} has no key-value cache; a model here must be a causal "
                "transformer (AutoModelForCausalLM)"
            )
        embeddings: Any = network.get_input_embeddings()
        rows = embeddings.weight.shape[0]
        if len(tokenizer) > rows:
            raise ConfigError(
                f"the tokenizer has {len(tokenizer)} tokens, the network knows {rows}; "
                "the two do not belong together"
            )
        self.tokenizer: Any = tokenizer
        self._marks = control_marks(self.tokenizer)
        self._end, stops = _ends(network, self.tokenizer)
        pad_id = self.tokenizer.pad_token_id
        super().__init__(
            network,
            name=name or Path(network.name_or_path or "").name or type(network).__name__,
            pad_id=self._end if pad_id is None else pad_id,
            stops=stops,
            targets=self._adaptable(network),
        )
        self.prompt_format = format_named(prompt_format).name
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
        name: str = "",
        prompt_format: str = "json",
        prompt_tokens: int | None = None,
    ) -> CausalModel:
        """Network and tokenizer as transformers saves them.

        Args:
            folder_or_name: a folder; or, as a string, a name on the Hugging Face Hub, which is
                downloaded unless transformers is set to be offline.
            device: the device on which the model runs.
            dtype: the type of the weights; ``"auto"``: as saved.
            name: for traces; the folder's by default.
            prompt_format: how decisions are written and replies are read.
            prompt_tokens: the most tokens of the prompt of a decision.

        Raises:
            ConfigError: there is no such model, or not all of its parts.
        """
        place = Path(folder_or_name)
        if isinstance(folder_or_name, Path) and not place.is_dir():
            raise ConfigError(f"no model in '{place}': there is no such folder")
        try:
            tokenizer = cls._reader_class.from_pretrained(str(folder_or_name))
            loaded: Any = cls._network_class.from_pretrained(
                str(folder_or_name), dtype=dtype, use_safetensors=True, output_loading_info=True
            )
        except _UNLOADABLE as error:
            raise ConfigError(
                f"no {cls._what} in '{folder_or_name}': expected config.json, "
                f"safetensors weights and a tokenizer, as save_pretrained writes them "
                f"({type(error).__name__}: {' '.join(str(error).split())})"
            ) from error
        network, found = loaded
        missing = sorted(found["missing_keys"])
        if missing:  # transformers would initialise them at random
            raise ConfigError(
                f"the weights in '{folder_or_name}' lack {len(missing)} of the network's, such as "
                f"{missing[0]}; save the model again, with all of its files"
            )
        return cls(
            network.to(device),
            tokenizer,
            name=name or place.name,
            prompt_format=prompt_format,
            prompt_tokens=prompt_tokens,
        )

    @classmethod
    def named(
        cls,
        name: str,
        *,
        device: str = "cpu",
        dtype: torch.dtype | str = "auto",
        prompt_format: str = "",
        prompt_tokens: int | None = None,
    ) -> CausalModel:
        """A model by the name that ``--model`` takes.

        Args:
            name: ``"smollm2"``, after ``swarm-ui models pull smollm2``; a folder; or ``org/name``
                on the Hugging Face Hub.
            device, dtype: see :meth:`from_pretrained`.
            prompt_format: how decisions are written and replies are read; empty: as the model's
                folder says (a merged model was trained with one), else ``"json"``.
            prompt_tokens: the most tokens of the prompt of a decision.

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
            name=folder.name if folder == Path(name) else name,
            prompt_format=prompt_format or own.prompt_format or "json",
            prompt_tokens=prompt_tokens,
        )

    def _adaptable(self, network: PreTrainedModel) -> Sequence[str] | str:
        """The layers that get an adapter, as peft's ``target_modules``."""
        return "all-linear"

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
        decision = request.decision
        if decision is None or request.chat is not None:
            prompt = self._prompt(as_chat(request, chat))
            if self._context is not None and len(prompt.ids) >= self._context:
                raise ModelError(
                    f"the prompt has {len(prompt.ids)} tokens; '{self.name}' accepts at most "
                    f"{self._context}, its reply included"
                )
        else:
            limit = self._prompt_limit(request)
            decision, prompt = shortened(decision, limit, chat, self._prompt, _length)
        return replace(prompt, prompt_format=form, decision=decision)

    def _chat(self, prompt_format: str, decision: Decision) -> tuple[ChatMessage, ...]:
        return format_named(prompt_format).chat(decision)

    def _prompt_limit(self, request: Request) -> int:
        """The most tokens of the prompt of a decision."""
        limits = [sys.maxsize]
        if self._context is not None:
            again = request.decision is not None and request.decision.dropped is not None
            room = max(self._context - request.max_tokens, self._context // 2)
            limits.append(self._context - 1 if again or self.prompt_tokens is not None else room)
        if self.prompt_tokens is not None:
            limits.append(self.prompt_tokens)
        return min(limits)

    def _prompt(self, chat: Sequence[ChatMessage]) -> ChatPrompt:
        if any(turn.images for turn in chat):
            raise ModelError(
                f"'{self.name}' reads text only, and the chat has images; "
                "use a model that can see: VisionModel, or an OpenAI-compatible one"
            )
        text = self._written([(turn.role, self._unmarked(turn.content)) for turn in chat])
        return ChatPrompt(self._tokens(text), text)

    def _unmarked(self, text: str) -> str:
        """The content of a turn without what ends a turn or begins another."""
        return self._marks.sub(_broken, text)

    def _written(self, turns: Sequence[tuple[str, Any]]) -> str:
        """The turns (role, content) in the chat template."""
        tokenizer = self.tokenizer
        if tokenizer.chat_template is None:
            return (tokenizer.bos_token or "") + _plain(turns)
        try:
            return _templated(tokenizer, turns)
        except Exception as error:  # a template is a program that may raise anything
            raise ModelError(
                f"the chat template of '{self.name}' refuses this chat "
                f"({', '.join(role for role, _ in turns)}): {error}"
            ) from error

    def _tokens(self, text: str, *, literal: bool = False) -> list[int]:
        """The tokens of a text; if ``literal``, none of them is a special one."""
        options = {"split_special_tokens": True} if literal else {}
        return list(self.tokenizer(text, add_special_tokens=False, **options)["input_ids"])

    def _row(self, request: Request, prompt: ChatPrompt) -> Row:
        room = request.max_tokens if self._context is None else self._context - len(prompt.ids)
        return Row(
            prompt=prompt.ids,
            temperature=request.temperature,
            seed=request.seed,
            max_tokens=min(request.max_tokens, room),
        )

    def _text(self, prompt: ChatPrompt, ids: list[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

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
        literal = self._marks.search(reply) is not None
        return [*self._tokens(reply, literal=literal), self._end]

    def _proposal(self, prompt: ChatPrompt, action: str) -> list[int] | None:
        decision, read = prompt.decision, parse_action(action)
        if isinstance(read, Unparsed):
            return None
        if decision is None or prompt.prompt_format == "json":
            return self._reply(prompt, action)
        form = format_named(prompt.prompt_format)
        return self._reply(prompt, form.write(read, decision.observation))


def _length(prompt: ChatPrompt) -> int:
    return len(prompt.ids)


def _plain(turns: Sequence[tuple[str, str]]) -> str:
    lines = [f"{role.capitalize()}: {_HEADING.sub(_escaped, content)}" for role, content in turns]
    return "\n\n".join([*lines, "Assistant:"])


def _templated(tokenizer: Any, turns: Sequence[tuple[str, Any]]) -> str:
    chat = [{"role": role, "content": content} for role, content in turns]
    return str(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))


def control_marks(tokenizer: Any, content: Any = "x") -> re.Pattern[str]:
    """Finds the control tokens of a tokenizer, and what its chat template puts around turns with
    this content."""
    added = tokenizer.added_tokens_decoder.values()
    marks = {t.content for t in added if t.special or _LIKE_A_MARK.fullmatch(t.content)}
    if tokenizer.chat_template is not None:
        for roles in (("system", "user", "assistant", "user"), ("user", "assistant", "user")):
            try:
                shown = _templated(tokenizer, [(role, content) for role in roles])
            except Exception:  # it accepts no such chat, so it has no such marks
                continue
            marks.update(_LIKE_A_MARK.findall(shown))
    listed = sorted((mark for mark in marks if mark.strip()), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, listed)) or r"(?!)", re.IGNORECASE)


def _broken(mark: re.Match[str]) -> str:
    """A mark as harmless text."""
    text = mark[0]
    return f"‹{text[1:]}" if text[0] == "<" else f"{text[0]} {text[1:]}"


def _escaped(heading: re.Match[str]) -> str:
    return f"\\{heading[0]}"


def _ends(network: PreTrainedModel, tokenizer: Any) -> tuple[int, frozenset[int]]:
    """The token that a trained reply ends with, and all that end one."""
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
    return stops[0], frozenset(stops)
