"""Pictures as tokens of a prompt.

The vision part of a network turns a picture into vectors, which take the place of word embeddings
in the prompt. Here each of these vectors has a separate token id, after those of the vocabulary, so
that a prompt with pictures is a list of ids like any other: it can be batched, scored, trained on
and compared with others (two prompts share a prefix if the pictures in it are the same).
:meth:`PictureTokens.inputs` makes embeddings of such ids.

Adapters change the language layers only. So the vectors of a picture are the same for all adapters
and versions, and are computed once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
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


@dataclass(slots=True)
class _Picture:
    """A picture in the prompt."""

    png: bytes
    first: int
    """Id of its first vector."""
    expansion: list[int]
    """Token ids of the picture in a prompt: placeholders for its vectors, with tokens of the
    vocabulary between them."""
    vectors: int
    """Number of its vectors."""
    offsets: Tensor
    """Positions of its vectors minus a count of tokens, ``[3, vectors]``."""
    shift: int
    """Positions minus token count, for the tokens after the picture."""


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
        self._rotates = hasattr(self._body, "get_rope_index")
        """Whether the network numbers the rows and columns of pictures, as Qwen2-VL does."""
        self._next = self.vocabulary
        self._known: OrderedDict[str, _Picture] = OrderedDict()
        self._firsts: list[int] = []
        self._by_first: dict[int, _Picture] = {}
        self._vectors = lru_cache(_VECTORS)(self._computed)

    def expand(self, png: bytes) -> list[int]:
        """The token ids that represent a picture. Raises ``ModelError`` if the picture cannot be
        read."""
        key = sha256(png).hexdigest()
        picture = self._known.get(key)
        if picture is None:
            picture = self._known[key] = self._added(png)
        self._known.move_to_end(key)
        while len(self._known) > _PICTURES:
            old = self._known.popitem(last=False)[1]
            self._firsts.remove(old.first)
            del self._by_first[old.first]
        return picture.expansion

    def shift(self, ids: Sequence[int]) -> int:
        """Position minus number of tokens, after a prompt."""
        return sum(self._by_first[id_].shift for id_ in ids if id_ in self._by_first)

    def inputs(self, ids: Tensor, positions: Tensor | None) -> dict[str, Tensor]:
        """See :class:`~swarm_ui.nodes.models.transformers.forwards.Pictures`."""
        seen = ids >= self.vocabulary
        if not bool(seen.any()):
            return {"input_ids": ids} | ({} if positions is None else {"position_ids": positions})
        embeddings: Any = self._network.get_input_embeddings()
        embedded: Tensor = embeddings(ids.masked_fill(seen, self.image_id))
        wanted = ids[seen]
        vectors = embedded.new_empty((len(wanted), embedded.shape[-1]))
        offsets, shifts = ids.new_zeros((3, len(wanted))), torch.zeros_like(wanted)
        for picture, own in self._shown(wanted):
            places = wanted[own] - picture.first
            vectors[own] = self._vectors(picture.first)[places].to(vectors.dtype)
            offsets[:, own] = picture.offsets.to(ids)[:, places]
            shifts[wanted == picture.first + picture.vectors - 1] = picture.shift
        given = {"inputs_embeds": embedded.masked_scatter(seen[..., None], vectors)}
        if self._rotates:
            start = (
                torch.arange(ids.shape[1], device=ids.device) if positions is None else positions
            )
            after = torch.zeros_like(ids).masked_scatter(seen, shifts)
            own_offsets = ids.new_zeros((3, *ids.shape)).masked_scatter(seen, offsets)
            positions = start + own_offsets + (after.cumsum(1) - after)
        return given if positions is None else given | {"position_ids": positions}

    # -- pictures -----------------------------------------------------------------------------

    def _added(self, png: bytes) -> _Picture:
        words, inputs = self._processed(png)
        here = [k for k, word in enumerate(words) if word == self.image_id]
        for number, k in enumerate(here):
            words[k] = self._next + number
        offsets, shift = torch.zeros((3, len(here)), dtype=torch.long), 0
        if self._rotates:
            ids, grid = torch.full((1, len(here)), self.image_id), inputs["image_grid_thw"]
            places, shift = self._body.get_rope_index(
                ids, torch.ones_like(ids), image_grid_thw=grid
            )
            offsets = places[:, 0] - torch.arange(len(here))
        picture = _Picture(png, self._next, words, len(here), offsets, int(shift))
        self._next += len(here)
        self._firsts.append(picture.first)
        self._by_first[picture.first] = picture
        return picture

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

    def _shown(self, ids: Tensor) -> Iterator[tuple[_Picture, Tensor]]:
        """The pictures to which ids of vectors belong, each with the places of its ids. Raises
        ``ModelError`` if one is not known any more."""
        found = {bisect_right(self._firsts, id_) - 1 for id_ in set(ids.tolist())}
        shown = [self._by_first[self._firsts[place]] for place in sorted(found) if place >= 0]
        places = [(ids >= each.first) & (ids < each.first + each.vectors) for each in shown]
        if sum(int(own.sum()) for own in places) < len(ids):
            raise ModelError(
                "a prompt contains a picture that is no longer in memory; "
                f"{_PICTURES} pictures are kept. Encode the prompt again"
            )
        yield from zip(shown, places, strict=True)

    def _computed(self, first: int) -> Tensor:
        """The vectors of a picture, ``[vectors, width]``, without dropout, gradients and autocast,
        so that training and inference get the same ones."""
        picture, network = self._by_first[first], self._network
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
                f"the processor makes {picture.vectors} tokens for a picture, and the network "
                f"{len(vectors)} vectors; the two do not belong together"
            )
        return vectors
