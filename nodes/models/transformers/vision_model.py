"""Vision-language models of transformers, in this process.

They read chats with pictures, and decisions with the screenshot of the screen. Batches, adapters,
versions, scores and training are those of ``CausalModel``: a picture is a sequence of tokens, see
:mod:`swarm_ui.nodes.models.transformers.picture_tokens`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from transformers import AutoModelForImageTextToText, AutoProcessor, PreTrainedModel

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import ChatMessage, Decision
from swarm_ui.nodes.models.transformers.adapters.files import PlainAdapter
from swarm_ui.nodes.models.transformers.causal_model import CausalModel
from swarm_ui.nodes.models.transformers.chat_tokens import ChatPrompt, ChatTokens
from swarm_ui.nodes.models.transformers.picture_tokens import PictureTokens
from swarm_ui.nodes.models.transformers.prompt_reader import PromptReader
from swarm_ui.prompts import picture_name, with_picture

KINDS = ("idefics3", "llava", "qwen2_vl", "smolvlm")
"""``model_type`` of the networks that were tested. Others may need more than vectors in the place
of pictures, such as another attention, and would answer wrongly without an error."""


class VisionModel(CausalModel):
    """A vision-language model with its processor, chat template and named adapters.

    Decisions are shown with their screenshot (``Observation.png``), if there is one. Adapters
    change linear layers of the language part only.
    """

    _network_class: Any = AutoModelForImageTextToText
    _reader_class: Any = AutoProcessor
    _what = "vision-language model"
    # Prompts are read whole: the store of recent prompts does not carry the positions that follow a
    # picture (``KVCache.shifts``), so a prompt could not be continued from it.
    _prefix_bytes = 0

    def __init__(
        self,
        network: PreTrainedModel,
        processor: Any,
        *,
        name: str = "",
        prompt_format: str = "json",
        prompt_tokens: int | None = None,
        constrained: bool | None = None,
        prefix_bytes: int = 0,
    ) -> None:
        """
        Args:
            network: a network of one of :data:`KINDS`.
            processor: a processor of transformers, with a tokenizer and a chat template.
            name, prompt_format, prompt_tokens, constrained: see ``CausalModel``. Tokens of pictures
                count like all others.
            prefix_bytes: 0; the beginnings of prompts with pictures are not kept.

        Raises:
            ConfigError: the network or the processor is of another kind, or the two do not fit
                together; or ``prefix_bytes`` is not 0.
        """
        if prefix_bytes:
            raise ConfigError(
                f"prefix_bytes must be 0 for a vision-language model, got {prefix_bytes}: the "
                "beginnings of its prompts are not kept"
            )
        kind = network.config.model_type
        if kind not in KINDS:
            raise ConfigError(
                f"vision-language models of type '{kind}' are not supported; expected one of "
                f"{', '.join(KINDS)}. Serve other models, and use them with --url"
            )
        tokenizer = _tokenizer(processor)
        super().__init__(
            network,
            tokenizer,
            name=name,
            prompt_format=prompt_format,
            prompt_tokens=prompt_tokens,
            constrained=constrained,
            prefix_bytes=0,
        )
        self.processor = processor
        self._chats = ChatTokens(tokenizer, self.name, [{"type": "text", "text": "x"}])
        self._marks = self._chats.marks
        self._image_id = int(tokenizer.convert_tokens_to_ids(processor.image_token))
        self._pictures = PictureTokens(network, processor, self._image_id)

    def save(self, folder: Path, weights: dict[str, Tensor] | None = None) -> None:
        """Weights, configuration and processor (adapters: :meth:`save_adapters`).

        ``weights``: saved instead of the base weights.
        """
        super().save(folder, weights)
        self.processor.save_pretrained(str(folder))

    def _adaptable(self, network: PreTrainedModel) -> list[str]:
        inside = _language_layers(network)
        return [
            name
            for name, part in network.named_modules()
            if isinstance(part, nn.Linear) and name.startswith(inside)
        ]

    def _load(self, folder: Path, adapter: PlainAdapter, name: str) -> None:
        inside = f"base_model.model.{_language_layers(self.network)}"
        outside = [key for key in adapter.weights if not key.startswith(inside)]
        if outside:
            raise ConfigError(
                f"the adapter in '{folder}' changes layers outside of the language part, such as "
                f"{outside[0]}. Adapters share the vision part; train one of the language layers "
                "only"
            )
        super()._load(folder, adapter, name)

    # -- tokens -------------------------------------------------------------------------------

    def prompt_reader(self, versions: Sequence[str]) -> PromptReader:
        """Not supported: always raises ``ConfigError``, because the prompts need the part of the
        model that reads pictures."""
        raise ConfigError(
            f"'{self.name}' is a vision-language model, and only its own process can make its "
            "prompts; expected a model that reads text"
        )

    def _chat(self, prompt_format: str, decision: Decision) -> tuple[ChatMessage, ...]:
        chat, png = super()._chat(prompt_format, decision), decision.observation.png
        return chat if png is None else with_picture(chat, png)

    def _prompt(self, chat: Sequence[ChatMessage]) -> ChatPrompt:
        pictures = [png for turn in chat for png in turn.images]
        names = [f"[{picture_name(png)}]" for png in pictures]
        turns = [
            ChatMessage(turn.role, self._chats.unmarked(turn.content), turn.images)
            for turn in self._chats.accepted(chat)
        ]
        text = self._chats.written([(turn.role, _parts(turn)) for turn in turns])
        pieces = text.split(self.processor.image_token)
        if len(pieces) != len(pictures) + 1:
            raise ModelError(
                f"the chat template of '{self.name}' has room for {len(pieces) - 1} pictures in "
                f"this chat, which has {len(pictures)}"
            )
        rest = iter(pictures)
        ids: list[int] = []
        for token in self._tokens(text):
            ids += self._pictures.expand(next(rest)) if token == self._image_id else [token]
        shown = pieces[0] + "".join(n + p for n, p in zip(names, pieces[1:], strict=True))
        return ChatPrompt(ids, shown, turns=tuple(turns))

    def _can_pack(self) -> bool:
        return False  # positions after a picture are counted along a row, which is one prompt


def _tokenizer(processor: Any) -> Any:
    """The tokenizer of a processor, with the processor's chat template."""
    tokenizer = getattr(processor, "tokenizer", None)
    if tokenizer is None or getattr(processor, "image_token", None) is None:
        raise ConfigError(
            f"{type(processor).__name__} is not a processor for pictures and text; expected "
            "one with a tokenizer and an image token (AutoProcessor)"
        )
    template = tokenizer.chat_template or getattr(processor, "chat_template", None)
    if template is None:
        raise ConfigError(
            "the processor has no chat template, which says where pictures stand; set "
            "processor.chat_template"
        )
    tokenizer.chat_template = template
    return tokenizer


def _parts(turn: ChatMessage) -> list[dict[str, str]]:
    """A turn in the form that chat templates of such models read: pictures, then the text."""
    images = [{"type": "image"} for _ in turn.images]
    return [*images, {"type": "text", "text": turn.content}]


def _language_layers(network: PreTrainedModel) -> str:
    """The beginning of the names of the language part's layers."""
    decoder = network.get_decoder()  # type: ignore[no-untyped-call]
    return next(f"{name}." for name, part in network.named_modules() if part is decoder)
