"""Language models of transformers in this process, which read chats and reply with text.

They read a decision as chat text, like a large model behind an endpoint. Batches, adapters and
versions are in :mod:`swarm_ui.nodes.models.transformers.in_process_model`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from swarm_ui.action import Unparsed, parse_action
from swarm_ui.adapter_metadata import read_metadata
from swarm_ui.errors import ConfigError
from swarm_ui.model import Completion, Request
from swarm_ui.nodes.models.pretrained.catalogue import model_folder
from swarm_ui.nodes.models.reply_patterns import decision_pattern
from swarm_ui.nodes.models.transformers.chat_reader import ChatPrompt, ChatReader
from swarm_ui.nodes.models.transformers.decoding import Continuation, Row
from swarm_ui.nodes.models.transformers.forwards import Pictures, accepts
from swarm_ui.nodes.models.transformers.grammar import ReplyGrammar, ReplyGrammars
from swarm_ui.nodes.models.transformers.in_process_model import InProcessModel, loading
from swarm_ui.prompts import format_named

PREFIX_BYTES = 512 * 2**20
"""Default limit of cached bytes: about 20,000 tokens for a model of 135 M parameters."""
_TURNS = (("user", "question"), ("assistant", "reply"))


class CausalModel(InProcessModel[ChatPrompt]):
    """A transformers language model with its tokenizer, chat template and named adapters.

    It also gives probabilities of short replies (:class:`swarm_ui.model.ChoosingModel`).

    A tokenizer without a chat template gets a plain one: ``System: …``, ``User: …`` and
    ``Assistant: …`` with empty lines between. If a chat template refuses system turns, their
    content begins the user's turn. Control tokens in the content of a turn are changed into plain
    text (``</s>`` becomes ``‹/s>``), and a line like the heading of a turn gets a backslash.
    """

    codec: ChatCodec
    loaders: ClassVar[tuple[Any, Any, str]] = (
        AutoModelForCausalLM, AutoTokenizer, "causal language model",
    )  # fmt: skip
    """The classes of transformers that load its network, and its tokenizer or processor; and what
    the model is, for errors."""

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
                :data:`swarm_ui.prompts.FORMATS`. An adapter may have its own (``format_of``).
            prompt_tokens: the most tokens of the prompt of a decision; longer ones are shortened
                (:mod:`swarm_ui.prompts.shortening`). ``None``: the context minus the longest reply,
                but at least half of the context.
            constrained: whether replies to decisions are restricted to the actions that are
                possible on the screen; ``None``: those in the compact format are.
            prefix_bytes: memory limit for the keys and values of recent prompts. Prompts with the
                same prefix and adapter version reuse them. 0: nothing is kept.

        Raises:
            ConfigError: the network has experts or no key-value cache, network and tokenizer do not
                fit together, there is no end token, the format does not exist, or ``prompt_tokens``
                is not positive.
        """
        kind = type(network).__name__
        # Experts read the tokens of any rows, so their adapters could not be those of a row.
        experts = any(part.rpartition(".")[2] == "experts" for part, _ in network.named_modules())
        if experts or "past_key_values" not in accepts(network):
            raise ConfigError(
                f"{kind} has {'experts' if experts else 'no key-value cache'}; expected a causal "
                "transformer without experts. Serve this one, and use OpenAIModel"
            )
        name = name or Path(network.name_or_path or "").name or kind
        limits = {
            "context": getattr(network.config.get_text_config(), "max_position_embeddings", None),
            "prompt_tokens": prompt_tokens,
        }
        codec, targets, part = self._parts(network, tokenizer, constrained, name=name, **limits)
        super().__init__(
            network,
            codec,
            name=name,
            prompt_format=format_named(prompt_format).name,
            targets=targets,
            part=part,
            prefix_bytes=prefix_bytes,
        )

    def _parts(
        self, network: PreTrainedModel, tokenizer: Any, constrained: bool | None, **settings: Any
    ) -> tuple[ChatCodec, Sequence[str] | str, str]:
        """The codec, the layers that get an adapter, and the part that they are in. ``settings``:
        of the reader."""
        reader = ChatReader(tokenizer=tokenizer, **settings)
        return ChatCodec(network, reader, constrained=constrained), "all-linear", ""

    @classmethod
    def from_pretrained(
        cls,
        folder_or_name: Path | str,
        *,
        device: str = "cpu",
        dtype: torch.dtype | str = "auto",
        name: str = "",
        **settings: Any,
    ) -> Self:
        """A network, and its tokenizer or processor, as transformers saves them.

        Args:
            folder_or_name: a folder; or, as a string, a name on the Hugging Face Hub, which is
                downloaded unless transformers is in offline mode.
            device: such as ``"cpu"`` or ``"cuda:1"``; ``"auto"``: accelerate distributes the
                layers over all devices.
            dtype: the type of the weights; ``"auto"``: as saved, but float32 instead of bfloat16
                on a processor without instructions for it, which is many times as slow in it.
            name: the model's name in traces; the folder's by default.
            settings: further arguments of the constructor, such as ``prompt_format``.

        Raises:
            ConfigError: there is no such model, or not all of its parts.
        """
        auto_network, auto_reader, what = cls.loaders
        options = {"device_map": device} if device == "auto" else {}
        if isinstance(folder_or_name, Path) and not folder_or_name.is_dir():
            raise ConfigError(f"no model in '{folder_or_name}': there is no such folder")
        with loading(
            f"no {what} in '{folder_or_name}': expected config.json, safetensors weights and a "
            "tokenizer, as save_pretrained writes them"
        ):
            reader = auto_reader.from_pretrained(str(folder_or_name))
            network, found = auto_network.from_pretrained(
                str(folder_or_name),
                dtype=dtype,
                use_safetensors=True,
                output_loading_info=True,
                **options,
            )
        if missing := sorted(found["missing_keys"]):  # transformers initialises them at random
            raise ConfigError(
                f"the weights in '{folder_or_name}' lack {len(missing)} tensors of the network, "
                f"such as {missing[0]}; save the model again, with all of its files"
            )
        if not options:
            network = network.to(device)
            able = torch.cpu.get_capabilities()  # instructions for bfloat16, of x86 or of ARM
            fast = any(able.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
            slow = network.device.type == "cpu" and network.dtype == torch.bfloat16 and not fast
            network = network.float() if slow and dtype == "auto" else network
        return cls(network, reader, name=name or Path(folder_or_name).name, **settings)

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
        folder = model_folder(name)
        own = read_metadata(folder)
        own.expect_format(folder, prompt_format)
        return cls.from_pretrained(
            folder,
            name=folder.name if folder == Path(name) else name,
            prompt_format=prompt_format or own.prompt_format or "json",
            **settings,
        )

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of transformers."""
        return self.codec.tokenizer

    async def probabilities(
        self, requests: Sequence[Request], options: Sequence[str]
    ) -> list[tuple[float, ...]]:
        """Probability of each option as the reply, among the options only; see
        :class:`swarm_ui.model.ChoosingModel`."""
        wanted = tuple([self.codec.first_token(each) for each in options])
        if len(options) < 2 or len(set(wanted)) < len(options):
            raise ConfigError(
                "probabilities: expected two or more options with different first tokens, got "
                f"{', '.join(map(repr, options)) or 'none'} with the tokens {list(wanted)}"
            )
        with self._read(requests) as (exact, prompts):
            rows = [Row(prompt.ids) for prompt in prompts]
            return await self._ask(exact, rows, wanted)


class ChatCodec:
    """The :class:`~swarm_ui.nodes.models.transformers.in_process_model.Codec` of chats."""

    def __init__(
        self,
        network: PreTrainedModel,
        reader: ChatReader,
        *,
        constrained: bool | None,
        pictures: Pictures | None = None,
    ) -> None:
        """Raises ``ConfigError`` if network and tokenizer do not fit together, or neither names an
        end token."""
        embeddings: Any = network.get_input_embeddings()
        self._words, self._device = int(embeddings.weight.shape[0]), network.device
        self.reader, self.tokenizer = reader, reader.tokenizer
        self.context: int | None = reader.context
        self.pictures: Pictures | None = pictures
        self._constrained = constrained
        if len(self.tokenizer) > self._words:
            raise ConfigError(
                f"the tokenizer has {len(self.tokenizer)} tokens, the network knows {self._words}; "
                "the two do not belong together"
            )
        self.stops: Collection[int]
        self.end, self.stops = _ends(getattr(network, "generation_config", None), self.tokenizer)
        pad = self.tokenizer.pad_token_id
        self.pad_id: int = self.end if pad is None else pad
        self._grammars: ReplyGrammars | None = None

    def read(self, request: Request, prompt_format: str) -> ChatPrompt:
        return self.reader.read(request, prompt_format)

    def row(self, request: Request, prompt: ChatPrompt) -> Row:
        room = request.reply_tokens if self.context is None else self.context - len(prompt.ids)
        return Row(
            prompt=prompt.ids,
            temperature=request.temperature or 0.0,
            seed=request.seed,
            max_tokens=min(request.reply_tokens, room),
            grammar=self._grammar(request, prompt),
        )

    def completion(self, prompt: ChatPrompt, new: Continuation) -> Completion:
        decode = self.tokenizer.decode
        text = str(decode(new.ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))
        return Completion(
            text=text,
            sampled=() if new.tokens == self.spoken(prompt, text) else tuple(new.tokens),
            **prompt.told(),
        )

    def spoken(self, prompt: ChatPrompt, reply: str) -> list[int]:
        literal = self.reader.marks.search(reply) is not None  # no token of it is a control token
        return [*self.reader.tokens(reply, literal=literal), self.end]

    def proposal(self, prompt: ChatPrompt, action: str) -> list[int] | None:
        decision, form = prompt.decision, format_named(prompt.prompt_format)
        read = parse_action(action)
        if isinstance(read, Unparsed):
            return None
        if decision is None:
            return self.spoken(prompt, action)
        reply = action if form.name == "json" else form.write(read, decision.observation)
        said = form.parse(reply, decision.observation, partial=decision.partial)
        return None if isinstance(said, Unparsed) else self.spoken(prompt, reply)

    def first_token(self, option: str) -> int:
        """The first token of a reply."""
        ids = self.reader.tokens(option, literal=True)
        return ids[0] if ids else self.end

    def save(self, folder: Path) -> None:
        self.tokenizer.save_pretrained(str(folder))

    def _grammar(self, request: Request, prompt: ChatPrompt) -> ReplyGrammar | None:
        """The replies that the request or the screen allows; ``None`` if they are not restricted.
        Replies of agents with tools are not: the schema is that of the last one."""
        possible = decision_pattern(prompt.decision, prompt.prompt_format, self._constrained)
        pattern = possible or request.pattern
        if pattern is None and (request.json_schema is None or request.tools):
            return None
        if self._grammars is None:
            self._grammars = ReplyGrammars(self.tokenizer, self._words, self.end, self._device)
        return self._grammars.find(pattern, request.json_schema)


def _ends(generation: Any, tokenizer: Any) -> tuple[int, frozenset[int]]:
    """The token at the end of trained replies, and all tokens that can end a reply."""
    named = getattr(generation, "eos_token_id", None)
    stops = [] if named is None else [named] if isinstance(named, int) else list(named)
    if tokenizer.eos_token_id is not None:
        stops.insert(0, tokenizer.eos_token_id)
    if not stops:
        raise ConfigError(
            "neither the tokenizer nor the network's generation_config names an end token "
            "(eos_token); set one, or no reply would ever end"
        )
    turns = [{"role": role, "content": content} for role, content in _TURNS]
    behind: list[int] = []
    with contextlib.suppress(Exception):  # a template is a program that may raise anything
        text = tokenizer.apply_chat_template(turns, tokenize=False).rpartition(_TURNS[-1][1])[2]
        behind = tokenizer(text, add_special_tokens=False)["input_ids"]
    # The template may end a turn with another token than that of a text (Gemma, Phi-3).
    return next((id_ for id_ in behind if id_ in stops), stops[0]), frozenset(stops)
