"""Vision-language models of transformers, in this process.

They read chats with pictures, and decisions with the screenshot of the screen. A picture is a
sequence of tokens like others: the vision part of a network turns it into vectors, which take the
place of word embeddings, and each vector has a token id of its own, after those of the vocabulary,
made of a hash of the picture and the place of the vector. So batches, adapters, common prefixes,
scores and training are those of other language models.

Adapters change the language layers only. So the vectors of a picture are the same for all adapters
and versions, and are computed once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from inspect import signature
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor, nn
from transformers import AutoModelForImageTextToText, AutoProcessor, PreTrainedModel

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import ChatMessage, Decision
from swarm_ui.nodes.models.transformers.causal_model import CausalModel, ChatCodec
from swarm_ui.nodes.models.transformers.chat_reader import ChatPrompt, ChatReader
from swarm_ui.nodes.models.versions import not_sent
from swarm_ui.prompts import picture_name, with_picture

KINDS = ("idefics3", "llava", "smolvlm")
"""``model_type`` of the networks that were tested. Others may need more than vectors in the place
of pictures, such as another attention, and would answer wrongly without an error."""
_PICTURES = 4096
"""Number of pictures that are known; the ids of older ones cannot be read any more."""
_UNREADABLE = (
    UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError,
)  # fmt: skip
_VECTORS = 64
"""Number of pictures whose vectors are kept; those of others are computed again."""
_MOST = 2**16
"""More vectors than a picture has."""


class PictureTokens:
    """The pictures that a vision-language model was shown. It is the
    :class:`~swarm_ui.nodes.models.transformers.forwards.Pictures` of the model."""

    def __init__(self, network: PreTrainedModel, processor: Any, image_id: int) -> None:
        """
        Args:
            network: turns pictures into vectors.
            processor: a processor of transformers.
            image_id: the token for a picture in a chat.
        """
        embeddings: Any = network.get_input_embeddings()
        self.vocabulary = int(embeddings.weight.shape[0])
        """Number of ids that stand for words; greater ones stand for pictures."""
        self._network, self._processor, self.image_id = network, processor, image_id
        self._body: Any = network.model
        self._readable = frozenset(signature(self._body.get_image_features).parameters)
        self._known: OrderedDict[int, tuple[bytes, list[int]]] = OrderedDict()
        """Pictures with their ids in a prompt, by hash; the one used last is at the end."""
        self._vectors = lru_cache(_VECTORS)(self._computed)

    def expand(self, png: bytes) -> list[int]:
        """The token ids that represent a picture: those of its vectors, with tokens of the
        vocabulary between them. Raises ``ModelError`` if the picture cannot be read."""
        number = int.from_bytes(sha256(png).digest()[:5])
        if number not in self._known:
            own = count(self.vocabulary + number * _MOST)
            ids, _ = self._processed(png)
            self._known[number] = png, [next(own) if i == self.image_id else i for i in ids]
        self._known.move_to_end(number)
        while len(self._known) > _PICTURES:
            self._known.popitem(last=False)
        return self._known[number][1]

    def inputs(self, ids: Tensor) -> dict[str, Tensor]:
        """See :class:`~swarm_ui.nodes.models.transformers.forwards.Pictures`. Raises ``ModelError``
        if a picture is not known any more."""
        seen = ids >= self.vocabulary
        if not bool(seen.any()):
            return {"input_ids": ids}
        embeddings: Any = self._network.get_input_embeddings()
        embedded: Tensor = embeddings(ids.masked_fill(seen, self.image_id))
        wanted = ids[seen] - self.vocabulary
        numbers, places = wanted // _MOST, wanted % _MOST
        vectors = embedded.new_empty((len(wanted), embedded.shape[-1]))
        for number in set(numbers.tolist()):
            own = numbers == number
            vectors[own] = self._vectors(number)[places[own]].to(vectors.dtype)
        return {"inputs_embeds": embedded.masked_scatter(seen[..., None], vectors)}

    def _processed(self, png: bytes) -> tuple[list[int], dict[str, Tensor]]:
        """The tokens of a picture, without ids of vectors, and the input of the vision part."""
        try:
            image = Image.open(BytesIO(png)).convert("RGB")
        except _UNREADABLE as error:
            raise ModelError(f"a picture of {len(png)} bytes cannot be read: {error}") from error
        read = self._processor(
            text=self._processor.image_token,
            images=[image],
            return_tensors="pt",
            add_special_tokens=False,
        )
        inputs = {name: value for name, value in read.items() if name in self._readable}
        return read["input_ids"][0].tolist(), inputs

    def _computed(self, number: int) -> Tensor:
        """The vectors of a picture, ``[vectors, width]``, without dropout, gradients and autocast,
        so that training and inference get the same ones."""
        if number not in self._known:
            raise ModelError(
                "a prompt contains a picture that is no longer in memory; "
                f"{_PICTURES} pictures are kept. Encode the prompt again"
            )
        (png, ids), network = self._known[number], self._network
        _, inputs = self._processed(png)
        there = {name: value.to(network.device) for name, value in inputs.items()}
        training = network.training
        network.train(False)
        with (
            torch.inference_mode(False),
            torch.no_grad(),
            torch.autocast(network.device.type, enabled=False),
        ):
            seen = self._body.get_image_features(**there, return_dict=True).pooler_output
        network.train(training)
        vectors = torch.cat(list(seen)).reshape(-1, seen[0].shape[-1])
        wanted = sum(id_ >= self.vocabulary for id_ in ids)
        if len(vectors) != wanted:
            raise ModelError(
                f"the processor makes {wanted} tokens for a picture, and the network "
                f"{len(vectors)} vectors; the two do not belong together"
            )
        return vectors


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
        """Weights, or those given instead, configuration and processor."""
        super().save(folder, weights)
        self.processor.save_pretrained(str(folder))


def _tokenizer(processor: Any) -> Any:
    """The tokenizer of a processor, with the processor's chat template."""
    tokenizer = getattr(processor, "tokenizer", None)
    if tokenizer is not None and tokenizer.chat_template is None:
        tokenizer.chat_template = getattr(processor, "chat_template", None)
    if not (tokenizer and getattr(processor, "image_token", None) and tokenizer.chat_template):
        raise ConfigError(
            f"{type(processor).__name__} is not a processor for pictures and text; expected one "
            "with a tokenizer, an image token and a chat template, which says where pictures stand"
        )
    return tokenizer
