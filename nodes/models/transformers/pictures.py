"""Pictures as tokens of a prompt.

The vision part of a network turns a picture into vectors, which take the place of word embeddings
in the prompt. Here each of these vectors has a token id of its own, after those of the vocabulary:
it consists of a hash of the picture and the place of the vector. So a prompt with pictures is a
list of ids like any other: it can be batched, scored, trained on and compared with others (two
prompts share a prefix if the pictures in it are the same). :meth:`PictureTokens.inputs` makes
embeddings of such ids.

Adapters change the language layers only. So the vectors of a picture are the same for all adapters
and versions, and are computed once.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from inspect import signature
from io import BytesIO
from typing import Any

import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor
from transformers import PreTrainedModel

from swarm_ui.errors import ModelError

_PICTURES = 4096
"""Number of pictures that are known; the ids of older ones cannot be read any more."""
_UNREADABLE = (
    UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError,
)  # fmt: skip
_VECTORS = 64
"""Number of pictures whose vectors are kept; those of others are computed again."""
_MOST = 2**16
"""More vectors than a picture has."""


@dataclass(slots=True)
class _Picture:
    """A picture in the prompt."""

    png: bytes
    expansion: list[int]
    """Token ids of the picture in a prompt: those of its vectors, with tokens of the vocabulary
    between them."""
    vectors: int
    """Number of its vectors."""


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
        self._known: OrderedDict[int, _Picture] = OrderedDict()
        """By hash; the one that was used last is at the end."""
        self._vectors = lru_cache(_VECTORS)(self._computed)

    def expand(self, png: bytes) -> list[int]:
        """The token ids that represent a picture. Raises ``ModelError`` if the picture cannot be
        read."""
        number = int.from_bytes(sha256(png).digest()[:5])
        if number not in self._known:
            self._known[number] = self._added(png, number)
        self._known.move_to_end(number)
        while len(self._known) > _PICTURES:
            self._known.popitem(last=False)
        return self._known[number].expansion

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

    # -- pictures -----------------------------------------------------------------------------

    def _picture(self, number: int) -> _Picture:
        if number not in self._known:
            raise ModelError(
                "a prompt contains a picture that is no longer in memory; "
                f"{_PICTURES} pictures are kept. Encode the prompt again"
            )
        return self._known[number]

    def _added(self, png: bytes, number: int) -> _Picture:
        words, _ = self._processed(png)
        here = [k for k, word in enumerate(words) if word == self.image_id]
        for place, k in enumerate(here):
            words[k] = self.vocabulary + number * _MOST + place
        return _Picture(png, words, len(here))

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
        picture, network = self._picture(number), self._network
        inputs = self._processed(picture.png)[1]
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
        if len(vectors) != picture.vectors:
            raise ModelError(
                f"the processor makes {picture.vectors} tokens for a picture, and the "
                f"network {len(vectors)} vectors; the two do not belong together"
            )
        return vectors
