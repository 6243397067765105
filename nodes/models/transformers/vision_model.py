"""Vision-language models of transformers, in this process.

They read chats with pictures, and decisions with the screenshot of the screen. Batches, adapters,
versions, scores and training are those of other language models: a picture is a sequence of tokens,
see :mod:`swarm_ui.nodes.models.transformers.pictures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor, nn
from transformers import AutoModelForImageTextToText, AutoProcessor, PreTrainedModel

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import ChatMessage, Decision
from swarm_ui.nodes.models.transformers.causal_model import CausalModel
from swarm_ui.nodes.models.transformers.chat_codec import ChatCodec
from swarm_ui.nodes.models.transformers.chat_reader import ChatPrompt, ChatReader
from swarm_ui.nodes.models.transformers.pictures import PictureTokens
from swarm_ui.nodes.models.versions import not_sent
from swarm_ui.prompts import picture_name, with_picture

KINDS = ("idefics3", "llava", "smolvlm")
"""``model_type`` of the networks that were tested. Others may need more than vectors in the place
of pictures, such as another attention, and would answer wrongly without an error."""


@dataclass(frozen=True, kw_only=True)
class PictureReader(ChatReader):
    """Makes prompts with pictures. It stays in the process of the model, which reads them."""

    pictures: PictureTokens
    image_token: str

    def __reduce__(self) -> NoReturn:
        raise not_sent(f"the model '{self.name}'")

    def written(self, prompt_format: str, decision: Decision) -> tuple[ChatMessage, ...]:
        chat, png = super().written(prompt_format, decision), decision.observation.png
        return chat if png is None else with_picture(chat, png)

    def prompt(self, chat: Sequence[ChatMessage]) -> ChatPrompt:
        turns, pictures = self.harmless(chat), [png for turn in chat for png in turn.images]
        text = self.templated([
            (t.role, [*([{"type": "image"}] * len(t.images)), {"type": "text", "text": t.content}])
            for t in turns
        ])  # fmt: skip
        pieces = text.split(self.image_token)
        if len(pieces) != len(pictures) + 1:
            raise ModelError(
                f"the chat template of '{self.name}' has room for {len(pieces) - 1} pictures in "
                f"this chat, which has {len(pictures)}"
            )
        rest = iter(pictures)
        ids: list[int] = []
        for token in self.tokens(text):
            image = token == self.pictures.image_id
            ids += self.pictures.expand(next(rest)) if image else [token]
        names = [f"[{picture_name(png)}]" for png in pictures]
        shown = pieces[0] + "".join(n + p for n, p in zip(names, pieces[1:], strict=True))
        return ChatPrompt(ids, shown, turns=turns)


class VisionModel(CausalModel):
    """A vision-language model with its processor, chat template and named adapters.

    Decisions are shown with their screenshot (``Observation.png``), if there is one. Adapters
    change linear layers of the language part only.
    """

    loaders = (AutoModelForImageTextToText, AutoProcessor, "vision-language model")

    def __init__(self, network: PreTrainedModel, processor: Any, **settings: Any) -> None:
        """
        Args:
            network: a network of one of :data:`KINDS`.
            processor: a processor of transformers, with a tokenizer and a chat template.
            settings: see ``CausalModel``. Tokens of pictures count like all others.

        Raises:
            ConfigError: the network or the processor is of another kind, or the two do not fit
                together.
        """
        self.processor = processor
        super().__init__(network, processor, **settings)

    def _parts(
        self, network: PreTrainedModel, tokenizer: Any, constrained: bool | None, **settings: Any
    ) -> tuple[ChatCodec, Sequence[str] | str, str]:
        if (kind := network.config.model_type) not in KINDS:
            raise ConfigError(
                f"vision-language models of type '{kind}' are not supported; expected one of "
                f"{', '.join(KINDS)}. Serve other models, and use them with --url"
            )
        words, image_token = _tokenizer(tokenizer), tokenizer.image_token
        image_id = int(words.convert_tokens_to_ids(image_token))
        pictures = PictureTokens(network, tokenizer, image_id)
        reader = PictureReader(
            tokenizer=words,
            content=[{"type": "text", "text": "x"}],
            pictures=pictures,
            image_token=image_token,
            **settings,
        )
        decoder = network.get_decoder()  # type: ignore[no-untyped-call]
        inside = next(f"{key}." for key, part in network.named_modules() if part is decoder)
        targets = [
            key
            for key, part in network.named_modules()
            if isinstance(part, nn.Linear) and key.startswith(inside)
        ]
        codec = ChatCodec(network, reader, constrained=constrained, pictures=pictures)
        return codec, targets, inside

    def save(self, folder: Path, weights: dict[str, Tensor] | None = None) -> None:
        """Weights, configuration and processor (adapters: ``save_adapters``).

        ``weights``: saved instead of the base weights.
        """
        super().save(folder, weights)
        self.processor.save_pretrained(str(folder))


def _tokenizer(processor: Any) -> Any:
    """The tokenizer of a processor, with the processor's chat template."""
    tokenizer = getattr(processor, "tokenizer", None)
    if tokenizer is None or getattr(processor, "image_token", None) is None:
        raise ConfigError(
            f"{type(processor).__name__} is not a processor for pictures and text; expected "
            "one with a tokenizer and an image token (AutoProcessor)"
        )
    tokenizer.chat_template = tokenizer.chat_template or getattr(processor, "chat_template", None)
    if tokenizer.chat_template is None:
        raise ConfigError(
            "the processor has no chat template, which says where pictures stand; set "
            "processor.chat_template"
        )
    return tokenizer
